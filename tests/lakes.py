"""The lakes on which every screen must stand: full, empty, partial, hostile, loaded questions."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from lake_fixture import DemoResults
from screens import write_import

from analysis.catalog_build import build
from analysis.compaction import compact
from analysis.lake import Entry, read_entries
from exgrpo.question_settings import Benchmark, DataSet, Questions
from exgrpo.settings import BaseModelSource, ModelPackage
from exgrpo.studies import Study
from exgrpo.tables import DERIVED, EVALUATIONS, JUDGEMENTS, QUESTIONS, TABLES, TRAJECTORIES
from pipeline.analyse import analyse
from pipeline.figures import draw_figures

# Markup of every kind that the page, Markdown, KaTeX or Plotly could read.
EVIL = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> ![b](http://evil.example/b.png) "
    "[l](javascript:alert(3)) http://evil.example/a $\\frac{1}{0}$ :red[no] :material/home: "
    "<b>Evil</b> `c` **s** </span></div>\x1b[31m\u202e"
)
EVIL_NAME = "<img src=x onerror=alert(4)> ![b](evil.png) **s** $x$ :red[no]"  # of a file, too

NAMES = ("run", "arm", "study")
IDS = ("trajectory", "source")
KEPT = {"event", "difficulty", "split", "settings", "versions", "started", "finished", "status"}
KEPT |= {"benchmark"}  # names that questions to the catalog know
BENCHMARK = "test_id"  # it has evil twins
# Names that no settings let pass; a lake may come from elsewhere.
EVIL_BENCHMARKS = (
    "",
    "rejected",
    "../../x",
    "a/b",
    "\x1b[31mred\x07",
    "two\nlines | a cell",
    "'; drop table runs; --",
    "=1+1",
    "\u202egpj",
)
JUDGE = "judge" + EVIL_NAME


def empty(results: Path) -> None:
    """A catalog without an entry."""
    results.mkdir(parents=True)
    build([], {}, results / "lake", results / "workbench.duckdb")


def imported(results: Path) -> None:
    """An import alone: a text and a count of right ones, and nothing else."""
    results.mkdir(parents=True)
    write_import(results, ["4", "5", "six", "7"], [1, 2, 0, None])


def partial(demo: DemoResults, results: Path) -> None:
    """The runs of the made-up study with nothing but their trajectories."""
    results.mkdir(parents=True)
    entries = []
    for entry in read_entries(demo.results / "lake"):
        if entry.run is not None and TRAJECTORIES.name in entry.tables:
            part = demo.results / "lake" / entry.tables[TRAJECTORIES.name].path
            parts = {TRAJECTORIES.name: [part]}
            made = compact(entry.entry, entry.study, entry.run, parts, results / "lake")
            entries.append(made)
    build(entries, {}, results / "lake", results / "workbench.duckdb")


def hostile(demo: DemoResults, results: Path) -> Study:
    """The made-up study with evil in every name and text, analysed and drawn."""
    results.mkdir(parents=True)
    good = read_entries(demo.results / "lake")
    entries = [_hostile(entry, demo, results) for entry in good]
    entries += [_judged(entry, results) for entry in entries if TRAJECTORIES.name in entry.tables]
    build(entries, {}, results / "lake", results / "workbench.duckdb")
    study = evil_study(demo)
    analyse(study, results)
    figures = results / study.name / "figures"
    figures.mkdir()
    for figure in draw_figures(study.name, results):
        (figures / f"{figure.name}.json").write_text(figure.plot.to_json())
    return study


def evil_study(demo: DemoResults) -> Study:
    """The made-up study under evil names."""
    return demo.study.model_copy(
        update={
            "name": demo.study.name + EVIL_NAME,
            "arms": {arm + EVIL_NAME: file for arm, file in demo.study.arms.items()},
        }
    )


def loaded(demo: DemoResults, results: Path) -> Study:
    """The made-up study as if its questions were of data sets: no levels, no check of chains.

    It is tested on two benchmarks in distribution, one with several samples, and one out of it;
    analysed and drawn.
    """
    results.mkdir(parents=True)
    entries = [_loaded(entry, demo, results) for entry in read_entries(demo.results / "lake")]
    build(entries, {}, results / "lake", results / "workbench.duckdb")
    runs = {
        run: settings.model_copy(update={"questions": LOADED, "base": PACKAGED})
        for run, settings in demo.study.runs.items()
    }
    study = demo.study.model_copy(update={"runs": runs})
    analyse(study, results)
    figures = results / study.name / "figures"
    figures.mkdir()
    for figure in draw_figures(study.name, results):
        (figures / f"{figure.name}.json").write_text(figure.plot.to_json())
    return study


def _loaded(entry: Entry, demo: DemoResults, results: Path) -> Entry:
    derived = {table.name for table in DERIVED}
    folder = results / "parts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    parts = {}
    for name, file in entry.tables.items():
        if name in derived:
            continue
        rows = pl.read_parquet(demo.results / "lake" / file.path, glob=False)
        unknown = [column for column in UNKNOWN if column in rows.columns]
        rows = rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in unknown)
        if name == QUESTIONS.name:
            rows = rows.with_columns(source=pl.lit("openr1"))
        if name == EVALUATIONS.name:
            rows = _tested(rows, entry.run or {})
        parts[name] = [folder / f"{name}.parquet"]
        rows.write_parquet(parts[name][0])
    row = entry.run and {**entry.run, "world": None}
    if row:
        settings = json.loads(row["settings"]) | {"base": PACKAGED.model_dump(mode="json")}
        asked = {"questions": LOADED.model_dump(mode="json")} if row["seed"] is not None else {}
        row["settings"] = json.dumps(settings | asked)
    return compact(entry.entry, entry.study, row, parts, results / "lake")


def _tested(rows: pl.DataFrame, run: dict[str, Any]) -> pl.DataFrame:
    """Validation, and answers to the loaded benchmarks: each draws 7, another number or none."""
    rng = random.Random(f"{run['arm']} {run['seed']}")
    own = rows.filter(pl.col("benchmark") == "validation")
    like = rows.filter(pl.col("benchmark") != "validation").row(0, named=True)
    made = []
    for name, benchmark in LOADED.benchmarks.items():
        for place in range(LOADED_QUESTIONS[name]):
            for sample in range(benchmark.samples or 1):
                said = rng.choice(["7", "7", "8", "9", None])
                made.append(
                    like
                    | {"benchmark": name, "domain": benchmark.domain, "question": f"q{place}"}
                    | {"sample": sample, "extracted": said, "vote": said, "correct": said == "7"}
                    | {"response": "" if said is None else f"\\boxed{{{said}}}", "length": 5}
                    | {"finish": "length" if said is None else "stop"}
                )
    return pl.concat([own, pl.DataFrame(made, schema=rows.schema)])


def _hostile(entry: Entry, demo: DemoResults, results: Path) -> Entry:
    derived = {table.name for table in DERIVED}
    folder = results / "parts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    parts = {}
    for name, file in entry.tables.items():
        if name not in derived:
            parts[name] = [folder / f"{name}.parquet"]
            rows = pl.read_parquet(demo.results / "lake" / file.path, glob=False)
            _evil_rows(name, rows).write_parquet(parts[name][0])
    row = entry.run and {name: _evil_value(name, value) for name, value in entry.run.items()}
    if row:
        row["versions"] = json.dumps({"torch": EVIL, EVIL: "1"})
        made_up = {EVIL: EVIL + str(row["seed"]), "list": [EVIL], "flag": True}
        row["settings"] = json.dumps(json.loads(row["settings"]) | {"made_up": made_up})
    study = entry.study + EVIL_NAME
    return compact(entry.entry + EVIL_NAME, study, row, parts, results / "lake")


def _judged(entry: Entry, results: Path) -> Entry:
    """What a judge of an evil name says of some chains of a run."""
    file = results / "lake" / entry.tables[TRAJECTORIES.name].path
    part = results / "parts" / "judgements.parquet"
    pl.read_parquet(file, glob=False, columns=["run", "trajectory"]).head(20).with_columns(
        judge=pl.lit(JUDGE),
        version=pl.lit(EVIL),
        valid=pl.int_range(pl.len()) % 2 == 0,
        reason=pl.lit(EVIL),
    ).write_parquet(part)
    parts = {JUDGEMENTS.name: [part]}
    return compact(f"judgements-{JUDGE}-{entry.entry}", entry.study, None, parts, results / "lake")


def _evil_rows(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    if table == EVALUATIONS.name:
        twin = rows.filter(pl.col("benchmark") == BENCHMARK)
        few = twin.filter(
            pl.col("question").is_in(twin["question"].unique().sort().head(3).to_list())
        )
        named = [few.with_columns(benchmark=pl.lit(name)) for name in EVIL_BENCHMARKS]
        evil = twin.with_columns(pl.col("benchmark") + EVIL_NAME)
        rows = pl.concat([rows, evil, *named])
    texts = [column.name for column in TABLES[table].columns if column.type == pl.String]
    return rows.with_columns(
        pl.Series(name, [_evil_value(name, value) for value in rows[name]], pl.String)
        for name in texts
        if name not in KEPT
    )


def _evil_value(column: str, value: Any) -> Any:
    if not isinstance(value, str) or column in KEPT:
        return value
    if column in NAMES:
        return value + EVIL_NAME
    if column in IDS and ":" in value:
        run, place = value.split(":", 1)
        return f"{run}{EVIL_NAME}:{place}"
    return value + EVIL


UNKNOWN = ("level", "chain_valid", "step_errors", "shortcut")  # where no task tells them
LOADED_QUESTIONS = {"aime": 5, "math": 12, "gpqa": 6}  # q0 and so on: some are in several
LOADED = Questions(
    train=DataSet(dataset="openr1", limit=12),
    validation=DataSet(dataset="openr1", limit=4),
    test_id=0,
    test_ood=0,
    benchmarks={
        "aime": Benchmark(dataset="aime", samples=8),
        "math": Benchmark(dataset="math"),
        "gpqa": Benchmark(dataset="gpqa", domain="out", samples=2),
    },
)
PACKAGED = BaseModelSource(
    package=ModelPackage(name="small-model", version="1", file="model.gguf", sha256="0" * 64)
)

Make = Callable[[DemoResults, Path], Any]
LAKES: dict[str, Make] = {
    "empty": lambda _, results: empty(results),
    "import": lambda _, results: imported(results),
    "partial": partial,
    "hostile": hostile,
    "loaded": loaded,
}
