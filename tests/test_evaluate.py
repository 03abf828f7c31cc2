"""The stage `evaluate`: samples of every benchmark, killed and gone on, of which checkpoint."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from dying import Death, arrange, in_child, run_folder, small_study, train_small
from typer.testing import CliRunner

from exgrpo.errors import UserError
from exgrpo.evaluation import row_of
from exgrpo.grading import Answer, Grader, rules_for
from exgrpo.policy import fingerprint, load_policy
from exgrpo.questions import Question
from exgrpo.records import Recorder
from exgrpo.rollout import Rollout
from exgrpo.sampling import Sampled
from exgrpo.settings import RunSettings
from exgrpo.studies import Study, load_study
from exgrpo.tables.manifest import attempts, live_parts
from pipeline.cli import app
from pipeline.evaluate import best_step, evaluate_run
from pipeline.files import evaluation_folder, questions_hash

TESTS = {"test_id": 5, "test_ood": 3}
SETTINGS: dict[str, dict[str, Any]] = {
    "questions": TESTS,
    "rollout": {"batch": 2},
    "evaluation": {"test_samples": 4, "max_new_tokens": 24},
}
CHUNKS = 5  # of 2 questions at most: 3 of test_id, 2 of test_ood


def evaluate_base(folder: Path, death: Death | None = None) -> None:
    study = load_study("small", folder / "config")
    if death:
        arrange(death)
    evaluate_run(study, study.base_run, folder / "results", threads=1)


def base_folder_of(folder: Path) -> Path:
    study = load_study("small", folder / "config")
    return evaluation_folder(study, study.base_run, folder / "results")


def rows_of(folder: Path) -> pl.DataFrame:
    """What counts of the evaluations of a log, as it was written."""
    log = folder / "log"
    parts = [part for part in live_parts(log) if part.table == "evaluations"]
    return pl.concat([pl.read_parquet(log / part.path, glob=False) for part in parts])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, able_folder: str) -> Path:
    """The base model of a small study, evaluated without a break."""
    folder = tmp_path_factory.mktemp("whole")
    small_study(folder, able_folder, **SETTINGS)
    evaluate_base(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, able_folder: str) -> Path:
    small_study(tmp_path, able_folder, **SETTINGS)
    return tmp_path


def test_every_question_has_its_samples_and_its_domain(whole: Path) -> None:
    rows = rows_of(base_folder_of(whole))
    assert rows.height == 4 * sum(TESTS.values())
    counts = rows.group_by("benchmark", "domain").agg(pl.col("question").n_unique())
    assert set(counts.rows()) == {("test_id", "in", 5), ("test_ood", "out", 3)}
    keys = rows.select("benchmark", "question", "sample")
    assert keys.is_unique().all() and set(rows["sample"]) == {0, 1, 2, 3}
    done = json.loads((base_folder_of(whole) / "done.json").read_text())
    for (benchmark,), part in rows.group_by("benchmark"):
        assert done["accuracy"][benchmark] == pytest.approx(part["correct"].mean())
    assert attempts(base_folder_of(whole) / "log") == 1


def test_a_run_that_there_is_not_is_told_the_names_that_there_are(folder: Path) -> None:
    """With that of the base model, which nothing else tells before the first `reproduce`."""
    study = load_study("small", folder / "config")
    with pytest.raises(UserError, match=f"no run 'base'.*its base model.*: {study.base_run}"):
        evaluate_run(study, "base", folder / "results", threads=1)


def test_a_base_model_alone_is_asked_about_stage_by_stage(folder: Path) -> None:
    """As docs/evaluation.md says: no run of the study is trained."""
    study = load_study("small", folder / "config")
    evaluate_base(folder)
    places = ["--results", str(folder / "results")]
    of_study = ["--study", "small", "--config", str(folder / "config"), *places]
    for command in (
        *(["lake", *of_study, "--entry", name] for name in (study.base_run, "questions-small")),
        ["catalog", *places],
        ["sql", "--name", "benchmark_scores", "--format", "json", *places],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    rows = map(json.loads, done.stdout.splitlines())
    found = {row["benchmark"]: row for row in rows}
    assert found.keys() == TESTS.keys()
    assert {row["run"] for row in found.values()} == {study.base_run}
    refused = CliRunner().invoke(app, ["evaluate", *of_study, "--run", "base"])
    assert study.base_run in str(refused.exception)


DEATHS = [
    Death("flush", "before", 1),
    Death("flush", "after", 3),
    Death("part", "after", 2),
    Death("manifest line", "half way", 4),
    Death("manifest line", "after", 3),  # of the first chunk: its vocabulary, not yet its samples
    Death("manifest line", "before", 7),
]


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: f"{death.moment} {death.how}")
def test_a_killed_evaluation_goes_on_to_the_same_rows(
    death: Death, folder: Path, whole: Path
) -> None:
    assert in_child(folder, evaluate_base, death) == -signal.SIGKILL
    made = base_folder_of(folder)
    assert not (made / "done.json").exists()
    before = {part.path for part in live_parts(made / "log") if part.table == "evaluations"}
    assert len(before) < CHUNKS
    evaluate_base(folder)
    parts = live_parts(made / "log")
    assert before <= {part.path for part in parts}  # nothing whole was sampled again
    assert sum(part.table == "vocabulary" for part in parts) == 1
    assert rows_of(made).equals(rows_of(base_folder_of(whole)))


def test_one_that_is_done_is_left_and_one_of_other_golds_begun_anew(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = base_folder_of(folder)
    made.mkdir(parents=True)  # as Snakemake does for the outputs of a rule
    evaluate_base(folder)
    assert "base model evaluated in" in (said := capsys.readouterr().out)
    assert "test_id 0." in said and "test_ood 0." in said
    assert "kept as" not in said and not list(made.parent.glob("*.old-*"))
    before = rows_of(made)
    evaluate_base(folder)
    assert "evaluated before" in capsys.readouterr().out
    file = folder / "results" / "small" / "questions" / "test_ood.jsonl"
    first, *rest = file.read_text().splitlines()
    ood = before.filter(pl.col("benchmark") == "test_ood")
    said = ood["extracted"].drop_nulls()[0]
    changed = json.dumps(json.loads(first) | {"gold": said})
    file.write_text("\n".join([changed, *rest]) + "\n")
    evaluate_base(folder)
    assert f"kept as {made.name}.old-1" in capsys.readouterr().out
    aside = made.with_name(f"{made.name}.old-1")
    assert rows_of(aside).equals(before) and (aside / "done.json").is_file()
    after = rows_of(made)
    assert attempts(made / "log") == 1  # of the new log
    assert after.drop("correct").equals(before.drop("correct"))
    assert after["correct"].sum() != before["correct"].sum()
    unreadable = json.dumps(json.loads(first) | {"kind": "mcq"})  # its gold is no letter
    file.write_text("\n".join([unreadable, *rest]) + "\n")
    (made / "begun.json").unlink()  # as an older version left it
    evaluate_base(folder)
    assert "(4 ungraded)" in capsys.readouterr().out
    assert rows_of(made.with_name(f"{made.name}.old-2")).equals(after)
    done = json.loads((made / "done.json").read_text())
    assert done["ungraded"] == {"test_ood": 4}
    graded = ood.filter(pl.col("question") != ood["question"][0])
    assert done["accuracy"]["test_ood"] == pytest.approx(graded["correct"].mean())


def test_trap_31_an_evaluated_response_ends_by_any_end_token(
    tmp_path: Path, many_ends: str
) -> None:
    small_study(tmp_path, many_ends, **SETTINGS, prompt={"stop": ["*"]})
    evaluate_base(tmp_path)
    rows = rows_of(base_folder_of(tmp_path))
    assert not rows["response"].str.contains(r"[+*]").any()
    ended = rows.filter(pl.col("finish") == "stop")
    assert (ended["length"] < 24).any() and set(rows["finish"]) == {"stop"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, able_folder: str) -> tuple[Study, Path]:
    """A small run that kept its best model, to be tested on that."""
    folder = tmp_path_factory.mktemp("trained")
    small_study(
        folder,
        able_folder,
        **SETTINGS | {"evaluation": {"checkpoint": "best", "max_new_tokens": 24}},
        training={"steps": 4, "keep_best": True},
    )
    train_small(folder)
    return load_study("small", folder / "config"), folder


def test_the_best_checkpoint_is_that_of_validation(
    trained: tuple[Study, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    study, folder = trained
    (run,) = study.runs
    evaluate_run(study, run, folder / "results", threads=1)
    assert "checkpoint of the best validation evaluated in" in capsys.readouterr().out
    validation = rows_of(run_folder(folder)).filter(pl.col("benchmark") == "validation")
    accuracies = {
        step: rows["correct"].sum() / rows.height
        for (step,), rows in validation.group_by("step", maintain_order=True)
    }
    best = min(step for step, value in accuracies.items() if value == max(accuracies.values()))
    made = evaluation_folder(study, run, folder / "results")
    assert set(rows_of(made)["step"]) == {best}
    begun = json.loads((made / "begun.json").read_text())
    model, _ = load_policy(str(run_folder(folder) / "best"))
    assert begun["model"] == fingerprint(model)


def test_a_checkpoint_chosen_by_test_questions_is_called_that(
    trained: tuple[Study, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    study, folder = trained
    (run, settings), *_ = study.runs.items()
    told = settings.model_copy(
        update={"questions": settings.questions.model_copy(update={"validate_on_tests": True})}
    )
    questions = folder / "results" / "small" / "questions" / "done.json"
    before = questions.read_text()
    questions.write_text(json.dumps(json.loads(before) | {"settings": questions_hash(told)}))
    evaluate_run(study.model_copy(update={"runs": {run: told}}), run, folder / "results", threads=1)
    questions.write_text(before)
    assert "checkpoint chosen by test questions evaluated in" in capsys.readouterr().out


def test_a_letter_votes_and_what_grading_cannot_read_is_no_answer() -> None:
    question = Question("which?", "B", 1, "gpqa", kind="mcq")
    settings = RunSettings(study="s", arm="a", seed=0)
    rules = rules_for(question.kind, settings.grading)
    boxes = ["B", "(B)", r"\text{B}", "B. the dog", "the dog", "A"]
    said = [f"So \\boxed{{{box}}}" for box in boxes] + ["no box"]
    rollout = Rollout([1], np.zeros(1), np.zeros(1), "stop")
    with Grader() as grader:
        verdicts = grader.grade_all([Answer("B", text, rules) for text in said])
    rows = [
        row_of(question, Sampled(rollout, text, verdict), rules, settings)
        for text, verdict in zip(said, verdicts, strict=True)
    ]
    assert [row["vote"] for row in rows] == ["B", "B", "B", "B", None, "A", None]
    assert [row["extracted"] for row in rows] == [*boxes[:4], None, "A", None]
    assert [row["correct"] for row in rows] == [True] * 4 + [False] * 3


def test_the_best_checkpoint_is_that_of_the_graded_samples(tmp_path: Path) -> None:
    found = {0: [True, None], 4: [True, True, False], 8: [None]}
    row = {"run": "r", "benchmark": "validation"}
    recorder = Recorder(tmp_path / "log")
    recorder.add(
        "evaluations",
        [row | {"step": step, "correct": each} for step, own in found.items() for each in own],
    )
    recorder.flush(0, 0)
    assert best_step(tmp_path / "log") == 0


def test_no_checkpoint_is_the_best_without_a_validation(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "log")
    recorder.add("evaluations", [{"run": "r", "step": 4, "benchmark": "aime", "correct": True}])
    recorder.flush(0, 0)
    with pytest.raises(UserError, match="holds no validation"):
        best_step(tmp_path / "log")


def test_o61_copies_of_a_question_in_its_file_are_not_sampled_each(
    tmp_path: Path, able_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """avg@32 where the file already holds 32 copies of each of 30 questions: 960 responses."""
    questions = [f"{n // 10}+{n % 10}+1=" for n in range(30)]
    rows = [
        json.dumps({"question": text, "answer": str(n // 10 + n % 10 + 1)})
        for _ in range(32)
        for n, text in enumerate(questions)
    ]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "copies.jsonl").write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("EXGRPO_DATA", str(tmp_path / "data"))
    (tmp_path / "config" / "datasets").mkdir(parents=True)
    (tmp_path / "config" / "datasets" / "copies.yaml").write_text(
        "title: copies\nlicence: ours\nlocal: copies.jsonl\n"
    )
    asked = {"test_id": 0, "test_ood": 0}
    benchmarks = {"copies": {"dataset": "copies", "samples": 32}}
    small_study(
        tmp_path,
        able_folder,
        questions=asked | {"benchmarks": benchmarks},
        rollout={"batch": 64},
        evaluation={"max_new_tokens": 4},
    )
    evaluate_base(tmp_path)
    rows_made = rows_of(base_folder_of(tmp_path))
    assert rows_made.height == 960
    counts = rows_made.group_by("question").len()
    assert counts.height == 30 and set(counts["len"]) == {32}
    assert rows_made["domain"].unique().to_list() == ["in"]
