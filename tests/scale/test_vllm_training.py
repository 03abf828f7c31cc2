"""A whole ExGRPO training with vLLM: what it logs is true of the policy of each step.

Needs the package vllm (`make test-vllm`).
"""

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil
import pytest
import torch
from alike import gap
from dying import run_folder, small_study
from lessons import teach
from prompted import prompted
from rounding import FLOAT32
from test_trainer import final_weights, read, run, settings
from together import evaluate, printed, several, together, train

from exgrpo.errors import UserError
from exgrpo.hardware import CPU
from exgrpo.policy import TokenSequence, load_policy
from exgrpo.rollout.vllm_engine import VllmEngine
from exgrpo.scorer import Scorer, score_sequences
from exgrpo.settings import RunSettings

pytest.importorskip("vllm", reason="needs the package vllm: make test-vllm")
pytestmark = pytest.mark.vllm

STEPS = 5


def of(dtype: str = "float32", steps: int = STEPS, **sections: Any) -> RunSettings:
    """`test_trainer.settings` with vLLM; validated before the first and after the last step."""
    return settings(
        rollout={"engine": "vllm", "engine_dtype": dtype, "batch": 64},
        experience={"start": "at_once"},
        training={"steps": steps, "checkpoint_every": 2},
        evaluation={"every": 100},
        **sections,
    )


@dataclasses.dataclass(frozen=True)
class Trained:
    folder: Path
    base: str
    policies: list[dict[str, torch.Tensor]]  # as they were at each sync: validation, then each step


