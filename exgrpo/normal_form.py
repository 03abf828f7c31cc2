r"""The normal form of an answer: units, spacing, style and thousands separators are gone.

Choices where opinions differ: a percent sign is a unit (28% is 28, and 50% is not 0.5); a degree
sign is one too, but behind a sine it makes an angle of 180ths of pi; words behind a number are a
unit only if they cannot change or hedge it (`exgrpo.units`).
"""

import re
from collections.abc import Callable, Sequence

from exgrpo import characters, latex, units

LONGEST_ANSWER = 10_000  # characters; a longer answer is wrong unless it is the same text

_GREEK = """
    αalpha βbeta γgamma δdelta εepsilon ζzeta ηeta θtheta κkappa λlambda μmu νnu ξxi πpi ρrho σsigma
    τtau φphi χchi ψpsi ωomega ΓGamma ΔDelta ΘTheta ΛLambda ΣSigma ΦPhi ΨPsi ΩOmega
    """.split()  # noqa: SIM905
_CURRENCIES = "€£¥₹₩₽₺₱฿¢"
_MONEY = re.compile(rf"\\\$|[{_CURRENCIES}]|^[^$]*\$[^$]*$")  # $5, but not $5$
_SIGNS = str.maketrans(
    {
        "−": "-", "–": "-", "‐": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ",
        "∙": r"\cdot ", "÷": "/", "⁄": "/", "∕": "/", "∗": "*", "°": r"^\circ ", "’": "'", "′": "'",
        "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ",
        "⩾": r"\ge ", "≦": r"\le ", "≧": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "∓": r"\mp ",
        "∈": r"\in ", "∅": r"\emptyset ", "∠": r"\angle ",
    }
    | dict.fromkeys(_CURRENCIES, " ")
    | dict.fromkeys("“”„«»", "")
    | {name[0]: rf"\{name[1:]} " for name in _GREEK}
)  # fmt: skip

_Rewrites = list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]


def _compiled(*rewrites: tuple[str, str | Callable[[re.Match[str]], str]]) -> _Rewrites:
    return [(re.compile(pattern), new) for pattern, new in rewrites]


