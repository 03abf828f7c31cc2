"""Command: say what every observation finds, in any study or import of the catalog."""

import difflib
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from analysis.catalog import open_catalog
from analysis.drawing import study_facts
from analysis.figures import finished
from analysis.observations.observation import Observation
from analysis.observations.registry import OBSERVATIONS
from analysis.queries import answer
from analysis.theme import PLOT_CONFIG
from exgrpo.errors import UserError
from pipeline.terminal import printable


@dataclass(frozen=True)
class Scope:
    """What is observed together: a whole study, or one import, which compares with no other."""

    title: str
    study: str
    run: str | None = None


def observe(
    results: Path, study: str | None, run: str | None, names: list[str], figures: Path | None
) -> None:
    """Print the sentences of the observations; with `figures` also draw each as an HTML page.

    Without a study and a run: of every study and every import in turn. Raises UserError on an
    unknown name, and where the catalog holds nothing of what was asked for.
    """
    chosen = _chosen(names)
    if figures is not None:
        _make_folder(figures)
    with open_catalog(results / "workbench.duckdb") as connection:
        for scope in _scopes(connection, study, run):
            print(printable(f"\n{scope.title}"))
            for observation in chosen:
                _observe(connection, scope, observation, figures)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"--figures {path}: {error.strerror}. Name a folder to write to."
        ) from error


def _chosen(names: list[str]) -> tuple[Observation, ...]:
    known = {observation.name: observation for observation in OBSERVATIONS}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]!r}? " if close else ""
            raise UserError(
                f"no observation is called {name!r}. {hint}There are: {', '.join(known)}."
            )
    return tuple(known[name] for name in names) or OBSERVATIONS


def _scopes(
    connection: duckdb.DuckDBPyConnection, study: str | None, run: str | None
) -> list[Scope]:
    runs = answer(connection, "study_runs")
    for column, asked in (("study", study), ("run", run)):
        if asked is not None:
            known = runs[column].unique().sort().to_list()
            if asked not in known:
                raise UserError(
                    f"the catalog holds no {column} {asked!r}. It holds: {', '.join(known)}."
                )
            runs = runs.filter(pl.col(column) == asked)
    scopes = []
    for row in runs.unique("study", maintain_order=True).iter_rows(named=True):
        of_study = runs.filter(pl.col("study") == row["study"])
        if run is not None or row["study"] == "imports":
            scopes += [Scope(each, row["study"], each) for each in of_study["run"]]
        else:
            scopes.append(Scope(f"study {row['study']}", row["study"]))
    return scopes


def _observe(
    connection: duckdb.DuckDBPyConnection,
    scope: Scope,
    observation: Observation,
    figures: Path | None,
) -> None:
    asked = {"study": scope.study} | ({"run": [scope.run]} if scope.run else {})
    frames = {name: answer(connection, name, **asked) for name in observation.queries}
    print(f"  {observation.title}")
    for line in observation.lines(frames):
        print(printable(f"    {line}"))
    if figures is not None:
        facts = study_facts(scope.study, answer(connection, "study_runs", **asked))
        folder = figures / (scope.run or scope.study)
        folder.mkdir(parents=True, exist_ok=True)
        finished(observation.draw(facts, frames), observation.title).write_html(
            folder / f"{observation.name}.html",
            include_plotlyjs="directory",
            config=PLOT_CONFIG,
            div_id=observation.name,
        )
