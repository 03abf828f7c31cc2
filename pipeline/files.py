"""Where the stages keep their files, and the marker that says a stage is done."""

import json
from pathlib import Path
from typing import Any

from exgrpo.errors import UserError
from exgrpo.records import write_whole
from exgrpo.settings import RunSettings, Study


def study_folder(study: Study, results: Path) -> Path:
    return results / study.name


def run_folder(study: Study, run: str, results: Path) -> Path:
    return study_folder(study, results) / "runs" / run


def evaluation_folder(study: Study, run: str, results: Path) -> Path:
    return study_folder(study, results) / "evaluations" / run


def question_file(study: Study, split: str, results: Path) -> Path:
    return study_folder(study, results) / "questions" / f"{split}.jsonl"


def base_path(study: Study, results: Path) -> str:
    """The model folder or hub name that training starts from."""
    return study.any_run.base.path or str(study_folder(study, results) / "base")


def run_settings(study: Study, run: str) -> RunSettings:
    """The settings of a run of the study. UserError when the study has no such run."""
    if run not in study.runs:
        raise UserError(
            f"study {study.name!r} has no run {run!r}. Its runs: {', '.join(study.runs)}."
        )
    return study.runs[run]


def mark_done(folder: Path, **facts: Any) -> None:
    """Write `done.json` in the folder: the last act of a stage, after all else is on disk."""
    write_json(folder / "done.json", facts)


def write_json(path: Path, value: Any) -> None:
    write_whole(path, (json.dumps(value, indent=2) + "\n").encode())
