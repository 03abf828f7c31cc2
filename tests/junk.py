"""Responses that no model should give: LaTeX-like and binary junk, mutated answers."""

import random
from collections.abc import Iterator, Sequence

ATOMS = (
    *"0123456789",
    *".,:;=+-*/!()[]{}|<>^_&%$#~'\"\\ \n\t",
    *"abcixynABCDEFGO",
    *(
        "\x00",
        "\x7f",
        "\u200b",
        "\u202e",
        "\ud7ff",
        "\ufeff",
        "\U0010ffff",
        "é",
        "∞",
        "½",
        "√",
        "½π",
    ),
    *(r"\frac", r"\frac{1}{", r"\sqrt", r"\sqrt[3]{", r"\pm ", r"\cdot ", r"\left(", r"\right]"),
    *(r"\text{", r"\mathrm{", r"\{", r"\}", r"\cup ", r"\infty ", r"\begin{pmatrix}", r"\\"),
    *(r"\end{pmatrix}", r"\sin ", r"\log_", r"\binom{", r"\sum_{i=1}^{", r"\int_0^", r"\pi "),
    *(
        r"\quad",
        r"\overline{3}",
        r"\textbf{(D)}",
        " or ",
        " and ",
        "Option ",
        "D. ",
        " is ",
        "x=2,y=",
    ),
    *(
        "10^",
        "!!",
        "1e999",
        "0x",
        "__import__('os')",
        "lambda x:",
        "None",
        "nan",
        "inf",
        "e^{",
        "i",
    ),
    *("</think>", "<think>", "answer is ", "Answer: **", "\nA: ", r"\boxed", r"\boxed{", r"\fbox{"),
)
LETTERS = ("A", "D")  # golds of multiple choices
GOLDS = (
    *LETTERS,
    *("7", "016", "-3.5", "1,-2", "x+1", "x=2,y=3", "Evelyn", "52_8", "1:2", "90^\\circ"),
    *(r"\frac{1}{2}", r"\sqrt{2}", r"(-\infty,3)", r"\{1,2\}", r"1\pm\sqrt2", "y=2x+3", "6+9i"),
    *(r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "(3,\\frac{\\pi}{2})", r"\text{all } x", "10^{-7}"),
)


def junk(rng: random.Random, seen: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of gold and response without end; seen: responses that some are mutations of."""
    while True:
        gold = rng.choice(GOLDS)
        draw = rng.random()
        if draw < 0.3:
            text = "".join(rng.choices(ATOMS, k=rng.randrange(40)))
        elif draw < 0.5:
            text = rng.randbytes(rng.randrange(200)).decode("latin-1")
        elif draw < 0.7:
            text = _mutated(rng.choice(seen), rng)
        else:
            text = _mutated(gold, rng)
        yield gold, rf"So \boxed{{{text}}}" if rng.random() < 0.5 else text


def _mutated(text: str, rng: random.Random) -> str:
    """A text with up to four places cut, doubled, or filled with an atom."""
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randrange(4))
        new = rng.choice(("", rng.choice(ATOMS), 2 * text[start:end]))
        text = text[:start] + new + text[end:]
    return text
