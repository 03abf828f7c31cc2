"""The whole training path: replay goes through it, off is off, and a resume changes nothing."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from prompted import prompted
from safetensors.torch import load_file

from exgrpo import trainer
from exgrpo.batch import Outcome
from exgrpo.grading import Grader
from exgrpo.objective import shape
from exgrpo.settings import Objective, Questions, RunSettings
from exgrpo.tables.manifest import check_part, live_parts
from exgrpo.trainer import train
from pipeline.evaluate import best_step

QUESTIONS = Questions(train=10, validation=4, test_id=1, test_ood=1, max_level=2, max_ood_level=3)

PLACES = [(group, slot) for group in range(4) for slot in range(4)]  # of a batch


def settings(**sections: dict[str, Any]) -> RunSettings:
    """Six steps of four questions with four rollouts each, replay from the start."""
    values: dict[str, Any] = {
        "questions": QUESTIONS.model_dump(),
        "rollout": {"group_size": 4, "max_new_tokens": 20},
        "batch": {"questions": 4, "micro_batch_tokens": 200},
        "experience": {"replay": "trajectory", "start": 0.0},
        "objective": {"clip_after_start": "none"},
        "optimiser": {"learning_rate": 1e-3},
        "training": {"steps": 6, "checkpoint_every": 2},
        "evaluation": {"every": 3, "validation_samples": 2, "max_new_tokens": 20},
    }
    for name, section in sections.items():
        values[name] = {**values[name], **section} if name in values else section
    return RunSettings.model_validate({"study": "test", "arm": "arm", "seed": 4, **values})


def run(
    folder: Path,
    base: str,
    of: RunSettings,
    report: Callable[[dict[str, Any]], None] = lambda metrics: None,
) -> None:
    splits = prompted(of.questions, base, of.prompt)
    train(of, base, splits["train"], splits["validation"], folder, report, lambda progress: None)


class KilledError(Exception):
    """Stands for a kill: nothing after it is done."""


def final_weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "final/model.safetensors")


def read(folder: Path, table: str) -> pl.DataFrame:
    """All live rows of a table, without what the clock or the run's name decides."""
    log = folder / "log"
    parts = [check_part(log, part) for part in live_parts(log) if part.table == table]
    frame = pl.concat([pl.read_parquet(part) for part in parts])
    clock = [name for name in frame.columns if name.endswith("seconds")]
    return frame.drop(clock)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, base_folder: str) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run(folder, base_folder, settings())
    return folder


def test_every_trajectory_of_every_step_is_logged_once(finished: Path) -> None:
    rows = read(finished, "trajectories")
    assert rows.height == 6 * 4 * 4
    assert rows["trajectory"].n_unique() == rows.height
    assert rows.group_by("step").len()["len"].to_list() == [16] * 6
    tokens = read(finished, "tokens").join(rows, on="trajectory")
    for column in ("token_ids", "behaviour_logprobs", "logprobs", "entropies"):
        assert (tokens[column].list.len() == tokens["length"]).all()
    assert (tokens["entropies"].list.mean() - tokens["mean_entropy"]).abs().max() < 1e-6


def test_nothing_is_replayed_in_the_first_step_and_then_up_to_half(finished: Path) -> None:
    steps = read(finished, "steps")
    assert steps["replay_on"].to_list() == [False] + [True] * 5
    assert steps["experiential_groups"][0] == steps["experiential_groups"][1] == 0
    assert steps["experiential_groups"].max() == 2
    assert (steps["groups"] == 4).all()


