"""What `config/datasets/<name>.yaml` says of a data set, and where its files are.

A local copy in the data folder (`data/`, or the environment variable EXGRPO_DATA) comes first, or
the Hub's own files in a folder of the set's name there; then the Hub. A folder of the same form may
stand in place of the name on the Hub.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from exgrpo.errors import UserError
from exgrpo.question_settings import DataSet, Questions
from exgrpo.section import Section
from exgrpo.settings_files import existing, parse, read_yaml


def _below(path: str) -> str:
    if not path or path.startswith("/"):
        raise ValueError(
            "expected a path below a folder: of `local` EXGRPO_DATA names it, of `file` `hub` does"
        )
    return path


Glob = Annotated[str, AfterValidator(_below)]


class Columns(Section):
    """Which column is what, where it is not known by its name. `a.b` is the key b within a."""

    question: str
    answer: str  # with options: the letter of the right one
    options: str | None = None  # a list
    level: str | None = None


class DataSetFile(Section):
    """A data set as written."""

    word: ClassVar[str] = "data set"
    folder: ClassVar[str] = "datasets"  # of config/
    title: str
    licence: str
    hub: str | None = None  # a name on the Hub, or a folder of the same form
    revision: str = "main"
    file: Glob | None = None  # there
    access: str = ""  # what to do before the Hub gives it
    local: Glob | None = None  # below the data folder
    rows: int | None = Field(None, ge=1)  # of the whole set; where a copy has others, it is said
    columns: Columns | None = None
    # mcq: the gold is a letter and the options are in the text. None: mcq where a row has options
    kind: Literal["mcq"] | None = None
    instruction: str = ""  # that the file puts after each question; taken off: prompts are ours

    @model_validator(mode="after")
    def _somewhere(self) -> "DataSetFile":
        if self.hub is None and self.local is None:
            raise ValueError("nowhere to read it from: give hub and file, or local")
        if (self.hub is None) != (self.file is None):
            raise ValueError("hub and file go together: give both, or local alone")
        return self


@dataclass(frozen=True)
class Found:
    """Files of a data set, in the order of their names, in a folder; origin: where that is from."""

    origin: str
    folder: Path
    files: tuple[Path, ...]


def data_folder() -> Path:
    return Path(os.environ.get("EXGRPO_DATA") or "data")


def describe(name: str, config: Path, named_in: str | None = None) -> DataSetFile:
    """What the file of a data set says. UserError on an unknown name, a wrong key or value."""
    folder = config / DataSetFile.folder
    if "/" in name or (Path(name).is_file() and not (folder / f"{name}.yaml").is_file()):
        where = f"{named_in}: " if named_in else ""
        raise UserError(
            f"{where}{name!r} is no name of a data set but a file or a name on the Hub. Describe "
            f"it in {folder / 'NAME.yaml'}, with title, licence and `local: FILE` "
            f"(or `hub: NAME` and `file: FILE`), and give NAME."
        )
    path = existing(DataSetFile, name, config, named_in)
    return parse(DataSetFile, read_yaml(path), path)


def data_sets(settings: Questions) -> dict[str, DataSet]:
    """The splits that come from data sets: tests first, then validation and train."""
    splits = {**settings.benchmarks, "validation": settings.validation, "train": settings.train}
    return {split: each for split, each in splits.items() if isinstance(each, DataSet)}


def descriptions(
    settings: Questions, config: Path, named_in: Path | None = None
) -> dict[str, DataSetFile]:
    """By name, every data set that the questions are from. UserError like `describe`."""
    found = {}
    for split, asked in data_sets(settings).items():
        key = f"benchmarks.{split}" if split in settings.benchmarks else split
        where = f"{named_in}: key `settings.questions.{key}.dataset`" if named_in else None
        found[asked.dataset] = describe(asked.dataset, config, where)
    return found


def find_files(name: str, described: DataSetFile) -> Found:
    """The files of a data set: the local copy, else those of the Hub. UserError without either."""
    folder = data_folder()
    for below, glob in ((folder, described.local), (folder / name, described.file)):
        if glob is not None and (files := _matching(below, glob)):
            return Found("local copy", folder, files)
    missing = f"no local copy at {folder / described.local}" if described.local else ""
    if described.hub is None or described.file is None:
        raise UserError(
            f"data set {name!r}: {missing}. Put it there, or name the data folder in the "
            f"environment variable EXGRPO_DATA."
        )
    origin, folder = described.hub, Path(described.hub)
    if not folder.is_dir():
        origin = f"{described.hub}, revision {described.revision}"
        folder = _fetch(name, described.hub, described.revision, described.file, missing, described)
    if not (files := _matching(folder, described.file)):
        raise UserError(
            f"data set {name!r}: {origin} has no file {described.file!r}. Mend the key `file` of "
            f"its description."
        )
    return Found(origin, folder, files)


def _matching(folder: Path, glob: str) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.glob(glob) if path.is_file()))


def _fetch(
    name: str, hub: str, revision: str, file: str, missing: str, described: DataSetFile
) -> Path:
    """The folder that the Hub's files are in, fetched before or now."""
    from huggingface_hub import snapshot_download  # slow to load, and a local copy needs none

    try:
        return Path(
            snapshot_download(hub, repo_type="dataset", revision=revision, allow_patterns=[file])
        )
    except (OSError, ValueError) as error:  # no network, no such set or revision, no access
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"data set {name!r}: {missing or 'no local copy is described'}, and the Hub does not "
            f"give {hub} (revision {revision}, file {file}): {reason} "
            f"{described.access or 'Check the network and the name.'} Or fetch {file} of {hub} "
            f"elsewhere and put it at {data_folder() / name / file}; EXGRPO_DATA names another "
            f"data folder."
        ) from error
