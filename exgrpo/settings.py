"""Typed settings: a study, its arms, and the resolved settings of one run.

A study file (`config/studies/*.yaml`) names arms and seeds and changes defaults; an arm file
(`config/arms/*.yaml`) changes settings on top, after the one other arm that it `extends`. Every
default names its source: [paper] arXiv 2510.02245, [code] the released code, [ours]. Unknown
keys and wrong types are errors that name file, key, value and remedy.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exgrpo.errors import UserError

T = TypeVar("T", bound=BaseModel)


class Section(BaseModel):
    """A group of settings. Unknown keys are errors; values are not changed after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Questions(Section):
    """Which questions to make or load. All splits are disjoint by content hash."""

    task: Literal["chain"] = "chain"  # [ours] single-digit arithmetic chains, see exgrpo/chain.py
    seed: int = 0
    train: int = Field(600, ge=1)  # [ours] measured in the feasibility probe
    validation: int = Field(160, ge=1)  # [ours] held-out questions for the learning curves
    test_id: int = Field(400, ge=1)  # [ours]
    test_ood: int = Field(400, ge=1)  # [ours]
    min_level: int = Field(1, ge=1)  # [ours] steps of the shortest chain
    max_level: int = Field(8, ge=1)  # [ours] steps of the longest chain in distribution
    max_ood_level: int = Field(12, ge=2)  # [ours] out of distribution: max_level + 1 .. this

    @model_validator(mode="after")
    def _ordered(self) -> "Questions":
        if not self.min_level <= self.max_level < self.max_ood_level:
            raise ValueError("need min_level <= max_level < max_ood_level")
        return self


class Pretraining(Section):
    """How the workflow makes the base model from flawed demonstrations. All [ours]."""

    seed: int = 0
    max_level: int = Field(5, ge=1)  # longest demonstration: 5 is the hard world, 8 the easy one
    steps: int = Field(600, ge=1)  # enough that every single step is known; 500 was not
    batch: int = Field(64, ge=1)
    learning_rate: float = Field(3e-3, gt=0)
    wrong_step_rate: float = Field(0.12, ge=0, le=1)  # a written step is wrong this often
    shortcut_rate: float = Field(0.20, ge=0, le=1)  # answers without steps
    shortcut_knowledge: float = Field(0.25, ge=0, le=1)  # of those, right by knowledge; else luck
    width: int = Field(96, ge=8)
    layers: int = Field(3, ge=1)
    heads: int = Field(4, ge=1)


class BaseModelSource(Section):
    """Where training starts: a model folder or hub name, or one that the workflow pretrains."""

    path: str | None = None  # None: pretrain one
    pretraining: Pretraining = Pretraining()


class Rollout(Section):
    group_size: int = Field(8, ge=2)  # [paper] K
    temperature: float = Field(1.0, gt=0)  # [paper] top-p 1, no top-k: never truncated in training
    max_new_tokens: int = Field(64, ge=1)  # [paper] 8192; also the loss's constant normaliser


class Batch(Section):
    questions: int = Field(32, ge=1)  # [paper] B = 128; [ours] 32 for the built-in task
    updates: int = Field(2, ge=1)  # [paper] optimiser updates a step: 64 of 128 questions each
    micro_batch_tokens: int = Field(
        16384, ge=1
    )  # [ours] padded tokens a forward; changes no result


class Experience(Section):
    """The replay buffer: which question, which trajectory, from when on."""

    replay: Literal["none", "trajectory", "question"] = "none"  # question: K fresh, none replayed
    share: float = Field(0.5, ge=0, le=1)  # [paper] rho: share of the batch drawn from the buffer
    mu: float = Field(0.5, ge=0, le=1)  # [paper] centre of the Gaussian, as a share of K
    sigma: float = Field(1.0, gt=0)  # [code] in success counts (paper's text: accuracy; facts 1.5)
    choice: Literal["lowest_entropy", "highest_entropy", "random"] = "lowest_entropy"  # [paper]
    # [paper] delayed start: replay is on after the first batch with pass@1 above this; None: from
    # the first step, as the paper does for Llama
    start: float | None = Field(0.35, ge=0, le=1)


