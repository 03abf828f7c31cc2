r"""Units: signs of currencies before a number, words, `\text{}` and signs behind it.

A unit is any word, so that unknown ones ("apples") count, but for those that can change or hedge
the number (`5 hundred`, `5 or so`) and letters that may be unknowns (`5x`).
"""

import re

from exgrpo.number_words import OTHER_VALUE, is_numeral

_NO_UNITS = frozenset(
    """
    double doubled twice triple tripled halved negative inverse reciprocal infinity bn grand gross
    tens ish undefined factorials binary octal hex hexadecimal permille mille
    never none no nope untrue guess estimate estimated estimates rounded unknown unsure
    impossible invalid extraneous rejected reject eliminated excluded discarded inadmissible
    and not is are was were be isn aren cannot to than more less fewer greater least most else other
    about approximately approx circa around almost nearly roughly maybe perhaps possibly probably
    either neither nor both if unless except but otherwise wrong incorrect false also any
    minimum maximum
    divided multiplied added subtracted power raised root bases modulus
    sin cos tan cot csc log ln exp sqrt frac pi
    """.split()  # noqa: SIM905
) | (OTHER_VALUE - {"times", "pair", "pairs", "percentage", "squared", "cubed"})
_LETTERS_OF_UNITS = frozenset("mgshdlaLhNJWVAKCFT")  # "a" as in "10 a day"

_POWER = r"(?:\s*\^\s*(?:-?\d|\{\s*-?\d\s*\}))?"
# Of a unit in \text{}: no digit but in a power, at least one letter, and no ! or ^ before it.
_WORDS = (
    rf"\\text\{{[\s/(.\"-]*(?:(?:[^\W\d_]|\\(?:mu|Omega)(?![a-zA-Z])){_POWER}"
    rf"(?:[\s./()&\"':;%-]|\\cdot(?![a-zA-Z]))*)+\}}{_POWER}"
)
_FACTORS = rf"(?:\s*(?:{_WORDS}|/|\\cdot(?![a-zA-Z])))+"
_SET_UNIT = re.compile(rf"(?:{_FACTORS}|\s*\\frac\s*\{{{_FACTORS}\s*\}}\s*\{{{_FACTORS}\s*\}})+")
_NUMBER_END = re.compile(r"[\d})!]$|\\pi$")
_COMMAND = re.compile(r"\\(?:text|cdot|frac)")
_PART_OF_WORD = re.compile(r"\\mu\s*|\\(?=Omega)|\}\\text\{")  # \text{hun}\text{dred} is one

_SHORT_UNITS = (
    r"[kcmn]m|[km]g|m[lL]|ft|in|yd|mi|oz|lb|sq|hrs?|mins?|secs?|km/h|mph|m/s|[kMG]?Hz|kW|kWh|kN|kJ"
    r"|k?Pa|[kMG]?eV|[km]V|mA|Rs|(?:[kM]|\\mu ?)?\\Omega|\\mu ?[mgsFACV]"
)
_PLAIN_UNIT = re.compile(
    r"(?P<number>(?:[a-zA-Z] ?= ?)?[-+]?[\d.]+(?:/\d+)?)"
    rf"(?P<unit>(?:\s+[^\W\d_]{{3,}}|\s*(?:{_SHORT_UNITS})(?![a-zA-Z]))(?:[ /][^\W\d_]+)*){_POWER}"
)

_CODES = r"(?:USD|EUR|GBP|JPY|CNY|INR|CAD|AUD|CHF|Rs\.?|\\pounds|\\euro|\\yen)"
_CURRENCY = re.compile(
    rf"^([-+]?)\s*(?:\\text\{{\s*{_CODES}\s*\}}|{_CODES}(?![a-zA-Z]))\s*([-+]?)(?=[\d.]|\\frac)"
)


def without_unit(text: str) -> str:
    """An answer in LaTeX with arguments in braces, less its unit; the same where it has none."""
    text = _CURRENCY.sub(r"\1\2", text, count=1)
    if found := _PLAIN_UNIT.fullmatch(text):
        return found["number"] if _is_unit(found["unit"]) else text
    runs = list(_SET_UNIT.finditer(text))
    if not runs or runs[-1].end() < len(text):
        return text
    unit = runs[-1][0]
    number = text[: runs[-1].start()].rstrip()
    if unit.endswith(("/", "cdot")) or not (_ends_in_number(number) and _is_unit(unit)):
        return text
    return number


def _ends_in_number(text: str) -> bool:
    r"""Whether a number or a formula ends here, not words: `\text{20}` is a number."""
    before, brace, last = text.rpartition("{")
    words = bool(brace) and text.endswith("}") and before.endswith(r"\text")
    return bool(_NUMBER_END.search(text)) and not (words and not last[:-1].rstrip()[-1:].isdigit())


def _is_unit(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", _COMMAND.sub(" ", _PART_OF_WORD.sub("", text)))
    return (
        bool(words)
        and words[0] not in ("squared", "cubed")
        and words != ["a"]
        and not any(word.lower() in _NO_UNITS or is_numeral(word) for word in words)
        and all(len(word) > 1 or word in _LETTERS_OF_UNITS or word > "\x7f" for word in words)
    )
