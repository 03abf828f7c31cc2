"""verl: the rollouts that `trainer.rollout_data_dir` dumps, a file `<step>.jsonl` a step."""

from pathlib import Path

from exgrpo.errors import UserError
from exgrpo.row_files import Row, natural
from pipeline.imports.rows import (
    Place,
    Source,
    as_text,
    asked,
    number,
    others,
    require,
    step_of,
    text,
)

MUST = ("input", "output", "score")
KEYS = {
    "input": "text, prompt, question",
    "output": "response",
    "gts": "gold",
    "score": "correct, steps.reward",
    "step": "step",
    "uid": "group",
}


def find(path: Path) -> Source | None:
    """One file, or those of a folder by step; None when it has no JSONL file."""
    files = sorted(path.glob("*.jsonl"), key=natural) if path.is_dir() else [path]
    left_out = others(path, files) if path.is_dir() else ()
    return Source("verl", path, files, KEYS, read, None, left_out) if files else None


def read(row: Row, at: Place) -> list[Row]:
    require(row, MUST, at)
    if not isinstance(row["output"], str):
        raise at.error("output", row["output"], "Give text, or remove the row.")
    prompt = text(row, "input", at)
    return [
        asked(
            prompt,
            prompt=prompt,
            step=_step(row, at),
            group_key=as_text(row.get("uid"), "uid", at),
            gold=as_text(row.get("gts"), "gts", at),
            response=row["output"],
            score=number(row["score"], "score", at),
        )
    ]


def _step(row: Row, at: Place) -> int:
    """Of the line; older versions wrote it into the name of the file alone."""
    if "step" in row:
        return step_of(row["step"], "step", at)
    if not at.file.stem.isdecimal():
        raise UserError(
            f"{at.where}: no key `step`, and the file's name {at.file.name} is no step. Add the "
            f"key, or call the file <step>.jsonl."
        )
    return step_of(int(at.file.stem), "step (the file's name)", at)
