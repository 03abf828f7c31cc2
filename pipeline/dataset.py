"""`exgrpo dataset`: what a data set holds, before anything is trained on it."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from exgrpo.data_sets import Loaded, limited, load_data_set
from pipeline.terminal import printable

MOST_NAMED = 10  # rows left out that are named, for each reason
SAMPLES = 3


def show_data_set(name: str, config: Path, limit: int | None, seed: int) -> None:
    """Print how many questions there are, which rows are left out and why, and a few questions."""
    loaded = load_data_set(name, config, seed)
    if limit is not None:
        loaded = limited(loaded, limit, seed)
    for line in _lines(loaded, seed):
        print(printable(line))


def _lines(loaded: Loaded, seed: int) -> Iterator[str]:
    yield f"{loaded.title}; licence: {loaded.licence}"
    yield loaded.summary
    for file, digest in loaded.files.items():
        yield f"  {file}: sha256 {digest}"
    by_reason = sorted(loaded.rejected, key=lambda row: row.reason)
    for reason, rows in groupby(by_reason, key=lambda row: row.reason):
        named = list(rows)
        yield f"\n{reason}: {len(named)}"
        yield from (f"  {row.place}: {row.found}" for row in named[:MOST_NAMED])
        if len(named) > MOST_NAMED:
            yield f"  and {len(named) - MOST_NAMED} more"
    for question in limited(loaded, min(SAMPLES, len(loaded.placed)), seed).questions:
        level = "" if question.level is None else f", level {question.level}"
        yield f"\n[{question.kind}{level}]"
        yield from (f"  {line}" for line in question.text.split("\n"))
        yield f"  gold: {question.gold}"
