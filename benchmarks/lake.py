"""What a lake of a million and of ten million trajectories costs to build and to ask.

    python benchmarks/lake.py [--trajectories 1000000 10000000] [--folder FOLDER]

Made-up runs (`synthetic_lake.py`) go the way of real ones: log, lake, catalog, with two threads and
a memory limit of 4 GiB. Then every named query over the whole lake, pages of trajectories, tokens,
and six questions that polars and pandas answer over the same Parquet files. Each part runs in a
process of its own, so that its peak memory is its own; files are in the page cache, as after a
build. FOLDER keeps the logs (a few GB) for the next time.
"""

import argparse
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl
from duckdb import DuckDBPyConnection
from lake_peers import by_catalog, by_pandas, by_polars
from polars.testing import assert_frame_equal
from synthetic_lake import A_RUN, STUDY, make_logs, make_study

from analysis import browse
from analysis.browse import Filters
from analysis.catalog import MEMORY, THREADS, open_catalog
from analysis.queries import answer, named_queries
from analysis.tokens import read_tokens
from exgrpo.studies import Study
from pipeline.catalog import build_catalog
from pipeline.lake import add_study_entry

WITH_TOKENS = 2  # runs
PAGE = 50  # rows
PEERS = ("catalog", "polars", "pandas")
TRAJECTORY = "{run}:300:3:0"


@dataclass(frozen=True)
class Timing:
    """Milliseconds of the first of several times and of the best; rows of the answer."""

    first: float
    best: float
    rows: int


