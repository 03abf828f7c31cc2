"""The compare screen: its choices as pure functions, and the screen by its address."""

from pathlib import Path

import duckdb
import polars as pl
import pytest
from lake_fixture import HOSTILE, STUDY, DemoResults
from screens import open_screen, texts, write_import
from streamlit.testing.v1 import AppTest

from analysis.compare_figure import MOST, question_dots
from analysis.compared_responses import responses
from analysis.pairs import (
    FLIPS,
    Comparison,
    Side,
    compare_sides,
)
from app import state
from app.browser import Browser
from app.components.compare_responses import answers_behind
from app.components.compare_result import difference_words, meaning, pairing, question_table
from app.components.compare_state import (
    Compare,
    chosen_arms,
    chosen_benchmark,
    chosen_response,
    listed,
    side,
)
from app.components.steps import neighbours
from app.links import compare_query

# The state


def test_the_address_holds_all_of_a_comparison() -> None:
    address = Compare("s", "training", None, "a", "b", "a0", "b0", 1, 2, 3, 4, 5, 6, "right_wrong")
    assert state.from_query(Compare, state.to_query(address)) == address
    assert compare_query(a="x:1:0:0", b="x:1:0:1") == {"a": ["x:1:0:0"], "b": ["x:1:0:1"]}
    assert state.from_query(Compare, {"flip": ["?"], "on": [""], "left_step": ["x"]}) == Compare()


def test_arms_are_the_named_ones_or_reference_and_method() -> None:
    arms = ["exgrpo", "on_policy", "base", "mine"]
    assert chosen_arms(arms, None, None) == ("on_policy", "exgrpo")
    assert chosen_arms(arms, "mine", "base") == ("mine", "base")
    assert chosen_arms(arms, "exgrpo", None) == ("exgrpo", "on_policy")
    assert chosen_arms(arms, "no", "on_policy") == ("base", "on_policy")
    assert chosen_arms(["mine", "base"], None, None) == ("base", "mine")
    assert chosen_arms(["mine"], None, None) == ("mine", "mine")
    domains = {"aime": "out", "validation": None, "zeta": "in", "math": "in"}
    assert chosen_benchmark(domains, None) == "math"
    assert chosen_benchmark(domains, "no") == "math"
    assert chosen_benchmark(domains, "validation") == "validation"
    assert chosen_benchmark({"validation": None, "test_ood": "out"}, None) == "test_ood"
    assert chosen_benchmark({"validation": None}, None) == "validation"


def test_a_side_holds_what_its_mode_needs() -> None:
    address = Compare(left_run="r", left_step=-1, left_from=2, left_to=-5)
    assert side(address, "left", "a", training=False) == Side("a", "r")
    assert side(address, "left", "a", training=True) == Side("a", "r", first=2)


def questions(*rows: tuple[str, float, float, str]) -> pl.DataFrame:
    names = ["question", "accuracy_a", "accuracy_b", "flip"]
    frame = pl.DataFrame(list(rows), names, orient="row")
    return frame.with_columns(
        difference=pl.col("accuracy_b") - pl.col("accuracy_a"),
        level=1,
        **{name: pl.lit(1) for name in ("correct_a", "correct_b", "graded_a", "graded_b")},
    )


ASKED = questions(
    ("kept", 1.0, 0.75, "right_right"),
    ("won", 0.0, 1.0, "wrong_right"),
    ("less", 0.75, 0.5, "right_wrong"),
    ("lost", 1.0, 0.0, "right_wrong"),
)


def test_what_was_lost_is_listed_first() -> None:
    assert listed(ASKED, "all")["question"].to_list() == ["lost", "less", "won", "kept"]
    assert listed(ASKED, "right_wrong")["question"].to_list() == ["lost", "less"]
    assert question_table(ASKED)["from A to B"].to_list()[:2] == ["right in both", "wrong → right"]


def test_the_rows_behind_a_side_are_one_benchmark() -> None:
    fields = answers_behind("s", "test_id", Side("x", "r"), [2, 4], "q")
    filters = state.change(Browser(), **fields).filters
    assert (filters.benchmark, filters.run, filters.step_max) == ("test_id", "r", 4)


def test_a_response_like_its_side_comes_first() -> None:
    found = pl.DataFrame({"id": ["x", "y", "z"], "correct": [None, False, True]})
    assert chosen_response(found, None, right=True) == "z"
    assert chosen_response(found, None, right=False) == "y"
    assert chosen_response(found, "x", right=True) == "x"
    assert chosen_response(found, "?", right=True) == "z"
    assert chosen_response(found.head(1), None, right=True) == "x"


def test_each_dot_names_its_question() -> None:
    plot = question_dots(ASKED, "won")
    named = [item["question"] for trace in plot.data for item in trace.customdata or ()]
    assert sorted(named) == ["kept", "less", "lost", "won"]
    assert len(plot.data[-1].x) == 1  # the ring
    assert abs(plot.data[-1].y[0] - 1.0) <= 0.02
    evil = question_dots(questions((HOSTILE, 0.0, 1.0, "wrong_right")), None)
    assert "<img" not in str([trace.text for trace in evil.data])


