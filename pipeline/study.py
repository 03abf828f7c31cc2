"""The resolved study on disk: what the catalog and the app read to know which runs count."""

from pathlib import Path

from exgrpo.records import write_whole
from exgrpo.settings import Study


def write_study(study: Study, results: Path) -> Path:
    """Write `results/<study>/study.json`, only when its content changes; returns the path.

    An unchanged file keeps its time, so that the workflow re-makes nothing.
    """
    path = results / study.name / "study.json"
    content = study.model_dump_json(indent=2).encode()
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)
    return path
