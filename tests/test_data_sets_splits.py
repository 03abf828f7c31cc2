"""Splits from data sets: kept apart, prompted, drawn, and written by the stage `questions`."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from chat_tokenizers import LLAMA_TOKENS, llama
from data_files import Row, describe, write_file
from typer.testing import CliRunner
from working_folder import planned_jobs, snakemake

from exgrpo import arithmetic, questions
from exgrpo.data_set_file import descriptions
from exgrpo.data_sets import A_TEST, A_VALIDATION, CONTROL, TOO_LONG, Loaded, load_splits
from exgrpo.errors import UserError
from exgrpo.policy import load_tokenizer, tokenizer_hash
from exgrpo.prompts import control_texts, prompts_hash, with_prompt_ids
from exgrpo.question_settings import Prompt, Questions
from exgrpo.studies import Study, load_study
from exgrpo.tables.manifest import file_hash
from pipeline.base_model import make_base_model
from pipeline.cli import app
from pipeline.files import question_file, questions_hash, require_done
from pipeline.questions import make_questions

ROOT = Path(__file__).resolve().parents[1]
# What a split says when nothing is made.
NONE = {"test_id": 0, "test_ood": 0}


def asked(*numbers: int) -> list[Row]:
    return [{"problem": f"{n}+1=", "answer": str(n + 1)} for n in numbers]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Data sets `train` (0 to 29), `held` (20 to 34) and `test` (10 to 24), in config/."""
    for name, numbers in (("train", range(30)), ("held", range(20, 35)), ("test", range(10, 25))):
        file = write_file(tmp_path / "data" / f"{name}.jsonl", asked(*numbers))
        describe(tmp_path / "config", name, hub=str(file.parent), file=file.name)
    return tmp_path / "config"


def texts(loaded: Loaded) -> set[str]:
    return {each.text for each in loaded.questions}


def load(config: Path, base: str, **keys: Any) -> dict[str, Loaded]:
    settings = Questions.model_validate({**NONE, **keys})
    ask = partial(with_prompt_ids, settings=Prompt(), tokenizer=load_tokenizer(base))
    return load_splits(settings, config, ask)


SPLITS: dict[str, Any] = {
    "train": {"dataset": "train"},
    "validation": {"dataset": "held"},
    "benchmarks": {"easy": {"dataset": "test"}},
}


def test_no_test_question_is_trained_or_chosen_on(config: Path, base_folder: str) -> None:
    loaded = load(config, base_folder, **SPLITS)
    assert texts(loaded["easy"]) == {f"{n}+1=" for n in range(10, 25)}
    assert texts(loaded["validation"]) == {f"{n}+1=" for n in range(25, 35)}
    assert texts(loaded["train"]) == {f"{n}+1=" for n in range(10)}
    assert loaded["validation"].reasons == {A_TEST: 5}
    assert loaded["train"].reasons == {A_TEST: 15, A_VALIDATION: 5}
    places = [row.place for row in loaded["train"].rejected if row.reason == A_VALIDATION]
    assert places == [f"train.jsonl: line {n}" for n in range(26, 31)]


def test_validation_may_be_of_the_tests_where_told(config: Path, base_folder: str) -> None:
    loaded = load(config, base_folder, **SPLITS, validate_on_tests=True)
    assert texts(loaded["validation"]) == {f"{n}+1=" for n in range(20, 35)}
    assert texts(loaded["train"]) == {f"{n}+1=" for n in range(10)}


def test_a_part_can_be_held_out_of_the_training_set(config: Path, base_folder: str) -> None:
    splits = {**SPLITS, "validation": {"dataset": "train", "limit": 4}}
    loaded = load(config, base_folder, **splits)
    assert len(texts(loaded["validation"])) == 4
    assert len(texts(loaded["train"])) == 30 - 15 - 4
    assert not texts(loaded["validation"]) & (texts(loaded["train"]) | texts(loaded["easy"]))
    assert load(config, base_folder, **splits) == loaded
    assert load(config, base_folder, **splits, seed=1) != loaded


