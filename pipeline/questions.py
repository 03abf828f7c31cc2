"""Stage: make the questions of every split."""

import shutil
from pathlib import Path

from exgrpo import questions
from exgrpo.policy import load_tokenizer
from exgrpo.pretraining import make_tokenizer
from exgrpo.records import Recorder
from exgrpo.studies import Study
from pipeline.files import begin, mark_done, question_file, section_hash, study_folder


def make_questions(study: Study, results: Path) -> None:
    """Write one JSONL file a split, and the table `questions` for the lake."""
    base = study.any_run.base.path
    tokenizer = load_tokenizer(base) if base else make_tokenizer()
    folder = study_folder(study, results) / "questions"
    begin(folder)
    shutil.rmtree(folder, ignore_errors=True)
    recorder = Recorder(folder / "log")
    splits = questions.make_splits(study.any_run.questions)
    for split, members in splits.items():
        questions.save(members, question_file(study, split, results))
        recorder.add(
            "questions",
            (
                {
                    "question": question.id,
                    "source": question.source,
                    "split": split,
                    "text": question.text,
                    "prompt": tokenizer.decode(tokenizer(question.text).input_ids),
                    "gold": question.gold,
                    "level": question.level,
                }
                for question in members
            ),
        )
    recorder.flush(0, 0)
    counts = {split: len(members) for split, members in splits.items()}
    mark_done(folder, settings=section_hash(study.any_run.questions), **counts)
    print("questions: " + ", ".join(f"{split} {count}" for split, count in counts.items()))
