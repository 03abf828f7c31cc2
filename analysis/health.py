"""Run health: what to look at in a run, in words, from the rows of `health_runs`.

Limits are rules of thumb of ours: they say where to look, and judge nothing.
"""

from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl

from analysis.alarms import alarms
from analysis.queries import answer

TRUNCATED = 0.2  # share of fresh rollouts cut off: the length limit shapes the reward
CLIPPED = 0.2  # share of tokens whose gradient the clip removed
SIGNAL = 0.1  # share of groups with right and wrong answers: less is hardly a batch
EFFECTIVE = 0.5  # effective sample size of the ratios: fewer tokens carry the correction


def ill(connection: duckdb.DuckDBPyConnection, study: str) -> pl.DataFrame:
    """Every alarm of every run of a study: columns run, step, sentence. Raises UserError."""
    steps = answer(connection, "health_steps", study=study)
    found = [
        (run, alarm.step, alarm.sentence)
        for (run,), part in steps.group_by("run", maintain_order=True)
        for alarm in alarms(part)
    ]
    schema = {"run": pl.String, "step": pl.Int64, "sentence": pl.String}
    return pl.DataFrame(found, schema=schema, orient="row")


def look_at(row: dict[str, Any], missing: str | None, alarms: list[str]) -> str:
    """What is unusual about a run, most serious first; `nothing unusual` otherwise.

    row: of `health_runs`; missing: what its log lacks, from `log_coverage`.
    """
    return "; ".join(_words(row, missing, alarms)) or "nothing unusual"


def _words(row: dict[str, Any], missing: str | None, alarms: list[str]) -> Iterator[str]:
    yield from (sentence.rstrip(".") for sentence in alarms)
    if row["status"] in ("running", "stopped"):
        yield row["status"]
    if row["skipped_updates"]:
        yield f"{row['skipped_updates']} updates left out"
    if row["ungraded"]:
        yield f"{row['ungraded']} answers ungraded"
    for name, limit, below, words in (
        ("truncated_share", TRUNCATED, False, "of answers cut off"),
        ("clipped_share", CLIPPED, False, "of gradients clipped"),
        ("signal_share", SIGNAL, True, "of groups with signal"),
        ("ess_replayed", EFFECTIVE, True, "effective sample size of replayed tokens"),
    ):
        value = row[name]
        if value is not None and (value < limit if below else value > limit):
            yield f"{value:.0%} {words}"
    if missing:
        yield f"log lacks {missing}"
