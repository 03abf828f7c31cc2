r"""Reading an answer out of a response, and what exact text can say about its equality.

Only the last balanced, non-empty box counts (`\boxed` or `\fbox`). An answer is brought into one
normal form (`tidy`), split into its structure (list, set, tuple, interval, union, matrix, ratio,
equation), and its scalars are compared as exact numbers or as words. What that cannot settle is
None: `exgrpo.algebra` decides it. Nothing here needs more than the standard library, and nothing
takes longer than linear time in the response.

Choices where opinions differ: a percent sign is a unit (28% is 28, and 50% is not 0.5); a list
without braces has no order; a pair needs its brackets; the base of a number must be written; an
unfinished box is no box; in a multiple-choice question only the letter counts.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction

LONGEST_ANSWER = 10_000  # characters; a longer answer is wrong unless it is the same text
MOST_PARTS = 100  # members of a list, set or matrix that are compared
_LONGEST_NUMBER = 1_000  # digits, and size of an exponent, up to which fractions are computed

Decide = Callable[[str, str], bool | None]

# --- Extraction ----------------------------------------------------------------------------------

_BRACES = re.compile(r"\\.|[{}]", re.S)
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])[^\S\n]*")
_TOKEN = re.compile(r"[-+]?\d+(?:\.\d+)?|\\[a-zA-Z]+(?![a-zA-Z{])|[a-zA-Z](?![a-zA-Z])")
_STATED = re.compile(r"\b(?:answer|result)\b(?:\s+is\b|\s*:)+[\s*]*", re.I)
_LABELLED = re.compile(r"^A:[ \t]*", re.M)
_SENTENCE_END = re.compile(r"\.(?=\s|$)|\n")
_NUMBER_IN_PROSE = re.compile(r"[-−]?\$?(?:\d[\d,]*\.?\d*|\.\d+)(?:/\d+)?")
_LAST_FORMULA = re.compile(r"=((?:\\[^=\n]|[^$=\\\n])+)\$[\s.]*\Z")
_CHOICE = re.compile(r"[\[({]*([A-Z])(?:[\])}]+|(?=[.:,;]|\s|$))(?!\s*[=^_+*/<>])")


def last_box(text: str) -> str | None:
    """The content of the last balanced, non-empty box; None if there is none."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACES.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            closing[opened.pop()] = brace.start()
    for box in reversed(list(_BOX.finditer(text))):
        start = box.end()
        if text[start : start + 1] == "{":
            content = text[start + 1 : closing[start]] if start in closing else ""
        else:
            token = _TOKEN.match(text, start)
            content = token[0] if token else ""
        if content.strip():
            return content.strip()
    return None


def stated_answer(text: str, letter: bool) -> str | None:
    """The answer that prose states: after "answer is" or "A:", else what it ends in.

    That is the right side of a formula in dollars, `$x = 3$`, or the last number.

    With `letter` only the sentence "answer is ..." counts, since prose is full of letters.
    """
    found = list(_STATED.finditer(text)) or ([] if letter else list(_LABELLED.finditer(text)))
    if found:
        rest = text[found[-1].end() :].strip()
        if rest.startswith("$") and (formula := re.match(r"\$+((?:\\.|[^$\n])+)\$", rest)):
            return formula[1].strip()
        end = _SENTENCE_END.search(rest)
        return (rest[: end.start()] if end else rest).strip(" *") or None
    if letter:
        return None
    if formula := _LAST_FORMULA.search(text):
        return formula[1].strip()
    numbers = _NUMBER_IN_PROSE.findall(text)
    return numbers[-1].rstrip(",") if numbers else None


def choice(answer: str) -> str | None:
    r"""The letter chosen: `D`, `(D)`, `\text{D}`, `**D**`, `D. option text`; else None."""
    plain = re.sub(r"\\(?:text|mathrm|mathbf|textbf|rm|bf)\b\s*|[*$]|\\[()]", "", answer).strip()
    found = _CHOICE.match(plain)
    return found[1] if found else None


# --- Normal form ---------------------------------------------------------------------------------

