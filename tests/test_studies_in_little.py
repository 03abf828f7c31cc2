"""Two of the paper's studies, run: their own files but for sizes, a tiny model under the real name.

Model and data are found where a user has them, in the Hub's cache and in the data folder, and
everything runs through the real `exgrpo`. What a tiny model cannot be is large, and vLLM's.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from chat_tokenizers import QWEN_THINK, llama, qwen
from data_files import write_file
from hub_cache import put_into_cache, teach_answers, tiny_model
from test_trainer import read
from transformers import PreTrainedTokenizerFast
from working_folder import project

from exgrpo.prompts import prompt_ids
from exgrpo.questions import Question
from exgrpo.studies import Study, load_study

pytestmark = pytest.mark.slow

MAIN = "qwen2.5-math-7b"
# What is smaller than in the file; nothing else of it is touched.
SIZES: dict[str, Any] = {
    "questions": {"validation": {"limit": 2}},
    "grading": {"workers": 1},
    "rollout": {"max_new_tokens": 40, "batch": 32, "engine": "torch"},
    "batch": {"questions": 4, "micro_batch_tokens": 8192},
    "training": {"steps": 4, "checkpoint_every": 2},
    "evaluation": {"every": 2, "max_new_tokens": 40},
}
FORMS = {
    MAIN: ("qwen2", qwen(QWEN_THINK), "So.\n</think>\n"),
    "llama-3.1-8b": ("llama", llama(None), " "),
}


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for key, value in above.items():
        both[key] = merged(both[key], value) if isinstance(value, dict) else value
    return both


def shrink(folder: Path, name: str) -> Study:
    """The study's file, and the one that it extends, with other sizes."""
    path = folder / "config" / "studies" / f"{MAIN}.yaml"
    written = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(merged(written, {"arms": ["exgrpo"], "settings": SIZES})))
    if name != MAIN:
        path = path.with_name(f"{name}.yaml")
        written = yaml.safe_load(path.read_text())
        steps = {"training": {"steps": SIZES["training"]["steps"]}}
        path.write_text(yaml.safe_dump(merged(written, {"settings": steps})))
    return load_study(name, folder / "config")


