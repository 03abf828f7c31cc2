"""The forms of question files, from little files of each; and hostile rows."""

from pathlib import Path
from typing import Any

import pytest
from data_files import Row, describe, load_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from exgrpo import data_set_shapes as shapes
from exgrpo.data_set_file import DataSetFile
from exgrpo.data_sets import Loaded, load_data_set
from exgrpo.errors import UserError

VERL = {"prompt": [{"role": "system", "content": "Think."}, {"role": "user", "content": " 1+1? "}]}
ARC = {"id": "q", "question": "Which is wet?", "answerKey": "B"}
GPQA = "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n"

# row, text, gold, level, kind
GOOD: dict[str, tuple[Row, str, str, int | None, str]] = {
    "verl": (
        {**VERL, "reward_model": {"ground_truth": "016"}, "extra_info": {"level": "3"}},
        *("1+1?", "016", 3, "boxed"),
    ),
    "verl with a list of one": (
        {**VERL, "reward_model": {"style": "rule", "ground_truth": ["72"]}},
        *("1+1?", "72", None, "boxed"),
    ),
    "gsm8k": (
        {"question": "1+1?", "answer": "1+1=<<1+1=2>>2\n#### 1,002"},
        *("1+1?", "1,002", None, "boxed"),
    ),
    "problem and answer": ({"problem": "1+1?", "answer": 2}, "1+1?", "2", None, "boxed"),
    "a float stays as written": ({"problem": "1?", "answer": 142.0}, "1?", "142.0", None, "boxed"),
    "a long number stays exact": (
        {"question": "big?", "answer": 9223372036854775808123},
        *("big?", "9223372036854775808123", None, "boxed"),
    ),
    "answer before solution": (
        {"problem": "1+1?", "solution": r"\boxed{3}", "answer": "2", "level": 5},
        *("1+1?", "2", 5, "boxed"),
    ),
    "math": (
        {
            "problem": "1+1?",
            "solution": r"\boxed{1}, then \boxed{\frac{4}{2}}.",
            "level": "Level 4",
        },
        *("1+1?", r"\frac{4}{2}", 4, "boxed"),
    ),
    "an unknown level": (
        {"problem": "1+1?", "solution": r"\boxed{2}", "level": "Level ?"},
        *("1+1?", "2", None, "boxed"),
    ),
    "olympiad": (
        {"question": "All x?", "context": "Let x be.", "final_answer": ["$1$", 2], "unit": None},
        *("Let x be.\n\nAll x?", "$1$, 2", None, "boxed"),
    ),
    "mmlu-pro": (
        {"question": "Wet?", "options": ["sand", "sea"], "answer": "B", "answer_index": 1},
        *("Wet?\n\nA. sand\nB. sea", "B", None, "mcq"),
    ),
    "arc": (
        {**ARC, "choices": {"text": ["sand", "sea"], "label": ["A", "B"]}},
        *("Which is wet?\n\nA. sand\nB. sea", "B", None, "mcq"),
    ),
    "arc with numbers": (
        {**ARC, "answerKey": "2", "choices": {"text": ["sand", "sea"], "label": ["1", "2"]}},
        *("Which is wet?\n\nA. sand\nB. sea", "B", None, "mcq"),
    ),
}

