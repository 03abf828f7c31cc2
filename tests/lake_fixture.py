"""A small made-up study on disk, written through the real Recorder and put into a real catalog.

Two arms with two seeds, 6 steps of 4 groups of 4; one run was resumed and has dead parts. The
questions, responses and markers are real chains; the numbers are drawn, not trained.
"""

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exgrpo import chain, questions
from exgrpo.markers import mark
from exgrpo.records import Recorder
from exgrpo.settings import RunSettings
from exgrpo.studies import ArmFile, Study, base_run_of
from pipeline.catalog import build_catalog
from pipeline.lake import add_study_entry

STUDY = "demo"
ARMS = ("on_policy", "exgrpo")
SEEDS = (0, 1)
STEPS, GROUPS, SIZE = 6, 4, 4
TOKENIZER = "tok12345"
TOKENS = ["<eos>", *"0123456789+-*=;", "\\boxed{", "}"]
HOSTILE = "<img src=x onerror=alert(1)> $\\frac{1}{0}$ :red[no] \\boxed{5}"

Row = dict[str, Any]


@dataclass
class DemoResults:
    """The results folder, its study, and every row that must be in the lake, by table."""

    results: Path
    study: Study
    rows: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def catalog(self) -> Path:
        return self.results / "workbench.duckdb"

    def add(self, recorder: Recorder, table: str, rows: list[Row]) -> None:
        recorder.add(table, rows)
        self.rows.setdefault(table, []).extend(rows)


def make_results(results: Path) -> DemoResults:
    """Write logs, lake and catalog of the demo study under `results`."""
    demo = DemoResults(results, demo_study())
    folder = results / STUDY
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(demo.study.model_dump_json())
    splits = questions.make_splits(demo.study.any_run.questions)
    _write_questions(demo, splits)
    _write_evaluations(demo, demo.study.base_run, splits, step=0)
    for number, run in enumerate(demo.study.runs):
        _write_run(demo, run, splits, resumed=number == 1)
        _write_evaluations(demo, run, splits, step=STEPS)
    for entry in (f"questions-{STUDY}", demo.study.base_run, *demo.study.runs):
        add_study_entry(demo.study, entry, results)
    build_catalog(results, STUDY)
    return demo


def demo_study(seeds: tuple[int, ...] = SEEDS) -> Study:
    """The resolved settings of the demo study."""
    runs = {}
    for arm in ARMS:
        for seed in seeds:
            settings = RunSettings.model_validate(
                {
                    "study": STUDY,
                    "arm": arm,
                    "seed": seed,
                    "questions": {"train": 12, "validation": 4, "test_id": 6, "test_ood": 6},
                    "rollout": {"group_size": SIZE},
                    "batch": {"questions": GROUPS},
                    "experience": {"replay": "trajectory" if arm == "exgrpo" else "none"},
                    "training": {"steps": STEPS, "checkpoint_every": 2},
                }
            )
            runs[settings.run] = settings
    arms = {arm: ArmFile(title=arm) for arm in ARMS}
    base, own = base_run_of(settings), list(seeds)
    return Study(name=STUDY, title="Made up", arms=arms, seeds=own, runs=runs, base_run=base)


def finish(folder: Path, run: Row | None = None) -> None:
    """Write what a stage writes last."""
    if run:
        (folder / "run.json").write_text(json.dumps(run))
    (folder / "done.json").write_text("{}")


def _run_row(demo: DemoResults, run: str) -> Row:
    settings = demo.study.runs.get(run)
    row = {
        "run": run,
        "study": STUDY,
        "arm": settings.arm if settings else "base",
        "seed": settings.seed if settings else None,
        "world": "hard",
        "base_model": f"results/{STUDY}/base",
        "tokenizer": TOKENIZER,
        "settings": settings.model_dump_json() if settings else "{}",
        "settings_hash": settings.hash if settings else None,
        "versions": "{}",
        "commit": "0123456789ab",
        "hardware": "cpu",
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:14:05+00:00",
        "seconds": 12.5 if settings else 0.0,
        "steps": STEPS if settings else 0,
        "attempts": 1,
        "status": "done",
    }
    demo.rows.setdefault("runs", []).append(row)
    return row


def _write_questions(demo: DemoResults, splits: dict[str, list[questions.Question]]) -> None:
    folder = demo.results / STUDY / "questions"
    recorder = Recorder(folder / "log")
    for split, members in splits.items():
        rows = [
            {
                "question": question.id,
                "source": question.source,
                "split": split,
                "text": question.text,
                "prompt": "<bos>" + question.text,
                "gold": question.gold,
                "level": question.level,
            }
            for question in members
        ]
        demo.add(recorder, "questions", rows)
    recorder.flush(0, 0)
    finish(folder)


def _vocabulary() -> list[Row]:
    return [{"tokenizer": TOKENIZER, "token_id": i, "text": text} for i, text in enumerate(TOKENS)]


