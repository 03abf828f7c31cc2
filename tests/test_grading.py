"""Grading: 137 cases from public reports, our own choices, and workers that hang or die."""

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exgrpo import answers
from exgrpo.errors import UserError
from exgrpo.grading import KINDS, Grader, Verdict, check_gold, grade

# The contract behind `expected` is in section 1 of the cases' own README: last box only, equal
# as mathematics, units and style do not matter, undecided is wrong, never raise, run or hang.
CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "grading.jsonl").read_text().splitlines()
]
TOWER = r"\boxed{9^{9^{9^{9}}}}"


def kind_of(case: dict[str, str]) -> str:
    return case["kind"] if case["kind"] in KINDS else "boxed"


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(workers=2, time_limit=1) as grader:
        yield grader


def grade_cases(grader: Grader, cases: list[dict[str, str]]) -> dict[str, Verdict]:
    verdicts: dict[str, Verdict] = {}
    for kind in KINDS:
        of_kind = [case for case in cases if kind_of(case) == kind]
        items = [(case["gold"], case["response"]) for case in of_kind]
        found = grader.grade_all(items, kind)
        verdicts |= {case["id"]: verdict for case, verdict in zip(of_kind, found, strict=True)}
    return verdicts


@pytest.fixture(scope="module")
def verdicts(grader: Grader) -> dict[str, Verdict]:
    return grade_cases(grader, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_from_a_public_report(case: dict[str, str], verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[case["id"]]
    assert verdict.correct is case["expected"], f"{case['note']}: {verdict}"


def test_a_worker_thread_gives_the_same_verdicts(
    grader: Grader, verdicts: dict[str, Verdict]
) -> None:
    half = random.Random(0).sample(CASES, len(CASES) // 2)
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(grade_cases, grader, half).result()
    assert again == {case["id"]: verdicts[case["id"]] for case in half}


def test_one_hanging_answer_costs_nobody_else_a_verdict() -> None:
    # Time is processor time of the workers, so that a busy machine fails no test.
    limit = 4.0
    easy = [("x+1", rf"\boxed{{\frac{{2x}}{{2}}+{i}-{i - 1}}}") for i in range(20)]
    before = processor_seconds_of_children()
    with Grader(workers=2, time_limit=limit) as grader:
        found = grader.grade_all([("16", TOWER), *easy])
        assert [verdict.correct for verdict in found] == [False] + [True] * 20
        assert found[0].reason == "time limit"
        assert [worker.usable for worker in grader._workers] == [True, True]
    assert limit < processor_seconds_of_children() - before < 2 * limit


def processor_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_a_worker_that_dies_leaves_no_verdict_and_is_replaced() -> None:
    with Grader(workers=1, time_limit=60) as grader, ThreadPoolExecutor(1) as pool:
        grader.grade_all([("x+1", r"\boxed{1+x}")])
        before = grader._workers[0].process
        pending = pool.submit(grader.grade_all, [("16", TOWER), ("x+1", r"\boxed{1+x+0}")])
        time.sleep(0.3)
        os.kill(before.pid, signal.SIGKILL)
        tower, easy = pending.result(timeout=60)
        assert tower.correct is None
        assert tower.reason.startswith("grader failed")
        assert easy.correct is True
        idle = grader._workers[0].process
        os.kill(idle.pid, signal.SIGKILL)
        idle.wait()
        assert grader.grade_all([("x+1", r"\boxed{x+2-1}")])[0].correct is True


def test_a_worker_obeys_the_memory_limit_and_does_not_outlive_the_grader() -> None:
    limit = 1 << 20  # so little that nothing large can be allocated once sympy is loaded
    with Grader(workers=1, memory_limit=limit) as grader:
        assert grader.grade_all([("16", r"\boxed{10^{10^{7}}}")])[0].correct is False
        process = grader._workers[0].process
        assert resource.prlimit(process.pid, resource.RLIMIT_AS) == (limit, limit)
    assert process.returncode is not None


def test_digits_are_settled_at_once_without_a_worker_or_sympy() -> None:
    code = (
        "import sys, time; from exgrpo.grading import Grader\n"
        "items = [(str(i % 10), f'1+2=3;3+4=7 \\\\boxed{{{i % 7}}}') for i in range(256)]\n"
        "with Grader() as grader:\n"
        "    start = time.process_time(); found = grader.grade_all(items)\n"
        "    print(time.process_time() - start, sum(v.correct for v in found))\n"
        "    print(len(grader._workers), 'sympy' in sys.modules, 'torch' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = run.stdout.splitlines()
    seconds, right = first.split()
    assert float(seconds) < 0.05
    assert int(right) == sum(i % 10 == i % 7 for i in range(256))
    assert second == "0 False False"


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        # Integers as text, whatever their length or zeros.
        ("016", "16", True),
        ("5", "1e999999999", False),
        ("1000", r"1\,000", True),
        ("11{,}111", r"11,\!111", True),
        # Choices that answers.py documents: percent, lists, pairs, bases, inequalities.
        ("28", r"28\%", True),
        ("0.5", r"50\%", False),
        ("1,-2", r"x=-2 \text{ or } x=1", True),
        ("(1,2)", "1,2", False),
        ("52_8", "52_9", False),
        ("52_8", "52", False),
        (r"(-\infty,3)", "x<3", True),
        ("x<3", r"(-\infty,3)", True),
        (r"(-\infty,3)", r"x \le 3", False),
        (r"\sqrt{\frac{1}{n}}", r"\frac{1}{\sqrt{n}}", True),
        ("|x|", "x", False),
        # Structures.
        (r"1\pm\sqrt{2}", r"1-\sqrt2, 1+\sqrt2", True),
        (r"\{1,2\}", r"\{1,1,2\}", True),
        ("3", r"\{3\}", True),
        (r"(1,3]\cup[3,5)", "(1,5)", True),
        ("x=5", "5", True),
        ("x+y=3", "3", False),
        ("y=2x+3", "2x-y+3=0", True),
        # Decimals for irrational numbers: 15 right digits, not 14, not one wrong.
        (r"\pi", "3.14159265358979", True),
        (r"\pi", "3.14159265358978", False),
        (r"\pi", "3.1415926535898", False),
        (r"\frac13", "0.333333333333333333", False),
        # Formulas.
        (r"\sin^2t", r"1-\cos^2 t", True),
        (r"\frac{x^2-1}{x-1}", "x+1", True),
        (r"e^{i\pi}", "-1", True),
        ("2", r"2+10^{-60}\sqrt{2}", False),
        ("6", r"6\text{ or }7", False),
        ("4", "6-2", True),
    ],
)
def test_equality(gold: str, answer: str, right: bool, grader: Grader) -> None:
    response = rf"So \boxed{{{answer}}}"
    assert grader.grade_all([(gold, response)])[0].correct is right
    assert grade(gold, response).correct is right


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"\boxed 7", "7"),
        (r"\boxed 75", "75"),
        (r"\boxed{9}. That is how \boxed works.", "9"),
        (r"\boxed{5} and \boxed{42", "5"),
        (r"\boxed{\boxed{}}", r"\boxed{}"),
        (r"\fbox {a\}b}", r"a\}b"),
        (r"\boxedfoo{3}", None),
    ],
)
def test_the_last_box(text: str, box: str | None) -> None:
    assert answers.last_box(text) == box


