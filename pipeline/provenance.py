"""What the table `runs` keeps about a run besides its settings."""

import importlib.metadata
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from exgrpo.hardware import CPU, Hardware
from exgrpo.settings import RunSettings, content_hash
from exgrpo.studies import Study
from pipeline.files import base_path

LIBRARIES = ("torch", "transformers", "accelerate", "math-verify", "polars", "duckdb")


def now() -> str:
    """The time in UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def run_row(
    study: Study,
    run: str,
    settings: RunSettings | None,
    results: Path,
    given: Hardware = CPU,
) -> dict[str, Any]:
    """The part of a `runs` row that is known at the start; settings None is the base model."""
    shared = settings or study.any_run
    facts = settings.model_dump(mode="json") if settings else {"base": shared.base.model_dump()}
    return {
        "run": run,
        "study": study.name,
        "arm": settings.arm if settings else "base",
        "seed": settings.seed if settings else None,
        "world": shared.world,
        "base_model": base_path(study, results),
        "settings": json.dumps(facts, sort_keys=True),
        "settings_hash": settings.hash if settings else content_hash(facts),
        "versions": json.dumps(
            {"python": platform.python_version()}
            | {library: importlib.metadata.version(library) for library in LIBRARIES}
        ),
        "commit": commit(),
        "hardware": hardware(given),
        "started": now(),
        "status": "running",
    }


def commit() -> str | None:
    """The git commit of the code, `-dirty` when tracked files differ; None outside a checkout."""
    root = Path(__file__).resolve().parents[1]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def hardware(given: Hardware) -> str:
    """Device, processor and threads of a process, and of several how many and how they share."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    own = (
        f"{device}, {platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    )
    if given.all_processes == 1:
        return own
    nodes = f"{given.nodes} nodes of " if given.nodes > 1 else ""
    return f"{own}, {nodes}{given.processes} processes, weights {given.weights}"