BAD: dict[str, tuple[Row, str]] = {
    "empty question": ({"problem": " ", "answer": "2"}, shapes.NO_QUESTION),
    "no question": ({"problem": None, "answer": "2"}, shapes.NO_QUESTION),
    "a question that is a list": ({"problem": ["1+1?"], "answer": "2"}, shapes.NO_QUESTION),
    "verl, two user turns": (
        {"prompt": VERL["prompt"] * 2, "reward_model": {"ground_truth": "2"}},
        shapes.NO_QUESTION,
    ),
    "verl, text for a prompt": (
        {"prompt": "1+1?", "reward_model": {"ground_truth": "2"}},
        shapes.NO_QUESTION,
    ),
    "verl, no gold": ({**VERL, "reward_model": {"style": "rule"}}, shapes.UNREADABLE),
    "empty gold": ({"problem": "1+1?", "answer": ""}, shapes.BAD_GOLD),
    "see figure": ({"problem": "1+1?", "answer": "see figure"}, shapes.BAD_GOLD),
    "several golds": ({"problem": "1+1?", "answer": ["2", "3"]}, shapes.BAD_GOLD),
    "several golds as text": ({"problem": "1+1?", "answer": "['1', '2']"}, shapes.BAD_GOLD),
    "a worked solution": ({"problem": "1+1?", "answer": "1+1=<<1+1=2>>2"}, shapes.BAD_GOLD),
    "a solution of two lines": ({"problem": "1+1?", "answer": "1+1\n= 2"}, shapes.BAD_GOLD),
    "gsm8k, text after its line": ({"problem": "1?", "answer": "1\n#### 1\n."}, shapes.BAD_GOLD),
    "gsm8k, an empty last line": ({"question": "1?", "answer": "1.\n####"}, shapes.BAD_GOLD),
    "null options": (
        {"question": "Wet?", "options": None, "answer": "A"},
        shapes.BAD_OPTIONS,
    ),
    "braces cut off": ({"problem": "1?", "answer": r"\frac{1}{2"}, shapes.BAD_GOLD),
    "a box": ({"problem": "1?", "answer": r"\boxed{4}"}, shapes.BAD_GOLD),
    "another's last line": ({"problem": "1?", "solution": r"\boxed{#### 5}"}, shapes.BAD_GOLD),
    "true": ({"problem": "1+1?", "answer": True}, shapes.BAD_GOLD),
    "NaN": ({"problem": "1+1?", "answer": float("nan")}, shapes.BAD_GOLD),
    "no box": ({"problem": "1+1?", "solution": "It is 2."}, shapes.BAD_GOLD),
    "olympiad, nothing": ({"question": "All x?", "final_answer": []}, shapes.BAD_GOLD),
    "olympiad, null": ({"question": "All x?", "final_answer": None}, shapes.NULL_GOLD),
    "letter without option": (
        {"question": "Wet?", "options": ["sand", "sea"], "answer": "C"},
        shapes.NO_OPTION,
    ),
    "the value for a letter": (
        {"question": "Wet?", "options": ["sand", "sea"], "answer": "sea"},
        shapes.NO_OPTION,
    ),
    "letter and index differ": (
        {"question": "Wet?", "options": ["sand", "sea"], "answer": "A", "answer_index": 1},
        shapes.BAD_GOLD,
    ),
    "one option": ({"question": "Wet?", "options": ["sea"], "answer": "A"}, shapes.BAD_OPTIONS),
    "27 options": ({"question": "?", "options": ["x"] * 27, "answer": "A"}, shapes.BAD_OPTIONS),
    "an empty option": (
        {"question": "Wet?", "options": ["sand", ""], "answer": "A"},
        shapes.BAD_OPTIONS,
    ),
    "arc, key without label": (
        {**ARC, "choices": {"text": ["sand", "sea"], "label": ["C", "D"]}},
        shapes.NO_OPTION,
    ),
    "arc, fewer labels": (
        {**ARC, "choices": {"text": ["sand", "sea"], "label": ["B"]}},
        shapes.BAD_OPTIONS,
    ),
    "arc, null key": (
        {**ARC, "answerKey": None, "choices": {"text": ["sand", "sea"], "label": ["A", "B"]}},
        shapes.NULL_GOLD,
    ),
    "unknown columns": ({"ask": "1+1?", "truth": "2"}, shapes.UNREADABLE),
}


@pytest.mark.parametrize("name", GOOD)
def test_every_form_is_known_by_its_columns(tmp_path: Path, name: str) -> None:
    row, *expected = GOOD[name]
    (question,) = load_rows(tmp_path, [row]).questions
    assert [question.text, question.gold, question.level, question.kind] == expected
    assert question.source == "made"


@pytest.mark.parametrize("name", BAD)
def test_a_row_that_leaves_a_question_open_is_named(tmp_path: Path, name: str) -> None:
    row, reason = BAD[name]
    rest = [GOOD["problem and answer"][0]] if reason == shapes.UNREADABLE else []
    good = [] if rest else _like(row)
    loaded = load_rows(tmp_path, [row, *good, *rest])
    (rejected,) = loaded.rejected
    assert (rejected.place, rejected.reason) == ("test.jsonl: line 1", reason)
    assert rejected.found and len(loaded.questions) == 1


def _like(row: Row) -> list[Row]:
    """A good row of the form that the bad one has."""
    return next(
        [good]
        for good, *_ in GOOD.values()
        if shapes.reader_of(good, None) is shapes.reader_of(row, None)
    )


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_the_same_rows_as_json_array_and_as_parquet(tmp_path: Path, suffix: str) -> None:
    rows = [GOOD["arc"][0], {**ARC, "question": "Or?", "choices": GOOD["arc"][0]["choices"]}]
    loaded = load_rows(tmp_path, rows, suffix)
    assert [each.gold for each in loaded.questions] == ["B", "B"]
    assert [each.place for each in loaded.placed] == [f"test{suffix}: row {n}" for n in (0, 1)]


