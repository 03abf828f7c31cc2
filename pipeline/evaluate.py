"""Stage: sample the questions of every benchmark with a trained run or the base model."""

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from analysis.closing import tested
from exgrpo import questions, step_records
from exgrpo.errors import UserError
from exgrpo.evaluation import chunks, evaluate
from exgrpo.grading import Grader
from exgrpo.hardware import CPU, Hardware
from exgrpo.policy import fingerprint, load_policy, stop_ids, tokenizer_hash
from exgrpo.processes import device_now, processes_now
from exgrpo.prompts import prompts_by, prompts_hash
from exgrpo.question_settings import Benchmark
from exgrpo.questions import Question
from exgrpo.records import FROM_THE_START, Recorder, Unrecorded
from exgrpo.rollout.engines import engine_of
from exgrpo.room import longest_prompts, positions_of, require_room
from exgrpo.sampling import Sampler
from exgrpo.scorer import Scorer
from exgrpo.seeds import derived_seed
from exgrpo.settings import RunSettings, content_hash
from exgrpo.studies import Study
from exgrpo.tables import EVALUATIONS
from exgrpo.tables.manifest import check_part, live_parts
from pipeline.files import (
    DONE,
    base_path,
    evaluation_folder,
    made_base,
    mark_done,
    question_file,
    questions_hash,
    require_done,
    require_prompts,
    run_folder,
    run_settings,
    study_folder,
    write_json,
)
from pipeline.provenance import now, run_row

LOG, BEGUN = "log", "begun.json"
BASE_MODEL = "base model"


@dataclass(frozen=True)
class Checkpoint:
    """The model that is tested: where it is, and after how many steps of training."""

    path: str
    step: int
    what: str  # in words


def evaluate_run(
    study: Study, run: str, results: Path, threads: int, hardware: Hardware = CPU
) -> None:
    """Test a run's checkpoint, or the base model, on every benchmark; every sample is kept.

    An evaluation that was cut short goes on after its last whole chunk of questions. All runs of a
    study sample with the same seeds, so they differ by their policy alone. Of several processes
    each calls this with the whole model, and the first writes.
    """
    torch.set_num_threads(threads)
    processes = processes_now()
    is_base = run == study.base_run
    settings = study.any_run if is_base else run_settings(study, run)
    made_base(study, results)
    require_done(study_folder(study, results) / "questions", questions_hash(settings))
    checkpoint = _checkpoint(study, run, settings, results)
    model, tokenizer = load_policy(checkpoint.path)
    made_by = prompts_by(tokenizer, settings.prompt)
    require_prompts(study_folder(study, results) / "questions", made_by)
    tests = {
        benchmark: questions.load(question_file(study, benchmark, results))
        for benchmark in settings.questions.tests
    }
    require_room(longest_prompts(tests), settings, positions_of(model.config.to_dict()))
    folder = evaluation_folder(study, run, results)
    identity = _identity(settings, checkpoint, model, tokenizer, tests)
    if not processes.first_does(partial(_open, folder, identity)):
        if processes.first:
            print(f"{run}: evaluated before. Remove {folder} to evaluate it again.")
        return
    began = time.monotonic()
    row = run_row(study, run, None, results, hardware) if is_base else None
    torch.nn.Module.to(model, device_now())  # its own `to` has no types
    asked = [list(question.prompt_ids) for own in tests.values() for question in own]
    whole = hardware.model_copy(update={"weights": "replicated"})
    with (
        Grader.of(settings.grading) as grader,
        engine_of(
            settings, whole, Scorer(model), model, checkpoint.path, processes, asked
        ) as engine,
    ):
        engine.sync()
        stops = stop_ids(model, tokenizer, settings.prompt.stop)
        sampler = Sampler(engine, tokenizer, stops, grader, processes)
        _sample(run, checkpoint, settings, sampler, tests, folder / LOG)
    if processes.first:
        _close(run, checkpoint, row, tokenizer, folder, time.monotonic() - began)


def _close(
    run: str,
    checkpoint: Checkpoint,
    row: dict[str, Any] | None,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    seconds: float,
) -> None:
    """Say what came of it, and that it is done. row: of table `runs`, for the base model."""
    if row is not None:
        row |= {
            "tokenizer": tokenizer_hash(tokenizer),
            "status": "done",
            "finished": now(),
            "steps": 0,
            "seconds": 0.0,
            "attempts": 1,
        }
        write_json(folder / "run.json", row)
    scores, ungraded = _scores(folder / LOG)
    facts: dict[str, Any] = {"tested": checkpoint.what, "step": checkpoint.step, "accuracy": scores}
    mark_done(folder, run=run, **facts | ({"ungraded": ungraded} if ungraded else {}))
    said = [
        f"{name} {'not graded' if score is None else f'{score:.3f}'}"
        + (f" ({ungraded[name]} ungraded)" if name in ungraded else "")
        for name, score in scores.items()
    ]
    print(
        f"{run:<28} {checkpoint.what} evaluated in {seconds:.0f} s: {', '.join(said)}", flush=True
    )


def _checkpoint(study: Study, run: str, settings: RunSettings, results: Path) -> Checkpoint:
    if run == study.base_run:
        return Checkpoint(base_path(study, results), 0, BASE_MODEL)
    trained, which = run_folder(study, run, results), settings.evaluation.checkpoint
    require_done(trained)
    step = settings.training.steps if which == "final" else best_step(trained / LOG)
    what = tested(which, settings.questions.validate_on_tests)
    return Checkpoint(str(trained / which), step, what)


