"""What a run's log lacks or has wrong: counts of the named queries as checks, each in words.

`quality_trajectories`, `quality_steps` and `quality_evaluations` count; `log_coverage` says what
should be there; here is what that means for whoever reads the run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl

from analysis.catalog import lake_of
from analysis.lake import check_there, read_entry
from analysis.provenance import Attempts
from analysis.storage import open_lake
from exgrpo.tables import TOKENS, TRAJECTORIES
from exgrpo.tables.schema import SCHEMA_VERSION

Row = Mapping[str, Any]
State = Literal["ok", "look", "nothing to check"]


@dataclass(frozen=True)
class Check:
    """One check of a run: how many of how many were found.

    rows: the trajectories found are those of the query `quality_rows` for check `name`. step: the
    first step that is concerned, where one is known.
    """

    name: str
    title: str
    found: int
    of: int
    meaning: str
    rows: bool = False
    step: int | None = None

    @property
    def state(self) -> State:
        if not self.of:
            return "nothing to check"
        return "look" if self.found else "ok"


# Column of `quality_trajectories`, what it is a share of, title and meaning.
_TRAJECTORIES = (
    ("duplicate_id", "trajectories", "with an id that is there twice",
     "A link to such an id opens only one of them; lineage counts both."),
    ("no_question", "trajectories", "without a known question",
     "They are in no comparison by question, and their prompt cannot be shown."),
    ("no_response", "trajectories", "without a text",
     "There is nothing to read or to search."),
    ("no_length", "trajectories", "without a length",
     "They are in no mean or filter by length."),
    ("ungraded", "trajectories", "ungraded",
     "The grader failed or was not asked: they count neither as right nor as wrong."),
    ("no_entropy", "trajectories", "without an entropy",
     "They are in no analysis of entropy, and cannot be told apart by it."),
    ("no_ratio", "with_gradient", "with a gradient but no importance ratio",
     "How far the policy has moved from them is not known."),
    ("no_source", "replayed", "replayed, without the id of their source",
     "Lineage cannot say where they were first sampled."),
    ("not_finite", "trajectories", "with a value that is infinite or no number",
     "So are the means over them. Look at the steps that they come from."),
)  # fmt: skip

_EVALUATIONS = (
    ("no_question", "of an unknown question", "They are in no comparison by question."),
    ("ungraded", "ungraded", "The grader failed: accuracy leaves them out."),
    ("no_response", "without a text", "There is nothing to read; they count as they were graded."),
    ("not_finite", "with a value that is infinite or no number", "So are the means over them."),
)


def trajectory_checks(row: Row | None) -> list[Check]:
    """The checks of `quality_trajectories`; `row` is the run's, None where it has none."""
    counts = row or {}
    return [
        Check(name, f"Trajectories {title}", counts.get(name, 0), counts.get(of, 0), meaning, True)
        for name, of, title, meaning in _TRAJECTORIES
    ]


def step_checks(row: Row | None) -> list[Check]:
    """The checks of `quality_steps`."""
    if row is None:
        return [Check("steps", "Steps missing in between", 0, 0, "No step is logged.")]
    span = row["last_step"] - row["first_step"] + 1
    return [
        Check("absent", "Steps missing in between", row["absent"], span,
              "Curves jump over them." + _first(row["first_absent"])),
        Check("step_entropy", "Steps without an entropy", row["no_entropy"], row["steps"],
              "The entropy curve has gaps."),
        Check("step_numbers", "Steps with a loss, gradient, reward or entropy that is no number",
              row["not_finite"], row["steps"],
              "Training may have broken there." + _first(row["first_not_finite"]),
              step=row["first_not_finite"]),
        Check("skipped", "Steps with an update left out", row["skipped"], row["steps"],
              "The gradient was huge or no number." + _first(row["first_skipped"]),
              step=row["first_skipped"]),
    ]  # fmt: skip


def evaluation_checks(row: Row | None) -> list[Check]:
    """The checks of `quality_evaluations`."""
    counts = row or {}
    return [
        Check(f"evaluation_{name}", f"Test samples {title}", counts.get(name, 0),
              counts.get("samples", 0), meaning)
        for name, title, meaning in _EVALUATIONS
    ]  # fmt: skip


def coverage_checks(row: Row) -> list[Check]:
    """The checks of `log_coverage`: what should be there by what the run itself says."""
    expected = row["trajectories_expected"]
    return [
        Check("rows_of_steps", "Steps done that are not logged",
              max(0, row["steps_expected"] - row["steps"]), row["steps_expected"],
              "What happened there cannot be read."),
        Check("groups_not_here", "Groups logged but not here",
              max(0, row["groups_expected"] - row["groups"]), row["groups_expected"],
              "This is a sample of the log, or a part of it was lost: what is counted over "
              "trajectories is counted over what is here."),
        Check("trajectories_lost", "Trajectories counted by their group but not logged",
              max(0, expected - row["trajectories"]), expected,
              "Shares over what is there may be off."),
        Check("small_groups", "Groups with fewer rollouts than others", row["small_groups"],
              row["groups"], "Some rollouts of the group are not logged."),
        _token_floats(row),
        Check("validations", "Validations missing",
              max(0, (row["validations_expected"] or 0) - row["validations"]),
              row["validations_expected"] or 0, "The learning curve has gaps."),
    ]  # fmt: skip