def gpqa(folder: Path, seed: int) -> Loaded:
    lines = [
        f'"Made {n}?\nReally?",right {n},"wrong, a","wrong ""b""",wrong c\n' for n in range(40)
    ]
    (folder / "hub").mkdir(exist_ok=True)
    (folder / "hub" / "made.csv").write_text(GPQA + "".join(lines) + "Short,row\n")
    describe(folder / "config", "made", hub=str(folder / "hub"), file="made.csv")
    return load_data_set("made", folder / "config", seed)


def test_gpqa_options_are_ordered_by_seed_and_question(tmp_path: Path) -> None:
    loaded = gpqa(tmp_path, 0)
    assert (
        loaded.reasons == {"unreadable row": 1} and loaded.rejected[0].place == "made.csv: row 40"
    )
    golds = [each.gold for each in loaded.questions]
    assert set(golds) == set("ABCD")
    for number, question in enumerate(loaded.questions):
        lines = question.text.split("\n")
        assert lines[:3] == [f"Made {number}?", "Really?", ""]
        assert f"{question.gold}. right {number}" in lines[3:]
        options = sorted(line[3:] for line in lines[3:])
        assert options == [f"right {number}", 'wrong "b"', "wrong c", "wrong, a"]
    assert gpqa(tmp_path, 0).questions == loaded.questions
    assert [each.gold for each in gpqa(tmp_path, 1).questions] != golds


def test_named_columns_win(tmp_path: Path) -> None:
    row = {"problem": "no", "answer": "no", "q": {"text": "Yes?"}, "key": "B", "o": ["x", "y"]}
    columns = {"question": "q.text", "answer": "key", "options": "o", "level": "q.level"}
    loaded = load_rows(
        tmp_path, [row, {"q": {"text": "No key?"}, "o": ["x", "y"]}], columns=columns
    )
    assert [(each.text, each.gold) for each in loaded.questions] == [("Yes?\n\nA. x\nB. y", "B")]
    assert loaded.rejected[0].found == "no column 'key'; it has q, o"


@pytest.mark.parametrize("options", [{"o": None}, {}])
def test_a_named_column_of_options_must_hold_some(tmp_path: Path, options: Row) -> None:
    good = {"q": "Wet?", "key": "B", "o": ["x", "y"]}
    rows = [{"q": "Dry?", "key": "B", **options}, good]
    loaded = load_rows(tmp_path, rows, columns={"question": "q", "answer": "key", "options": "o"})
    assert [each.text for each in loaded.questions] == ["Wet?\n\nA. x\nB. y"]
    assert loaded.reasons == {shapes.BAD_OPTIONS: 1}


def test_a_multiple_choice_whose_options_are_in_its_text(tmp_path: Path) -> None:
    rows = [{"question": f"Wet {gold}? A. sea B. sand", "answer": gold} for gold in ("A", "sea")]
    loaded = load_rows(tmp_path, rows, kind="mcq")
    assert [(each.gold, each.kind) for each in loaded.questions] == [("A", "mcq")]
    assert loaded.reasons == {shapes.NO_OPTION: 1}


def test_an_instruction_is_taken_off_where_told(tmp_path: Path) -> None:
    rows = [
        {"problem": text, "answer": "2"}
        for text in ("1+1? Box it.", "Box it.", "Box it. 2*1?", "3-1?")
    ]
    told = load_rows(tmp_path / "told", rows, instruction=" Box it. ")
    assert [each.text for each in told.questions] == ["1+1?", "Box it. 2*1?", "3-1?"]
    assert told.reasons == {shapes.NO_QUESTION: 1}
    assert list(told.notes.values()) == [2]
    kept = load_rows(tmp_path / "kept", rows)
    assert [each.text for each in kept.questions] == [row["problem"] for row in rows]


def test_a_file_of_gsm8k_takes_no_worked_solution_for_a_gold(tmp_path: Path) -> None:
    rows = [GOOD["gsm8k"][0], {"question": "2+2?", "answer": "2+2 is 4."}]
    loaded = load_rows(tmp_path, rows)
    assert len(loaded.questions) == 1
    assert "the answer does not end with a line `#### ...`" in loaded.rejected[0].found


def test_a_bad_first_row_decides_nothing_of_the_others(tmp_path: Path) -> None:
    """A GSM8K file whose first solution is cut off: the others are read by their last lines."""
    rows: list[Row] = [{"question": "2+2?", "answer": "2+2 is 4."}, GOOD["gsm8k"][0]]
    for place, row in enumerate((rows[0], {"question": "2+2?", "answer": None})):
        loaded = load_rows(tmp_path / str(place), [row, rows[1]])
        assert [each.gold for each in loaded.questions] == ["1,002"]
        assert [each.place for each in loaded.rejected] == ["test.jsonl: line 1"]


