"""Answers that once earned a wrong reward, or lost one: equality, choices, statements."""

import time

import pytest
from judged import misjudged

from exgrpo import algebra, answers, equality, latex, normal_form
from exgrpo.errors import UserError
from exgrpo.grading import Grader, check_gold, grade

EQUAL = [
    # Upper and lower case are two symbols, in any order of terms.
    (r"\pi(R^2-r^2)", r"\pi R^2-\pi r^2"),
    ("A+a", "a+A"),
    # Repeating decimals are fractions.
    (r"\frac13", r"0.\overline{3}"),
    (r"0.\overline{3}", "1/3"),
    (r"0.1\overline{6}", r"\frac16"),
    ("1", r"0.\overline{9}"),
    (r"0.\bar{3}", r"0.\dot3"),
    (r"\frac17", r"0.\dot{1}4285\dot{7}"),
    (r"2\pi+\frac13", r"0.\overline{3}+2\pi"),
    ("-1.5", r"-1.4\overline{9}"),
    # Units, known and unknown.
    ("3", "3 apples"),
    ("3", r"3 \text{ square units}"),
    ("3", r"3\text{ cm}^2"),
    ("3", r"3\text{ cm$^2$}"),
    ("3", r"3\,\mathrm{m/s}^{2}"),
    ("3", r"3\text{ miles per hour}"),
    ("3", r"3\text{ meters squared}"),
    ("3", r"3\text{ times}"),
    ("3", "3 degrees"),
    ("3", "3 miles per hour"),
    ("3", "3cm"),
    ("20", r"20^\circ C"),
    ("20", r"20^{\circ}\mathrm{C}"),
    ("5", r"5^{\circ}C"),
    ("5", "5°F"),
    ("2i", r"2\mathrm{i}"),
    # A point at the start is a decimal point.
    (".175", r"\text{.175}"),
    ("175", r"\text{175.}"),
    # Chains of equations.
    ("4", "2+2=4"),
    ("4", "x=2+2=4"),
    ("4", "x=y=4"),
    ("5", "f(2)=5"),
    ("5", "AB=5"),
    ("5", r"\angle ABC=5^\circ"),
    ("5", r"\text{Area}=5"),
    ("5", "a+b=5"),
    ("6", r"S=\frac12bh=6"),
    ("x=5", "x=2+3=5"),
    ("x=5", "2x=10"),
    # Named unknowns, by name or in order.
    ("f(n)=n, g(n)=1", "g(n)=1, f(n)=n"),
    ("a=2,b=3", "b=3, a=2"),
    ("x=2,y=3", "2,3"),
    ("x=1, x=2", "x=2, x=1"),
    ("2,3", "x=3,y=2"),
    # Lists, numbers, comparisons.
    ("100, 200", "100,200"),
    ("100,200", "100, 200"),
    ("1,200", "1200"),
    ("1,2", r"1 \text{ OR } 2"),
    ("1e5", "10^5"),
    ("10^5", "1e5"),
    (r"x \ge 3", "x>=3"),
    # Degrees in a function.
    (r"\sin 30^\circ", r"\frac12"),
    (r"\tan^2(45^\circ)", "1"),
    (r"30^\circ", "30"),
    ("9", r"9\text{ values}."),
]
UNEQUAL = [
    (r"\pi(R^2-r^2)", "0"),
    ("A+a", "2a"),
    (r"\frac{A}{a}", "1"),
    (r"0.\overline{3}", "0"),
    (r"0.\overline{3}", r"0.\overline{7}"),
    (r"0.\overline{3}", "0.3"),
    (r"1+0.\overline{3}\pi", "1"),
    *[
        ("3", text)
        for text in (
            *("3 million", "3 dozen", r"3 \text{ or 4}", r"3\text{, 4}", r"3\text{ or four}"),
            *("3 divided by five", "3xyz", r"3\mathrm{e}", r"3\text{x}", r"3\text{ halves}"),
            *("x>=3", "3, 4", "3 squared", r"\approx 3", r"3\ldots", r"3\text{?}4"),
        )
    ],
    *[
        ("5", text)
        for text in (
            *("5 hundred", "5 squared", r"5\text{ or more}", r"5 \text{ is wrong}"),
            *(r"5\text{ feet 3 inches}", r"5\text{ feet three inches}", "5 plus one"),
        )
    ],
    ("1", r"1 \text{ and 2}"),
    ("2", "2 thirds"),
    ("10", r"10\text{ (base 8)}"),
    ("10", r"10\text{ base eight}"),
    ("175", r"\text{.175}"),
    *[("4", text) for text in ("-x=4", "2x=4", "x^2=4", "10-x=4", "2+2=5=4", "|x|=4", "4=5")],
    ("4", r"\sqrt{x}=4"),
    ("x=5", "x=2+2=5"),
    ("f(n)=n, g(n)=1", "f(n)=1, g(n)=n"),
    ("a=2,b=3", "a=3,b=2"),
    ("x=2,y=3", "3,2"),
    ("x=2,y=3", "2,y=3"),
    ("x=2,y=3", "x=2"),
    ("100, 200", "100200"),
    ("x'", "x"),
    ("f'(x)", "f(x)"),
    ("0.3", "0.3..."),
    ("0.3", r"0.3\dots"),
    ("1/0", "2/0"),
    (r"\infty", r"\frac10"),
    (r"\sin 30^\circ", r"\sin 30"),
    # Found by changing real golds.
    ("f(n)=n", "f(N)=n"),
    (r"\lfloor\frac{2n}{3}\rfloor+1", r"\lfloor\frac{2n}{4}\rfloor+1"),
]


