r"""The built-in task: single-digit arithmetic chains whose every step can be checked.

`7+5*3-2=` is evaluated left to right, each running value taken modulo 10, and answered
`7+5=2;2*3=6;6-2=4\boxed{4}`. The level is the number of steps. A right answer with a wrong or
missing step is a lucky guess, and known to be one without a judge model.
"""

import random
import re
from dataclasses import dataclass

OPERATIONS = "+-*"
SOURCE = "chain"

_QUESTION = re.compile(r"\d([-+*]\d)+=")
_STEP = re.compile(r"(\d)([-+*])(\d)=(\d)")


@dataclass(frozen=True)
class ChainCheck:
    """What the steps of a response are worth.

    valid: every step of the question is shown, in order, and right.
    step_errors: written steps that are wrong: another operand or operator than the question and
    the step before demand, a wrong result, or no step at all between two semicolons.
    shortcut: an answer without any step.
    """

    valid: bool
    step_errors: int
    shortcut: bool


def apply(left: int, operation: str, right: int) -> int:
    """One step, modulo 10."""
    return {"+": left + right, "-": left - right, "*": left * right}[operation] % 10


def is_question(text: str) -> bool:
    return _QUESTION.fullmatch(text) is not None


def parse(text: str) -> tuple[int, list[tuple[str, int]]]:
    """First digit and the (operation, digit) pairs of a question. ValueError if it is none."""
    if not is_question(text):
        raise ValueError(f"no chain: {text!r}")
    return int(text[0]), [(text[i], int(text[i + 1])) for i in range(1, len(text) - 1, 2)]


def draw(level: int, rng: random.Random) -> str:
    """A random question with `level` steps."""
    pairs = "".join(rng.choice(OPERATIONS) + str(rng.randrange(10)) for _ in range(level))
    return f"{rng.randrange(10)}{pairs}="


def solve(text: str) -> str:
    """The answer, one digit."""
    value, pairs = parse(text)
    for operation, digit in pairs:
        value = apply(value, operation, digit)
    return str(value)


def demonstrate(
    text: str,
    rng: random.Random,
    wrong_step_rate: float = 0.0,
    shortcut_rate: float = 0.0,
    shortcut_knowledge: float = 0.0,
) -> str:
    """A written solution, flawed at the given rates; with all rates 0 the exact chain.

    A wrong step goes on from its wrong result, so the final answer is wrong too unless a later
    step happens to mend it. A shortcut gives the answer alone: right with `shortcut_knowledge`,
    else a random digit.
    """
    if rng.random() < shortcut_rate:
        known = rng.random() < shortcut_knowledge
        return rf"\boxed{{{solve(text) if known else rng.randrange(10)}}}"
    value, pairs = parse(text)
    steps = []
    for operation, digit in pairs:
        result = apply(value, operation, digit)
        if rng.random() < wrong_step_rate:
            result = (result + rng.randrange(1, 10)) % 10
        steps.append(f"{value}{operation}{digit}={result}")
        value = result
    return rf"{';'.join(steps)}\boxed{{{value}}}"


def explain(text: str) -> str:
    """The exact chain: every step, all right."""
    return demonstrate(text, random.Random(0))


def without_box(response: str) -> str:
    """The demonstration without its box: the steps, or the bare digit of a shortcut."""
    steps, _, answer = response.partition(r"\boxed{")
    return steps or answer.rstrip("}")


def check(text: str, response: str) -> ChainCheck:
    """Check every written step of a response to a question."""
    value, pairs = parse(text)
    written = response.split("\\boxed", 1)[0]
    if not written:
        return ChainCheck(valid=False, step_errors=0, shortcut=True)
    errors = 0
    steps = written.split(";")
    for index, step in enumerate(steps):
        match = _STEP.fullmatch(step)
        if match is None:
            errors += 1
            continue
        left, operation, right, result = match.groups()
        expected = (value, *pairs[index]) if index < len(pairs) else None
        sound = apply(int(left), operation, int(right)) == int(result)
        errors += not (sound and (int(left), operation, int(right)) == expected)
        value = int(result)
    return ChainCheck(
        valid=errors == 0 and len(steps) == len(pairs), step_errors=errors, shortcut=False
    )