class Objective(Section):
    clip: float = Field(0.2, gt=0)  # [code] symmetric PPO clip of the on-policy ratio
    clip_after_start: bool = True  # [code] False in ExGRPO: no clip on any token once replay is on
    shaping: float = Field(0.1, gt=0)  # [paper] beta in f(w) = w / (w + beta) on replayed tokens
    entropy_bonus: float = Field(0.001, ge=0)  # [paper]


class Optimiser(Section):
    learning_rate: float = Field(1e-6, gt=0)  # [paper]
    weight_decay: float = Field(0.01, ge=0)  # [code]
    grad_clip: float = Field(1.0, gt=0)  # [code]
    grad_skip: float = Field(500.0, gt=0)  # [code] leave out an update above this norm


class Training(Section):
    steps: int = Field(150, ge=1)  # [ours] at step 60 of the probe no arm could be told apart
    checkpoint_every: int = Field(10, ge=1)  # [ours] also when the log is flushed


class Evaluation(Section):
    every: int = Field(25, ge=1)  # [ours] validation every so many steps
    validation_samples: int = Field(2, ge=1)  # [ours] samples a question on the curves
    test_samples: int = Field(4, ge=1)  # [ours] samples a question, base and final checkpoint
    temperature: float = Field(1.0, gt=0)  # [ours] the paper tests at 0.6
    max_new_tokens: int = Field(96, ge=1)  # [ours] the longest chain out of distribution needs 76


class Log(Section):
    token_floats_share: float = Field(1.0, ge=0, le=1)  # [ours] trajectories with float columns


SHARED_SECTIONS = ("questions", "base", "evaluation")


class RunSettings(Section):
    """All that decides one run. Its hash names the run's folder, so no run resumes another's."""

    study: str
    arm: str
    seed: int
    questions: Questions = Questions()
    base: BaseModelSource = BaseModelSource()
    rollout: Rollout = Rollout()
    batch: Batch = Batch()
    experience: Experience = Experience()
    objective: Objective = Objective()
    optimiser: Optimiser = Optimiser()
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    log: Log = Log()

    @property
    def world(self) -> str | None:
        """`hard` when the base model has seen shorter chains only; None when it is not ours."""
        if self.base.path is not None:
            return None
        return "hard" if self.base.pretraining.max_level < self.questions.max_level else "easy"

    @property
    def hash(self) -> str:
        return content_hash(self.model_dump(mode="json"))

    @property
    def run(self) -> str:
        """The run id, for example `exgrpo-s0-1a2b3c4d`."""
        return f"{self.arm}-s{self.seed}-{self.hash}"


class ArmFile(Section):
    """An arm as written: what it is, which claim it serves, what it changes."""

    title: str
    claim: str = ""
    paper: str = ""
    extends: str | None = None
    settings: dict[str, Any] = {}


class StudyFile(Section):
    """A study as written: arms, seeds, and the settings they share."""

    title: str
    arms: list[str] = Field(min_length=1)
    seeds: list[int] = Field(min_length=1)
    settings: dict[str, Any] = {}


class Study(BaseModel):
    """A study with every run resolved."""

    model_config = ConfigDict(frozen=True)
    name: str
    title: str
    arms: dict[str, ArmFile]
    seeds: list[int]
    runs: dict[str, RunSettings]

    @property
    def any_run(self) -> RunSettings:
        """Settings shared by all runs (questions, base, evaluation) can be read from any."""
        return next(iter(self.runs.values()))

    @property
    def base_run(self) -> str:
        """The run id under which the untrained base model is evaluated."""
        shared = self.any_run
        return "base-" + content_hash(
            [
                self.name,
                shared.questions.model_dump(),
                shared.base.model_dump(),
                shared.evaluation.model_dump(),
            ]
        )


