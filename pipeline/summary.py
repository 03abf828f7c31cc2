"""Stage: the closing table of a study, for the terminal, for a file and for the README.

Writes `results/<study>/summary.txt` (plain, 110 columns) and `summary.md` (Markdown).
"""

import io
from pathlib import Path

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analysis.closing import (
    HEADER,
    VERDICTS,
    claim_cells,
    closing_rows,
    meaning,
    progress,
    seeds_finished,
    tested_claims,
)
from analysis.drawing import study_facts
from analysis.markdown import markdown_table
from analysis.stage_outputs import StageOutputs, read_stage_outputs
from exgrpo.records import write_whole
from exgrpo.studies import Study
from pipeline.analyse import not_analysed, read_frames
from pipeline.terminal import printable

WIDTH = 110
COLOURS = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive (underpowered)": "yellow",
    "not testable here": "bright_black",
}


def print_summary(study: Study, results: Path) -> None:
    """Print the closing table and write it. UserError when the study was not analysed."""
    outputs = read_stage_outputs(results, study.name)
    folder = results / study.name
    if outputs is None:
        raise not_analysed(folder / "analyses", study.name)
    runs = read_frames(folder / "analyses")["study_runs"]
    world = study_facts(study.name, runs).world
    heading = f"Study {study.name} ({progress(outputs.comparison)}), {world}"
    page = _page(heading, outputs)
    Console(width=WIDTH).print(page)
    plain = io.StringIO()
    Console(width=WIDTH, file=plain, color_system=None).print(page)
    text = "\n".join(line.rstrip() for line in plain.getvalue().splitlines()) + "\n"
    write_whole(folder / "summary.txt", text.encode())
    write_whole(folder / "summary.md", _markdown(study, heading, outputs).encode())


def _page(heading: str, outputs: StageOutputs) -> Group:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    for place, name in enumerate(HEADER):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    for row in closing_rows(outputs.comparison):
        table.add_row(*(Text(printable(cell)) for cell in row))
    claims = Table(box=None, padding=(0, 1), show_header=False)
    tested, rest = tested_claims(outputs.verdicts)
    for name, short, verdict, found in (claim_cells(*pair) for pair in tested):
        claims.add_row(name, Text(verdict, COLOURS[verdict]), Text(printable(f"{short}: {found}")))
    note = Padding(Text(meaning(outputs.comparison), "bright_black"), (0, 2, 1, 2))
    judged = Padding(Text(f"{VERDICTS} {rest}", "bright_black"), (1, 2, 0, 2))
    return Group(
        "", Text(f"  {printable(heading)}", "bold"), table, note, Padding(claims, (0, 1)), judged
    )


def _markdown(study: Study, heading: str, outputs: StageOutputs) -> str:
    most = seeds_finished(outputs.comparison)
    seeds = f"{most} seed" + ("s" if most > 1 else "")
    tested, rest = tested_claims(outputs.verdicts)
    lines = [
        f"{heading}; {seeds}, {study.any_run.training.steps} steps.",
        "",
        *markdown_table(HEADER, closing_rows(outputs.comparison)),
        "",
        meaning(outputs.comparison),
        "",
        *markdown_table(
            ("", "claim", "verdict", "estimate with its interval"),
            [list(claim_cells(claim, verdict)) for claim, verdict in tested],
        ),
        "",
        f"{VERDICTS} {rest}",
    ]
    return "\n".join(lines) + "\n"
