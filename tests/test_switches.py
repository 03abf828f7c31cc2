"""What the other settings do, each in a real training: start, choice, update, and what is kept."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pytest
import torch
from slow_step import distance, forward_alone, norm
from watched import REPLAY, Go, WatchedRun, little, trains_in, watched_run

from exgrpo import questions
from exgrpo.grading import Grader
from exgrpo.policy import load_policy
from exgrpo.questions import Question
from exgrpo.selection import METRICS


@pytest.fixture
def go(able_folder: str, grader: Grader, tmp_path: Path) -> Go:
    return trains_in(tmp_path, able_folder, grader)


# ---- when replay starts ----


@pytest.mark.parametrize("latch", [True, False])
def test_the_start_is_the_first_batch_above_the_threshold_latched_or_not(
    go: Go, latch: bool
) -> None:
    run = go(
        rollout={"group_size": 3},
        experience={"replay": "trajectory", "start": 0.5, "latch": latch},
        training={"steps": 12},
    )
    steps = run.table("steps")
    above = [reward > 0.5 for reward in steps["reward"]]
    before = [above[:step] for step in range(12)]
    expected = [any(seen) if latch else seen[-1:] == [True] for seen in before]
    assert steps["replay_on"].to_list() == expected
    assert expected != [any(seen) if not latch else seen[-1:] == [True] for seen in before]


def test_the_start_decides_which_clip_is_on(go: Go) -> None:
    for before, after, share in (("fresh", "none", 1.0), ("none", "fresh", 0.0)):
        run = go(
            learning_rate=0.3,
            batch={"passes": 2},
            experience={"replay": "none", "start": share},
            objective={"clip_before_start": before, "clip_after_start": after},
        )
        clipped = run.table("steps")["clipped_share"]
        # started before step 2 with share 0, never with share 1
        assert (clipped[1:] > 0).any()
        assert (clipped[0] > 0) is (before == "fresh")


# ---- which trajectory is chosen ----


KEPT = {"duplicates": "kept", "store": "all", "retire": False}


@pytest.fixture(scope="module")
def chosen_by(
    tmp_path_factory: pytest.TempPathFactory, able_folder: str, grader: Grader
) -> Callable[[str, str], WatchedRun]:
    """A run of six steps that chooses by an order and a metric, failures stored too."""

    def chosen(order: str, metric: str) -> WatchedRun:
        folder = tmp_path_factory.mktemp(order)
        settings = little(
            training={"steps": 6},
            buffer=KEPT,
            experience={**REPLAY, "order": order, "metric": metric, "share": 0.7},
            join={"count": 2},
        )
        return watched_run(folder, able_folder, settings, grader, 0.05)

    return chosen


@pytest.mark.parametrize(
    "order, metric",
    [*(("lowest", metric) for metric in METRICS), ("highest", "mean_entropy"), ("highest", "nll")],
)
def test_the_chosen_ones_are_those_of_the_metric_s_own_rank(
    order: str, metric: str, chosen_by: Callable[[str, str], WatchedRun]
) -> None:
    run = chosen_by(order, metric)
    candidates = run.table("candidates")
    assert candidates.group_by(["step", "group"]).len()["len"].min() > 3
    for _, group in candidates.group_by(["step", "group"]):
        ranks = group.sort(f"{metric}_rank")
        assert ranks[f"{metric}_rank"].to_list() == list(range(group.height))
        assert ranks[metric].is_sorted()
        ends = ranks.head(2) if order == "lowest" else ranks.tail(2)
        chosen = group.filter("chosen")
        assert chosen.height == 2
        assert sorted(chosen[metric]) == sorted(ends[metric])
        assert sorted(group.sort("rank")["chosen"].head(2)) == [True, True]
        if order == "lowest" and not ranks[metric].is_duplicated().any():
            assert group.sort("rank")["source"].to_list() == ranks["source"].to_list()
    replayed = run.rows.filter("replayed")
    assert sorted(replayed["source"]) == sorted(candidates.filter("chosen")["source"])


def test_metrics_of_candidates_are_those_of_the_policy_now(
    chosen_by: Callable[[str, str], WatchedRun],
) -> None:
    """Each scored alone with the weights before its step's first update."""
    run = chosen_by("lowest", "mean_entropy")
    model, tokenizer = load_policy(run.base, "float64")
    asked = {each.id: each.text for each in questions.make_splits(run.settings.questions)["train"]}
    updates = run.settings.batch.updates
    tokens = dict(run.rows.select("trajectory", "token_ids").rows())
    born = dict(run.rows.select("trajectory", "mean_entropy").rows())
    for step in (2, 3):
        model.load_state_dict(run.updates[(step - 1) * updates].weights)
        for row in run.table("candidates").filter(step=step).iter_rows(named=True):
            ids = {
                "prompt_ids": tokenizer(asked[row["question"]]).input_ids,
                "token_ids": tokens[row["source"]],
            }
            with torch.no_grad():
                log_p, entropies = forward_alone(model, ids)
            assert row["mean_entropy"] == pytest.approx(float(entropies.mean()), rel=1e-9)
            assert row["summed_entropy"] == pytest.approx(float(entropies.sum()), rel=1e-9)
            assert row["nll"] == pytest.approx(-float(log_p.mean()), rel=1e-9)
            assert row["length"] == len(log_p)
            assert row["birth_entropy"] == pytest.approx(born[row["source"]], rel=1e-9)