@pytest.mark.parametrize(
    ("pairs", "right"), [(EQUAL, True), (UNEQUAL, False)], ids=["equal", "unequal"]
)
def test_rewards(pairs: list[tuple[str, str]], right: bool, grader: Grader) -> None:
    assert not misjudged(grader, pairs, right)


@pytest.mark.parametrize(
    "text",
    [
        *("D", "(D)", "( D )", "[D]", "D.", "D)", r"\text{D}", r"\text{ D }", r"\textbf{(D)}"),
        *(r"\left(D\right)", r"\textit{D}", r"\textnormal{D}", r"\mathrm{(D)}", "**D**", "$D$"),
        *(r"D\;", "D~", r"D\quad 3", r"D\ \text{foo}", r"D\text{. foo}", r"\text{Option D}"),
        *(r"\textbf{(D)}\ 12", "D. Both of them", "D: a cat, or two", "(D) A dog", "D is correct"),
        *("D is the answer", "option (D)", "D since A fails", r"\text{(D) } \frac{1}{2}"),
    ],
)
def test_a_choice(text: str) -> None:
    assert answers.choice(text) == "D"


@pytest.mark.parametrize(
    "text",
    [
        *("D, A", "D or A", "D and C", "D; A", "D. C. B. A.", "D is wrong", "D/A", "D & A"),
        *(
            "(D) or (A)",
            "(D), (A)",
            r"\text{D or A}",
            r"D \text{ and } C",
            "D (A)",
            "D A",
            "D, A, B",
        ),
        *("D or maybe not", "D isn't right", "D might be it", r"\textbf{D}, \textbf{A}"),
        *("Delta", r"\Delta G", "D+1", "D=5", "D_2", "DA", "D'", r"D \times 2", "d", "", "4"),
    ],
)
def test_no_choice(text: str) -> None:
    assert answers.choice(text) is None
    assert grade("D", rf"\boxed{{{text} }}", "mcq").correct is False


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("The answer is 5, since 2+3=5.", "5"),
        ("The answer is 12 apples, not 13", "12 apples"),
        ("The answer is 3. The result is obvious.", "3"),
        ("The answer is 3 because it is prime.", "3"),
        ("The answer is 1, 2 and 3.", "1, 2 and 3"),
        ("The result is 7.", "7"),
        ("The answer is not 5.", "not 5"),
    ],
)
def test_a_statement_ends_before_its_reason(text: str, stated: str) -> None:
    assert answers.stated_answer(text, letter=False) == stated


