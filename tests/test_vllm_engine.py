"""What stands around vLLM and needs none: its place, its weights, its errors, the probe.

vLLM itself: `scale/test_vllm.py`.
"""

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from together import printed, several, together
from torch import Tensor
from transformers import PreTrainedModel

from exgrpo.errors import UserError
from exgrpo.hardware import CPU, Hardware
from exgrpo.policy import load_policy
from exgrpo.processes import ALONE, Processes, processes_now
from exgrpo.rollout import Sampling, vllm_engine
from exgrpo.rollout.engines import engine_of
from exgrpo.rollout.torch_engine import generate
from exgrpo.rollout.vllm_engine import (
    Child,
    Probe,
    VllmEngine,
    environment,
    full_weights,
    probe_limit,
    require_same_policy,
)
from exgrpo.rollout.vllm_process import require_taken_over, rollout_of
from exgrpo.scorer import Scorer, shard
from exgrpo.settings import RunSettings

PROBE = Probe([[1, 4, 5], [1, 7]], tokens=8, temperature=1.0, limit=1e-4, budget=1000)
WITH_VLLM = RunSettings.model_validate(
    {"study": "s", "arm": "a", "seed": 0, "rollout": {"engine": "vllm"}}
)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed here")
def test_a_missing_vllm_says_how_to_get_it(base_folder: str) -> None:
    model, _ = load_policy(base_folder)
    opened = engine_of(WITH_VLLM, CPU, Scorer(model), model, base_folder, ALONE, [[1]])
    with pytest.raises(UserError, match=r"not installed.*'\.\[vllm\]'.*make test-vllm"), opened:
        pass


def test_an_engine_that_does_not_start_is_an_error_with_its_last_words() -> None:
    with pytest.raises(UserError, match=r"the process of vLLM has ended \(exit code 1\)") as told:
        Child({}, {**os.environ, "PYTHONPATH": "nowhere", "PYTHONHOME": "/nonexistent"})
    assert "What vLLM last said:" in str(told.value)
    assert "Python" in str(told.value)


def test_the_engine_has_no_place_among_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}
    for name in names:
        monkeypatch.setenv(name, "1")
    found = environment(torch.device("cpu"), CPU)
    assert not names & set(found)
    assert found["PATH"] == os.environ["PATH"]
    assert found["OMP_NUM_THREADS"] == str(torch.get_num_threads())


