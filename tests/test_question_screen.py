"""The screen Question: what it chooses, draws and says, and the address that opens it again."""

from html import escape
from pathlib import Path

import plotly.graph_objects as go
import polars as pl
import pytest
from lake_fixture import STUDY, DemoResults
from screens import open_screen, texts

from analysis.behind import clickable
from analysis.question_choice import chosen_questions, closer_arm, drawn_runs
from analysis.question_figures import (
    accuracy_by_checkpoint,
    bucket_line,
    extent,
    question_timeline,
    rollouts_by_slot,
)
from app.components.steps import neighbours

LIST = pl.DataFrame(
    {
        "question": ["a", "b", "c", "d"],
        "text": ["1+2=", "3*4=", None, "1+2*3="],
        "level": [1, 1, 2, None],
        "visits": [4, 4, 2, 0],
        "graded": [8, 8, 4, 0],
        "right": [4, 0, 0, 0],
        "first_share": [0.25, 0.0, 0.0, None],
        "last_share": [0.75, 0.0, 0.0, None],
        "flips": [1, 3, 3, 0],
        "replays": [2, 0, 5, 0],
    }
)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("flips", ["b", "c", "a", "d"]),
        ("replayed", ["c", "a", "b", "d"]),
        ("never", ["b", "c", "d", "a"]),
        ("gained", ["a", "b", "c", "d"]),
        ("lost", ["b", "c", "a", "d"]),
        ("level", ["c", "a", "b", "d"]),
    ],
)
def test_the_most_interesting_questions_come_first(order, expected) -> None:  # type: ignore[no-untyped-def]
    assert chosen_questions(LIST, order, None, None)["question"].to_list() == expected


def test_questions_are_found_by_text_id_and_level() -> None:
    def found(text: str | None, level: int | None) -> list[str]:
        return sorted(chosen_questions(LIST, "flips", text, level)["question"])

    assert found("1+2", None) == ["a", "d"]  # no regular expression
    assert found("C", None) == ["c"]  # by id, in any case, without a text
    assert found("1+2", 1) == ["a"]
    assert found("nowhere", None) == []


def test_the_neighbours_of_a_question() -> None:
    assert neighbours(["a", "b", "c"], "b") == ("a", "c")
    assert neighbours(["a", "b", "c"], "a") == (None, "b")
    assert neighbours(["a", "b", "c"], "c") == ("b", None)
    assert neighbours(["a", "b", "c"], "z") == (None, None)


def test_when_there_are_many_runs_every_arm_is_drawn() -> None:
    visits = pl.DataFrame(
        [(arm, seed, f"{arm}{seed}") for arm in ("x", "y") for seed in range(9)] * 2,
        schema=["arm", "seed", "run"],
        orient="row",
    )
    assert drawn_runs(visits, (), (), most=3) == (["x0", "y0", "x1"], 18)
    assert drawn_runs(visits, ("y",), (4, 5)) == (["y4", "y5"], 2)
    assert drawn_runs(visits, ("z",), ()) == ([], 0)


EVENT = {"study": "s", "arm": "x", "seed": 0, "run": "r", "question": "q", "trajectory": None}


def events(*moves: tuple[int, str, int | None, int | None]) -> pl.DataFrame:
    names = ("step", "event", "bucket_before", "bucket_after")
    rows = [EVENT | dict(zip(names, move, strict=True)) for move in moves]
    schema = dict.fromkeys(("step", "bucket_before", "bucket_after"), pl.Int64)
    return pl.DataFrame(rows, schema_overrides=schema)


def test_a_bucket_is_a_line_with_gaps_where_the_question_is_out() -> None:
    moves = events(
        (2, "entered", None, 4),
        (2, "stored", 4, 4),
        (5, "moved", 4, 6),
        (7, "retired", 6, None),
        (7, "retired", None, None),  # again: it lies in no bucket
        (9, "returned", None, 7),
        (9, "evicted", 7, 7),  # of one trajectory: the question stays
    )
    steps, buckets = bucket_line(moves, 12)
    assert steps == [2, 5, 5, 7, 7, 9, 9, 9, 12]
    assert buckets == [4, 4, 6, 6, None, 7, 7, 7, 7]
    assert bucket_line(events((3, "retired", None, None)), 12) == ([], [])


def visit(step: int, **columns: object) -> dict[str, object]:
    row = {"run": "r", "arm": "<b>x</b>", "seed": 0, "question": "q", "step": step, "size": 8}
    row |= {"right": 2, "graded": 8, "success_share": 0.25, "bucket_drawn": None, "replayed": 0}
    return row | columns


