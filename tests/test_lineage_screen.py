"""The screen Lineage: draws, uses and the fate of a trajectory, and the address that opens it."""

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import Row, rows
from golden_scope import by
from lake_fixture import STUDY, DemoResults
from screens import open_screen, texts

from analysis.behind import clickable
from analysis.lineage import Agreement, agreement, change, draws, fate, order_words, telling_draw
from analysis.lineage import uses as uses_of
from analysis.lineage_figures import lineage_timeline
from analysis.queries import answer
from app.components.lineage_parts import same, whole_run
from app.components.lineage_tables import candidate_rows, draw_rows, use_rows

RULES = {
    "status": "done",
    "replay": "trajectory",
    "order": "lowest",
    "metric": "mean_entropy",
    "join_source": "buffer",
    "store": "successes",
    "store_truncated": False,
    "collect_before_start": False,
    "on_step": 2,
}
BIRTH = {"trajectory": "t", "step": 5, "correct": True, "finish": "stop"}


def event(step: int, name: str, trajectory: str | None = None, bucket: int | None = 3) -> Row:
    return {"step": step, "event": name, "trajectory": trajectory, "bucket_after": bucket}


STORED = event(5, "stored", "t")


@pytest.mark.parametrize(
    ("birth", "rules", "events", "considered", "expected"),
    [
        ({}, {"status": "imported"}, [], 0, ["An import holds rollouts"]),
        ({}, {"replay": "none"}, [], 0, ["This arm replays nothing"]),
        ({}, {"join_source": "expert"}, [], 0, ["from outside"]),
        ({}, {"replay": None, "join_source": None}, [], 0, ["does not tell what this run"]),
        ({"correct": False}, {}, [], 0, ["its answer is wrong"]),
        ({"correct": False}, {"store": "all"}, [], 0, ["does not say why"]),
        ({"correct": None}, {}, [], 0, ["could not judge"]),
        ({"step": 1}, {}, [], 0, ["the log has it from step 2"]),
        ({"step": 1}, {"on_step": None}, [], 0, ["shows no step with it"]),
        ({"step": 1}, {"collect_before_start": True}, [], 0, ["does not say why"]),
        ({}, {}, [event(3, "retired")], 0, ["had retired at step 3"]),
        ({}, {}, [event(3, "retired"), event(4, "returned")], 0, ["does not say why"]),
        ({}, {}, [event(5, "retired")], 0, ["solved (k = K), and the question retired"]),
        ({"finish": "length"}, {}, [], 0, ["cut off"]),
        ({"finish": "length"}, {"store_truncated": True}, [], 0, ["does not say why"]),
        ({}, {}, [event(5, "stored", "other")], 0, ["does not say why"]),
        (
            {},
            {},
            [STORED],
            0,
            ["Stored at step 5, its question in bucket 3", "still stored", "never drawn"],
        ),
        ({}, {}, [STORED], 2, ["Stored", "still stored", "a candidate 2 times; another"]),
        (
            {},
            {},
            [STORED, event(6, "replayed", "t"), event(7, "retired", None, None)],
            1,
            ["Stored", "At step 7 its question was solved", "replayed once"],
        ),
        (
            {},
            {},
            [STORED, event(6, "evicted", "other"), event(8, "evicted", "t")],
            0,
            ["Stored", "Evicted at step 8", "never drawn"],
        ),
        (
            {},
            {},
            [STORED, event(7, "retired"), event(9, "returned"), event(9, "stored", "t")],
            0,
            ["Stored at step 5", "At step 7", "Stored again at step 9", "still", "never drawn"],
        ),
        ({}, {}, [STORED, event(6, "left")], 0, ["Stored", "failed (k = 0)", "never drawn"]),
        ({}, {"replay": "question"}, [STORED], 0, ["Stored", "still", "only asks a stored"]),
    ],
)
def test_the_fate_of_a_trajectory(
    birth: Row, rules: Row, events: list[Row], considered: int, expected: list[str]
) -> None:
    replays = sum(row["event"] == "replayed" for row in events)
    told = fate(BIRTH | birth, RULES | rules, events, considered, replays)
    assert len(told) == len(expected)
    assert all(part in line for part, line in zip(expected, told, strict=True)), told


