"""Data sets: the real files, local copy or Hub, what is left out, and cases o61, o65 and o67."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from data_files import describe, load_rows, write_file
from typer.testing import CliRunner

from exgrpo.data_set_file import DataSetFile, find_files
from exgrpo.data_sets import Loaded, limited, load_data_set
from exgrpo.errors import UserError
from exgrpo.settings_files import parse, read_yaml
from pipeline.cli import app

CONFIG = Path("config")
RUN = CliRunner().invoke

REAL = {  # questions, what is left out
    "aime24": (30, {}),
    "aime25": (30, {}),
    "amc23": (83, {}),
    "dsr-sub": (1205, {"duplicate": 2, "gold that cannot be graded": 2}),
    "gsm8k-test": (1319, {}),
    "gsm8k-train-sample": (1000, {}),
    "math-train-sample": (999, {"null gold": 1}),
    "math500": (500, {}),
    "math500-verl": (500, {}),
    "mmlu-pro-sample": (280, {}),
    "olympiadbench": (675, {}),
}


@pytest.fixture
def real(shared: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Loaded]:
    monkeypatch.setenv("EXGRPO_DATA", str(shared / "data"))
    return {name: load_data_set(name, CONFIG, 0) for name in REAL}


def test_every_real_file_loads_with_what_is_left_out_named(real: dict[str, Loaded]) -> None:
    found = {name: (len(each.questions), dict(each.reasons)) for name, each in real.items()}
    assert found == REAL
    for each in real.values():
        assert each.rows == each.whole == len(each.questions) + len(each.rejected)
        assert all(type(question.gold) is str for question in each.questions)
    ungradable = {
        row.place: row.found
        for row in real["dsr-sub"].rejected
        if row.reason == "gold that cannot be graded"
    }
    assert ungradable == {
        "rlvr-train/dsr_sub.parquet: row 265": "the gold is ''",
        "rlvr-train/dsr_sub.parquet: row 1187": (
            "the gold is '\\\\frac{2 k n}{n+k-1}-2 \\\\frac{k!n!}{(k+n-1)!'"  # cut off
        ),
    }
    duplicates = [row for row in real["dsr-sub"].rejected if row.reason == "duplicate"]
    assert [row.place for row in duplicates] == [
        f"rlvr-train/dsr_sub.parquet: row {number}" for number in (780, 899)
    ]
    assert {row.found for row in duplicates} == {"of rlvr-train/dsr_sub.parquet: row 136"}


def test_real_golds_are_text_as_written(real: dict[str, Loaded]) -> None:
    golds = {name: [each.gold for each in loaded.questions] for name, loaded in real.items()}
    assert golds["aime24"][:4] == ["204", "025", "809", "116"]
    assert golds["amc23"][:3] == ["142.0", "144.0", "81.0"] and "-4.0" in golds["amc23"]
    assert "2,125" in golds["gsm8k-test"]
    assert golds["olympiadbench"].count("1,3") == 2
    assert r"$x=\frac{1}{6} \pi+\pi k" in next(
        gold for gold in golds["olympiadbench"] if gold.startswith("$x=")
    )
    assert set(golds["mmlu-pro-sample"]) == set("ABCDEFGHIJ")
    assert real["olympiadbench"].notes == Counter(
        {
            "golds with a unit apart, which is not asked for": 8,
            "golds with a tolerance, which the grader does not grant": 1,
        }
    )


def test_real_levels_kinds_and_texts(real: dict[str, Loaded]) -> None:
    levels = Counter(each.level for each in real["math500"].questions)
    assert levels == {5: 134, 4: 128, 3: 105, 2: 90, 1: 43}
    assert {each.level for each in real["gsm8k-test"].questions} == {None}
    kinds = {name: {each.kind for each in loaded.questions} for name, loaded in real.items()}
    assert kinds.pop("mmlu-pro-sample") == {"mcq"}
    assert set().union(*kinds.values()) == {"boxed"}
    first = real["mmlu-pro-sample"].questions[0]
    assert first.text.split("\n")[1:3] == [
        "",
        "A. The size of the appendix varies greatly among individuals.",
    ]
    # The same questions in other columns, and without what one file puts after each.
    assert [each.id for each in real["math500"].questions] == [
        each.id for each in real["math500-verl"].questions
    ]
    assert [each.level for each in real["math500"].questions] == [
        each.level for each in real["math500-verl"].questions
    ]
    trained = {each.id for each in real["dsr-sub"].questions}
    assert len(trained & {each.id for each in real["math-train-sample"].questions}) == 31
    assert not any("boxed{}" in each.text for each in real["dsr-sub"].questions)
    tests = {name for name in REAL if name not in ("dsr-sub", "math-train-sample")}
    assert not trained & {each.id for name in tests for each in real[name].questions}


def test_o61_copies_of_a_question_are_one_question(tmp_path: Path) -> None:
    rows = [
        {"problem": f"What is {q} + 0?", "answer": f"{q:03d}"} for _ in range(32) for q in range(30)
    ]
    loaded = load_rows(tmp_path, rows, ".parquet")
    assert len(loaded.questions) == 30 and loaded.reasons == {"duplicate": 930}
    assert len(loaded.questions) * 32 == 960  # avg@32 samples, not 30 720
    assert loaded.questions[16].gold == "016"


@pytest.mark.parametrize("gold", [["91"], "['91']", '["91"]', [91], 91, "91", " 91 "])
def test_o65_a_gold_list_of_one_is_its_item(tmp_path: Path, gold: object) -> None:
    loaded = load_rows(tmp_path, [{"question": "7 * 13?", "answer": gold}])
    assert [each.gold for each in loaded.questions] == ["91"]


def test_o67_a_null_gold_is_named_and_left_out(tmp_path: Path) -> None:
    rows = [{"problem": "1+1?", "answer": "2"}, {"problem": "0/0?", "answer": None}]
    loaded = load_rows(tmp_path, rows)
    assert [each.gold for each in loaded.questions] == ["2"]
    (row,) = loaded.rejected
    assert (row.place, row.reason) == ("test.jsonl: line 2", "null gold")


def test_the_same_question_with_two_golds_is_left_out_both_times(tmp_path: Path) -> None:
    rows = [{"problem": "1+1?", "answer": gold} for gold in ("2", "3", "2")]
    loaded = load_rows(tmp_path, [*rows, {"problem": "2+2?", "answer": "4"}])
    assert [each.text for each in loaded.questions] == ["2+2?"]
    assert loaded.reasons == {"same question with two golds": 3}
    assert {row.found for row in loaded.rejected} == {"golds ['2', '3']"}
    assert [row.place for row in loaded.rejected] == [f"test.jsonl: line {n}" for n in (1, 2, 3)]


def test_the_limit_is_drawn_by_seed_and_content(tmp_path: Path) -> None:
    rows = [{"problem": f"{n}+1?", "answer": str(n + 1)} for n in range(200)]
    loaded = load_rows(tmp_path, rows)
    backwards = load_rows(tmp_path / "backwards", rows[::-1])
    drawn = limited(loaded, 40, 7).questions
    assert len(drawn) == 40
    assert {each.id for each in drawn} == {each.id for each in limited(backwards, 40, 7).questions}
    assert drawn == [each for each in loaded.questions if each in drawn]  # in the file's order
    assert drawn != loaded.questions[:40] and drawn != limited(loaded, 40, 8).questions
    assert set(drawn) < set(limited(loaded, 41, 7).questions)
    assert limited(loaded, 200, 7).questions == loaded.questions
    with pytest.raises(UserError, match="key `limit` is 201, and 200 questions are left"):
        limited(loaded, 201, 7)


# --- Local copy or Hub ---------------------------------------------------------------------------


def test_the_local_copy_comes_before_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"hub": str(tmp_path / "hub"), "file": "data/test-*.parquet", "local": "set/test.jsonl"}
    describe(tmp_path / "config", "made", **keys)
    write_file(tmp_path / "hub/data/test-1.parquet", [{"problem": "of the hub", "answer": "1"}])
    write_file(tmp_path / "hub/data/test-2.parquet", [{"problem": "and more", "answer": "016"}])
    write_file(tmp_path / "hub/data/train-1.parquet", [{"problem": "another split", "answer": "3"}])
    monkeypatch.setenv("EXGRPO_DATA", str(tmp_path / "data"))
    loaded = load_data_set("made", tmp_path / "config", 0)
    assert [(each.text, each.gold) for each in loaded.questions] == [
        ("of the hub", "1"),
        ("and more", "016"),
    ]
    assert sorted(loaded.files) == ["data/test-1.parquet", "data/test-2.parquet"]
    assert loaded.origin == str(tmp_path / "hub")
    write_file(tmp_path / "data/set/test.jsonl", [{"problem": "of the copy", "answer": "1"}])
    loaded = load_data_set("made", tmp_path / "config", 0)
    assert [each.text for each in loaded.questions] == ["of the copy"]
    assert loaded.origin == "local copy"


def test_without_network_the_error_names_copy_hub_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("EXGRPO_DATA", str(tmp_path))
    done = RUN(app, ["dataset", "gpqa-diamond"])
    message = str(done.exception)
    assert isinstance(done.exception, UserError)
    assert f"no local copy at {tmp_path / 'gpqa/gpqa_diamond.csv'}" in message
    assert "does not give Idavidrein/gpqa (revision 633f5ee" in message
    assert "accept its terms at" in message and "EXGRPO_DATA" in message


def test_what_was_fetched_from_the_hub_before_is_read_without_network(tmp_path: Path) -> None:
    """The Hub's own client, on a cache as it leaves it behind."""
    repository, commit = tmp_path / "cache" / "datasets--some--set", "0" * 40
    row = {"problem": "of the cache", "answer": "016"}
    write_file(repository / "snapshots" / commit / "data/test-1.parquet", [row])
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(commit)
    describe(tmp_path, "made", hub="some/set", revision="v1", file="data/test-*.parquet")
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "dataset", "made", "--config", str(tmp_path)],
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "1 questions of made (some/set, revision v1, 1 rows)" in done.stdout
    assert "of the cache\n  gold: 016" in done.stdout