@pytest.mark.parametrize(
    ("engine", "processes", "own", "expected"),
    [("colocated", 4, 2, "6"), ("own", 2, 0, "6"), ("own", 2, 1, "7")],
)
def test_the_gpu_of_an_engine(
    engine: str, processes: int, own: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    where = Hardware.model_validate(
        {"title": "t", "gpus": 4, "processes": processes, "engine": engine}
    )
    found = environment(torch.device("cuda", own), where)
    assert found["CUDA_VISIBLE_DEVICES"] == expected
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    if engine == "own":
        with pytest.raises(UserError, match=r"takes GPU [23], of 2 that are visible"):
            environment(torch.device("cuda", own), where)


def completion(**changed: object) -> SimpleNamespace:
    found = {
        "token_ids": (7, 2),
        "logprobs": [{7: SimpleNamespace(logprob=-0.5)}, {2: SimpleNamespace(logprob=-1.5)}],
        "finish_reason": "stop",
    }
    return SimpleNamespace(**{**found, **changed})


def test_a_completion_is_taken_as_it_is_or_not_at_all() -> None:
    """Trap 26: a log-probability that is missing is not filled up."""
    rollout = rollout_of(completion())
    assert (rollout.token_ids, rollout.logprobs.tolist()) == ([7, 2], [-0.5, -1.5])
    assert (rollout.finish, rollout.entropies) == ("stop", None)
    with pytest.raises(RuntimeError, match="1 log-probabilities for 2 tokens"):
        rollout_of(completion(logprobs=completion().logprobs[:1]))
    with pytest.raises(KeyError):
        rollout_of(completion(token_ids=(7, 3)))
    with pytest.raises(RuntimeError, match="for the reason 'abort'"):
        rollout_of(completion(finish_reason="abort"))


def test_the_probe_lets_rounding_pass_and_no_other_policy(base_folder: str) -> None:
    model, _ = load_policy(base_folder)
    how = Sampling(PROBE.temperature, PROBE.tokens, (), batch=2)
    right = [own[0] for own in generate(model, PROBE.prompts, [[0], [1]], how)]
    require_same_policy(PROBE, [right, right], Scorer(model), ALONE)
    for wrong in (1e-3, np.nan):
        off = [replace(each, logprobs=each.logprobs + np.float32(wrong)) for each in right]
        with pytest.raises(UserError, match=r"0\.0001 are allowed \(hardware\.probe_gap\)"):
            # One process's engine of two is enough, whichever it is.
            require_same_policy(PROBE, [off, right], Scorer(model), ALONE)
        with pytest.raises(UserError):
            require_same_policy(PROBE, [right, off], Scorer(model), ALONE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_weights_are_written_whole_in_files_of_bounded_size(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(vllm_engine, "FILE_BYTES", 20_000)
    model, _ = load_policy(base_folder)
    engine = handing_over(model, dtype)
    monkeypatch.setattr(vllm_engine, "SHARED_MEMORY", tmp_path)
    with engine._written_weights() as folder:
        assert Path(folder).parent == tmp_path
        files = sorted(Path(folder).iterdir())
        assert len(files) > 2
        found = {name: value for file in files for name, value in load_file(file).items()}
    assert list(tmp_path.iterdir()) == []
    assert found.keys() == dict(model.named_parameters()).keys()
    for name, weight in model.named_parameters():
        assert torch.equal(found[name], weight.detach().to(dtype))


def test_a_full_shared_memory_is_not_used(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = load_policy(base_folder)
    (tmp_path / "other").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other"))
    monkeypatch.setattr(vllm_engine, "SHARED_MEMORY", tmp_path)
    free = {tmp_path: 1000, tmp_path / "other": 10**9}
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free[path]))
    with handing_over(model, torch.float32)._written_weights() as folder:
        assert Path(folder).parent == tmp_path / "other"
    free[tmp_path / "other"] = 1000
    with (
        pytest.raises(UserError, match=r"no room for them: .*other has 0\.0 GB.*TMPDIR"),
        handing_over(model, torch.float32)._written_weights(),
    ):
        pass


def no_space(*given: object, **named: object) -> None:
    raise OSError("no space is left")


@pytest.mark.parametrize("what", ["TemporaryDirectory", "save_file"])
def test_all_weights_are_brought_together_though_they_cannot_be_written(
    what: str, base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or those who hold the other shards would wait."""
    model, _ = load_policy(base_folder)
    walked = []

    def watched(policy: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
        for name, value in full_weights(policy):
            walked.append(name)
            yield name, value

    monkeypatch.setattr(vllm_engine, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(vllm_engine, "FILE_BYTES", 20_000)
    monkeypatch.setattr(vllm_engine, "full_weights", watched)
    monkeypatch.setattr(vllm_engine, what, no_space)
    with (
        pytest.raises(UserError, match="cannot be handed over to vLLM: no space is left"),
        handing_over(model, torch.float32)._written_weights(),
    ):
        pass
    assert walked == [name for name, _ in model.named_parameters()]
    assert list(tmp_path.iterdir()) == []


def test_two_processes_with_a_shard_each_end_together_where_one_cannot_write(
    base_folder: str, tmp_path: Path
) -> None:
    assert together(several(2, "sharded"), tmp_path, cannot_write, base_folder) == {2}
    assert printed(tmp_path).count("UserError: the weights cannot be handed over") == 2


def cannot_write(folder: Path, hardware: Hardware, base: str) -> None:
    vllm_engine.save_file = no_space
    vllm_engine.FILE_BYTES = 20_000
    model, _ = load_policy(base)
    processes = processes_now()
    shard(Scorer(model), torch.device("cpu"))
    with handing_over(model, torch.float32, processes)._written_weights():
        pass


def test_unused_memory_is_given_back_when_the_weights_are_written(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bringing shards together fills torch's cache: what is given back before is not enough."""
    files = []

    def load(child: Child, message: object) -> None:
        raise UserError("the end of what is looked at")

    monkeypatch.setattr(vllm_engine, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: files.extend(tmp_path.glob("*/*")))
    monkeypatch.setattr(Child, "ask", load)
    model, _ = load_policy(base_folder)
    with pytest.raises(UserError, match="the end"):
        handing_over(model, torch.float32).sync()
    assert [file.name for file in files] == ["00000.safetensors"]


def handing_over(
    model: PreTrainedModel, dtype: torch.dtype, processes: Processes = ALONE
) -> VllmEngine:
    """An engine whose process is never spoken to."""
    nobody = object.__new__(Child)
    per_node = processes.count
    return VllmEngine(nobody, Scorer(model), model, dtype, 100, PROBE, processes, per_node)


def test_a_weight_that_was_not_taken_over_is_told(tmp_path: Path) -> None:
    """vLLM's embeddings are filled up to a round number of rows; its linears have other shapes."""
    model = torch.nn.ModuleDict({"embed": torch.nn.Embedding(64, 8), "out": torch.nn.Linear(3, 5)})
    written = {"embed.weight": torch.randn(35, 8), "out.weight": torch.randn(5, 4)}
    save_file(written, tmp_path / "00000.safetensors")
    with pytest.raises(RuntimeError, match=r"embed\.weight is not as it was given"):
        require_taken_over(model, str(tmp_path))
    with torch.no_grad():
        model["embed"].weight[:35] = written.pop("embed.weight")
    require_taken_over(model, str(tmp_path))
    save_file(written, tmp_path / "00000.safetensors")
    with pytest.raises(RuntimeError, match="keeps no weight as it was given"):
        require_taken_over(model, str(tmp_path))


@pytest.mark.parametrize(
    ("engine_dtype", "dtype", "limit"),
    [
        ("float32", "float32", 1e-4), ("bfloat16", "float32", 0.2),
        ("float32", "bfloat16", 0.2), ("bfloat16", "bfloat16", 0.2),
    ],
)  # fmt: skip
def test_the_limit_of_the_probe_is_the_hardware_s_or_what_rounding_needs(
    engine_dtype: str, dtype: str, limit: float
) -> None:
    rollout = {"engine": "vllm", "engine_dtype": engine_dtype}
    settings = WITH_VLLM.model_validate(
        {**WITH_VLLM.model_dump(), "rollout": rollout, "training": {"dtype": dtype}}
    )
    assert probe_limit(settings, CPU) == limit
    assert probe_limit(settings, Hardware(title="t", probe_gap=0.3)) == 0.3
