"""The command `exgrpo history`: the accuracies of a recorded run, through our replay buffer.

The file is a JSON object: question -> its accuracies visit after visit, as shares of K rollouts.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from exgrpo.errors import UserError
from pipeline.history_report import DRAWN, FRESH, History, Report, report_on
from pipeline.terminal import printable

MOST_EPOCHS = 10  # in the printed table
ROUNDING = 0.01  # of a rollout: 0.333 of 3 rollouts is one
WIDTH = 110


def run_history(file: Path, group_size: int, as_json: bool) -> None:
    """Print what the buffer makes of the file, as tables or as JSON. UserError on a bad file."""
    history = read_history(file, group_size)
    report = report_on(file.name, history, group_size)
    if as_json:
        print(json.dumps(asdict(report), indent=2))
    else:
        Console(width=WIDTH, highlight=False).print(_page(report))


def read_history(file: Path, group_size: int) -> History:
    """Right rollouts of K a visit. UserError names the file, the question and the value."""
    remedy = "Give a JSON object: question -> list of its accuracies, visit after visit."
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"), object_pairs_hook=_object)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: cannot be read: {reason}. {remedy}") from error
    if not isinstance(content, dict) or not content:
        raise UserError(f"{file}: holds {_short(content)}. {remedy}")
    history = {}
    for question, values in content.items():
        where = f"{file}: key {question!r}"
        if not isinstance(values, list) or not values:
            raise UserError(f"{where}: holds {_short(values)}. {remedy}")
        history[question] = [
            _successes(value, group_size, f"{where}, visit {visit}")
            for visit, value in enumerate(values, start=1)
        ]
    return history


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"key {key!r} occurs twice")
        content[key] = value
    return content


def _successes(value: Any, group_size: int, where: str) -> int:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise UserError(f"{where}: holds {_short(value)}. Give a number from 0 to 1.")
    right = value * group_size
    if abs(right - round(right)) > ROUNDING:
        raise UserError(
            f"{where}: {value!r} of {group_size} rollouts is {right:g}, no whole number. Mend it, "
            f"or give the rollouts of a visit with --group-size."
        )
    return round(right)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _page(report: Report) -> Group:
    found = report.forgetting
    heading = (
        f"{report.file}: {report.questions} questions, {report.visits} visits of "
        f"{report.group_size} rollouts; {FRESH} fresh and {DRAWN} drawn questions a step"
    )
    solved = (
        f"{found.solved} questions have a solved visit; {found.visited_again} of them were visited "
        f"again, {found.kept} of these solved every time"
    )
    return Group(
        "",
        Text(f"  {printable(heading)}", "bold"),
        "",
        "  Questions after an epoch, in the replay buffer and out of it",
        _occupancy_table(report),
        Text("  stale: the latest visit had no success, and changed nothing\n", "bright_black"),
        "  Visits after a question's first solved one, which retires it",
        _forgetting_table(report),
        Text(f"  {solved}\n", "bright_black"),
        "  What each convention draws from this buffer",
        _draws_table(report),
        Text("  half of draws: the fewest questions that take half of all draws", "bright_black"),
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place else "left", no_wrap=place > 0)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _occupancy_table(report: Report) -> Table:
    """Epochs side by side, so that any K fits."""
    last = len(report.occupancy) - 1
    places = sorted({round(last * i / (MOST_EPOCHS - 1)) for i in range(MOST_EPOCHS)})
    shown = [report.occupancy[place] for place in places]
    lines = {
        "visited": [f"{each.visited}" for each in shown],
        "accuracy": [f"{each.accuracy:.3f}" for each in shown],
        "no success yet": [f"{each.outside}" for each in shown],
        **{
            f"bucket {k}": [f"{each.buckets[k - 1]}" for each in shown]
            for k in range(1, report.group_size)
        },
        "in the buffer": [f"{sum(each.buckets)}" for each in shown],
        "of these stale": [f"{each.stale}" for each in shown],
        "retired": [f"{each.retired}" for each in shown],
        "trajectories": [f"{each.trajectories}" for each in shown],
    }
    header = ["epoch", *(f"{each.epoch}" for each in shown)]
    return _table(header, ([name, *cells] for name, cells in lines.items()))


def _forgetting_table(report: Report) -> Table:
    found, size = report.forgetting, report.group_size
    header = ("visits later", "visits", f"below {size} of {size}", f"0 of {size}", "accuracy")
    rows = [
        (
            "all" if each is found.later else _span(each.lag),
            f"{each.visits}",
            *(
                "-" if value is None else f"{value:.3f}"
                for value in (each.unsolved, each.failed, each.accuracy)
            ),
        )
        for each in (*found.by_lag, found.later)
    ]
    return _table(header, rows)


def _span(lag: tuple[int, int | None]) -> str:
    first, last = lag
    if last is None:
        return f"{first} and more"
    return f"{first}" if first == last else f"{first} to {last}"


def _draws_table(report: Report) -> Table:
    lines = {
        **{
            f"bucket {k}": [f"{each.bucket_shares[k - 1]:.3f}" for each in report.draws]
            for k in range(1, report.group_size)
        },
        "draws": [f"{each.draws}" for each in report.draws],
        "distinct questions": [f"{each.distinct}" for each in report.draws],
        "half of draws": [f"{each.half}" for each in report.draws],
        "most drawn": [f"{each.most}" for each in report.draws],
        "which question": [each.most_drawn or "-" for each in report.draws],
    }
    header = ["", *(each.convention for each in report.draws)]
    return _table(header, ([name, *cells] for name, cells in lines.items()))