_CHARACTERS = str.maketrans(
    {
        "−": "-", "–": "-", "﹣": "-", "－": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ",
        "÷": "/", "⁄": "/", "°": r"^\circ ", "π": r"\pi ", "∞": r"\infty ", "∪": r"\cup ",
        "∩": r"\cap ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "∓": r"\mp ",
        "∈": r"\in ", "∅": r"\emptyset ", "θ": r"\theta ", "²": "^2", "³": "^3",
        "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}", "，": ",", "：": ":", "（": "(", "）": ")", "\xa0": " ", "\u2009": " ",
        "\u202f": " ", "€": "", "£": "",
    }
)  # fmt: skip
_REWRITES = [
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\s+", " "),
        (r"√\s*(\d+|\w)", r"\\sqrt{\1}"),
        (r"√", r"\\sqrt"),
        (r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])\.?", ""),
        (r"\\(?:displaystyle|textstyle|limits|rm|bf)(?![a-zA-Z])", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:mbox|textrm|textbf|textit|mathrm|mathbf|mathit|textnormal)\s*\{", r"\\text{"),
        (r"\{,\}|,\\!(?=\d{3})", ""),  # the thousands separator of TeX
        (r"(?<!\\)\\[,;:!> ]|~|\\q?quad(?![a-zA-Z])", " "),
        (r"(?<=\d)\s+(?=\d{3}(?![\d/]))", ""),  # 1 000
        (r"\\?\$|(?<!\\)\\[()\[\]]|\*\*", ""),
        (r"\^\s*(?:\\circ(?![a-zA-Z])|\{\s*\\circ\s*\})|\\degree(?![a-zA-Z])", " "),
        (r"\\?%|(?<=[\d}\s])percent\b|\\text\{\s*percent\s*\}", " "),
        (r"\\times(?![a-zA-Z])", r"\\cdot "),
        (r"\\leq(?![a-zA-Z])", r"\\le "),
        (r"\\geq(?![a-zA-Z])", r"\\ge "),
        (r"\\neq(?![a-zA-Z])", r"\\ne "),
        (r",?\s*(?:\\text\{\s*,?\s*(?:and|or)\s*\}|(?<=\W)(?:and|or)(?=\W))\s*", ","),
        (r"(?<![\d,([{])([1-9]\d{0,2}(?:,\d{3})+)(?![\d,)\]}])", lambda m: m[1].replace(",", "")),
        (
            r"(?:(?<=[\d})!])|(?<=\\pi)|(?<=\\pi ))\s*\\text\{[^{}]*\}(?:\^(?:\d|\{\d\}))?\s*$",
            "",
        ),  # a unit
        (
            r"^([-+]?[\d.]+(?:/\d+)?)\s*(?:[a-zA-Z]{3,}|[kcm]m|[km]g|ml|ft|in|yd|mi|oz|lb)"
            r"(?:[ /][a-zA-Z]+)*(?:\^\d)?$",
            r"\1",
        ),  # a unit in plain letters
        (r"\\frac\s*(\w)", r"\\frac{\1}"),
        (r"(\\frac\{\w+\})\s*(\w)", r"\1{\2}"),
        (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
        (r"([_^])\s*\{(\w)\}(?!\w)", r"\1\2"),
        (r"(\^\d)(?=[a-zA-Z])", r"\1 "),
        (r"(?<![\s.,;:。，])[\s.,;:。，]+$", ""),  # the look-behind keeps it linear
        (r"\s+", " "),
        (r"(?<=\W) | (?=\W)", ""),
    )
]
_ONLY_TEXT = re.compile(r"\\text\{([^{}]*)\}")


def tidy(answer: str) -> str:
    r"""The normal form of an answer: units, spacing, style and thousands separators are gone.

    Words set in `\text{}` come back in double quotes, so that they are never read as a product.
    """
    if answer.isdecimal() or len(answer) > LONGEST_ANSWER:
        return answer
    text = answer.translate(_CHARACTERS).strip()
    for pattern, new in _REWRITES:
        text = pattern.sub(new, text).strip()
    if only := _ONLY_TEXT.fullmatch(text):
        words = only[1].strip(" .")
        return tidy(words) if re.search(r"\d", words) else f'"{words}"'
    return text


# --- Equality ------------------------------------------------------------------------------------

_INDEX = r"(?:_\w|_\{\w+\})?(?:\([a-z](?:,[a-z])*\))?"
_NAMED = re.compile(rf"(?:\\?[a-zA-Z]|\\[a-zA-Z]+){_INDEX}(?:=|\\in(?![a-zA-Z]) ?)(?=[^=])")
_LONG_NAMED = re.compile(r"[a-zA-Z\\{} ]+=(?=[^=])")
_SET_OF_NUMBERS = re.compile(r"[<>]|\\(?:le|ge|cup|cap|infty|mathbb|setminus)(?![a-zA-Z])")
_MATRIX = re.compile(r"\\begin\{([pbB]?matrix|array)\}(?:\{[lcr|]+\})?(.*)\\end\{\1\}", re.S)


def equal(gold: str, answer: str, decide: Decide) -> bool | None:
    """Whether two answers in normal form are the same; None where it stays open.

    Structures are compared part by part; `decide` compares two scalars (or two equations, which
    it gets with their `=`).
    """
    if gold == answer:
        return True
    if max(len(gold), len(answer)) > LONGEST_ANSWER:
        return False
    (kind, parts), (other, others) = _structure(gold), _structure(answer)
    if kind != other:
        return _unlike_equal(gold, answer, decide)
    if kind == "scalar":
        return _scalars_equal(gold, answer, decide)
    if max(len(parts), len(others)) > MOST_PARTS:
        return False
    if kind in ("set", "union"):
        found = [_any(equal(g, a, decide) for a in others) for g in parts]
        wanted = [_any(equal(g, a, decide) for g in parts) for a in others]
        same = _all(found + wanted)
        return decide(gold, answer) if kind == "union" and same is False else same
    if len(parts) != len(others):
        return False
    return _all(equal(g, a, decide) for g, a in zip(parts, others, strict=True))


def exact(gold: str, answer: str) -> bool | None:
    """Whether two scalars are equal, where exact numbers or words settle it; else None."""
    if gold == answer:
        return True
    if '"' in (gold[:1], answer[:1]):
        return _words(gold) == _words(answer)
    if _has_base(gold) or _has_base(answer):
        return False
    sides = _decimal(gold), _decimal(answer)
    if None not in sides:
        return sides[0] == sides[1]
    numbers = number(gold), number(answer)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return None


def number(text: str) -> Fraction | None:
    """The rational number that a text in normal form spells; None for anything else."""
    if decimal := _decimal(text):
        sign, digits, exponent = decimal
        if len(digits) + abs(exponent) > _LONGEST_NUMBER:
            return None
        return sign * Fraction(int(digits or "0")) * Fraction(10) ** exponent
    found = _FRACTION.fullmatch(text)
    if not found or len(text) > _LONGEST_NUMBER:
        return None
    upper = int(found["upper"] or found["left"])
    lower = int(found["lower"] or found["right"])
    if lower == 0:
        return None
    value = Fraction(int(found["whole"] or 0)) + Fraction(upper, lower)
    return -value if found["sign"] == "-" else value


_DECIMAL = re.compile(
    r"([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d{1,9})|\\cdot ?10\^(\d|\{-?\d{1,9}\}))?"
)
_FRACTION = re.compile(
    r"(?P<sign>[-+]?)(?P<whole>\d+(?: |(?=\\)))?"
    r"(?:\\frac\{(?P<upper>-?\d+)\}\{(?P<lower>-?\d+)\}|(?P<left>\d+)/(?P<right>\d+))"
)
_BASED = re.compile(r"\d[0-9A-Z]*_(?:\d|\{\d+\})")


def _decimal(text: str) -> tuple[int, str, int] | None:
    """Sign, digits without outer zeros, exponent of ten: a canonical form of any length."""
    found = _DECIMAL.fullmatch(text)
    if not found or not (found[2] or found[3]):
        return None
    after = found[3] or ""
    shift = int(found[4] or (found[5] or "0").strip("{}"))
    digits = (found[2] + after).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0, "", 0
    exponent = shift - len(after) + len(digits) - len(significant)
    return -1 if found[1] == "-" else 1, significant, exponent


def _words(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()


def _has_base(text: str) -> bool:
    return _BASED.fullmatch(text) is not None


def _scalars_equal(gold: str, answer: str, decide: Decide) -> bool | None:
    if "=" not in gold + answer:
        return decide(gold, answer)
    plain_gold, plain_answer = _unnamed(gold, answer), _unnamed(answer, gold)
    if "=" not in gold:
        plain_answer = answer.rpartition("=")[2]  # a chain of equations ends in its answer
    if "=" in plain_gold + plain_answer:
        return decide(gold, answer)
    return equal(plain_gold, plain_answer, decide)


def _unlike_equal(gold: str, answer: str, decide: Decide) -> bool | None:
    """Two answers of unlike structure: equal only behind a name, or as sets of numbers."""
    plain_gold, plain_answer = _unnamed(gold, answer), _unnamed(answer, gold)
    if (plain_gold, plain_answer) != (gold, answer):
        return equal(plain_gold, plain_answer, decide)
    return decide(gold, answer) if _SET_OF_NUMBERS.search(gold + answer) else False


def _unnamed(text: str, other: str) -> str:
    """A text without the name of its unknown; a name of many letters only if `other` has none."""
    name = _NAMED.match(text) or ("=" not in other and _LONG_NAMED.match(text))
    return text[name.end() :] if name else text


def _structure(text: str) -> tuple[str, list[str]]:
    """The kind of an answer and its parts; a scalar is its own only part."""
    if text.startswith('"'):
        return "scalar", [text]
    parts = [sign for part in _split(text, ",") for sign in _signs(part)]
    if len(parts) > 1:
        return "set", parts
    if len(union := _split(text, r"\cup")) > 1:
        return "union", union
    if text.startswith(r"\{") and text.endswith(r"\}"):
        members = [sign for part in _split(text[2:-2], ",") for sign in _signs(part)]
        return ("set", members) if len(members) > 1 else ("scalar", [text])
    if text[:1] in ("(", "[") and text[-1:] in (")", "]"):
        inner = _split(text[1:-1], ",")
        if len(inner) > 1:
            return text[0] + text[-1], inner
    if matrix := _MATRIX.fullmatch(text):
        rows = [row.split("&") for row in re.split(r"\\\\", matrix[2]) if row.strip()]
        shape = "x".join(str(len(row)) for row in rows)
        return f"matrix {shape}", [cell.strip() for row in rows for cell in row]
    if len(ratio := _split(text, ":")) > 1:
        return "ratio", ratio
    return "scalar", [text]


def _signs(text: str) -> list[str]:
    r"""A text with `\pm` stands for two."""
    if not re.search(r"\\[pm]m(?![a-zA-Z])", text):
        return [text]
    upper = re.sub(r"\\pm(?![a-zA-Z]) ?", "+", re.sub(r"\\mp(?![a-zA-Z]) ?", "-", text))
    lower = re.sub(r"\\pm(?![a-zA-Z]) ?", "-", re.sub(r"\\mp(?![a-zA-Z]) ?", "+", text))
    return [upper, lower]


def _split(text: str, separator: str) -> list[str]:
    """The non-empty parts of a text between separators that stand outside all brackets."""
    parts, depth, start = [], 0, 0
    for token in re.finditer(rf"{re.escape(separator)}|[(\[{{]|[)\]}}]", text):
        if token[0] == separator:
            if depth == 0:
                parts.append(text[start : token.start()].strip())
                start = token.end()
        else:
            depth += 1 if token[0] in "([{" else -1
    return [part for part in [*parts, text[start:].strip()] if part]


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued `all`: False wins, then None."""
    seen = set()
    for verdict in verdicts:
        if verdict is False:
            return False
        seen.add(verdict)
    return None if None in seen else True


def _any(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued `any`: True wins, then None."""
    negated = _all(None if verdict is None else not verdict for verdict in verdicts)
    return None if negated is None else not negated
