r"""Reading an answer out of a response: the last box, what prose states, the letter of a choice.

Only the last balanced, non-empty box counts (`\boxed` or `\fbox`). Nothing here needs more than
the standard library, and nothing takes longer than linear time in the response.

Choices where opinions differ: an unfinished box is no box; in a multiple-choice question only the
letter counts, and a letter with another beside it is no choice.
"""

import re

from exgrpo import characters, latex
from exgrpo.number_words import MAY_BE_COUNTED, makes_another_value

_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])(?:[\s~]*(?=\{)|(?:[^\S\n]|~)*)")
# Behind the name of the command where it is spoken of: "with \boxed as asked".
_SPOKEN_OF = re.compile(r"[-(\[*'\"` ]{0,3}(?:[^\W\d_]{2}|$)|[\s.,;:!?)\]}*'\"`]")
# What a box without braces holds, besides an argument as `exgrpo.latex` reads it.
_BARE_BOX = re.compile(
    r"[-+−]?\s*(?:\d+(?:\.\d+)?|\$+[^$\n]+\$+"
    r"|(?:\\left\s*)?(?:\\?[(\[][^()\[\]\n]*[)\]]|\\\{[^\n]*?\\\})|(?P<argument>))"
)
_STATED = re.compile(
    r"\b(answer|result)\b(?:\s+is\b|\s*:)+(?:\s+(?:therefore|thus|hence|then|simply|equal\s+to)\b)*"
    r"[\s*]*",
    re.I,
)
_LABELLED = re.compile(r"^A:[ \t]*", re.M)
# A statement ends with its sentence, or where it gives a reason or denies another answer.
_STATEMENT_END = re.compile(
    r"\.(?=\s|$)|\n|,?\s(?:since|because|as|where|which|not|but)\b|;\s|,\sso\b"
)
_NUMBER_IN_PROSE = re.compile(
    r"(?:(?<![\w)}!])[-−])?\$?(?:\d[\d,]*\.?\d*|\.\d+)(?:/\d+)?"  # 3-5 ends in 5, not in -5
)
# A number is only part of a formula, or denied, by what is before or behind it.
_PART_BEFORE = re.compile(
    r"(?:[\^_{+/×÷·√<>≤≥≠≈~−–-]|(?<!\*)\*|\\(?!q?quad|text)[a-zA-Z]+(?:_\{?\w+\}?)?"
    r"|\b(?i:not|\w+n['’]t|never|minus|plus|times|over|than|about|approximately|roughly|nearly"
    r"|almost|around|least|most|mod|modulo|base|log|ln|\d or|between \S+ and))\s?\Z"
    r"|[a-zA-Z]\(?\Z|\d(?: : ?|:)\Z"
)
_PART_BEHIND = re.compile(
    r" ?(?:[\^_!+/×÷·√<>]|\*(?!\*)|[-−–] ?(?:[\d\\(]|[a-zA-Z](?![a-zA-Z]))|:\d"
    r"|\\(?:pi|sqrt|frac|cdot|times|div|[lc]?dots)(?![a-zA-Z]))|[a-zA-Z](?![a-zA-Z])|['′]"
    r"|(?i:st|nd|rd|th)\b"
)
_WORD_BEHIND = re.compile(r"[\s-]*(?:\\text\{\s*)?([^\W\d_]+)")
_CALCULATOR = re.compile(r"<<[^<>\n]*=[^<>\n]*>>")  # of GSM8K: 3+15 = <<3+15=18>>18
_LONGEST_WORD = 20  # characters before a number that are looked at
# In dollars, and no other one beside it: $5$ or $6$.
_FORMULA = re.compile(r"\$+((?:\\.|[^$\n\\])+)\$+(?!\$|[\s,]*(?:(?:or|and) )?\$| or \d)")
_LAST_FORMULA = re.compile(r"=((?:\\[^=\n]|[^$=\\\n])+)\$[\s.]*\Z")

_STYLE = re.compile(
    r"\\(?:left|right|text[a-z]*|mbox|math(?:rm|bf|it|sf)|rm|bf|it|displaystyle|q?quad|underline"
    r"|boldsymbol|bm)(?![a-zA-Z])|\\[,;:!> ()\[\]]|[{}$*~\s\"“”]+"
)
_INTRODUCED = (
    r"(?i:(?:the )?(?:correct )?answer(?: is)?\s*:?\s*)?(?i:(?:option|choice)\s*:?\s*)?[(\[]*\s*"
)
# A letter that stands apart from what follows: (D), D), D. or D: may have any text behind it.
_MARKED = re.compile(rf"{_INTRODUCED}(?P<letter>[A-Z])\s*(?:[)\]]+[.:]?|(?P<point>[.:]))")
# Any other letter, unless it is a word of a sentence or part of a formula.
_BARE = re.compile(
    rf"{_INTRODUCED}(?![AI]\s+(?!(?:is|was|since|because|as)\b)[a-z])(?P<letter>[A-Z])(?=[\s,;]|$)"
    r"(?!\s*(?:[=^_+*/<>]|-\s*\d|\\(?:times|cdot|div|pm|leq?|geq?|neq?|in|to|cap|cup|subset"
    r"|subseteq|setminus|wedge|vee|land|lor|implies|iff|equiv|approx|[a-zA-Z]*arrow)(?![a-zA-Z])))"
)
# Another letter, in brackets or with nothing of its own behind it.
_OTHER = r"(?:[(\[]\s*[A-J]\s*[)\]]|[A-J](?![\w'’])(?=[\W_]*$|\s*[,;/&|)\]]|\s+(?:and|or)\b))"
_CORRECTION = r"(?i:no|wait|actually|sorry|rather|i mean|final(?:ly)?|it['’]?s)"
_BETWEEN = (
    rf"\b(?:{_CORRECTION}|(?i:and|or|nor|to|not|but|vs|versus|then|over|x|maybe|perhaps|instead of"
    r"|rather than|option))\b"
)
_BESIDE = re.compile(
    rf"\s*[(\[]?\s*(?:{_BETWEEN}|\\[a-zA-Z]+|[^\w\s.:()\[\]\\])"
    rf"(?:{_BETWEEN}|\\[a-zA-Z]+|[^\w\\])*?{_OTHER}"
    r"|[\s,;]*\(?(?:or|but|maybe|perhaps)(?![\w-])"
)
_ONLY_LETTERS = re.compile(r"(?:\W*[A-J](?!\w))+\W*")
_CORRECTED = re.compile(rf"\b{_CORRECTION}\b[\s,:]*{_OTHER}\W*$")
_NEXT_OPTION = re.compile(r"(?:[,;/&|]|\b(?:and|or)\b) ?(?:[(\[][A-J][)\]]|(?P<point>[A-J][.:] ))")
# Words that say of a choice whether it is right; those that take it back.
_TAKING_BACK = frozenset(
    """
    wrong incorrect eliminated rejected excluded out impossible guess fails not isn't wasn't doesn't
    didn't cannot can't couldn't could might may seems looks ✗ ✘ ❌
    """.split()  # noqa: SIM905
)
_SAID_OF_IT = _TAKING_BACK | frozenset(
    """
    is was be does did can must the a it right correct true false answer option choice one work hold
    fit apply definitely clearly probably ruled crossed my first
    """.split()  # noqa: SIM905
)
_CLAUSE_END = re.compile(r"[.,;:!?)\]]|\b(?:since|because|as|so)\b|$")
_LAST_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]\W*$")
# What takes back a letter that does not stand apart: another, or a verb that does not confirm it.
_HEDGE = re.compile(
    r"\s*(?i:not|except)\W*$|[^a-zA-Z]*[-+*/]\s*[A-J](?!\w)"
    r"|[\s,;:]*(?:[,;/&|]|(?:and|or)\b|and/or)[\s(\[]*(?i:option\s+)?[A-Z](?![\w'])"
    r"|\s*[(\[]*[A-Z][\s)\]]*(?:$|[.,;:/&|]|(?:and|or)\b)|\s*(?i:wrong|incorrect|eliminated)\b"
    r"|\s+(?:isn't|does|doesn't|did|didn't|fails|are|can|cannot|can't|could|would|may|might|think|guess)\b"
    r"|\s+(?:is|was|looks|seems)\b"
    r"(?!\s+(?:the\s+)?(?:best\s+|right\s+|correct\s+)?(?:answer|correct|right|true|option|choice))"
)


