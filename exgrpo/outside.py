"""Trajectories that are not the run's own: an expert's answers, an earlier run's right answers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from transformers import PreTrainedTokenizerBase

from exgrpo import chain
from exgrpo.errors import UserError
from exgrpo.experience import ReplayBuffer, Trajectory, token_key
from exgrpo.questions import Question, question_id
from exgrpo.settings import Buffer, RunSettings
from exgrpo.tables.manifest import check_part, live_parts

Outside = Mapping[str, Sequence[Trajectory]]


def outside_trajectories(
    settings: RunSettings,
    questions: Sequence[Question],
    tokenizer: PreTrainedTokenizerBase,
    pool_log: Path | None,
) -> Outside:
    """Question id -> what `join.source` brings; empty where the run replays only its own.

    pool_log: log of the run that `join.pool` names.
    """
    match settings.join.source:
        case "expert":
            return expert_trajectories(questions, tokenizer, settings.join.expert)
        case "pool":
            if pool_log is None:
                raise UserError("settings.join.pool: no log of that run was given.")
            return pool_trajectories(pool_log, questions, settings.buffer.per_question)
        case "buffer":
            return {}


def expert_trajectories(
    questions: Sequence[Question],
    tokenizer: PreTrainedTokenizerBase,
    file: str | None,
) -> Outside:
    """One answer a question, of behaviour probability 1 (LUFFY): log-probability 0 everywhere.

    file: JSONL with `question` and `response`, one answer a question; None: the exact chain.
    Questions without an answer take none.
    """
    if file is None:
        answers = {each.id: chain.explain(each.text) for each in questions}
    else:
        answers = _read_answers(Path(file))
    expert = {}
    for question in questions:
        if question.id in answers:
            ids = tokenizer(answers[question.id], add_special_tokens=False).input_ids
            token_ids = np.array([*ids, tokenizer.eos_token_id], dtype=np.int32)
            expert[question.id] = [
                Trajectory(
                    id=f"expert:{question.id}",
                    question=question.id,
                    prompt_ids=list(question.prompt_ids),
                    token_ids=token_ids,
                    logprobs=np.zeros(len(token_ids), dtype=np.float32),
                    birth_step=0,
                    birth_entropy=0.0,
                    correct=True,
                    key="expert",
                )
            ]
    return expert


def _read_answers(path: Path) -> dict[str, str]:
    if not path.is_file():
        raise UserError(f"{path}: no such file. settings.join.expert names a JSONL file.")
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: no UTF-8 text: {error}. Save the file as UTF-8.") from error
    answers = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            question, response = record["question"], record["response"]
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path}: line {number}: {error!r} in {line[:80]!r}. Every line is a JSON object "
                f"with `question` and `response`."
            ) from error
        if not isinstance(question, str) or not isinstance(response, str):
            raise UserError(f"{path}: line {number}: `question` and `response` must be text.")
        answers[question_id(question)] = response
    return answers


def pool_trajectories(
    log: Path,
    questions: Sequence[Question],
    per_question: int | None,
) -> Outside:
    """The right answers in a finished run's log (RLEP), once each, with their log-probabilities.

    per_question: keep the newest so many of each question; None: all.
    """
    prompts = {each.id: list(each.prompt_ids) for each in questions}
    right = pl.col("correct") & ~pl.col("replayed") & (pl.col("finish") == "stop")
    rows = (
        _table(log, "trajectories")
        .filter(right, pl.col("question").is_in(list(prompts)))
        .select("trajectory", "step", "group", "slot", "question", "mean_entropy")
        .join(
            _table(log, "tokens").select("trajectory", "token_ids", "behaviour_logprobs"),
            on="trajectory",
        )
        .sort("step", "group", "slot")
        .collect()
    )
    pool = ReplayBuffer(Buffer(per_question=per_question))
    for row in rows.iter_rows(named=True):
        token_ids = np.array(row["token_ids"], dtype=np.int32)
        found = Trajectory(
            id=row["trajectory"],
            question=row["question"],
            prompt_ids=prompts[row["question"]],
            token_ids=token_ids,
            logprobs=np.array(row["behaviour_logprobs"], dtype=np.float32),
            birth_step=row["step"],
            birth_entropy=row["mean_entropy"],
            correct=True,
            key=token_key(token_ids),
        )
        pool.add(row["question"], [found])
    if not pool.stored:
        raise UserError(f"{log}: no right answer to any training question: no pool to replay from.")
    return pool.stored


def _table(log: Path, name: str) -> pl.LazyFrame:
    parts = [check_part(log, part) for part in live_parts(log) if part.table == name]
    if not parts:
        raise UserError(f"{log}: no rows of table {name}: no run to replay from. Train it first.")
    return pl.scan_parquet(parts, glob=False)