def test_a_long_prompt_is_left_out_before_the_draw(config: Path, base_folder: str) -> None:
    longer = {"problem": "9" * 40 + "+1=", "answer": "2"}
    write_file(config.parent / "data" / "train.jsonl", [*asked(1, 2), longer, *asked(3)])
    loaded = load(
        config,
        base_folder,
        train={"dataset": "train", "limit": 3},
        benchmarks=SPLITS["benchmarks"],
        max_prompt_tokens=20,
    )
    assert len(loaded["train"].questions) == 3 and loaded["train"].reasons == {TOO_LONG: 1}
    assert loaded["train"].rejected[0].place == "train.jsonl: line 3"
    assert all(0 < len(each.prompt_ids) <= 20 for each in loaded["train"].questions)


def test_a_control_token_in_a_question_is_named_and_left_out(config: Path) -> None:
    """In a prompt it would end the user's turn, or begin a text anew. A word is no such token."""
    tokenizer = llama()
    tokenizer.add_tokens(["triangle"])  # a word of its own, and no control token
    written = [f"1{token}+1=" for token in ("<|eot_id|>", "<|begin_of_text|>", " triangle", "<s>")]
    rows = [{"problem": text, "answer": "2"} for text in written]
    write_file(config.parent / "data" / "train.jsonl", rows)
    settings = Questions.model_validate(
        {**NONE, "train": {"dataset": "train"}, "benchmarks": SPLITS["benchmarks"]}
    )
    prompt = Prompt(template="chat")
    ask = partial(with_prompt_ids, settings=prompt, tokenizer=tokenizer)
    found = load_splits(settings, config, ask, control_texts(tokenizer))["train"]
    assert [each.text for each in found.questions] == written[2:]
    assert [(row.place, row.reason, row.found) for row in found.rejected] == [
        ("train.jsonl: line 1", CONTROL, "it has '<|eot_id|>'"),
        ("train.jsonl: line 2", CONTROL, "it has '<|begin_of_text|>'"),
    ]
    assert control_texts(tokenizer) == set(LLAMA_TOKENS)


def test_too_few_questions_is_an_error(config: Path, base_folder: str) -> None:
    with pytest.raises(UserError, match=r"key `limit` is 11, and 10 questions .*15 also a test"):
        load(config, base_folder, **{**SPLITS, "train": {"dataset": "train", "limit": 11}})
    short = {**SPLITS, "train": {"dataset": "train", "limit": 3}, "max_prompt_tokens": 2}
    with pytest.raises(UserError, match=r"split 'easy'.*no question is left: 15 prompt too long"):
        load(config, base_folder, **short)
    both = {"train": {"dataset": "test"}, "benchmarks": SPLITS["benchmarks"]}
    with pytest.raises(UserError, match=r"'train'.*no question is left: 15 also a test question"):
        load(config, base_folder, **both)


def test_made_splits_are_as_before_and_new_beside_loaded_ones() -> None:
    made = questions.make_splits(Questions())
    some = made["train"][:3]
    settings = Questions.model_validate({"benchmarks": {"some": {"dataset": "x"}}})
    beside = questions.make_splits(settings, {"some": some})
    assert beside["some"] == some and not set(some) & set(beside["train"])
    assert [len(each) for each in beside.values()] == [600, 160, 400, 400, 3]
    only = Questions.model_validate({**NONE, "benchmarks": {"some": {"dataset": "x"}}})
    assert list(questions.make_splits(only, {"some": some})) == ["train", "validation", "some"]
    assert questions.make_splits(only, {"some": []})["train"] == made["train"]


def test_the_task_in_words_is_made_by_its_levels() -> None:
    settings = Questions(task="arithmetic", train=8, validation=4, test_id=4, test_ood=4)
    splits = questions.make_splits(settings)
    assert {each.source for each in splits["train"]} == {arithmetic.SOURCE}
    assert [each.level for each in splits["train"]] == list(range(1, 9))
    assert [each.level for each in splits["test_ood"]] == [9, 10, 11, 12]
    assert all(each.gold.isdigit() and " " in each.text for each in splits["train"])
    assert len({each.id for members in splits.values() for each in members}) == 20


