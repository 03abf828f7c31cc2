"""Files that are nearly of a known form: read for what they are, or left out with a reason."""

import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import Row, describe, load_rows, write_file
from typer.testing import CliRunner

from exgrpo import data_set_shapes as shapes
from exgrpo.data_sets import A_TEST, A_VALIDATION, Loaded, load_data_set, load_splits
from exgrpo.errors import UserError
from exgrpo.question_settings import Questions
from exgrpo.questions import folded
from pipeline.cli import app

PLAIN = {"problem": "1+1?", "answer": "2"}
WET = "Wet?\n\nA. sand\nB. sea"
OPTIONS = ["sand", "sea"]
CHOICE = {"question": "Wet?", "choices": OPTIONS}
NAMED = {"question": "q", "answer": "key", "options": "o"}
USER = {"role": "user", "content": "1+1?"}


def test_a_multiple_choice_is_read_in_the_forms_of_mmlu(tmp_path: Path) -> None:
    rows: list[Row] = [
        {**CHOICE, "answer": 1},
        {**CHOICE, "answer": "B"},
        {"problem": "Wet?", "options": OPTIONS, "answer": "B"},
        {"question": "Wet?", "options": OPTIONS, "answer": 1, "answer_index": 1},
    ]
    for number, row in enumerate(rows):
        for suffix in (".jsonl", ".parquet"):
            (found,) = load_rows(tmp_path / f"{number}", [row], suffix).questions
            assert (found.text, found.gold, found.kind) == (WET, "B", "mcq")
    row = {"q": "Wet?", "o": OPTIONS, "key": 1}
    (found,) = load_rows(tmp_path / "named", [row], columns=NAMED).questions
    assert (found.text, found.gold, found.kind) == (WET, "B", "mcq")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question": "Wet?", "options": OPTIONS, "solution": r"\boxed{B}"}, shapes.BAD_OPTIONS),
        ({"question": "Wet?", "options": OPTIONS, "final_answer": ["B"]}, shapes.BAD_OPTIONS),
        ({"question": "Wet?", "A": "sand", "B": "sea", "answer": "B"}, shapes.BAD_OPTIONS),
        ({"problem": "Wet?", "choices": {"A": "sand", "B": "sea"}, "answer": "B"}, None),
        ({**CHOICE, "answer": "1"}, shapes.NO_OPTION),  # a label, or a place, from 0 or from 1
        ({**CHOICE, "answer": -1}, shapes.NO_OPTION),
        ({**CHOICE, "answer": 2}, shapes.BEYOND),
        ({**CHOICE, "choices": ["sea", "sea"], "answer": 1}, shapes.BAD_OPTIONS),
        ({**CHOICE, "choices": ["sea", " sea "], "answer": "A"}, shapes.BAD_OPTIONS),
        (
            {"Question": "Wet?", "Correct Answer": "sea", "Incorrect Answer 1": "sea"}
            | {"Incorrect Answer 2": "sand", "Incorrect Answer 3": "tar"},
            shapes.BAD_OPTIONS,
        ),
        ({"prompt": [USER], "reward_model": '{"ground_truth": "2"}'}, shapes.UNREADABLE),
        (
            {"prompt": [{**USER, "role": "assistant"}], "reward_model": {"ground_truth": "2"}},
            shapes.NO_QUESTION,
        ),
    ],
)
def test_a_row_of_nearly_a_known_form_is_refused(
    tmp_path: Path, row: Row, reason: str | None
) -> None:
    loaded = load_rows(tmp_path, [row, PLAIN])
    assert [each.text for each in loaded.questions] == ["1+1?"]
    (rejected,) = loaded.rejected
    assert rejected.reason == (reason or shapes.BAD_OPTIONS) and rejected.found


def test_options_without_any_leave_a_question_open(tmp_path: Path) -> None:
    row = {"problem": "3?", "solution": r"\boxed{3}", "options": None, "choices": []}
    assert [each.kind for each in load_rows(tmp_path, [row]).questions] == ["boxed"]


