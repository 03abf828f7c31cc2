"""Stage: answer the study's named queries, compare the arms, judge the claims.

Writes `results/<study>/analyses/`: one Parquet file a query, `comparison.json`,
`observations.json` and `claims.json` (written last).
"""

import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from analysis.catalog import open_catalog
from analysis.claims import Ledger, judge, load_ledger
from analysis.closing import tested
from analysis.comparison import compare
from analysis.observations.registry import OBSERVATIONS
from analysis.queries import answer
from analysis.scores import benchmark_scores
from analysis.stage_outputs import Observed
from exgrpo.errors import UserError
from exgrpo.records import write_whole
from exgrpo.studies import Study
from pipeline.files import write_json

SCORED = ("arm_accuracy", "answer_votes", "benchmark_scores")
# What comparison, figures and report take; claims and observations name their own.
SHOWN = (
    "answer_votes",
    "arm_accuracy",
    "arm_summary",
    "benchmark_scores",
    "buffer_dynamics",
    "difficulty_vs_gain",
    "entropy_by_validity",
    "entropy_validity_rows",
    "gain_over_time",
    "study_runs",
    "validation_accuracy",
)


def queries_needed(ledger: Ledger) -> list[str]:
    """Every named query that a study's analysis asks, once, with its default parameters."""
    asked = [claim for claim in ledger.claims if claim.asks == "log"]
    needed = {
        *SHOWN,
        *(query for claim in asked for query in (claim.query, *claim.beside)),
        *(query for observation in OBSERVATIONS for query in observation.queries),
    }
    return sorted(needed)


def analyse(study: Study, results: Path) -> None:
    """Estimate every effect of the study with its interval.

    Raises UserError when the catalog is missing or holds no run of the study.
    """
    catalog, ledger = results / "workbench.duckdb", load_ledger()
    with open_catalog(catalog) as connection:
        frames = {
            name: answer(connection, name, study=study.name) for name in queries_needed(ledger)
        }
    if frames["study_runs"].is_empty():
        raise UserError(
            f"{catalog}: holds no run of study {study.name!r}. Train it first: "
            f"`exgrpo reproduce {study.name}`."
        )
    folder = results / study.name / "analyses"
    (folder / "claims.json").unlink(missing_ok=True)  # written last, so it says all is there
    for name, frame in frames.items():
        write_frame(folder / f"{name}.parquet", frame)
    write_json(folder / "comparison.json", _comparison(study, frames))
    write_json(folder / "observations.json", _observed(frames))
    claims = [
        claim.model_dump() | asdict(verdict)
        for claim, verdict in zip(ledger.claims, judge(ledger, frames), strict=True)
    ]
    write_json(folder / "claims.json", {"alpha": ledger.alpha, "claims": claims})


def _comparison(study: Study, frames: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """What the arms came to, as `analysis.stage_outputs.StageOutputs` describes it."""
    comparison = compare(
        frames["arm_accuracy"], frames["arm_summary"], frames["validation_accuracy"]
    )
    averages = {entry["arm"]: entry["accuracy"] for entry in comparison["arms"]}
    scores = benchmark_scores(averages, *(frames[name] for name in SCORED))
    for entry in comparison["arms"]:
        entry["scores"] = scores.get(entry["arm"], {})
    shared = study.any_run
    return comparison | {
        "planned": dict.fromkeys(study.arms, len(study.seeds)),
        "tested": tested(shared.evaluation.checkpoint, shared.questions.validate_on_tests),
    }


def _observed(frames: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """Every observation in words."""
    return [asdict(Observed(each.name, each.title, each.lines(frames))) for each in OBSERVATIONS]


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame as Parquet, whole or not at all."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    write_whole(path, buffer.getvalue())


def read_frames(folder: Path) -> dict[str, pl.DataFrame]:
    """The frames of an `analyses` folder, by query. UserError when one is missing."""
    return {
        name: pl.read_parquet(_existing(folder / f"{name}.parquet"), glob=False)
        for name in queries_needed(load_ledger())
    }


def read_json(path: Path) -> Any:
    """A JSON file of an `analyses` folder. UserError when it is missing."""
    return json.loads(_existing(path).read_text())


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise not_analysed(path, path.parts[-3])
    return path


def not_analysed(path: Path, study: str) -> UserError:
    """What to say when a stage needs the analyses of a study that was not analysed."""
    return UserError(f"{path}: missing. Run `exgrpo analyse --study {study}` first.")