def test_a_hub_folder_without_the_file_says_which(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    describe(tmp_path / "config", "made", hub=str(tmp_path / "hub"), file="x/*.parquet")
    with pytest.raises(UserError, match=r"has no file 'x/\*.parquet'. Mend the key `file`"):
        load_data_set("made", tmp_path / "config", 0)


def test_a_set_with_a_local_copy_alone_says_where_to_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_DATA", str(tmp_path))
    describe(tmp_path / "config", "made", local="mine.jsonl")
    with pytest.raises(UserError, match=r"no local copy at .*mine.jsonl. Put it there"):
        load_data_set("made", tmp_path / "config", 0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"locl": "x"}, "unknown key `locl` .*Did you mean 'local'"),
        ({}, "nowhere to read it from"),
        ({"hub": "a/b"}, "hub and file go together"),
        ({"local": 3}, "key `local`: .*found 3"),
        ({"local": "/etc/x"}, "key `local`: "),
        ({"local": "x", "columns": {"question": "q"}}, r"key `columns.*answer"),
        ({"local": "x", "kind": "letters"}, "key `kind`: .*'letters'"),
    ],
)
def test_a_wrong_description_names_file_key_and_value(
    tmp_path: Path, keys: dict[str, object], message: str
) -> None:
    describe(tmp_path, "made", **keys)
    with pytest.raises(UserError, match=message) as error:
        load_data_set("made", tmp_path, 0)
    assert str(tmp_path / "datasets" / "made.yaml") in str(error.value)


