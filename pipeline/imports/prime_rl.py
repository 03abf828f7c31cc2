"""prime-rl: the token exports of its trainer, `token_exports/step_<n>/rank_<r>.jsonl`.

A line is a sequence: lists with one value a token, prompt and response together. The tokens that
the model wrote are those of the loss mask. When all ranks have written a step, it is marked STABLE.
"""

import sys
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

from exgrpo.errors import UserError
from exgrpo.questions import question_id
from exgrpo.row_files import Row, natural
from pipeline.imports.rows import ONE_RUN, Place, Source, mean, measures, require, step_of

VERSION = 1
STABLE = "STABLE"
MUST = (
    *("schema_version", "step", "token_ids", "loss_mask"),
    *("inference_logprobs", "trainer_logprobs", "entropy"),
)
OPTIONAL = ("importance_ratio", "is_masked", "rewards", "advantages")
KEYS = {
    "schema_version": "(checked)",
    "step": "step",
    "export_step": "step",
    "run_id": ONE_RUN,
    "token_ids": "token_ids, length; the prompt's: question",
    "loss_mask": "(which tokens the model wrote)",
    "inference_logprobs": "behaviour_logprobs, behaviour_nll",
    "trainer_logprobs": "logprobs, nll",
    "entropy": "entropies, mean_entropy, summed_entropy",
    "importance_ratio": "ratio_mean, ratio_min, ratio_max, ratio_ess",
    "is_masked": "clipped_share",
    "rewards": "correct, steps.reward",
    "advantages": "advantage",
}


def find(path: Path) -> Source | None:
    """The stable steps of an output folder, of its `token_exports`, of one step or one file."""
    folder = path / "token_exports" if (path / "token_exports").is_dir() else path
    found = (*folder.glob("step_*/rank_*.jsonl"), *folder.glob("rank_*.jsonl"))
    files = [path] if path.is_file() else sorted(found, key=natural)
    if not files:
        return None
    stable, left_out = _stable(files)
    if not stable:
        raise UserError(
            f"{path}: no step has its marker {STABLE}, so none is complete: "
            f"{'; '.join(left_out)}. Let the trainer finish a step, or restore the markers."
        )
    return Source("prime-rl", path, stable, KEYS, read, None, left_out)


def _stable(files: Sequence[Path]) -> tuple[list[Path], tuple[str, ...]]:
    """The files of marked steps, and a line on each folder without a marker."""
    folders = dict.fromkeys(file.parent for file in files)
    torn = [folder for folder in folders if not (folder / STABLE).exists()]
    said = tuple(
        f"{folder.resolve().name}: no marker {STABLE}, so it may lack rows" for folder in torn
    )
    return [file for file in files if file.parent not in torn], said


def read(row: Row, at: Place) -> list[Row]:
    require(row, MUST, at)
    if type(row["schema_version"]) is not int or row["schema_version"] != VERSION:
        raise at.error("schema_version", row["schema_version"], f"This reads version {VERSION}.")
    tokens = {key: _tokens(row, key, at) for key in (*MUST[2:], *OPTIONAL)}
    mask = tokens["loss_mask"]
    if mask is None or True not in mask:
        raise UserError(f"{at.where}: the key `loss_mask` marks no token. Remove the row.")
    begin = mask.index(True)
    kept = {key: list(compress(values, mask)) for key, values in tokens.items() if values}
    between = mask[begin:].count(False)
    at.tally.notes["tokens after the first response token that the model did not write"] += between
    prompt = " ".join(map(str, row["token_ids"][:begin]))
    lists = _lists(kept, at)
    step = "step" if row.get("export_step") is None else "export_step"
    return [
        {
            "step": step_of(row[step], step, at),
            "question": question_id(f"token ids {prompt}"),
            **lists,
            **measures(lists, at, _whole(kept, "importance_ratio", at)),
            "clipped_share": mean(_whole(kept, "is_masked", at)),
            "trained": True,  # only sequences with a trained token are exported
            "score": _only(kept.get("rewards"), "rewards", at),
            "advantage": _only(kept.get("advantages"), "advantages", at),
        }
    ]


def _tokens(row: Row, key: str, at: Place) -> list[Any] | None:
    """A list with a value a token; None where all of them, or the key, are missing."""
    values = row.get(key)
    if values is None:
        return None
    if not isinstance(row["token_ids"], list):
        raise at.error("token_ids", row["token_ids"], "Give a list of token ids.")
    length = len(row["token_ids"])
    if not isinstance(values, list) or len(values) != length:
        raise at.error(key, values, f"Give a list of {length} values, as many as token ids.")
    fits = _FITS.get(key, _is_number)
    for value in values:
        if not fits(value):
            raise at.error(key, value, "The list holds a value that does not fit.")
    return None if all(value is None for value in values) else values


def _is_number(value: Any) -> bool:
    """Null, or a number that a float holds without rounding."""
    if value is None or type(value) not in (int, float):
        return value is None
    fits = abs(value) <= sys.float_info.max
    return fits and (type(value) is float or int(float(value)) == value)


_FITS: dict[str, Callable[[Any], bool]] = {
    "token_ids": lambda value: type(value) is int and 0 <= value < 2**31,
    "loss_mask": lambda value: type(value) is bool,
    "is_masked": lambda value: value is None or type(value) is bool,
}


def _lists(kept: dict[str, list[Any]], at: Place) -> Row:
    return {
        "token_ids": kept["token_ids"],
        "behaviour_logprobs": _whole(kept, "inference_logprobs", at),
        "logprobs": _whole(kept, "trainer_logprobs", at),
        "entropies": _whole(kept, "entropy", at),
    }


def _whole(kept: dict[str, list[Any]], key: str, at: Place) -> list[Any] | None:
    values = kept.get(key)
    if values is not None and None in values:  # the exporter writes what is not finite as null
        at.tally.notes[f"sequences whose `{key}` has gaps, so that it stays empty"] += 1
        return None
    return values


def _only(values: list[Any] | None, key: str, at: Place) -> float | None:
    """The one value of all tokens; null where they differ or are missing."""
    found = set(values or ())
    if len(found) > 1:
        at.tally.notes[f"sequences whose `{key}` differs by token, so that it stays empty"] += 1
        return None
    value = next(iter(found), None)
    return None if value is None else float(value)