@pytest.mark.parametrize("columns", [None, {**NAMED, "question": "question"}])
def test_a_file_that_may_count_from_one_has_no_gold_by_place(
    tmp_path: Path, columns: dict[str, str] | None
) -> None:
    key, options = ("answer", "choices") if columns is None else ("key", "o")
    rows = [{"question": f"{n}?", options: OPTIONS, key: place} for n, place in enumerate((1, 2))]
    rows.append({"question": "Letter?", options: OPTIONS, key: "B"})
    loaded = load_rows(tmp_path, rows, **({} if columns is None else {"columns": columns}))
    assert [each.gold for each in loaded.questions] == ["B"]
    assert loaded.reasons == {shapes.BEYOND: 2} and not loaded.notes
    loaded = load_rows(tmp_path / "less", rows[::2], **({"columns": columns} if columns else {}))
    assert [each.gold for each in loaded.questions] == ["B", "B"]
    assert loaded.notes == {shapes.COUNTED: 1}


@pytest.mark.parametrize(
    ("values", "golds"),
    [
        (pa.array([0.1, 142.0, 2.5], pa.float32()), ["0.1", "142.0", "2.5"]),
        (pa.array([1e22, 1e-7, 0.1], pa.float64()), ["1" + "0" * 22 + ".0", "0.0000001", "0.1"]),
        (pa.array(np.array([0.1], np.float16)), ["0.1"]),
        (pa.array([2**60 + 1, 16], pa.int64()), [str(2**60 + 1), "16"]),
        (pa.array([decimal.Decimal("1.50"), decimal.Decimal("2")]), ["1.50", "2.00"]),
        (pa.array([[0.1], [2.0]], pa.list_(pa.float32())), ["0.1", "2.0"]),
    ],
)
def test_numbers_in_parquet_are_the_text_of_their_own_type(
    tmp_path: Path, values: pa.Array, golds: list[str]
) -> None:
    asked = pa.array([f"{n}?" for n in range(len(values))])
    pq.write_table(pa.table({"problem": asked, "answer": values}), tmp_path / "made.parquet")
    describe(tmp_path, "made", hub=str(tmp_path), file="made.parquet")
    loaded = load_data_set("made", tmp_path, 0)
    assert [each.gold for each in loaded.questions] == golds
    assert all(type(each.gold) is str for each in loaded.questions)