@pytest.fixture(scope="module")
def base(wide_base: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("able") / "model"
    teach(str(wide_base), folder)
    return str(folder)


@pytest.fixture(scope="module")
def trained(base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """Five steps in float32, with a copy of the policy at each sync."""
    made = Trained(tmp_path_factory.mktemp("trained"), base, [])
    sync = VllmEngine.sync

    def copying(engine: VllmEngine) -> None:
        sync(engine)
        made.policies.append({k: v.clone() for k, v in engine.policy.state_dict().items()})

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(VllmEngine, "sync", copying)
        run(made.folder, base, of())
    yield made


def test_every_row_has_the_log_probabilities_of_the_policy_that_sampled_it(
    trained: Trained,
) -> None:
    model, _ = load_policy(trained.base)
    asked = prompted(of().questions, trained.base)["train"]
    prompts = {question.id: list(question.prompt_ids or ()) for question in asked}
    rows = read(trained.folder, "trajectories").join(
        read(trained.folder, "tokens").select("trajectory", "token_ids", "behaviour_logprobs"),
        on="trajectory",
    )
    assert len(trained.policies) == 1 + STEPS + 1
    for step in range(1, STEPS + 1):
        fresh = rows.filter((pl.col("step") == step) & ~pl.col("replayed"))
        sequences = [
            TokenSequence(prompts[row["question"]], row["token_ids"])
            for row in fresh.iter_rows(named=True)
        ]
        recorded = np.concatenate(fresh["behaviour_logprobs"].to_list())
        gaps = []
        for policy in trained.policies[step - 1 : step + 1]:
            model.load_state_dict(policy)
            scores = score_sequences(Scorer(model), sequences, 1.0, 4096)
            now = np.concatenate([score.logprobs.numpy() for score in scores])
            gaps.append(np.abs(now - recorded).max())
        assert gaps[1] < FLOAT32
        assert step == 1 or gaps[0] > 100 * FLOAT32, "the policy of the step before is another"
    steps = read(trained.folder, "steps")
    assert 0 < steps["sampler_gap_max"].max() < FLOAT32
    assert (steps["sampler_ratio_mean"] - 1).abs().max() < FLOAT32
    assert steps["sampler_capped_share"].sum() == 0


def test_a_replayed_row_keeps_what_vllm_recorded_at_its_birth(trained: Trained) -> None:
    rows, tokens = (read(trained.folder, table) for table in ("trajectories", "tokens"))
    replayed = rows.filter("replayed")
    assert replayed.height > 2
    assert (replayed["birth_step"] < replayed["step"]).all()
    pairs = replayed.select("trajectory", "source").join(tokens, on="trajectory")
    pairs = pairs.join(tokens, left_on="source", right_on="trajectory", suffix="_source")
    assert pairs.height == replayed.height
    assert (pairs["token_ids"] == pairs["token_ids_source"]).all()
    assert (pairs["behaviour_logprobs"] == pairs["behaviour_logprobs_source"]).all()
    learning = replayed.filter(pl.col("ratio_mean").is_not_null())
    assert ((learning["ratio_mean"] - 1).abs() > 1e-4).all(), "the policy has moved since"


def test_the_ratio_is_1_for_fresh_rows_of_the_first_update(trained: Trained) -> None:
    """Trap 16: what stands below is the trainer's log-probability, not the sampler's."""
    rows = read(trained.folder, "trajectories").filter(~pl.col("replayed"))
    first, second = (rows.filter(pl.col("group") % 2 == part) for part in (0, 1))
    for column in ("ratio_min", "ratio_max"):
        assert (first[column] - 1).abs().max() < 1e-5
    assert (second["ratio_max"] - 1).abs().max() > 1e-4


def test_a_killed_engine_ends_the_training_which_then_goes_on(
    trained: Trained, tmp_path: Path
) -> None:
    """The process of vLLM is killed in step 4; the checkpoint of step 2 is gone on from."""

    def kill(metrics: dict[str, Any]) -> None:
        if metrics["step"] == 3:
            os.kill(engine_process().pid, signal.SIGKILL)

    with pytest.raises(UserError, match=r"process of vLLM has ended \(signal SIGKILL\)"):
        run(tmp_path, trained.base, of(), report=kill)
    again: list[int] = []
    run(tmp_path, trained.base, of(), report=lambda metrics: again.append(metrics["step"]))
    assert again == [3, 4, 5]
    whole, resumed = (final_weights(folder) for folder in (trained.folder, tmp_path))
    for name, weight in whole.items():
        torch.testing.assert_close(resumed[name], weight, rtol=0, atol=1e-5)
    ids = [
        read(each, "tokens").sort("trajectory")["token_ids"] for each in (trained.folder, tmp_path)
    ]
    assert (ids[0] == ids[1]).all()


def engine_process() -> psutil.Process:
    (found,) = (
        child
        for child in psutil.Process().children()
        if "exgrpo.rollout.vllm_process" in child.cmdline()
    )
    return found


def test_bfloat16_rounding_is_logged_and_corrected(base: str, tmp_path: Path) -> None:
    run(tmp_path, base, of("bfloat16", steps=2))
    steps = read(tmp_path, "steps")
    assert (steps["sampler_gap_mean"] > 1e-4).all()
    assert (steps["sampler_gap_max"] < 1).all()
    assert ((steps["sampler_ratio_mean"] - 1).abs() > 1e-6).all()
    rows = read(tmp_path, "trajectories").filter(~pl.col("replayed"))
    # Trap 19: a sequence's log-ratio is its length times what the means differ by.
    apart = ((rows["nll"] - rows["behaviour_nll"]) * rows["length"]).abs()
    assert (apart > 1e-4).mean() > 0.5
    first = rows.filter(pl.col("group") % 2 == 0)
    assert (first["ratio_max"] - 1).abs().max() < 1e-5, "the correction stands beside the ratio"


def test_two_sharded_processes_with_an_engine_each_come_to_what_one_comes_to(
    base: str, tmp_path: Path
) -> None:
    """Both probe in step, and load the one copy of the weights that the first of them writes."""
    folders = []
    for hardware in (CPU, several(2, "sharded")):
        folders.append(tmp_path / str(hardware.processes))
        folders[-1].mkdir()
        small_study(
            folders[-1],
            base,
            rollout={"engine": "vllm", "engine_dtype": "float32", "batch": 64},
            training={"steps": 3},
            evaluation={"every": 100},
        )
        assert together(hardware, folders[-1], train) == {0}, printed(folders[-1])
    one, two = map(run_folder, folders)
    assert read(two, "trajectories")["replayed"].any()
    assert gap(two, one) < 1e-5
    tokens = [read(each, "tokens").sort("trajectory")["token_ids"] for each in (one, two)]
    assert (tokens[0] == tokens[1]).all()
    assert together(CPU, folders[1], evaluate, False) == {0}, printed(folders[1])
    (tested,) = folders[1].glob("results/small/evaluations/*")
    rows = read(tested, "evaluations")
    assert rows["mean_entropy"].is_null().all() and rows["nll"].is_not_null().all()
