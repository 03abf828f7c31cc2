"""A study: which arms, which seeds, and the resolved settings of every run.

A study file (`config/studies/*.yaml`) names arms and seeds and changes defaults; an arm file
(`config/arms/*.yaml`) changes settings on top. Both may build on one other of their kind, named in
`extends`. Unknown keys and wrong types are errors that name file, key, value and remedy.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from exgrpo.data_set_file import descriptions
from exgrpo.errors import UserError
from exgrpo.section import Section
from exgrpo.settings import SHARED_SECTIONS, RunSettings, content_hash
from exgrpo.settings_files import existing, parse, read_yaml, suggest

# Settings that name an arm of the same study: this run needs that arm's run of the same seed.
SOURCES = (("training", "start_from"), ("join", "pool"))

F = TypeVar("F", bound="SettingsFile")
Layer = tuple[Path, dict[str, Any]]


class SettingsFile(Section):
    """What arm and study files have in common: settings, on top of those of one other file."""

    word: ClassVar[str]
    folder: ClassVar[str]  # of config/
    title: str
    extends: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class ArmFile(SettingsFile):
    """An arm as written: what it is, which claim it serves, what it changes."""

    word, folder = "arm", "arms"
    claim: str = ""
    paper: str = ""


class StudyFile(SettingsFile):
    """A study as written: arms, seeds, and the settings they share.

    One that extends another takes over its arms and its seeds unless it names its own, but not its
    companions: the studies that the same command runs after this one.
    """

    word, folder = "study", "studies"
    arms: Annotated[list[str], Field(min_length=1)] | None = None
    seeds: Annotated[list[int], Field(min_length=1)] | None = None
    companions: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _whole(self) -> "StudyFile":
        for key in ("arms", "seeds"):
            if getattr(self, key) is None and self.extends is None:
                raise ValueError(f"a study that extends no other needs the key `{key}`")
        return self


class Study(BaseModel):
    """A study with every run resolved.

    base_run: the run id under which the untrained base model is evaluated.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    title: str
    arms: dict[str, ArmFile]
    seeds: list[int]
    runs: dict[str, RunSettings]
    base_run: str

    @property
    def any_run(self) -> RunSettings:
        """Settings shared by all runs (questions, base, evaluation) can be read from any."""
        return next(iter(self.runs.values()))

    def needs(self, run: str) -> list[str]:
        """The runs that must be trained before this one: it takes their model or their answers."""
        settings = self.runs[run]
        named = [getattr(getattr(settings, section), key) for section, key in SOURCES]
        return sorted({source for source in named if source is not None})


def load_study(name: str, config: Path = Path("config")) -> Study:
    """Load `config/studies/<name>.yaml` and resolve every arm and seed in it.

    Where the settings of a run name another arm (`SOURCES`), its run of the same seed takes the
    arm's place. Raises UserError on a missing file, an unknown key or arm, or a wrong type.
    """
    files = _with_extended(StudyFile, name, config)
    path, study = files[-1]
    names = study.arms or files[0][1].arms or []
    seeds = study.seeds or files[0][1].seeds or []
    if len(set(names)) < len(names) or len(set(seeds)) < len(seeds):
        raise UserError(
            f"{path}: an arm or a seed is listed twice: arms {names}, seeds {seeds}. "
            f"List each once."
        )
    arms: dict[str, ArmFile] = {}
    layers: dict[str, list[Layer]] = {}
    for arm in names:
        arm_files = _with_extended(ArmFile, arm, config, named_in=path)
        arms[arm] = arm_files[-1][1]
        layers[arm] = [(file, written.settings) for file, written in (*files, *arm_files)]
    drafts = {
        (arm, seed): _resolve(name, arm, seed, layers[arm]) for arm in names for seed in seeds
    }
    _check_shared(drafts.values(), config)
    descriptions(next(iter(drafts.values())).questions, config, named_in=path)
    linked = [_linked(arm, seed, drafts, layers) for arm, seed in drafts]
    runs = {run.run: run for run in linked}
    base_run = base_run_of(linked[0])
    return Study(name=name, title=study.title, arms=arms, seeds=seeds, runs=runs, base_run=base_run)


