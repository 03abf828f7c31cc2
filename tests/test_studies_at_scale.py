"""The studies for people with GPUs: the paper's values, their prompts, and what differs, by name.

That every study has a plan of jobs: `test_workflow.py`. Two of them are run by
`test_studies_in_little.py`.
"""

import csv
import re
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from typer.testing import CliRunner, Result

from exgrpo.hardware import load_hardware
from exgrpo.settings import Objective, RunSettings
from exgrpo.studies import Study, load_study
from pipeline.cli import app

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "config"
PROMPTS = ROOT / "tests" / "prompts"
DOCS = (ROOT / "docs" / "paper-studies.md").read_text()

# Paper and released code (facts 2 and 3), for all its backbones.
PAPER: dict[str, Any] = {
    "rollout.group_size": 8,
    "rollout.temperature": 1.0,
    "rollout.max_new_tokens": 8192,
    "questions.max_prompt_tokens": 1024,
    "questions.train.dataset": "openr1-math-46k",
    "batch.questions": 128,
    "batch.updates": 2,
    "batch.passes": 1,
    "optimiser.learning_rate": 1e-6,
    "optimiser.weight_decay": 0.01,
    "optimiser.grad_clip": 1.0,
    "optimiser.grad_skip": 500.0,
    "experience.share": 0.5,
    "experience.start": 0.35,
    "experience.latch": True,
    "experience.draw": "gaussian",
    "experience.mu": 0.5,
    "experience.sigma": 1.0,
    "experience.sigma_unit": "count",
    "experience.order": "lowest",
    "experience.metric": "mean_entropy",
    "buffer.store": "successes",
    "buffer.capacity": None,
    "buffer.per_question": None,
    "buffer.max_age": None,
    "buffer.count_replayed": True,
    "buffer.on_failure": "stays",
    "buffer.retire": True,
    "objective.standardise": False,
    "objective.denominator": "recorded",
    "objective.shaping": "ratio",
    "objective.beta": 0.1,
    "objective.clip_low": 0.2,
    "objective.clip_high": 0.2,
    "objective.clip_before_start": "fresh",
    "objective.entropy_bonus": 0.001,
    "objective.kl_reference": 0.0,
    "objective.kl_previous": 0.0,
    "training.steps": 500,
    "training.checkpoint_every": 50,
    "evaluation.every": 10,
    "evaluation.validation_samples": 1,
    "evaluation.test_samples": 1,
    "evaluation.temperature": 0.6,
    "evaluation.max_new_tokens": 8192,
    "prompt.template": "chat",
    "prompt.system": "think",
    "prompt.opening": "<think>\n",
    "grading.think": True,
    "grading.think_at_test": False,
}
LLAMA = {"experience.start": "at_once"}
OWN: dict[str, dict[str, Any]] = {
    "qwen2.5-math-7b": {"training.steps": 700},
    "qwen2.5-math-1.5b": {},
    "qwen2.5-7b-instruct": {},
    "llama-3.1-8b": LLAMA
    | {
        "prompt.template": "completion", "prompt.system": None, "prompt.opening": "",
        "grading.think": False,
    },
    "llama-3.1-8b-instruct": LLAMA,
    "luffy-7b-continual": {},
}  # fmt: skip
# Nine benchmarks: domain and answers a question.
BENCHMARKS = {
    "aime24": ("in", 32), "aime25": ("in", 32), "amc23": ("in", 32), "math500": ("in", 1),
    "minerva": ("in", 1), "olympiadbench": ("in", 1), "arc-challenge": ("out", 1),
    "gpqa-diamond": ("out", 1), "mmlu-pro": ("out", 1),
}  # fmt: skip
FORMS = {
    "qwen2.5-math-7b": "qwen-think",
    "qwen2.5-math-1.5b": "qwen-think",
    "luffy-7b-continual": "qwen-think",
    "qwen2.5-7b-instruct": "qwen-instruct-think",
    "llama-3.1-8b": "llama-base",
    "llama-3.1-8b-instruct": "llama-instruct-think",
}


@cache
def study(name: str) -> Study:
    return load_study(name, CONFIG)


def value(settings: RunSettings, path: str) -> Any:
    for key in path.split("."):
        settings = getattr(settings, key)
    return settings


