"""Stars and notes on trajectories, in `notes.jsonl` beside the results.

A line is the whole note of a trajectory, and its last line wins: a file that is only ever appended
to loses nothing when two write at once or one dies within a line.
"""

import csv
import fcntl
import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from analysis.errors import UserError, reason

FILE = "notes.jsonl"


@dataclass(frozen=True)
class Note:
    """What somebody thinks of a trajectory. `changed`: when it was written, UTC, ISO 8601."""

    trajectory: str
    starred: bool = False
    note: str = ""
    changed: str = ""


NAMES = tuple(field.name for field in fields(Note))


def read_notes(results: Path) -> dict[str, Note]:
    """The notes in a results folder, by trajectory id; those taken back altogether are left out.

    Lines that cannot be read are passed over: see `broken_lines`. Raises UserError when the file
    cannot be opened.
    """
    notes = {note.trajectory: note for _, note in _lines(results) if note is not None}
    return {key: note for key, note in notes.items() if note.starred or note.note}


def broken_lines(results: Path) -> list[int]:
    """The numbers, from 1, of the lines that hold no note: torn by a crash, or changed by hand."""
    return [number for number, note in _lines(results) if note is None]


def write_note(results: Path, note: Note) -> Note:
    """Append a note, with the time of now, and wait until it is on the disk; what was written.

    Raises UserError when the folder cannot be written to or the disk is full.
    """
    with _opened(results) as file:
        return _append(file, results, note)


def change_note(
    results: Path, trajectory: str, *, starred: bool | None = None, note: str | None = None
) -> Note:
    """Set the star or the text and keep the other, as it is in the file now; raises as above."""
    with _opened(results) as file:
        held = read_notes(results).get(trajectory, Note(trajectory))
        if starred is not None:
            held = replace(held, starred=starred)
        if note is not None:
            held = replace(held, note=note)
        return _append(file, results, held)


def as_jsonl(notes: Iterable[Note]) -> str:
    """A line a note, as in the file."""
    return "".join(_line(note) for note in notes)


def as_csv(notes: Iterable[Note]) -> str:
    """A row a note, with a header."""
    table = io.StringIO()
    writer = csv.DictWriter(table, NAMES, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(note) for note in notes)
    return table.getvalue()


def _lines(results: Path) -> Iterator[tuple[int, Note | None]]:
    path = results / FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: cannot read the notes: {reason(error)}") from error
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield number, _parsed(line)


def _parsed(line: bytes) -> Note | None:
    try:
        note = Note(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (note.trajectory, note.note, note.changed)
    fine = all(map(_is_text, texts)) and isinstance(note.starred, bool)
    return note if fine and note.trajectory else None


def _is_text(value: object) -> bool:
    """A text that can be sent to a browser: no half of a pair of UTF-16."""
    return isinstance(value, str) and value == _whole(value)


def _whole(text: str) -> str:
    return text.encode(errors="replace").decode()


def _line(note: Note) -> str:
    return _whole(json.dumps(asdict(note), ensure_ascii=False)) + "\n"


@contextmanager
def _opened(results: Path) -> Iterator[int]:
    """The file, for one writer at a time: a star set elsewhere is not taken back by a note here."""
    path = results / FILE
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        raise _unwritable(path, reason(error)) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _append(file: int, results: Path, note: Note) -> Note:
    path = results / FILE
    now = replace(note, changed=datetime.now(UTC).isoformat(timespec="milliseconds"))
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"  # somebody died within a line
        line = (("\n" if torn else "") + _line(now)).encode()
        written = os.write(file, line)
        os.fsync(file)
    except OSError as error:
        raise _unwritable(path, reason(error)) from error
    if written != len(line):
        raise _unwritable(path, "the disk is full")
    return now


def _unwritable(path: Path, why: str) -> UserError:
    return UserError(
        f"{path}: cannot write the note: {why}. Make the results folder writable for whoever runs "
        f"the dashboard."
    )
