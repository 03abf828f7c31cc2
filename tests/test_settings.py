"""Settings: every mistake is named with file, key, value and remedy; a run's hash means its run."""

from pathlib import Path

import pytest
import yaml

from exgrpo.errors import UserError
from exgrpo.settings import RunSettings, Study, load_study

SHIPPED = Path(__file__).resolve().parents[1] / "config"


def write(folder: Path, study: dict, **arms: dict) -> Path:
    for name, content in {"studies/s": study, **{f"arms/{a}": c for a, c in arms.items()}}.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(content))
    return folder


STUDY = {"title": "t", "arms": ["a"], "seeds": [0]}
ARM = {"title": "a"}


@pytest.mark.parametrize(
    ("study", "arm", "parts"),
    [
        ({"settings": {"batch": {"questoins": 3}}}, {},
         ["studies/s.yaml", "settings.batch.questoins", "value 3", "Did you mean 'questions'?"]),
        ({"settings": {"batch": {"questions": "many"}}}, {},
         ["studies/s.yaml", "settings.batch.questions", "valid integer", "'many'"]),
        ({"settings": {"batch": {"questions": 0}}}, {},
         ["settings.batch.questions", "greater than or equal to 1", "found 0"]),
        ({}, {"settings": {"experience": {"choice": "lowest"}}},
         ["arms/a.yaml", "settings.experience.choice", "'lowest_entropy'", "'lowest'"]),
        ({"arms": ["b"]}, {}, ["studies/s.yaml", "unknown arm 'b'", "Known: a"]),
        ({"arms": ["a", "a"]}, {}, ["studies/s.yaml", "listed twice"]),
        ({"seeds": []}, {}, ["studies/s.yaml", "`seeds`", "at least 1"]),
        ({"titel": "x"}, {}, ["studies/s.yaml", "unknown key `titel`", "Did you mean 'title'?"]),
        ({}, {"extends": "aa"}, ["arms/a.yaml", "unknown arm 'aa'", "Did you mean 'a'?"]),
        ({"settings": {"questions": {"max_level": 9, "max_ood_level": 8}}}, {},
         ["settings.questions", "min_level <= max_level < max_ood_level"]),
        ({"settings": {"seed": 5}}, {}, ["studies/s.yaml", "unknown key `settings.seed`", "5"]),
    ],
)  # fmt: skip
def test_a_mistake_is_explained(tmp_path: Path, study: dict, arm: dict, parts: list[str]) -> None:
    config = write(tmp_path, STUDY | study, a=ARM | arm)
    with pytest.raises(UserError) as error:
        load_study("s", config)
    for part in parts:
        assert part in str(error.value)


def test_unknown_study_and_broken_yaml(tmp_path: Path) -> None:
    config = write(tmp_path, STUDY, a=ARM)
    with pytest.raises(UserError, match=r"unknown study 'ss'\. Did you mean 's'"):
        load_study("ss", config)
    (config / "studies" / "s.yaml").write_text("title: [")
    with pytest.raises(UserError, match="no valid YAML"):
        load_study("s", config)
    (config / "studies" / "s.yaml").write_text("just words")
    with pytest.raises(UserError, match="expected keys and values"):
        load_study("s", config)


def test_an_arm_overrides_the_arm_it_extends_and_that_the_study(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        STUDY | {"settings": {"experience": {"share": 0.1, "sigma": 2.0, "mu": 0.25}}},
        a={"title": "a", "extends": "b", "settings": {"experience": {"mu": 0.75}}},
        b={"title": "b", "settings": {"experience": {"sigma": 3.0, "mu": 0.3}}},
    )
    experience = next(iter(load_study("s", config).runs.values())).experience
    assert (experience.share, experience.sigma, experience.mu) == (0.1, 3.0, 0.75)


def test_an_arm_extends_one_level_only(tmp_path: Path) -> None:
    arms = {"a": ARM | {"extends": "b"}, "b": ARM | {"extends": "c"}, "c": ARM}
    with pytest.raises(UserError, match="extends at most one arm that extends none"):
        load_study("s", write(tmp_path, STUDY, **arms))


def test_arms_that_differ_in_base_or_questions_cannot_share_a_study(tmp_path: Path) -> None:
    easy = {"title": "b", "settings": {"base": {"pretraining": {"max_level": 8}}}}
    config = write(tmp_path, STUDY | {"arms": ["a", "b"]}, a=ARM, b=easy)
    with pytest.raises(
        UserError, match=r"arms/b\.yaml: key `settings\.base`: differs from arm 'a'"
    ):
        load_study("s", config)


def test_the_world_follows_from_the_lengths() -> None:
    run = RunSettings(study="s", arm="a", seed=0)
    assert run.world == "hard"
    seen_all = {"pretraining": {"max_level": 8}}
    assert RunSettings.model_validate({**run.model_dump(), "base": seen_all}).world == "easy"
    assert RunSettings.model_validate({**run.model_dump(), "base": {"path": "x/y"}}).world is None


def test_a_run_is_named_by_all_its_settings() -> None:
    one = RunSettings(study="s", arm="a", seed=0)
    assert one.run == RunSettings(study="s", arm="a", seed=0).run
    changed = one.model_copy(update={"seed": 1})
    assert one.hash != changed.hash


@pytest.mark.parametrize("path", sorted((SHIPPED / "studies").glob("*.yaml")))
def test_shipped_studies_load_and_survive_a_round_trip(path: Path) -> None:
    study = load_study(path.stem, SHIPPED)
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert len(study.runs) == len(study.arms) * len(study.seeds)


def test_the_default_study_is_what_the_issue_asks_for() -> None:
    study = load_study("tiny", SHIPPED)
    assert {"on_policy", "exgrpo", "exgrpo_highest_entropy", "question_replay"} <= set(study.arms)
    assert len(study.seeds) == 3
    run = study.any_run
    assert run.training.steps >= 150
    assert run.evaluation.every == 25
    assert run.world == "hard"
    by_arm = {run.arm: run for run in study.runs.values()}
    assert by_arm["on_policy"].objective.clip_after_start
    assert by_arm["exgrpo"].experience.choice == "lowest_entropy"
    assert by_arm["question_replay"].experience.replay == "question"


def test_every_shipped_arm_loads() -> None:
    for path in (SHIPPED / "arms").glob("*.yaml"):
        assert yaml.safe_load(path.read_text())["title"]
