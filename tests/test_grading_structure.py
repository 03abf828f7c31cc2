"""Rewards that hang on structure, words, names and the points at which formulas are compared."""

import json
import time
from pathlib import Path

import pytest
from judged import misjudged
from pydantic import ValidationError
from typer.testing import CliRunner

from exgrpo import equality, normal_form
from exgrpo.grading import Grader, grade
from exgrpo.question_settings import Grading
from pipeline.cli import app
from pipeline.grade import grade_file

# What is shown: answers equal to their golds, and answers that are not.
PAIRS = {
    "Signs count in words, too.": (
        [
            *(("x+1", r"\text{1+x}"), (r"\text{No}", "no"), ("ABC", r"\text{ABC}")),
            *((r"\text{right-angled}", r"\text{Right angled}"), (r"\text{♥}", "♥")),
        ],
        [
            *(("x+y", r"\text{x-y}"), ("a+b", r"\text{a/b}"), ("x", r"\mathrm{-x}")),
            *(("-x", r"\text{x}"), ("a>b", r"\mathrm{a<b}"), (">", r"\text{<}")),
            *((r"\text{+}", r"\text{-}"), (r"\text{p → q}", "p ← q"), (r"\text{A+}", r"\text{A-}")),
            *((r"\text{♥}", r"\text{♠}"), ("5", '"-5"'), ("n", r"\text{n!}")),
            *(("x y", r"\text{x-y}"), ("R", r"\text{r}"), (r"\text{cat}", "c-a-t")),
        ],
    ),
    "Letters that spell something are no product.": (
        [("ab", "ba"), ("xyz", r"x\cdot z\cdot y"), ("abc", "a b c"), ("kA", "Ak")],
        [
            *(("BAC", "ABC"), ("HTH", "HHT"), ("RLR", "RRL"), ("cat", "act"), ("no", "on")),
            *(("AB", "BA"), ("ABC_{16}", "BAC_{16}"), (r"\angle ABC", r"\angle BAC")),
        ],
    ),
    "Equations are the same where their differences are proportional.": (
        [
            *(("x^2+y^2=1", "1-x^2=y^2"), ("2x+3y=6", r"y=2-\frac23x"), ("12x=5y", "y=2.4x")),
            *((r"x<\frac13", "3x<1"), ("y<2x", "2x-y>0"), ("x>-1", "-x<1")),
        ],
        [
            *(("x^2+y^2=1", "12x=5y"), ("x^2+y^2=1", r"y=\frac{12}{5}x")),
            *(("x^2+y^2=1", "x^3+xy^2=x"), ("x^2+y^2=1", "(x^2+y^2-1)(x+y)=0")),
            *(("y=12x/5", "x^2+y^2=1"), ("y=x", "y^2=x^2"), ("y=|x-70|", "y=x-70")),
            (r"\frac{x^2}{25}+\frac{y^2}{144}=\frac{2}{169}", "12x=5y"),
            *((r"x<\frac13", r"y<\frac13"), (r"x<\frac13", r"3x\le 1"), (r"x<\frac13", "-3x<1")),
        ],
    ),
    "Formulas are compared on all sides of what turns them.": (
        [
            *(("|x-50|", r"\sqrt{(50-x)^2}"), (r"\sqrt{xy}", r"\sqrt x\sqrt y")),
            *((r"2^{2^n}", "4^{2^{n-1}}"), (r"\ln(x^2)", r"2\ln x"), (r"|x-y|", "|y-x|")),
        ],
        [
            *(("|x-50|", "50-x"), ("50-x", r"\sqrt{(x-50)^2}"), ("|x+50|", "x+50")),
            *((r"\max(x,100)", "100"), (r"\sqrt{x(1-x)}", "0"), ("|x-5|+|x-6|", "|2x-11|")),
            *(("|x^3-1000|", "1000-x^3"), ("|x-y-70|", "x-y-70"), (r"\sqrt{-x^2}", "0")),
        ],
    ),
    "Several signs have all their values, unless one is turned round.": (
        [
            *((r"\pm1\pm i", "1+i,1-i,-1+i,-1-i"), (r"\pm1\mp2", "1,-1")),
            (r"(\pm1,2)", "(1,2),(-1,2)"),
        ],
        [(r"\pm1\pm i", "1+i,-1-i"), (r"\pm1\pm2", "3,-3"), (r"\pm1\mp2", "1,-1,3,-3")],
    ),
    "What is between brackets is no side of an equation.": (
        [
            *(("3", r"\sum_{k=1}^{2}k"), ("6", r"\prod_{k=1}^{3}k"), ("6", r"S=\sum_{k=1}^{3}k=6")),
            *((r"\frac{n(n+1)}2", r"\sum_{k=1}^{n}k"), (r"\frac12", r"P(X=3)=\frac12")),
        ],
        [("5", r"\sum_{k=1}^{2}k"), (r"\sum_{k=1}^{n}k", "n^2"), ("6", r"\sum_{k=1}^{3}k=7")],
    ),
    "Odd roots are real.": (
        [
            *(("-2", r"\sqrt[3]{-8}"), (r"-\sqrt[3]{2}", r"\sqrt[3]{-2}"), (r"\sqrt[3]{x^3}", "x")),
            *((r"\sqrt[3]{x}", r"x^{1/3}"), (r"\sqrt[3]{x^2}", "(-x)^{2/3}")),
        ],
        [("2", r"\sqrt[3]{-8}"), ("-2", "(-8)^{1/3}"), (r"\sqrt[4]{x^4}", "x")],
    ),
    "A name may stand before a value, an equation to be solved may not.": (
        [
            *(("5", rf"{name}=5") for name in (r"\alpha+\beta", "x_1+x_2", "V(4)", "y(2)", "|S|")),
            *(("5", rf"{name}=5") for name in (r"\|v\|", r"\bar{x}", r"\Pr(X)", r"\sin A")),
            *(("5", rf"{name}=5") for name in (r"\det A", r"\dim V")),
            *(("5", "5=x"), ("f(x)=2x", "y=2x"), ("2x", "f^{-1}(x)=2x"), ("f'(x)=2x", "2x")),
        ],
        [
            *(("5", f"{side}=5") for side in ("2V", "|x|", r"\sin x", "x(3)", "e^x", "2x_1")),
            *(("5", f"{side}=5") for side in (r"2\alpha", r"\alpha^2")),
            *(("5", "5=2x"), ("5", "5=x=6"), ("f(x)=2x", "f'(x)=2x"), ("1+2i", r"\bar{z}=1+2i")),
            *(("f(x)=2x", "f^{-1}(x)=2x"), ("V(4)=5", "V(5)=5"), ("y=2x", "y'=2x")),
        ],
    ),
    "Other ways to write a set, a pair, a matrix, a number.": (
        [
            *((r"(1,\infty)", r"\{x \mid x>1\}"), ("[1,4]", r"\{x: 1\le x\le 4\}")),
            *((r"\{1,2,3\}", form) for form in ("{1,2,3}", "1;2;3", r"\lbrace1,2,3\rbrace")),
            *(("(1,2)", "x=1, y=2"), ("(1,2)", "y=2, x=1"), ("(1,2)", "(1;2)")),
            *(("3+4i", r"3+4\text{i}"), (r"\pi", "3.1415926535897932"), ("3", r"\{3\}")),
            (
                r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
                r"\frac12\begin{pmatrix}2&4\\6&8\end{pmatrix}",
            ),
        ],
        [
            *(("(1,4)", "(1,,4)"), ("(1,4)", "(1,4,)"), ("1,2", "1,,2"), ("(1,2)", "1;2")),
            *((r"(1,\infty)", r"(1,\infty]"), (r"(-\infty,1/3)", r"[-\infty,1/3)")),
            *(("(1,2)", "x=2,y=1"), ("(1,2)", "x=1,x=2"), (r"\emptyset", r"\{\emptyset\}")),
            *((r"\pi", "3.14159265358980"), (r"(1,\infty)", r"\{x \mid x\ge 1\}")),
            (r"\begin{pmatrix}1\\2\end{pmatrix}", r"-\begin{pmatrix}1\\2\end{pmatrix}"),
        ],
    ),
}


