"""Words behind a number that make another value of it: for the grader and the judge of equations.

`5 hundred`, `5 squared`, `5 over two` and `5 elevenths` are not 5; `5 apples` are.
"""

import re

_OTHER_VALUE = frozenset(
    """
    mod modulo base remainder rem with choose times plus minus squared cubed dozen dozens score
    pairs pair factorial or over percentage
    """.split()  # noqa: SIM905
)
# Of those the ones that may as well be what is counted: "5 times a day".
MAY_BE_COUNTED = frozenset(("times", "pair", "pairs", "percentage"))
# Number words by how they end, so that there is no largest one: "months" and "lengths" are none.
_NUMERAL = re.compile(
    r"zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|\w*(?:hundred|thousand|illion|illiard)s?|(?:googol|lakh|crore)\w*"
    r"|(?:third|quarter|nth)s?|half|halves"
    r"|\w*(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|teen|tie|hundred|thousand|illion)ths?"
    r"|\w*[〇零一二三四五六七八九十百千万亿億萬兆半倍]\w*",
    re.I,
)


def makes_another_value(word: str) -> bool:
    """Whether a number with this word behind it is another one: `squared`, `twenty`, `lakh`."""
    return word.lower() in _OTHER_VALUE or _NUMERAL.fullmatch(word) is not None
