"""A working folder as a user has it, and the real `exgrpo` and Snakemake called in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = "config/studies/smoke.yaml"


def project(folder: Path) -> Path:
    """A working folder with the shipped studies and arms, and no results."""
    shutil.copytree(ROOT / "config", folder / "config")
    return folder


def exgrpo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def snakemake(
    folder: Path, *arguments: str, workflow: Path = ROOT / "workflow"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(workflow / "Snakefile")]
    # Its rules call `exgrpo`, which is found where this Python is, activated or not.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )


def planned_jobs(
    folder: Path, study: str, workflow: Path = ROOT / "workflow", *options: str
) -> dict[str, int]:
    """Jobs that a dry run would do, by rule."""
    arguments = ("--dry-run", "--nolock", "--cores", "2", *options, "--config", f"study={study}")
    done = snakemake(folder, *arguments, workflow=workflow)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def append(path: Path, line: str) -> None:
    path.write_text(f"{path.read_text()}{line}\n")
