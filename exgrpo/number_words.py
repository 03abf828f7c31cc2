"""Words behind a number that make another value of it: for the grader and the judge of equations.

`5 hundred`, `5 squared`, `5 over two` and `5 elevenths` are not 5; `5 apples` are.
"""

import re

OTHER_VALUE = frozenset(
    """
    mod modulo base remainder rem with choose times plus minus squared cubed dozen dozens score
    hundred thousand million billion trillion pairs pair half halves quarters thirds tenths
    hundredths factorial or over percentage
    """.split()  # noqa: SIM905
)
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


def is_numeral(word: str) -> bool:
    """Whether a word says how many: `twenty`, `millionths`, `lakh`."""
    return _NUMERAL.fullmatch(word) is not None
