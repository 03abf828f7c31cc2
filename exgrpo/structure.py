r"""What an answer is made of: lists, sets, tuples, intervals, matrices; names and equations.

All of it is text in normal form; only the standard library is needed, and linear time.
"""

import itertools
import re
from functools import lru_cache

from exgrpo import latex

_MOST_SIGNS = 4  # of `\pm` in one part that are written out: sixteen values

# What may stand before a value as its name: x, x_1, \alpha, f(x), V(4), AB, |S|, \angle ABC, Area.
_GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|rho|sigma|tau"
    "|phi|varphi|chi|psi|omega|ell|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega"
)
_SYMBOL = (
    rf"(?:[a-zA-Z]|\\(?:{_GREEK})(?![a-zA-Z]) ?|\\(?:vec|hat|tilde)\{{\w\}}"
    r"|\\bar\{[^\W\dzwZW]\})(?:_\w|_\{[^{}=]*\})?"  # a bar over z makes another number of it
)
_USUAL_ORDER = r"\((?:x,y(?:,z)?|a,b(?:,c(?:,d)?)?|m,n|p,q|r,\\theta)\)"
_NAME = re.compile(
    rf"{_SYMBOL}'*(?:(?:\^\{{-1\}})?\([a-z](?:,[a-z])*\))?"
    r"|[A-Zfghpqrsuvwy](?:_\w)?'*\([^()]*\)"  # x(2), n(3) are rather products
    r"|(?:m ?)?\\(?:angle|triangle|overline|widehat|overrightarrow) ?\{?[A-Z]{1,4}\}?"
    # Of a capital or an angle; \sin x=1 is still to be solved for x.
    rf"|\\(?:sin|cos|tan|cot|sec|csc|det|dim|deg|Pr) ?(?:[A-Z]|\\(?:{_GREEK})|\([A-Z]\))"
    r"|\\\|[a-zA-Z]\\\||\\\|\\(?:vec|mathbf)\{\w\}\\\|"
    rf"|{_USUAL_ORDER}"
    r"|[A-Z]{2,3}|\|[A-Z]{1,2}\||\[[A-Z]{3,6}\]"
    r"|(?:\\text\{|[A-Za-z]{4})[a-zA-Z {}_\\]*"
)
SET_BEHIND = r"(?=\\?\{|[(\[].*[,;]|[A-Z]|\\(?:mathbb|emptyset)(?![a-zA-Z]))"  # behind `\in`
_NAMED = re.compile(rf"(?P<name>{_NAME.pattern})(?:=|\\in(?![a-zA-Z]) ?{SET_BEHIND})(?=[^=])", re.S)
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc|det|dim|deg)(?![a-zA-Z])|['^]")
_UNKNOWN = re.compile(rf"{_SYMBOL}|\\[a-zA-Z]+")
# The unknowns of a name: words and capitals side by side, which an expression is only in once.
_QUANTITY = re.compile(
    rf"(?P<quantity>\\text\{{[^{{}}]*\}}|[A-Z]{{2,}}|[a-zA-Z]{{4,}}|{_SYMBOL})|\\[a-zA-Z]+"
)
_CALL = re.compile(r"([fgh])'*\([^()]*\)")  # its argument is no unknown
_CALLS_IN_CALLS = 3
_CONSTANTS = {"e", "i"}
_PLUS_MINUS = re.compile(r"\\(pm|mp)(?![a-zA-Z]) ?")
_MATRIX = re.compile(
    r"(?P<factor>[-+]?(?:\d+|\\frac\{\d+\}\{\d+\}|\d+/\d+|[a-z])?)[(\[]?"
    r"\\begin\{(?P<form>[pbB]?matrix|array)\}(?:\{[lcr|]+\})?(?P<cells>.*)\\end\{(?P=form)\}[)\]]?",
    re.S,
)
_BUILT = re.compile(
    r"\\\{(?P<unknown>[a-z])(?:\\in ?\\mathbb\{?R\}?)?(?:\\mid ?|\||:)"
    r"(?P<condition>[^,:|]*(?:[<>]|\\[lg]e(?![a-zA-Z]))[^,:|]*)\\\}"
)


@lru_cache(maxsize=1024)  # a member is compared with many
def structure(text: str) -> tuple[str, list[str]]:
    """The kind of an answer and its parts; a scalar is its own only part."""
    comma = "," if "," in text else ";"
    listed, union = split(text, comma), split(text, r"\cup")
    if not (all(listed) and all(union)):  # 1,,2
        return "scalar", [text]
    if is_set(text):
        inner = split(text[2:-2], comma)
        members = [sign for part in inner for sign in _signs(part)]
        return ("set", members) if all(inner) and len(members) > 1 else ("scalar", [text])
    parts = [sign for part in listed for sign in _signs(part)]
    if len(parts) > 1:
        return "list", parts
    if len(union) > 1:
        return "union", union
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and not name(text):
        inner = split(text[1:-1], comma)
        if len(inner) > 1 and all(inner):
            return text[0] + text[-1], inner
    if matrix := _MATRIX.fullmatch(text):
        rows = [row.split("&") for row in re.split(r"\\\\", matrix["cells"]) if row.strip()]
        shape = "x".join(str(len(row)) for row in rows)
        cells = [cell.strip() for row in rows for cell in row]
        return f"matrix {shape}", [_times(matrix["factor"], cell) for cell in cells]
    if len(ratio := split(text, ":")) > 1 and all(ratio):
        return "ratio", ratio
    return "scalar", [text]


def is_set(text: str) -> bool:
    r"""Whether a text is one pair of `\{` and `\}` with something between."""
    plain = re.sub(r"\\([{}])", r"\1", text) if text.startswith(r"\{") else ""
    return text.endswith(r"\}") and latex.closing_braces(plain).get(0) == len(plain) - 1


def _times(factor: str, cell: str) -> str:
    if not factor:
        return cell
    return rf"{factor}({cell})" if factor in "+-" else rf"({factor})\cdot ({cell})"


def _signs(text: str) -> list[str]:
    r"""The values of a text with `\pm`: each has two, but where a `\mp` is, all go together."""
    found = _PLUS_MINUS.findall(text)
    linked = "mp" in found
    if not found or (len(found) > _MOST_SIGNS and not linked):
        return [text]
    values = []
    for upper in itertools.product((True, False), repeat=1 if linked else len(found)):
        signs = iter(upper * len(found) if linked else upper)
        values.append(
            _PLUS_MINUS.sub(lambda sign: "+" if next(signs) == (sign[1] == "pm") else "-", text)  # noqa: B023
        )
    return values


def split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand outside all brackets."""
    parts, depth, start = [], 0, 0
    for token in re.finditer(rf"{re.escape(separator)}|[(\[{{]|[)\]}}]", text):
        if token[0] == separator:
            if depth == 0:
                parts.append(text[start : token.start()].strip())
                start = token.end()
        else:
            depth += 1 if token[0] in "([{" else -1
    return [*parts, text[start:].strip()]


def sides(text: str) -> list[str]:
    r"""The sides of an equation; one for what is none, as `\sum_{k=1}^2 k`."""
    return split(text, "=")


def bare(text: str) -> str:
    r"""A text without what only writes it otherwise: braces around all, `\{x \mid x>1\}`."""
    text = text.replace(r"\lbrace", r"\{").replace(r"\rbrace", r"\}")
    if built := _BUILT.fullmatch(text):
        unknown, condition = built["unknown"], built["condition"]
        return condition if unknown in _unknowns(condition) else text
    return latex.ungrouped(text)


def in_one_unknown(gold: str, answer: str) -> str:
    r"""An answer `\{y \mid y>1\}` in the unknown of a gold `\{x \mid x>1\}`; any other as it is."""
    wanted, found = _BUILT.fullmatch(gold), _BUILT.fullmatch(answer)
    if not (wanted and found) or wanted["unknown"] in _unknowns(found["condition"]):
        return answer
    of_answer = rf"(\\[a-zA-Z]+)|{found['unknown']}"
    return re.sub(of_answer, lambda each: each[1] or wanted["unknown"], answer)


def name(text: str) -> str:
    """The name of the unknown that a text gives the value of; empty if none."""
    found = _NAMED.match(text)
    return found["name"] if found else ""


def unnamed(text: str) -> str:
    """A text without the name of its unknown."""
    found = _NAMED.match(text)
    return text[found.end() :] if found else text


def without_names(text: str) -> str:
    """A text without all the names before it: (1,2) of `A=x=(1,2)`."""
    start = 0
    while found := _NAMED.match(text, start):
        start = found.end()
    return text[start:]


def is_name(side: str, value: str, own: str) -> bool:
    """Whether an equation with this side before names this value.

    What occurs in the value is no name of it, x=x+1, unless it is the gold's own. An expression in
    several unknowns is one, a+b=5, where the gold has none of its own; one in a single unknown is
    an equation that is still to be solved, 2x=4.
    """
    if side == own:
        return True
    if _NAME.fullmatch(side):
        return re.split(r"['^(]", side)[0].strip() not in _unknowns(value)
    if own:
        return False
    for _ in range(_CALLS_IN_CALLS):
        side = _CALL.sub(r"\1", side)
    quantities = {found["quantity"] for found in _QUANTITY.finditer(side)} - {None, *_CONSTANTS}
    apart = _unknowns(side).isdisjoint(_unknowns(value))
    return apart and (len(quantities) > 1 or quantities == {side})


def is_letter(side: str, value: str) -> bool:
    """Whether a side behind a value is a letter that names it: 5=x."""
    return len(side) == 1 and side in _unknowns(side) - _unknowns(value)


def same_call(one: str, other: str) -> bool:
    r"""Whether two names may be of one thing.

    Letters do not matter; f(x) is not f'(x) or f(y), nor is \sin A \cos A.
    """
    if not (one and other):
        return True
    (function, _, argument), (other_function, _, another) = one.partition("("), other.partition("(")
    marks = [_FUNCTION.findall(called) for called in (function, other_function)]
    return marks[0] == marks[1] and (argument == another or not (argument and another))


def in_usual_order(names: list[str]) -> bool:
    """Whether these are the coordinates of a pair as it is always written: x, y."""
    return re.fullmatch(_USUAL_ORDER, f"({','.join(names)})") is not None


def _unknowns(text: str) -> set[str]:
    """The unknowns that a formula is in."""
    found = {each.strip() for each in _UNKNOWN.findall(text)}
    letters = {each for each in found if not each.startswith("\\") or re.match(_SYMBOL, each)}
    return letters - _CONSTANTS
