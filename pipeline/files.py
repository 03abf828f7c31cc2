"""Where the stages keep their files, and the marker that says a stage is done."""

import json
from pathlib import Path
from typing import Any

from exgrpo.errors import UserError
from exgrpo.records import write_whole
from exgrpo.section import Section
from exgrpo.settings import ModelPackage, RunSettings, content_hash
from exgrpo.studies import Study

DONE = "done.json"


def study_folder(study: Study, results: Path) -> Path:
    return results / study.name


def run_folder(study: Study, run: str, results: Path) -> Path:
    return study_folder(study, results) / "runs" / run


def evaluation_folder(study: Study, run: str, results: Path) -> Path:
    return study_folder(study, results) / "evaluations" / run


def question_file(study: Study, split: str, results: Path) -> Path:
    return study_folder(study, results) / "questions" / f"{split}.jsonl"


def base_path(study: Study, results: Path) -> str:
    """The model folder or hub name that training starts from."""
    base = study.any_run.base
    if base.package is not None:
        return str(package_model(base.package, results))
    return base.path or str(study_folder(study, results) / "base")


def made_base(study: Study, results: Path) -> str:
    """The same once its stage is done. UserError where it is not, or the model has gone since."""
    folder, base = study_folder(study, results) / "base", study.any_run.base
    require_done(folder, section_hash(base))
    path = base_path(study, results)
    if base.package is not None and not Path(path).is_dir():
        raise UserError(
            f"{path}: the model made of settings.base.package ({base.package.name} "
            f"{base.package.version}) has gone, and {folder / DONE} says that it is there. Make it "
            f"again with `exgrpo base-model --study {study.name}`."
        )
    return path


def package_model(package: ModelPackage, results: Path) -> Path:
    """The model folder made of a package, shared by all studies that name the same file."""
    name = f"{package.name}-{package.version}-{package.sha256[:8]}"
    return results / "packages" / name / "model"


def run_settings(study: Study, run: str) -> RunSettings:
    """The settings of a run of the study. UserError when the study has no such run."""
    if run not in study.runs:
        raise UserError(
            f"study {study.name!r} has no run {run!r} with the settings of now: a name ends in "
            f"their hash. Its runs: {', '.join(study.runs)}; its base model, which is evaluated "
            f"and not trained: {study.base_run}."
        )
    return study.runs[run]


def section_hash(section: Section) -> str:
    """The hash by which a stage's files are known to be made with these settings."""
    return content_hash(section.model_dump(mode="json"))


def questions_hash(settings: RunSettings) -> str:
    """The same for the questions of a study: with their prompts, whose ids are made once."""
    return content_hash(
        [settings.questions.model_dump(mode="json"), settings.prompt.model_dump(mode="json")]
    )


def begin(folder: Path) -> None:
    """Take back the folder's `done.json` before anything that it vouches for is changed."""
    (folder / DONE).unlink(missing_ok=True)


def require_done(folder: Path, settings: str | None = None) -> None:
    """UserError unless the stage of this folder is done, and with settings of this hash."""
    path = folder / DONE
    if not path.is_file():
        raise UserError(
            f"{path}: missing, so this stage is not done and its files do not count. "
            f"`exgrpo reproduce` goes on where it stopped."
        )
    made_with = json.loads(path.read_text()).get("settings")
    if settings is not None and made_with != settings:
        raise UserError(
            f"{path}: made with other settings (hash {made_with}, now {settings}). Remove "
            f"{folder} and run `exgrpo reproduce` again."
        )


def require_prompts(folder: Path, tokenizer: str) -> None:
    """UserError unless the prompts of the question files in `folder` are of this tokenizer.

    tokenizer: `exgrpo.prompts.prompts_by`. Ids of another one would be other texts.
    """
    path = folder / DONE
    made_with = json.loads(path.read_text()).get("tokenizer")
    if made_with != tokenizer:
        raise UserError(
            f"{path}: the prompts were made with another tokenizer or chat template (hash "
            f"{made_with}, the base model's is {tokenizer}). Remove {folder} and run `exgrpo "
            f"reproduce` again."
        )


def mark_done(folder: Path, **facts: Any) -> None:
    """Write `done.json` in the folder: the last act of a stage, after all else is on disk."""
    write_json(folder / DONE, facts)


def write_json(path: Path, value: Any) -> None:
    write_whole(path, (json.dumps(value, indent=2) + "\n").encode())
