"""The demo: a sample of a real study, kept with the code, that shows every screen untrained.

`cut_demo` takes it from a trained study: every row that concerns one of a few training questions,
and whole the tables that concern no single one, with all test answers. `open_demo` makes a results
folder of it, with catalog, analyses and figures, as a study has.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from analysis.compaction import compact
from analysis.lake import Entry, read_entries, read_entry
from exgrpo.errors import UserError
from exgrpo.records import Recorder, write_whole
from exgrpo.settings import content_hash
from exgrpo.studies import Study
from exgrpo.tables import DERIVED, EVALUATIONS, QUESTIONS, STEPS, TABLES, TOKENS, TRAJECTORIES
from exgrpo.tables.manifest import file_hash
from pipeline.analyse import analyse
from pipeline.catalog import build_catalog
from pipeline.figures import draw_figures
from pipeline.files import DONE, run_folder, study_folder, write_json

FOLDER = Path(__file__).resolve().parents[1] / "app" / "demo"
QUESTIONS_KEPT = 25  # training questions: more would not fit into 5 MB
WHOLE = (EVALUATIONS.name, QUESTIONS.name)  # of all questions: texts and test answers are small
ABOUT = "about.txt"
MARK = ".demo"  # in a results folder that is the demo: which one; empty while it is made


def cut_demo(results: Path, study: Study, questions: int, to: Path = FOLDER) -> int:
    """Write the sample of `questions` training questions to the folder `to`; its bytes.

    They are those with the first ids, which are hashes of their texts. Raises UserError when the
    study is not in the lake of `results`.
    """
    lake = results / "lake"
    entries = [entry for entry in read_entries(lake) if entry.study == study.name]
    listed = {*study.runs, study.base_run, f"questions-{study.name}"}
    if missing := sorted(listed - {entry.entry for entry in entries}):
        raise UserError(
            f"{lake}: lacks {len(missing)} entries of study {study.name!r}, for example "
            f"{missing[0]!r}. Train it first: `exgrpo reproduce {study.name}`."
        )
    asked = pl.read_parquet(lake / QUESTIONS.name / f"questions-{study.name}.parquet", glob=False)
    train = asked.filter(pl.col("split") == "train")["question"].unique().sort()
    shutil.rmtree(to, ignore_errors=True)
    for entry in entries:
        _cut_entry(entry, lake, train.head(questions), to / "lake")
    write_whole(to / "study.json", study.model_dump_json(indent=1).encode() + b"\n")
    write_whole(to / ABOUT, _about(study.name, questions, train.len()).encode())
    return sum(path.stat().st_size for path in to.rglob("*") if path.is_file())


def open_demo(results: Path, demo: Path = FOLDER) -> None:
    """Make `results` the results folder of the demo; nothing is done where it is that already.

    Raises UserError when the folder holds something else.
    """
    study = demo_study(demo)
    name, mark, content = study.name, results / MARK, _content(demo)
    if mark.is_file() and mark.read_text() == content:
        return
    if results.exists() and any(results.iterdir()) and not mark.is_file():
        raise UserError(
            f"{results}: holds other results. Name a folder of its own for the demo: "
            f"`exgrpo demo --results build/demo`."
        )
    results.mkdir(parents=True, exist_ok=True)
    mark.write_text("")  # half made
    for folder in (results / "lake", results / name):  # notes stay
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(demo / "lake", results / "lake")
    (results / name).mkdir()
    shutil.copy(demo / "study.json", results / name)
    shutil.copy(demo / ABOUT, results)
    build_catalog(results, name)
    analyse(study, results)
    for figure in draw_figures(name, results):
        path = results / name / "figures" / f"{figure.name}.json"
        write_whole(path, figure.plot.to_json().encode())
    _write_logs(study, results)
    write_whole(mark, content.encode())


def demo_study(demo: Path = FOLDER) -> Study:
    """The resolved settings of the study that the demo is cut from."""
    return Study.model_validate_json((demo / "study.json").read_text())


def _cut_entry(entry: Entry, lake: Path, questions: pl.Series, to: Path) -> None:
    """Write what the sample has of one entry; derived tables are worked out from that."""
    derived = {table.name for table in DERIVED}
    with TemporaryDirectory() as folder:
        parts = {}
        for name, file in entry.tables.items():
            if name in derived:
                continue
            rows = _cut_table(name, lake / file.path, entry, lake, questions)
            parts[name] = [Path(folder) / f"{name}.parquet"]
            rows.write_parquet(parts[name][0])
        compact(entry.entry, entry.study, entry.run, parts, to)


def _cut_table(
    name: str, file: Path, entry: Entry, lake: Path, questions: pl.Series
) -> pl.DataFrame:
    rows = pl.read_parquet(file, glob=False)
    if name == TOKENS.name:
        trajectories = pl.read_parquet(lake / entry.tables[TRAJECTORIES.name].path, glob=False)
        kept = trajectories.filter(pl.col("question").is_in(questions.implode()))
        return rows.join(kept, on="trajectory", how="semi", maintain_order="left")
    if name in WHOLE or "question" not in TABLES[name].names:
        return rows
    return rows.filter(pl.col("question").is_in(questions.implode()))


def _write_logs(study: Study, results: Path) -> None:
    """The logs of finished runs as the screen Live reads them: steps, and the newest rollouts."""
    lake = results / "lake"
    asked = pl.read_parquet(lake / QUESTIONS.name / f"questions-{study.name}.parquet", glob=False)
    recorder = Recorder(study_folder(study, results) / "questions" / "log")
    recorder.add(QUESTIONS.name, asked.to_dicts())
    recorder.flush(0, 0)
    for run in study.runs:
        folder, entry = run_folder(study, run, results), read_entry(lake, run)
        assert entry is not None and entry.run is not None  # `cut_demo` writes every run
        steps = pl.read_parquet(lake / entry.tables[STEPS.name].path, glob=False)
        rollouts = pl.read_parquet(lake / entry.tables[TRAJECTORIES.name].path, glob=False)
        newest = rollouts.filter(pl.col("step") == pl.col("step").max())
        recorder = Recorder(folder / "log")
        recorder.add(STEPS.name, steps.to_dicts())
        recorder.flush(1, study.runs[run].training.steps)
        recorder.add(TRAJECTORIES.name, newest.to_dicts())
        recorder.flush(newest["step"][0], newest["step"][0])
        write_json(folder / "run.json", entry.run)
        write_json(folder / DONE, {})


def _content(demo: Path) -> str:
    """A hash of all that the demo consists of."""
    files = sorted(path for path in demo.rglob("*") if path.is_file())
    return content_hash([(str(path.relative_to(demo)), file_hash(path)) for path in files])


def _about(study: str, questions: int, of: int) -> str:
    return (
        f"Demo: {questions} of the {of} training questions of study {study} with every rollout, "
        f"replay and token of theirs in all runs, and all of its test answers. What is counted "
        f"over training questions here is counted over this sample.\n"
    )
