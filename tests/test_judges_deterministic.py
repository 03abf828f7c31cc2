"""The deterministic judge: hand-made lists of equations, values against sympy, hostile text."""

import time
from fractions import Fraction

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from exgrpo import chain
from exgrpo.judges.arithmetic import UnreadableError, as_decimal, evaluate
from exgrpo.judges.deterministic import deterministic, from_nowhere, judge
from exgrpo.judges.equations import MOST, equations
from exgrpo.judges.judge import Case
from exgrpo.judges.notation import plain

RIGHT = [
    "3 + 5 = 8",
    "So she has 3 + 5 = 8 apples.",
    "The total is $3 + $5 = $8.",
    r"a total of \$1,250 + \$250 = \$1,500 for rent",
    r"\[ \frac{1}{2} + \frac{1}{3} = \frac{5}{6} \]",
    r"\dfrac12 \cdot 4 = 2",
    r"$2^{10} = 1024$",
    "2**10 = 1024",
    "2^3^2 = 512",
    "5! = 120",
    "10 / 4 = 2.5",
    "10 ÷ 4 = 2.5",
    "7 × 8 = 56",
    "7 x 8 = 56",
    r"10/3 \approx 3.33",
    "10/3 = 3.33",
    "10/3 ≈ 3",
    "10000/3 ≈ 3300",
    "1/8 = 0.13",  # rounded up at the half
    "1/8 = 0.12",  # and down
    r"2/3 = 0.666\ldots",
    "2000 / 75 = 26.666666666666668",  # a machine's
    "33.33 * 3 = 100",
    r"\sqrt{12} = 2\sqrt{3}",
    r"\sqrt{50} \approx 7.07",
    r"\sqrt[3]{27} + 1 = 4",
    r"\pi \cdot 5^2 = 25\pi",
    r"2 \cdot 3.14 = 6.28",
    r"18 \cdot 3.14159 \approx 56.549",  # pi, of which only the digits are rounded
    "20% * 50 = 10",
    "10 / 50 = 20%",
    "10 / 50 * 100 = 20%",
    r"\binom{5}{2} + 1 = 11",
    r"3\frac{1}{2} + 1 = 4.5",  # a mixed number
    r"8\frac{1}{2} = 4 + 0",  # the same as a product
    "2 1/2 + 1/2 = 3",
    "(2)(3)(4) = 24",
    "2(3 + 4) = 14",
    "-3 + 5 = 2",
    "2 - (-3) = 5",
    "Since 6 > 5 + 0 = 5 it holds.",
    r"180^\circ - 60^\circ = 120^\circ",
    "40 crabs + 36 crabs = 76 crabs",
    "(so 4 * 5 = 20)",
    "1. 3 + 4 = 7",
    r"\begin{align*} 2 + 2 &= 4 \\ &= 8 / 2 \end{align*}",
    r"= 4\cdot2=\\boxed{8}",  # backslashes escaped twice
    r"3{,}000 + 1 = 3{,}001",
]
WRONG = [
    "3 + 5 = 9",
    "So she has 3 + 5 = 9 apples.",
    "a total of 3 + 5 = 9",
    r"\frac{1}{2} + \frac{1}{3} = \frac{2}{5}",
    "10/3 = 3.34",
    "10/3 = 3",
    "2/3 ≈ 0.68",
    "130,000*.15 = 195,000",
    r"\sqrt{242} = 11",
    "2 * 3 * 4 = 6 * 4 = 25",
    "2^10 = 1000",
    "20% * 50 = 11",
    "40 crabs + 36 crabs = 77 crabs",
    r"3\frac{1}{2} + 1 = 5",
    r"7 \times 8 = \boxed{54}",
    "(so 4 * 5 = 21)",
    "(1 + 2 = 4",
]
NOT_CHECKED = [
    "x = 3",
    "x + 3 = 5",
    "3x = 9 + 1",
    "2a + 3 = 7",
    "f(2) = 4 + 1",
    "10 = 2x",
    "x = 3 = 3",
    "day 3 = 1 + 1",
    "17 / 5 = 3 remainder 2",
    "17 / 5 = 3 R 2",
    "3 * 5 = 1 mod 7",
    r"3 \cdot 5 = 1 \pmod{7}",
    "Working modulo 7: 3 * 5 = 1",
    "101_2 + 1_2 = 110_2",
    "In base 2, 1 + 1 = 10.",
    "1 hour + 30 minutes = 90 minutes",
    "half of 3 + 5 = 4",
    "20% of 50 + 10 = 20",
    "3 * 12 = 3 dozen",
    "sin 30 + 1 = 1.5",
    "gcd(12, 18) + 1 = 7",
    "12:30 + 1:00 = 13:30",
    "(1, 2) + (3, 4) = (4, 6)",
    r"\begin{pmatrix} 1 - 2 \\ 3 + 4 \end{pmatrix} = \begin{pmatrix} 5 \\ 1 + 1 \end{pmatrix}",
    r"\frac{\theta}{360} * 4 = \frac{5}{4}",
    "56 * 2 = 4 : 2",
    r"2/3 * 100 = 66.\overline{6}",
    "1 + 2 + ... + 10 = 54",
    "6/2(1+2) = 1",  # opinions differ
    "Is 2 + 2 = 5? No, that is wrong.",
    "If x = 4 then 4 + 4 = 9, which is not true.",
    "1/0 = 1",
    "9^9^9^9 = 1",
    "10^100000 = 1",
    "99999999! = 1",
]


