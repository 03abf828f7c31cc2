"""Pairs of a gold and a boxed answer, put before the real grader."""

from collections.abc import Iterable, Sequence

from exgrpo.grading import Answer, Grader


def misjudged(
    grader: Grader, pairs: Iterable[Sequence[str]], right: bool
) -> list[tuple[str, str, str]]:
    """Gold, answer and reason of the pairs whose verdict is not `right`."""
    asked = [(gold, answer) for gold, answer in pairs]
    found = grader.grade_all([Answer(gold, rf"\boxed{{{answer}}}") for gold, answer in asked])
    return [
        (*pair, each.reason)
        for pair, each in zip(asked, found, strict=True)
        if each.correct is not right
    ]
