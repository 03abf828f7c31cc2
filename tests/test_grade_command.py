"""`exgrpo grade`: a verdict for every line, in order, whatever the lines are."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from exgrpo.errors import UserError
from exgrpo.grading import Grader, Verdict
from pipeline import cli
from pipeline.grade import BATCH, MOST_NAMED, grade_file

CASES = Path(__file__).parent / "cases" / "grading.jsonl"
Captured = pytest.CaptureFixture[str]

LINES = [
    {"id": "a", "gold": "7", "response": r"\boxed{7}", "model": "kept out"},
    {"gold": 7, "response": r"\boxed{8}"},
    {"id": 3, "gold": ["91"], "response": r"<think>\boxed{1}</think>\boxed{91}", "kind": "think"},
    {"gold": "B", "response": "So the answer is B.", "kind": "prose"},
    {"gold": "B", "response": r"\boxed{B}", "kind": "think+mcq"},
    {"gold": "see figure", "response": r"\boxed{1}"},
    {"gold": None, "response": r"\boxed{1}"},
    {"gold": "1", "response": None},
    {"id": "i", "gold": "1"},
    {"gold": "x+1", "response": r"\boxed{1+x}", "kind": "algebra"},
]
CORRECT = [True, False, True, True, False, None, None, None, None, True]


def write(folder: Path, lines: list[Any]) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def verdicts(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_cases_through_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipeline.cli", "grade", str(CASES), "--time-limit", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = [json.loads(line) for line in CASES.read_text().splitlines()]
    found = verdicts(done.stdout)
    assert [(each["id"], each["correct"]) for each in found] == [
        (each["id"], each["expected"]) for each in expected
    ]
    assert "137 lines: 66 right, 71 wrong, 0 without a verdict" in done.stderr
    assert "wrong, at a limit of the grader: 4 (time limit 4)" in done.stderr


def test_verdicts_keep_the_order_and_the_ids_of_the_lines(tmp_path: Path, capsys: Captured) -> None:
    file, output = write(tmp_path, LINES), tmp_path / "verdicts.jsonl"
    assert grade_file(file, output, "boxed", 1, 5.0) == 4
    found = verdicts(output.read_text())
    assert [each["correct"] for each in found] == CORRECT
    assert [each.get("id") for each in found] == [line.get("id") for line in LINES]
    assert {frozenset(each) - {"id"} for each in found} == {
        frozenset({"correct", "extracted", "format_ok", "reason"})
    }
    assert found[4]["reason"] == "no closing think tag" and not found[4]["format_ok"]
    assert [each["reason"] for each in found[5:9]] == [
        "the gold cannot be read: 'see figure'",
        "the gold cannot be read: None",
        "the response is no text: None",
        "no key `response`",
    ]
    out, told = capsys.readouterr()
    assert out == ""
    assert told.splitlines() == [
        "10 lines: 4 right, 2 wrong, 4 without a verdict",
        "  wrong, without an answer in the form asked for: 1 (no closing think tag 1)",
        "  without a verdict: 4 (the gold cannot be read 2, the response is no text 1, "
        "no key `response` 1)",
        "  of a kind that is none of ours, read as boxed: 1 (algebra 1)",
        "    line 6: the gold cannot be read: 'see figure'",
        "    line 7: the gold cannot be read: None",
        "    line 8: the response is no text: None",
        "    line 9: no key `response`",
    ]


def test_every_bad_line_has_a_verdict_of_its_own(tmp_path: Path, capsys: Captured) -> None:
    good = b'{"gold": "7", "response": "\\\\boxed{7}"}\n'
    bad = [b"\n", b"not json\n", b"[1]\n", b"\xff\xfe\n", b'{"gold": "7", "gold": "8"}\n', b"{}\n"]
    file = tmp_path / "answers.jsonl"
    file.write_bytes(b"".join(good + line for line in bad) + good + good[:-10])
    assert grade_file(file, None, "boxed", 1, 5.0) == len(bad) + 1
    found = [each["correct"] for each in verdicts(capsys.readouterr().out)]
    assert found == [True, None] * len(bad) + [True, None]


def test_lines_that_name_no_kind_are_of_the_one_given(tmp_path: Path, capsys: Captured) -> None:
    boxed = {"gold": "7", "response": r"\boxed{7}", "kind": "boxed"}
    stated = {"gold": "7", "response": "The answer is 7."}
    file = write(tmp_path, [boxed, stated])
    for kind, right in (("boxed", [True, False]), ("prose", [True, True])):
        grade_file(file, None, kind, 1, 5.0)
        assert [each["correct"] for each in verdicts(capsys.readouterr().out)] == right


def test_only_a_batch_of_lines_is_held(tmp_path: Path, capsys: Captured) -> None:
    """Memory is that of a batch, not of the file, and what it says of bad lines has an end."""
    peaks = []
    for batches in (2, 8):
        line = json.dumps({"gold": "7", "response": "x" * 5000 + r"\boxed{7}"})
        rows = "".join(f"{line}\n{{{number}\n" for number in range(batches * BATCH // 2))
        file, output = tmp_path / "answers.jsonl", tmp_path / "verdicts.jsonl"
        file.write_text(rows)
        del rows
        tracemalloc.start()
        assert grade_file(file, output, "boxed", 1, 5.0) == batches * BATCH // 2
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        told = capsys.readouterr().err.splitlines()
        assert len(told) == MOST_NAMED + 3
        assert told[-1] == f"    and {batches * BATCH // 2 - MOST_NAMED} more"
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        (None, "mqc", "--kind: unknown kind 'mqc'; known: boxed"),
        ("answers.jsonl", "boxed", "that is the file to be graded. Name another."),
        ("none/verdicts.jsonl", "boxed", "Name a file in a folder that exists."),
    ],
)
def test_what_cannot_be_done_is_told(
    output: str | None, kind: str, message: str, tmp_path: Path
) -> None:
    file = write(tmp_path, LINES)
    before = file.read_bytes()
    with pytest.raises(UserError) as told:
        grade_file(file, tmp_path / output if output else None, kind, 1, 5.0)
    assert message in str(told.value)
    assert file.read_bytes() == before
    with pytest.raises(UserError, match=r"missing\.jsonl: No such file or directory"):
        grade_file(tmp_path / "missing.jsonl", None, "boxed", 1, 5.0)


@pytest.mark.parametrize(("lines", "code"), [(LINES[:5], 0), (LINES, 1), (None, 2)])
def test_exit_codes(
    lines: list[Any] | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, lines) if lines else tmp_path / "missing.jsonl"
    monkeypatch.setattr(sys, "argv", ["exgrpo", "grade", str(file)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code


def test_a_gold_that_is_a_number_counts_as_written(tmp_path: Path) -> None:
    """A float would round it, and `id` is passed on as it is in the file."""
    digits = "9" * 5000
    lines = [
        r'{"id": 7, "gold": 0.30000000000000000001, "response": "\\boxed{0.3}"}',
        r'{"id": "7", "gold": [0.30000000000000000001], '
        r'"response": "\\boxed{0.30000000000000000001}"}',
        rf'{{"id": [1, null], "gold": {digits}, "response": "\\boxed{{{digits}}}"}}',
        '{"gold": 3, "response": 3}',
    ]
    (tmp_path / "answers.jsonl").write_text("".join(f"{line}\n" for line in lines))
    output = tmp_path / "verdicts.jsonl"
    assert grade_file(tmp_path / "answers.jsonl", output, "boxed", 1, 5.0) == 1
    found = verdicts(output.read_text())
    assert [each["correct"] for each in found] == [False, True, True, None]
    assert [each.get("id") for each in found][:2] == [7, "7"]
    assert found[3]["reason"] == "the response is no text: 3"


def test_what_was_there_stays_until_all_verdicts_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, output = write(tmp_path, LINES), tmp_path / "verdicts.jsonl"
    output.write_text("precious")

    def interrupted(*_: object) -> list[Verdict]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Grader, "grade_all", interrupted)
        with pytest.raises(KeyboardInterrupt):
            grade_file(file, output, "boxed", 1, 5.0)
    assert output.read_text() == "precious"
    grade_file(file, output, "boxed", 1, 5.0)
    assert len(output.read_text().splitlines()) == len(LINES)
    grade_file(file, Path("/dev/null"), "boxed", 1, 5.0)
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"PAR1\x15\x04", "Parquet"), (b"\x1f\x8b\x08", "gzip"), (b'[{"gold": "7"}]', "a JSON array")],
)
def test_what_is_no_jsonl_is_refused_as_a_whole(content: bytes, name: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(content)
    with pytest.raises(UserError, match=f"answers.jsonl: that is {name}. Give JSONL"):
        grade_file(file, None, "boxed", 1, 5.0)


def test_a_hyphen_is_the_standard_input(tmp_path: Path) -> None:
    line = json.dumps({"gold": "B", "response": r"\boxed{B}", "kind": ""}) + "\n"
    command = [sys.executable, "-m", "pipeline.cli", "grade", "-", "--kind", "mcq"]
    done = subprocess.run(command, input=line, capture_output=True, text=True)
    assert json.loads(done.stdout)["correct"] is True, done.stderr
    assert done.stderr.splitlines() == ["1 lines: 1 right, 0 wrong, 0 without a verdict"]


def test_a_bad_line_is_quoted(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(b'{"gold": "7"}\n\n[1,2]\n{"gold": 7\n')
    grade_file(file, None, "boxed", 1, 5.0)
    reasons = [each["reason"] for each in verdicts(capsys.readouterr().out)]
    assert reasons[1:] == [
        "blank line",
        "no JSON object: '[1,2]'",
        "no JSON object: '{\"gold\": 7'",
    ]
