"""The built-in task: its answers, its exact check, its flawed demonstrations, its splits."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exgrpo import chain, questions
from exgrpo.errors import UserError
from exgrpo.settings import Questions

levels = st.integers(1, 12)


def test_worked_example() -> None:
    assert chain.solve("7+5*3-2=") == "4"
    exact = chain.demonstrate("7+5*3-2=", random.Random(0))
    assert exact == r"7+5=2;2*3=6;6-2=4\boxed{4}"


@given(levels, st.integers())
def test_exact_demonstration_is_valid_and_agrees_with_a_direct_evaluation(
    level: int, seed: int
) -> None:
    rng = random.Random(seed)
    text = chain.draw(level, rng)
    value = int(text[0])
    for place in range(1, len(text) - 1, 2):
        value = eval(f"({value}{text[place]}{text[place + 1]}) % 10")
    assert chain.solve(text) == str(value)
    response = chain.demonstrate(text, rng)
    assert response.endswith(rf"\boxed{{{value}}}")
    assert chain.check(text, response) == chain.ChainCheck(True, 0, False)


@pytest.mark.parametrize(
    ("response", "valid", "errors", "shortcut"),
    [
        (r"\boxed{4}", False, 0, True),
        (r"7+5=2;2*3=6;6-2=4\boxed{4}", True, 0, False),
        (r"7+5=2;2*3=6;6-2=5\boxed{4}", False, 1, False),  # wrong result
        (r"7+5=3;3*3=9;9-2=7\boxed{7}", False, 1, False),  # wrong result carried on rightly
        (r"7+5=2;2*3=6\boxed{4}", False, 0, False),  # a step is missing
        (r"7+5=2;2*3=6;6-2=4;4+0=4\boxed{4}", False, 1, False),  # a step too many
        (r"7+5=2;3*3=9;9-2=7\boxed{4}", False, 1, False),  # does not go on from the result
        (r"7+5=2;;6-2=4\boxed{4}", False, 2, False),  # an empty step breaks two
        ("nonsense", False, 1, False),
    ],
)
def test_check(response: str, valid: bool, errors: int, shortcut: bool) -> None:
    assert chain.check("7+5*3-2=", response) == chain.ChainCheck(valid, errors, shortcut)


def test_flaws_come_at_the_stated_rates() -> None:
    rng = random.Random(1)
    steps = wrong = shortcuts = 0
    for _ in range(4000):
        text = chain.draw(4, rng)
        result = chain.check(text, chain.demonstrate(text, rng, 0.12, 0.20, 0.25))
        shortcuts += result.shortcut
        if not result.shortcut:
            steps += 4
            wrong += result.step_errors
    assert shortcuts / 4000 == pytest.approx(0.20, abs=0.02)
    assert wrong / steps == pytest.approx(0.12, abs=0.01)


def test_splits_are_disjoint_and_decided_by_the_seed() -> None:
    splits = questions.make_splits(Questions())
    ids = {split: {question.id for question in members} for split, members in splits.items()}
    assert [len(ids[split]) for split in questions.SPLITS] == [600, 160, 400, 400]
    assert len(set().union(*ids.values())) == 1560
    assert {q.level for q in splits["train"]} == set(range(1, 9))
    assert {q.level for q in splits["test_ood"]} == {9, 10, 11, 12}
    assert questions.make_splits(Questions()) == splits
    assert questions.make_splits(Questions(seed=1)) != splits


def test_too_many_short_questions_is_an_error() -> None:
    with pytest.raises(UserError, match="no new question of level 1 left: 300 exist"):
        questions.make_splits(Questions(max_level=1, max_ood_level=2))


def test_question_file_round_trip(tmp_path: Path) -> None:
    members = questions.make_splits(Questions(train=5))["train"]
    questions.save(members, tmp_path / "train.jsonl")
    assert questions.load(tmp_path / "train.jsonl") == members


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the question file is empty"),
        (
            '{"text": "1+1=", "gold": null, "level": 1, "source": "x"}\n',
            "line 1: key `gold`: the gold is None",
        ),
        ('{"text": "1+1=", "gold": "2"}\n', "line 1: needs the keys text, gold, level, source"),
        ("not json\n", "line 1: no valid JSON"),
    ],
)
def test_bad_question_files_name_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=message) as error:
        questions.load(path)
    assert str(path) in str(error.value)
