"""The command `exgrpo snowball`: does replay spread a marker, part by part, with a verdict."""

import json
import textwrap
from dataclasses import asdict
from pathlib import Path

from analysis.catalog import open_catalog
from analysis.queries import ask_named
from analysis.snowball import Snowball, ask, detect
from pipeline.terminal import printable

WIDTH = 96


def show_snowball(results: Path, study: str, marker: str = "flawed", as_json: bool = False) -> None:
    """Print the detector's verdict on a study, or on `imports`, as sentences or as JSON.

    Raises UserError when the catalog is missing, holds no run of the study, or on a marker that is
    none of flawed, shortcut, code and repetition.
    """
    with open_catalog(results / "workbench.duckdb") as connection:
        ask_named(connection, "study_runs", {"study": study}, limit=1)  # is there such a study?
        found = detect(ask(connection, study, marker), marker)
    if as_json:
        print(json.dumps({"study": study} | asdict(found), allow_nan=False))
    else:
        print(printable(_page(study, found)))


def _page(study: str, found: Snowball) -> str:
    told = [f"study {study}, marker {found.marker}", "", f"verdict: {found.verdict}"]
    if found.power is not None:
        told.append(
            f"power:   {found.power:.0%} at least, for a snowball that adds 15 points by the end"
        )
    told += ["", *_wrapped(found.reading)]
    for part in found.parts:
        told += ["", *_wrapped(part.sentence)]
        if part.power is not None:
            told += _wrapped(f"Power at the planted strong snowball: {part.power:.0%}.")
    return "\n".join([*told, "", *(line for note in found.notes for line in _wrapped(note))])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")
