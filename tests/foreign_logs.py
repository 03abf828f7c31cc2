"""Small logs as other trainers write them, by their published formats."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from analysis.catalog import open_catalog

Row = dict[str, Any]


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """JSONL; a text is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def verl(question: int, sample: int, score: float | None, step: int, **extras: object) -> Row:
    """A line of verl's rollout_data_dir: the prompt decoded, without its special tokens."""
    return {
        "input": f"system\nYou are helpful.\nuser\nWhat is {question} + 1?\nassistant\n",
        "output": f"{question} + 1 is \\boxed{{{question + 1 if score else sample}}}",
        "gts": str(question + 1),
        "score": score,
        "step": step,
        **extras,
    }


def trl(path: Path, step: object, rows: Sequence[Row]) -> Path:
    """A file of TRL's log_completions."""
    path.mkdir(parents=True, exist_ok=True)
    file = path / f"completions_{int(str(step)):05d}.parquet"
    pl.DataFrame([{"step": step, **row} for row in rows]).write_parquet(file)
    return file


def prime_rl(prompt: Sequence[int], response: Sequence[int], reward: float, **lists: object) -> Row:
    """A line of prime-rl's token exports, schema version 1. The numbers follow from the tokens."""
    ids = [*prompt, *response]
    size = len(ids)
    mask = [False] * len(prompt) + [True] * len(response)
    inference = [-(token % 7) / 8 for token in ids]
    trainer = [-(token % 5) / 8 for token in ids]
    return {
        "schema_version": 1,
        "step": 3,
        "export_step": 3,
        "rank": 0,
        "micro_step": 0,
        "micro_sequence_idx": 0,
        "export_sequence_idx": 0,
        "run_id": None,
        "env_name": "math",
        "token_ids": ids,
        "position_ids": list(range(size)),
        "loss_mask": mask,
        "advantages": [reward - 0.75] * size,
        "losses": [{"rl": {"advantage": reward - 0.75, "mask": each}} for each in mask],
        "rewards": [reward] * size,
        "inference_logprobs": inference,
        "trainer_logprobs": trainer,
        "entropy": [token % 3 / 4 for token in ids],
        "mismatch_kl": [0.0] * size,
        "log_importance_ratio": [0.0] * size,
        "importance_ratio": [1 + token % 2 / 2 for token in ids],
        "prob_delta": [0.0] * size,
        "is_masked": [token % 4 == 0 for token in ids],
        "is_masked_high": [False] * size,
        "is_masked_low": [False] * size,
        **lists,
    }


def ask(results: Path, sql: str) -> pl.DataFrame:
    """The answer of the catalog."""
    with open_catalog(results / "workbench.duckdb") as connection:
        return connection.sql(sql).pl()
