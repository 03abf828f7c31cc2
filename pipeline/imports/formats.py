"""Which format a file or a folder has: told, or recognised by its names and its first keys."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from exgrpo.errors import UserError
from exgrpo.row_files import Row, first_row
from pipeline.imports import mapped, prime_rl, shapes, trl, verl
from pipeline.imports.rows import Source

HISTORY = "history"  # told here, read in `pipeline.imports.history`
LOOKED_FOR = """\
  prime-rl: a folder with token_exports/step_<n>/rank_<r>.jsonl, or one such file
  trl: a folder with completions_<step>.parquet, or one such file (step, prompt, completion)
  verl: a folder with <step>.jsonl, or one such file (input, output, score)
  history: a .json file with an object: question -> its accuracies
  mapped: any JSONL or Parquet with --mapping FILE"""


@dataclass(frozen=True)
class Options:
    """What a person may say about a log. See the command's help for each."""

    format: str | None = None
    mapping: Path | None = None
    right: float | None = None
    reward: str | None = None
    grade: bool | None = None
    group_size: int | None = None

    @property
    def least_right(self) -> float:
        """The least score that is right."""
        return 1.0 if self.right is None else self.right

    @property
    def rollouts(self) -> int:
        """K of an accuracy history."""
        return 8 if self.group_size is None else self.group_size


DEFAULTS = Options()

# The formats that an option is for; those that are not here are for all.
ONLY_FOR = {
    "mapping": ("mapped",),
    "right": ("verl", "trl", "prime-rl", "mapped"),
    "reward": ("trl",),
    "grade": ("verl", "mapped"),  # the others have no gold, or are graded anyway
    "group_size": (HISTORY,),
}


def formats() -> list[str]:
    """Every name that --format takes."""
    names = [shape.name for shape in shapes.SHAPES]
    return ["verl", "trl", "prime-rl", "mapped", HISTORY, *names]


def is_history(path: Path, options: Options) -> bool:
    told = options.format == HISTORY or (options.format is None and path.suffix == ".json")
    return told and options.mapping is None


def check_options(path: Path, format: str, options: Options) -> None:
    """UserError on an option that is given and is not for the format."""
    for option, able in ONLY_FOR.items():
        if getattr(options, option) is not None and format not in able:
            raise UserError(
                f"--{option.replace('_', '-')} is for {', '.join(able)}: {path} is taken for "
                f"{format}. Leave it out, or say the format with --format."
            )


def find(path: Path, options: Options) -> Source:
    """The log at this path. UserError when it is of no known format, or not of the one told."""
    if not math.isfinite(options.least_right):
        raise UserError(f"--right {options.right}: give a number.")
    if options.format not in (None, *formats()):
        raise UserError(f"--format {options.format!r}: known are {', '.join(formats())}.")
    if options.mapping and options.format is None:
        options = replace(options, format="mapped")
    if options.format:
        check_options(path, options.format, options)
    if options.mapping:
        return _mapped(path, options, options.mapping)
    if options.format == "mapped":
        raise UserError("--format mapped: say with --mapping FILE which key is which column.")
    bad: list[str] = []
    row = (
        {}
        if path.is_dir()
        else first_row(path, lambda note: bad.append(f" First: {note}") if not bad else None)
    )
    found = _told(path, options) if options.format else _recognise(path, row, options)
    if found is None:
        raise UserError(_unknown(path, row, options.format, bad))
    check_options(path, found.format, options)
    return found


def _mapped(path: Path, options: Options, mapping: Path) -> Source:
    found = mapped.find(path, mapping)
    if found.kind and (options.right is not None or options.grade is not None):
        option = "--grade" if options.right is None else "--right"
        raise UserError(
            f"{option} is for logs with a recorded score: {mapping} maps neither score nor "
            f"correct, so we grade. Leave it out, or map one."
        )
    return found


def _recognise(path: Path, row: Row, options: Options) -> Source | None:
    if path.is_dir():
        return prime_rl.find(path) or trl.find(path, options.reward) or verl.find(path)
    if set(prime_rl.MUST) <= row.keys():
        return prime_rl.find(path)
    if path.suffix == ".parquet" and trl.is_log(row):
        return trl.find(path, options.reward)
    if set(verl.MUST) <= row.keys():
        return verl.find(path)
    return shapes.find(path, row)


def _told(path: Path, options: Options) -> Source | None:
    if options.format == "prime-rl":
        return prime_rl.find(path)
    if options.format == "trl":
        return trl.find(path, options.reward)
    if options.format == "verl":
        return verl.find(path)
    shape = next(shape for shape in shapes.SHAPES if shape.name == options.format)
    return None if path.is_dir() else shapes.source(path, shape)


def _unknown(path: Path, row: Row, told: str | None, bad: list[str]) -> str:
    what = f"no log of the format {told}" if told else "unknown shape"
    return (
        f"{path}: {what}: {_content(path, row)}.{''.join(bad)}\n"
        f"Looked for:\n{LOOKED_FOR}\n"
        f"Known shapes with a gold answer, and the keys that tell them:\n{shapes.known()}\n"
        f"Rename the keys, or write a mapping file: docs/import.md."
    )


def _content(path: Path, row: Row) -> str:
    """What is there instead, for a message."""
    if not path.is_dir():
        none = "the file is empty, or no line of it is JSON"
        return f"its first row has the keys {', '.join(row)}" if row else none
    names = sorted(each.name for each in path.iterdir())
    more = " ..." if len(names) > 5 else ""
    return f"it holds {', '.join(names[:5])}{more}" if names else "it is empty"
