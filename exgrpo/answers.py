r"""Reading an answer out of a response: the last box, what prose states, the letter of a choice.

Only the last balanced, non-empty box counts (`\boxed` or `\fbox`). Nothing here needs more than
the standard library, and nothing takes longer than linear time in the response.

Choices where opinions differ: an unfinished box is no box; in a multiple-choice question only the
letter counts, and a letter with another beside it is no choice.
"""

import re

_BRACES = re.compile(r"\\.|[{}]", re.S)
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])[^\S\n]*")
_TOKEN = re.compile(r"[-+]?\d+(?:\.\d+)?|\\[a-zA-Z]+(?![a-zA-Z{])|[a-zA-Z](?![a-zA-Z])")
_STATED = re.compile(r"\b(answer|result)\b(?:\s+is\b|\s*:)+[\s*]*", re.I)
_LABELLED = re.compile(r"^A:[ \t]*", re.M)
# A statement ends with its sentence, or where it gives a reason or denies another answer.
_STATEMENT_END = re.compile(
    r"\.(?=\s|$)|\n|,?\s(?:since|because|as|where|which|not|but)\b|;\s|,\sso\b"
)
_NUMBER_IN_PROSE = re.compile(r"[-−]?\$?(?:\d[\d,]*\.?\d*|\.\d+)(?:/\d+)?")
# In dollars, and no other one beside it: $5$ or $6$.
_FORMULA = re.compile(r"\$+((?:\\.|[^$\n\\])+)\$+(?!\$|[\s,]*(?:(?:or|and) )?\$| or \d)")
_LAST_FORMULA = re.compile(r"=((?:\\[^=\n]|[^$=\\\n])+)\$[\s.]*\Z")

_STYLE = re.compile(
    r"\\(?:left|right|text[a-z]*|mbox|math(?:rm|bf|it|sf)|rm|bf|it|displaystyle|q?quad)(?![a-zA-Z])"
    r"|\\[,;:!> ()\[\]]|[{}$*~\s]+"
)
_CHOICE = re.compile(
    r"(?i:(?:the )?(?:correct )?answer(?: is)?\s*:?\s*)?(?i:(?:option|choice)\s*:?\s*)?"
    r"(?![AI]\s+(?!(?:is|was|since|because|as)\b)[a-z])[(\[]*\s*([A-Z])(?:\s*[)\]]+|(?=[\s.:,;]|$))"
    r"(?!\s*(?:[=^_+*/<>]|-\s*\d|\\(?:times|cdot|div|pm|leq?|geq?|neq?|in|to|cap|cup|subset"
    r"|subseteq|setminus|wedge|vee|land|lor|implies|iff|equiv|approx|[a-zA-Z]*arrow)(?![a-zA-Z])))"
)
# What takes a choice back: another letter beside it, an "or", or a verb that does not confirm it.
_HEDGE = re.compile(
    r"[\s,;:]*(?:[,;/&|]|(?:and|or)\b|and/or)[\s(\[]*(?i:option\s+)?[A-Z](?![\w'])"
    r"|[\s.:]*[\s(\[]*[A-Z][\s)\]]*(?:$|[.,;:/&|]|(?:and|or)\b)"
    r"|[\s,;]*\(?(?:or|but|maybe|perhaps)\b"
    r"|[\s.,;:]*(?i:no|wait|actually)[\s,]+\(?[A-Z][\s.)]*$"
    r"|\s+(?:isn't|does|doesn't|did|didn't|fails|are|can|cannot|can't|could|would|may|might|think|guess)\b"
    r"|\s+(?:is|was|looks|seems)\b"
    r"(?!\s+(?:the\s+)?(?:best\s+|right\s+|correct\s+)?(?:answer|correct|right|true|option|choice))"
)


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


def is_answer(text: str) -> bool:
    r"""Whether a text is an answer by itself: its braces balance, and it has no box or `####`."""
    return last_box(rf"\boxed{{{text}}}") == text.strip() and "####" not in text


def stated_answer(text: str, letter: bool) -> str | None:
    """The answer that prose states: after "answer is" or "A:", else what it ends in.

    The last statement of an answer counts, before any of a result, up to its end or its reason.
    Without one it is the right side of a formula in dollars, `$x = 3$`, or the last number.

    With `letter` only the sentence "answer is ..." counts, since prose is full of letters.
    """
    found = list(_STATED.finditer(text))
    found = [each for each in found if each[1].lower() == "answer"] or found
    found = found or ([] if letter else list(_LABELLED.finditer(text)))
    if found:
        rest = text[found[-1].end() :].strip()
        if rest.startswith("$") and (formula := _FORMULA.match(rest)):
            return formula[1].strip()
        end = _STATEMENT_END.search(rest)
        return (rest[: end.start()] if end else rest).strip(" *") or None
    if letter:
        return None
    if formula := _LAST_FORMULA.search(text):
        return formula[1].strip()
    numbers = _NUMBER_IN_PROSE.findall(text)
    return numbers[-1].rstrip(",") if numbers else None


def choice(answer: str) -> str | None:
    r"""The letter chosen: `D`, `(D)`, `\text{D}`, `**D**`, `D. option text`; else None.

    None as well where another letter stands beside it (`D or A`), or it is denied (`D is wrong`).
    """
    plain = " ".join(_STYLE.sub(" ", answer).split())
    found = _CHOICE.match(plain)
    return found[1] if found and not _HEDGE.match(plain, found.end()) else None