@pytest.mark.parametrize("name", OWN)
def test_settings_are_the_papers(name: str) -> None:
    runs = {run.arm: run for run in study(name).runs.values()}
    assert list(runs) == ["on_policy", "exgrpo", "question_replay"]
    expected = PAPER | OWN[name]
    for run in runs.values():
        assert {path: value(run, path) for path in expected} == expected
        benchmarks = run.questions.benchmarks
        assert run.questions.tests == benchmarks, "no made questions"
        asked = {
            key: (each.domain, each.samples or run.evaluation.test_samples)
            for key, each in benchmarks.items()
        }
        assert asked == BENCHMARKS
        assert {each.dataset for each in benchmarks.values()} == set(BENCHMARKS)
        assert all(each.limit is None for each in benchmarks.values())
    replays = {arm: run.experience.replay for arm, run in runs.items()}
    assert replays == {"on_policy": "none", "exgrpo": "trajectory", "question_replay": "question"}
    clips = {arm: run.objective.clip_after_start for arm, run in runs.items()}
    assert clips == {"on_policy": "fresh", "exgrpo": "none", "question_replay": "none"}


@pytest.mark.parametrize("name", OWN)
def test_prompts_are_those_of_the_papers_forms(name: str) -> None:
    """That the study gives this golden text: `test_prompts.py`."""
    golden = (PROMPTS / f"study-{name}.txt").read_text()
    assert golden == (PROMPTS / f"{FORMS[name]}.txt").read_text()


def test_the_single_gpu_study_is_small_and_real() -> None:
    made = study("qwen2.5-0.5b-gsm8k")
    assert set(made.arms) == {"on_policy", "exgrpo", "question_replay"} and len(made.seeds) >= 3
    run = made.any_run
    assert run.base.path == "Qwen/Qwen2.5-0.5B-Instruct"
    assert value(run, "questions.train.dataset") == "gsm8k-train"
    assert run.rollout.engine == "vllm"


# ---- what differs ----

ROW = re.compile(r"^\| (d\d+) \| (.+?) \| (.+?) \| (.+?) \| (.*?)\|$", re.MULTILINE)
ROWS = {row[0]: row[1:] for row in ROW.findall(DOCS)}
CODE = re.compile(r"`([^`]+)`")
FILES = {path.stem: path.read_text() for path in (CONFIG / "studies").glob("*.yaml")}


def quoted(cell: str) -> Any:
    """The value that a cell begins with, maybe after its source; None where it is words."""
    found = re.match(r"(?:\[[PC]\] )?`([^`]+)`", cell)
    return yaml.safe_load(found[1]) if found else None


def marked_keys(mark: str) -> set[tuple[str, str]]:
    """Study and key that a mark stands at: in its line, or in the comment above it."""
    found = set()
    for name, text in FILES.items():
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if f"[{mark}]" in line:
                at = next(each for each in lines[number:] if not each.strip().startswith("#"))
                found.add((name, at.split(":")[0].strip()))
    return found


def test_docs_and_files_have_the_same_marks() -> None:
    assert list(ROWS) == [f"d{number}" for number in range(1, len(ROWS) + 1)]
    marks = {mark for text in FILES.values() for mark in re.findall(r"\[(d\d+)\]", text)}
    assert marks == ROWS.keys()


@pytest.mark.parametrize("mark", ROWS)
def test_what_differs_is_set_where_it_is_marked(mark: str, tmp_path: Path) -> None:
    cell, here, there, undone = ROWS[mark]
    setting, *of = CODE.findall(cell)
    name = of[0] if of else "qwen2.5-math-7b"
    run = study(name).any_run
    found = value(run, setting)
    key_of = {key for file, key in marked_keys(mark) if file == name}
    assert key_of & set(setting.split(".")), f"{mark} stands at {key_of}"
    given = yaml.safe_load(FILES[name])["settings"]
    for key in setting.split("."):
        given = given[key]
    assert given == found, "written out, not a default that may change"
    if (documented := quoted(here)) is not None:
        assert found == documented
    if arms := CODE.findall(undone):
        (arm,) = arms
        run = over_the_main_study(arm, tmp_path)
        assert value(run, setting) == quoted(there) != found


def over_the_main_study(arm: str, folder: Path) -> RunSettings:
    """An arm that the study does not list, in a study that extends it."""
    for shared in ("arms", "datasets"):
        (folder / shared).symlink_to(CONFIG / shared)
    (folder / "studies").mkdir()
    main = folder / "studies" / "qwen2.5-math-7b.yaml"
    main.symlink_to(CONFIG / "studies" / main.name)
    own = {"title": "t", "extends": main.stem, "arms": [arm]}
    (folder / "studies" / "own.yaml").write_text(yaml.safe_dump(own))
    return load_study("own", folder).any_run


