"""The command `exgrpo status`: how the training of every run is getting on."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import polars as pl

from analysis.live import RunStatus, statuses
from analysis.status_words import as_row, sentences
from pipeline.sql import print_table
from pipeline.terminal import printable


def show_status(places: list[Path], as_json: bool = False, watch: float | None = None) -> None:
    """Print the runs under each place, once, or every `watch` seconds until Ctrl-C.

    With `as_json` a round is one line: a list of objects, see `analysis.live.RunStatus`.
    """
    try:
        while True:
            if watch is not None and sys.stdout.isatty() and not as_json:
                print("\x1b[2J\x1b[H", end="")  # a clean screen, from its first line
            print_status(places, as_json)
            if watch is None:
                return
            time.sleep(watch)
    except KeyboardInterrupt:  # how a watch ends
        return


def print_status(places: list[Path], as_json: bool = False) -> None:
    """Print the runs under each place: a table a study, then what is wrong, in sentences."""
    found = {place: statuses(place) for place in places}
    runs = [run for each in found.values() for run in each]
    if as_json:
        print(json.dumps([asdict(run) for run in runs], allow_nan=False), flush=True)
    for study in dict.fromkeys(run.study for run in runs):
        if not as_json:
            _print_study(study, [run for run in runs if run.study == study])
    for place in (place for place, each in found.items() if not each):
        there = "holds no run" if place.is_dir() else "is not there, so it holds no run"
        print(
            printable(f"{place}: {there}. `exgrpo reproduce` begins the default study."),
            file=sys.stderr if as_json else sys.stdout,
        )
    sys.stdout.flush()


def _print_study(study: str, runs: list[RunStatus]) -> None:
    print(printable(f"study {study}"))
    print_table(pl.DataFrame([as_row(run) for run in runs]))
    for run in runs:
        for sentence in sentences(run):
            print(printable(sentence))
