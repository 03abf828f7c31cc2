"""Speed of grading real responses, against math-verify as it is used elsewhere.

    python benchmarks/grading.py FILE...

Files of model outputs with golds, as `exgrpo import` takes them. math-verify parses gold and
response and compares them, one after the other in this process, with its own time limits (by
SIGALRM). Ours reads the box first, and asks workers about what exact text does not settle; their
start is part of the time. Verdicts that differ are counted: `docs/grading.md` says which.
"""

import argparse
import logging
import os
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from math_verify import parse, verify

from exgrpo.grading import Answer, Grader, rules_of
from pipeline.imports.formats import Options, find
from pipeline.imports.rows import Tally, rows_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    answers = [answer for file in parser.parse_args().files for answer in read(file)]
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    version, load = metadata.version("math-verify"), os.getloadavg()[0]
    print(f"{len(answers)} responses, math-verify {version}, load {load:.1f}")
    peer, theirs = math_verify(answers)
    print(f"{'way':20}{'seconds':>9}{'a second':>10}{'times':>7}{'differ':>8}")
    print(f"{'math-verify':20}{peer:9.1f}{len(answers) / peer:10.0f}{1:7}{0:8}")
    for workers in (1, 2):
        seconds, found = ours(answers, workers)
        differ = sum(one is not other for one, other in zip(found, theirs, strict=True))
        print(
            f"{f'ours, workers {workers}':20}{seconds:9.1f}{len(answers) / seconds:10.0f}"
            f"{peer / seconds:7.1f}{differ:8}"
        )


def read(file: Path) -> list[Answer]:
    """Every response of a file, read by the rules of its shape."""
    source = find(file, Options())
    rules = rules_of(source.kind or "boxed")
    return [Answer(row["gold"], row["response"], rules) for row in rows_of(source, Tally())]


def math_verify(answers: Sequence[Answer]) -> tuple[float, list[bool]]:
    """Seconds and verdicts of math-verify; the gold between dollars, as its readme has it."""
    began = time.monotonic()
    found = [verify(parse(f"${each.gold}$"), parse(each.response)) for each in answers]
    return time.monotonic() - began, found


def ours(answers: Sequence[Answer], workers: int) -> tuple[float, list[bool | None]]:
    began = time.monotonic()
    with Grader(workers=workers) as grader:
        found = [verdict.correct for verdict in grader.grade_all(answers)]
    return time.monotonic() - began, found


if __name__ == "__main__":
    main()
