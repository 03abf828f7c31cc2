"""Stars and notes: a small file that loses nothing."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.errors import UserError
from analysis.notes import (
    FILE,
    Note,
    as_csv,
    as_jsonl,
    broken_lines,
    change_note,
    read_notes,
    write_note,
)

EVIL = '</textarea><script>alert(1)</script>\n"=cmd()", \u2028 ü {"trajectory": "x"}'
ROOT = Path(__file__).resolve().parents[1]


def test_the_last_line_of_a_trajectory_wins_and_the_file_only_grows(tmp_path: Path) -> None:
    assert read_notes(tmp_path) == {}
    first = write_note(tmp_path, Note("a", True, "one"))
    write_note(tmp_path, Note("b", False, EVIL))
    last = change_note(tmp_path, "a", note="two")
    assert (first.starred, first.note, last.starred, last.note) == (True, "one", True, "two")
    assert read_notes(tmp_path) == {"a": last, "b": read_notes(tmp_path)["b"]}
    assert read_notes(tmp_path)["b"].note == EVIL
    assert last.changed.endswith("+00:00")
    assert (tmp_path / FILE).read_text().count("\n") == 3


def test_half_a_pair_of_utf_16_is_written_as_a_question_mark(tmp_path: Path) -> None:
    write_note(tmp_path, Note("a", False, "x\ud800y"))
    assert read_notes(tmp_path)["a"].note == "x?y"


def test_a_note_taken_back_is_gone(tmp_path: Path) -> None:
    change_note(tmp_path, "a", starred=True)
    change_note(tmp_path, "a", note="x")
    change_note(tmp_path, "a", starred=False)
    assert read_notes(tmp_path)["a"].note == "x"
    change_note(tmp_path, "a", note="")
    assert read_notes(tmp_path) == {}


def test_a_line_torn_by_a_crash_costs_itself_alone(tmp_path: Path) -> None:
    write_note(tmp_path, Note("a", True))
    whole = (tmp_path / FILE).read_bytes()
    for length in (
        1,
        2,
        len(whole) // 2,
        len(whole) - 2,
        len(whole) - 1,
    ):  # whole[:-1] lacks nothing but the line's end
        (tmp_path / FILE).write_bytes(whole + whole[:length].replace(b'"a"', b'"b"'))
        write_note(tmp_path, Note("c", True))
        assert {"a", "c"} <= read_notes(tmp_path).keys() <= {"a", "b", "c"}
        assert broken_lines(tmp_path) == ([2] if "b" not in read_notes(tmp_path) else [])


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'"a"',
        b"1",
        b"null",
        b"{}",
        b"\xff",
        b'{"trajectory": 1}',
        b'{"trajectory": ""}',
        b'{"trajectory": "a", "starred": "yes"}',
        b'{"trajectory": "a", "note": null}',
        b'{"trajectory": "a", "other": 1}',
        b'{"trajectory": "a", "note": "\\ud800"}',
        b"[" * 100_000,
    ],
)
def test_a_broken_line_is_named_and_the_others_are_read(tmp_path: Path, line: bytes) -> None:
    good = json.dumps({"trajectory": "g", "starred": True, "note": "", "changed": ""}).encode()
    (tmp_path / FILE).write_bytes(good + b"\n\n" + line + b"\n")
    assert read_notes(tmp_path) == {"g": Note("g", True)}
    assert broken_lines(tmp_path) == [3]


WRITER = """
import sys
from pathlib import Path
from analysis.notes import change_note
for number in range(20):
    change_note(Path(sys.argv[1]), "shared", **{sys.argv[2]: eval(sys.argv[3])})
    change_note(Path(sys.argv[1]), f"{sys.argv[2]} {number}", note="x" * 3000)
"""


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), *change], cwd=ROOT)
        for change in (("starred", "True"), ("note", "'kept'"))
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    notes = read_notes(tmp_path)
    assert broken_lines(tmp_path) == []
    assert len((tmp_path / FILE).read_text().splitlines()) == 80
    assert len(notes) == 41
    assert (notes["shared"].starred, notes["shared"].note) == (True, "kept")


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"notes\.jsonl: cannot write the note"):
        write_note(tmp_path / "missing", Note("a"))
    (tmp_path / FILE).mkdir()
    with pytest.raises(UserError, match="cannot write the note"):
        change_note(tmp_path, "a", starred=True)
    with pytest.raises(UserError, match="cannot read the notes"):
        read_notes(tmp_path)


def test_the_export_holds_every_note_as_data(tmp_path: Path) -> None:
    notes = [Note("a,b", True, 'x "y"\nz', "2026-01-01"), Note("<b>", False, EVIL[:-30])]
    assert [json.loads(line)["note"] for line in as_jsonl(notes).splitlines()] == [
        note.note for note in notes
    ]
    table = list(csv.DictReader(io.StringIO(as_csv(notes))))
    assert [row["trajectory"] for row in table] == ["a,b", "<b>"]
    assert [row["starred"] for row in table] == ["True", "False"]
    assert [row["note"] for row in table] == [note.note for note in notes]
