"""Every arm, through the whole of training, against the slow reference; and the exact identities.

The reference scores every sequence alone and without padding, the real path in ragged micro-batches
padded on the right, after rollouts padded on the left: where they agree, padding does not matter.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from slow_step import SlowUpdate, distance, norm, slow_updates
from test_trainer import final_weights
from watched import ARMS, WatchedRun, changed, little_arms, watched_run

from exgrpo import objective
from exgrpo import update as update_module
from exgrpo.batch import Row
from exgrpo.grading import Grader
from exgrpo.policy import TokenScores, load_tokenizer
from exgrpo.settings import RunSettings

EXACT = 1e-9  # relative; 1e-6 is what was asked for, 1e-12 what was measured
TABLES = ("trajectories", "tokens", "steps", "candidates", "experience")

Train = Callable[..., WatchedRun]


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSettings]:
    return little_arms(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="module")
def train(
    tmp_path_factory: pytest.TempPathFactory,
    able_folder: str,
    grader: Grader,
    arms: dict[str, RunSettings],
) -> Train:
    """An arm's run in little, trained once; what it needs of another run is trained before it."""
    done: dict[str, WatchedRun] = {}

    def trained(arm: str) -> WatchedRun:
        if arm not in done:
            settings = arms[arm]
            needed: dict[str, Any] = {}
            if settings.join.pool:
                needed["pool_log"] = trained("on_policy").folder / "log"
            if settings.training.start_from:
                needed["start_path"] = str(trained("on_policy").folder / "best")
            folder = tmp_path_factory.mktemp(arm)
            done[arm] = watched_run(folder, able_folder, settings, grader, 0.3, **needed)
        return done[arm]

    return trained


# ---- the loss and its gradient ----


@pytest.mark.parametrize("arm", ARMS)
def test_loss_and_gradient_of_every_arm(arm: str, train: Train) -> None:
    run = train(arm)
    updates = list(slow_updates(run))
    for update in updates:
        assert distance(update.given, update.clipped) <= EXACT * norm(update.clipped)
    assert any(norm(update.clipped) > 0 for update in updates)
    for step in run.table("steps").iter_rows(named=True):
        check_step(step, [update for update in updates if update.step == step["step"]])
    check_rows(run, updates)
    replays = run.settings.experience.replay == "trajectory"
    assert run.rows["replayed"].any() is replays


def check_step(step: dict[str, Any], updates: list[SlowUpdate]) -> None:
    """What the log says of a step's updates."""
    if not updates:
        assert step["loss"] is step["grad_norm"] is None
        return
    size = float(np.mean([update.size for update in updates]))
    loss = float(np.mean([update.loss for update in updates]))
    assert step["loss"] == pytest.approx(loss, rel=EXACT, abs=EXACT * size)
    totals = [
        norm({name: update.fresh[name] + update.replayed[name] for name in update.fresh})
        for update in updates
    ]
    for column, norms in (
        ("grad_norm", totals),
        ("grad_norm_fresh", [norm(update.fresh) for update in updates]),
        ("grad_norm_replayed", [norm(update.replayed) for update in updates]),
    ):
        assert step[column] == pytest.approx(np.mean(norms), rel=EXACT, abs=1e-15)


def check_rows(run: WatchedRun, updates: list[SlowUpdate]) -> None:
    """What the log says of each trajectory: of its last update, and of the policy before."""
    last = {row["trajectory"]: (row, each) for each in updates for row in each.rows}
    dropped = run.rows.filter(~pl.col("trajectory").is_in(list(last)))
    assert not dropped["trained"].any()
    assert dropped["ratio_mean"].null_count() == dropped.height
    for name, (row, update) in last.items():
        part = update.parts[name]
        for column, values in (("ratio", part.ratio), ("weight", part.weight)):
            for statistic in ("mean", "min", "max"):
                expected = getattr(values, statistic)()
                assert row[f"{column}_{statistic}"] == pytest.approx(expected, rel=EXACT)
        assert row["clipped_share"] == pytest.approx(part.clipped.mean(), rel=1e-6)
        assert row["nll"] == pytest.approx(-row["previous"].mean(), rel=EXACT)
        assert row["mean_entropy"] == pytest.approx(row["entropies_alone"].mean(), rel=EXACT)
        np.testing.assert_allclose(row["entropies"], row["entropies_alone"], rtol=1e-6, atol=1e-7)
        if not row["replayed"]:
            np.testing.assert_allclose(
                row["behaviour_logprobs"], row["previous"], rtol=1e-6, atol=1e-7
            )