def rollout(slot: int, **columns: object) -> dict[str, object]:
    row = {"run": "r", "arm": "<b>x</b>", "seed": 0, "question": "q", "step": 3, "slot": slot}
    row |= {"trajectory": f"r:3:0:{slot}", "source": None, "replayed": False, "correct": True}
    return row | {"mean_entropy": 0.1 * slot, "length": 9} | columns


ROLLOUTS = pl.DataFrame(
    [
        rollout(0, replayed=True, source="r:1:0:1"),
        rollout(1),
        rollout(2, correct=False),
        rollout(3, correct=None),
    ]
)
VISITS = pl.DataFrame(
    [visit(1), visit(3, bucket_drawn=2, replayed=1, success_share=1 / 3)],
    schema_overrides={"bucket_drawn": pl.Int64},
)


def test_every_point_of_a_timeline_opens_its_rows() -> None:
    room = extent(VISITS, ROLLOUTS, 10)
    assert (room.last, room.size) == (10, 8)
    assert room.value == pytest.approx(0.3)
    moves = events((1, "entered", None, 2), (1, "stored", 2, 2), (3, "retired", 2, None))
    plot = question_timeline("<b>x</b>", VISITS, ROLLOUTS, moves, room, "r:1:0:1")
    traces = {trace.name: trace for trace in plot.data}
    line = traces[escape("<b>x</b>")]
    assert line.y == (0.25, 1 / 3)
    assert list(line.marker.symbol) == ["circle-open", "diamond"]
    assert line.customdata[1] == {"run": "r", "question": "q", "step_min": 3, "step_max": 3}
    dots = {"↻ replayed, right": 0, "right": 1, "wrong": 2, "ungraded": 3}
    for name, slot in dots.items():
        assert traces[name].customdata == ({"trajectory": f"r:3:0:{slot}"},)
        assert traces[name].y == (pytest.approx(0.1 * slot),)
    assert traces["the chosen trajectory"].x == (3,)  # a replay of it
    assert traces["retired"].y == (8,)
    assert traces["entered"].y == (2,)
    bucket = traces["bucket, seed 0"]
    assert bucket.line.shape == "hv" and bucket.y == (2, 2, None)
    steps = [behind and behind["step_min"] for behind in bucket.customdata]
    assert steps == [1, 3, 3]
    assert bucket.customdata[0] == {"run": "r", "question": "q", "step_min": 1, "step_max": 1}
    known = [behind for _, _, behind in clickable(plot)]
    assert known and all(known)
    go.Figure(plot.to_dict())  # raises where Plotly does not know a field


def test_the_runs_of_an_arm_are_one_line_with_gaps() -> None:
    other = VISITS.with_columns(run=pl.lit("s"), seed=pl.lit(1, pl.Int64))
    arm = VISITS.with_columns(arm=pl.lit("y"))
    visits = pl.concat([other, VISITS, arm])
    room = extent(visits, ROLLOUTS, 10)
    first, second = question_timeline("y", visits, ROLLOUTS.clear(), events().clear(), room).data
    assert (first.name, first.x) == (escape("<b>x</b>"), (1, 3, None, 1, 3))
    assert [row and row["run"] for row in first.customdata] == ["r", "r", None, "s", "s"]
    assert (second.name, second.x, second.line.width) == ("y", (1, 3), 2)


def test_of_one_arm_every_rollout_is_drawn() -> None:
    arms = ["a", "exgrpo", "z"]
    assert closer_arm(arms, "z", "a") == "z"
    assert closer_arm(arms, "no such arm", "a") == "a"
    assert closer_arm(arms, None, None) == "exgrpo"
    assert closer_arm(["a", "z"], None, None) == "a"


def test_strips_without_data_are_left_out() -> None:
    bare = ROLLOUTS.with_columns(
        mean_entropy=pl.lit(None, pl.Float64), length=pl.lit(None, pl.Int64)
    )
    plot = question_timeline("x", VISITS, bare, events().clear(), extent(VISITS, bare, 3))
    assert [trace.name for trace in plot.data] == [escape("<b>x</b>")]
    lengths = ROLLOUTS.with_columns(mean_entropy=pl.lit(None, pl.Float64))
    plot = question_timeline("x", VISITS, lengths, events().clear(), extent(VISITS, lengths, 3))
    assert plot.layout.yaxis2.title.text == "length (tokens)"


