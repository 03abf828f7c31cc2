"""The fast searches for markers find what plain patterns find."""

import re

from hypothesis import given
from hypothesis import strategies as st

from exgrpo.markers import has_code, repeats

CODE = re.compile(r"```|^\s*(def \w+\(|class \w+|import \w+|from \w+ import )|\bprint\(", re.M)
REPEATED = re.compile(r"(.{20,200}?)\1{2,}", re.S)

PIECES = [
    "def f(",
    "class A",
    "import os",
    "from x import y",
    "print(",
    "sprint(",
    "```",
    "\n",
    " ",
]


@given(st.lists(st.sampled_from([*PIECES, "a", "from ", "1", "def "]), max_size=12).map("".join))
def test_code(text: str) -> None:
    assert has_code(text) == (CODE.search(text) is not None)


@given(
    before=st.text("ab\n", max_size=45),
    passage=st.text("ab c", min_size=1, max_size=30),
    size=st.sampled_from([18, 19, 20, 21, 39, 60, 199, 200, 201]),
    characters_short=st.integers(-3, 25),
    after=st.text("ab\n", max_size=45),
)
def test_repetition(
    before: str, passage: str, size: int, characters_short: int, after: str
) -> None:
    unit = (passage * size)[:size]
    text = before + (unit * 4)[: 3 * size - characters_short] + after
    assert repeats(text) == (REPEATED.search(text) is not None)


def test_three_times_in_a_row_count_and_twice_do_not() -> None:
    passage = "the sum of the two is 7. "
    assert repeats("So " + passage * 3) and not repeats("So " + passage * 2)
    assert not repeats("ab" * 29) and repeats("ab" * 30)  # 20 characters three times
    assert not repeats("")