def test_prompt_ids_are_kept_in_the_file_and_are_no_part_of_the_question(tmp_path: Path) -> None:
    asked_with = questions.Question("1+1=", "2", 1, "mine", "mcq", (1, 2, 3))
    questions.save([asked_with], tmp_path / "q.jsonl")
    (found,) = questions.load(tmp_path / "q.jsonl")
    assert found == asked_with and found.prompt_ids == (1, 2, 3) and found.kind == "mcq"
    assert found == questions.Question("1+1=", "2", 1, "mine", "mcq")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"kind": "poem"}, "line 1: key `kind` is 'poem'. Give one of boxed, mcq"),
        ({"prompt_ids": ["a"]}, "line 1: key `prompt_ids` is no list of token ids"),
        ({"prompt_ids": [-1]}, "line 1: key `prompt_ids` is no list of token ids"),
        ({"prompt_ids": None}, "line 1: key `prompt_ids` is no list of token ids"),
    ],
)
def test_a_question_file_with_a_wrong_kind_or_ids(tmp_path: Path, keys: Row, message: str) -> None:
    row = {"text": "Wet?\u2028Or\x85not?", "gold": "A", "level": None, "source": "mine"}
    (tmp_path / "q.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", "utf-8")
    assert questions.load(tmp_path / "q.jsonl")[0].text == row["text"]
    write_file(tmp_path / "q.jsonl", [{**row, **keys}])
    with pytest.raises(UserError, match=message):
        questions.load(tmp_path / "q.jsonl")


# --- The stage -----------------------------------------------------------------------------------


@pytest.fixture
def study(config: Path, base_folder: str) -> Study:
    """A study whose questions are all of data sets, one of them a multiple choice."""
    tagged = {"question": "1<eos>?", "options": ["2", "3"], "answer": "B"}
    choice = [{"question": "Wet?", "options": ["sand", "sea"], "answer": "B"}]
    write_file(config.parent / "data" / "choice.json", [*choice * 2, tagged])
    describe(config, "choice", hub=str(config.parent / "data"), file="choice.json")
    splits = {**SPLITS, "benchmarks": {**SPLITS["benchmarks"], "wet": {"dataset": "choice"}}}
    written = {
        "title": "loaded",
        "arms": ["on_policy"],
        "seeds": [0],
        "settings": {"questions": {**NONE, **splits}, "base": {"path": base_folder}},
    }
    shutil.copytree(ROOT / "config" / "arms", config / "arms")
    (config / "studies").mkdir()
    (config / "studies" / "loaded.yaml").write_text(yaml.safe_dump(written))
    return load_study("loaded", config)


