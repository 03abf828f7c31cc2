"""The screen Live: progress, curves that can be clicked, and what the model writes."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lake_fixture import STEPS, STUDY, DemoResults
from screens import open_screen, texts
from test_status import begin, log_steps

from analysis import live_logs
from analysis.live import PlannedRun, read_log, run_status
from analysis.live_logs import MOST_RUNS, group_of, groups_of, latest_log, latest_status
from app.components.live_curves import FIRST, POINTS, clicked, lines_of, live_curves
from app.components.live_rollouts import heading
from exgrpo.records import Recorder


def steps(count: int, **columns: Any) -> pl.DataFrame:
    schema = dict.fromkeys(("reward", "entropy", "length", "ratio_mean_fresh"), pl.Float64)
    schema |= dict.fromkeys(("ratio_mean_replayed", "clipped_share"), pl.Float64)
    schema |= {"step": pl.Int64, "buffer_questions": pl.Int64}
    rows = [{"step": step, "reward": 0.5, **columns} for step in range(1, count + 1)]
    return pl.DataFrame(rows, schema=schema)


def planned(run: str, arm: str = "a") -> PlannedRun:
    return PlannedRun("s", run, arm, 40, Path(run))


def test_a_figure_for_each_column_that_is_logged() -> None:
    found = live_curves([(planned("r"), steps(3, clipped_share=0.1))])
    assert list(found) == ["reward", "clipped_share"]
    assert live_curves([(planned("r"), steps(0))]) == {}


def test_a_long_line_is_thinned_and_keeps_its_newest_point() -> None:
    line = live_curves([(planned("r"), steps(1001))])["reward"].data[0]
    assert len(line.x) <= POINTS and line.x[-1] == 1001
    assert list(line.x) == sorted(line.x)


def test_curves_are_chosen_in_the_address(results: Path) -> None:
    test = open_screen("live")
    assert test.pills(key="Live.curves").value == list(FIRST)
    test.pills(key="Live.curves").set_value(["clipped_share"]).run()
    assert test.query_params["curves"] == "clipped_share" and not test.exception
    nonsense = open_screen("live", curves="<b>")
    assert nonsense.pills(key="Live.curves").value == list(FIRST)


def test_a_click_names_run_and_step() -> None:
    figure = live_curves([(planned("one"), steps(2)), (planned("two"), steps(2))])["reward"]
    assert lines_of(figure) == ["one", "two"]
    assert clicked([{"curve_number": 1, "x": 2}], lines_of(figure)) == ("two", 2)
    assert clicked([], ["one"]) is None
    assert clicked([{"curve_number": 5, "x": 2}, {"x": 1}], ["one"]) is None


def test_names_are_no_markup_in_a_figure() -> None:
    figure = live_curves([(planned("<b>r</b>", "<i>a</i>"), steps(2))])["reward"]
    (line,) = figure.data
    assert line.name == "&lt;i&gt;a&lt;/i&gt;" and "&lt;b&gt;r" in line.hovertemplate
    assert lines_of(figure) == ["<b>r</b>"]


def test_a_log_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    run = begin(tmp_path / "s" / "runs" / "r", steps=5)
    first = latest_log(run.folder)
    assert first.steps.height == 5 and latest_log(run.folder) is first
    log_steps(run.folder, 8, resumed_from=5)
    newer = latest_log(run.folder)
    assert newer.steps["step"].to_list() == list(range(1, 9))
    (run.folder / "done.json").write_text("{}")
    done = latest_log(run.folder)
    assert done is not newer and done.marks is None
    assert latest_log(tmp_path / "nothing").steps.is_empty()


def test_readers_at_once_keep_no_more_logs_than_said(tmp_path: Path) -> None:
    run = begin(tmp_path / "s" / "runs" / "r", steps=2)
    folders = [tmp_path / f"r{number}" for number in range(MOST_RUNS + 9)]
    for folder in folders:
        folder.symlink_to(run.folder)
    with ThreadPoolExecutor(8) as readers:
        assert all(log.steps.height == 2 for log in readers.map(latest_log, folders))
    assert latest_log(folders[-1]) is latest_log(folders[-1])
    assert len(live_logs._logs) <= MOST_RUNS


def test_a_problem_is_looked_at_anew(tmp_path: Path) -> None:
    run = begin(tmp_path / "s" / "runs" / "r", steps=5)
    part = next((run.folder / "log" / "steps").glob("*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(b"torn")
    assert "corrupt" in str(latest_log(run.folder).problem)
    assert groups_of(run.folder).is_empty()
    part.write_bytes(whole)
    assert latest_log(run.folder).problem is None


def test_the_status_of_a_run_that_is_done_is_kept_but_for_its_age(tmp_path: Path) -> None:
    run = begin(tmp_path / "s" / "runs" / "r", steps=40)
    (run.folder / "checkpoints").mkdir()
    (run.folder / "checkpoints" / "step-00000040.pt").write_bytes(b"")
    os.utime(run.folder / "checkpoints" / "step-00000040.pt", (1000, 1000))
    (run.folder / "done.json").write_text("{}")
    log = latest_log(run.folder)
    assert latest_status(run, log, 1010) == run_status(run, read_log(run.folder), 1010)
    later = latest_status(run, log, 1030)
    assert (later.state, later.checkpoint_age, later.step) == ("done", 30, 40)


def test_the_newest_group_with_its_question(demo: DemoResults) -> None:
    run = next(iter(demo.study.runs))
    folder = demo.results / STUDY / "runs" / run
    logged = [r for r in demo.rows["trajectories"] if r["run"] == run and r["step"] == STEPS]
    groups = groups_of(folder)
    assert set(groups["step"]) == {STEPS}
    assert groups.select("group", "right", "size").rows() == [
        (
            number,
            next(r["group_successes"] for r in logged if r["group"] == number),
            next(r["group_size"] for r in logged if r["group"] == number),
        )
        for number in sorted({row["group"] for row in logged})
    ]
    found = group_of(folder, STEPS, 2)
    assert found is not None
    expected = sorted((r for r in logged if r["group"] == 2), key=lambda row: row["slot"])
    assert found.rows["response"].to_list() == [row["response"] for row in expected]
    question = next(r for r in demo.rows["questions"] if r["question"] == expected[0]["question"])
    assert (found.text, found.gold) == (question["text"], question["gold"])
    assert set(groups_of(folder, 2)["step"]) == {2}
    assert groups_of(folder, 99).is_empty() and group_of(folder, 99, 0) is None


def test_k_of_k_counts_as_the_bucket_does(tmp_path: Path) -> None:
    of_group = {"run": "r", "step": 3, "group": 0, "group_successes": 1, "group_size": 2}
    slots = [(True, False), (False, False), (None, False), (True, True)]  # correct, replayed
    rows = [
        of_group | {"trajectory": str(slot), "slot": slot, "correct": correct, "replayed": replayed}
        for slot, (correct, replayed) in enumerate(slots)
    ]
    recorder = Recorder(tmp_path / "r" / "log", -1)
    recorder.add("trajectories", rows)
    recorder.flush(1, 3)
    assert groups_of(tmp_path / "r").select("right", "size").rows() == [(1, 2)]


def test_a_rollout_has_a_line_above_it() -> None:
    row = {
        "slot": 1, "correct": False, "replayed": True, "length": 5, "finish": "length",
        "mean_entropy": 0.25,
    }  # fmt: skip
    said = "slot 1 · ✗ wrong · ↻ replayed · 5 tokens, cut off · entropy 0.250 nat/token"
    assert heading(row) == said
    unknown = row | {"correct": None, "replayed": None, "length": None, "mean_entropy": None}
    assert heading(unknown) == "slot 1 · ? ungraded · fresh"


def test_a_finished_study_shows_progress_and_the_newest_rollouts(results: Path) -> None:
    test = open_screen("live")
    said = texts(test)
    assert "runs done**" in said and "this study is trained" in said
    table = test.dataframe[0].value
    assert set(table["state"]) == {"done"} and set(table["progress"]) == {1.0}
    assert "What the model writes" in [item.value for item in test.subheader]
    assert test.selectbox(key="Live.group").label == f"Group of step {STEPS}"
    assert len(test.code) == 2 + 4  # the question, its gold answer, four rollouts


def test_run_step_and_group_are_in_the_address(results: Path, analysed: DemoResults) -> None:
    run = list(analysed.study.runs)[-1]
    rows = [
        row
        for row in analysed.rows["trajectories"]
        if (row["run"], row["step"], row["group"]) == (run, 3, 1)
    ]
    test = open_screen("live", run=run, step="3", group="1")
    shown = [item.value for item in test.code]
    assert [row["response"] for row in sorted(rows, key=lambda row: row["slot"])] == shown[2:]
    test.selectbox(key="Live.group").set_value(2).run()
    assert test.query_params["group"] == "2" and test.query_params["step"] == "3"
    other = next(iter(analysed.study.runs))
    test.selectbox(key="Live.run").set_value(other).run()
    assert test.query_params["run"] == other and "step" not in test.query_params


def test_nonsense_in_the_address_is_said(results: Path) -> None:
    test = open_screen("live", run="<b>", step="77", group="-3")
    assert "nothing is logged here by the name" in test.warning[0].value
    assert "Step 77 is not in the log" in test.info[0].value


def test_a_log_without_rollouts_and_one_that_is_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    begin(tmp_path / "s" / "runs" / "fine", steps=5)
    torn = begin(tmp_path / "s" / "runs" / "torn", steps=5)
    next((torn.folder / "log" / "steps").glob("*.parquet")).write_bytes(b"torn")
    test = open_screen("live")
    assert "No rollout is logged yet" in texts(test)
    assert "corrupt" in test.code[0].value
    assert "none is being trained now" in texts(test)
    (tmp_path / "s" / "runs" / "torn" / "settings.json").write_text(json.dumps({"study": "s"}))
    assert "its settings name no study" in open_screen("live").code[0].value
