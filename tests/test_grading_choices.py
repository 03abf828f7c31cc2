"""The letter of a multiple choice: with the text of any option behind it, or taken back."""

import json
from pathlib import Path

import pytest

from exgrpo import answers
from exgrpo.grading import grade


@pytest.mark.parametrize(
    "form", ["({}) {}", "{}. {}", "{}: {}", "{}) {}", r"\text{{({}) {}}}", r"\textbf{{{}}}. {}"]
)
def test_any_real_option_may_follow_its_letter(form: str) -> None:
    file = Path(__file__).resolve().parents[2] / "shared" / "data" / "mmlu-pro/sample-280.jsonl"
    if not file.is_file():
        pytest.skip("needs the folder ../shared with real data, which is not part of the repo")
    rows = [json.loads(line) for line in file.read_text(encoding="utf8").splitlines()]
    assert len(rows) == 280
    for row in rows:
        for index, option in enumerate(row["options"]):
            letter, text = "ABCDEFGHIJ"[index], form.format("ABCDEFGHIJ"[index], option)
            wanted = letter if option.strip() != "B" else None  # it can be another letter
            assert answers.choice(text) == wanted, text
        own = form.format(row["answer"], row["options"][row["answer_index"]])
        assert grade(row["answer"], rf"\boxed{{{own}}}", "mcq").correct is True


@pytest.mark.parametrize(
    "text",
    [
        *("(B) I and II", r"\text{(B) I and II only}", "B: I, II", "(B) A and C", "(B) C. elegans"),
        *(
            "(B) U.S. law",
            "(B) + 3",
            "(B) =5",
            "B. X",
            "(B) E. coli, C. elegans",
            "(B) x = 3, y = 4",
        ),
        *("(B) cannot exist", "(B) can be treated", "(B) not guilty", "(B) False, False"),
        *(
            "(B) impossible",
            "(B) Impossible to say",
            "(B) vs. the state",
            "(B) over the moon",
            "B 12",
        ),
        *("(B) is making what she would make", "(B) neither A nor C", "(B) B", r"(B) \frac12"),
        *(
            "（B）",
            "Ｂ",
            "𝐁",
            '"B"',
            r"\underline{B}",
            "B\u200b",
            "(B) is correct",
            "B since A fails",
        ),
    ],
)
def test_a_choice(text: str) -> None:
    assert grade("B", rf"\boxed{{{text}}}", "mcq").correct is True


@pytest.mark.parametrize(
    "text",
    [
        *("B -> C", "B to C", "B - C", "B nor C", "B rather than C", "B instead of C", "B + C"),
        *("B (no, C)", "B wrong", "B (incorrect)", r"B\text{ (wrong)}", "B ✗", "B eliminated", "b"),
        *("(B) -> (C)", "(B) → C", r"(B) \to (C)", "(B), (C)", "(B) or (A)", "(B) nor (A)", "B. A"),
        *("(B) (C)", "(B)(C)", "(B) C", "B. C. D.", "B. foo, C. bar", "(B) 3, (C) 4", "B: 3; C: 4"),
        *("(B) is wrong", "(B) is not the right answer", "(B) might be it", "(B) does not work"),
        *(
            "(B) wait, (C)",
            "(B) foo. Wait, C",
            "(B) Paris (wrong)",
            "(B) isn't it",
            "(B) or maybe C",
        ),
        *("B vs C", "B vs. C", "B versus C", "B then C", "(B) then (C)", "B over C", "B 12+C"),
        *("(B) wait, it's (C)", "(B) sorry, C", "(B) I mean (C)", "(B) rather (C)", "(B) x (C) ✓"),
        *("(B) crossed out", "(B) ruled out", "(B) is ruled out", "(B) is impossible", "B except"),
        *(r"B \text{not}", "(B) was my first guess, final: C", "(B) foo, final: C"),
        *("B is false", "B cannot be", "(B) ❌", "(B) and/or (C)", "Ｂ or Ｃ", "Not (B)"),
    ],
)
def test_no_choice(text: str) -> None:
    verdict = grade("B", rf"\boxed{{{text}}}", "mcq")
    assert (verdict.correct, verdict.reason) == (False, "no choice in the answer")
