"""What training does with verdicts: format failures, golds and graders that fail, in real runs."""

import dataclasses
from pathlib import Path

import polars as pl
import pytest
from watched import REPLAY, little, watched_run

from analysis.alarms import alarms
from analysis.live import read_log
from exgrpo.grading import Answer, Grader, Verdict


def test_o09_responses_without_think_tags_are_counted_and_warned_of(
    able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """Right boxes earn nothing without the tag, and the log says that it is the form."""
    run = watched_run(tmp_path, able_folder, little(grading={"think": True}), grader, 0.05)
    assert run.rows.height == 4 * 3 * 8
    assert (run.rows["correct"] == False).all()  # noqa: E712
    assert not run.rows["format_ok"].any()
    assert (run.rows["advantage"] == 0).all()
    steps = run.table("steps")
    assert (steps["unanswered"] == 24).all() and (steps["ungraded"] == 0).all()
    assert (steps["reward"] == 0).all()
    found = {alarm.name: alarm.sentence for alarm in alarms(read_log(tmp_path).steps)}
    assert "96 of 96 graded rollouts had no answer in the form asked for" in found["no answers"]


def test_wrong_answers_are_no_format_failures(
    able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    run = watched_run(tmp_path, able_folder, little(), grader, 0.05)
    fresh = run.rows.filter(~pl.col("replayed"))
    counted = fresh.group_by("step", maintain_order=True).agg((~pl.col("format_ok")).sum())
    assert run.table("steps")["unanswered"].to_list() == counted["format_ok"].to_list()
    wrong = fresh.filter(pl.col("correct") == False)  # noqa: E712
    assert wrong["format_ok"].any()
    assert not any(alarm.name == "no answers" for alarm in alarms(read_log(tmp_path).steps))


@pytest.mark.parametrize("replay", [False, True])
def test_trap_50_what_could_not_be_graded_leaves_its_group(
    replay: bool, able_folder: str, grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken for a 0 it would lower the group's mean, and raise every other's advantage."""
    grade_all = Grader.grade_all

    def fail_on_every_third(self: Grader, items: list[Answer]) -> list[Verdict]:
        return [
            verdict if index % 3 else dataclasses.replace(verdict, correct=None)
            for index, verdict in enumerate(grade_all(self, items))
        ]

    monkeypatch.setattr(Grader, "grade_all", fail_on_every_third)
    sections = {"experience": REPLAY} if replay else {}
    run = watched_run(tmp_path, able_folder, little(**sections), grader, 0.05)
    null = run.rows.filter(pl.col("correct").is_null())
    assert null.height and (null["advantage"] == 0).all()
    unlike = 0
    for _, group in run.rows.group_by("step", "group"):
        graded = group.drop_nulls("correct")
        rewards = graded["correct"].cast(pl.Float64)
        gaps = (graded["advantage"] - (rewards - rewards.mean())).abs()
        assert gaps.max() < 1e-6
        unlike += rewards.n_unique() > 1
    assert unlike
    by_step = run.rows.group_by("step", maintain_order=True).agg(pl.col("correct").null_count())
    assert run.table("steps")["ungraded"].to_list() == by_step["correct"].to_list()
    fresh = run.rows.filter(~pl.col("replayed")).group_by("step", maintain_order=True)
    share = fresh.agg(pl.col("correct").mean())["correct"]
    assert run.table("steps")["reward"].to_list() == pytest.approx(share.to_list())