def best_step(log: Path) -> int:
    """The step of the model in `best/`: the first with the greatest validation accuracy.

    Of the graded samples, as in training. UserError where the log holds none of validation.
    """
    found = (
        _rows(log, "step", "benchmark", "correct")
        .filter((pl.col("benchmark") == "validation") & pl.col("correct").is_not_null())
        .group_by("step")
        .agg(pl.col("correct").mean().alias("accuracy"))
        .sort("accuracy", "step", descending=[True, False])
    )
    if found.is_empty():
        raise UserError(
            f"{log}: holds no validation, so no checkpoint is the best. Set evaluation.checkpoint "
            f"to final, or restore the log."
        )
    return int(found["step"][0])


def _rows(log: Path, *columns: str) -> pl.DataFrame:
    """These columns of all rows of table `evaluations` in a log."""
    parts = [part for part in live_parts(log) if part.table == EVALUATIONS.name]
    nothing = pl.DataFrame(schema=EVALUATIONS.polars_schema).select(columns)
    return pl.concat(
        [
            nothing,
            *(
                pl.read_parquet(check_part(log, part), columns=list(columns), glob=False)
                for part in parts
            ),
        ]
    )


def _identity(
    settings: RunSettings,
    checkpoint: Checkpoint,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tests: dict[str, list[Question]],
) -> dict[str, Any]:
    """What an evaluation must agree in before it is gone on from, or taken for done."""
    facts = settings.model_dump(
        mode="json", include={"questions", "prompt", "grading", "evaluation"}
    )
    return {
        **facts,
        "batch": settings.rollout.batch,
        "engine": [settings.rollout.engine, settings.rollout.engine_dtype],
        "step": checkpoint.step,
        "model": fingerprint(model),
        "tokenizer": tokenizer_hash(tokenizer),
        "prompts": {name: prompts_hash(each) for name, each in tests.items()},
        "golds": content_hash(
            {name: [(q.id, q.gold, q.kind) for q in each] for name, each in tests.items()}
        ),
    }


def _open(folder: Path, identity: dict[str, Any]) -> bool:
    """Make the folder ready; False where it is done. What another identity left is put aside."""
    begun = folder / BEGUN
    if begun.is_file() and json.loads(begun.read_text()) == json.loads(json.dumps(identity)):
        return not (folder / DONE).is_file()
    if folder.exists() and any(folder.iterdir()):  # Snakemake makes an empty one before the rule
        _put_aside(folder)
    write_json(begun, identity)
    return True


def _put_aside(folder: Path) -> None:
    """Rename a folder to the first `<folder>.old-<n>` that is free, and say so."""
    numbers = itertools.count(1)
    aside = next(to for n in numbers if not (to := Path(f"{folder}.old-{n}")).exists())
    folder.rename(aside)
    print(
        f"{folder}: what is there is of an older version, or of another model, other questions or "
        f"settings. It is kept as {aside.name} and evaluated anew. Remove {aside} if nobody needs "
        f"it.",
        flush=True,
    )


def _sample(
    run: str,
    checkpoint: Checkpoint,
    settings: RunSettings,
    sampler: Sampler,
    tests: dict[str, list[Question]],
    log: Path,
) -> None:
    """Sample what is not in the log yet. A chunk is a part of the log, numbered like a step."""
    done = sampler.processes.first_does(partial(_chunks_done, log))
    recorder = Recorder(log, resumed_from=done) if sampler.processes.first else Unrecorded()
    for number, (benchmark, samples, chunk) in enumerate(_portions(settings, tests)):
        if number <= done:
            continue
        if number == 0 and checkpoint.what == BASE_MODEL:
            # Before the samples: a part of those says that a chunk is done.
            recorder.add("vocabulary", step_records.vocabulary_rows(sampler.tokenizer))
        rows = evaluate(
            sampler,
            chunk,
            samples,
            settings,
            derived_seed(0, benchmark, 0),
            test=True,
            run=run,
            step=checkpoint.step,
            benchmark=benchmark,
            domain=settings.questions.domain(benchmark),
        )
        recorder.add(EVALUATIONS.name, rows)
        recorder.flush(number, number)


def _chunks_done(log: Path) -> int:
    """The number of the last whole chunk in the log."""
    parts = [part for part in live_parts(log) if part.table == EVALUATIONS.name]
    return max((part.last_step for part in parts), default=FROM_THE_START)


def _portions(
    settings: RunSettings, tests: dict[str, list[Question]]
) -> Iterator[tuple[str, int, Sequence[Question]]]:
    """Every chunk of every benchmark, in a fixed order, with its samples a question."""
    for benchmark, asked in tests.items():
        known = settings.questions.tests[benchmark]
        own = known.samples if isinstance(known, Benchmark) else None
        samples = own or settings.evaluation.test_samples
        for chunk in chunks(asked, samples, settings):
            yield benchmark, samples, chunk


def _scores(log: Path) -> tuple[dict[str, float | None], dict[str, int]]:
    """By benchmark: right samples, of those graded; and how many were not, where some were not."""
    found = _rows(log, "benchmark", "correct").group_by("benchmark", maintain_order=True)
    totals = found.agg(pl.col("correct").mean().alias("score"), pl.col("correct").null_count())
    scores = dict(totals.select("benchmark", "score").iter_rows())
    missing = dict(totals.select("benchmark", "correct").iter_rows())
    return scores, {name: count for name, count in missing.items() if count}
