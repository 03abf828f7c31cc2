"""`exgrpo plan`: what it prints, what it refuses, and that what it advises fits."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpu_check
import polars as pl
import pytest
import yaml
from test_plan_memory import case
from typer.testing import CliRunner

from exgrpo.errors import UserError
from exgrpo.hardware import Hardware
from exgrpo.plan.fit import problem, remedies
from exgrpo.plan.memory import Case, Lengths
from exgrpo.plan.shape import PublicModel, read_shape
from exgrpo.plan.volume import (
    Rates,
    hours,
    measured_log_bytes,
    replayed_a_step,
    volume_of,
)
from exgrpo.settings import RunSettings
from exgrpo.settings_files import parse, read_yaml
from exgrpo.studies import load_study
from exgrpo.tables.manifest import live_parts
from pipeline.cli import app
from pipeline.plan import Options, hardware_of, show_plan

CONFIG = Path(__file__).resolve().parents[1] / "config"
PAPER = 202_011  # trajectories at the end of the paper's 7 B run, which took 1.77 GB


def plan(*told: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(app, ["plan", *told], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def study_file(folder: Path, **settings: Any) -> Path:
    """A config folder with one study of two arms, `little`; the arms are the real ones."""
    config = folder / "config"
    (config / "studies").mkdir(parents=True)
    for shared in ("arms", "models", "datasets", "hardware"):
        (config / shared).symlink_to(CONFIG / shared)
    written = {"title": "t", "arms": ["on_policy", "exgrpo"], "seeds": [0, 1], "settings": settings}
    (config / "studies" / "little.yaml").write_text(yaml.safe_dump(written))
    return config


def test_tiny_is_planned_without_any_option() -> None:
    told = plan("tiny")
    assert "336,288 parameters" in told and "the study's own pretraining settings" in told
    assert "== on_policy: 4 run(s) of like cost ==" in told
    assert "== exgrpo, highest_entropy: 8 run(s) of like cost ==" in told
    assert "25,600" in told  # 100 steps of 32 questions, 8 rollouts each
    assert "No time is told without a throughput" in told and "hours" not in told
    assert "No --hardware given" in told


def test_every_study_can_be_planned() -> None:
    for path in sorted((CONFIG / "studies").glob("*.yaml")):
        assert "== the whole study:" in plan(path.stem), path


@pytest.mark.parametrize("given", [("1", "100"), ("10", "1000")])
def test_time_is_tokens_by_throughput(given: tuple[str, str]) -> None:
    rates = Rates(float(given[0]), float(given[1]))
    one = case(training={"steps": 7})
    volume = volume_of(one, 0.5, validation=3)
    parts = hours(one, volume, rates)
    assert parts["rollout"] == volume.rollout_tokens / rates.rollout / 3600
    assert parts["update"] == volume.update_tokens / rates.update / 3600
    assert parts["scoring"] == 0
    told = plan(
        "tiny", "--rollout-tokens-per-second", given[0], "--update-tokens-per-second", given[1]
    )
    assert "time, hours" in told and "GPU-hours" in told and "No time is told" not in told


def test_two_processes_take_half_the_time() -> None:
    rates = Rates(10, 20)
    one, two = (
        case(hardware=Hardware(title="t", processes=count), rollout={"engine": "vllm"})
        for count in (1, 2)
    )
    first, second = (hours(each, volume_of(each, 0.5, 3), rates) for each in (one, two))
    assert first["scoring"] == first["update"] / 3  # every token again, forward alone
    assert second == {part: value / 2 for part, value in first.items()}


def test_volume_counts_what_a_run_does() -> None:
    """Against the paper: 960 rollouts a step once half of the batch is replayed, not 1,024."""
    settings: dict[str, Any] = {
        "batch": {"questions": 128},
        "training": {"steps": 700},
        "experience": {"replay": "trajectory", "share": 0.5},
        "evaluation": {"every": 10, "validation_samples": 2},
    }
    one = case(**settings)
    assert replayed_a_step(one.settings) == 64
    volume = volume_of(one, PAPER / (700 * 960), validation=5)
    assert volume.rollouts == 700 * 960
    assert volume.validation_tokens == 71 * 5 * 2 * 40  # at step 0, 10, ... 700; 40 tokens each
    assert volume.update_tokens == 700 * 1024 * 50
    assert volume.stored == pytest.approx(PAPER)
    long = dataclasses.replace(one, lengths=Lengths(1024, 8192, 1024, 1095))
    stored = volume_of(long, PAPER / (700 * 960), 5).stored_values
    assert stored == pytest.approx(1.77e9, rel=0.01)


def real(model: str, sections: dict[str, Any], **hardware: Any) -> Case:
    """A run of a public model on so many GPUs; vLLM samples unless `sections` says otherwise."""
    file = CONFIG / "models" / f"{model}.yaml"
    settings: dict[str, Any] = {
        "rollout": {"engine": "vllm"},
        "training": {"dtype": "bfloat16"},
        "batch": {"micro_batch_tokens": 16_384},
    }
    run = RunSettings.model_validate({"study": "s", "arm": "a", "seed": 0, **settings, **sections})
    place = Hardware.model_validate(
        {"title": "t", "gpus": hardware.get("processes", 1), **hardware}
    )
    shape = parse(PublicModel, read_yaml(file), file).shape
    return Case(shape, run, place, Lengths(1024, 1024, 1024, 1024))


AGAIN = {"activation_checkpointing": True}
TORCH = {"rollout": {"batch": 512}}
CASES = {
    "activations": (
        real("qwen2.5-0.5b", {}, gpu_memory=24),
        r"activations .* on a GPU of 24 GB",
        ["activation_checkpointing: true", "micro_batch_tokens: 4096"],
    ),
    "optimiser": (
        real("qwen2.5-7b", {}, gpu_memory=141, processes=8, **AGAIN),
        r"AdamW's two moments 60\.9 GB",
        ["weights: sharded"],
    ),
    "more GPUs": (
        real("qwen2.5-7b", {}, gpu_memory=141, **AGAIN),
        r"AdamW's two moments 60\.9 GB",
        ["weights: sharded, with 1 GPU(s) a process and processes: 2"],
    ),
    "engine too large": (
        real("qwen2.5-1.5b", {}, gpu_memory=80, engine_memory=0.8, **AGAIN),
        r"vLLM's share \(80% of the GPU\)",
        ["engine_memory: 0.6", "engine: own, with gpus: 2"],
    ),
    "engine too small": (
        real(
            "qwen2.5-7b", {}, gpu_memory=80, processes=8, weights="sharded", engine_memory=0.1,
            **AGAIN,
        ),
        r"vLLM's share of a GPU, 8\.0 GB, .* does not hold its weights \(15\.2 GB\)",
        ["engine_memory: 0.7"],
    ),
    "two at once": (
        real("qwen2.5-1.5b", {}, gpu_memory=40),
        r"in all 87\.3 GB",
        ["activation_checkpointing: true and engine_memory: 0.3"],
    ),
    "cache of the torch engine": (
        real("smollm2-135m", TORCH, gpu_memory=12, **AGAIN),
        r"in the rollout: key-value cache",
        ["rollout.batch, a setting of the study: 64"],
    ),
    "nothing helps": (
        real("llama-3.1-8b", {}, gpu_memory=24),
        r"does not hold its weights \(16\.1 GB\)",
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_fit_is_told_with_values_that_would(name: str) -> None:
    one, told, changes = CASES[name]
    assert re.search(told, problem(one) or "")
    found = remedies(one)
    assert set(changes) <= set(found)
    assert changes or not found


def test_the_command_refuses_with_number_and_remedy() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "plan", "smollm2-135m", "--gpus", "1",
         "--gpu-memory", "4"],
        capture_output=True, text=True, cwd=CONFIG.parent,
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot fit" in done.stderr and "on a GPU of 4 GB" in done.stderr
    assert "peak" in done.stdout  # the numbers are told all the same


def test_the_worst_arm_decides_and_advice_of_the_command_fits(tmp_path: Path) -> None:
    """What it says is followed by hand, and then nothing is refused."""
    config = study_file(
        tmp_path,
        base={"path": "Qwen/Qwen2.5-0.5B-Instruct"},
        rollout={"engine": "vllm", "max_new_tokens": 1024},
        batch={"micro_batch_tokens": 65_536},
        training={"dtype": "bfloat16"},
    )
    study = load_study("little", config)
    with pytest.raises(UserError, match=r"exgrpo-.*cannot fit") as refused:
        show_plan(study, config, tmp_path, Options(gpus=1, gpu_memory=20))
    found = str(refused.value).split("micro_batch_tokens: ")[1]
    tokens = int(found.split(";")[0].split(".")[0])
    hardware = tmp_path / "config" / "hardware"
    hardware.unlink()
    hardware.mkdir()
    follows = {
        "title": "as told", "gpus": 1, "gpu_memory": 20, "activation_checkpointing": True,
        "micro_batch_tokens": tokens,
    }  # fmt: skip
    (hardware / "told.yaml").write_text(yaml.safe_dump(follows))
    show_plan(study, config, tmp_path, Options(hardware="told"))


@pytest.mark.parametrize(
    "options, message",
    [
        (Options(gpus=2), "--gpu-memory"),
        (Options(gpu_memory=80), "--gpus or --hardware"),
    ],
)
def test_half_told_hardware_is_an_error(options: Options, message: str) -> None:
    with pytest.raises(UserError, match=message):
        hardware_of(options, CONFIG)


def test_gpus_told_override_those_of_the_file() -> None:
    told = hardware_of(Options(hardware="one-gpu-24", gpus=4, gpu_memory=40), CONFIG)
    assert (told.gpus, told.processes, told.gpu_memory) == (4, 4, 40)
    assert told.micro_batch_tokens == hardware_of(Options("one-gpu-24"), CONFIG).micro_batch_tokens


def test_a_measured_file_is_scaled_by_size(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    models = [
        {"parameters": size, "rollout_tokens_per_second": 100.0, "update_tokens_per_second": 200.0}
        for size in (336_288, 10**9)
    ]
    file.write_text(json.dumps({"models": models}))
    given = plan("tiny", "--rollout-tokens-per-second", "100", "--update-tokens-per-second", "200")
    assert plan("tiny", "--measured", str(file)) == given
    file.write_text("{}")
    with pytest.raises(UserError, match=r"no measurement of benchmarks/gpu_check\.py"):
        plan("tiny", "--measured", str(file))


@pytest.mark.slow
def test_a_real_log_takes_the_disk_that_was_planned(tmp_path: Path) -> None:
    """Of a random model, three steps: the tables that grow with tokens."""
    base = tmp_path / "base"
    gpu_check.make_model("3M", base)
    settings = gpu_check.settings_of("float32", "torch", quick=True)
    place = gpu_check.hardware_of(on_gpu=False)
    gpu_check.train_steps(settings, base, gpu_check.make_questions(12), tmp_path, place)
    log = tmp_path / "log"
    parts = [part for part in live_parts(log) if part.table == "trajectories"]
    lengths = pl.concat([pl.read_parquet(log / each.path, glob=False) for each in parts])["length"]
    mean = Lengths(12, 32, 12, float(lengths.mean()))  # type: ignore[arg-type]
    one = Case(read_shape(base / "config.json"), settings, place, mean)
    volume = volume_of(one, 0, validation=1)
    assert volume.rollouts == len(lengths)
    measured = sum(measured_log_bytes(log).values())
    assert volume.log_bytes == pytest.approx(measured, rel=0.3)


@pytest.mark.slow
def test_the_gpu_check_runs_on_a_cpu_and_its_file_is_read(tmp_path: Path) -> None:
    found = gpu_check.check("tiny", "float32", "torch", quick=True)
    assert found["parameters"] == 336_288 and found["log_ratio_max"] < 1e-5
    for what in ("loss", "gradient_norm"):
        assert found[what] == pytest.approx(found[f"{what}_on_cpu"], rel=1e-4)
    assert found["rollout_tokens_per_second"] > 0 and found["update_share_of_peak"] > 0
    file = tmp_path / "gpu.json"
    file.write_text(json.dumps({"models": [found]}))
    rates = [f"{found[f'{part}_tokens_per_second']}" for part in ("rollout", "update")]
    given = ("--rollout-tokens-per-second", rates[0], "--update-tokens-per-second", rates[1])
    assert plan("tiny", "--measured", str(file)) == plan("tiny", *given)


def test_a_mean_beyond_the_limit_is_an_error() -> None:
    with pytest.raises(UserError, match="longer than the longest"):
        plan("tiny", "--mean-response", "65")
