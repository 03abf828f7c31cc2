"""Tables about runs, for reading: the list, the settings, where a run comes from, its checks."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from analysis.data_quality import Check
from analysis.provenance import Attempts, origin
from analysis.settings_diff import Difference, Flat, kind_of, shown
from analysis.status_words import duration

STATUS = {
    "done": "✓ done",
    "running": "▶ running",
    "stopped": "■ stopped",
    "imported": "⇥ imported",
}
STATES = {"ok": "✓ ok", "look": "! look", "nothing to check": "– nothing to check"}
LACKS = "(not set)"


def run_list(runs: pl.DataFrame) -> pl.DataFrame:
    """The rows of `run_rows` for the table: one row a run, times in UTC."""
    steps = [
        str(done) if planned in (None, done) else f"{done} of {planned}"
        for done, planned in runs.select("steps", "planned").iter_rows()
    ]
    return runs.select(
        "arm",
        "seed",
        pl.col("status").replace(STATUS),
        pl.Series("steps", ["" if text == "None" else text for text in steps], dtype=pl.String),
        pl.Series("time", [duration(seconds) for seconds in runs["seconds"]], dtype=pl.String),
        pl.col("sampled_tokens").alias("sampled tokens"),
        pl.col("trained_tokens").alias("trained tokens"),
        "attempts",
        "commit",
        pl.col("started").str.slice(0, 19).str.replace("T", " "),
        pl.col("finished").str.slice(0, 19).str.replace("T", " "),
        "hardware",
        "run",
    )


def settings_table(settings: Flat) -> pl.DataFrame:
    """One row a setting: `section.key`, its value as JSON, its type."""
    rows = [(name, shown(value), kind_of(value)) for name, value in settings.items()]
    schema = {"setting": pl.String, "value": pl.String, "type": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def difference_table(found: Sequence[Difference], left: str, right: str) -> pl.DataFrame:
    """One row a setting that two runs do not share; `left`, `right`: their names.

    The letter before a name keeps the columns apart, whatever the runs are called.
    """
    rows = [
        (each.name, LACKS if each.left is None else each.left,
         LACKS if each.right is None else each.right)
        for each in found
    ]  # fmt: skip
    schema = dict.fromkeys(("setting", f"A: {left}", f"B: {right}"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def origin_table(run: dict[str, Any], attempts: Attempts | None) -> pl.DataFrame:
    """Where a run comes from, one fact a row; what is not known is left out."""
    facts = {
        "status": run["status"],
        "started (UTC)": run["started"],
        "finished (UTC)": run["finished"],
        "training time": duration(run["seconds"]) or None,
        "attempts": run["attempts"],
        "superseded rows": (
            f"{attempts.rows:,} in {attempts.parts} parts" if attempts and attempts.parts else None
        ),
        "settings hash": run["settings_hash"],
        **origin(run),
    }
    rows = [(name, str(value)) for name, value in facts.items() if value is not None]
    return pl.DataFrame(rows, schema={"fact": pl.String, "value": pl.String}, orient="row")


def check_table(checks: Sequence[Check]) -> pl.DataFrame:
    """One row a check: its state in a word, what was found of how many, and what that means."""
    rows = [
        (STATES[check.state], check.title, check.found, check.of, _share(check),
         check.meaning)
        for check in checks
    ]  # fmt: skip
    schema = {
        "": pl.String,
        "check": pl.String,
        "found": pl.Int64,
        "of": pl.Int64,
        "share": pl.String,
        "what it means": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _share(check: Check) -> str:
    if not check.of:
        return ""
    percent = 100 * check.found / check.of
    return "0 %" if not check.found else "< 0.1 %" if percent < 0.1 else f"{percent:.1f} %"
