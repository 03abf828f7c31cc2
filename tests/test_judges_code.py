"""The rules for code: each finds what it is for, none fires on mathematics in prose."""

import time

import pytest

from exgrpo.judges.code import RULES, code, fired
from exgrpo.judges.judge import Case

FINDS = {
    "fence": "Let us check.\n```python\n1 + 1\n```",
    "def": "def lcm(a, b):",
    "class": "class Point:",
    "import": "from math import gcd",
    "print": "print(3 + 4)",
    "len": "n = len(digits)",
    "range": "over range(1, 10)",
    "for": "for i in numbers:",
    "if": "    if n % 2 == 0:",
    "else": "else:",
    "while": "while n > 1:",
    "except": "except ValueError:",
    "return": "    return total",
    "list": "digits = [1, 2, 3]",
    "dict": 'ages = {"Ann": 3, "Bob": 4}',
    "call": "math.sqrt(16)",
    "operator": "if a == b",
}
ALSO = [
    ("import", "import numpy as np"),
    ("class", "class Point(Base):"),
    ("if", "elif n > 3:"),
    ("dict", "{1: 2, 3: 4}"),
    ("operator", "total += 1"),
    ("fence", "~~~\ncode\n~~~"),
]
PROSE = [
    "If x is even, then for every n in the set: we are done.",
    "for each of the cases:",
    "We define the class of all functions: they are important to import.",
    "The print (third edition) is out of range (see above), and its length is 3.",
    r"They arrive at \boxed{4:30 \text{ p.m.}}, so 7!2!=10080 and 3!+7!-7!=3!.",
    "We return to the first case. Else, x = 3; while it lasts, try again.",
    r"\[ f(x) = [x] + \{x\}, \quad S = \{1, 2, 3\}, \quad x \in [0, 1] \]",
    "e.g. (a + b) and i.e. (c), U.S. (2020), 3.5(x + 1), A.B(C)",
    "a <= b, a >= c, a != b, and thus a = b = c, 3 - -4",
    "The ratio is 3:4, at 12:30, { } { x : x > 0 }.",
]


def test_there_is_a_case_for_every_rule() -> None:
    assert list(FINDS) == list(RULES)
    assert len(RULES) == 17


@pytest.mark.parametrize(("rule", "text"), [*FINDS.items(), *ALSO])
def test_a_rule_finds_code(rule: str, text: str) -> None:
    assert rule in fired(text)


@pytest.mark.parametrize("text", PROSE)
def test_mathematics_in_prose_is_no_code(text: str) -> None:
    assert not fired(text)


def test_the_reason_names_the_rules() -> None:
    judge = code().judge
    found = judge(Case("", "", "import math\nprint(math.pi)"))
    assert found.valid is False
    assert found.reason == "looks like code: import, print"
    assert judge(Case("", "", "3 + 4 = 7")).valid is True


@pytest.mark.parametrize(
    "part",
    ["a", " ", "\n", "{1", "a.b", "a=[", "def ", "if x", "for a", "class A(", "range(", "`", "1 "],
)
def test_hostile_text_ends_soon(part: str) -> None:
    began = time.process_time()
    fired(part * (100_000 // len(part)))
    assert time.process_time() - began < 2.0