@pytest.mark.parametrize("order", ["recent", "reward", "variance", "random"])
def test_orders_without_a_metric(order: str, chosen_by: Callable[[str, str], WatchedRun]) -> None:
    candidates = chosen_by(order, "mean_entropy").table("candidates").sort("step", "group", "rank")
    shuffled = 0
    for _, group in candidates.group_by(["step", "group"], maintain_order=True):
        births, right = group["birth_step"].to_list(), group["correct"].to_list()
        newest = sorted(births, reverse=True)
        if order == "recent":
            assert births == newest
        elif order == "reward":
            assert right == sorted(right, reverse=True)
            for verdict in (True, False):
                apart = group.filter(correct=verdict)["birth_step"].to_list()
                assert apart == sorted(apart, reverse=True)
        elif order == "variance" and len(set(right)) == 2:
            turns = 2 * min(right.count(True), right.count(False))
            assert right[:turns] == [True, False] * (turns // 2)
        shuffled += births != newest and births != newest[::-1]
    if order == "random":
        assert shuffled


def test_buffer_share_bounds_what_a_step_draws(go: Go) -> None:
    run = go(
        questions={"train": 12},
        batch={"questions": 6},
        training={"steps": 8},
        experience={**REPLAY, "share": 0.7, "buffer_share": 0.4},
    )
    steps = run.table("steps")
    buffered = [0, *steps["buffer_questions"]][:-1]
    assert steps["experiential_groups"].to_list() == [min(4, int(0.4 * n)) for n in buffered]
    assert steps["experiential_groups"].n_unique() > 2


def test_random_is_not_always_the_same_place(go: Go) -> None:
    run = go(training={"steps": 8}, buffer=KEPT, experience={**REPLAY, "order": "random"})
    chosen = run.table("candidates").filter("chosen")
    assert chosen["mean_entropy_rank"].n_unique() > 2


# ---- the update ----


def test_passes_and_updates(go: Go) -> None:
    run = go(batch={"passes": 3, "updates": 3}, training={"steps": 2})
    assert len(run.updates) == 2 * 3 * 3
    # In the last pass the policy has moved for every group, also for the first.
    assert (run.rows.filter(group=0)["ratio_max"] - 1).abs().min() > 1e-6


def test_gradient_clip(go: Go) -> None:
    free = go(learning_rate=0.0, optimiser={"grad_clip": None})
    norms = [norm(update.gradient) for update in free.updates]
    clip = median(norms)
    assert max(norms) > clip > min(norms)
    bound = go(learning_rate=0.0, optimiser={"grad_clip": clip})
    for one, other, size in zip(free.updates, bound.updates, norms, strict=True):
        scaled = {name: each * min(1.0, clip / size) for name, each in one.gradient.items()}
        assert distance(scaled, other.gradient) < 1e-5 * size  # torch adds 1e-6 to the norm


def test_gradient_skip(go: Go) -> None:
    """Left out and counted are the updates above the limit; None leaves out none."""
    free = go(optimiser={"grad_skip": None, "grad_clip": None})
    norms = [norm(update.gradient) for update in free.updates]
    assert free.table("steps")["skipped_updates"].sum() == 0
    assert len(norms) == 4 * 2
    limit = 0.999 * norms[0]
    run = go(optimiser={"grad_skip": limit, "grad_clip": None})
    skipped = run.table("steps")["skipped_updates"]
    assert skipped[0] >= 1
    assert len(run.updates) == 4 * 2 - skipped.sum()
    assert all(norm(update.gradient) <= limit for update in run.updates)


# ---- what is kept ----


def test_the_best_model_is_that_of_the_best_validation(
    able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """With a huge learning rate the policy only gets worse: the best is the one at the start."""
    of = little(
        evaluation={"every": 1, "validation_samples": 8, "max_new_tokens": 20},
        questions={"validation": 4},
        training={"steps": 3},
    )
    run = watched_run(tmp_path, able_folder, of, grader, 3.0)
    accuracy = run.table("evaluations").group_by("step").agg(pl.col("correct").mean()).sort("step")
    values = accuracy["correct"].to_list()
    assert values[0] == max(values) and values[-1] < values[0]
    best = load_policy(str(tmp_path / "best"), "float64")[0]
    start = load_policy(able_folder, "float64")[0].state_dict()
    assert all(torch.equal(best.state_dict()[name], each) for name, each in start.items())
    assert (tmp_path / "final").is_dir()


def test_without_keep_best_there_is_no_best_folder(go: Go, tmp_path: Path) -> None:
    run = go(training={"keep_best": False, "steps": 1})
    assert not (run.folder / "best").exists()


def test_continual_training_starts_from_another_model(
    able_folder: str, base_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """The base model stays the one it is compared with, and the start is checked on resume."""
    of = little(training={"start_from": "x", "steps": 1})
    run = watched_run(tmp_path, base_folder, of, grader, 0.05, start_path=able_folder)
    start = load_policy(able_folder, "float64")[0].state_dict()
    first = run.updates[0].weights
    assert all(torch.equal(start[name], each) for name, each in first.items())


# ---- public cases ----


def test_o01_groups_without_signal_are_counted_and_have_no_advantage(go: Go) -> None:
    run = go(rollout={"group_size": 3}, training={"steps": 6}, objective={"standardise": True})
    for step in run.table("steps").iter_rows(named=True):
        rows = run.rows.filter(step=step["step"])
        right = rows.group_by("group").agg(pl.col("correct").sum())["correct"].to_list()
        assert (step["solved_groups"], step["failed_groups"]) == (right.count(3), right.count(0))
        assert (
            step["signal_groups"] == step["updated_groups"] == 3 - right.count(3) - right.count(0)
        )
    same = run.rows.filter(pl.col("group_successes").is_in([0, 3]))
    assert set(same["group_successes"]) == {0, 3}
    assert (same["advantage"] == 0).all()
    assert run.rows["advantage"].is_finite().all()


@pytest.mark.parametrize("gold", ["", "see figure"])
def test_o05_a_gold_that_cannot_be_read_pays_nothing_and_is_counted(
    gold: str, able_folder: str, grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question file with one is refused; one that comes in all the same is left out."""
    make_splits = questions.make_splits

    def with_a_bad_gold(of: Any) -> dict[str, list[Question]]:
        splits = make_splits(of)
        first, *rest = splits["train"]
        return {**splits, "train": [dataclasses.replace(first, gold=gold), *rest]}

    monkeypatch.setattr(questions, "make_splits", with_a_bad_gold)
    of = little(experience=REPLAY)
    run = watched_run(tmp_path, able_folder, of, grader, 0.05)
    bad = with_a_bad_gold(of.questions)["train"][0].id
    rows = run.rows.filter(question=bad)
    assert rows.height
    assert rows["correct"].null_count() == rows.height
    assert (rows["advantage"] == 0).all()
    assert (rows["group_size"] == 0).all()
    assert bad not in run.table("experience")["question"].to_list()
    counted = run.rows.group_by("step").agg(pl.col("correct").null_count()).sort("step")
    steps = run.table("steps")
    assert steps["ungraded"].to_list() == counted["correct"].to_list()
    failed = run.rows.filter(pl.col("question") != bad, group_successes=0)
    for step in steps.iter_rows(named=True):
        assert step["failed_groups"] == failed.filter(step=step["step"])["group"].n_unique()