def test_the_stage_writes_files_table_reasons_and_hashes(
    study: Study, config: Path, base_folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    with pytest.raises(UserError, match=r"base.*missing, so this stage is not done"):
        make_questions(study, results, config)
    make_base_model(study, results, threads=1)
    capsys.readouterr()
    make_questions(study, results, config)
    printed = capsys.readouterr().out
    assert "train: 10 questions of train" in printed and "15 also a test question" in printed
    assert "wet: 1 questions of choice" in printed and "1 duplicate" in printed
    assert f"1 {CONTROL}" in printed
    folder = results / "loaded" / "questions"
    done = json.loads((folder / "done.json").read_text())
    require_done(folder, questions_hash(study.any_run))
    assert done["questions"] == {"train": 10, "validation": 10, "easy": 15, "wet": 1}
    train = done["data_sets"]["train"]
    assert train["rejected"] == {A_TEST: 15, A_VALIDATION: 5} and train["rows"] == 30
    assert train["title"] == "made for a test" and train["licence"] == "none"
    assert train["rows_described"] is None
    assert train["files"] == {"train.jsonl": file_hash(config.parent / "data" / "train.jsonl")}
    assert done["tokenizer"] == tokenizer_hash(load_tokenizer(base_folder))
    rejected = [json.loads(line) for line in (folder / "rejected.jsonl").read_text().splitlines()]
    assert len(rejected) == 5 + 20 + 2
    assert {key for row in rejected for key in row} == {"split", "place", "reason", "found", "text"}
    table = pl.read_parquet(folder / "log" / "questions" / "*.parquet")
    assert dict(table["split"].value_counts().rows()) == done["questions"]
    (wet,) = table.filter(pl.col("split") == "wet").to_dicts()
    assert (wet["kind"], wet["gold"], wet["source"]) == ("mcq", "B", "choice")
    assert wet["text"] == wet["prompt"] == "Wet?\n\nA. sand\nB. sea"
    for split, count in done["questions"].items():
        members = questions.load(question_file(study, split, results))
        assert len(members) == count and prompts_hash(members) == done["prompts"][split]
        ids = {row["question"]: tuple(row["prompt_ids"]) for row in table.to_dicts()}
        assert all(each.prompt_ids == ids[each.id] for each in members)


def test_made_questions_with_too_long_prompts_are_an_error(
    study: Study, config: Path, tmp_path: Path
) -> None:
    made = Questions(train=2, validation=2, test_id=2, test_ood=2, max_prompt_tokens=3)
    (run, settings) = next(iter(study.runs.items()))
    short = study.model_copy(
        update={"runs": {run: settings.model_copy(update={"questions": made})}}
    )
    make_base_model(short, tmp_path / "results", threads=1)
    with pytest.raises(UserError, match="max_prompt_tokens is 3, and a made question of"):
        make_questions(short, tmp_path / "results", config)


def test_an_edit_of_a_description_makes_the_questions_anew(study: Study, config: Path) -> None:
    folder, target = config.parent, "results/loaded/questions/done.json"
    options = ("--cores", "1", "--config", "study=loaded")
    done = snakemake(folder, target, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert planned_jobs(folder, "loaded", ROOT / "workflow", target) == {}
    described = descriptions(study.any_run.questions, config)["train"]
    describe(config, "train", **described.model_dump())
    assert planned_jobs(folder, "loaded", ROOT / "workflow", target) == {}
    describe(config, "train", **{**described.model_dump(), "instruction": "Box it."})
    planned = planned_jobs(folder, "loaded", ROOT / "workflow", target)
    assert planned == {"questions": 1, "total": 1}


@pytest.mark.parametrize(
    ("asked_for", "messages"),
    [
        (
            {"train": {"dataset": "trian"}},
            ["key `settings.questions.train.dataset`: unknown data set 'trian'. Did you mean 'tr"],
        ),
        (
            {"train": {"datset": "train"}},
            [
                "key `settings.questions.train.dataset` is missing. Add it.",
                "unknown key `settings.questions.train.datset` (value 'train'). Did you mean 'data",
            ],
        ),
        (
            {"validation": {"dataset": "held", "limit": 0}},
            ["key `settings.questions.validation.limit`: Input should be greater than or equal"],
        ),
        (
            {"benchmarks": {"a": {"dataset": "test", "sampels": 32}}},
            ["unknown key `settings.questions.benchmarks.a.sampels` (value 32). Did you mean 'sam"],
        ),
        (
            {"benchmarks": {"a": {"dataset": "test", "domain": "inn"}}},
            ["key `settings.questions.benchmarks.a.domain`: Input should be 'in' or 'out'; found"],
        ),
    ],
)
def test_a_typo_in_a_study_names_file_key_value_and_what_was_meant(
    study: Study, config: Path, asked_for: dict[str, Any], messages: list[str]
) -> None:
    path = config / "studies" / "loaded.yaml"
    written = yaml.safe_load(path.read_text())
    written["settings"]["questions"] |= asked_for
    path.write_text(yaml.safe_dump(written))
    with pytest.raises(UserError) as error:
        load_study("loaded", config)
    lines = str(error.value).split("\n")
    assert len(lines) == len(messages)
    for line, message in zip(lines, messages, strict=True):
        assert line.startswith(f"{path}: {message}")


def test_the_command_reads_the_descriptions_of_its_config(
    study: Study, config: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    make_base_model(study, results, threads=1)
    options = ["--study", "loaded", "--config", str(config), "--results", str(results)]
    done = CliRunner().invoke(app, ["questions", *options])
    assert done.exit_code == 0, done.output
    assert "easy: 15 questions of test" in done.output