def test_without_rules_nothing_is_made_up() -> None:
    assert fate(BIRTH, RULES, [], 0, 3) == [
        "It was replayed 3 times; the log does not hold when it was stored."
    ]
    assert fate(BIRTH, None, [], 0, 0)[0].startswith("An import")


@pytest.mark.parametrize(
    ("order", "metric", "words"),
    [
        ("lowest", "mean_entropy", "the lowest mean entropy first"),
        ("highest", "nll", "the highest negative log-probability first"),
        ("random", "nll", "at random"),
        (None, None, "in an order that the log does not tell"),
    ],
)
def test_the_order_of_an_arm_in_words(order: str | None, metric: str | None, words: str) -> None:
    assert order_words({"order": order, "metric": metric}) == words


@pytest.fixture(scope="module")
def most_replayed() -> str:
    """The trajectory of the golden lake that was replayed most often."""
    sources = (row["source"] for row in rows("trajectories") if row["replayed"])
    return Counter(sources).most_common(1)[0][0]


@pytest.fixture(scope="module")
def of_most(golden: duckdb.DuckDBPyConnection, most_replayed: str) -> dict[str, Any]:
    """Its run, its question, and what the queries of the screen say about them."""
    born = next(row for row in rows("trajectories") if row["trajectory"] == most_replayed)
    asked = {"run": [born["run"]], "question": born["question"]}
    return {
        "born": born,
        "candidates": answer(golden, "candidates_of_question", **asked),
        "visits": answer(golden, "question_visits", **asked),
        "lineage": answer(golden, "lineage", trajectory=most_replayed),
    }


def test_draws_against_a_plain_loop(of_most: dict[str, Any], most_replayed: str) -> None:
    born = of_most["born"]
    its = [
        row
        for row in rows("candidates")
        if (row["run"], row["question"]) == (born["run"], born["question"])
    ]
    table = draws(of_most["candidates"], most_replayed)
    groups = by(its, "step", "group")
    assert table.height == len(groups) > 1
    same = known = 0
    for row in table.iter_rows(named=True):
        group = groups[row["step"], row["group"]]
        lowest = {
            name: min(group, key=lambda each, name=name: each[f"{name}_rank"])["source"]
            for name in ("mean_entropy", "released", "nll", "length")
        }
        assert {name: row[name] for name in lowest} == lowest
        assert row["stored"] == len(group)
        assert row["chosen"] == [each["source"] for each in group if each["chosen"]]
        assert row["considered"] == (most_replayed in [each["source"] for each in group])
        assert row["taken"] == (most_replayed in row["chosen"])
        if len(group) > 1:
            known += 1
            same += lowest["released"] == lowest["mean_entropy"]
            assert row["agrees"] == (lowest["released"] == lowest["mean_entropy"])
        else:
            assert row["agrees"] is None
    assert agreement(table) == Agreement(same, known)
    told = draw_rows(table, most_replayed, born["run"])
    assert told["taken"].str.contains("this one").sum() == table["taken"].sum() > 0
    step = telling_draw(table)
    differ = table.filter(~pl.col("agrees"))["step"].to_list()
    assert step == (differ[0] if differ else table.sort("stored")["step"][-1])


