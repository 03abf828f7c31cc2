r"""What the commands of LaTeX take: an argument in braces, a command with its own ones, or a sign.

Read as prefix notation, so that neither depth nor length needs more than linear time.
"""

import itertools
import re

_WANTED = dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac", "binom"), 2) | dict.fromkeys(
    """
    sqrt text mathbb mathcal mathrm mathbf mathit mathsf textbf textit textrm operatorname overline
    underline bar dot vec hat tilde widehat overrightarrow boldsymbol bm mbox boxed fbox
    """.split(),  # noqa: SIM905
    1,
)
_UNIT = re.compile(
    r"\\(?P<command>[a-zA-Z]+)(?:(?<=\\sqrt)\s*\[[^\[\]]{1,20}\])?"
    rf"|(?P<script>[\^_])\s*(?=\\(?:{'|'.join(_WANTED)})(?![a-zA-Z]))|\\.|\s+|.",
    re.S,
)
_BRACKETS = re.compile(r"[(\[{)\]}]")
_BRACES = re.compile(r"\\.|[{}]", re.S)


def closing_braces(text: str) -> dict[int, int]:
    """Where each brace that opens is closed, of those that are."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACES.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            closing[opened.pop()] = brace.start()
    return closing


def depth(text: str) -> int:
    """How many brackets stand in brackets, at the deepest."""
    steps = (1 if each in "([{" else -1 for each in _BRACKETS.findall(text))
    return max(itertools.accumulate(steps), default=0)


def ungrouped(text: str) -> str:
    """A text without braces around all of it, however many there are."""
    closing = closing_braces(text)
    start, end = 0, len(text)
    while closing.get(start) == end - 1:
        start, end = start + 1, end - 1
    return text[start:end].strip()


def argument_end(text: str, start: int, closing: dict[int, int]) -> int:
    r"""The end of what a command takes that stands before `start`: `{12}`, `\frac12`, `1`.

    `closing` is that of `closing_braces`. Where an argument is missing it is the end of the text.
    """
    wanted, at = 1, start
    while wanted and at < len(text):
        if at in closing:
            at, wanted = closing[at] + 1, wanted - 1
            continue
        unit = _UNIT.match(text, at)
        assert unit is not None  # a unit can be any character
        at = unit.end()
        if not unit[0].isspace():
            wanted += _wanted(unit) - 1
    return at


def braced(text: str) -> str:
    r"""A text with the arguments of its commands in braces: `\frac\pi4` is `\frac{\pi}{4}`.

    Of `^` and `_` only those that are commands with arguments. Fonts and accents are commands too.
    """
    out: list[str] = []
    # Commands and groups that are open: how many arguments are still wanted, of a group 0, and
    # what closes it.
    opened: list[tuple[int, str]] = []

    def complete() -> None:
        """What was just written is an argument, where a command before it wants one."""
        while opened and opened[-1][0]:
            wanted, end = opened.pop()
            if wanted > 1:
                opened.append((wanted - 1, end))
                return
            out.append(end)

    def give_up() -> None:
        while opened and opened[-1][0]:
            out.append(opened.pop()[1])

    for unit in _UNIT.finditer(text):
        token = unit[0]
        waits = bool(opened) and opened[-1][0] > 0
        if token == "{":
            opened.append((0, ""))
            out.append(token)
        elif token == "}":
            give_up()
            out.append(token)
            if opened:
                opened.pop()
            complete()
        elif wanted := _wanted(unit):
            out.append(f"{{{token}" if waits else token)
            opened.append((wanted, "}" if waits else ""))
        elif not waits:
            out.append(token)
        elif unit["command"] or token.isalnum():
            out.append(f"{{{token}}}")
            complete()
        elif not token.isspace():
            give_up()  # a sign is no argument
            out.append(token)
    give_up()
    return "".join(out)


def _wanted(unit: re.Match[str]) -> int:
    """How many arguments a unit takes."""
    return 1 if unit["script"] else _WANTED.get(unit["command"] or "", 0)