def test_an_unknown_name_says_what_was_meant() -> None:
    done = RUN(app, ["dataset", "gsm8k-tests"])
    assert "unknown data set 'gsm8k-tests'. Did you mean 'gsm8k-test'?" in str(done.exception)


def test_every_description_of_the_repository_is_whole() -> None:
    files = sorted((CONFIG / "datasets").glob("*.yaml"))
    described = {file.stem: parse(DataSetFile, read_yaml(file), file) for file in files}
    assert set(REAL) < set(described)
    for name, each in described.items():
        assert each.hub or each.rows, name
    with pytest.raises(UserError):
        find_files("none", DataSetFile(title="t", licence="l", local="no/such/file"))


def test_the_command_prints_counts_reasons_and_samples(tmp_path: Path) -> None:
    rows = [{"problem": f"{n}+1?\x1b[31m", "answer": str(n + 1)} for n in range(20)]
    empty = [{"problem": f"{n}-1?", "answer": None} for n in range(12)]
    load_rows(tmp_path, [*rows, *empty])
    done = RUN(app, ["dataset", "made", "--config", str(tmp_path / "config"), "--limit", "5"])
    assert done.exit_code == 0, done.output
    assert "made for a test; licence: none\n" in done.output
    assert "5 questions of made" in done.output and "32 rows" in done.output
    assert "null gold: 12" in done.output and "test.jsonl: line 21: the gold is null" in done.output
    assert done.output.count("the gold is null") == 10 and "and 2 more" in done.output
    assert done.output.count("gold: ") == 3 + 1
    assert "\x1b" not in done.output


def test_a_copy_of_another_size_is_said(tmp_path: Path) -> None:
    loaded = load_rows(tmp_path, [{"problem": "1+1?", "answer": "2"}], rows=7473)
    assert "1 rows); its description says 7473 rows" in loaded.summary