def test_a_replayed_row_is_the_source_with_its_recorded_log_probabilities(finished: Path) -> None:
    rows = read(finished, "trajectories")
    tokens = read(finished, "tokens")
    replayed = rows.filter("replayed")
    assert replayed.height > 0
    assert (replayed["slot"] == 0).all()
    assert replayed["correct"].all()
    source = replayed.join(rows, left_on="source", right_on="trajectory", suffix="_source")
    assert source.height == replayed.height
    assert (source["question"] == source["question_source"]).all()
    assert (source["birth_step"] == source["step_source"]).all()
    assert (source["birth_step"] < source["step"]).all()
    pairs = replayed.select("trajectory", "source").join(tokens, on="trajectory")
    pairs = pairs.join(tokens, left_on="source", right_on="trajectory", suffix="_source")
    assert (pairs["token_ids"] == pairs["token_ids_source"]).all()
    assert (pairs["behaviour_logprobs"] == pairs["behaviour_logprobs_source"]).all()
    moved = (replayed["ratio_mean"] - 1).abs()
    assert (moved > 1e-6).all(), "the policy has moved since, so the ratio must not be 1"
    by_token = replayed.join(tokens, on="trajectory").select(
        "^(ratio|weight)_(mean|min|max|ess)$",
        logs=pl.concat_list("logprobs"),
        behaviour=pl.concat_list("behaviour_logprobs"),
    )
    for row in by_token.iter_rows(named=True):
        ratios = (torch.tensor(row["logs"]) - torch.tensor(row["behaviour"])).exp()
        assert row["ratio_mean"] == pytest.approx(ratios.mean().item(), rel=1e-5)
        shaped = shape(ratios, Objective())
        assert row["weight_mean"] == pytest.approx(shaped.mean().item(), rel=1e-5)
        assert row["weight_min"] == pytest.approx(shaped.min().item(), rel=1e-5)
        assert row["weight_max"] == pytest.approx(shaped.max().item(), rel=1e-5)
        for name, values in (("ratio_ess", ratios), ("weight_ess", shaped)):
            ess = values.sum() ** 2 / (values**2).sum() / len(values)
            assert row[name] == pytest.approx(ess.item(), rel=1e-5)


def test_ratio_is_1_for_fresh_rows_of_the_first_update(finished: Path) -> None:
    rows = read(finished, "trajectories").filter(~pl.col("replayed"))
    first, second = (rows.filter(pl.col("group") % 2 == part) for part in (0, 1))
    for column in ("ratio_min", "ratio_max"):
        assert (first[column] - 1).abs().max() < 1e-5
    assert (second["ratio_max"] - 1).abs().max() > 1e-5, "the second update is off-policy by one"


def test_advantages_and_buckets_follow_from_the_logged_rewards(finished: Path) -> None:
    rows = read(finished, "trajectories")
    for _, group in rows.group_by(["step", "group"]):
        rewards = group["correct"].cast(pl.Float64)
        assert (group["advantage"] - (rewards - rewards.mean())).abs().max() < 1e-6
        k = int(rewards.sum())
        assert group["group_successes"].to_list() == [k] * 4
        assert group["bucket"].to_list() == [k if 0 < k < 4 else None] * 4


def test_every_step_metric_equals_the_value_from_the_rows(finished: Path) -> None:
    rows = read(finished, "trajectories")
    steps = read(finished, "steps")
    fresh = rows.filter(~pl.col("replayed"))
    by_step = fresh.group_by("step").agg(
        reward=pl.col("correct").mean(),
        length=pl.col("length").mean(),
        sampled_tokens=pl.col("length").sum(),
        entropy=pl.col("summed_entropy").sum() / pl.col("length").sum(),
        truncated_share=(pl.col("finish") == "length").mean(),
    )
    signal = (
        rows.filter(pl.col("advantage") != 0)
        .group_by("step")
        .agg(signal_groups=pl.col("group").n_unique().cast(pl.Int64))
    )
    expected = (
        steps.select("step")
        .join(by_step, on="step")
        .join(signal, on="step", how="left")
        .sort("step")
    )
    assert_frame_equal(
        steps.select(expected.columns),
        expected.with_columns(pl.col("signal_groups").fill_null(0)),
        check_dtypes=False,
        abs_tol=1e-6,
    )


def test_candidates_are_ranked_and_the_first_is_replayed(finished: Path) -> None:
    candidates = read(finished, "candidates")
    replayed = read(finished, "trajectories").filter("replayed")
    chosen = candidates.filter("chosen")
    assert sorted(chosen["source"]) == sorted(replayed["source"])
    lowest = candidates.group_by(["step", "group"]).agg(pl.col("mean_entropy").min())
    joined = chosen.join(lowest, on=["step", "group"], suffix="_lowest")
    assert (joined["mean_entropy"] == joined["mean_entropy_lowest"]).all()
    same = chosen.join(replayed, on=["step", "group"], suffix="_row")
    assert (same["mean_entropy"] - same["mean_entropy_row"]).abs().max() < 1e-6


