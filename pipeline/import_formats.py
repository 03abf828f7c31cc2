"""Which format a file or a folder has: told, or recognised by its names and its first keys."""

from dataclasses import dataclass
from pathlib import Path

from exgrpo.errors import UserError
from pipeline import (
    import_mapped,
    import_prime_rl,
    import_shapes,
    import_trl,
    import_verl,
)
from pipeline.import_read import Row, first_row
from pipeline.import_rows import Source

HISTORY = "history"  # told here, read in `pipeline.import_history`
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
    right: float = 1.0
    reward: str | None = None
    grade: bool = False
    group_size: int = 8


DEFAULTS = Options()


def formats() -> list[str]:
    """Every name that --format takes."""
    shapes = [shape.name for shape in import_shapes.SHAPES]
    return ["verl", "trl", "prime-rl", "mapped", HISTORY, *shapes]


def is_history(path: Path, options: Options) -> bool:
    return options.format == HISTORY or (
        options.format is None and options.mapping is None and path.suffix == ".json"
    )


def find(path: Path, options: Options) -> Source:
    """The log at this path. UserError when it is of no known format, or not of the one told."""
    if not path.exists():
        raise UserError(f"{path}: No such file or directory.")
    if options.format not in (None, *formats()):
        raise UserError(f"--format {options.format!r}: known are {', '.join(formats())}.")
    if options.mapping and options.format not in ("mapped", None):
        raise UserError(f"--mapping and --format {options.format}: a mapping makes it `mapped`.")
    if options.mapping:
        return import_mapped.find(path, options.mapping)
    if options.format == "mapped":
        raise UserError("--format mapped: say with --mapping FILE which key is which column.")
    row = {} if path.is_dir() else first_row(path)
    found = _told(path, options) if options.format else _recognise(path, row, options)
    if found is None:
        raise UserError(_unknown(path, row, options.format))
    return found


def _recognise(path: Path, row: Row, options: Options) -> Source | None:
    if path.is_dir():
        return (
            import_prime_rl.find(path)
            or import_trl.find(path, options.reward)
            or import_verl.find(path)
        )
    if set(import_prime_rl.MUST) <= row.keys():
        return import_prime_rl.find(path)
    if path.suffix == ".parquet" and import_trl.is_log(row):
        return import_trl.find(path, options.reward)
    if set(import_verl.MUST) <= row.keys():
        return import_verl.find(path)
    return import_shapes.find(path, row)


def _told(path: Path, options: Options) -> Source | None:
    if options.format == "prime-rl":
        return import_prime_rl.find(path)
    if options.format == "trl":
        return import_trl.find(path, options.reward)
    if options.format == "verl":
        return import_verl.find(path)
    shape = next(shape for shape in import_shapes.SHAPES if shape.name == options.format)
    return None if path.is_dir() else import_shapes.source(path, shape)


def _unknown(path: Path, row: Row, told: str | None) -> str:
    what = f"no log of the format {told}" if told else "unknown shape"
    return (
        f"{path}: {what}: {_content(path, row)}.\n"
        f"Looked for:\n{LOOKED_FOR}\n"
        f"Known shapes with a gold answer, and the keys that tell them:\n{import_shapes.known()}\n"
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
