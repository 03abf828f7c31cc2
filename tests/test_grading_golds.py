"""Golds of real question sets: right in other clothes, wrong once a digit, letter or sign is."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from exgrpo.grading import Answer, Grader, check_gold

_LETTER = re.compile(r"(?<![a-zA-Z\\{])[a-hj-zA-HJ-Z](?![a-zA-Z])")  # 2I is read as 2i
_NAMES = re.compile(r"([a-z][(a-z)]*)=([^,=]+), *([a-z][(a-z)]*)=([^,=]+)")


@pytest.fixture(scope="module")
def golds() -> list[str]:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the folder ../shared with real data, which is not part of the repo")
    found = [
        json.loads(line)["answer"] for line in (folder / "math500/test.jsonl").open(encoding="utf8")
    ]
    for line in (folder / "olympiadbench/test.jsonl").open(encoding="utf8"):
        found += json.loads(line)["final_answer"]
    rows = json.loads((folder / "math-train/math-first1000.json").read_text(encoding="utf8"))
    found += [row["answer"] for row in rows if row["answer"] is not None]
    return [check_gold(gold, "a real gold") for gold in dict.fromkeys(found)]


CLOTHES: dict[str, Callable[[str], str]] = {
    "as it is": lambda gold: gold,
    "dollars": lambda gold: f"${gold.strip('$')}$",
    "style": lambda gold: rf"\displaystyle {gold.strip('$')}",
    "blanks": lambda gold: re.sub(r"([=+(])", r"\1\\, ", gold.strip("$")),
    "fractions": lambda gold: gold.replace(r"\frac", r"\dfrac"),
    "full stop": lambda gold: f"{gold.strip('$')}.",
}


@pytest.mark.parametrize("clothes", CLOTHES)
def test_a_gold_is_right_in_other_clothes(clothes: str, golds: list[str], grader: Grader) -> None:
    answers = [Answer(gold, rf"\boxed{{{CLOTHES[clothes](gold)}}}") for gold in golds]
    found = grader.grade_all(answers)
    wrong = [a for a, each in zip(answers, found, strict=True) if each.correct is not True]
    assert not wrong


def _digit(gold: str, rng: random.Random) -> str | None:
    """One digit is another; not the power of a unit."""
    places = [found.start() for found in re.finditer(r"(?<!\}\^)\d", gold)]
    if not places:
        return None
    place = rng.choice(places)
    return f"{gold[:place]}{(int(gold[place]) + 1) % 10}{gold[place + 1 :]}"


def _capital(gold: str, rng: random.Random) -> str | None:
    """One letter of a formula is a capital, or no longer one; names of unknowns do not matter."""
    places = [found.start() for found in _LETTER.finditer(gold, gold.rfind("=") + 1)]
    if r"\text" in gold or not places:
        return None
    place = rng.choice(places)
    return gold[:place] + gold[place].swapcase() + gold[place + 1 :]


def _sign(gold: str, rng: random.Random) -> str | None:
    """A number has the other sign."""
    if not re.fullmatch(r"\$?-?(?:[\d.,]*[1-9][\d.,]*|\\frac\{\d+\}\{\d+\})\$?", gold):
        return None
    plain = gold.strip("$")
    return plain[1:] if plain.startswith("-") else f"-{plain}"


def _names(gold: str, rng: random.Random) -> str | None:
    """Two unknowns have each other's values."""
    found = _NAMES.fullmatch(gold.replace("$", ""))
    if not found or found[1] == found[3]:
        return None
    return f"{found[1]}={found[4]}, {found[3]}={found[2]}"


@pytest.mark.parametrize("change", [_digit, _capital, _sign, _names])
def test_a_changed_gold_is_wrong(
    change: Callable[[str, random.Random], str | None], golds: list[str], grader: Grader
) -> None:
    rng = random.Random(0)
    changed = [(gold, other) for gold in golds if (other := change(gold, rng))]
    assert changed
    answers = [Answer(gold, rf"\boxed{{{other}}}") for gold, other in changed]
    found = grader.grade_all(answers)
    assert not [a for a, each in zip(answers, found, strict=True) if each.correct is not False]
