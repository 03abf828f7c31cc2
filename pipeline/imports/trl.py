"""TRL: the completions that `log_completions` writes, a file `completions_<step>.parquet` a step.

A column a reward function lies between those of the user; the file does not say which is which.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exgrpo.errors import UserError
from exgrpo.row_files import Row, natural
from pipeline.imports.rows import Place, Source, as_text, asked, number, others, require, step_of

MUST = ("step", "prompt", "completion")
KEYS = {
    "step": "step",
    "prompt": "text, prompt, question",
    "completion": "response",
    "advantage": "advantage",
}


def find(path: Path, reward: str | None) -> Source | None:
    """One file, or those of a folder or of `completions` in it; None when there is none.

    UserError when it is not clear which column is the reward.
    """
    folder = path / "completions" if (path / "completions").is_dir() else path
    files = sorted(folder.glob("completions_*.parquet"), key=natural) if path.is_dir() else [path]
    if not files:
        return None
    chosen = _told(path, files, reward) if reward else _only_reward(path, files)
    left_out = others(folder, files) if path.is_dir() else ()

    def read(row: Row, at: Place) -> list[Row]:
        return _read(row, at, chosen)

    keys = {**KEYS, chosen: "correct, steps.reward"}
    return Source("trl", path, files, keys, read, None, left_out)


def is_log(row: Row) -> bool:
    return set(MUST) <= row.keys()


def _told(path: Path, files: Sequence[Path], reward: str) -> str:
    """The column that was told. UserError when no file has it, or it is no reward."""
    there = dict.fromkeys(name for file in files for name in _schema(file).names)
    able = [name for name in there if name not in KEYS]
    if reward not in able:
        raise UserError(f"--reward {reward!r}: no reward of {path}. It has {', '.join(able)}.")
    return reward


def _only_reward(path: Path, files: Sequence[Path]) -> str:
    """The only column of numbers that can be a reward, over all files."""
    found: dict[str, None] = {}
    for file in files:
        for column in _schema(file):
            number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
            if number and column.name not in KEYS and not column.name.startswith("__index"):
                found[column.name] = None
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise UserError(
            f"{path}: no column of numbers besides {', '.join(KEYS)}, so no reward is recorded. "
            f"Name the column with --reward."
        )
    raise UserError(
        f"{path}: several columns can be the reward: {', '.join(found)}. Say with --reward NAME "
        f"which one decides what is right."
    )


def _schema(file: Path) -> pa.Schema:
    try:
        with file.open("rb") as handle:
            return pq.read_schema(handle)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from error


def _read(row: Row, at: Place, reward: str) -> list[Row]:
    require(row, MUST, at)
    if row.get("mode") == "eval":
        at.tally.notes["rows of the mode `eval`, which are no training"] += 1
        return []
    prompt = _words(row, "prompt", at)
    return [
        asked(
            prompt,
            prompt=prompt,
            step=step_of(row["step"], "step", at),
            response=_words(row, "completion", at),
            score=_number(row.get(reward), reward, at),
            advantage=_number(row.get("advantage"), "advantage", at),
            trained=True,  # the trainer logs what it trains on
        )
    ]


def _number(value: Any, key: str, at: Place) -> float | None:
    """A number; pandas writes a missing one as NaN."""
    missing = isinstance(value, float) and math.isnan(value)
    return None if missing else number(value, key, at)


def _words(row: Row, key: str, at: Place) -> str:
    """Text, or the messages of a conversation line by line; a single one without its role."""
    value = row[key]
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value or not all(map(_is_message, value)):
        raise at.error(key, value, "Give text, or a list of messages with role and content.")
    if any(message[name] for message in value for name in message.keys() - {"role", "content"}):
        at.tally.notes[f"rows whose `{key}` has more than role and content, which is not kept"] += 1
    said = [(message["role"], _content(message["content"], key, at)) for message in value]
    return said[0][1] if len(said) == 1 else "\n".join(f"{role}: {words}" for role, words in said)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and {"role", "content"} <= value.keys()


def _content(value: Any, key: str, at: Place) -> str:
    """The text of a message; of its parts, where an image stands between them."""
    if isinstance(value, list):
        return "\n".join(_part(part, key, at) for part in value)
    return as_text(value, key, at) or ""


def _part(part: Any, key: str, at: Place) -> str:
    if isinstance(part, dict) and "type" in part:
        return as_text(part.get("text"), key, at) or f"[{part['type']}]"
    return as_text(part, key, at) or ""
