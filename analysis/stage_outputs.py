"""What the stages `analyse` and `figures` left on disk, read back for the screens."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import plotly.graph_objects as go

from analysis.claims import Claim, Verdict
from analysis.errors import UserError
from analysis.figures import READINGS, Figure


@dataclass(frozen=True)
class Observed:
    """What an observation found in a study, in sentences."""

    name: str
    title: str
    lines: list[str]


@dataclass(frozen=True)
class StageOutputs:
    """A study's comparison, verdicts, observations and figures.

    The comparison is that of `analysis.comparison.compare`, and of each arm the `scores` by
    benchmark, as `analysis.scores` makes them; with `planned`: the number of runs that the study
    plans for each arm, those not finished included; and `tested`: which checkpoint, in words.
    Claims come in ledger order.
    Figures are read when they are asked for, each by itself: a screen shows few of them at once.
    """

    folder: Path
    comparison: dict[str, Any]
    verdicts: list[tuple[Claim, Verdict]]
    observed: list[Observed]

    @property
    def figures(self) -> list[Figure]:
        """Every figure that was drawn, in the order of the report."""
        return [drawn for name in READINGS if (drawn := self.figure(name)) is not None]

    def figure(self, name: str) -> Figure | None:
        """One figure; None where it was not drawn yet. It was checked when it was written."""
        path = self.folder / "figures" / f"{name}.json"
        if not path.is_file():
            return None
        plot = go.Figure(json.loads(path.read_text()), _validate=False)
        return Figure(name, READINGS[name], plot)


def read_stage_outputs(results: Path, study: str) -> StageOutputs | None:
    """The outputs of a study's last analysis; None when it was not analysed yet.

    `claims.json` is written last, so its presence means that the rest is whole. Figures may
    still be missing. Raises UserError when another version of the workbench wrote them.
    """
    folder = results / study
    verdicts = read_verdicts(results, study)
    if verdicts is None:
        return None
    return StageOutputs(
        folder=folder,
        comparison=_comparison(folder / "analyses" / "comparison.json", study),
        verdicts=verdicts,
        observed=_observed(folder / "analyses" / "observations.json", study),
    )


def read_verdicts(results: Path, study: str) -> list[tuple[Claim, Verdict]] | None:
    """The ledger as the study's last analysis judged it; None when it was not analysed yet.

    Raises UserError when another version of the workbench wrote it.
    """
    path = results / study / "analyses" / "claims.json"
    if not path.is_file():
        return None
    try:
        verdicts = [_verdict(item) for item in json.loads(path.read_text())["claims"]]
    except (ValueError, KeyError, TypeError) as error:
        raise _other_version(path, study, str(error).splitlines()[0]) from error
    if not verdicts:
        raise _other_version(path, study, "no claim")
    return verdicts


def _comparison(path: Path, study: str) -> dict[str, Any]:
    try:
        comparison: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise _other_version(path, study, str(error).splitlines()[0]) from error
    for key in ("planned", "tested"):
        if key not in comparison:
            raise _other_version(path, study, f"no key {key!r}")
    scores = [found for entry in comparison["arms"] for found in entry["scores"].values()]
    if any("ungraded" not in found for found in scores):
        raise _other_version(path, study, "no key 'ungraded'")
    return comparison


def _observed(path: Path, study: str) -> list[Observed]:
    try:
        return [Observed(**item) for item in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError) as error:
        raise _other_version(path, study, str(error).splitlines()[0]) from error


def _other_version(path: Path, study: str, found: str) -> UserError:
    return UserError(
        f"{path}: another version of the workbench wrote it: {found}. "
        f"Write it again with `exgrpo analyse --study {quote(study)}`."
    )


def _verdict(item: dict[str, Any]) -> tuple[Claim, Verdict]:
    fields = {field.name for field in dataclasses.fields(Verdict)}
    return (
        Claim(**{name: value for name, value in item.items() if name in Claim.model_fields}),
        Verdict(**{name: value for name, value in item.items() if name in fields}),
    )
