"""Stage: write the report of a study, `results/<study>/report.html`."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from analysis.closing import is_partial, progress, seeds_finished
from analysis.domains import NAMES
from analysis.drawing import study_facts
from analysis.figures import READINGS
from analysis.report import Arm, ReportInput, render
from analysis.stage_outputs import read_stage_outputs
from exgrpo.errors import UserError
from exgrpo.question_settings import DataSet
from exgrpo.records import write_whole
from exgrpo.settings import RunSettings
from exgrpo.studies import Study
from pipeline.analyse import not_analysed, read_frames, read_json


def make_report(study: Study, results: Path) -> None:
    """Write the report from the study's `analyses` and `figures`. UserError when one is missing."""
    folder = results / study.name
    outputs = read_stage_outputs(results, study.name)
    if outputs is None:
        raise not_analysed(folder / "analyses", study.name)
    if len(outputs.figures) < len(READINGS):
        raise UserError(
            f"{folder / 'figures'}: {len(READINGS) - len(outputs.figures)} figures missing. "
            f"Run `exgrpo figures --study {study.name}` first."
        )
    frames = read_frames(folder / "analyses")
    facts = study_facts(study.name, frames["study_runs"])
    content = ReportInput(
        study=study.name,
        title=study.title,
        world=facts.world,
        facts=_facts(study, facts.world, frames["study_runs"], outputs.comparison),
        arms=[Arm(name, arm.title, arm.claim, arm.paper) for name, arm in study.arms.items()],
        comparison=outputs.comparison,
        alpha=read_json(folder / "analyses" / "claims.json")["alpha"],
        verdicts=outputs.verdicts,
        observations=outputs.observed,
        figures=outputs.figures,
        frames=frames,
        limits=_limits(study, outputs.comparison),
        commands=[
            (f"make reproduce STUDY={study.name}", "everything, or what is left of it"),
            (f"make reproduce STUDY={study.name} FINISHED=1", "this page, on the runs there are"),
            ("make app", "the dashboard: every trajectory behind these numbers"),
            ("exgrpo sql", "the same in SQL"),
        ],
    )
    path = folder / "report.html"
    write_whole(path, render(content).encode())
    print(f"report: {path}")


def _facts(
    study: Study, world: str, runs: pl.DataFrame, comparison: dict[str, Any]
) -> list[tuple[str, str]]:
    return [
        ("world", world),
        ("arms", ", ".join(study.arms)),
        ("seeds planned", ", ".join(map(str, study.seeds))),
        ("study", progress(comparison)),
        *run_facts(study, runs),
    ]


def run_facts(study: Study, runs: pl.DataFrame) -> list[tuple[str, str]]:
    """How a study was run, label and text, from the rows of query `study_runs`."""
    trained = runs.filter(pl.col("seed").is_not_null())
    shared = study.any_run
    versions: dict[str, Any] = json.loads(next(iter(runs["versions"].drop_nulls()), "{}"))
    return [
        (
            "training",
            f"{shared.training.steps} steps of {shared.batch.questions} questions, "
            f"{shared.rollout.group_size} answers each, learning rate "
            f"{shared.optimiser.learning_rate:g}",
        ),
        ("questions", f"{_questions(shared.questions.train)} to train on"),
        ("tests", _tests(shared)),
        ("wall time", f"{(trained['seconds'].sum() or 0) / 60:.1f} min of training over all runs"),
        ("hardware", _distinct(runs["hardware"])),
        ("commit", _distinct(runs["commit"])),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]


def _tests(shared: RunSettings) -> str:
    """Every benchmark with its questions, domain and samples."""
    rules = shared.questions
    return "; ".join(
        f"{name} ({NAMES[rules.domain(name)]}): {_questions(test)}, "
        f"{(not isinstance(test, int) and test.samples) or shared.evaluation.test_samples} answers "
        "each"
        for name, test in rules.tests.items()
    )


def _questions(asked: int | DataSet) -> str:
    """How many questions, or of which data set."""
    if isinstance(asked, int):
        return str(asked)
    return f"{f'{asked.limit} of ' if asked.limit else ''}{asked.dataset}"


def _distinct(values: pl.Series) -> str:
    return "; ".join(values.drop_nulls().unique().sort()) or "not recorded"


def _limits(study: Study, comparison: dict[str, Any]) -> list[str]:
    seeds = seeds_finished(comparison)
    if seeds == 1:
        coarse = (
            "One seed: intervals speak about the questions only, not about training again, and "
            "no claim can be tested."
        )
    else:
        coarse = (
            f"{seeds} seeds: intervals take Student's t with {seeds - 1} degrees of freedom for "
            "what training again would change, so few seeds make them wide. In simulations they "
            "held the truth 95 to 98 % of the time with 3 seeds, as long as seeds deviate about "
            "normally; docs/intervals.md has the tables."
        )
    chosen = study.any_run.evaluation.checkpoint == "best"
    caution = (
        ", so its scores are too high for questions that are new"
        if chosen and study.any_run.questions.validate_on_tests
        else ""
    )
    partial = (
        "Part of the study: more runs are planned. Verdicts do not allow for looking several times "
        "while runs come in; those of the whole study count."
    )
    return [
        *([partial] if is_partial(comparison) else []),
        "Verdicts are about this model, this task and this world: with less headroom replay can "
        "hurt. The paper trains models of 1.5 to 8 billion parameters on mathematics.",
        coarse,
        "All seeds of a study share one base model and one set of questions to train on: they say "
        "how training varies, not how another base model or another set would do.",
        "The interval of the base model is over questions only: it is one model.",
        "ExGRPO as the paper means it differs from on-policy training in two ways: it replays, and "
        "it drops the clip once replay has started. C1 and C2 are about both together. C23a is the "
        "contrast with the same clip rule on both sides, so it is about the replayed answers.",
        f"Tested: the {comparison['tested']}{caution}. Accuracy is the mean over all answers to a "
        f"question, at temperature {study.any_run.evaluation.temperature:g}; over several "
        "benchmarks the mean over them, each weighing the same.",
        "A chain is flawed when a step that the question needs is missing or wrong. Where the task "
        "has a check that is exact; the paper asks a judge model.",
        "Unless its arm says otherwise, the trajectory to replay is chosen by the mean entropy "
        "over its own response tokens, as the paper describes it. The released code averages "
        "other positions.",
        "Entropy and difficulty are observed, not assigned: C4 to C7 and the figures of them show "
        "what goes together, not what causes what. A comparison of two arms speaks about all that "
        "their settings differ in.",
    ]