def test_of_many_questions_those_that_changed_most_are_drawn() -> None:
    many = [(f"same{i}", 1.0, 1.0, "right_right") for i in range(MOST)]
    plot = question_dots(questions(*many, ("lost", 1.0, 0.0, "right_wrong")), None)
    named = [item["question"] for trace in plot.data for item in trace.customdata or ()]
    assert len(named) == MOST and "lost" in named


# The screen


def drawn(test: AppTest) -> str:
    """What the screen draws as HTML, without its styles."""
    bodies = [item.proto.body for item in test.get("html")]
    return "".join(body.split("</style>")[-1] for body in bodies)


def test_the_screen_compares_the_reference_with_the_method(
    results: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    made: Comparison = compare_sides(
        connection, STUDY, "test_id", Side("on_policy"), Side("exgrpo")
    )
    test = open_screen("compare", study=STUDY)
    assert test.subheader[0].value == difference_words(made)
    assert pairing(made) in texts(test) and meaning(made) in texts(test)
    for flip, number in made.counts().items():
        assert test.button(key=f"compare.{flip}").label.startswith(f"**{number:,}**")
    assert len(test.dataframe[0].value) == made.questions.height
    assert '<div class="diff sides">' in drawn(test)


def test_a_comparison_opens_again_from_its_address(
    results: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    asked = Side("exgrpo", step=0), Side("exgrpo", step=3)
    made = compare_sides(connection, STUDY, "validation", *asked)
    question = made.questions["question"][-1]
    runs = tuple(pair.run_b for pair in made.pairs)
    sample = responses(connection, "validation", asked[1], runs, question)["id"][-1]
    sides = {"left": "exgrpo", "right": "exgrpo", "left_step": "0", "right_step": "3"}
    test = open_screen(
        "compare", benchmark="validation", question=question, right_sample=sample, **sides
    )
    assert test.selectbox(key="Compare.left_step").value == 0
    assert test.selectbox(key="Compare.right_sample").value == sample
    assert question in [item.value for item in test.code]
    assert test.subheader[0].value == difference_words(made)
    test.segmented_control(key="Compare.view").set_value("unified").run()
    assert test.query_params["view"] == "unified"
    assert test.query_params["question"] == question
    assert '<div class="diff">' in drawn(test) and '<div class="diff sides">' not in drawn(test)
    listed_ids = listed(made.questions, "all")["question"].to_list()
    before, after = neighbours(listed_ids, question)
    name, target = ("next", after) if after else ("previous", before)
    test.button(key=f"compare.{name}").click().run()
    assert test.query_params["question"] == target
    assert "right_sample" not in test.query_params


def test_a_cell_of_the_matrix_lists_its_questions(
    results: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    made = compare_sides(connection, STUDY, None, Side("on_policy"), Side("exgrpo"))
    flip = max(FLIPS, key=lambda each: made.counts()[each])
    test = open_screen("compare", on="training")
    test.button(key=f"compare.{flip}").click().run()
    assert test.query_params["flip"] == flip
    ids = listed(made.questions, flip)["question"].to_list()
    assert test.dataframe[0].value["question"].to_list() == ids
    test.button(key=f"compare.{flip}").click().run()
    assert "flip" not in test.query_params


def test_rollouts_of_training_have_tokens_one_above_the_other(results: Path) -> None:
    test = open_screen("compare", on="training", view="entropy")
    assert 'class="pair"' in drawn(test) and "the same scale for both" in drawn(test)
    assert "entropy" not in str(
        open_screen("compare").segmented_control(key="Compare.view").options
    )


def test_two_trajectories_are_compared_as_text_and_hostile_text_is_text(
    results: Path, analysed: DemoResults
) -> None:
    evil = next(row for row in analysed.rows["trajectories"] if row["response"] == HOSTILE)
    other = f"{evil['run']}:{evil['step']}:{evil['group']}:0"
    test = open_screen("compare", a=evil["trajectory"], b=other)
    assert "<img" not in drawn(test) and "&lt;" in drawn(test)
    assert "different questions" not in texts(test)
    assert len(test.dataframe[0].value) == 3  # the rest of A's group
    tokens = open_screen("compare", a=evil["trajectory"], b=other, view="ratio")
    assert 'class="pair"' in drawn(tokens)
    alone = open_screen("compare", a=evil["trajectory"], b="no:1:2:3")
    assert "does not hold" in alone.warning[0].value
    assert "another of its group" in alone.info[0].value


@pytest.mark.parametrize(
    "address",
    [
        {"left": "nobody", "right": "<b>"},
        {"left_run": "nobody", "question": "<img src=x>", "left_sample": "?"},
        {"left_step": "99", "right_step": "-3", "flip": "?", "view": "??"},
        {"benchmark": "none"},
        {"on": "training", "left_from": "50", "left_to": "-1"},
        {"left": "exgrpo", "right": "exgrpo"},
    ],
)
def test_nonsense_in_the_address_is_said(results: Path, address: dict[str, str]) -> None:
    test = open_screen("compare", **address)
    assert test.warning or test.info
    assert not [item for item in test.markdown if "<img" in item.value or "<b>" in item.value]


def test_an_import_offers_its_rollouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_import(tmp_path, ["4", "5", "six"], [1, 2, 0])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    test = open_screen("compare")
    assert "no evaluation samples" in texts(test)
    assert "one arm" in texts(test)
    assert "the same" in test.info[0].value
