"""The command `exgrpo claims`: the ledger, the paper's figures, and what a study says of them."""

import json
import string
import sys
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.claims import (
    Claim,
    Verdict,
    judge,
    load_ledger,
    show,
    show_effect,
    show_interval,
    show_paper,
    show_power,
)
from analysis.closing import CHOSEN_BY_TESTS
from analysis.errors import UserError
from analysis.paper import ask, paper_queries
from analysis.stage_outputs import read_stage_outputs, read_verdicts
from pipeline.analyse import not_analysed
from pipeline.summary import COLOURS
from pipeline.terminal import printable

Judged = tuple[Claim, Verdict]
COLUMNS = ("", "claim", "paper", "verdict", "here", "power")
NARROWEST = 110  # columns, where no terminal says how wide it is
ALONE = "No study is asked: what the paper has, and what its own tables decide. --study asks one."
MEANING = (
    "Paper: its own gap, of its own scale (exgrpo claims --claim ID). Here: the estimate with the "
    "interval that Holm's rule grants. Power: how often this study would find the effect that the "
    "ledger names, the paper's gap where it has one."
)


def show_claims(
    results: Path, study: str | None = None, claim: str | None = None, as_json: bool = False
) -> None:
    """Print the ledger, or all about one claim; with a study, as its last analysis judged it.

    claim: an id, C9a, or C9 for all its parts. Raises UserError on an unknown claim, and when the
    study was not analysed.
    """
    judged = [pair for pair in _judged(results, study) if _is(claim, pair[0].id)]
    if not judged:
        known = ", ".join(each.id for each in load_ledger().claims)
        raise UserError(f"unknown claim {claim!r}. Known: {known}.")
    if as_json:
        print(json.dumps([one.model_dump() | asdict(verdict) for one, verdict in judged], indent=2))
    elif claim is None:
        _print_ledger(judged, study, _caution(results, study))
    else:
        shown = [_everything(*pair, study) for pair in judged]
        print(printable("\n\n".join([*filter(None, [_caution(results, study)]), *shown])))


def show_paper_tables(name: str | None = None) -> None:
    """Print what can be asked about the paper's own tables, or the answer to one question.

    name: a question of `analysis.paper`. Raises UserError on an unknown one.
    """
    if name is None:
        table = Table("", "question", box=box.SIMPLE_HEAD, padding=(0, 1))
        for each, query in paper_queries().items():
            table.add_row(each, Text(query.purpose))
        _console().print(table)
        return
    answer = ask(name)
    query = paper_queries()[name]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for column, kind in answer.schema.items():
        table.add_column(column, justify="right" if kind.is_numeric() else "left")
    for row in answer.iter_rows():
        table.add_row(*(Text(_cell(value)) for value in row))
    console = _console()
    console.print(Text(query.purpose, "bold"))
    console.print(table)
    for column, meaning in query.columns.items():
        console.print(Text(f"{column}: {meaning}", "bright_black"))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else NARROWEST)


def _judged(results: Path, study: str | None) -> list[Judged]:
    if study is None:
        ledger = load_ledger()
        return list(zip(ledger.claims, judge(ledger, {}), strict=True))
    judged = read_verdicts(results, study)
    if judged is None:
        raise not_analysed(results / study / "analyses" / "claims.json", study)
    return judged


def _caution(results: Path, study: str | None) -> str:
    """Says so where a study's tested checkpoint was chosen by test questions, else nothing."""
    outputs = None if study is None else read_stage_outputs(results, study)
    if outputs is None or outputs.comparison["tested"] != CHOSEN_BY_TESTS:
        return ""
    return f"Tested: the {CHOSEN_BY_TESTS}; its accuracies are too high for questions that are new."


def _is(wanted: str | None, name: str) -> bool:
    return wanted is None or wanted in (name, name.rstrip(string.ascii_lowercase))


def _print_ledger(judged: list[Judged], study: str | None, caution: str) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    for name in COLUMNS:
        table.add_column(name, overflow="fold", no_wrap=name in ("", "paper", "power"))
    for claim, verdict in judged:
        id_, short, paper, word, here, power = ledger_cells(claim, verdict)
        if study is None and verdict.verdict == "not testable here":
            table.add_row(id_, Text(short), paper, "-", Text(claim.paper), power)
        else:
            table.add_row(id_, Text(short), paper, Text(word, COLOURS[word]), Text(here), power)
    console = _console()
    console.print(Text(printable(f"study {study}") if study else ALONE, "bold"))
    if caution:
        console.print(Text(caution, "yellow"))
    console.print(table)
    console.print(Text(MEANING, "bright_black"))


def ledger_cells(claim: Claim, verdict: Verdict) -> tuple[str, str, str, str, str, str]:
    """A row of the ledger: id, claim, paper, verdict, estimate or reason, power."""
    found = show_interval(verdict, claim.unit) or verdict.reading.partition(": ")[2]
    return (
        claim.id,
        claim.short,
        show_paper(claim),
        verdict.verdict,
        found,
        show_power(verdict) or "-",
    )


def _everything(claim: Claim, verdict: Verdict, study: str | None) -> str:
    """All about one claim, a line a fact."""
    lines = [
        f"{claim.id}  {claim.statement}",
        f"source      {claim.source}",
        f"paper       {claim.paper}",
        f"scale       {claim.scale}",
        f"estimand    {claim.estimand}",
        f"query       {claim.query} ({'catalog' if claim.asks == 'log' else 'analysis/paper'})",
        f"test        {claim.test}",
        f"deviations  {claim.deviations}",
        f"verdict     {verdict.verdict}" + (f" (study {study})" if study else ""),
        f"            {verdict.reading}",
    ]
    if verdict.value is not None and verdict.level is not None:
        lines += [
            f"estimate    {show_interval(verdict, claim.unit)}, {100 * verdict.level:.2f} % "
            f"interval, {verdict.sample}",
            f"threshold   {show(claim.threshold, claim.unit)}",
        ]
    if verdict.smallest_effect is not None:
        lines.append(
            f"power       0.80 for {show_effect(verdict.smallest_effect, claim.unit)}"
            + (
                f", {verdict.power:.2f} for {show_effect(claim.effect, claim.unit)}"
                if verdict.power is not None and claim.effect is not None
                else ""
            )
        )
    elif verdict.power is not None and claim.effect is not None:
        effect = show_effect(claim.effect, claim.unit)
        lines.append(f"power       {verdict.power:.2f} for {effect}")
    if verdict.permutation_p is not None:
        lines.append(f"permutation p {verdict.permutation_p:.4f}, of labels within a question")
    return "\n".join([*lines, *(f"            {note}" for note in verdict.notes)])
