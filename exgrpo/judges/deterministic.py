"""The judge without a model: arithmetic, repetition, and an answer that comes from nowhere.

It is exact for `chain`, whose every step is known. For mathematics in prose it sees slips in
arithmetic alone: valid means that the equations of numbers hold, not that the argument does.
"""

import re
from fractions import Fraction

from exgrpo import answers, chain, markers
from exgrpo.judges.arithmetic import LONGEST, NUMBER
from exgrpo.judges.equations import equations
from exgrpo.judges.judge import Case, Judge, Judgement
from exgrpo.judges.notation import plain

NAME = "deterministic"
VERSION = "2"  # raise it with every change of a verdict: what was judged is judged anew
_SHOWN = 3  # wrong equations that a reason lists
_NO_WORD = re.compile(r"\\[a-zA-Z]+|[^A-Za-z\s]+")
_NEAR = 150  # characters before a box in which its answer may be derived on the spot
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])")
_WORDS = [
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
]


def deterministic() -> Judge:
    return Judge(NAME, VERSION, judge)


def judge(case: Case) -> Judgement:
    """Never raises; the time is linear in the response.

    False: an equation of numbers is wrong, a passage is repeated, or a number is boxed that occurs
    nowhere before. True: at least one equation was checked and nothing is wrong. Else None.
    """
    if chain.is_question(case.question):
        return _exact(case)
    if _repeats(case.response):
        return Judgement(False, "repeats itself")
    found = [each for each in equations(case.response) if each.holds is not None]
    if wrong := [each.text for each in found if not each.holds]:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        return Judgement(False, f"wrong: {'; '.join(wrong[:_SHOWN])}{more}")
    if from_nowhere(case.response):
        return Judgement(False, "the answer's numbers do not occur before its box")
    if not found:
        return Judgement(None, "no equation of numbers that could be checked")
    return Judgement(True, f"{len(found)} equations hold")


def _exact(case: Case) -> Judgement:
    checked = chain.check(case.question, case.response)
    if checked.shortcut:
        return Judgement(False, "no step is shown")
    reason = f"{checked.step_errors} wrong steps" if not checked.valid else "every step holds"
    return Judgement(checked.valid, f"exact check of the chain: {reason}")


def _repeats(response: str) -> bool:
    """A repeated passage that has words: `10 * 10 * 10 * ...` and the rule of a table have none."""
    if not markers.repeats(response):
        return False
    return markers.repeats(" ".join(_NO_WORD.sub(" ", response).split()))


def from_nowhere(response: str) -> bool:
    """Whether the last box holds numbers that its text does not lead to.

    None of them occurs before the first box, and in the `_NEAR` characters before it stand neither
    another number nor a relation sign (`= \\boxed{8}` and "12 and 11 more are" derive on the spot).
    """
    answer = answers.last_box(response)
    box = _BOX.search(response)
    if answer is None or box is None:
        return False
    wanted, before = _numbers(answer), plain(response[: box.start()])
    near = before[-_NEAR:]
    return bool(wanted) and not (
        _numbers(near) or "=" in near or "≈" in near or wanted & _numbers(before)
    )


def _numbers(text: str) -> set[Fraction]:
    """The numbers of a text, and those up to twelve that it spells out."""
    words = {each for each in re.findall("[a-z]+", text.lower()) if each in _WORDS}
    found = (each.replace(",", "") for each in re.findall(NUMBER, plain(text)))
    digits = {Fraction(each) for each in found if len(each) <= LONGEST}
    return digits | {Fraction(_WORDS.index(each)) for each in words}
