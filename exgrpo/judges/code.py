"""The judge that looks for Python in a response: 17 rules, each with a name.

The idea is the paper's (Table 12: code in a mathematical answer as a mark of weak reasoning); its
rules are described, not published, and these are written anew. `valid` false says "this looks like
code", not "this is wrong": some rules fire on mathematics in prose, docs/judges.md says how often.
The column `code` of a log is narrower (`exgrpo.markers.has_code`).
"""

import re

from exgrpo.judges.judge import Case, Judge, Judgement

NAME = "code"
VERSION = "1"  # raise it with every change of a rule: what was judged is judged anew

# No two neighbouring parts of a pattern take the same letters without a bound: linear in the text.
RULES = {
    name: re.compile(pattern, re.M)
    for name, pattern in {
        "fence": r"```|~~~",
        "def": r"^[ \t]*(?:async[ ]+)?def[ ]+\w{1,80}[ ]?\(",
        "class": r"^[ \t]*class[ ]+[A-Za-z_]\w{0,80}[ ]?(?:\([^()\n]{0,200}\))?:",
        "import": r"^[ \t]*(?:import[ ]+[a-z_][\w.]{0,80}(?:[ ]+as[ ]+\w{1,80})?[ ]*$"
        r"|from[ ]+[\w.]{1,80}[ ]+import[ ])",
        "print": r"\bprint\(",
        "len": r"\blen\(",
        "range": r"\brange\([^()\n]{1,80}\)",
        "for": r"^[ \t]*for[ ]+[\w, ]{1,80}?[ ]in[ ][^\n:]{1,200}:",
        "if": r"^[ \t]*(?:if|elif)\b[^\n:]{1,200}:",
        "else": r"^[ \t]*(?:else|finally|try):",
        "while": r"^[ \t]*while\b[^\n:]{1,200}:",
        "except": r"^[ \t]*except\b[^\n:]{0,200}:",
        "return": r"^[ \t]+return\b",
        "list": r"\b\w{1,80}[ ]?=[ ]?\[[^\]\n]{0,400}\]",
        "dict": r"(?<![A-Za-z}])\{[ \t\n]{0,80}"
        r"(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|\d{1,20})[ ]?:[^\n]{1,200}",
        "call": r"\b[A-Za-z_]\w{0,80}\.[a-z_]\w{0,80}\(",
        "operator": r"(?<![=!<>])(?:==|\+=|-=|\*=|//=)(?!=)",
    }.items()
}


def code() -> Judge:
    return Judge(NAME, VERSION, judge)


def judge(case: Case) -> Judgement:
    """Invalid where a rule fires. Never raises and never fails to decide."""
    if found := fired(case.response):
        return Judgement(False, f"looks like code: {', '.join(found)}")
    return Judgement(True, "no rule for code fires")


def fired(text: str) -> list[str]:
    """The names of the rules that find something, in the order of `RULES`."""
    return [name for name, pattern in RULES.items() if pattern.search(text)]
