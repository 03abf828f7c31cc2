"""What the stages `analyse` and `figures` left on disk, read back for the screens."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.io

from analysis.claims import Claim, Verdict
from analysis.errors import UserError
from analysis.figures import FIGURES, Figure


@dataclass(frozen=True)
class StageOutputs:
    """A study's comparison (as `analysis.comparison.compare` makes it), verdicts and figures.

    Claims come in ledger order, figures in the order of the report.
    """

    comparison: dict[str, Any]
    verdicts: list[tuple[Claim, Verdict]]
    figures: list[Figure]


def read_stage_outputs(results: Path, study: str) -> StageOutputs | None:
    """The outputs of a study's last analysis; None when it was not analysed yet.

    `claims.json` is written last, so its presence means that the rest is whole. Figures may
    still be missing. Raises UserError when another version of the workbench wrote the verdicts.
    """
    folder = results / study
    claims = folder / "analyses" / "claims.json"
    if not claims.is_file():
        return None
    return StageOutputs(
        comparison=json.loads((folder / "analyses" / "comparison.json").read_text()),
        verdicts=_verdicts(claims, study),
        figures=[
            Figure(name, reading, plotly.io.from_json(path.read_text()))
            for name, (_, reading, _) in FIGURES.items()
            if (path := folder / "figures" / f"{name}.json").is_file()
        ],
    )


def _verdicts(path: Path, study: str) -> list[tuple[Claim, Verdict]]:
    try:
        return [_verdict(item) for item in json.loads(path.read_text())["claims"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: another version of the workbench wrote it: {str(error).splitlines()[0]}. "
            f"Write it again with `exgrpo analyse --study {study}`."
        ) from error


def _verdict(item: dict[str, Any]) -> tuple[Claim, Verdict]:
    fields = {field.name for field in dataclasses.fields(Verdict)}
    return (
        Claim(**{name: value for name, value in item.items() if name in Claim.model_fields}),
        Verdict(**{name: value for name, value in item.items() if name in fields}),
    )