def test_clip_mask_and_penalty_were_at_work(train: Train) -> None:
    """What the comparison above would say nothing of if it never happened."""
    fresh, replayed = ~pl.col("replayed"), pl.col("replayed")
    clipped = pl.col("clipped_share") > 0
    clipping = ("on_policy", "grpo", "question_replay", "exgrpo_clip")
    assert any(train(arm).rows.filter(fresh, clipped).height for arm in clipping)
    assert train("remix").rows.filter(replayed, clipped).height
    assert not train("no_shaping").rows.filter(replayed, clipped).height
    unequal = pl.col("bucket").is_not_null()
    masked = train("masked_medium").rows.filter(unequal)
    assert set(masked.filter(advantage=0.0)["difficulty"]) & {"easy", "hard"}
    assert set(masked.filter(pl.col("advantage") != 0)["difficulty"]) == {"medium"}
    assert train("dapo_sampling").rows["trained"].not_().any()
    assert train("repo_variance").rows.filter(replayed, correct=False).height


@pytest.fixture(scope="module")
def everything(arms: dict[str, RunSettings]) -> RunSettings:
    """Replay with all that adds to a gradient: bonus, both KLs, clip, the deviation, two passes."""
    return changed(
        arms["start_at_0"],
        batch={"passes": 2},
        rollout={"max_new_tokens": 10},  # some are cut off
        training={"steps": 3},
        objective={
            "standardise": True, "normaliser": "token", "entropy_bonus": 0.01,
            "kl_reference": 0.1, "kl_previous": 0.1, "clip_after_start": "all",
        },
    )  # fmt: skip


def test_micro_batches_change_nothing(
    able_folder: str, grader: Grader, everything: RunSettings, tmp_path: Path
) -> None:
    runs = []
    for budget in (1, 60, 100_000):
        settings = changed(everything, batch={"micro_batch_tokens": budget})
        runs.append(watched_run(tmp_path / str(budget), able_folder, settings, grader, 0.02))
    first, *others = runs
    assert first.rows["replayed"].any()
    assert list(slow_updates(first))
    for other in others:
        for left, right in zip(first.updates, other.updates, strict=True):
            assert distance(left.gradient, right.gradient) <= EXACT * norm(left.gradient)