@pytest.mark.parametrize("gold", ["{4", "4}", r"\frac{1}{2", r"\boxed{4}", r"x=\fbox 4", "#### 5"])
def test_a_gold_that_no_answer_can_match_is_refused(gold: str) -> None:
    with pytest.raises(UserError, match="no answer can be graded against it"):
        check_gold(gold, "line 1")
    assert grade(gold, rf"\boxed{{{gold}}}").correct is None


LONG = 100_000


@pytest.mark.parametrize(
    "text",
    [
        *(
            unit * (LONG // len(unit))
            for unit in (" ", ",", "=", "a", "D ", "D, ", "(", "is ", ", ")
        ),
        *(unit * (LONG // len(unit)) for unit in (r"\text", "answer is ", "answer ", "\\", ". ")),
        "D" + " ;" * (LONG // 2),
        "answer is D" + " ," * (LONG // 2) + "x",
    ],
)
def test_long_junk_is_read_in_little_time(text: str) -> None:
    start = time.process_time()
    answers.choice(text)
    answers.choice(f"D{text}")
    answers.stated_answer(f"The answer is 5{text}", letter=False)
    answers.stated_answer(text, letter=True)
    answers.is_answer(text)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "a ",
            r"\text{a}",
            "A_",
            r"\overline{1}",
            r"\dot1",
            "x(",
            "{",
            "~",
            r"\ ",
            r"\,",
            "°",
        ),
        *(
            "%",
            r"\%",
            "€",
            r"\quad",
            "\u200b",
            "½",
            "²",
            "µ",
            "1{,}",
            "{,}234",
            "1'",
            "1 ",
            r"\frac",
        ),
        *(
            r"\sqrt",
            r"\sqrt[",
            r"\frac{1}",
            r"^\frac",
            r"\mathbb",
            r"\text{",
            r"\text{a ",
            r"\cdot",
        ),
        *(
            r"\text{ a}/",
            r"\frac{\text{m}",
            r"\frac{/",
            r"\text{m ^ ",
            r"\color{r}",
            "USD ",
            ":00 am ",
        ),
        *(
            r"\degree",
            r"\mathrm{e}",
            r"\log_e",
            ", and",
            "and ",
            "{}",
            "}",
            "[A",
            "，",
            "√",
            "(1)_",
        ),
    ],
)
def test_names_and_units_are_read_in_little_time(unit: str) -> None:
    text = unit * (9000 // len(unit))
    start = time.process_time()
    for form in (text, f"5{text}", f"5 {text}!", f"{text}=5", f"{text}!=5", f"{text}=1,{text}=2"):
        equality.equal("5", normal_form.tidy(form), equality.exact)
        equality.equal("x=1,y=2", normal_form.tidy(form), equality.exact)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    "unit",
    [
        *(r"\boxed", r"\boxed{", r"\boxed ", r"\boxed(", r"\boxed$", r"\boxed-", r"\boxed\frac"),
        *(
            "therefore ",
            "not ",
            "3-5",
            "3 - ",
            r"\text ",
            "$5",
            "no, A",
            "(D) or ",
            "and (D)",
            "(A",
        ),
        *("->", "→", r"\to", "- ", "to ", "wait ", "。"),
    ],
)
def test_boxes_choices_and_prose_are_read_in_little_time(unit: str) -> None:
    text = unit * (LONG // len(unit))
    start = time.process_time()
    answers.last_box(rf"\boxed{{5}} {text}")
    for form in (text, f"(D) {text}x", f"D{text}!"):
        answers.choice(form)
    answers.stated_answer(f"{text}x", letter=False)
    answers.stated_answer(f"The answer is {text}", letter=False)
    latex.braced(text)
    assert time.process_time() - start < 2.0


def test_what_reads_alike_is_decided_alike_both_ways() -> None:
    """Equality of values has no direction; names and chains may stand on either side."""
    for gold, answer in ((r"0.\overline{3}", r"\frac13"), ("A+a", "2a"), ("1/0", "2/0")):
        pair = normal_form.tidy(gold), normal_form.tidy(answer)
        assert algebra.compare(*pair)[0] == algebra.compare(*reversed(pair))[0]
