"""Wrong rewards that an adversary found, each with answers beside it that must stay right."""

import time

import pytest
from judged import misjudged

from exgrpo import answers
from exgrpo.grading import Grader

_NO_UNITS = """
double doubled twice triple halved negative bn grand gross tens never
none nope untrue guess undefined octal ish
""".split()  # noqa: SIM905

# What is shown: answers equal to their golds, and answers that are not.
PAIRS = {
    "A number before a bracket is a factor.": (
        [
            ("6", "2(3)"),
            ("6", "(2)(3)"),
            ("6", r"2\left(3\right)"),
            ("26000", "1000(26)"),
            ("10", "2(3+2)"),
            ("2x+6", "2(x+3)"),
            (r"\frac{5}{2}", r"\frac{1}{2}(5)"),
            ("2(x+1)(x+2)", "2x^2+6x+4"),
            ("5", "2+(3)"),
            ("-6", "2(-3)"),
            ("-6", "-2(3)"),
            ("36", "6^2(1)"),
            ("2x^2(3)", "6x^2"),
            (r"2\frac12", r"\frac52"),
            (r"\log_2(3)", r"\frac{\ln 3}{\ln 2}"),
            (r"\sin^2(2x)", r"1-\cos^2(2x)"),
            ("12", "3!(2)"),
            ("6", "2((3))"),
            ("12", "(3)4"),
            ("24", "2(3)4"),
            ("30", r"3\binom{5}{2}"),
            ("30", r"\binom{5}{2}(3)"),
            (r"\log_2{8}", "3"),
            (r"\frac72+x", "3 1/2+x"),
            (r"\binom{n}{2}\cdot 2", "n(n-1)"),
        ],
        [
            ("5", "2(3)"),
            ("5", "(2)(3)"),
            ("5", r"2\left(3\right)"),
            ("1026", "1000(26)"),
            ("5", r"2\frac{3}{1}(1)(2)"),
            ("9", "2^3(1)"),
            ("7", "(3)4"),
            ("5", "2 3"),
            ("5", "2{3}"),
            ("5", "2[3]"),
            ("5", r"2\{3\}"),
            ("13", r"3\binom{5}{2}"),
        ],
    ),
    "Formulas in whole numbers.": (
        [
            ("(-1)^n", "(-1)^{n+2}"),
            ("(-1)^{n}", "(-1)^{-n}"),
            ("2^{2n}", "4^n"),
            ("(-2)^{2n}", "4^n"),
            (r"\sqrt{1/n}", r"1/\sqrt{n}"),
            ("n!", "n(n-1)!"),
            (r"\frac{n!}{(n-2)!}", "n^2-n"),
            (r"\sqrt{x-100}", "(x-100)^{1/2}"),
            ("x+y", "y+x"),
            (r"\ln(-x)", r"\ln(-x)+0"),
            ("-(-1)^n", "(-1)^{n+1}"),
            (
                r"\frac{(\frac{1+\sqrt5}{2})^n-(\frac{1-\sqrt5}{2})^n}{\sqrt5}-2",
                r"\frac{(\frac{1+\sqrt5}{2})^n}{\sqrt5}-2-\frac{(\frac{1-\sqrt5}{2})^n}{\sqrt5}",
            ),
        ],
        [
            ("(-1)^n", "-1"),
            (r"\frac{1+(-1)^n}{2}", "0"),
            ("(-2)^n", "-2^n"),
            ("(-1)^{n+1}", "1"),
            ("(-1)^n", "1"),
            ("(-1)^{n+1}", "(-1)^n"),
            ("x", "y"),
            ("|x|", "x"),
            (r"\sqrt{x^2}", "x"),
            ("i^n", "(-i)^n"),
        ],
    ),
    "Floors and ceilings.": (
        [
            (r"\lceil n/2\rceil+1", r"\lfloor\frac{n+1}{2}\rfloor+1"),
            (r"\lfloor\frac{2n}{3}\rfloor+1", r"1+\left\lfloor \frac{2n}{3}\right\rfloor"),
            (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
            (r"\lfloor\log_2 n\rfloor+1", r"\lceil\log_2 (n+1)\rceil"),
            (r"\frac{n!}{2}", "n!/2"),
            (r"\binom{n+m}{n}", r"\binom{n+m}{m}"),
        ],
        [
            (r"\lfloor\log_2 n\rfloor+1", r"\lceil\log_2 n\rceil"),
            (r"\lfloor\frac{2n}{3}\rfloor+1", r"\lfloor\frac{2n}{4}\rfloor+1"),
            (r"\lfloor n/2\rfloor", r"\lceil n/2\rceil"),
            (r"\lfloor n/3\rfloor", r"\lceil n/3\rceil-1"),
            (r"\binom{n}{2}", r"\binom{n}{3}"),
            ("0", r"x-\lfloor x\rfloor"),
        ],
    ),
    "And, or inside the words of a unit.": (
        [
            ("5", r"5 \text{ apples}"),
            ("1,2", r"1 \text{ and } 2"),
            ("1,2", r"1\text{, and }2"),
            ("1,2", r"1 \text{ OR } 2"),
        ],
        [
            ("5", r"5 \text{ or so}"),
            ("5", r"5\text{ or whatever}"),
            ("5", r"5\text{ and change}"),
            (r"\frac34", r"\frac34 \text{ and something}"),
            ("5", "5 and change"),
            ("5", "5 or so"),
        ],
    ),
    "Signs that the parser would drop.": (
        [
            ("5€", "5"),
            ("π", r"\pi"),
            ("x≤3", "x<=3"),
            ("θ", r"\theta"),
            ("x_1", "x_{1}"),
            (r"\log_2 8", "3"),
        ],
        [
            ("5", "5 ≈ 6"),
            ("5", "6 ≡ 5"),
            ("6", "6 ≡ 5"),
            ("5", r"6 \equiv 5"),
            ("6", r"6 \equiv 5"),
            ("5", "⊕ 5"),
            ("5", r"\phantom{5}"),
            ("5", "5 _ 6"),
            ("5", "5 → 6"),
            ("5", r"5\sim 6"),
            ("5", r"5\rightarrow 6"),
            ("5", r"5\ne 6"),
            ("5", r"5\to 6"),
            ("5", r"5\cong 6"),
            ("5", r"5 \Rightarrow 5"),
        ],
    ),
    "A mixed number before another factor.": (
        [
            (r"\frac{5\pi}{2}", r"2\frac12\pi"),
            (r"\frac52", r"2\frac12"),
            (r"\frac52", "2 1/2"),
            (r"2\frac12\pi", r"\frac{5\pi}{2}"),
            (r"-2\frac12 x", r"-\frac{5x}{2}"),
            (r"\frac{5\pi}2", r"2 \frac{1}{2}\pi"),
            (r"\frac{x}{2}\cdot 2", "x"),
            ("3x", r"x\cdot 6\frac12 - \frac72 x"),
            (r"x^2\frac12", r"\frac{x^2}{2}"),
        ],
        [
            (r"\pi", r"2\frac12\pi"),
        ],
    ),
    "A simple fraction before another factor.": (
        [
            ("x/2+3", "1/2 x + 3"),
            (r"\frac{\pi}{2}", r"1/2\pi"),
            (r"\frac{\pi}{2}", r"1/2 \pi"),
            (r"-\frac12-\frac32i", "-1/2 - 3/2 i"),
            (r"\frac{\sqrt3}2", r"1/2\sqrt{3}"),
            ("1/(2x)", r"\frac{1}{2x}"),
            ("1/x", "x^{-1}"),
        ],
        [
            (r"-\frac12+\frac32i", "-1/2 - 3/2 i"),
            (r"\frac{1}{2x}+3", "1/2 x+3"),
        ],
    ),
    "How often a member of a list stands there.": (
        [
            ("16,3,1,1", "1,16,1,3"),
            (r"\{1,2,3\}", r"\{1,2,3,3\}"),
            ("1,2,3", "3,2,1"),
            ("x=1, x=2", "x=2, x=1"),
            (r"1\pm\sqrt5", r"1-\sqrt5,1+\sqrt5"),
            (r"\{1,2\}", "2,1"),
            (r"(1,2)\cup(3,4)", r"(3,4)\cup(1,2)"),
            ("(1,2),(2,1)", "(2,1),(1,2)"),
        ],
        [
            ("16,3,1,1", "16,3,1"),
            ("1,2,3", "1,2,3,3"),
            ("1,1,2", "1,2,2"),
            ("16,3,1", "16,3,1,1"),
        ],
    ),
    "Two signs, in braces as well.": (
        [
            (r"\{1\pm\sqrt{5},-2\}", r"\{-2,1+\sqrt5,1-\sqrt5\}"),
            (r"3\mp 1", "2,4"),
            (r"\pm 2", "-2,2"),
            (r"\{\pm2\}", r"\{2,-2\}"),
            (r"\pm2", r"\{2,-2\}"),
        ],
        [
            (r"\{1\pm\sqrt{5},-2\}", r"\{-2,1+\sqrt5\}"),
            (r"3\mp1", "3,4"),
        ],
    ),
    "Words behind words.": (
        [
            ("Friday", r"\text{Friday}"),
            ("20", r"\text{20}\text{ cm}"),
        ],
        [
            (r"\text{Friday}", r"\text{Friday}\text{Monday}"),
            ("Friday", r"\text{Friday}\text{Monday}"),
            ("Friday", r"\text{Friday} \text{Monday}"),
            ("Friday", r"\text{Friday or Monday}"),
            (r"\text{A}", r"\text{A}\text{B}"),
        ],
    ),
    "The empty set, and the name of a pair.": (
        [
            (r"\emptyset", r"\varnothing"),
            (r"\emptyset", r"\{\}"),
            ("(-1,6)", "(x,y) = (-1,6)"),
            ("(-1,6)", "(x, y)=(-1,6)"),
            (r"\emptyset", r"\{ \}"),
            ("(1,2,3)", "(x,y,z)=(1,2,3)"),
        ],
        [
            ("(-1,6)", "(y,x)=(6,-1)"),
            (r"(-\infty,2)\cup(3,\infty)", r"x<2 \text{ and } x>3"),
            (r"\emptyset", "0"),
            ("(-1,6)", "(x,y)=(6,-1)"),
            (r"(-\infty,2)\cup(3,\infty)", r"x<2 \text{ or } x<3"),
        ],
    ),
    "Units of time and speed, separators in a fraction.": (
        [
            ("60", r"60\text{ sec}"),
            ("3", "3 m/s"),
            ("20", "x=20 days"),
            (r"\frac{20000}{\pi}", r"\frac{20,000}{\pi}"),
            ("4:30", "4{:}30"),
            ("4:30", r"4:30 \text{ p.m.}"),
            (r"4:30 \text{ p.m.}", "4:30 PM"),
            (r"4:30\text{ p.m.}", "4:30"),
            ("4:30", "4:30 am"),
        ],
        [
            ("3", r"3\sec"),
            ("3m", "3"),
            ("3m", "3x"),
            ("4:30", r"4:31 \text{ p.m.}"),
            (r"4:30 \text{ p.m.}", r"4:30 \text{ a.m.}"),
            ("4:30 pm", "4:30am"),
        ],
    ),
    "Bold type, and matrices.": (
        [
            ("36", r"\boldsymbol{36}"),
            ("5", r"\bm{5}"),
            (
                r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
                r"\left(\begin{array}{cc}1&2\\3&4\end{array}\right)",
            ),
            (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\[4pt]2\end{pmatrix}"),
            (
                r"\begin{pmatrix}-\frac12\\2\end{pmatrix}",
                r"\left[\begin{array}{c}-\frac12\\ 2\end{array}\right]",
            ),
        ],
        [
            (
                r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
                r"\left(\begin{array}{cc}1&2\\4&3\end{array}\right)",
            ),
            (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\[4pt]3\end{pmatrix}"),
            ("36", r"\boldsymbol{35}"),
        ],
    ),
    "Denials, and words that are no units.": (
        [
            ("3", r"\text{Area}=3"),
            ("3", r"\text{No. of apples}=3"),
        ],
        [
            *[("3", f"3 {word}") for word in _NO_UNITS],
            ("3", r"\text{not }x=3"),
            ("3", "never = 3"),
            ("3", r"\text{not }=3"),
            ("3", r"3\text{ish}"),
            ("3", r"3\text{-ish}"),
        ],
    ),
}


@pytest.mark.parametrize("shown", PAIRS)
@pytest.mark.parametrize("right", [True, False])
def test_rewards(shown: str, right: bool, grader: Grader) -> None:
    pairs = PAIRS[shown][0 if right else 1]
    assert not misjudged(grader, pairs, right)


@pytest.mark.parametrize(
    "text",
    [
        *(r"\text{A contradiction}", r"\text{I do not know}", "I think B", r"A \cap B"),
        *(r"\text{B but C}", "B, but C", r"\text{B (or C)}", r"\text{B. No, C}"),
        *(r"B \rightarrow C", r"B \implies C", r"\text{B does not work}"),
    ],
)
def test_a_sentence_or_a_formula_is_no_choice(text: str) -> None:
    assert answers.choice(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *(r"\text{Answer: A}", "The answer is A", "Answer: (A)", "Answer: Option A", "(A) cat"),
        *("A is correct", "A since B fails", "A. No solution", "(A) No, it is not"),
        *(r"\text{(A) } \frac12", "A: I do not know", "(A) A contradiction"),
    ],
)
def test_a_choice_with_words_around_it(text: str) -> None:
    assert answers.choice(text) == "A"


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("The answer is $5$ or $6$.", "$5$ or $6$"),
        ("The answer is $5$ or 6.", "$5$ or 6"),
        ("The answer is $5$, $6$ and $7$.", "$5$, $6$ and $7$"),
        ("The answer is $5$, since $2+3=5$.", "5"),
        ("The answer is $$5$$.", "5"),
        ("The answer is $5$ apples.", "5"),
    ],
)
def test_formulas_beside_each_other_are_one_statement(text: str, stated: str) -> None:
    assert answers.stated_answer(text, letter=False) == stated


@pytest.mark.parametrize(
    "text",
    ["$" + r"\a" * 50_000, "$5" * 50_000, "$" * 100_000, r"Answer\," * 10_000, r"A\," * 30_000],
)
def test_long_statements_and_choices_are_read_in_little_time(text: str) -> None:
    start = time.process_time()
    answers.stated_answer(f"The answer is {text}", letter=False)
    answers.choice(text)
    answers.choice("Answer" + r"\," * 30_000)
    assert time.process_time() - start < 1.0