def _token_floats(row: Row) -> Check:
    """Steps count the floats of the whole log: of a sample that says nothing."""
    title = "Trajectories without token entropies and log-probabilities"
    if sampled(row):
        return Check("token_floats", title, 0, 0, "They are only counted of a whole log.")
    lacking = row["trajectories"] - row["float_trajectories"]
    meaning = "Their tokens have no colours, and they are in no analysis by token."
    return Check("token_floats", title, lacking, row["trajectories"], meaning)


def attempt_checks(found: Attempts | None) -> list[Check]:
    """Whether a later attempt did a part of the log again."""
    parts = found.parts if found else 0
    meaning = "The log of this run is not in the results folder."
    if found:
        meaning = (
            f"{found.rows:,} rows of an attempt that was cut short and done again are left out."
            if parts
            else f"Started {found.started} times, and nothing was done twice."
            if found.started > 1
            else "Started once."
        )
    return [Check("attempts", "Parts of the log that were superseded", parts,
                  max(parts, 1) if found else 0, meaning)]  # fmt: skip


def file_checks(files: pl.DataFrame) -> list[Check]:
    """Whether every file of the run has this workbench's schema version, and tokens are there.

    files: as `analysis.provenance.lake_files` gives them.
    """
    rows = dict(files.select("table", "rows").iter_rows())
    trajectories = rows.get(TRAJECTORIES.name, 0)
    versions = files["schema"].drop_nulls()
    return [
        Check("schema", "Files of another schema version",
              int((versions != str(SCHEMA_VERSION)).sum()), versions.len(),
              f"This workbench writes version {SCHEMA_VERSION}; missing columns read as empty."),
        Check("tokens", "Trajectories without tokens",
              max(0, trajectories - rows.get(TOKENS.name, 0)), trajectories,
              "They can be read as text, but not token by token."),
    ]  # fmt: skip


def judge_checks(rows: Iterable[Row]) -> list[Check]:
    """How often a judge and the exact check differ: the rows of `verifier_disagreement`."""
    return [
        Check(f"judge_{number}", f"Verdicts of judge {row['judge']} against `{row['against']}`",
              row["judge_only"] + row["exact_only"], row["compared"],
              f"The judge alone says yes to {row['judge_only']}, the log alone to "
              f"{row['exact_only']}; {row['undecided']} undecided.")
        for number, row in enumerate(rows)
    ]  # fmt: skip


def sampled(row: Row) -> str | None:
    """What is here of a log that had more, from a row of `log_coverage`; None of a whole one.

    The steps count all that was logged: groups, and trajectories with floats, which may be fewer
    than all.
    """
    here, logged = row["trajectories"], row["float_trajectories"]
    groups, all_groups = row["groups"], row["groups_expected"]
    if groups >= all_groups and here >= logged:
        return None
    of_groups = f", in {groups:,} of {all_groups:,} groups" if groups < all_groups else ""
    known = f"at least {logged:,}" if here < logged else "the"
    return f"A sample: {here:,} of {known} logged trajectories are here{of_groups}."


def coverage_sentence(row: Row) -> str:
    """What of the log's tokens is there, from a row of `log_coverage`."""
    total, logged = row["trajectories"], row["float_trajectories"]
    if not total:
        return "No trajectory is logged."
    if part := sampled(row):
        return part
    if not logged:
        return f"No token entropies are logged for any of the {total:,} trajectories."
    percent = 100 * logged / total
    shown = "100" if logged == total else f"{min(percent, 99.9):.1f}".removesuffix(".0")
    return (
        f"Token entropies and log-probabilities cover {shown} % of the trajectories "
        f"({logged:,} of {total:,})."
    )


def token_checks(
    connection: duckdb.DuckDBPyConnection, folder: Path, run: str
) -> list[Check] | None:
    """Read the run's token file, and say where its lists have unequal or other lengths.

    Reads every token of the run: a second a million trajectories or more. None where the lake is
    not in a folder or has no tokens of the run. Raises UserError on a torn file.
    """
    lake = open_lake(lake_of(connection), folder)
    entry = read_entry(lake, run)
    if not isinstance(lake, Path) or entry is None or TOKENS.name not in entry.tables:
        return None
    check_there([entry], lake)
    tokens = pl.scan_parquet(lake / entry.tables[TOKENS.name].path, glob=False)
    lists = ("behaviour_logprobs", "logprobs", "entropies")
    length = pl.col("token_ids").list.len()
    counted = tokens.select(
        "trajectory",
        tokens=length,
        unequal=pl.any_horizontal(
            (pl.col(name).list.len() != length).fill_null(False) for name in lists
        ),
    ).collect(engine="streaming")
    with connection.cursor() as cursor:
        sql = "SELECT trajectory, length FROM trajectories WHERE run = $run"
        known = cursor.sql(sql, params={"run": run}).pl()
    both = known.join(counted, on="trajectory", how="inner").drop_nulls("length")
    return [
        Check("unequal", "Trajectories whose token lists differ in length",
              int(counted["unequal"].sum()), counted.height,
              "A token's entropy may stand beside another token."),
        Check("other_length", "Trajectories with more or fewer tokens than their length",
              both.filter(pl.col("tokens") != pl.col("length")).height, both.height,
              "The text and the tokens are not of the same response."),
    ]  # fmt: skip


def _first(step: int | None) -> str:
    return "" if step is None else f" The first: step {step}."