@dataclass
class Size:
    """What was measured at one size: seconds, peak memory in MiB, timings by name."""

    runs: int
    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    megabytes: dict[str, float] = field(default_factory=dict)
    queries: dict[str, Timing] = field(default_factory=dict)
    pages: dict[str, Timing] = field(default_factory=dict)
    peers: dict[str, dict[str, Timing]] = field(default_factory=dict)

    @property
    def trajectories(self) -> int:
        return self.runs * A_RUN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectories", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="keeps the logs; a temporary one if not given")
    asked = parser.parse_args()
    os.environ |= {"POLARS_MAX_THREADS": str(THREADS), "OMP_NUM_THREADS": str(THREADS)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        sizes = [measure(folder, max(2, wanted // 100_000)) for wanted in asked.trajectories]
    print_build(sizes)
    print_timings("named query over the whole lake", [size.queries for size in sizes])
    print_timings(f"page of {PAGE} rows, or one trajectory", [size.pages for size in sizes])
    for size in sizes:
        print_peers(size)
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in ("duckdb", *PEERS[1:]))
    print(f"\n{THREADS} threads, memory limit {MEMORY}, {libraries}, load {os.getloadavg()[0]:.1f}")


def measure(folder: Path, runs: int) -> Size:
    """Build the lake and catalog of this many runs and ask; one run more is added at the end."""
    size = Size(runs)
    results = folder / f"{runs}-runs"
    if not (results / "logs-made").exists():
        say(f"{size.trajectories:,} trajectories: making their logs")
        alone(make_logs, results, runs + 1, WITH_TOKENS)
        (results / "logs-made").touch()
    shutil.rmtree(results / "lake", ignore_errors=True)
    (results / "workbench.duckdb").unlink(missing_ok=True)
    for part, action in {
        "log to lake": compact_runs,
        "lake to catalog": build,
        "queries": ask_named_queries,
        "pages": show_pages,
    }.items():
        say(f"{size.trajectories:,} trajectories: {part}")
        measured, size.peaks[part] = alone(action, results, runs)
        for name, value in measured.items():
            getattr(size, name).update(value)
    answers = {}
    for peer in PEERS:
        say(f"{size.trajectories:,} trajectories: {peer}")
        (size.peers[peer], answers[peer]), size.peaks[peer] = alone(ask_peer, results, runs, peer)
        require_equal(answers[PEERS[0]], answers[peer])
    say(f"{size.trajectories:,} trajectories: one run more")
    measured, size.peaks["one run more"] = alone(add_one, results, runs)
    size.seconds |= measured
    return size


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def alone(action: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The answer of a function in a process of its own, and the most memory that it held [MiB]."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_with_peak, action, *arguments).result()


def _with_peak(action: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    done = action(*arguments)
    unit = 1 if sys.platform == "darwin" else 1024
    return done, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def study_of(runs: int) -> Study:
    return make_study(runs + 1)  # the last is added at the end


def compact_runs(results: Path, runs: int) -> dict[str, dict[str, float]]:
    study = study_of(runs)
    for entry in (f"questions-{STUDY}", study.base_run):
        add_study_entry(study, entry, results)
    each = [
        seconds_of(partial(add_study_entry, study, run, results)) for run in list(study.runs)[:runs]
    ]
    seconds = {
        "log to lake, a run with tokens": statistics.median(each[:WITH_TOKENS]),
        "log to lake, a run without": statistics.median(each[WITH_TOKENS:] or each),
        "log to lake": sum(each),
    }
    files = (results / "lake").rglob("*.parquet")
    lake = sum(file.stat().st_size for file in files) / 2**20
    return {"seconds": seconds, "megabytes": {"lake": lake}}


def build(results: Path, runs: int) -> dict[str, dict[str, float]]:
    seconds = seconds_of(lambda: build_catalog(results))
    catalog = (results / "workbench.duckdb").stat().st_size / 2**20
    return {"seconds": {"lake to catalog": seconds}, "megabytes": {"catalog": catalog}}


def add_one(results: Path, runs: int) -> dict[str, float]:
    study = study_of(runs)
    new = list(study.runs)[runs]
    return {
        "one run more: log to lake": seconds_of(lambda: add_study_entry(study, new, results)),
        "one run more: catalog": seconds_of(lambda: build_catalog(results)),
    }


def ask_named_queries(results: Path, runs: int) -> dict[str, dict[str, Timing]]:
    run = a_run(runs)
    with open_catalog(results / "workbench.duckdb") as connection:
        trajectory = TRAJECTORY.format(run=run)
        row = browse.trajectory(connection, trajectory).row(0, named=True)
        known = {
            **{name: row[name] for name in ("run", "step", "group", "question", "trajectory")},
            "benchmark": "validation",
            "target": 0.45,
            "arm_a": "on_policy",
            "arm_b": "exgrpo",
        }
        timings = {}
        for name, query in named_queries().items():
            given = {p.name: known[p.name] for p in query.parameters.values() if p.required}
            timings[name] = timed(partial(answer, connection, name, **given))
    return {"queries": timings}


def show_pages(results: Path, runs: int) -> dict[str, dict[str, Timing]]:
    run = a_run(runs)
    trajectory = TRAJECTORY.format(run=run)
    timings = {}
    with open_catalog(results / "workbench.duckdb") as connection:
        row = browse.trajectory(connection, trajectory).row(0, named=True)
        middle = runs * A_RUN // 2
        for name, (filters, offset) in pages(run, row["question"], middle).items():
            timings[name] = timed(partial(show_page, connection, filters, offset))
        timings["one trajectory"] = timed(lambda: browse.trajectory(connection, trajectory))
    timings["its tokens"] = timed(lambda: read_tokens(results / "lake", run, trajectory))
    return {"pages": timings}


def show_page(connection: DuckDBPyConnection, filters: Filters, offset: int) -> pl.DataFrame:
    return browse.page(connection, filters, offset, PAGE).frame


def pages(run: str, question: str, middle: int) -> dict[str, tuple[Filters, int]]:
    """Filters and the place of the first row."""
    return {
        "all, by step": (Filters(), 0),
        "from the middle": (Filters(), middle),
        "by entropy, highest first": (Filters(sort="mean_entropy", descending=True), 0),
        "by entropy, from the middle": (Filters(sort="mean_entropy"), middle),
        "by right or wrong, from the middle": (Filters(sort="correct"), middle),
        "by arm, from the middle": (Filters(sort="arm"), middle),
        "by response": (Filters(sort="response"), 0),
        "one run": (Filters(run=run), 0),
        "two arms, by length": (Filters(arms=("exgrpo", "on_policy"), sort="length"), 0),
        "steps 100 to 200 of the study": (Filters(study=STUDY, step_min=100, step_max=200), 0),
        "replayed ones, by ratio": (Filters(replayed=True, sort="ratio_max", descending=True), 0),
        "right with a flaw, buckets 1 and 2": (
            Filters(correct=True, chain_valid=False, bucket=(1, 2)),
            0,
        ),
        "one question, by entropy": (Filters(question=question, sort="mean_entropy"), 0),
        "a text": (Filters(text="6+2=8;"), 0),
        "a text in any case, by entropy": (Filters(text="BOXED{7", sort="mean_entropy"), 0),
        "all filters at once": (
            Filters(
                study=STUDY, arms=("exgrpo", "highest_entropy"), step_min=50, step_max=350,
                bucket=(2, 3, 4, 5), replayed=False, correct=True, chain_valid=True,
                entropy_min=0.05, entropy_max=0.5, text="=8", sort="nll", descending=True,
            ),
            100,
        ),
    }  # fmt: skip


def ask_peer(
    results: Path, runs: int, peer: str
) -> tuple[dict[str, Timing], dict[str, pl.DataFrame]]:
    study = study_of(runs)
    arms = {run: settings.arm for run, settings in list(study.runs.items())[:runs]}
    files = [results / "lake" / "trajectories" / f"{run}.parquet" for run in arms]
    if peer == "catalog":
        with open_catalog(results / "workbench.duckdb") as connection:
            return time_answers(by_catalog(connection))
    return time_answers({"polars": by_polars, "pandas": by_pandas}[peer](files, arms))


def time_answers(
    questions: dict[str, Callable[[], pl.DataFrame]],
) -> tuple[dict[str, Timing], dict[str, pl.DataFrame]]:
    timings, answers = {}, {}
    for name, question in questions.items():
        answers[name] = question()
        timings[name] = timed(question, times=1)
    return timings, answers


def require_equal(ours: dict[str, pl.DataFrame], theirs: dict[str, pl.DataFrame]) -> None:
    """AssertionError when two answers differ; means may, in their last digits."""
    for name, frame in ours.items():
        other = theirs[name].select(frame.columns).cast(frame.schema)
        assert_frame_equal(frame, other, rel_tol=1e-9)


def a_run(runs: int) -> str:
    """The run whose rows are shown; it logs its tokens."""
    return list(study_of(runs).runs)[WITH_TOKENS - 1]


def timed(action: Callable[[], pl.DataFrame], times: int = 3) -> Timing:
    milliseconds, rows = [], 0
    for _ in range(times):
        start = time.perf_counter()
        rows = action().height
        milliseconds.append(1000 * (time.perf_counter() - start))
    return Timing(milliseconds[0], min(milliseconds), rows)


def seconds_of(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def print_build(sizes: list[Size]) -> None:
    print(f"\n{'trajectories':40}" + "".join(f"{size.trajectories:14,}" for size in sizes))
    for title, unit, values in (
        ("", "s", [size.seconds for size in sizes]),
        ("on disk: ", "MiB", [size.megabytes for size in sizes]),
        ("peak memory: ", "MiB", [size.peaks for size in sizes]),
    ):
        for name in values[0]:
            cells = "".join(f"{each[name]:14,.1f}" for each in values)
            print(f"{f'{title}{name}, {unit}':40}{cells}{growth([v[name] for v in values])}")
    for name in ("log to lake", "lake to catalog"):
        rates = [size.trajectories / size.seconds[name] for size in sizes]
        cells = "".join(f"{rate:14,.0f}" for rate in rates)
        print(f"{f'{name}, trajectories/s':40}{cells}{growth(rates)}")


def print_timings(title: str, timings: list[dict[str, Timing]]) -> None:
    print(f"\n{f'{title}, ms':40}" + f"{'rows':>10}{'first':>9}{'best':>9}" * len(timings))
    for name in timings[0]:
        found = [each[name] for each in timings]
        cells = "".join(f"{t.rows:10,}{t.first:9,.0f}{t.best:9,.0f}" for t in found)
        print(f"{name:40}{cells}{growth([t.best for t in found])}")
    for word, of in (("median", statistics.median), ("slowest", max)):
        best = [of(t.best for t in each.values()) for each in timings]
        first = [of(t.first for t in each.values()) for each in timings]
        cells = "".join(f"{'':10}{f:9,.0f}{b:9,.0f}" for f, b in zip(first, best, strict=True))
        print(f"{word:40}{cells}{growth(best)}")


def print_peers(size: Size) -> None:
    print(f"\n{f'the same question at {size.trajectories:,}, ms':48}{PEERS[0]:>10}", end="")
    print("".join(f"{peer:>12}{'times':>8}" for peer in PEERS[1:]))
    for name, ours in size.peers[PEERS[0]].items():
        theirs = [size.peers[peer][name].best for peer in PEERS[1:]]
        cells = "".join(f"{each:12,.0f}{each / ours.best:8.1f}" for each in theirs)
        print(f"{name:48}{ours.best:10,.0f}{cells}")


def growth(values: list[float]) -> str:
    """How many times the first value the last one is; nothing for one size."""
    return f"{values[-1] / values[0]:9.1f}x" if len(values) > 1 and values[0] else ""


if __name__ == "__main__":
    main()
