"""Characters beyond ASCII, one spelling for each: for every reader of an answer.

Full-width letters, styled letters and digits of other scripts become plain ones, raised and
lowered digits, fractions and roots become LaTeX, and what is not seen (marks of direction, blanks
without width) is gone.
"""

import re
import unicodedata

# What the general rules below would read as a plain letter.
_OF_MATHEMATICS = str.maketrans(
    {"º": "°", "˚": "°", "ℓ": r"\ell "}
    | {styled: rf"\mathbb{{{letter}}}" for styled, letter in ("ℝR", "ℚQ", "ℤZ", "ℕN", "ℂC")}
)
_RAISED, _LOWERED = re.compile("[²³¹⁰-ⁿ]+"), re.compile("[₀-ₜ]+")
_FRACTION = re.compile(r"[¼-¾⅐-⅞]|(?<![\w)}⁰-⁹])[²³¹⁰-⁹]+⁄[₀-₉]+")
_ROOT = re.compile(r"√\s*(\d+|\w)?")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def plain(text: str) -> str:
    """A text with its characters in their plain spelling; what has none stays as it is."""
    if text.isascii():
        return text
    text = text.translate(_OF_MATHEMATICS)
    text = _FRACTION.sub(_as_fraction, text)
    text = _RAISED.sub(lambda found: f"^{{{_composed(found[0])}}}", text)
    text = _LOWERED.sub(lambda found: f"_{{{_composed(found[0])}}}", text)
    text = _BEYOND_ASCII.sub(_plain, _composed(text))
    return _ROOT.sub(lambda found: rf"\sqrt{{{found[1]}}}" if found[1] else r"\sqrt", text)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _as_fraction(found: re.Match[str]) -> str:
    upper, lower = _composed(found[0]).split("\N{FRACTION SLASH}")
    return rf"\frac{{{upper}}}{{{lower}}}"


def _plain(found: re.Match[str]) -> str:
    char = found[0]
    if unicodedata.category(char) == "Cf" or char == "\N{VARIATION SELECTOR-16}":
        return ""
    return str(unicodedata.decimal(char, char))