@pytest.mark.parametrize("shown", PAIRS)
@pytest.mark.parametrize("right", [True, False])
def test_rewards(shown: str, right: bool, grader: Grader) -> None:
    pairs = PAIRS[shown][0 if right else 1]
    assert not misjudged(grader, pairs, right)


@pytest.mark.parametrize(
    ("gold", "answer", "reason"),
    [
        ("x+1", "1+x", "algebra"),
        ("x+1", "1-x", "algebra"),
        ("x+1", r"\frac{x", "no answer"),
        ("x+1", "x+", "cannot be read"),
        ("x=1", "x=+-", "cannot be read"),
        ("(1,3]", r"1<x\le 3", "math-verify"),
        ("5", "6", "exact"),
    ],
)
def test_the_reason_tells_what_decided(gold: str, answer: str, reason: str) -> None:
    assert grade(gold, rf"\boxed{{{answer}}}").reason == reason


def test_the_command_counts_answers_that_nobody_could_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"gold": "x+1", "response": rf"\boxed{{{answer}}}"} for answer in ("x+", "x-", "x")]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    grade_file(tmp_path / "answers.jsonl", None, "boxed", 1, 5.0)
    assert "wrong, since no mathematics could be read: 2 (cannot be read 2)" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("seconds", [float("inf"), 1e12])
def test_no_answer_takes_longer_than_an_hour(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"less than or equal to 3600|finite"):
        Grading(time_limit=seconds)
    told = CliRunner().invoke(app, ["grade", str(tmp_path), "--time-limit", str(seconds)])
    assert told.exit_code == 2 and "--time-limit" in told.output


@pytest.mark.parametrize("unit", [r"\pm1", "{", "}", "{}", r"\{x|x>", ";", "x-", "a'", "1=", '"'])
def test_structure_is_read_in_little_time(unit: str) -> None:
    text = unit * (9000 // len(unit))
    start = time.process_time()
    for form in (text, f"({text})", f"{{{text}}}", f'"{text}"', rf"\{{x|{text}\}}", f"x={text}"):
        for tidied in (form, normal_form.tidy(form)):
            equality.equal("(5,x)", tidied, equality.exact)
    assert time.process_time() - start < 1.0