def test_format_failures_are_told_from_wrong_answers(grader: Grader) -> None:
    responses = ["<think>7</think> \\boxed{8}", "<think>\\boxed{7}</think> done", "\\boxed{7}"]
    found = grader.grade_all([("7", response) for response in responses], "think")
    assert [verdict.correct for verdict in found] == [False, False, False]
    assert [verdict.format_ok for verdict in found] == [True, False, False]
    assert found[2].reason == "no closing think tag"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 9000 + "5",
        "(1," * 3000,
        "," * 9000,
        " " * 9000 + "x",
        "." * 9000 + "x",
        "1,000" * 1800,
        r"\frac" * 1800,
        "{" * 9000,
        r"\text{" * 1500,
        "=" * 9000,
        "1" * 9000 + "x",
        "9" * 200_000,
    ],
)
def test_exact_text_is_read_in_no_time_whatever_it_is(text: str) -> None:
    start = time.process_time()
    with contextlib.suppress(RecursionError):  # the grader calls this wrong
        answers.equal("5", answers.tidy(text), answers.exact)
    answers.last_box(r"\boxed{" * 3000 + text)
    answers.stated_answer("answer " + text, letter=False)
    assert time.process_time() - start < 1.0


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*"0123456789.,:=+-/!()[]{}xyi ", r"\frac", r"\sqrt", r"\text{", r"\{", r"\}", r"\pm "]
        ),
        max_size=14,
    ).map("".join)
)
def test_exact_text_never_raises_and_is_equal_to_itself(text: str) -> None:
    normal = answers.tidy(text)
    assert answers.equal(normal, normal, answers.exact) is True
    assert answers.equal("5", normal, answers.exact) in (True, False, None)


@pytest.mark.parametrize("gold", [None, "", "  ", "None", "see figure", [], True])
def test_a_gold_that_cannot_be_graded_against_is_refused(gold: object) -> None:
    with pytest.raises(UserError, match=r"train\.jsonl, line 3: the gold is .*remove the row"):
        check_gold(gold, "train.jsonl, line 3")


def test_a_numeric_gold_becomes_text() -> None:
    assert check_gold(142.0, "row 1") == "142.0"
    assert check_gold("016", "row 1") == "016"


def test_no_worker_thread_is_left_behind(grader: Grader) -> None:
    grader.grade_all([("x", r"\boxed{x+0}")])
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer) and t.is_alive()]