def test_experience_events_add_up_to_the_buffer(finished: Path) -> None:
    events = read(finished, "experience")
    steps = read(finished, "steps")
    for step in steps.iter_rows(named=True):
        so_far = events.filter(pl.col("step") <= step["step"])
        count = dict(so_far["event"].value_counts().iter_rows())
        left = so_far.filter((pl.col("event") == "retired") & pl.col("bucket_before").is_not_null())
        assert step["buffer_questions"] == count.get("entered", 0) - left.height
        assert step["buffer_questions"] == sum(step["bucket_sizes"])
        assert step["retired_questions"] == count.get("retired", 0)


def test_question_replay_draws_the_same_way_but_replays_nothing(
    base_folder: str, tmp_path: Path
) -> None:
    run(tmp_path, base_folder, settings(experience={"replay": "question"}))
    rows = read(tmp_path, "trajectories")
    assert rows["experiential"].any()
    assert not rows["replayed"].any()
    assert (rows.group_by(["step", "group"]).len()["len"] == 4).all()
    assert not any(part.table == "candidates" for part in live_parts(tmp_path / "log"))


def test_replay_share_zero_is_bit_equal_to_the_baseline(base_folder: str, tmp_path: Path) -> None:
    off = settings(experience={"replay": "none"})
    zero = settings(experience={"replay": "trajectory", "share": 0.0})
    for name, each in (("off", off), ("zero", zero)):
        run(tmp_path / name, base_folder, each)
    left, right = (final_weights(tmp_path / name) for name in ("off", "zero"))
    assert left.keys() == right.keys()
    assert all(torch.equal(left[key], right[key]) for key in left)
    columns = ["step", "group", "slot", "question", "response", "advantage", "ratio_mean"]
    assert_frame_equal(
        read(tmp_path / "off", "trajectories")[columns],
        read(tmp_path / "zero", "trajectories")[columns],
    )


def test_micro_batches_change_no_gradient(base_folder: str, tmp_path: Path) -> None:
    one_step = {"steps": 1, "checkpoint_every": 1}
    weights = []
    for budget in (1, 60, 100_000):
        folder = tmp_path / str(budget)
        run(folder, base_folder, settings(
            batch={"micro_batch_tokens": budget}, training=one_step,
            optimiser={"learning_rate": 1e-4},
        ))  # fmt: skip
        weights.append(final_weights(folder))
    for other in weights[1:]:
        for key, value in weights[0].items():
            torch.testing.assert_close(other[key], value, rtol=0, atol=2e-6)


def test_o19_rows_are_logged_in_the_order_of_the_batch(base_folder: str, tmp_path: Path) -> None:
    """Micro-batches go by length, one trajectory each here; the log does not."""
    of = settings(batch={"micro_batch_tokens": 1}, training={"steps": 3, "checkpoint_every": 1})
    run(tmp_path, base_folder, of)
    for table in ("trajectories", "tokens"):
        rows = read(tmp_path, table)
        keys = list(zip(*(rows[key] for key in ("step", "group", "slot")), strict=True))
        assert keys == [(step, *place) for step in (1, 2, 3) for place in PLACES]
    lengths = read(tmp_path, "trajectories")["length"].to_list()
    assert lengths != sorted(lengths), "the order of the micro-batches is another"


def test_huge_gradients_are_left_out_and_counted(base_folder: str, tmp_path: Path) -> None:
    run(tmp_path, base_folder, settings(optimiser={"grad_skip": 1e-12}))
    steps = read(tmp_path, "steps")
    assert (steps["skipped_updates"] == 2).all()
    start = load_file(Path(base_folder) / "model.safetensors")
    end = final_weights(tmp_path)
    assert all(torch.equal(start[key], end[key]) for key in start)


def test_float_columns_may_be_sampled_never_silently(base_folder: str, tmp_path: Path) -> None:
    run(tmp_path, base_folder, settings(log={"token_floats_share": 0.5}))
    tokens = read(tmp_path, "tokens")
    kept = tokens.filter(pl.col("logprobs").is_not_null())
    assert 0 < kept.height < tokens.height
    assert kept.height == read(tmp_path, "steps")["token_floats_logged"].sum()
    assert tokens["token_ids"].null_count() == tokens["behaviour_logprobs"].null_count() == 0