def write_data(folder: Path) -> None:
    """A few questions of every data set, in the form and at the place of its local copy."""

    def rows(name: str, count: int = 2) -> list[dict[str, str]]:
        return [
            {"problem": f"{name}: {n} + 7 - {n}?", "answer": str(7 + n % 2)} for n in range(count)
        ]

    for place in ("aime24/aime.json", "amc23/amc.json", "aime25/test.jsonl", "math500/test.jsonl"):
        write_file(folder / place, rows(place))
    write_file(folder / "minerva_math/test.jsonl", rows("minerva"))
    olympiad = [{"question": "olympiad?", "final_answer": ["7"]}]
    write_file(folder / "olympiadbench/test.jsonl", olympiad)
    solved = [{"problem": each["problem"], "solution": rf"\boxed{{{each['answer']}}}"}
              for each in rows("math", 4)]  # fmt: skip
    write_file(folder / "math-train/train-1.parquet", solved)
    verl = [
        {
            "prompt": [{"role": "system", "content": "not read"},
                       {"role": "user", "content": each["problem"]}],
            "reward_model": {"ground_truth": each["answer"], "style": "rule"},
        }
        for each in rows("openr1", 12)
    ]  # fmt: skip
    write_file(folder / "openr1-math-46k/train.parquet", verl)
    options = {"text": ["six", "seven"], "label": ["A", "B"]}
    arc = [{"question": "2 * 3?", "choices": options, "answerKey": "A"}]
    write_file(folder / "arc-challenge/test-1.parquet", arc)
    mmlu = [{"question": "3 + 4?", "options": ["six", "seven"], "answer": "B"}]
    write_file(folder / "mmlu-pro/test-1.parquet", mmlu)
    keys = ("Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)))
    (folder / "gpqa").mkdir()
    with (folder / "gpqa" / "gpqa_diamond.csv").open("w") as file:
        csv.writer(file).writerows([keys, ("5 + 2?", "seven", "six", "five", "four")])


def run(folder: Path, *arguments: str) -> str:
    """The real `exgrpo` in the folder, offline, with its own Hub cache and data."""
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        cwd=folder,
        env=os.environ
        | {
            "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1",
            "EXGRPO_DATA": str(folder / "data"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        },
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def prepare(folder: Path, name: str) -> Study:
    """A working folder with the study in little, its data, and its model in the Hub's cache."""
    study = shrink(project(folder), name)
    write_data(folder / "data")
    architecture, tokenizer, thought = FORMS[name]
    model = tiny_model(architecture, tokenizer)
    settings = study.any_run
    asked = Question("openr1: 0 + 7 - 0?", "7", None, "here")
    prompt = prompt_ids(asked, settings.prompt, tokenizer)
    teach_answers(model, tokenizer, [prompt], [rf"{thought}\boxed{{{n}}}" for n in (7, 8)])
    assert settings.base.path is not None
    put_into_cache(folder / "hf", settings.base.path, model, tokenizer)
    return study


def check_training(folder: Path, study: Study, tokenizer: PreTrainedTokenizerFast) -> None:
    """Replay took part, and what was read and asked is the study's."""
    (run_id,) = study.runs
    trained = folder / "results" / study.name / "runs" / run_id
    assert json.loads((trained / "run.json").read_text())["status"] == "done"
    rows = read(trained, "trajectories").join(
        read(trained, "tokens").select("trajectory", "token_ids"), on="trajectory"
    )
    assert rows["replayed"].any() and rows["correct"].any() and not rows["correct"].all()
    settings = study.any_run
    assert rows.group_by("step", "group").len()["len"].unique().to_list() == [8]
    for row in rows.filter(pl.col("correct")).iter_rows(named=True):
        assert ("</think>" in row["response"]) == settings.grading.think
    (asked,) = (folder / "results" / study.name / "questions").glob("train.jsonl")
    for line in asked.read_text().splitlines():
        question = json.loads(line)
        shown = tokenizer.decode(question["prompt_ids"])
        assert question["text"] in shown
        assert shown.endswith("<think>\n" if settings.grading.think else "step by step.")


def test_llama_base_trains_from_the_hubs_cache_with_the_bare_prompt(tmp_path: Path) -> None:
    """Replay is on from the first step."""
    study = prepare(tmp_path, "llama-3.1-8b")
    for stage in ("base-model", "questions"):
        run(tmp_path, stage, "--study", study.name)
    (run_id,) = study.runs
    run(tmp_path, "train", "--study", study.name, "--run", run_id, "--threads", "1")
    check_training(tmp_path, study, FORMS[study.name][1])
    trained = tmp_path / "results" / study.name / "runs" / run_id
    assert read(trained, "steps")["replay_on"].all()
    # Trap 55: what a process may use is said, and noted.
    assert json.loads((trained / "run.json").read_text())["hardware"].endswith(" 1 threads")


def test_the_main_study_runs_to_its_report(tmp_path: Path) -> None:
    """By `exgrpo reproduce`: nine benchmarks, 32 answers a question where the paper takes them."""
    study = prepare(tmp_path, MAIN)
    run(tmp_path, "reproduce", MAIN)
    check_training(tmp_path, study, FORMS[MAIN][1])
    (run_id,) = study.runs
    results = tmp_path / "results" / MAIN
    assert (results / "report.html").stat().st_size > 0
    asked = study.any_run.questions.benchmarks
    for each in (run_id, study.base_run):
        tested = read(results / "evaluations" / each, "evaluations")
        per_question = tested.group_by("benchmark", "question").len()
        samples = dict(per_question.select("benchmark", "len").unique().rows())
        assert samples == {name: each.samples or 1 for name, each in asked.items()}
    steps = read(results / "runs" / run_id, "steps").sort("step")
    assert not steps["replay_on"][0], "delayed until a batch is more than 35 % right"
    assert steps["replay_on"][-1]