def last_box(text: str) -> str | None:
    r"""The content of the last balanced, non-empty box; None if there is none.

    Without braces it is what stands behind, as far as that can be told: `\boxed 42`,
    `\boxed\frac12`, `\boxed $6$`, `\boxed(6)`.
    """
    closing = latex.closing_braces(text)
    for box in reversed(list(_BOX.finditer(text))):
        start = box.end()
        if text[start : start + 1] == "{":
            content = text[start + 1 : closing[start]] if start in closing else ""
        elif _SPOKEN_OF.match(text, start):
            content = ""
        else:
            bare = _BARE_BOX.match(text, start)
            assert bare is not None  # its argument can be anything
            read = bare["argument"] is None
            end = bare.end() if read else latex.argument_end(text, bare.end(), closing)
            content = text[start:end]
        if content.strip():
            return content.strip()
    return None


def is_answer(text: str) -> bool:
    r"""Whether a text is an answer by itself: its braces balance, and it has no box or `####`."""
    return last_box(rf"\boxed{{{text}}}") == text.strip() and "####" not in text


def stated_answer(text: str, letter: bool) -> str | None:
    """The answer that prose states: after "answer is" or "A:", else what it ends in.

    The last statement of an answer counts, before any of a result, up to its end or its reason.
    Without one it is the right side of a formula in dollars, `$x = 3$`, or the last number, unless
    that is part of a formula or denied: `x^2`, `3 - 5`, "not 5".

    With `letter` only the sentence "answer is ..." counts, since prose is full of letters.
    """
    text = _CALCULATOR.sub("", text)
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
    numbers = list(_NUMBER_IN_PROSE.finditer(text))
    return _whole(numbers[-1]) if numbers else None