def content_hash(value: Any) -> str:
    """Eight hex digits of the SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def load_study(name: str, config: Path = Path("config")) -> Study:
    """Load `config/studies/<name>.yaml` and resolve every arm and seed in it.

    Raises UserError on a missing file, an unknown key or arm, or a wrong type.
    """
    path = _existing(config / "studies", name, "study")
    study = _parse(StudyFile, _read_yaml(path), path)
    arms = {arm: _load_arm(arm, config, named_in=path) for arm in study.arms}
    runs = {}
    for arm in study.arms:
        layers = [(path, study.settings), *_arm_layers(arm, config, path)]
        for seed in study.seeds:
            run = _resolve(name, arm, seed, layers)
            runs[run.run] = run
    _check_shared(runs.values(), config)
    if len(runs) < len(study.arms) * len(study.seeds):
        raise UserError(
            f"{path}: an arm or a seed is listed twice: arms {study.arms}, "
            f"seeds {study.seeds}. List each once."
        )
    return Study(name=name, title=study.title, arms=arms, seeds=study.seeds, runs=runs)


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


def _arm_layers(arm: str, config: Path, named_in: Path) -> list[tuple[Path, dict[str, Any]]]:
    file = _load_arm(arm, config, named_in)
    path = config / "arms" / f"{arm}.yaml"
    if file.extends is None:
        return [(path, file.settings)]
    parent = _load_arm(file.extends, config, named_in=path)
    if parent.extends is not None:
        raise UserError(
            f"{path}: key `extends`: {file.extends!r} itself extends "
            f"{parent.extends!r}. An arm extends at most one arm that extends none: "
            f"write the settings out."
        )
    return [(config / "arms" / f"{file.extends}.yaml", parent.settings), (path, file.settings)]


def _resolve(
    study: str, arm: str, seed: int, layers: list[tuple[Path, dict[str, Any]]]
) -> RunSettings:
    merged: dict[str, Any] = {}
    run = None
    for path, layer in layers:  # validated layer by layer, so that an error names its own file
        if named := layer.keys() & {"study", "arm", "seed"}:
            raise UserError(
                f"{path}: unknown key `settings.{min(named)}` (value {layer[min(named)]!r}). A run "
                f"gets its study, arm and seed from `arms` and `seeds` of the study. Remove it."
            )
        merged = _merge(merged, layer)
        run = _parse(
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


def _load_arm(arm: str, config: Path, named_in: Path) -> ArmFile:
    path = _existing(config / "arms", arm, "arm", named_in)
    return _parse(ArmFile, _read_yaml(path), path)


def _existing(folder: Path, name: str, kind: str, named_in: Path | None = None) -> Path:
    path = folder / f"{name}.yaml"
    if path.is_file():
        return path
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    where = f"{named_in}: " if named_in else ""
    raise UserError(
        f"{where}unknown {kind} {name!r}. {hint}Known: {', '.join(known) or 'none'} (in {folder})."
    )


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no valid YAML: {error}. Mend the line named.") from error


def _parse(model: type[T], value: Any, path: Path, prefix: str = "") -> T:
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected keys and values, found {value!r}. Write `key: value`.")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise UserError(
            "\n".join(_explain(model, item, path, prefix) for item in error.errors())
        ) from error


def _explain(model: type[BaseModel], item: Any, path: Path, prefix: str) -> str:
    key = prefix + ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = _known_keys(model, item["loc"][:-1])
        close = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        return (
            f"{path}: unknown key `{key}` (value {item['input']!r}). {hint}"
            f"Known here: {', '.join(known)}."
        )
    return f"{path}: key `{key}`: {item['msg']}; found {item['input']!r}. Change the value."


def _known_keys(model: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    for part in location:
        inner = model.model_fields[part].annotation
        assert isinstance(inner, type) and issubclass(inner, BaseModel)
        model = inner
    return sorted(model.model_fields)
