"""The command `exgrpo scores`: every benchmark of a study, arm by arm, with intervals."""

import json
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.closing import (
    SCORES_HEADER,
    accuracy_meaning,
    benchmark_rows,
    interval,
    percent,
    scores_meaning,
)
from analysis.domains import DOMAINS, NAMES
from analysis.errors import UserError
from analysis.stage_outputs import read_stage_outputs
from pipeline.analyse import not_analysed
from pipeline.terminal import printable

NARROWEST = 150  # columns, where no terminal says how wide it is
LEFT = ("benchmark", "arm")


def show_scores(
    results: Path, study: str, benchmark: str | None = None, as_json: bool = False
) -> None:
    """Print the scores of a study as its last analysis found them; of one benchmark also by k.

    Raises UserError when the study was not analysed, and on an unknown benchmark.
    """
    outputs = read_stage_outputs(results, study)
    if outputs is None:
        raise not_analysed(results / study / "analyses" / "comparison.json", study)
    comparison = outputs.comparison
    known = comparison["benchmarks"]
    if benchmark is not None and benchmark not in known:
        raise UserError(f"unknown benchmark {benchmark!r}. Known: {', '.join(known) or 'none'}.")
    if as_json:
        print(json.dumps(_as_json(comparison, benchmark), indent=2))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=NARROWEST)
    rows = [row for row in benchmark_rows(comparison) if benchmark in (None, row[0])]
    console.print(Text(printable(f"study {study}: {comparison['tested']}"), "bold"))
    console.print(_table(SCORES_HEADER, rows))
    console.print(Text(printable(scores_meaning(comparison)), "bright_black"))
    if benchmark is None:
        console.print(_table(("arm", *(NAMES[name] for name in DOMAINS)), _means(comparison)))
        console.print(Text(accuracy_meaning(comparison), "bright_black"))
    else:
        console.print(_table(("arm", "k", "pass@k", "maj@k"), _by_k(comparison, benchmark)))


def _table(header: tuple[str, ...], rows: list[list[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    for name in header:
        table.add_column(name, justify="left" if name in LEFT else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _means(comparison: dict[str, Any]) -> list[list[str]]:
    """Accuracy in and out of distribution, an arm a row."""
    return [
        [entry["arm"]]
        + [interval(entry["domains"].get(name, {}).get("accuracy")) for name in DOMAINS]
        for entry in comparison["arms"]
    ]


def _by_k(comparison: dict[str, Any], benchmark: str) -> list[list[str]]:
    return [
        [entry["arm"], str(at["k"]), percent(at["pass_at_k"]), percent(at["maj_at_k"])]
        for entry in comparison["arms"]
        if benchmark in entry["scores"]
        for at in entry["scores"][benchmark]["by_k"]
    ]


def _as_json(comparison: dict[str, Any], benchmark: str | None) -> list[dict[str, Any]]:
    return [
        {"arm": entry["arm"], "benchmark": name, "tested": comparison["tested"], **found}
        for entry in comparison["arms"]
        for name, found in entry["scores"].items()
        if benchmark in (None, name)
    ]
