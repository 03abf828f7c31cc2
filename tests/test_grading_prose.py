"""The answer that prose states without a box: the last number, unless it is part of something."""

import pytest

from exgrpo.grading import grade


@pytest.mark.parametrize(
    "text",
    [
        *("The answer is therefore 5.", "The answer is equal to 5.", "So the total is **5**."),
        *(
            "The answer is thus equal to 5",
            "It is not 6 but 5.",
            "2+3 = 5",
            r"Total: \$5",
            r"\(5\)",
        ),
        *("10/2 = 5 ways", r"\[ x = \quad 5 \]", "an area of 5 cm", "−5 + 10 = 5", "We have 5%."),
        *("He ran 5 times.", "In 1/2 hours or 5 minutes", "Day 3: 5 pages", "He has 5 pairs"),
        # The marks of a calculator in GSM8K.
        *("9 - 4 = $<<9-4=5>>5 every day.", "He has <<2+3=5>>5 apples", "<<10/2=5.0>>5$"),
        "The answer is <<2+3=5>>5.",
    ],
)
def test_prose_that_states_a_number(text: str) -> None:
    assert grade("5", text, "prose").correct is True


@pytest.mark.parametrize(
    "text",
    [
        *(r"$\frac{1}{5}$", "x=2^5", "We get 3 - 5", "minus 5", "It is 6, not 5", "3-5", "3+5"),
        *(r"$2\times 5$", r"$\sqrt5$", r"$\sqrt{5}$", "x_5", "so 5x", "5!", "5^2", r"$5\pi$"),
        *("more than 5", r"\frac15", "f(5)", r"\log_2 3 \cdot \log_5", "3 * 5", "5 - x", "~5"),
        *("5 hundred", "5 million", r"5\text{ million}", "5 squared", "5th", "1:5", "5:1", "log 5"),
        *(r"\log_2 5", r"\log_{2} 5", "4 or 5", "either 4 or 5", "between 4 and 5", "isn't 5"),
        *("never 5", "at least 5", "at most 5", "around 5", "mod 5", "base 5", "5'", "- 5 apples"),
        *("x >> 5", "5 << 9", "<<2+3=5>>"),
    ],
)
def test_a_number_that_is_part_of_a_formula_or_denied_is_not_stated(text: str) -> None:
    verdict = grade("5", text, "prose")
    assert (verdict.correct, verdict.format_ok) == (False, False)
    assert grade("-5", text, "prose").correct is False