_PUNCTUATION = r"(?<![\s.,;:。，])[\s.,;:。，]+$"  # the look-behind keeps it linear
# Style, spacing and signs of one meaning in one spelling.
_SPELLING = _compiled(
    (r"\s+", " "),
    (r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])\.?", ""),
    (r"\\(?:displaystyle|textstyle|limits|rm|bf)(?![a-zA-Z])", ""),
    (r"\\(?:text)?color\s*\{[^{}]*\}", ""),
    (r"\\(?:[dtc]|nice)frac(?![a-zA-Z])", r"\\frac"),
    (r"\\[dt]binom(?![a-zA-Z])", r"\\binom"),
    (r"\{([^{}]*)\\choose(?![a-zA-Z])([^{}]*)\}", r"\\binom{\1}{\2}"),
    (r"\\lg(?![a-zA-Z])", r"\\log_{10}"),
    (r"\\log\s*_\s*(?:e(?![a-zA-Z])|\{\s*e\s*\})", r"\\ln "),
    (  # a letter of mathematics
        r"\\math(?:bf|it|rm)(?:\s*\{\s*([eixyzn])\s*\}|\s+([eixyzn])(?![a-zA-Z]))",
        r" \1\2 ",
    ),
    (r"\\(?:mbox|textrm|textbf|textit|mathrm|mathbf|mathit|textnormal)(?![a-zA-Z])", r"\\text"),
    (r"^\\(?:boldsymbol|bm|underline)\s*\{([^{}]*)\}$", r"\1"),
    (r"\\(?:boldsymbol|bm)(?![a-zA-Z])", ""),
    (r"\\varnothing(?![a-zA-Z])|^\\\{\s*\\\}$", r"\\emptyset "),
    (r"\\\\\[[\d.]+ ?(?:pt|em|ex|mm|cm)\]", r"\\\\"),  # space between rows
    (r"\{:\}", ":"),
    (  # thousands in TeX, and of Switzerland
        r"(?<![\d.'])(?<!\{,\})[1-9]\d{0,2}"
        r"(?:(?:\{,\}(?:\\[!,])?\d{3})+|(?:,\\! ?\d{3})+|(?:'\d{3})+)(?![\d{'])",
        lambda found: re.sub(r"\D", "", found[0]),
    ),
    (r"(?<![\d.])(?<!\{,\})(\d+)\{,\}(\d+)(?![\d{])", r"\1.\2"),  # a decimal comma in TeX
    (r"\.\.\.|\\[cl]?dots(?![a-zA-Z])", r"\\ldots "),
    (r"(?<!\\)\\[,;:!> ]|~", " "),
    (r"(?<=\d)\s+(?=\d{3}(?![\d/]))", ""),  # 1 000
    (r"\\q?quad(?![a-zA-Z])", " "),  # wider than in any number
    (r"(?:US|AU|CA|HK|NZ)?\\?\$|(?<!\\)\\[()\[\]]|\*\*", ""),
    (r"\^\s*(?:\\circ(?![a-zA-Z])|\{\s*\\circ\s*\})|\\degree(?![a-zA-Z])", r"\\degree "),
    (
        r"(\\(?:sin|cos|tan|cot|sec|csc)(?:\^(?:\w|\{\w+\}))? ?[({]? ?)"
        r"(-?\d+(?:\.\d+)?) ?\\degree",
        r"\1(\\frac{\2}{180}\\pi)",
    ),
    (r"\\degree\s*(?:[CFK](?![a-zA-Z]))?", " "),
    (r"\\?%|(?<=[\d}\s])percent\b|\\text\s*\{\s*percent\s*\}", " "),
    (r"\\text\s*\{\s*\}", ""),
    (r"\\times(?![a-zA-Z])", r"\\cdot "),
    (r"\\leq(?![a-zA-Z])|<=", r"\\le "),
    (r"\\geq(?![a-zA-Z])|>=", r"\\ge "),
    (r"\\neq(?![a-zA-Z])", r"\\ne "),
    (r",?\s*(?:\\text\{\s*,?\s*(?i:and|or)\s*\}|(?<=\W)(?i:and|or)(?=\W))\s*", ", "),
    (_PUNCTUATION, ""),
)
_THOUSANDS = re.compile(r"(?<![\d,([{])([1-9]\d{0,2}(?:,\d{3})+)(?![\d,)\]}])")
_STRUCTURE = _compiled(
    (
        r"(?:(?<=\\frac\{)|(?<=\\sqrt\{)|(?<=\}\{))([1-9]\d{0,2}(?:,\d{3})+)(?=\})",
        lambda found: found[1].replace(",", ""),
    ),
    (  # of a time; no unit, for it can differ
        r"(?:(?<=:\d\d)\s*(?:\\text\{\s*)?|(?<=\d)\s*\\text\{\s*)([apAP])\.?[mM]\.?\s*\}?$",
        lambda found: rf"\mathrm{{{found[1].lower()}m}}",
    ),
    (r"(\d|\))_\s*\{\s*\\text\{\s*(\d+)\s*\}\s*\}", r"\1_{\2}"),  # a base
    (r"^\(([0-9A-Z]+)\)\s*_", r"\1_"),
)
_FORM = _compiled(
    # Repeating decimals: 0.1\overline{6}, with a bar or with dots on the first and last digit.
    (r"\\dot\s*\{?(\d)\}?(\d*)\\dot\s*\{?(\d)\}?", r"\\overline{\1\2\3}"),
    (r"\\(?:overline|bar|dot)\s*(?:\{\s*(\d+)\s*\}|(\d))", r"\\overline{\1\2}"),
    (r"([_^])\s*\{(\w)\}(?!\w)", r"\1\2"),
    (r"(\^\d)(?=[a-zA-Z])", r"\1 "),
    (_PUNCTUATION, ""),
    (r"(?<=\W) | (?=\W)", ""),
    (r"^=(?=.)", ""),
)
_BLANKS = re.compile(r"\s\s+")
_HALF_OF_DAY = re.compile(r"\\mathrm\{[ap]m\}$")
_ONLY_TEXT = re.compile(r"\\text\{([^{}]*)\}")


def tidy(answer: str, thousands: bool = True) -> str:
    r"""The normal form of an answer. thousands: 100,200 is one number, not two.

    Words set in `\text{}` come back in double quotes, so that they are never read as a product.
    """
    if len(answer) > LONGEST_ANSWER:
        return answer
    text = characters.plain(answer)
    money = _MONEY.search(text) is not None
    text = text.translate(_SIGNS)
    if text.isdecimal() or len(text) > LONGEST_ANSWER:
        return text
    text = _rewritten(text, _SPELLING)
    if thousands:
        text = _THOUSANDS.sub(lambda found: found[1].replace(",", ""), text)
    text = _rewritten(latex.ungrouped(latex.braced(text)), _STRUCTURE)
    text = _rewritten(units.without_unit(text, money), _FORM)
    if only := _ONLY_TEXT.fullmatch(text):
        words = only[1].strip().rstrip(" .")
        return tidy(words, thousands) if re.search(r"\d", words) else f'"{words}"'
    return text


def _rewritten(text: str, rewrites: Sequence[tuple[re.Pattern[str], object]]) -> str:
    for pattern, new in rewrites:
        text = pattern.sub(new, text).strip()  # type: ignore[call-overload]
        if "  " in text:  # so that no pattern meets a long run of blanks
            text = _BLANKS.sub(" ", text)
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
