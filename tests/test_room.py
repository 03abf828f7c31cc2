"""Prompt and response against the positions that a model was made for, at every stage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dying import small_study
from transformers import GPT2Config, LlamaConfig

from exgrpo.errors import UserError
from exgrpo.policy import load_positions
from exgrpo.pretraining import POSITIONS
from exgrpo.questions import Question
from exgrpo.room import longest_prompts, positions_of, require_room
from exgrpo.settings import RunSettings
from exgrpo.studies import Study, load_study
from pipeline.evaluate import evaluate_run
from pipeline.plan import Options, show_plan
from pipeline.questions import make_questions
from pipeline.train import train_run

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 100}


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        ({"max_position_embeddings": 100}, 100),
        ({"max_position_embeddings": 100, "rope_scaling": None}, 100),
        ({"max_position_embeddings": 100, "rope_scaling": {"type": "linear", "factor": 2}}, 200),
        ({"max_position_embeddings": 100, "rope_parameters": YARN}, 400),
        ({"max_position_embeddings": 400, "rope_parameters": YARN}, 400),
        ({"max_position_embeddings": 800, "rope_scaling": {**YARN, "rope_type": "llama3"}}, 800),
        (GPT2Config(n_positions=77).to_dict(), 77),
        (LlamaConfig(max_position_embeddings=99).to_dict(), 99),
        ({"text_config": {"max_position_embeddings": 55}, "vision_config": {}}, 55),
        ({"model_type": "mamba"}, None),
    ],
)
def test_positions_are_read_from_a_config(config: dict[str, Any], positions: int | None) -> None:
    assert positions_of(config) == positions


def test_the_longest_prompt_and_response_must_fit(base_folder: str) -> None:
    assert load_positions(base_folder) == POSITIONS
    asked = [Question("1+1=", "2", 1, "mine", prompt_ids=(1,) * count) for count in (10, 90)]
    assert longest_prompts({"train": asked, "test": []}) == {"train": 90, "test": 0}
    settings = RunSettings.model_validate(
        {
            "study": "s",
            "arm": "a",
            "seed": 0,
            "rollout": {"max_new_tokens": 60},
            "evaluation": {"max_new_tokens": 50},
        }
    )
    require_room({"train": 90}, settings, 150)
    require_room({"train": 90, "test": 90}, settings, None)
    require_room({"test": 90}, settings, 140)
    for split, key, most in (("train", "rollout", 140), ("test", "evaluation", 139)):
        with pytest.raises(UserError) as error:
            require_room({split: 90}, settings, most)
        for told in (
            f"{settings.run}, {split}: ",
            "90 tokens",
            f"settings.{key}.max_new_tokens",
            f"takes {most}",
        ):
            assert told in str(error.value)
        assert f"to {most - 90} or less" in str(error.value)
    with pytest.raises(UserError, match=r"config\.json\. Lower settings\.questions\.max"):
        require_room({"train": 90}, settings, 90)


@pytest.fixture
def lengthened(tmp_path: Path, base_folder: str) -> Callable[[str], Study]:
    """A small study whose questions are made, and then a response is as long as the model takes."""
    small_study(tmp_path, base_folder, questions={"train": 4, "validation": 2, "test_id": 2})

    def longer(section: str) -> Study:
        path = tmp_path / "config/studies/small.yaml"
        written = yaml.safe_load(path.read_text())
        written["settings"].setdefault(section, {})["max_new_tokens"] = POSITIONS
        path.write_text(yaml.safe_dump(written))
        return load_study("small", tmp_path / "config")

    return longer


@pytest.mark.parametrize(
    ("stage", "section", "split"),
    [
        ("questions", "rollout", "train"),
        ("questions", "evaluation", "validation"),
        ("train", "rollout", "train"),
        ("train", "evaluation", "validation"),
        ("evaluate", "evaluation", "test_id"),
        ("plan", "rollout", "train"),
        ("plan", "evaluation", "validation"),
    ],
)
def test_every_stage_says_so_first(
    lengthened: Callable[[str], Study], tmp_path: Path, stage: str, section: str, split: str
) -> None:
    study, results, config = lengthened(section), tmp_path / "results", tmp_path / "config"
    stages: dict[str, Callable[[], None]] = {
        "questions": lambda: make_questions(study, results, config),
        "train": lambda: train_run(study, next(iter(study.runs)), results, 1),
        "evaluate": lambda: evaluate_run(study, study.base_run, results, 1),
        "plan": lambda: show_plan(study, config, results, Options()),
    }
    with pytest.raises(UserError, match=f", {split}: the longest prompt has .*settings.{section}"):
        stages[stage]()


def test_a_plan_before_the_questions_counts_the_response_alone(
    lengthened: Callable[[str], Study], tmp_path: Path
) -> None:
    study, config = lengthened("rollout"), tmp_path / "config"
    show_plan(study, config, tmp_path / "elsewhere", Options())  # just as long as the model takes
