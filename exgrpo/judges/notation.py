r"""Prose with LaTeX, Markdown and Unicode in one plain notation for arithmetic."""

import re

from exgrpo.judges.arithmetic import NUMBER

_CHARACTERS = str.maketrans(
    {
        "−": "-", "–": "-", "﹣": "-", "－": "-", "×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/",
        "⁄": "/", "π": r"\pi ", "²": "^2", "³": "^3", "½": r"\frac{1}{2}", "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "√": r"\sqrt ", "≈": "≈",
        "≅": "≈", "→": ";", "⇒": ";", "⟹": ";", "，": ",", "：": ":", "（": "(", "）": ")", "°": "",
        "\xa0": " ", "\u2009": " ", "\u202f": " ", "€": "", "£": "", "＝": "=", "•": "-", "∴": ";",
    }
)  # fmt: skip
_REWRITES = [
    (re.compile(pattern, re.M), new)
    for pattern, new in (
        (r"<<[^<>\n]*>>", ""),  # notes of a calculator
        (r"(?<!\\)\\\\(?=(?:[dtc]?frac|cdot|times|boxed|sqrt|pi|text)(?![a-zA-Z]))", r"\\"),
        (r"\\(?:left|right|[bB]igg?[lr]?|(?:display|text)style)(?![a-zA-Z])", ""),
        (r"\\(?:boldsymbol|boxed|fbox)(?![a-zA-Z])", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:text(?:rm|bf)?|mbox|math(?:rm|bf|it)|operatorname)\s*\{([^{}]*)\}", r" \1 "),
        (r"\{,\}|,\\!", ","),
        (r"(?<!\\)\\[,:!> ]", " "),
        (r"~", " "),
        (r"(?<!\\)\\[;()\[\]]|\$\$", " "),
        # Not of a matrix, whose lines are no equations.
        (r"\\(?:begin|end)\{(?:align|aligned|equation|gather|gathered|split)\*?\}", " "),
        (r"\\\$|\$", ""),
        (r"\\%|\bpercent\b", "%"),
        (r"\^\s*(?:\\circ(?![a-zA-Z])|\{\s*\\circ\s*\})|\\degree(?![a-zA-Z])", ""),
        (r"\\(?:cdot|times|ast)(?![a-zA-Z])", "*"),
        (r"\\div(?![a-zA-Z])", "/"),
        (r"\\(?:approx|simeq|doteq|thickapprox|cong)(?![a-zA-Z])", "≈"),
        (r"\\(?:[lcd]?dots)(?![a-zA-Z])|\.{3}", "…"),
        (r"\\(?:implies|(?:[Ll]ong)?[Rr]ightarrow|to|q?quad|therefore)(?![a-zA-Z])|[=-]>", ";"),
        (r"(?<=[\d)}])\s*\*\*\s*(?=[\d({-])", "^"),
        (r"\*\*|__", ""),
        (r"(?<=\d)\s*[xX]\s*(?=\d)", "*"),
        (r"&", " "),
        (r"(?<![\s\\])(?:\\\\|\s)+(?=[=≈])", " "),  # a chain goes on in the next line
        (r"\\\\(?:\[[^\]\n]*\])?", "\n"),
        (r"^[ \t]*(?:[-*+>]|#+|\(?\d{1,2}[.)])[ \t]+(?![-+*/^=≈])", ""),  # list labels
    )
]  # fmt: skip
# "40 crabs + 36 crabs = 76 crabs": one unit everywhere may go.
_ONE_UNIT = re.compile(
    rf"(?<![\d.,])(?:{NUMBER})\s+([a-z]{{3,20}}?)s?(?:\s*[-+]\s*(?:{NUMBER})\s+\1s?\b)+"
    rf"(?=\s*=\s*(?:{NUMBER})\s+\1s?\b)"
)
_LETTERS = re.compile("[a-z]+")


def plain(text: str) -> str:
    """The text with one notation for signs, without the decoration of TeX and Markdown."""
    text = text.translate(_CHARACTERS)
    for pattern, new in _REWRITES:
        text = pattern.sub(new, text)
    return _ONE_UNIT.sub(lambda sum_: _LETTERS.sub("", sum_[0]), text)