def test_rows_of_several_forms_are_each_read_by_their_own(tmp_path: Path) -> None:
    rows = [GOOD[name][0] for name in ("problem and answer", "olympiad", "mmlu-pro")]
    rows.append({"problem": "3?", "solution": r"It is \boxed{3}."})
    rows.append({"problem": "I?", "answer": "\\begin{pmatrix}1\n2\\end{pmatrix}"})
    loaded = load_rows(tmp_path, rows)
    golds = ["2", "$1$, 2", "B", "3", "\\begin{pmatrix}1\n2\\end{pmatrix}"]
    assert [each.gold for each in loaded.questions] == golds


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        (".jsonl", "", "0 rows, none of use"),
        (".jsonl", "version https://git-lfs\n", "line 1: unreadable row: no JSON object"),
        (".jsonl", '{"a": 1}\n', "no form has just the columns a"),
        (".json", '[{"problem": "1"', "no valid JSON"),
        (".json", '[3, {"problem": "1+1?", "answer": null}]', "row 0: unreadable row"),
        (".json", '{"0": [0.5]}', "no form has just the columns 0"),
        (".parquet", "no parquet", "cannot be read"),
        (".csv", "Question,Question\n1,2\n", "two columns have the name 'Question'"),
        (".csv", 'Question\n"open', "cannot be read"),
        (".csv", "", "0 rows, none of use"),
    ],
)
def test_a_file_without_questions_is_an_error_that_says_why(
    tmp_path: Path, suffix: str, content: str, message: str
) -> None:
    (tmp_path / f"bad{suffix}").write_text(content)
    describe(tmp_path, "made", hub=str(tmp_path), file=f"bad{suffix}")
    with pytest.raises(UserError, match=message) as error:
        load_data_set("made", tmp_path, 0)
    assert f"bad{suffix}" in str(error.value)


def test_bad_lines_are_named_among_good_ones(tmp_path: Path) -> None:
    lines = [b'{"problem": "1+1?", "answer": "2"}', b"nonsense", b'{"problem": "\xff"}', b"[1]"]
    lines += [b'{"problem": "a", "problem": "b", "answer": "2"}', b'{"problem": "torn']
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    describe(tmp_path, "made", hub=str(tmp_path), file="bad.jsonl")
    loaded = load_data_set("made", tmp_path, 0)
    assert len(loaded.questions) == 1
    assert [row.place for row in loaded.rejected] == [f"bad.jsonl: line {n}" for n in range(2, 7)]
    assert loaded.reasons == {shapes.UNREADABLE: 5}


KEYS = (
    *("prompt", "reward_model", "Question", "Correct Answer", "Incorrect Answer 1", "question"),
    *("choices", "answerKey", "options", "answer", "answer_index", "final_answer", "problem"),
    *("solution", "level", "context", "unit", "label", "text", "ground_truth", "content", "role"),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
WORDS = SCALARS | st.sampled_from(["A", "#### 3", r"\boxed{2}", "['9", "user", "Level 2", "0"])
VALUES = st.recursive(
    WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)
FORMS = [{**row, "level": 3} for row, *_ in GOOD.values()]
FORMS.append(dict.fromkeys(GPQA.strip().split(","), "x"))


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """A good row of some form, then others whose values are anything, or are missing."""
    good = draw(st.sampled_from(FORMS))
    values = {key: st.just(value) | VALUES for key, value in good.items()}
    broken = st.fixed_dictionaries({}, optional=values)
    return [good, *draw(st.lists(broken, min_size=1, max_size=3))]


@settings(max_examples=300, deadline=None)
@given(rows(), st.sampled_from([None, "mcq"]), st.sampled_from(["", "A"]))
def test_no_row_breaks_a_reader(rows: list[Row], kind: Any, instruction: str) -> None:
    """Whatever form a row has: a question with a text and a gold, or a reason."""
    described = DataSetFile(title="t", licence="l", local="x", kind=kind, instruction=instruction)
    for row in rows:
        if (read := shapes.reader_of(row, None)) is None:
            continue
        try:
            question, _ = shapes.question_of(row, read, described, "made", 0)
        except shapes.UnfitRowError as error:
            assert error.reason and error.found
            continue
        assert question.text.strip() and question.gold.strip()
        assert question.kind == "boxed" or question.gold in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
