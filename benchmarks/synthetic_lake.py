"""A made-up study of any number of runs, as logs on disk: what the lake and catalog are made from.

    python benchmarks/synthetic_lake.py FOLDER [--runs 10] [--with-tokens 1]

A run: 400 steps of 32 questions with 8 rollouts, so 102 400 trajectories. The questions are those
of the task `chain` and the responses its demonstrations, of some 30 characters: what a lake of
long responses costs in bytes is not measured with this.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from synthetic_course import (
    BATCH,
    GAIN,
    GROUPS,
    STEP_COUNT,
    TOKEN_TEXTS,
    K,
    Responses,
    make_responses,
    skill,
)
from synthetic_run import evaluate, make_run

from exgrpo.questions import Question, make_splits
from exgrpo.records import FROM_THE_START
from exgrpo.settings import RunSettings
from exgrpo.studies import ArmFile, Study, base_run_of
from exgrpo.tables import QUESTIONS, TABLES, VOCABULARY
from exgrpo.tables.manifest import MANIFEST, Part, file_hash
from exgrpo.tables.schema import FLOATS, TEXT
from pipeline.files import evaluation_folder, mark_done, run_folder, study_folder, write_json

STUDY, TOKENIZER = "synthetic", "synthetic"
A_RUN = STEP_COUNT * BATCH  # trajectories
FLUSHED = 25  # steps a part, as in the studies
VALIDATED = 50  # steps from one validation to the next
SAMPLES = 8  # of a test question
TESTS = ("test_id", "test_ood")

Tables = dict[str, pl.DataFrame]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--with-tokens", type=int, default=1, help="runs that log their tokens")
    asked = parser.parse_args()
    make_logs(asked.folder, asked.runs, asked.with_tokens)


def make_logs(results: Path, runs: int, with_tokens: int) -> Study:
    """Write the study and the logs of its base model and runs; the first few log their tokens."""
    study = make_study(runs)
    splits = make_splits(study.any_run.questions)
    write_json(study_folder(study, results) / "study.json", study.model_dump(mode="json"))
    _write_questions(study, splits, results)
    answers = {split: make_responses(splits[split], split) for split in splits if split != "train"}
    _write_base(study, splits, answers, results)
    for number, run in enumerate(study.runs):
        _write_run(study, run, splits, answers, number < with_tokens, results)
    return study


def make_study(runs: int) -> Study:
    """As many runs as asked for: all arms with seed 0, then with seed 1, and so on."""
    settings = [
        RunSettings.model_validate(
            {
                "study": STUDY,
                "arm": list(GAIN)[number % len(GAIN)],
                "seed": number // len(GAIN),
                "rollout": {"group_size": K},
                "batch": {"questions": GROUPS},
                "training": {"steps": STEP_COUNT, "checkpoint_every": FLUSHED},
            }
        )
        for number in range(runs)
    ]
    return Study(
        name=STUDY,
        title="Made up",
        arms={arm: ArmFile(title=arm) for arm in GAIN},
        seeds=sorted({each.seed for each in settings}),
        runs={each.run: each for each in settings},
        base_run=base_run_of(settings[0]),
    )


def _write_questions(study: Study, splits: dict[str, list[Question]], results: Path) -> None:
    folder = study_folder(study, results) / "questions"
    rows = [
        {
            "question": each.id,
            "split": split,
            "prompt": f"<bos>{each.text}",
            **{name: getattr(each, name) for name in ("source", "text", "gold", "level")},
        }
        for split, members in splits.items()
        for each in members
    ]
    frame = pl.DataFrame(rows, schema=QUESTIONS.polars_schema)
    _write_log(folder / "log", {"questions": frame}, [(0, 0)])
    mark_done(folder)


def _write_base(
    study: Study,
    splits: dict[str, list[Question]],
    answers: dict[str, Responses],
    results: Path,
) -> None:
    run, rng = study.base_run, np.random.default_rng(0)
    folder = evaluation_folder(study, run, results)
    tests = [
        evaluate(
            run, each, splits[each], answers[each], _share(splits[each], "on_policy", rng),
            [0], SAMPLES, rng,
        )
        for each in TESTS
    ]  # fmt: skip
    _write_log(
        folder / "log", {"evaluations": pl.concat(tests), "vocabulary": _vocabulary()}, [(0, 0)]
    )
    write_json(folder / "run.json", _run_row(study, run))
    mark_done(folder)


def _write_run(
    study: Study,
    run: str,
    splits: dict[str, list[Question]],
    answers: dict[str, Responses],
    tokens: bool,
    results: Path,
) -> None:
    settings = study.runs[run]
    rng = np.random.default_rng([settings.seed, list(GAIN).index(settings.arm)])
    folder = run_folder(study, run, results)
    tables = make_run(run, settings.arm, splits["train"], rng, tokens)
    steps = range(0, STEP_COUNT + 1, VALIDATED)
    share = _share(splits["validation"], settings.arm, rng)
    tables["evaluations"] = evaluate(
        run, "validation", splits["validation"], answers["validation"], share, steps, 1, rng
    )
    flushes = [(first + 1, first + FLUSHED) for first in range(0, STEP_COUNT, FLUSHED)]
    _write_log(folder / "log", {"vocabulary": _vocabulary()} | tables, [(0, 0), *flushes])
    write_json(folder / "run.json", _run_row(study, run))
    mark_done(folder)
    folder = evaluation_folder(study, run, results)
    tests = [
        evaluate(
            run, each, splits[each], answers[each], _share(splits[each], settings.arm, rng),
            [STEP_COUNT], SAMPLES, rng,
        )
        for each in TESTS
    ]  # fmt: skip
    _write_log(folder / "log", {"evaluations": pl.concat(tests)}, [(STEP_COUNT, STEP_COUNT)])
    mark_done(folder)


def _share(asked: list[Question], arm: str, rng: np.random.Generator) -> np.ndarray:
    return skill(np.array([each.level for each in asked]), arm, rng)


def _vocabulary() -> pl.DataFrame:
    return pl.DataFrame(
        {"tokenizer": TOKENIZER, "token_id": range(len(TOKEN_TEXTS)), "text": TOKEN_TEXTS},
        schema=VOCABULARY.polars_schema,
    )


def _run_row(study: Study, run: str) -> dict[str, object]:
    settings = study.runs.get(run)
    return {
        "run": run,
        "study": study.name,
        "arm": settings.arm if settings else "base",
        "seed": settings.seed if settings else None,
        "world": "hard",
        "tokenizer": TOKENIZER,
        "settings": settings.model_dump_json() if settings else "{}",
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:14:05+00:00",
        "seconds": 240.0 if settings else 0.0,
        "steps": STEP_COUNT if settings else 0,
        "attempts": 1,
        "status": "done",
    }


def _write_log(log: Path, tables: Tables, flushes: list[tuple[int, int]]) -> None:
    """Parts of (first, last) steps and their manifest, as `exgrpo.records` writes them.

    Not by its Recorder, which takes rows: ten million of them are minutes of Python.
    """
    lines: list[dict[str, object]] = [
        {"kind": "attempt", "attempt": 1, "resumed_from": FROM_THE_START}
    ]
    for first, last in flushes:
        for table, frame in tables.items():
            rows = _rows_of(frame, first, last)
            if rows.is_empty():
                continue
            name = f"{table}/part-1-{first}-{last}.parquet"
            path = log / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_part(path, table, rows)
            size = path.stat().st_size
            part = Part(table, name, 1, first, last, rows.height, size, file_hash(path))
            lines.append({"kind": "part", **asdict(part)})
    (log / MANIFEST).write_text("".join(json.dumps(line) + "\n" for line in lines))


def _rows_of(frame: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """The rows of some steps, which the frame holds in order; step 0 has those without a step."""
    if "step" not in frame.columns:
        return frame if first == 0 else frame.clear()
    begin, end = frame["step"].search_sorted(pl.Series([first, last + 1]))
    return frame.slice(begin, end - begin)


def _write_part(path: Path, table: str, rows: pl.DataFrame) -> None:
    kinds = {column.name: column.type for column in TABLES[table].columns}
    pq.write_table(
        rows.to_arrow().cast(TABLES[table].arrow_schema),
        path,
        compression="zstd",
        use_dictionary=[name for name, kind in kinds.items() if kind == TEXT],
        use_byte_stream_split=[f"{n}.list.element" for n, kind in kinds.items() if kind == FLOATS],
    )


if __name__ == "__main__":
    main()