def test_the_policy_learns(able_folder: str, tmp_path: Path) -> None:
    """Forty on-policy steps raise the reward from a half to nearly all (seeds 0 to 3: to 96 %)."""
    of = settings(
        training={"steps": 40, "checkpoint_every": 40},
        batch={"questions": 8},
        rollout={"group_size": 8, "max_new_tokens": 20},
        experience={"replay": "none"},
        objective={"clip_after_start": "fresh"},
    )
    run(tmp_path, able_folder, of)
    reward = read(tmp_path, "steps")["reward"]
    assert reward[-8:].mean() > reward[:8].mean() + 0.3
    assert not any(math.isnan(value) for value in reward)


def test_replay_may_be_on_from_the_first_step(base_folder: str, tmp_path: Path) -> None:
    run(tmp_path, base_folder, settings(experience={"start": "at_once"}))
    steps = read(tmp_path, "steps")
    assert steps["replay_on"].all()
    events = read(tmp_path, "experience")
    assert (events["step"] == 1).any(), "the successes of step 1 are collected"


def test_solved_questions_retire_before_the_start_but_nothing_is_collected(
    base_folder: str, tmp_path: Path
) -> None:
    of = settings(
        experience={"start": "never"}, rollout={"group_size": 2}, training={"steps": 30},
        optimiser={"learning_rate": 1e-5}, batch={"questions": 8},
    )  # fmt: skip
    run(tmp_path, base_folder, of)
    assert not read(tmp_path, "steps")["replay_on"].any()
    assert set(read(tmp_path, "experience")["event"]) == {"retired"}


def test_a_group_that_is_not_wholly_graded_leaves_the_buffer_alone(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grader's failure on every second answer is passed on as it is: null, never 0 or 1."""
    grade_all = Grader.grade_all

    def fail_on_every_second(self: Grader, items: list) -> list:
        verdicts = grade_all(self, items)
        return [
            dataclasses.replace(verdict, correct=None) if index % 2 else verdict
            for index, verdict in enumerate(verdicts)
        ]

    monkeypatch.setattr(Grader, "grade_all", fail_on_every_second)
    run(tmp_path, base_folder, settings())
    rows = read(tmp_path, "trajectories")
    assert (rows["group_size"] == 2).all()
    assert (rows.filter(pl.col("correct").is_null())["advantage"] == 0).all()
    assert (read(tmp_path, "steps")["ungraded"] == 8).all()
    assert read(tmp_path, "steps")["buffer_questions"].sum() == 0
    assert not any(part.table == "experience" for part in live_parts(tmp_path / "log"))


def test_what_is_not_graded_moves_no_best(
    base_folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = [None] * 8
    graded = {0: nothing, 1: [True, False, *nothing[2:]], 2: [True, False] * 4, 3: nothing}
    real, save, saved = trainer.evaluate, trainer.save_policy, []

    def validated(*arguments: Any, **key: Any) -> list[dict[str, Any]]:
        rows = real(*arguments, **key)
        known = graded[key["step"]]
        return [{**row, "correct": each} for row, each in zip(rows, known, strict=True)]

    def spied(policy: Any, tokenizer: Any, folder: Path, *weights: Any) -> None:
        saved.append(folder.name)
        save(policy, tokenizer, folder, *weights)

    def told(metrics: dict[str, Any]) -> None:
        saved.append(metrics["step"])

    monkeypatch.setattr(trainer, "evaluate", validated)
    monkeypatch.setattr(trainer, "save_policy", spied)
    run(
        tmp_path,
        base_folder,
        settings(training={"keep_best": True, "steps": 3}, evaluation={"every": 1}),
        report=told,
    )
    assert saved == [1, "best", 2, 3, "final"]
    assert best_step(tmp_path / "log") == 1
    said = capsys.readouterr().out
    for step in (0, 3):
        assert f"step {step}: none of the 8 answers to the validation questions" in said
    assert said.count("could be graded") == 2


def test_difficulty_is_the_paper_s_three_ranges() -> None:
    names = [Outcome(k, 8).difficulty for k in range(9)]
    assert names == [None, "hard", "hard", "medium", "medium", "medium", "easy", "easy", None]