def _write_evaluations(
    demo: DemoResults, run: str, splits: dict[str, list[questions.Question]], step: int
) -> None:
    folder = demo.results / STUDY / "evaluations" / run
    recorder = Recorder(folder / "log")
    for benchmark in ("test_id", "test_ood"):
        demo.add(recorder, "evaluations", _samples(run, step, benchmark, splits[benchmark], 3))
    if run == demo.study.base_run:
        demo.add(recorder, "vocabulary", _vocabulary())
    recorder.flush(0, step)
    finish(folder, _run_row(demo, run) if run == demo.study.base_run else None)


def _samples(
    run: str, step: int, benchmark: str, asked: list[questions.Question], samples: int
) -> list[Row]:
    rng = random.Random(f"{run.rpartition('-')[0]} {step} {benchmark}")
    return [
        {
            "run": run,
            "step": step,
            "benchmark": benchmark,
            "question": question.id,
            "sample": sample,
            "level": question.level,
            "temperature": 1.0,
            **_answered(question, rng, skill=step / STEPS),
        }
        for question in asked
        for sample in range(samples)
    ]


def _answered(question: questions.Question, rng: random.Random, skill: float) -> Row:
    """The columns that a response has in evaluations; better with more skill (0 .. 1)."""
    response = chain.demonstrate(question.text, rng, 0.3 - 0.2 * skill, 0.2, 0.25)
    markers = mark(question.source, question.text, response)
    extracted = response.partition("\\boxed{")[2].rstrip("}")
    entropy = rng.uniform(0.1, 1.0) - 0.05 * skill
    return {
        "response": response,
        "length": len(_token_ids(response)),
        "finish": "stop",
        "extracted": extracted,
        "correct": None if rng.random() < 0.03 else extracted == question.gold,
        "mean_entropy": entropy,
        "nll": entropy * 1.1,
        "shortcut": markers.shortcut,
        "step_errors": markers.step_errors,
        "chain_valid": markers.chain_valid,
    }


def _token_ids(response: str) -> list[int]:
    pieces = re.findall(r"\\boxed\{|.", response)
    return [TOKENS.index(piece) if piece in TOKENS else 1 for piece in pieces] + [0]


def _write_run(
    demo: DemoResults, run: str, splits: dict[str, list[questions.Question]], resumed: bool
) -> None:
    folder = demo.results / STUDY / "runs" / run
    recorder = Recorder(folder / "log")
    recorder.add("vocabulary", _vocabulary())  # every run logs it; the catalog keeps it once
    demo.add(recorder, "evaluations", _samples(run, 0, "validation", splits["validation"], 2))
    recorder.flush(0, 0)
    rng = random.Random(run.rpartition("-")[0])  # not of the hash: a new setting changes nothing
    buffer: dict[str, Row] = {}
    for step in range(1, STEPS + 1):
        if resumed and step == 3:
            recorder = _die_and_resume(run, folder / "log", recorder, step)
        for table, rows in _step(demo, run, step, splits["train"], buffer, rng).items():
            demo.add(recorder, table, rows)
        if step % 3 == 0:
            samples = _samples(run, step, "validation", splits["validation"], 2)
            demo.add(recorder, "evaluations", samples)
        if step % 2 == 0:
            recorder.flush(step - 1, step)
    finish(folder, _run_row(demo, run))


def _die_and_resume(run: str, log: Path, recorder: Recorder, step: int) -> Recorder:
    """Log two steps that a crash takes back, then open the next attempt before them."""
    recorder.add("steps", ({"run": run, "step": step + i, "reward": -1.0} for i in (0, 1)))
    recorder.flush(step, step + 1)
    return Recorder(log, resumed_from=step - 1)


def _step(
    demo: DemoResults,
    run: str,
    step: int,
    train: list[questions.Question],
    buffer: dict[str, Row],
    rng: random.Random,
) -> dict[str, list[Row]]:
    """The rows of one step; `buffer` keeps one right trajectory a question and is changed."""
    replaying = demo.study.runs[run].experience.replay != "none"
    known = {question.id: question for question in train}
    stored = list(buffer)[:2] if replaying and step > 1 else []
    asked = rng.sample([question for question in train if question.id not in stored], GROUPS)
    asked[: len(stored)] = [known[question] for question in stored]
    trajectories, tokens, candidates, experience = [], [], [], []
    for group, question in enumerate(asked):
        rows = []
        for slot in range(SIZE):
            row = _trajectory(run, step, group, slot, question, rng)
            if group < len(stored) and slot == 0:
                source = buffer[question.id]
                row = row | _replay(source, rng)
                candidates.append(_candidate(run, step, group, source, row))
                experience.append(_event(run, step, question.id, "replayed", source["trajectory"]))
            if run.startswith("exgrpo-s0") and (step, group, slot) == (1, 3, 2):
                row |= {"response": HOSTILE, "length": len(_token_ids(HOSTILE))}
            rows.append(row)
        _grade_group(rows, group < len(stored))
        for row in rows:
            tokens.append(_tokens(row, rng, floats=row["slot"] != 3))
            if row["correct"] and not row["replayed"] and question.id not in buffer:
                buffer[question.id] = row
                experience.append(_event(run, step, question.id, "stored", row["trajectory"]))
        trajectories += rows
    return {
        "trajectories": trajectories,
        "tokens": tokens,
        "candidates": candidates,
        "experience": experience,
        "steps": [_metrics(run, step, trajectories, len(stored), rng)],
    }


