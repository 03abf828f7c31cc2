"""Names before a value, sets of one, odd roots and steps; and answers made to take long.

A line is a gold and an answer, with `<-` between.
"""

import time

import pytest
from judged import misjudged

from exgrpo import grading
from exgrpo.grading import Answer, Grader

RIGHT = r"""
\sqrt[11]{2} <- 2^{1/11}
x^{1/15} <- \sqrt[15]{x}
x^{\frac1{2005}} <- \sqrt[2005]{x}
-2 <- \sqrt[11]{-2048}
\{x: x>1\} <- \{y: y>1\}
5 <- a+b=5
5 <- AB+BC=5
x=5 <- x=a+b=5
f(x)=x+1 <- y=x+1
f(x)=x+1 <- g(x)=1+x
x=5 <- 2x=10
5 <- \text{Cost}=5
5 <- \text{Cost}+\text{Tax}=5
\tan A=2 <- \tan B=2
\tan A=2 <- 2
2 <- \tan A=2
(1,2) <- x=y=f(x)=(1,2)
\{1,2\} <- 1,2
1,2 <- \{1,2\}
(1,\infty) <- x\in(1,\infty)
\frac{\pi r^2}2 <- A_1+A_2=\frac{\pi r^2}2
V=\pi r^2 h <- \pi r^2h
x+1 <- x+1=y
f(n)=f(n-1)+2 <- f(n)=2+f(n-1)
\{\{1\},\{2\}\} <- \{1\},\{2\}
[1,2] <- x\in[1,2]
\{1,2\} <- x\in\{1,2\}
\emptyset <- x\in\emptyset
5 <- \{5\}
\{5\} <- 5
\lfloor n/5\rfloor <- \lfloor\frac{n}{5}\rfloor
\lceil n/1000\rceil <- \lfloor (n+999)/1000\rfloor
\lfloor x\rfloor+1 <- 1+\lfloor x\rfloor
5 <- 5=x
3 <- \text{No. of apples}=3
\angle ABC <- \angle{ABC}
2x <- f(g(x))=2x
2x<1 <- x<\frac12
"""
WRONG = r"""
x=5 <- x+y=5
x=5 <- xy=5
x=5 <- x/y=5
x=5 <- 2x+y=5
y=2x+1 <- x-y=2x+1
y=2x+1 <- xy=2x+1
y=2x+1 <- y/x=2x+1
y=x+1 <- \frac{dy}{dx}=x+1
y=x+1 <- x^2+y^2=x+1
f(x)=x+1 <- -f(x)=x+1
f(x)=x+1 <- 2f(x)=x+1
f(x)=x+1 <- f(x)^2=x+1
f(x)=x+1 <- f^2(x)=x+1
f(x)=x+1 <- f(f(x))=x+1
f(x)=x+1 <- f^{(3)}(x)=x+1
f(x)=x+1 <- \frac1{f(x)}=x+1
f(x)=x+1 <- \sqrt{f(x)}=x+1
f(x)=x+1 <- \int f(x)dx=x+1
x+1 <- xy=x+1
x+1 <- x=x+1
2x <- x=2x
5 <- \text{Cost}-1=5
5 <- 2\text{Cost}=5
5 <- \frac1{\text{Cost}}=5
5 <- 2AB=5
5 <- 2Cost=5
\tan A=2 <- \sin A=2
\tan A=2 <- \cot A=2
\{1,2\} <- \{1\},\{2\}
\{5\} <- \{\{5\}\}
(1,\infty) <- \{1,\infty\}
5 <- x\in5
\lfloor n/1000\rfloor <- 0
\lfloor n/5000\rfloor <- 0
x^{\Xi_3} <- \sqrt[3]{x}
x^{\frac1{\Xi_3}} <- \sqrt[3]{x}
x=2x <- x=x+1
1,2 <- \{\{1,2\}\}
x+1 <- x+1=x
x+1 <- x+1=2y
2x <- 2x=xy
x+2 <- x+1=y
5 <- 5=e
"""


@pytest.mark.parametrize(("lines", "right"), [(RIGHT, True), (WRONG, False)])
def test_rewards(lines: str, right: bool, grader: Grader) -> None:
    pairs = [line.split(" <- ") for line in lines.strip().splitlines()]
    assert not misjudged(grader, pairs, right)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("2", "x=" + "{" * 4900 + "2" + "}" * 4900),
        (r"\{1,2\}", r"\{1," + "{" * 4900 + "3" + "}" * 4900 + r"\}"),
        ("7,8,9", "f(x)=" * 1990 + "2"),
        ("(1,2)", "f(x)={" * 1200 + "2" + "}" * 1200),
        ("2", "x={" * 2400 + "2" + "}" * 2400),
        (
            r"\{" + ",".join(f"(x_{each}+1,{each})" for each in range(18)) + r"\}",
            r"\{" + ",".join(f"(x+{'1' * 36}{each},{'y' * 40})" for each in range(90)) + r"\}",
        ),
    ],
)
def test_no_answer_holds_up_the_grader(gold: str, answer: str) -> None:
    start = time.process_time()
    grading._settle(Answer(gold, rf"\boxed{{{answer}}}"))
    assert time.process_time() - start < 0.5
