r"""The normal form of an answer: units, spacing, style and thousands separators are gone.

Choices where opinions differ: a percent sign is a unit (28% is 28, and 50% is not 0.5); a degree
sign is one too, but behind a sine it makes an angle of 180ths of pi; words behind a number are a
unit only if they cannot change or hedge it (`5 apples` is 5, `5 hundred` and `5 or so` are not).
"""

import re

from exgrpo.number_words import OTHER_VALUE

LONGEST_ANSWER = 10_000  # characters; a longer answer is wrong unless it is the same text

_CHARACTERS = str.maketrans(
    {
        "−": "-", "–": "-", "﹣": "-", "－": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ",
        "÷": "/", "⁄": "/", "°": r"^\circ ", "π": r"\pi ", "∞": r"\infty ", "∪": r"\cup ",
        "∩": r"\cap ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "∓": r"\mp ",
        "∈": r"\in ", "∅": r"\emptyset ", "θ": r"\theta ", "²": "^2", "³": "^3",
        "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}", "，": ",", "：": ":", "（": "(", "）": ")", "\xa0": " ", "\u2009": " ",
        "\u202f": " ", "€": "", "£": "", "…": "...", "’": "'", "′": "'",
    }
)  # fmt: skip

# Words of a unit are any but these, so that unknown ones ("apples") count.
_NO_UNITS = frozenset(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    hundreds thousands millions billions trillions third quarter fourth fourths fifth fifths sixths
    sevenths eighths ninths tenth hundredth thousandths
    double doubled twice triple halved negative bn grand gross tens ish octal undefined
    never none nope untrue guess
    and not is are was were be isn aren to than more less fewer greater least most else other about
    approximately approx around almost nearly roughly maybe perhaps possibly probably either neither
    nor both if unless except but otherwise wrong incorrect false also any
    divided multiplied added subtracted power raised root bases modulus
    sin cos tan cot csc log ln exp sqrt frac pi
    """.split()  # noqa: SIM905
) | (OTHER_VALUE - {"times", "pair", "pairs", "percentage", "squared", "cubed"})
_LETTERS_OF_UNITS = frozenset("mgshdlaLhNJWVAKCFT")  # "a" as in "10 a day"
_UNIT_TEXT = re.compile(r"(?:[^\d=+<>*?,\\]|\^\d)*")
_SHORT_UNITS = r"[kcmn]m|[km]g|ml|ft|in|yd|mi|oz|lb|sq|hr|km/h|mph|m/s"


def _without_unit(found: re.Match[str]) -> str:
    """What stands before the words of a unit: groups `number` and `unit`; all if it is none."""
    words = re.findall(r"[a-zA-Z]+", found["unit"])
    before, _, last = found.string[: found.start()].rpartition("{")
    named = (
        (last[-2:-1].isdigit() or not before.endswith(r"\text"))  # not words behind words
        and _UNIT_TEXT.fullmatch(found["unit"])
        and not _NO_UNITS.intersection(word.lower() for word in words)
        and all(len(word) > 1 or word in _LETTERS_OF_UNITS for word in words)
        and words[:1] not in (["squared"], ["cubed"])
    )
    return found["number"] if named else found[0]


_THOUSANDS = r"(?<![\d,([{])([1-9]\d{0,2}(?:,\d{3})+)(?![\d,)\]}])"
_PUNCTUATION = r"(?<![\s.,;:。，])[\s.,;:。，]+$"  # the look-behind keeps it linear
_REWRITES = [
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\s+", " "),
        (r"√\s*(\d+|\w)", r"\\sqrt{\1}"),
        (r"√", r"\\sqrt"),
        (r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])\.?", ""),
        (r"\\(?:displaystyle|textstyle|limits|rm|bf)(?![a-zA-Z])", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\math(?:bf|it|rm)\s*\{\s*([eixyzn])\s*\}", r" \1 "),  # a letter of mathematics
        (r"\\(?:mbox|textrm|textbf|textit|mathrm|mathbf|mathit|textnormal)\s*\{", r"\\text{"),
        (r"^\\(?:boldsymbol|bm)\s*\{([^{}]*)\}$", r"\1"),
        (r"\\(?:boldsymbol|bm)(?![a-zA-Z])", ""),
        (r"\\varnothing(?![a-zA-Z])|^\\\{\s*\\\}$", r"\\emptyset "),
        (r"\\\\\[[\d.]+ ?(?:pt|em|ex|mm|cm)\]", r"\\\\"),  # space between rows
        (r"\{:\}", ":"),
        (r"\{,\}|,\\!(?=\d{3})", ""),  # the thousands separator of TeX
        (r"\.\.\.|\\[cl]?dots(?![a-zA-Z])", r"\\ldots "),
        (r"(?<!\\)\\[,;:!> ]|~|\\q?quad(?![a-zA-Z])", " "),
        (r"(?<=\d)\s+(?=\d{3}(?![\d/]))", ""),  # 1 000
        (r"\\?\$|(?<!\\)\\[()\[\]]|\*\*", ""),
        (r"\^\s*(?:\\circ(?![a-zA-Z])|\{\s*\\circ\s*\})|\\degree(?![a-zA-Z])", r"\\degree "),
        (
            r"(\\(?:sin|cos|tan|cot|sec|csc)(?:\^(?:\w|\{\w+\}))? ?[({]? ?)"
            r"(-?\d+(?:\.\d+)?) ?\\degree",
            r"\1(\\frac{\2}{180}\\pi)",
        ),
        (r"\\degree\s*(?:[CFK](?![a-zA-Z]))?", " "),
        (r"\\?%|(?<=[\d}\s])percent\b|\\text\{\s*percent\s*\}", " "),
        (r"\\times(?![a-zA-Z])", r"\\cdot "),
        (r"\\leq(?![a-zA-Z])|<=", r"\\le "),
        (r"\\geq(?![a-zA-Z])|>=", r"\\ge "),
        (r"\\neq(?![a-zA-Z])", r"\\ne "),
        (r",?\s*(?:\\text\{\s*,?\s*(?i:and|or)\s*\}|(?<=\W)(?i:and|or)(?=\W))\s*", ","),
        (_PUNCTUATION, ""),
        (_THOUSANDS, lambda found: found[1].replace(",", "")),
        (
            r"(?:(?<=\\frac\{)|(?<=\\sqrt\{)|(?<=\}\{))([1-9]\d{0,2}(?:,\d{3})+)(?=\})",
            lambda found: found[1].replace(",", ""),
        ),
        (  # of a clock's time; no unit, for it can differ
            r"(?<=:\d\d)\s*(?:\\text\{\s*)?([apAP])\.?[mM]\.?\s*\}?$",
            lambda found: rf"\mathrm{{{found[1].lower()}m}}",
        ),
        (
            r"(?P<number>(?<=[\d})!])|(?<=\\pi)|(?<=\\pi ))\s*\\text\{(?P<unit>[^{}]*)\}"
            r"(?:\^(?:-?\d|\{-?\d\}))?\s*$",
            _without_unit,
        ),
        (
            r"^(?P<number>(?:[a-zA-Z] ?= ?)?[-+]?[\d.]+(?:/\d+)?)"
            rf"(?P<unit>(?:\s+[a-zA-Z]{{3,}}|\s*(?:{_SHORT_UNITS})(?![a-zA-Z]))(?:[ /][a-zA-Z]+)*)"
            r"(?:\^\d)?$",
            _without_unit,
        ),
        (r"\\frac\s*(\w)", r"\\frac{\1}"),
        (r"(\\frac\{\w+\})\s*(\w)", r"\1{\2}"),
        (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
        # Repeating decimals: 0.1\overline{6}, with a bar or with dots on the first and last digit.
        (r"\\dot\s*\{?(\d)\}?(\d*)\\dot\s*\{?(\d)\}?", r"\\overline{\1\2\3}"),
        (r"\\(?:overline|bar|dot)\s*(?:\{\s*(\d+)\s*\}|(\d))", r"\\overline{\1\2}"),
        (r"([_^])\s*\{(\w)\}(?!\w)", r"\1\2"),
        (r"(\^\d)(?=[a-zA-Z])", r"\1 "),
        (_PUNCTUATION, ""),
        (r"\s+", " "),
        (r"(?<=\W) | (?=\W)", ""),
    )
]
_HALF_OF_DAY = re.compile(r"\\mathrm\{[ap]m\}$")
_ONLY_TEXT = re.compile(r"\\text\{([^{}]*)\}")


def tidy(answer: str, thousands: bool = True) -> str:
    r"""The normal form of an answer. thousands: 100,200 is one number, not two.

    Words set in `\text{}` come back in double quotes, so that they are never read as a product.
    """
    if answer.isdecimal() or len(answer) > LONGEST_ANSWER:
        return answer
    text = answer.translate(_CHARACTERS).strip()
    for pattern, new in _REWRITES:
        if thousands or pattern.pattern != _THOUSANDS:
            text = pattern.sub(new, text).strip()
    if only := _ONLY_TEXT.fullmatch(text):
        words = only[1].strip().rstrip(" .")
        return tidy(words, thousands) if re.search(r"\d", words) else f'"{words}"'
    return text


def tidy_both(gold: str, answer: str) -> tuple[str, str]:
    """The normal forms of two answers.

    `100,200` is a list where the other side, `1, 2`, is one; a.m. counts where both sides tell it.
    """
    forms = tidy(gold), tidy(answer)
    if not all(map(_HALF_OF_DAY.search, forms)):
        forms = _HALF_OF_DAY.sub("", forms[0]), _HALF_OF_DAY.sub("", forms[1])
    if ("," in forms[0]) == ("," in forms[1]):
        return forms
    listed = tidy(gold, thousands=False), tidy(answer, thousands=False)
    return listed if all("," in form for form in listed) else forms
