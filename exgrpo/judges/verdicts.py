"""Verdicts on disk, by what was judged: a judge that was killed goes on where it stopped.

One SQLite file for all runs and judges. A verdict is there as a whole or not at all, a kill loses
none that was given, and several commands may use the file at once.
"""

import json
import sqlite3
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from exgrpo.errors import UserError
from exgrpo.judges.judge import Case, Judge, Judgement

_PATIENCE = 60.0  # seconds to wait while another process writes


def key_of(judge: Judge, case: Case) -> str:
    """The hash of a judge's name and version, and of all that it is shown."""
    content = json.dumps([judge.name, judge.version, asdict(case)], sort_keys=True)
    return sha256(content.encode()).hexdigest()


class Verdicts:
    """`with Verdicts(path) as verdicts:`; for one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> "Verdicts":
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
            self._file.execute("PRAGMA journal_mode = wal")
            self._file.execute("PRAGMA synchronous = normal")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, valid INTEGER, "
                "reason TEXT NOT NULL) WITHOUT ROWID"
            )
            columns = self._file.execute("SELECT name FROM pragma_table_info('verdicts')")
            names = [name for (name,) in columns]
        except (sqlite3.Error, OSError) as error:
            if hasattr(self, "_file"):
                self._file.close()
            raise self._broken(error) from error
        if names != ["key", "valid", "reason"]:
            self._file.close()
            raise UserError(
                f"{self._path}: another version of the workbench made it: its table `verdicts` has "
                f"the columns {', '.join(names)}. Move it away, and all is judged anew."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def get(self, key: str) -> Judgement | None:
        try:
            found = self._file.execute(
                "SELECT valid, reason FROM verdicts WHERE key = ?", (key,)
            ).fetchone()
        except sqlite3.Error as error:
            raise self._broken(error) from error
        return found and Judgement(None if found[0] is None else bool(found[0]), found[1])

    def put(self, key: str, judgement: Judgement) -> None:
        row = (key, judgement.valid, judgement.reason)
        try:
            self._file.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", row)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> UserError:
        return UserError(
            f"{self._path}: the verdicts given so far cannot be read or written: {error}. Free "
            f"disk space or mend the permissions; if the file is damaged, remove it, and all is "
            f"judged anew."
        )
