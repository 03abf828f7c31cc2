"""A loss that is no finite number stops training with a reason; a huge gradient alone does not."""

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from dying import run_folder, small_study
from test_trainer import read, run, settings

from exgrpo import checkpoint, trainer, update
from exgrpo.trainer import StoppedError
from pipeline.train import train_run

EVERY_STEP = settings(training={"steps": 6, "checkpoint_every": 1})


def broken_by(monkeypatch: pytest.MonkeyPatch, update_number: int) -> None:
    """From this update of the run on, the optimiser leaves a weight that is no number."""
    step, calls = torch.optim.AdamW.step, []

    def breaks(optimiser: torch.optim.AdamW, *arguments: object) -> None:
        calls.append(1)
        step(optimiser, *arguments)
        if len(calls) == update_number:
            optimiser.param_groups[0]["params"][0].data[:] = math.nan

    monkeypatch.setattr(torch.optim.AdamW, "step", breaks)


@pytest.mark.parametrize("number", [3, 4])
def test_broken_weights_stop_training_and_are_never_saved(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Broken by the first of the two updates of step 2, and by the last."""
    broken_by(monkeypatch, number)
    with pytest.raises(StoppedError) as told:
        run(tmp_path, base_folder, EVERY_STEP)
    message = str(told.value)
    assert message.startswith(f"run {EVERY_STEP.run}, step 2: the ")
    assert "is nan: training stops" in message
    assert "optimiser.learning_rate too high (0.001)" in message
    assert read(tmp_path, "trajectories").filter(step=2).height == 16, "there to be looked at"
    saved = checkpoint.load_latest(tmp_path / "checkpoints")
    assert saved is not None and saved["progress"]["step"] == 1
    assert all(weight.isfinite().all() for weight in saved["model"].values())
    assert not (tmp_path / "final").exists()


def test_a_policy_without_numbers_stops_though_its_loss_is_0(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It samples no right answer, so that no group has a signal, and the bonus is off."""
    load_policy = trainer.load_policy

    def broken(*arguments: str) -> tuple[Any, Any]:
        model, tokenizer = load_policy(*arguments)
        model.lm_head.weight.data[:] = math.nan
        return model, tokenizer

    monkeypatch.setattr(trainer, "load_policy", broken)
    # As when the weights are sound and the logits overflow.
    monkeypatch.setattr(update, "get_total_norm", lambda _: torch.tensor(0.0))
    with pytest.raises(StoppedError, match=r"step 1: the mean entropy .* is nan"):
        run(tmp_path, base_folder, settings(objective={"entropy_bonus": 0.0}))
    assert read(tmp_path, "steps")["loss"].to_list() == [0.0]


def test_the_optimiser_never_steps_on_a_non_finite_loss(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An infinite loss whose gradient is finite, as of a term that no weight moves."""
    gradient = update._gradient

    def infinite(*arguments: object) -> tuple[float, update.Norms]:
        _, norms = gradient(*arguments)
        assert math.isfinite(norms.total)
        return math.inf, norms

    monkeypatch.setattr(update, "_gradient", infinite)
    stepped: list[int] = []
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_: stepped.append(1))
    with pytest.raises(StoppedError, match="step 1: the loss of update 1 is inf"):
        run(tmp_path, base_folder, settings())
    assert stepped == []


def test_what_was_saved_before_stays_and_the_bad_rows_are_overtaken(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = settings(training={"checkpoint_every": 2})
    with monkeypatch.context() as patch:
        gradient, calls = update._gradient, []

        def bad_in_step_4(*arguments: object) -> tuple[float, update.Norms]:
            calls.append(1)
            value, norms = gradient(*arguments)
            return (math.nan if len(calls) == 7 else value), norms

        patch.setattr(update, "_gradient", bad_in_step_4)
        with pytest.raises(StoppedError, match="step 4: the loss of update 1 is nan"):
            run(tmp_path, base_folder, of)
    assert read(tmp_path, "steps")["step"].to_list() == [1, 2, 3, 4]
    saved = checkpoint.load_latest(tmp_path / "checkpoints")
    assert saved is not None and saved["progress"]["step"] == 2
    run(tmp_path, base_folder, of)
    assert read(tmp_path, "steps")["step"].to_list() == [1, 2, 3, 4, 5, 6]


def test_run_json_says_that_the_run_stopped_and_why(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = small_study(tmp_path, base_folder)
    (only,) = study.runs
    broken_by(monkeypatch, 3)
    with pytest.raises(StoppedError, match="is nan: training stops"):
        train_run(study, only, tmp_path / "results", threads=1)
    folder = run_folder(tmp_path)
    row = json.loads((folder / "run.json").read_text())
    assert row["status"] == "stopped"
    assert row["reason"].startswith(f"run {only}, step 2: the ")
    assert not (folder / "done.json").exists()


def test_a_finite_loss_with_a_non_finite_gradient_is_left_out_and_counted(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the released code does. A gradient beyond `grad_skip`: see test_trainer.py."""
    gradient = update._gradient

    def no_number(*arguments: object) -> tuple[float, update.Norms]:
        value, _ = gradient(*arguments)
        return value, update.Norms(math.nan, math.nan, math.nan)

    monkeypatch.setattr(update, "_gradient", no_number)
    run(tmp_path, base_folder, settings())
    steps = read(tmp_path, "steps")
    assert (steps["skipped_updates"] == 2).all() and steps.height == 6
    assert steps.select(pl.col("loss").is_finite().all()).item()
