"""The resolved study on disk: which runs it plans, and which of them are trained."""

from pathlib import Path

from exgrpo.records import write_whole
from exgrpo.studies import Study
from pipeline.files import DONE, run_folder


def write_study(study: Study, results: Path) -> Path:
    """Write `results/<study>/study.json`, only when its content changes; returns the path.

    Catalog and app read it to know which runs count. An unchanged file keeps its time, so that
    the workflow re-makes nothing.
    """
    path = results / study.name / "study.json"
    content = study.model_dump_json(indent=2).encode()
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)
    return path


def finished_runs(study: Study, results: Path) -> list[str]:
    """The runs whose training has ended, in the order of the study."""
    return [run for run in study.runs if (run_folder(study, run, results) / DONE).is_file()]