def _whole(number: re.Match[str]) -> str | None:
    """A number in prose; None where it is part of a formula, or denied."""
    start, text = number.start(), number.string
    before = text[max(0, start - _LONGEST_WORD) : start]
    part = _PART_BEFORE.search(before) or _PART_BEHIND.match(text, number.end())
    word = _WORD_BEHIND.match(text, number.end())
    other = word and word[1].lower() not in MAY_BE_COUNTED and makes_another_value(word[1])
    return None if part or other else number[0].rstrip(",")


def choice(answer: str) -> str | None:
    r"""The letter chosen: `D`, `(D)`, `\text{D}`, `**D**`, `D. option text`; else None.

    None as well where another letter stands beside it (`D or A`), or it is denied (`D is wrong`).
    """
    plain = " ".join(_STYLE.sub(" ", characters.plain(answer)).split())
    marked = _MARKED.match(plain)
    found = marked or _BARE.match(plain)
    if not found:
        return None
    letter, rest = found["letter"], plain[found.end() :]
    if _offers_another(letter, rest, bool(marked and marked["point"])) or _taken_back(rest):
        return None
    return None if not marked and _HEDGE.match(rest) else letter


def _offers_another(letter: str, rest: str, point: bool) -> bool:
    """Whether what follows a letter offers another one. `point`: options are marked as in `D.`."""
    if _BESIDE.match(rest) or _CORRECTED.search(rest):
        return True
    if any(point or not option["point"] for option in _NEXT_OPTION.finditer(rest)):
        return True
    return bool(_ONLY_LETTERS.fullmatch(rest)) and not set(re.findall("[A-J]", rest)) <= {letter}


def _taken_back(rest: str) -> bool:
    """Whether a clause right behind a letter, or the last one in brackets, says that it is wrong.

    Only a clause of nothing else: options may be "cannot exist", "not guilty" or "impossible".
    """
    said = rest.lstrip(" (,;:[-")
    end = _CLAUSE_END.search(said)
    clauses = [said[: end.start()] if end else said]
    if last := _LAST_BRACKETS.search(rest):
        clauses.append(last[1])
    found = [set(re.findall(r"[^\W\d_][\w'’]*|[✗✘❌]|\d+", clause.lower())) for clause in clauses]
    found = [words for words in found if words not in ({"not"}, {"impossible"})]
    return any(words <= _SAID_OF_IT and words & _TAKING_BACK for words in found)