def test_uses_against_a_plain_loop(of_most: dict[str, Any], most_replayed: str) -> None:
    table = uses_of(of_most["lineage"], of_most["visits"])
    replays = [row for row in rows("trajectories") if row["source"] == most_replayed]
    visits = {(v["run"], v["step"], v["group"]): v for v in rows("visits")}
    assert table.height == len(replays) > 1
    pairs = []
    for found, row in zip(table.iter_rows(named=True), replays, strict=True):
        visit = visits[row["run"], row["step"], row["group"]]
        assert found["trajectory"] == row["trajectory"]
        assert found["age"] == row["step"] - of_most["born"]["step"]
        for name in ("previous_share", "success_share", "next_step", "next_share"):
            assert found[name] == visit[name]
        if None not in (visit["success_share"], visit["next_share"]):
            pairs.append((visit["success_share"], visit["next_share"]))
    found_change = change(table)
    assert found_change is not None and found_change.uses == len(pairs)
    assert found_change.then == pytest.approx(sum(then for then, _ in pairs) / len(pairs))
    assert found_change.after == pytest.approx(sum(after for _, after in pairs) / len(pairs))
    assert use_rows(table)["k of K"][0] == (
        f"{replays[0]['group_successes']} of {replays[0]['group_size']}"
    )


def test_a_log_without_ranks_says_so() -> None:
    audit = {"released": None, "draws": 1200, "chance": 0.4}
    assert whole_run(audit) == "the log holds no ranks of its 1,200 draws"
    assert whole_run(audit | {"released": 0.5}).startswith("in 50% of 1,200 draws")

    def table(agrees: list[bool | None]) -> pl.DataFrame:
        made = pl.DataFrame({"agrees": agrees}, schema={"agrees": pl.Boolean})
        return made.with_columns(stored=pl.lit(2))

    assert "no ranks" in same(table([None, None]))
    assert "one candidate" in same(table([]))
    assert same(table([True, None, False])) == "the same trajectory in 1 of 2"


def test_a_replay_from_outside_has_no_age(of_most: dict[str, Any]) -> None:
    outside = of_most["lineage"].filter("replayed")
    assert uses_of(outside, of_most["visits"])["age"].null_count() == outside.height
    assert change(uses_of(outside, of_most["visits"].clear())) is None


def test_every_point_of_the_timeline_opens_its_rows(
    of_most: dict[str, Any], most_replayed: str
) -> None:
    candidates, visits = of_most["candidates"], of_most["visits"]
    table = uses_of(of_most["lineage"], visits)
    born = of_most["born"]
    birth = (born["step"], born["mean_entropy"])
    plot = lineage_timeline(
        most_replayed,
        "exgrpo",
        candidates,
        table,
        visits,
        birth,
        16,
    )
    traces = {trace.name: trace for trace in plot.data}
    chosen = candidates.filter(pl.col("chosen"))
    assert list(traces["taken"].x) == chosen["step"].to_list()
    assert [each["trajectory"] for each in traces["taken"].customdata] == chosen["source"].to_list()
    ratios = traces["ratio: mean, least to greatest"]
    known = table.drop_nulls(["ratio_mean"])
    assert list(ratios.y) == known["ratio_mean"].to_list()
    ends = [mean + up for mean, up in zip(ratios.y, ratios.error_y.array, strict=True)]
    assert ends == pytest.approx(known["ratio_max"].to_list())
    assert all(behind for _, _, behind in clickable(plot))
    shares = next(trace for name, trace in traces.items() if name.startswith("fresh rollouts"))
    filled = [
        step
        for step, symbol in zip(shares.x, shares.marker.symbol, strict=True)
        if symbol == "diamond"
    ]
    assert filled == sorted(set(table["step"]))


def test_a_hostile_id_is_no_markup_in_a_figure(of_most: dict[str, Any]) -> None:
    evil = of_most["candidates"].with_columns(source=pl.lit("<a href='x'>"), run=pl.lit("r"))
    nothing = uses_of(of_most["lineage"], of_most["visits"]).clear()
    plot = lineage_timeline("t", "x", evil, nothing, of_most["visits"].clear(), None, 16)
    assert "<a href" not in str([trace.hovertext for trace in plot.data])
    assert len({trace.yaxis for trace in plot.data}) == 1  # one strip: no uses, no visits