def test_one_step_is_drawn_by_slot_and_runs_stay_names() -> None:
    rows = pl.concat([ROLLOUTS.with_columns(run=pl.lit(run)) for run in ("1e5", "0012", "<i>")])
    plot = rollouts_by_slot(rows, "r:3:0:2")
    assert plot.layout.yaxis.type == "category"
    assert list(plot.layout.yaxis.categoryarray) == ["&lt;i&gt;", "0012", "1e5"]
    assert plot.data[-1].name == "the chosen trajectory" and plot.data[-1].x == (2, 2, 2)


def test_tests_of_a_question_open_their_samples() -> None:
    frame = pl.DataFrame(
        {
            "arm": ["x", "x"],
            "benchmark": ["test_id"] * 2,
            "question": ["q"] * 2,
            "step": [0, 4],
            "right": [1, 3],
            "samples": [4, 4],
            "accuracy": [0.25, 0.75],
        }
    )
    (trace,) = accuracy_by_checkpoint(frame).data
    assert trace.y == (0.25, 0.75)
    assert trace.customdata[1] == {
        "source": "evaluation",
        "arms": ["x"],
        "benchmark": "test_id",
        "step_min": 4,
        "step_max": 4,
        "question": "q",
    }


def test_the_screen_opens_on_the_first_question_of_the_list(
    results: Path, analysed: DemoResults
) -> None:
    test = open_screen("question")
    said = texts(test)
    table = test.dataframe[0].value
    asked = {row["question"]: row["text"] for row in analysed.rows["questions"]}
    first = table["id"].iloc[0]
    assert asked[first] in [code.value for code in test.code]
    assert "Every visit" in [item.value for item in test.subheader]
    assert "visits in" in said and "not hold" not in said


def test_the_address_restores_question_arms_order_and_filters(
    results: Path, analysed: DemoResults
) -> None:
    row = next(row for row in analysed.rows["trajectories"] if row["replayed"])
    test = open_screen(
        "question",
        study=STUDY,
        question=row["question"],
        trajectory=row["trajectory"],
        arms=["exgrpo"],
        seeds=["0", "1"],
        order="replayed",
        level=str(row["level"]),
    )
    said = {box.label: box.value for box in (*test.selectbox, *test.multiselect)}
    assert said["First come the"] == "replayed"
    assert said["Level"] == row["level"]
    assert said["Arms"] == ["exgrpo"] and said["Seeds"] == [0, 1]
    assert row["question"] in [code.value for code in test.code]
    visits = test.dataframe[1].value
    logged = {
        (each["run"], each["step"])
        for each in analysed.rows["trajectories"]
        if each["question"] == row["question"] and each["run"].startswith("exgrpo")
    }
    assert set(zip(visits["run"], visits["step"], strict=True)) == logged
    before = dict(test.query_params)
    test.multiselect(key="Question.arms").set_value(["on_policy"]).run()
    assert test.query_params["arms"] == "on_policy"
    assert test.query_params["question"] == before["question"]
    test.selectbox(key="Question.order").set_value("lost").run()
    assert test.query_params["order"] == "lost"
    assert "question" not in test.query_params  # the first of the new list


def test_next_goes_on_in_the_list_and_nonsense_falls_back(results: Path) -> None:
    test = open_screen("question", page="99", order="nonsense", level="x", seeds=["a"])
    ids = test.dataframe[0].value["id"].to_list()
    test.button(key="question.next").click().run()
    assert test.query_params["question"] == ids[1]
    test.button(key="question.previous").click().run()
    assert test.query_params["question"] == ids[0]
    test = open_screen("question", question="no such <b>question</b>")
    assert "not hold" in test.warning[0].value
    assert "no such <b>question</b>" in [code.value for code in test.code]
    test = open_screen("question", text="no such text")
    assert "No question passes" in test.info[0].value
    test = open_screen("question", arms=["no such arm"])
    assert "No run of these arms" in texts(test)


def test_a_test_question_has_its_accuracy_and_no_history(
    results: Path, analysed: DemoResults
) -> None:
    question = next(r for r in analysed.rows["questions"] if r["split"] == "test_ood")["question"]
    test = open_screen("question", study=STUDY, question=question)
    assert "asked in tests only" in texts(test)
    samples = [r for r in analysed.rows["evaluations"] if r["question"] == question]
    table = test.dataframe[1].value
    assert set(table["step"]) == {row["step"] for row in samples}
    base = table[table["arm"] == "base"].iloc[0]
    graded = [r["correct"] for r in samples if r["step"] == 0 and r["correct"] is not None]
    assert base["samples right"] == f"{sum(graded)} of {len(graded)}"


def test_an_import_has_one_step(golden_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    assert "one step only" in texts(open_screen("question", study="imports"))
    said = texts(open_screen("question", study="golden", order="replayed"))
    assert "Top: fresh rollouts" in said
