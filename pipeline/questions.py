"""Stage: make or load the questions of every split, and fix their prompts."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from exgrpo import questions
from exgrpo.data_sets import Ask, Loaded, load_splits
from exgrpo.errors import UserError
from exgrpo.policy import load_positions, load_tokenizer, token_id
from exgrpo.prompts import (
    control_texts,
    prompts_by,
    prompts_hash,
    render,
    unknown_id,
    with_prompt_ids,
)
from exgrpo.questions import Question
from exgrpo.records import Recorder, write_whole
from exgrpo.room import longest_prompts, require_room
from exgrpo.settings import RunSettings
from exgrpo.studies import Study
from pipeline.files import (
    begin,
    made_base,
    mark_done,
    question_file,
    questions_hash,
    study_folder,
)

REJECTED = "rejected.jsonl"


def make_questions(study: Study, results: Path, config: Path = Path("config")) -> None:
    """Write one JSONL file a split, the rows left out, and the table `questions` for the lake.

    Needs the base model, whose tokenizer makes the prompt ids. UserError when it is not there,
    when a data set cannot be had, when a made question has too long a prompt, or when the model
    cannot take the longest prompt and response.
    """
    settings = study.any_run
    base = made_base(study, results)
    tokenizer = load_tokenizer(base)
    for text in settings.prompt.stop:
        token_id(tokenizer, text)  # to say now what training would say later
    ask = partial(with_prompt_ids, settings=settings.prompt, tokenizer=tokenizer)
    loaded = load_splits(settings.questions, config, ask, control_texts(tokenizer))
    splits = _splits(settings, loaded, ask)
    positions, longest = load_positions(base), longest_prompts(splits)
    for run in study.runs.values():
        require_room(longest, run, positions)
    folder = study_folder(study, results) / "questions"
    begin(folder)
    shutil.rmtree(folder, ignore_errors=True)
    recorder = Recorder(folder / "log")
    for split, members in splits.items():
        questions.save(members, question_file(study, split, results))
        recorder.add("questions", _rows(split, members, settings, tokenizer))
    recorder.flush(0, 0)
    _save_rejected(loaded, folder / REJECTED)
    mark_done(
        folder,
        settings=questions_hash(settings),
        questions={split: len(members) for split, members in splits.items()},
        data_sets={split: _facts(each) for split, each in loaded.items()},
        tokenizer=prompts_by(tokenizer, settings.prompt),
        prompts={split: prompts_hash(members) for split, members in splits.items()},
    )
    unknown = unknown_id(tokenizer)
    for split, members in splits.items():
        print(f"{split}: {loaded[split].summary if split in loaded else f'{len(members)} made'}")
        if strange := sum(unknown in each.prompt_ids for each in members):
            print(
                f"{split}: WARNING: {strange} of {len(members)} prompts hold what this model's "
                f"tokenizer cannot spell: the model does not see it. Is settings.base right?"
            )


def _splits(
    settings: RunSettings, loaded: dict[str, Loaded], ask: Ask
) -> dict[str, list[Question]]:
    """Every split with its prompts, those of the loaded ones as they are."""
    asked = settings.questions
    splits = questions.make_splits(asked, {name: each.questions for name, each in loaded.items()})
    for split in splits.keys() - loaded.keys():
        splits[split] = ask(splits[split])
        longest = max(splits[split], key=lambda each: len(each.prompt_ids))
        if len(longest.prompt_ids) > asked.max_prompt_tokens:
            raise UserError(
                f"settings.questions.max_prompt_tokens is {asked.max_prompt_tokens}, and a made "
                f"question of {split} has a prompt of {len(longest.prompt_ids)} tokens. Raise it, "
                f"or lower the levels."
            )
    return splits


def _rows(
    split: str,
    members: Sequence[Question],
    settings: RunSettings,
    tokenizer: PreTrainedTokenizerBase,
) -> Iterator[dict[str, Any]]:
    """Rows of the table `questions`."""
    for question in members:
        yield {
            "question": question.id,
            "source": question.source,
            "split": split,
            "kind": question.kind,
            "text": question.text,
            "prompt": render(question, settings.prompt, tokenizer),
            "prompt_ids": list(question.prompt_ids),
            "gold": question.gold,
            "level": question.level,
        }


def _save_rejected(loaded: dict[str, Loaded], path: Path) -> None:
    lines = [
        json.dumps({"split": split, **asdict(row)}) + "\n"
        for split, each in loaded.items()
        for row in each.rejected
    ]
    write_whole(path, "".join(lines).encode())


def _facts(loaded: Loaded) -> dict[str, Any]:
    """What to know later of a data set as it was read."""
    return {
        "name": loaded.name,
        "title": loaded.title,
        "licence": loaded.licence,
        "origin": loaded.origin,
        "files": loaded.files,
        "rows": loaded.rows,
        "rows_described": loaded.whole,
        "rejected": dict(loaded.reasons),
        "notes": dict(loaded.notes),
    }
