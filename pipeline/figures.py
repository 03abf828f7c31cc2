"""Stage: draw the figures of a study.

Writes `results/<study>/figures/`: for every figure `<name>.json` (Plotly), `<name>.html` (opens
offline, with one `plotly.min.js` beside them) and, where a Chrome or Chromium is installed, a
static `<name>.svg`.
"""

from pathlib import Path
from typing import Any

from analysis.drawing import study_facts
from analysis.figures import Figure, all_figures
from analysis.theme import PLOT_CONFIG
from exgrpo.records import write_whole
from exgrpo.studies import Study
from pipeline.analyse import read_frames, read_json


def make_figures(study: Study, results: Path) -> None:
    """Draw every figure from the study's `analyses` folder. UserError when that is missing."""
    folder = results / study.name / "figures"
    figures = draw_figures(study.name, results)
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        write_whole(folder / f"{figure.name}.json", figure.plot.to_json().encode())
        figure.plot.write_html(
            folder / f"{figure.name}.html",
            include_plotlyjs="directory",
            config=PLOT_CONFIG,
            div_id=figure.name,
        )
    if reason := write_static(figures, folder):
        print(f"figures: no static images: {reason}")
    print(f"figures: {len(figures)} in {folder}")


def draw_figures(study: str, results: Path) -> list[Figure]:
    """The figures of a study, drawn from its `analyses` folder."""
    analyses = results / study / "analyses"
    frames = read_frames(analyses)
    facts = study_facts(study, frames["study_runs"])
    return all_figures(facts, frames, read_json(analyses / "comparison.json"))


def write_static(figures: list[Figure], folder: Path) -> str | None:
    """Write every figure as SVG with one start of the browser; the reason if that cannot be."""
    for old in folder.glob("*.svg"):
        old.unlink()
    try:
        import kaleido
        from kaleido import PageGenerator
    except ImportError:
        return "the package kaleido is not installed. `pip install '.[static]'`, then run again."
    if not _browser():
        return "no Chrome or Chromium was found. Install one, then run again."
    jobs: list[Any] = [
        {"fig": figure.plot.to_dict(), "path": str(folder / f"{figure.name}.svg")}
        for figure in figures
    ]
    try:
        page = PageGenerator(mathjax=False)  # the default would ask the network
        kaleido.write_fig_from_object_sync(jobs, kopts={"page_generator": page})
    except Exception as error:  # a broken browser must not cost the figures already written
        return f"the browser failed: {str(error).splitlines()[0] if str(error) else error!r}"
    return None


def _browser() -> str | None:
    from choreographer.browsers.chromium import Chromium

    found = Chromium.find_browser(skip_local=False)
    return str(found) if found else None
