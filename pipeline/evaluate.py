"""Stage: sample the test questions with a trained run or the base model."""

import shutil
import time
from pathlib import Path

import torch

from exgrpo import questions, step_records
from exgrpo.evaluation import evaluate
from exgrpo.grading import Grader
from exgrpo.policy import load_policy, tokenizer_hash
from exgrpo.records import Recorder
from exgrpo.seeds import derived_seed
from exgrpo.studies import Study
from pipeline.files import (
    base_path,
    begin,
    evaluation_folder,
    mark_done,
    question_file,
    require_done,
    run_folder,
    run_settings,
    section_hash,
    study_folder,
    write_json,
)
from pipeline.provenance import now, run_row

BENCHMARKS = ("test_id", "test_ood")


def evaluate_run(study: Study, run: str, results: Path, threads: int) -> None:
    """Evaluate a run's final checkpoint, or the base model, on both test sets; every sample kept.

    All runs of a study sample with the same seeds, so they differ by their policy alone.
    """
    torch.set_num_threads(threads)
    is_base = run == study.base_run
    settings = study.any_run if is_base else run_settings(study, run)
    base = study_folder(study, results) / "base"
    trained = base if is_base else run_folder(study, run, results)
    require_done(trained)
    require_done(base, section_hash(settings.base))
    require_done(study_folder(study, results) / "questions", section_hash(settings.questions))
    model, tokenizer = load_policy(base_path(study, results) if is_base else str(trained / "final"))
    folder = evaluation_folder(study, run, results)
    begin(folder)
    shutil.rmtree(folder, ignore_errors=True)
    recorder = Recorder(folder / "log")
    began = time.monotonic()
    scores = {}
    with Grader(workers=1) as grader:
        for benchmark in BENCHMARKS:
            rows = evaluate(
                model,
                tokenizer,
                questions.load(question_file(study, benchmark, results)),
                settings.evaluation.test_samples,
                settings,
                grader,
                derived_seed(0, benchmark, 0),
                run=run,
                step=0 if is_base else settings.training.steps,
                benchmark=benchmark,
            )
            recorder.add("evaluations", rows)
            scores[benchmark] = sum(bool(row["correct"]) for row in rows) / len(rows)
    if is_base:
        recorder.add("vocabulary", step_records.vocabulary_rows(tokenizer))
        row = run_row(study, run, None, results) | {
            "tokenizer": tokenizer_hash(tokenizer),
            "status": "done",
            "finished": now(),
            "steps": 0,
            "seconds": 0.0,
            "attempts": 1,
        }
        write_json(folder / "run.json", row)
    recorder.flush(0, settings.training.steps)
    mark_done(folder, run=run, **scores)
    print(
        f"{run:<28} evaluated in {time.monotonic() - began:.0f} s: "
        + ", ".join(f"{name} {score:.3f}" for name, score in scores.items()),
        flush=True,
    )