@pytest.mark.parametrize("name", [*OWN, "qwen2.5-0.5b-gsm8k"])
def test_the_docs_have_every_study_with_its_model_steps_and_start(name: str) -> None:
    (line,) = re.findall(rf"^\| `{re.escape(name)}` \|.*$", DOCS, re.MULTILINE)
    cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
    run = study(name).any_run
    start = run.experience.start
    said = "at once" if start == "at_once" else f"{float(start):.0%} right".replace("%", " %")
    assert (cells[1], cells[2], cells[-1]) == (run.base.path, str(run.training.steps), said)


# Study -> backbone, where the tables of the paper call it otherwise.
BACKBONES = {"luffy-7b-continual": "LUFFY-7B"}


@pytest.mark.parametrize("name", OWN)
def test_figures_of_the_paper_are_those_of_its_tables(name: str) -> None:
    with (ROOT / "analysis" / "paper" / "printed_averages.csv").open() as file:
        printed = {
            (row["backbone"].lower(), row["method"], row["domain"]): row["average"]
            for row in csv.DictReader(file)
        }
    (line,) = re.findall(rf"^\| `{re.escape(name)}` \|.*$", DOCS, re.MULTILINE)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    for method, cell in (("on-policy", cells[3]), ("ExGRPO", cells[4])):
        backbone = BACKBONES.get(name, name).lower()
        domains = ("in distribution", "out of distribution")
        assert cell == ", ".join(printed[backbone, method, domain] for domain in domains)


# ---- hardware ----

HARDWARE = {
    "cpu": 0, "two-processes": 0, "one-gpu-24": 1, "one-gpu-80": 1, "one-gpu-141": 1,
    "eight-gpus-80": 8, "two-nodes": 16,
}  # fmt: skip


def test_every_hardware_file_loads_and_says_what_a_scheduler_needs() -> None:
    names = {path.stem for path in (CONFIG / "hardware").glob("*.yaml")}
    assert names == HARDWARE.keys()
    for name, gpus in HARDWARE.items():
        made = load_hardware(name, CONFIG)
        assert made.nodes * made.gpus == gpus
        if gpus:
            assert made.gpu_memory and made.memory and made.hours
            assert (made.weights == "sharded") == (gpus > 1), "8 B does not fit one of them"
            assert "Not run on a GPU" in (CONFIG / "hardware" / f"{name}.yaml").read_text()
    assert load_hardware("two-processes", CONFIG).processes == 2


# Which studies the docs say fit where.
FITS = [
    *((name, hardware) for name in OWN for hardware in ("eight-gpus-80", "two-nodes")),
    ("qwen2.5-math-1.5b", "one-gpu-80"),
    ("qwen2.5-math-1.5b", "one-gpu-141"),
    ("qwen2.5-0.5b-gsm8k", "one-gpu-24"),
]


@pytest.mark.parametrize("name, hardware", FITS)
def test_by_calculation_every_study_fits_what_it_is_for(
    name: str, hardware: str, tmp_path: Path
) -> None:
    done = plan(name, hardware, tmp_path)
    assert done.exit_code == 0, done.exception
    made = load_hardware(hardware, CONFIG)
    peaks = [float(peak) for peak in re.findall(r"peak +([\d.]+) of", done.output)]
    assert made.gpu_memory and peaks and max(peaks) < made.gpu_memory


@pytest.mark.parametrize(
    "name, hardware",
    [
        ("qwen2.5-math-1.5b", "one-gpu-24"),
        ("qwen2.5-math-7b", "one-gpu-80"),
        ("qwen2.5-math-7b", "one-gpu-141"),
    ],
)
def test_by_calculation_a_study_does_not_fit_what_is_too_small(
    name: str, hardware: str, tmp_path: Path
) -> None:
    assert "cannot fit" in str(plan(name, hardware, tmp_path).exception)


def plan(name: str, hardware: str, results: Path) -> Result:
    options = ("--hardware", hardware, "--config", str(CONFIG), "--results", str(results))
    return CliRunner().invoke(app, ["plan", name, *options])


# ---- docs/scale.md ----

SCALE = (ROOT / "docs" / "scale.md").read_text()
# Which issues' lessons must be there: ranges of the list of traps.
TRAPS = {*range(16, 27), *range(32, 38), 45, *range(51, 61)}


def test_every_trap_is_in_the_table_and_every_test_named_is_there() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|", SCALE, re.MULTILINE)
    assert {int(number) for numbers in rows for number in numbers.split(", ")} == TRAPS
    for file, test in re.findall(r"`([\w/]+\.py)::(\w+)`", SCALE):
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{file}::{test}"


def test_the_docs_name_every_hardware_file_and_normaliser() -> None:
    for name in HARDWARE:
        assert f"`{name}`" in SCALE
    for name in get_args(Objective.model_fields["normaliser"].annotation):
        assert f"| `{name}` |" in SCALE