def test_a_level_may_be_a_float_with_nothing_behind(tmp_path: Path) -> None:
    rows = [{**PLAIN, "level": 3.0}]
    for suffix in (".jsonl", ".parquet"):
        assert [each.level for each in load_rows(tmp_path, rows, suffix).questions] == [3]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.jsonl", b'[{"problem": "1?", "answer": "1"}]', "JSON array (.json)"),
        ("bad.jsonl.gz", b"\x1f\x8b\x08\x00", "not packed."),
        ("bad.tsv", b"problem\tanswer\n1?\t1\n", "no JSON object"),
        ("bad.jsonl", b'{"problem": "caf\xe9", "answer": "1"}\n', "no UTF-8 text"),
        ("bad.jsonl", b"", "The file is empty"),
        ("bad.json", b'{"data": [{"problem": "1?", "answer": "1"}]}', "never the value of a key"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_what_it_should_be(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    describe(tmp_path, "made", hub=str(tmp_path), file=name)
    with pytest.raises(UserError) as error:
        load_data_set("made", tmp_path, 0)
    assert message in str(error.value) and ".." not in str(error.value)
    assert ("`columns`" in str(error.value)) == ("key" in message)


def test_the_suffix_may_be_in_capitals(tmp_path: Path) -> None:
    (tmp_path / "made.JSON").write_text('[{"problem": "1+1?", "answer": "2"}]')
    describe(tmp_path, "made", hub=str(tmp_path), file="made.JSON")
    assert len(load_data_set("made", tmp_path, 0).questions) == 1


# --- Where it is ---------------------------------------------------------------------------------


def test_files_of_the_hub_may_lie_where_the_error_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are on the Hub, folders and all, in a folder of the set's name."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("EXGRPO_DATA", str(tmp_path / "data"))
    hub = {"hub": "some/set", "file": "main/test-*.parquet"}
    for name, local in (("a", "set/test.jsonl"), ("b", "mine.jsonl"), ("c", None)):
        describe(tmp_path, name, **hub, **({"local": local} if local else {}))
        home = tmp_path / "data" / name
        with pytest.raises(UserError, match=f"put it at {home}/main/test-"):
            load_data_set(name, tmp_path, 0)
        write_file(home / "main/test-1.parquet", [PLAIN])
        loaded = load_data_set(name, tmp_path, 0)
        assert (loaded.origin, len(loaded.questions)) == ("local copy", 1)


def test_a_path_from_the_root_says_where_paths_begin(tmp_path: Path) -> None:
    describe(tmp_path, "made", local="/etc/x.jsonl")
    with pytest.raises(UserError, match=r"key `local`: expected a path below .*EXGRPO_DATA"):
        load_data_set("made", tmp_path, 0)


@pytest.mark.parametrize("name", ["/etc/x.jsonl", "openai/gsm8k"])
def test_a_file_or_a_name_on_the_hub_is_to_be_described(name: str) -> None:
    done = CliRunner().invoke(app, ["dataset", name])
    assert isinstance(done.exception, UserError)
    assert "config/datasets/NAME.yaml" in str(done.exception)


# --- Near-copies ---------------------------------------------------------------------------------

TRIPLES = "Find all triples $(a, b, c)$ such that $a^{3}+b^{3}=(a b c)^{2}$."


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (TRIPLES, "Find all triples $(a,b,c)$ such that $a^3 + b^3 = (abc)^2$.", True),
        (r"\(x\) in \left(0,\,1\right]", r"$x$ in (0, 1]", True),
        (r"x in (0,1]", r"x in [0,1)", False),
        (r"x in [1,\infty)", r"x in (1,\infty)", False),
        (r"\frac{1}{23}", r"\frac{12}{3}", False),
        (r"\frac{1}{2}x^{n}", r"\frac12 x^n", True),
        ("2^{n+1}", "2^n+1", False),
        (r"\sqrt{x+1}", r"\sqrt{x}+1", False),
        (r"\sqrt{x}+1", r"\sqrt x+1", True),
        ("1 23", "12 3", False),
        ("x^2", "x_2", False),
        (r"\leftarrow", "arrow", False),
        (r"\{1\}", "1", False),
        ("Let A be a.", "Let a be A.", False),
    ],
)
def test_near_copies_are_alike_but_for_layout(one: str, other: str, alike: bool) -> None:
    assert (folded(one) == folded(other)) == alike


def test_a_near_copy_of_a_test_question_is_not_trained_on(tmp_path: Path) -> None:
    copies = [TRIPLES, TRIPLES.replace(" ", "").replace("Findall", "Find all")]
    sets: dict[str, list[str]] = {
        "test": [TRIPLES],
        "held": [copies[1], "Find $x$."],
        "train": [*copies, "Find  x.", "Prove it.", "Prove  it."],
    }
    for name, texts in sets.items():
        rows = [{"problem": text, "answer": "1"} for text in texts]
        file = write_file(tmp_path / f"{name}.jsonl", rows)
        describe(tmp_path, name, hub=str(tmp_path), file=file.name)
    asked: dict[str, Any] = {name: {"dataset": name} for name in sets}
    settings = Questions.model_validate(
        {"train": asked["train"], "validation": asked["held"], "benchmarks": {"t": asked["test"]}}
    )
    loaded: dict[str, Loaded] = load_splits(settings, tmp_path, list)
    test_id = loaded["t"].questions[0].id
    assert loaded["validation"].reasons == {A_TEST: 1}
    assert loaded["train"].reasons == {A_TEST: 2, A_VALIDATION: 1}
    assert {row.found for row in loaded["train"].rejected if row.reason == A_TEST} == {
        f"{test_id} of t"
    }
    # Within a split nothing is merged but the same text.
    assert [each.text for each in loaded["train"].questions] == ["Prove it.", "Prove  it."]
