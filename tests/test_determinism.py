"""The same settings give the same bits: twice, in two processes, with the setting and without."""

from pathlib import Path

import pytest
import torch
from dying import run_folder, small_study, train_until
from test_trainer import run, settings
from test_unkillable import require_equal

from exgrpo import step
from exgrpo.determinism import deterministic
from exgrpo.errors import UserError


@pytest.mark.parametrize("setting", [False, True])
def test_two_runs_of_the_same_settings_are_bit_equal(
    tmp_path: Path, able_folder: str, setting: bool
) -> None:
    for name in ("one", "two"):
        small_study(tmp_path / name, able_folder, training={"steps": 6, "deterministic": setting})
        assert not train_until(tmp_path / name)
    require_equal(run_folder(tmp_path / "one"), run_folder(tmp_path / "two"))


def test_the_setting_is_on_in_every_step_and_off_again_afterwards(
    tmp_path: Path, base_folder: str
) -> None:
    seen: list[bool] = []
    run(
        tmp_path,
        base_folder,
        settings(training={"steps": 2, "deterministic": True}),
        lambda metrics: seen.append(torch.are_deterministic_algorithms_enabled()),
    )
    assert seen == [True, True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_operation_without_a_deterministic_version_is_named(
    tmp_path: Path, base_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(*_: object) -> None:
        torch.ones(3).put_(torch.tensor([0, 0]), torch.ones(2), accumulate=False)

    monkeypatch.setattr(step, "sample_and_grade", sample)
    with pytest.raises(UserError, match=r"settings\.training\.deterministic: put_") as told:
        run(tmp_path, base_folder, settings(training={"deterministic": True}))
    assert "Set it to false" in str(told.value)
    assert not torch.are_deterministic_algorithms_enabled()


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="out of memory"), deterministic(True):
        raise RuntimeError("out of memory")


@pytest.mark.parametrize("found", [None, ":0:0", ""])
def test_on_a_gpu_the_variable_of_cublas_must_be_set(
    monkeypatch: pytest.MonkeyPatch, found: str | None
) -> None:
    """There is no GPU here: torch is made to say that there is one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    if found is not None:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", found)
    with pytest.raises(UserError, match="CUBLAS_WORKSPACE_CONFIG, found"), deterministic(True):
        raise AssertionError("training began")
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(False):
        pass
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with deterministic(True):
        assert torch.are_deterministic_algorithms_enabled()
