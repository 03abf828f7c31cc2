"""The relatives' own parts in real trainings, and resume where an arm has state of its own."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from safetensors.torch import load_file
from test_trainer import read
from watched import (
    REPLAY,
    Go,
    changed,
    little,
    little_arms,
    train,
    trains_in,
)

from exgrpo import checkpoint
from exgrpo.grading import Grader
from exgrpo.policy import load_policy
from exgrpo.tables.manifest import live_parts

RECORDED = {"count_replayed": False, "retire": False}


@pytest.fixture
def go(able_folder: str, grader: Grader, tmp_path: Path) -> Go:
    return trains_in(tmp_path, able_folder, grader)


# ---- DAPO's dynamic sampling ----


@pytest.mark.parametrize(
    "wanted, difficulty",
    [(2, None), (2, "easy"), (2, "medium"), (2, "hard"), ("all", None)],
)
def test_fresh_questions_are_asked_until_enough_groups_have_signal(
    go: Go, wanted: int | str, difficulty: str | None
) -> None:
    """So many groups of the difficulty a step, of at most three rounds of three questions."""
    count = 3 if wanted == "all" else wanted
    run = go(
        batch={"learning_groups": wanted, "max_rounds": 3},
        objective={"difficulty": difficulty},
        questions={"train": 16},
        training={"steps": 12},
    )
    groups = run.rows.group_by(["step", "group"], maintain_order=True).first()
    for step in run.table("steps").iter_rows(named=True):
        of_step = groups.filter(step=step["step"])
        fits = [
            bucket is not None and difficulty in (None, found)
            for bucket, found in of_step.select("bucket", "difficulty").rows()
        ]
        rounds = [fits[:asked] for asked in (3, 6, 9)]
        enough = next((seen for seen in rounds if sum(seen) >= count), rounds[-1])
        assert len(fits) == len(enough), "asked until there were enough, or for three rounds"
        learning = [index for index, each in enumerate(fits) if each][:count]
        trained = of_step.filter("trained")["group"].to_list()
        assert trained == learning
        assert step["updated_groups"] == len(learning)
        assert step["groups"] == len(fits)
        assert (
            step["trained_tokens"] == run.rows.filter("trained", step=step["step"])["length"].sum()
        )
        assert (run.rows.filter(~pl.col("trained"), step=step["step"])["advantage"] == 0).all()
    assert (run.rows["trained"].sum() > 0) and not run.rows["trained"].all()


def test_rounds_of_one_step_are_of_different_draws(go: Go) -> None:
    run = go(batch={"learning_groups": 9, "max_rounds": 4}, training={"steps": 1})
    assert run.rows["group"].n_unique() == 12
    twice = run.rows.group_by("question", maintain_order=True).agg(pl.col("response"))
    assert twice.height == 4
    for responses in twice["response"]:
        assert responses[:8].to_list() != responses[8:16].to_list()


def test_a_step_without_any_signal_updates_nothing(go: Go) -> None:
    """Answers of two tokens are never right: no group is trained on, and none is kept waiting."""
    run = go(
        rollout={"max_new_tokens": 2},
        batch={"learning_groups": 2, "max_rounds": 2},
        training={"steps": 2},
    )
    steps = run.table("steps")
    assert not run.rows["trained"].any()
    assert run.updates == []
    assert (steps["groups"] == 6).all()
    for column in ("loss", "grad_norm", "clipped_share"):
        assert steps[column].null_count() == 2
    assert (steps["trained_tokens"] == 0).all()


# ---- Masked GRPO ----


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_masked_groups_have_no_advantage_and_updated_ones_are_counted(
    go: Go, difficulty: str
) -> None:
    run = go(
        objective={"difficulty": difficulty, "entropy_bonus": 0.0},
        training={"steps": 6},
        batch={"questions": 4},
    )
    inside = pl.col("difficulty") == difficulty
    assert (run.rows.filter(~inside.fill_null(False))["advantage"] == 0).all()
    assert (run.rows.filter(inside)["advantage"] != 0).all()
    masked = run.rows.filter(~inside.fill_null(False), pl.col("bucket").is_not_null())
    assert masked.height
    for step in run.table("steps").iter_rows(named=True):
        rows = run.rows.filter(inside, step=step["step"])
        assert step["updated_groups"] == rows["group"].n_unique()
        assert (step["grad_norm"] > 0) is bool(rows.height)


# ---- ARPO ----


def test_a_stored_success_joins_where_the_whole_group_failed(go: Go) -> None:
    run = go(
        experience={**REPLAY, "order": "recent"},
        join={"visit": "fresh", "when": "all_failed", "count": 2},
        buffer=RECORDED,
        rollout={"group_size": 3},
        batch={"questions": 4},
        training={"steps": 10},
    )
    joined = 0
    for (step, _), group in run.rows.group_by(["step", "group"], maintain_order=True):
        fresh, stored = (group.filter(pl.col("replayed") == each) for each in (False, True))
        assert fresh.height == 3, "all rollouts stay in the log"
        failed = not fresh["correct"].any()
        earlier = run.table("experience").filter(
            pl.col("step") < step, question=group["question"][0], event="stored"
        )
        assert stored.height == (min(2, earlier.height) if failed else 0)
        if stored.height:
            joined += 1
            assert (
                fresh["trained"].to_list() == [True] * (3 - stored.height) + [False] * stored.height
            )
            assert stored["slot"].to_list() == [3 + place for place in range(stored.height)]
            newest = earlier.sort("step", descending=True, maintain_order=True)
            born = run.rows.filter(pl.col("trajectory").is_in(stored["source"].to_list()))
            assert born["step"].max() == newest["step"][0]
            used = group.filter("trained")
            reward = used["correct"].cast(pl.Float64)
            assert (used["advantage"] - (reward - reward.mean())).abs().max() < 1e-9
            assert (group["group_successes"] == 0).all(), "k is that of the rollouts"
        else:
            assert group["trained"].all()
    assert joined > 2
    steps = run.table("steps")
    assert steps["replay_groups"].sum() == joined
    replayed = run.table("experience").filter(event="replayed")
    assert replayed.height == run.rows["replayed"].sum()


# ---- RePO ----


def test_stored_trajectories_join_beside_every_fresh_group(go: Go) -> None:
    """Failures too; fresh and stored are two groups, and k counts the fresh ones."""
    run = go(
        experience={**REPLAY, "order": "variance"},
        join={"visit": "fresh", "count": 4, "place": "beside"},
        buffer={**RECORDED, "store": "all", "duplicates": "kept", "per_question": 6},
        objective={"baseline": "apart", "shaping": "none"},
    )
    assert not run.rows["experiential"].any()
    assert set(run.rows.filter("replayed")["correct"]) == {True, False}
    sizes = set()
    for _, group in run.rows.group_by(["step", "group"], maintain_order=True):
        fresh, stored = (group.filter(pl.col("replayed") == each) for each in (False, True))
        assert fresh.height == 8
        assert (group["group_size"] == 8).all()
        sizes.add(stored.height)
        for part in (fresh, stored):
            reward = part["correct"].cast(pl.Float64)
            if part.height:
                assert (part["advantage"] - (reward - reward.mean())).abs().max() < 1e-9
        assert stored["slot"].to_list() == list(range(stored.height))
    assert sizes == {0, 4}


# ---- ReMix ----


def test_reincarnation_ends_replay_and_takes_the_policy_for_reference(go: Go) -> None:
    run = go(
        experience={**REPLAY, "order": "random"},
        buffer={"store": "all", "duplicates": "kept", "retire": False},
        join={"count": 8},
        objective={"kl_reference": 0.05, "shaping": "none"},
        training={"steps": 6, "reincarnate_at": 0.5},
    )
    replayed = run.rows.group_by("step").agg(pl.col("replayed").any()).sort("step")["replayed"]
    assert replayed[1:3].all()
    assert not replayed[3:].any()
    assert run.table("steps")["replay_on"].to_list() == [True] * 3 + [False] * 3
    assert (run.rows.filter(pl.col("step") > 3)["experiential"]).not_().all()
    later = run.table("experience").filter(pl.col("step") > 3)
    assert later.height == 0, "nothing is collected any more"


def test_reincarnation_starts_the_optimiser_afresh(
    able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    of = little(
        experience=REPLAY,
        objective={"kl_reference": 0.05},
        optimiser={"learning_rate": 1e-3},
        training={"steps": 3, "checkpoint_every": 1, "reincarnate_at": 0.6},
    )
    saved: list[dict[str, Any]] = []

    def load(metrics: dict[str, Any]) -> None:
        if state := checkpoint.load_latest(tmp_path / "checkpoints"):
            saved.append(state)

    train(tmp_path, able_folder, of, grader, load)
    before, after = saved  # of steps 1 and 2, as they were one step later
    assert before["optimiser"] and not before["progress"]["reincarnated"]
    assert not after["optimiser"] and after["progress"]["reincarnated"]
    base = load_policy(able_folder, "float64")[0].state_dict()
    for name, weight in base.items():
        assert torch.equal(before["reference"][name], weight)
        assert torch.equal(after["reference"][name], after["model"][name])
    assert any(not torch.equal(after["model"][name], weight) for name, weight in base.items())


def test_a_whole_group_may_be_stored_trajectories(go: Go) -> None:
    run = go(
        experience={**REPLAY, "share": 0.7}, join={"count": 8},
        buffer={"store": "all", "duplicates": "kept", "retire": False},
    )  # fmt: skip
    drawn = (
        run.rows.filter("experiential").group_by(["step", "group"]).agg(pl.col("replayed").sum())
    )
    assert drawn["replayed"].max() == 8
    assert run.rows.group_by(["step", "group"]).len()["len"].unique().to_list() == [8]


# ---- resume ----

# Arm -> what makes its state matter in a few steps.
RESUMED: dict[str, dict[str, dict[str, Any]]] = {
    "remix": {"training": {"reincarnate_at": 0.5}},
    "retired_review": {"rollout": {"group_size": 3}, "buffer": {"review_share": 0.5}},
    "exgrpo_released": {
        "questions": {"train": 60}, "rollout": {"group_size": 2}, "batch": {"questions": 16},
    },
    "no_retirement": {"buffer": {"capacity": 6, "per_question": 3}},
    "exgrpo_max_age": {"experience": {"start": 0.5, "latch": False}},
    "dapo_sampling": {},
    "repo_variance": {},
    "arpo": {"rollout": {"group_size": 3}},
    "rlep": {},
}  # fmt: skip
STEPS, KILLED = 6, 5


@pytest.mark.parametrize("arm", RESUMED)
def test_a_resume_is_bit_equal_to_no_interruption(
    arm: str, able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """With AdamW. A kill in step 5 leaves the folder as it is then: it is copied at that time."""
    (tmp_path / "config").mkdir()
    of = changed(little_arms(tmp_path / "config")[arm], **RESUMED[arm])
    of = changed(
        of,
        training={"steps": STEPS, "checkpoint_every": 2, "dtype": "float32"},
        optimiser={"learning_rate": 1e-3},
        evaluation={"every": 3, "max_new_tokens": 20},
    )
    needed: dict[str, Any] = {}
    if of.join.pool:
        train(tmp_path / "pool", able_folder, little(training={"steps": 2}), grader)
        needed["pool_log"] = tmp_path / "pool" / "log"
    whole, killed = tmp_path / "whole", tmp_path / "killed"

    def kill(metrics: dict[str, Any]) -> None:
        if metrics["step"] == KILLED:
            shutil.copytree(whole, killed)

    train(whole, able_folder, of, grader, kill, **needed)
    tables = {part.table for part in live_parts(whole / "log")} - {"vocabulary"}
    assert {"trajectories", "tokens", "steps", "evaluations"} <= tables
    seen: list[dict[str, Any]] = []
    train(killed, able_folder, of, grader, seen.append, **needed)
    assert [row["step"] for row in seen] == [5, 6]
    for table in tables:
        assert_frame_equal(read(killed, table), read(whole, table), check_exact=True)
    for model in ("final", "best"):
        left, right = (load_file(each / model / "model.safetensors") for each in (killed, whole))
        assert all(torch.equal(left[key], right[key]) for key in left)
