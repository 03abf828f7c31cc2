"""How a response is read: kinds, the think gate, prose, and golds that nothing can be graded by."""

import itertools

import pytest

from exgrpo.errors import UserError
from exgrpo.grading import KINDS, Answer, Grader, Rules, check_gold, grade, rules_for, rules_of
from exgrpo.question_settings import Grading


def test_names_of_a_file_join_with_a_plus() -> None:
    assert rules_of("boxed") == Rules()
    assert rules_of("think+mcq") == rules_of("mcq+think") == Rules(letter=True, think=True)
    assert rules_of("think+prose") == Rules(think=True, prose=True)
    for kind in ("", "Think", "think+", "mqc", "think,mcq"):
        with pytest.raises(ValueError, match=r"unknown kind .*; known: boxed, mcq, think, prose"):
            rules_of(kind)


@pytest.mark.parametrize("kind", ["boxed", "mcq"])
def test_settings_give_the_form_and_the_question_its_kind(kind: str) -> None:
    letter = kind == "mcq"
    for think, prose in itertools.product((False, True), repeat=2):
        settings = Grading(think=think, prose=prose)
        assert rules_for(kind, settings) == Rules(letter, think, prose)
        assert rules_for(kind, settings, test=True) == Rules(letter, think, prose)
        for at_test in (False, True):
            other = Grading(think=think, think_at_test=at_test, prose=prose)
            assert rules_for(kind, other) == Rules(letter, think, prose)
            assert rules_for(kind, other, test=True) == Rules(letter, at_test, prose)


@pytest.mark.parametrize(
    ("response", "correct", "extracted", "format_ok"),
    [
        (r"<think>\boxed{A}</think> So \boxed{C}.", True, "C", True),
        (
            r"no opening tag \boxed{A}</think> \boxed{\text{(C) cats}}",
            True,
            r"\text{(C) cats}",
            True,
        ),
        (r"<think>C</think> a </think> \boxed{C}", True, "C", True),
        (r"<think>\boxed{C}</think> \boxed{A}", False, "A", True),
        (r"<think>\boxed{C}</think> So it is C.", False, None, False),
        (r"<think>\boxed{C}</think> \boxed{cats}", False, "cats", False),
        (r"<think> and so \boxed{C}", False, None, False),
        (r"\boxed{C}", False, None, False),
    ],
)
def test_think_and_mcq(response: str, correct: bool, extracted: str, format_ok: bool) -> None:
    verdict = grade("C", response, "think+mcq")
    assert (verdict.correct, verdict.extracted, verdict.format_ok) == (
        correct,
        extracted,
        format_ok,
    )


def test_o09_without_think_tags_all_are_format_failures_told_from_wrong_answers() -> None:
    with Grader(workers=1) as grader:
        found = grader.grade_all(
            [Answer("7", rf"So \boxed{{{i}}}", KINDS["think"]) for i in range(8)]
        )
        wrong = grader.grade_all([Answer("7", r"<think></think>\boxed{8}", KINDS["think"])])[0]
    assert [verdict.correct for verdict in found] == [False] * 8
    assert {verdict.reason for verdict in found} == {"no closing think tag"}
    assert not any(verdict.format_ok for verdict in found)
    assert wrong.correct is False and wrong.format_ok


@pytest.mark.parametrize("kind", ["boxed", "mcq", "think", "prose", "think+mcq"])
@pytest.mark.parametrize("gold", ["", "  ", "None", "see figure", "N/A"])
def test_trap_49_a_gold_that_cannot_be_read_gives_no_verdict(gold: str, kind: str) -> None:
    for response in (r"\boxed{7}", r"</think>\boxed{A}", gold, rf"\boxed{{{gold}}}", ""):
        assert grade(gold, response, kind).correct is None


@pytest.mark.parametrize("gold", ["12", "cats", "x+1", "a"])
def test_a_multiple_choice_whose_gold_is_no_letter_gives_no_verdict(gold: str) -> None:
    """Else an answer without a letter would equal a gold without one."""
    for response in (r"\boxed{12}", r"\boxed{cats}", r"\boxed{A}"):
        verdict = grade(gold, response, "mcq")
        assert verdict.correct is None and "not the letter" in verdict.reason


@pytest.mark.parametrize("gold", [None, "", "  ", "None", "see figure", [], True])
def test_a_gold_that_cannot_be_graded_against_is_refused(gold: object) -> None:
    with pytest.raises(UserError, match=r"train\.jsonl, line 3: the gold is .*remove the row"):
        check_gold(gold, "train.jsonl, line 3")


def test_a_numeric_gold_becomes_text() -> None:
    assert check_gold(142.0, "row 1") == "142.0"
    assert check_gold("016", "row 1") == "016"