def test_rows_without_signal_add_exactly_nothing(
    able_folder: str,
    grader: Grader,
    arms: dict[str, RunSettings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Left out of the update, or sent through it one by one: every gradient has the same bits."""
    settings = changed(
        arms["start_at_0"], objective={"entropy_bonus": 0.0}, batch={"micro_batch_tokens": 1}
    )
    left_out = watched_run(tmp_path / "left out", able_folder, settings, grader, 0.3)
    monkeypatch.setattr(objective, "has_penalty", lambda _: True)
    taken_in = watched_run(tmp_path / "taken in", able_folder, settings, grader, 0.3)
    idle, learning = pl.col("advantage") == 0, pl.col("advantage") != 0
    rows = left_out.rows
    assert rows.filter(idle).height and rows.filter(learning, replayed=True).height
    assert rows.filter(idle)["ratio_mean"].null_count() == rows.filter(idle).height
    assert rows.filter(learning)["ratio_mean"].null_count() == 0
    assert taken_in.rows["ratio_mean"].null_count() == 0
    assert len(left_out.updates) == len(taken_in.updates) > 0
    for one, other in zip(left_out.updates, taken_in.updates, strict=True):
        for name, gradient in one.gradient.items():
            assert torch.equal(gradient, other.gradient[name])
    losses = (run.table("steps")["loss"].to_list() for run in (left_out, taken_in))
    assert next(losses) == next(losses)


def test_a_pad_token_that_is_the_end_token_changes_nothing(
    able_folder: str, grader: Grader, everything: RunSettings, tmp_path: Path
) -> None:
    """Trap 29: what counts is known by lengths, never by the pad token."""
    other = shutil.copytree(able_folder, tmp_path / "base")
    tokenizer = load_tokenizer(able_folder)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(other)
    assert load_tokenizer(str(other)).pad_token_id == tokenizer.eos_token_id
    runs = [
        watched_run(tmp_path / name, path, everything, grader, 0.02)
        for name, path in (("usual", able_folder), ("same", str(other)))
    ]
    assert set(runs[0].rows["finish"]) == {"stop", "length"}
    for table in TABLES:
        assert_frame_equal(*(run.table(table) for run in runs), check_exact=True)
    left, right = (final_weights(run.folder) for run in runs)
    assert all(torch.equal(left[key], right[key]) for key in left)


# ---- ratios ----


@pytest.mark.parametrize("dtype, bound", [("float64", 1e-6), ("float32", 1e-5)])
def test_the_ratio_is_1_while_the_policy_has_not_moved(
    dtype: str,
    bound: float,
    able_folder: str,
    grader: Grader,
    arms: dict[str, RunSettings],
    tmp_path: Path,
) -> None:
    settings = changed(arms["remix"], training={"dtype": dtype, "reincarnate_at": None})
    run = watched_run(tmp_path, able_folder, settings, grader, 0.0)
    assert run.rows.filter("replayed").height > 10
    for column in ("ratio_min", "ratio_max"):
        assert (run.rows[column] - 1).abs().max() < bound


def test_a_denominator_that_is_the_current_policy_gives_1_at_the_first_update(train: Train) -> None:
    """Although the policy has moved since the trajectory was sampled; the second update is off."""
    replayed = train("no_is").rows.filter("replayed")
    assert ((replayed["nll"] - replayed["behaviour_nll"]).abs() > 1e-4).all()
    first = replayed.filter(pl.col("group") % 2 == 0)
    assert first.height
    for column in ("ratio_min", "ratio_max"):
        assert (first[column] - 1).abs().max() < 1e-12
    recorded = train("exgrpo").rows.filter("replayed")
    assert (recorded["ratio_max"] - 1).abs().min() > 1e-4


@pytest.mark.parametrize("beta", [0.1, 0.5])
def test_gradient_factor_of_a_replayed_token(
    beta: float,
    able_folder: str,
    grader: Grader,
    arms: dict[str, RunSettings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """beta * w / (w + beta)^2, as autograd has it at the log-probabilities of the real path."""
    settings = changed(arms["start_at_0"], objective={"entropy_bonus": 0.0, "beta": beta})
    token_batch = update_module.token_batch
    seen: list[tuple[list[Row], TokenScores]] = []

    def batch_and_keep(rows: list[Row], scores: TokenScores, *more: Any) -> Any:
        scores.logprobs.retain_grad()
        seen.append((rows, scores))
        return token_batch(rows, scores, *more)

    monkeypatch.setattr(update_module, "token_batch", batch_and_keep)
    run = watched_run(tmp_path, able_folder, settings, grader, 0.3)
    slopes = {}
    for rows, scores in seen:
        lengths = [len(row.sequence.response_ids) for row in rows]
        for row, slope in zip(rows, scores.logprobs.grad.split(lengths), strict=True):
            slopes[row.id] = slope
    factors = []
    for update in slow_updates(run):
        sequences = len(update.rows)
        for row in update.rows:
            if row["replayed"] and row["advantage"]:
                ratio = update.parts[row["trajectory"]].ratio
                slope = slopes[row["trajectory"]]
                shared = -row["advantage"] / (sequences * settings.rollout.max_new_tokens)
                factor = beta * ratio / (ratio + beta) ** 2
                np.testing.assert_allclose(slope / shared, factor, rtol=1e-6)
                factors += factor.tolist()
    assert max(factors) - min(factors) > 0.05
    assert max(factors) <= 0.25


# ---- nothing replayed is the baseline ----


def test_never_started_is_bit_equal_to_the_baseline(
    able_folder: str, grader: Grader, train: Train, arms: dict[str, RunSettings], tmp_path: Path
) -> None:
    settings = changed(arms["exgrpo"], experience={"start": "never"})
    never = watched_run(tmp_path, able_folder, settings, grader, 0.3)
    check_bit_equal(never, train("on_policy"))


def test_an_empty_buffer_is_bit_equal_to_the_baseline(
    able_folder: str, grader: Grader, arms: dict[str, RunSettings], tmp_path: Path
) -> None:
    """Every success is cut off before its end token: there is something to learn, none to store."""
    runs = []
    for arm in ("exgrpo_clip", "on_policy"):
        settings = changed(
            arms[arm],
            experience={"start": "at_once"},
            rollout={"max_new_tokens": 3},  # a box, its digit, its end
        )
        runs.append(watched_run(tmp_path / arm, able_folder, settings, grader, 0.3))
    empty, plain = runs
    assert empty.table("steps")["replay_on"].all()
    assert (empty.table("steps")["buffer_trajectories"] == 0).all()
    assert empty.rows["correct"].any()
    check_bit_equal(empty, plain)


def check_bit_equal(run: WatchedRun, plain: WatchedRun) -> None:
    columns = ["step", "group", "slot", "question", "response", "advantage", "ratio_mean"]
    assert_frame_equal(run.rows[columns], plain.rows[columns], check_exact=True)
    left, right = (final_weights(each.folder) for each in (run, plain))
    assert left.keys() == right.keys()
    assert all(torch.equal(left[key], right[key]) for key in left)