def _trajectory(
    run: str, step: int, group: int, slot: int, question: questions.Question, rng: random.Random
) -> Row:
    answered = _answered(question, rng, skill=step / STEPS)
    return {
        "trajectory": f"{run}:{step}:{group}:{slot}",
        "run": run,
        "step": step,
        "group": group,
        "slot": slot,
        "question": question.id,
        "replayed": False,
        "birth_step": step,
        "level": question.level,
        "format_ok": True,
        "code": False,
        "repetition": False,
        **answered,
        "summed_entropy": answered["mean_entropy"] * answered["length"],
        "behaviour_nll": answered["nll"],
        "ratio_mean": 1.0,
        "ratio_min": 0.9,
        "ratio_max": 1.1,
        "weight_mean": 1.0,
        "clipped_share": 0.0,
    }


def _replay(source: Row, rng: random.Random) -> Row:
    """The columns in which a replay differs from a fresh trajectory: those of its source."""
    kept = ("response", "length", "extracted", "correct", "shortcut", "step_errors", "chain_valid")
    ratio = rng.uniform(0.5, 1.5)
    return {name: source[name] for name in kept} | {
        "replayed": True,
        "source": source["trajectory"],
        "birth_step": source["step"],
        "behaviour_nll": source["nll"],
        "ratio_mean": ratio,
        "weight_mean": ratio / (ratio + 0.1),
    }


def _grade_group(rows: list[Row], experiential: bool) -> None:
    """Fill in what a trajectory owes to its group."""
    graded = [row["correct"] for row in rows if row["correct"] is not None]
    successes = sum(graded)
    for row in rows:
        reward = row["correct"]
        row |= {
            "experiential": experiential,
            "group_successes": successes,
            "group_size": len(graded),
            "bucket_drawn": 2 if experiential else None,
            "bucket": successes if 0 < successes < len(graded) else None,
            "advantage": 0.0 if reward is None else reward - successes / len(graded),
        }


def _tokens(row: Row, rng: random.Random, floats: bool) -> Row:
    ids = _token_ids(row["response"])
    numbers = [round(rng.uniform(0.0, 2.0), 3) for _ in ids]
    return {
        **{name: row[name] for name in ("trajectory", "run", "step", "group", "slot")},
        "token_ids": ids,
        "behaviour_logprobs": [-number for number in numbers],
        "logprobs": [-number * 1.1 for number in numbers] if floats else None,
        "entropies": numbers if floats else None,
    }


def _candidate(run: str, step: int, group: int, source: Row, row: Row) -> Row:
    names = ("question", "length", "mean_entropy", "summed_entropy", "nll")
    return {name: row[name] for name in names} | {
        "run": run,
        "step": step,
        "group": group,
        "source": source["trajectory"],
        "birth_step": source["step"],
        "released": row["mean_entropy"] / 2,
        "rank": 0,
        "chosen": True,
    }


def _event(run: str, step: int, question: str, event: str, trajectory: str) -> Row:
    names = ("run", "step", "question", "event", "trajectory", "bucket_after")
    return dict(zip(names, (run, step, question, event, trajectory, 2), strict=True))


def _metrics(
    run: str, step: int, rows: list[Row], experiential_groups: int, rng: random.Random
) -> Row:
    fresh = [row for row in rows if not row["replayed"]]
    first = [row for row in rows if row["slot"] == 0]
    tokens = sum(row["length"] for row in fresh)
    return {
        "run": run,
        "step": step,
        "replay_on": step > 1,
        "reward": sum(bool(row["correct"]) for row in fresh) / len(fresh),
        "groups": GROUPS,
        "experiential_groups": experiential_groups,
        "signal_groups": sum(0 < row["group_successes"] < row["group_size"] for row in first),
        "solved_groups": sum(row["group_successes"] == row["group_size"] for row in first),
        "failed_groups": sum(row["group_successes"] == 0 for row in first),
        "ungraded": sum(row["correct"] is None for row in rows),
        "entropy": rng.uniform(0.3, 0.6),
        "length": tokens / len(fresh),
        "truncated_share": 0.0,
        "loss": rng.uniform(-0.1, 0.1),
        "grad_norm": rng.uniform(0.5, 1.5),
        "skipped_updates": 0,
        "buffer_questions": step,
        "buffer_trajectories": step,
        "bucket_sizes": [1, step - 1, 0],
        "retired_questions": 0,
        "sampled_tokens": tokens,
        "total_sampled_tokens": tokens * step,
        "seconds": 1.0,
        "run_seconds": float(step),
    }