def test_candidates_show_value_and_rank(of_most: dict[str, Any], most_replayed: str) -> None:
    run = of_most["born"]["run"]
    first = of_most["candidates"].head(1)
    row = candidate_rows(first, first["source"][0], run).row(0, named=True)
    assert row["trajectory"] == "● this one"
    assert row["mean entropy"] == (
        f"{first['mean_entropy'][0]:.4f}  #{first['mean_entropy_rank'][0] + 1}"
    )
    unranked = first.with_columns(nll_rank=pl.lit(None, pl.Int64), nll=pl.lit(0.5))
    row = candidate_rows(unranked, "another", run).row(0, named=True)
    assert row["trajectory"] == first["source"][0].removeprefix(f"{run}:")
    assert row["NLL"] == "0.5000"


def test_without_an_address_the_most_replayed_can_be_chosen(
    golden_path: Path, monkeypatch: pytest.MonkeyPatch, most_replayed: str
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    test = open_screen("lineage", study="golden", arms=["exgrpo", "highest_entropy"])
    table = test.dataframe[0].value
    assert table["replays"].is_monotonic_decreasing
    assert most_replayed in table["trajectory"].to_list()[:3]
    test = open_screen("lineage", study="imports")
    assert "No run of this study replayed" in test.info[0].value


def test_the_lineage_of_a_trajectory_and_of_a_replay_of_it(
    golden_path: Path, monkeypatch: pytest.MonkeyPatch, most_replayed: str, of_most: dict[str, Any]
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    replay = of_most["lineage"].filter("replayed")["trajectory"][-1]
    step = of_most["candidates"]["step"][-1]
    from_birth = open_screen("lineage", trajectory=most_replayed, step=str(step))
    from_replay = open_screen("lineage", trajectory=replay, step=str(step))
    for test in (from_birth, from_replay):
        said = texts(test)
        replays = of_most["lineage"].filter("replayed").height
        assert f"replayed {replays} times" in said
        assert "no causal estimate" in said
        assert "At all draws of its question in this run" in said
        assert f"The candidates at step {step}," in said
        assert most_replayed in [code.value for code in test.code]
        assert of_most["born"]["response"] in [code.value for code in test.code]
        used, drawn, candidates = (item.value for item in test.dataframe)
        assert len(used) == replays
        assert len(drawn) == of_most["candidates"]["step"].n_unique()
        assert len(candidates) == of_most["candidates"].filter(pl.col("step") == step).height
    assert "names its replay" in texts(from_replay)
    assert "names its replay" not in texts(from_birth)
    from_birth.button(key="lineage.back").click().run()
    assert "trajectory" not in from_birth.query_params


def test_what_was_never_replayed_says_why(results: Path, analysed: DemoResults) -> None:
    logged = analysed.rows["trajectories"]
    on_policy = next(row for row in logged if row["run"].startswith("on_policy"))
    test = open_screen("lineage", trajectory=on_policy["trajectory"])
    assert "This arm replays nothing" in texts(test)
    assert len(test.dataframe) == 0
    wrong = next(
        row for row in logged if row["run"].startswith("exgrpo") and row["correct"] is False
    )
    assert "its answer is wrong" in texts(open_screen("lineage", trajectory=wrong["trajectory"]))


def test_the_made_up_study_without_ranks_has_a_lineage(
    results: Path, analysed: DemoResults
) -> None:
    replay = next(row for row in analysed.rows["trajectories"] if row["replayed"])
    test = open_screen("lineage", trajectory=replay["trajectory"], study=STUDY, step="999")
    assert "The candidates at step" in texts(test)


def test_an_import_and_an_unknown_trajectory(
    golden_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    imported = next(row for row in rows("trajectories") if row["run"] == "import-riddles")
    test = open_screen("lineage", trajectory=imported["trajectory"])
    assert "An import holds rollouts" in texts(test)
    test = open_screen("lineage", trajectory="no <b>such</b>", step="x")
    assert "not hold" in test.warning[0].value
    assert "no <b>such</b>" in [code.value for code in test.code]
