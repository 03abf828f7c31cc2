"""Settings: every mistake is named with file, key, value and remedy; a run's hash means its run."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from exgrpo.errors import UserError
from exgrpo.question_settings import Questions
from exgrpo.settings import RunSettings
from exgrpo.settings_files import parse
from exgrpo.studies import Study, load_study, load_with_companions

SHIPPED = Path(__file__).resolve().parents[1] / "config"


def write(folder: Path, study: dict, **arms: dict) -> Path:
    write_study(folder, "s", study)
    for arm, content in arms.items():
        path = folder / "arms" / f"{arm}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(content))
    return folder


def write_study(folder: Path, name: str, study: dict) -> None:
    path = folder / "studies" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(study))


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
        ({}, {"settings": {"experience": {"order": "lowest_entropy"}}},
         ["arms/a.yaml", "settings.experience.order", "'lowest'", "'lowest_entropy'"]),
        ({}, {"settings": {"experience": {"start": "later"}}},
         ["arms/a.yaml", "`settings.experience.start`", "'at_once'", "'later'"]),
        ({}, {"settings": {"join": {"source": "pool", "visit": "fresh"}}},
         ["arms/a.yaml: settings: join.source `pool` takes the answers of an arm"]),
        ({"arms": ["b"]}, {}, ["studies/s.yaml", "unknown arm 'b'", "Known: a"]),
        ({"arms": ["a", "a"]}, {}, ["studies/s.yaml", "listed twice"]),
        ({"seeds": []}, {}, ["studies/s.yaml", "`seeds`", "at least 1"]),
        ({"seeds": None}, {}, ["studies/s.yaml: a study that extends no other", "`seeds`"]),
        ({"extends": "t"}, {}, ["studies/s.yaml", "unknown study 't'"]),
        ({"extends": "s"}, {}, ["studies/s.yaml", "`extends`", "'s' itself extends 's'"]),
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
    with pytest.raises(UserError, match=r"arms/a\.yaml.*extends at most one that extends none"):
        load_study("s", write(tmp_path, STUDY, **arms))


def test_a_study_takes_over_what_it_does_not_change_of_the_one_it_extends(tmp_path: Path) -> None:
    training = {"training": {"steps": 7, "checkpoint_every": 3}}
    config = write(
        tmp_path, STUDY | {"seeds": [0, 1], "settings": training, "companions": ["t"]}, a=ARM, b=ARM
    )
    own = {"title": "u", "extends": "s", "settings": {"training": {"steps": 9}}}
    write_study(config, "t", own)
    study = load_study("t", config)
    assert (study.title, list(study.arms), study.seeds) == ("u", ["a"], [0, 1])
    assert (study.any_run.training.steps, study.any_run.training.checkpoint_every) == (9, 3)
    write_study(config, "t", own | {"arms": ["b"], "seeds": [5]})
    study = load_study("t", config)
    assert (list(study.arms), study.seeds) == (["b"], [5])
    write_study(config, "t", own | {"settings": {"training": {"step": 9}}})
    with pytest.raises(UserError, match=r"studies/t\.yaml: unknown key `settings\.training\.step`"):
        load_study("t", config)


def test_companions_follow_their_study(tmp_path: Path) -> None:
    config = write(tmp_path, STUDY | {"companions": ["u", "t"]}, a=ARM)
    for name in ("t", "u"):
        write_study(config, name, {"title": name, "extends": "s"})
    assert [study.name for study in load_with_companions("s", config)] == ["s", "u", "t"]
    assert [study.name for study in load_with_companions("t", config)] == ["t"]


@pytest.mark.parametrize(
    ("companions", "of_t", "message"),
    [
        (["x"], [], r"studies/s\.yaml: unknown study 'x'"),
        (["s"], [], "'s' is this study"),
        (["t", "t"], [], "'t' is this study, or named twice"),
        (["t"], ["s"], "'t' is this study, or named twice, or has companions of its own"),
    ],
)
def test_companions_are_other_studies_without_any(
    tmp_path: Path, companions: list[str], of_t: list[str], message: str
) -> None:
    config = write(tmp_path, STUDY | {"companions": companions}, a=ARM)
    write_study(config, "t", STUDY | {"companions": of_t})
    with pytest.raises(UserError, match=message):
        load_with_companions("s", config)


CONTINUED = {"title": "b", "settings": {"training": {"start_from": "a"}}}
POOLED = {
    "title": "c",
    "settings": {
        "experience": {"replay": "trajectory"},
        "join": {"source": "pool", "pool": "b", "visit": "fresh"},
    },
}
KEPT = {"settings": {"training": {"keep_best": True}}}


def test_a_run_is_linked_to_the_run_that_it_needs(tmp_path: Path) -> None:
    study = STUDY | KEPT | {"arms": ["c", "b", "a"], "seeds": [3, 4]}
    config = write(tmp_path, study, a=ARM, b=CONTINUED, c=POOLED)
    loaded = load_study("s", config)
    runs = {(run.arm, run.seed): run for run in loaded.runs.values()}
    for seed in (3, 4):
        a, b, c = (runs[arm, seed] for arm in "abc")
        assert (b.training.start_from, c.join.pool) == (a.run, b.run)
        assert [loaded.needs(run.run) for run in (a, b, c)] == [[], [a.run], [b.run]]
    assert Study.model_validate_json(loaded.model_dump_json()) == loaded
    # What a run takes from decides what it is: another learning rate there makes another run here.
    changed = ARM | {"settings": {"optimiser": {"learning_rate": 0.5}}}
    again = load_study("s", write(tmp_path, study, a=changed)).runs
    assert not again.keys() & loaded.runs.keys()


@pytest.mark.parametrize(
    ("study", "arms", "parts"),
    [
        ({"arms": ["b"]}, {},
         ["arms/b.yaml: key `settings.training.start_from`", "no arm 'a'", "Its arms: b"]),
        ({"arms": ["a", "b"], "settings": {}}, {},
         ["arms/b.yaml", "'a' keeps no best model", "keep_best: true"]),
        ({"arms": ["b"]}, {"b": {"settings": {"training": {"start_from": "b"}}}},
         ["arms/b.yaml", "a run cannot wait for itself: b needs b"]),
        ({"arms": ["c", "b"]}, {"b": {"settings": {"training": {"start_from": "c"}}}},
         ["`settings.training.start_from`", "cannot wait for itself: c needs b needs c"]),
        ({"arms": ["d"]}, {}, ["arms/c.yaml: key `settings.join.pool`", "no arm 'b'"]),
    ],
)  # fmt: skip
def test_a_run_that_cannot_have_what_it_needs_is_an_error(
    tmp_path: Path, study: dict, arms: dict, parts: list[str]
) -> None:
    files = {"a": ARM, "b": CONTINUED, "c": POOLED, "d": {"title": "d", "extends": "c"}}
    files |= {arm: files[arm] | content for arm, content in arms.items()}
    with pytest.raises(UserError) as error:
        load_study("s", write(tmp_path, STUDY | KEPT | study, **files))
    for part in parts:
        assert part in str(error.value)


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
    assert {"on_policy", "exgrpo", "highest_entropy", "question_replay"} <= set(study.arms)
    assert len(study.seeds) >= 3
    run = study.any_run
    assert run.training.steps >= 100  # at 60 no arm can be told apart
    assert run.evaluation.every == 25
    assert run.world == "hard"
    by_arm = {run.arm: run for run in study.runs.values()}
    assert by_arm["on_policy"].objective.clip_after_start == "fresh"
    assert by_arm["exgrpo"].objective.clip_after_start == "none"
    experience = by_arm["exgrpo"].experience
    assert (experience.order, experience.metric) == ("lowest", "mean_entropy")
    assert by_arm["question_replay"].experience.replay == "question"


def test_every_shipped_arm_loads() -> None:
    for path in (SHIPPED / "arms").glob("*.yaml"):
        assert yaml.safe_load(path.read_text())["title"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"experience": {"start": 1.5}}, "less than or equal to 1"),
        ({"training": {"steps": 10, "reincarnate_at": 0.01}}, "is step 0"),
        ({"training": {"steps": 10, "reincarnate_at": 0.99}}, "is step 10"),
        ({"buffer": {"review_share": 0.1, "retire": False}}, "set retire to true"),
        ({"buffer": {"review_share": 0.1, "max_age": 5}}, "set one or the other"),
        ({"join": {"source": "pool", "visit": "fresh"}}, "name it in join.pool"),
        ({"join": {"pool": "on_policy"}}, "set join.source to 'pool' or remove it"),
        ({"join": {"expert": "file.jsonl"}}, "set join.source to 'expert' or remove it"),
        ({"join": {"source": "expert"}}, "set join.visit to `fresh`"),
        ({"join": {"count": 9}}, "more places than a group has"),
        ({"join": {"place": "beside"}}, "buffer.count_replayed to false"),
        ({"join": {"when": "all_failed", "visit": "fresh"}}, "buffer.count_replayed to false"),
        ({"experience": {"share": 1.0}, "join": {"count": 8}}, "nothing new is sampled"),
        ({"batch": {"learning_groups": 4}}, "set one or the other"),
        ({"experience": {"replay": "question"}, "join": {"source": "expert", "visit": "fresh"}},
         "nothing joins a group"),
    ],
)  # fmt: skip
def test_settings_that_contradict_each_other_are_refused(
    sections: dict[str, dict[str, object]], message: str
) -> None:
    """An option that would be ignored, or a run that could not go on, ends before it starts."""
    values: dict[str, object] = {"experience": {"replay": "trajectory"}}
    values |= {
        name: {**({"replay": "trajectory"} if name == "experience" else {}), **section}
        for name, section in sections.items()
    }
    with pytest.raises(ValidationError, match=message):
        RunSettings.model_validate({"study": "s", "arm": "a", "seed": 0, **values})


@pytest.mark.parametrize(
    "name",
    ["rejected", "validation", "test_id", "../../x", "a/b", "", "a\nb", "\x1b[31m", "é", ".x"],
)
def test_a_benchmark_has_the_name_of_a_file_of_its_own(name: str) -> None:
    with pytest.raises(ValueError, match="a benchmark cannot be called"):
        Questions.model_validate({"benchmarks": {name: {"dataset": "aime"}}})
    assert (
        "AIME-2024.v1"
        in Questions.model_validate({"benchmarks": {"AIME-2024.v1": {"dataset": "aime"}}}).tests
    )


def test_a_key_that_stands_twice_loses_no_value_in_silence(tmp_path: Path) -> None:
    write(tmp_path, STUDY, a=ARM)
    (tmp_path / "studies" / "s.yaml").write_text("title: t\narms: [a]\nseeds: [0]\nseeds: [1]\n")
    with pytest.raises(UserError, match=r"(?s)studies/s.yaml.*'seeds' stands twice.*line 3"):
        load_study("s", tmp_path)


def test_a_key_that_is_missing_is_to_be_added(tmp_path: Path) -> None:
    write(tmp_path, {"arms": ["a"], "seeds": [0]}, a=ARM)
    with pytest.raises(UserError, match=r"studies/s.yaml: key `title` is missing. Add it."):
        load_study("s", tmp_path)


def test_beside_loaded_training_questions_nothing_is_made_unasked() -> None:
    loaded = {"train": {"dataset": "d"}, "validation": {"dataset": "e"}}
    tests = {"benchmarks": {"b": {"dataset": "f"}}}
    assert set(Questions.model_validate({**loaded, **tests}).tests) == {"b"}
    assert Questions.model_validate({**loaded, "test_id": 5}).tests == {"test_id": 5}
    with pytest.raises(ValidationError, match="nothing to test with"):
        Questions.model_validate(loaded)


def test_a_value_where_a_section_belongs_is_told_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    with pytest.raises(UserError) as error:
        parse(Questions, {"train": "mine", "benchmarks": {"g": "gsm8k-test"}}, file)
    told = str(error.value).splitlines()
    assert told[0].startswith(f"{file}: key `train`: Input should be a valid integer, or a section")
    assert "with the keys dataset, limit; found 'mine'" in told[0]
    assert "key `benchmarks.g`: Input should be a section with the keys dataset, limit" in told[1]
    assert "DataSet" not in str(error.value) and "Benchmark" not in str(error.value)
