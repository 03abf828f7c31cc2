"""The grader against junk: no crash, no hang, no verdict without a reason, no growing memory.

`make fuzz` throws a hundred thousand strings at it, `make test` some of them.
"""

import json
import random
from collections import Counter
from itertools import islice
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junk import GOLDS, LETTERS, junk

from exgrpo.grading import KINDS, Answer, Grader, grade, rules_of

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "grading.jsonl").read_text().splitlines()
]
# Towers of powers are tested elsewhere, and cost their time limit each.
SEEN = [case["response"] for case in CASES if case["kind"] != "hang"]
RULES = [rules_of(kind) for kind in ("boxed", "boxed", "prose", "think+prose")]
CHOICES = [rules_of(kind) for kind in ("mcq", "mcq+prose", "think+mcq")]
BATCH = 1000
GROWTH = 16 << 20  # bytes, of the grader's process from its first batch to its last
WORKER = 500 << 20  # bytes; sympy alone takes some 60 MiB


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--answers"))


@pytest.mark.timeout(3600)  # `make fuzz` takes some five minutes on two cores
def test_junk_is_graded_without_crash_hang_or_growing_memory(count: int) -> None:
    rng = random.Random(0)
    strings = junk(rng, SEEN)
    reasons: Counter[str] = Counter()
    grown: list[int] = []  # resident bytes of this process after each batch
    most = 0
    with Grader(workers=2, time_limit=0.5) as grader:
        for _ in range(count // BATCH):
            answers = [
                Answer(gold, text, rng.choice(CHOICES if gold in LETTERS else RULES))
                for gold, text in islice(strings, BATCH)
            ]
            verdicts = grader.grade_all(answers)
            assert {verdict.correct for verdict in verdicts} <= {True, False}
            reasons.update(verdict.reason for verdict in verdicts)
            grown.append(psutil.Process().memory_info().rss)
            most = max(most, *(_resident(worker.process.pid) for worker in grader._workers))
    assert all(reasons)
    assert reasons["algebra"] > 0.002 * count  # formulas are among them
    assert reasons["cannot be read"] > 0.01 * count
    assert reasons["choice"]
    assert most < WORKER
    assert grown[-1] - grown[0] < GROWTH, (grown, reasons)


def _resident(process: int) -> int:
    """Bytes of a worker; 0 where it has just ended."""
    try:
        return int(psutil.Process(process).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


@settings(max_examples=300, deadline=None)
@given(
    gold=st.sampled_from(GOLDS),
    text=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")),
    kind=st.sampled_from(sorted(KINDS)),
    boxed=st.booleans(),
)
def test_any_text_has_a_verdict(
    grader: Grader, gold: str, text: str, kind: str, boxed: bool
) -> None:
    response = rf"</think> \boxed{{{text}}}" if boxed else text
    verdict = grader.grade_all([Answer(gold, response, KINDS[kind])])[0]
    assert verdict.reason
    assert (verdict.correct is None) == (kind == "mcq" and gold not in LETTERS)
    assert verdict.extracted is not None or not verdict.correct


@pytest.mark.parametrize("gold", GOLDS)
def test_a_gold_equals_itself_in_a_box(gold: str) -> None:
    assert grade(gold, rf"\boxed{{{gold}}}").correct is True