def verdicts(text: str) -> list[bool | None]:
    return [each.holds for each in equations(text)]


@pytest.mark.parametrize("text", RIGHT)
def test_true_equations_hold(text: str) -> None:
    assert set(verdicts(text)) == {True}


@pytest.mark.parametrize("text", WRONG)
def test_false_equations_are_found(text: str) -> None:
    assert False in verdicts(text)


@pytest.mark.parametrize("text", NOT_CHECKED)
def test_what_is_no_equation_of_numbers_is_left_alone(text: str) -> None:
    assert set(verdicts(text)) <= {None}


def test_each_link_of_a_chain_is_an_equation_of_its_own() -> None:
    found = list(equations("x = 2 * 3 * 4 = 6 * 4 = 25"))
    assert [(each.text, each.holds) for each in found] == [
        ("2 * 3 * 4 = 6 * 4", True),
        ("6 * 4 = 25", False),
    ]


# --- Values, against sympy ------------------------------------------------------------------------


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, str, sympy.Expr]:
    """An expression in LaTeX, in plain text, and as sympy reads it."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.integers(0, 3)):
            number = draw(st.integers(0, 5000))
            written = f"{number:,}" if draw(st.booleans()) else str(number)
            return written.replace(",", "{,}"), written, sympy.Integer(number)
        places, digits = draw(st.integers(1, 3)), draw(st.integers(0, 9999))
        whole = f"{digits // 10**places}.{digits % 10**places:0{places}d}"
        return whole, whole, sympy.Rational(digits, 10**places)
    inner = expressions(depth=depth - 1)
    latex, written, value = draw(inner)
    kind = draw(st.sampled_from(["+", "-", "*", "/", "frac", "^", "root", "minus"]))
    if kind == "^":
        power = draw(st.integers(0, 3))
        return f"({latex})^{{{power}}}", f"({written})**{power}", value**power
    if kind == "root":
        return rf"\sqrt{{{latex}}}", f"√({written})", sympy.sqrt(value)
    if kind == "minus":
        return f"(-({latex}))", f"(-({written}))", -value
    other_latex, other_written, other = draw(inner)
    times = draw(st.sampled_from([("\\times ", "×"), ("\\cdot ", "*"), ("\\cdot ", "·")]))
    if kind == "*":
        joined = f"({latex}){times[0]}({other_latex})", f"({written}) {times[1]} ({other_written})"
        return (*joined, value * other)
    if kind in ("/", "frac"):
        below = f"(({other_written}) + 1)"
        return (
            rf"\frac{{{latex}}}{{({other_latex})+1}}",
            f"({written}) / {below}",
            value / (other + 1),
        )
    sign = 1 if kind == "+" else -1
    sides = f"({latex}) {kind} ({other_latex})", f"({written}) {kind} ({other_written})"
    return (*sides, value + sign * other)


@settings(max_examples=150, deadline=None)
@given(expressions())
def test_a_value_is_that_of_sympy(expression: tuple[str, str, sympy.Expr]) -> None:
    latex, written, value = expression
    for text in (latex, written):
        try:
            ours = Fraction(as_decimal(evaluate(plain(text)).value))
        except UnreadableError as error:  # what is said of it must be so
            reason = str(error)
            assert (
                "root" in reason or not value.is_finite or "too l" in reason or "nested" in reason
            )
            continue
        gap = abs(sympy.N(value, 80) - sympy.Rational(ours.numerator, ours.denominator))
        assert gap <= max(1, abs(sympy.N(value, 80))) * sympy.Rational(1, 10**40)


FRAMES = [
    "{}",
    "So {}.",
    "The total is {}, which is all.",
    r"\[ {} \]",
    "$${}$$",
    "We get ${}$ in the end",
    "(because {})",
    "Therefore x = {}.\nThe next line.",
    "- {}\n",
]


@settings(max_examples=150, deadline=None)
@given(expressions(depth=2), st.sampled_from(FRAMES), st.booleans(), st.integers(0, 6))
def test_true_arithmetic_is_never_called_false(
    expression: tuple[str, str, sympy.Expr], frame: str, in_latex: bool, places: int
) -> None:
    latex, written, value = expression
    if not value.is_real or not value.is_finite or abs(value) > 10**12:
        return
    if value.is_Integer:
        result, sign = str(value), "="
    elif value.is_Rational and places == 0:
        result = rf"\frac{{{value.p}}}{{{value.q}}}" if in_latex else f"{value.p}/{value.q}"
        sign = "="
    else:
        result = f"{float(sympy.N(value, 60).round(places + 1)):.{places + 1}f}"
        sign = r"\approx" if in_latex else "≈"
    text = frame.format(f"{latex if in_latex else written} {sign} {result}")
    assert False not in verdicts(text)


# --- The judge ------------------------------------------------------------------------------------


def say(response: str, question: str = "How much?") -> bool | None:
    return judge(Case(question, "8", response)).valid


def test_a_verdict_needs_an_equation_or_a_fault() -> None:
    assert say(r"3 + 5 = 8, so \boxed{8}") is True
    assert say(r"By symmetry it is \boxed{x}") is None
    assert say(r"3 + 5 = 9, so \boxed{8}") is False
    assert "3 + 5 = 9" in judge(Case("", "", "3 + 5 = 9")).reason


def test_repetition_is_of_words() -> None:
    assert say("I think that it is so. Let me check again. " * 4) is False
    assert say(r"3^2 = 9, so 9 \times 10 \times 10 \times 10 \times 10 \times 10 \times 10") is True
    assert say("2 + 2 = 4\n" + "-" * 200) is True


@pytest.mark.parametrize(
    ("response", "flagged"),
    [
        (r"It cannot be said without more. The answer is: $\boxed{17}$", True),
        (r"The area is 17, as said. " + "Nothing else is known here. " * 8 + r"\boxed{17}", False),
        (r"The sum is $10 + 7 = \boxed{17}$", False),
        (r"x = \boxed{17}", False),
        (r"There are three of them in all. " + "Let us see. " * 20 + r"So \boxed{3}", False),
        (r"The answer is \boxed{\text{yes}}", False),
        ("no box at all, 17", False),
    ],
)
def test_an_answer_from_nowhere(response: str, flagged: bool) -> None:
    assert from_nowhere(response) is flagged


def test_a_chain_is_judged_exactly() -> None:
    question = "7+5*3-2="
    assert say(chain.explain(question), question) is True  # modulo 10: 7+5=2
    assert say(r"7+5=2;2*3=7;7-2=5\boxed{4}", question) is False
    assert say(r"\boxed{4}", question) is False


HOSTILE = {
    "tower": "9^9^9^9^9^9 = 3",
    "power": "(" * 25 + "9" + ")^999" * 25 + " = 3",
    "factorials": "100!!!!!! = 3",
    "nested": "(" * 20_000 + "1" + ")" * 20_000 + " + 1 = 2",
    "digits": "1" * 50_000 + " + 1 = 2",
    "relations": "=" * 20_000,
    "equations": "1+1=2 " * 10_000,
    "sums": "+1" * 25_000 + "=3",
    "roots": r"\sqrt" * 10_000 + "4 = 2",
    "braces": "{" * 10_000 + "=" + "}" * 10_000,
    "spaces": "3 " + " " * 50_000 + "= 3",
    "lines": "3\n" + "\\\\\n" * 20_000 + "= 3",
    "units": "4 crabs + " * 5_000 + "= 4 crabs",
    "boxes": r"\boxed" * 10_000,
    "texts": r"\text{" * 10_000,
    "notes": "<<" * 25_000,
    "big roots": r"\sqrt[63]{" + "7" * 300 + "} = 3",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends_soon(name: str) -> None:
    began = time.process_time()
    deterministic().judge(Case("q", "g", HOSTILE[name]))
    assert time.process_time() - began < 3.0


def test_only_so_many_equations_are_looked_at() -> None:
    assert len(verdicts("1 + 1 = 2. " * (MOST + 10))) == MOST


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.text(max_size=300),
        st.lists(
            st.sampled_from(
                [
                    *"0123456789+-*/^!%(){}[]=≈.,:; \n$\\&",
                    r"\frac",
                    r"\sqrt",
                    "\\pi",
                    "of",
                    "x",
                    "…",
                ]
            ),
            max_size=80,
        ).map("".join),
    )
)
def test_any_text_is_judged(text: str) -> None:
    assert judge(Case(text, text, text)).valid in (True, False, None)
