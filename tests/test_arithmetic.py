"""Arithmetic in words: every gold recomputed from the text alone, by words that this file lists."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exgrpo.arithmetic import draw

ADDS = "finds|gives (?:her|him)|wins|buys|earns|pays back|receives|mows|get on|bakes|brings"
TAKES = "gives|loses|leaves|spends|lends|pays|get off|sells|eats|take|buys"
TICKETS = re.compile(r"buys (\d+) tickets for (\d+) dollars each")
TIMES = {"doubles": 2, "triples": 3}


def recompute(text: str) -> tuple[int, int]:
    """(answer, number of operations), sentence by sentence."""
    first, *events, question = re.findall(r"[^.?]+[.?]", text)
    assert question.strip().startswith("How many")
    (value,) = map(int, re.findall(r"\d+", first))
    operations = 0
    for sentence in events:
        numbers = [int(each) for each in re.findall(r"\d+", sentence)]
        operations += max(len(numbers), 1)
        if factor := next((TIMES[word] for word in TIMES if word in sentence), None):
            assert numbers == []
            value *= factor
        elif "equal" in sentence:
            value, rest = divmod(value, numbers[0])
            assert rest == 0, text
        else:
            count = numbers[0] * numbers[1] if len(numbers) == 2 else numbers[0]
            adds = re.search(ADDS, sentence) and not TICKETS.search(sentence)
            assert adds or re.search(TAKES, sentence), sentence
            value += count if adds else -count
        assert value >= 0, text
    return value, operations


@given(level=st.integers(1, 12), seed=st.integers())
def test_the_text_says_the_gold_and_takes_as_many_operations_as_its_level(
    level: int, seed: int
) -> None:
    text, gold = draw(level, random.Random(seed))
    assert recompute(text) == (int(gold), level)
    assert gold == str(int(gold))


@given(level=st.integers(1, 8), seed=st.integers())
def test_a_question_reads_as_english(level: int, seed: int) -> None:
    text, _ = draw(level, random.Random(seed))
    assert "{" not in text
    sentences = re.findall(r"[^.?]+[.?]", text)
    assert "".join(sentences) == text
    assert all(sentence.strip()[0].isupper() for sentence in sentences)
    assert re.findall(r"\b[01]\b", text) == []  # no "1 marbles"


def test_the_seed_alone_decides() -> None:
    assert draw(3, random.Random(5)) == draw(3, random.Random(5))


@pytest.mark.parametrize("level", range(1, 6))
def test_thousands_of_questions_of_a_level_differ(level: int) -> None:
    rng = random.Random(level)
    assert len({draw(level, rng)[0] for _ in range(6000)}) > 4000


def test_levels_have_all_operations_and_many_answers() -> None:
    rng = random.Random(0)
    drawn = [draw(2, rng) for _ in range(2000)]
    told = " ".join(text for text, _ in drawn)
    for words in ("doubles", "triples", "equal", "in each", "to each of", "get off", "earns"):
        assert words in told
    answers = [int(gold) for _, gold in drawn]
    assert len(set(answers)) > 30
    assert max(answers.count(answer) for answer in set(answers)) < 0.15 * len(answers)