def base_run_of(run: RunSettings) -> str:
    """The run id of the base model of a study, from any of its runs."""
    shared = [getattr(run, section).model_dump() for section in SHARED_SECTIONS]
    return "base-" + content_hash([run.study, *shared])


def load_with_companions(name: str, config: Path = Path("config")) -> list[Study]:
    """A study and, in their order, its companions. Raises UserError like `load_study`."""
    path, study = _with_extended(StudyFile, name, config)[-1]
    for companion in study.companions:
        own = _with_extended(StudyFile, companion, config, named_in=path)[-1][1]
        if companion == name or study.companions.count(companion) > 1 or own.companions:
            raise UserError(
                f"{path}: key `companions`: {companion!r} is this study, or named twice, or has "
                f"companions of its own. Name each other study once, and all of them here."
            )
    return [load_study(each, config) for each in (name, *study.companions)]


def _check_shared(runs: Iterable[RunSettings], config: Path) -> None:
    """All runs of a study share questions, base model and evaluation, else none can be compared."""
    first, *others = runs
    for run in others:
        for section in SHARED_SECTIONS:
            if getattr(run, section) != getattr(first, section):
                raise UserError(
                    f"{config / 'arms' / run.arm}.yaml: key `settings.{section}`: differs from arm "
                    f"{first.arm!r}. All arms of a study share {', '.join(SHARED_SECTIONS)}: set "
                    f"them in the study, and make a second study for another base or task."
                )


def _linked(
    arm: str,
    seed: int,
    drafts: dict[tuple[str, int], RunSettings],
    layers: dict[str, list[Layer]],
    trail: tuple[str, ...] = (),
) -> RunSettings:
    """The draft with the run of the same seed in place of every arm that its settings name.

    So its hash changes with what it takes from. `trail`: the arms that led here.
    """
    run = drafts[arm, seed]
    for section, key in SOURCES:
        source = getattr(getattr(run, section), key)
        if source is None:
            continue
        file = next(path for path, layer in reversed(layers[arm]) if key in layer.get(section, {}))
        where = f"{file}: key `settings.{section}.{key}`"
        if source not in layers:
            raise UserError(
                f"{where}: the study has no arm {source!r}. {suggest(source, layers)}"
                f"Its arms: {', '.join(layers)}."
            )
        if source in (*trail, arm):
            way = " needs ".join((*trail, arm, source))
            raise UserError(f"{where}: a run cannot wait for itself: {way}. Name another arm.")
        if key == "start_from" and not drafts[source, seed].training.keep_best:
            raise UserError(
                f"{where}: arm {source!r} keeps no best model to start from. Set "
                f"`training: {{keep_best: true}}` in the settings of the study or of that arm."
            )
        needed = _linked(source, seed, drafts, layers, (*trail, arm)).run
        part = getattr(run, section).model_copy(update={key: needed})
        run = run.model_copy(update={section: part})
    return run


def _resolve(study: str, arm: str, seed: int, layers: list[Layer]) -> RunSettings:
    merged: dict[str, Any] = {}
    run = None
    for path, layer in layers:  # validated layer by layer, so that an error names its own file
        if named := layer.keys() & {"study", "arm", "seed"}:
            raise UserError(
                f"{path}: unknown key `settings.{min(named)}` (value {layer[min(named)]!r}). A run "
                f"gets its study, arm and seed from `arms` and `seeds` of the study. Remove it."
            )
        merged = _merge(merged, layer)
        run = parse(
            RunSettings,
            {**merged, "study": study, "arm": arm, "seed": seed},
            path,
            prefix="settings.",
        )
    assert run is not None
    return run


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = _merge(merged[key], value)
        merged[key] = value
    return merged


def _with_extended(
    kind: type[F], name: str, config: Path, named_in: Path | None = None
) -> list[tuple[Path, F]]:
    """The file of an arm or a study, after the one that it extends."""
    path = existing(kind, name, config, named_in)
    file = parse(kind, read_yaml(path), path)
    if file.extends is None:
        return [(path, file)]
    below = existing(kind, file.extends, config, named_in=path)
    extended = parse(kind, read_yaml(below), below)
    if extended.extends is not None:
        raise UserError(
            f"{path}: key `extends`: {file.extends!r} itself extends {extended.extends!r}. A file "
            f"extends at most one that extends none: write the settings out."
        )
    return [(below, extended), (path, file)]
