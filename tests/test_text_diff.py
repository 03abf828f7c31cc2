"""Text diff: nothing is lost, equal means equal, and no text takes long."""

import random
import time
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.text_diff import Block, diff, words
from app.components.diff_view import LONGEST, MOST_TOKENS, text_diff_html, token_diff_html
from app.components.token_view import SCALES

HOSTILE = "<img src=x onerror=alert(1)> & </del><script>"

PIECES = st.lists(st.sampled_from(["a", "b", "c", "d\n", ".", "\n"]), max_size=30)


def parts(blocks: list[Block], left: Sequence[str], right: Sequence[str]) -> list[object]:
    return [
        (b.equal, "".join(left[slice(*b.left)]), "".join(right[slice(*b.right)])) for b in blocks
    ]


def test_words_keep_every_character() -> None:
    assert words("3+5 = 8;\n\\boxed{8}") == [
        "3",
        "+",
        "5 ",
        "= ",
        "8",
        ";\n",
        "\\",
        "boxed",
        "{",
        "8",
        "}",
    ]
    assert words("") == []


@given(st.text())
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(words(text)) == text


def test_a_changed_word_is_one_block() -> None:
    left, right = words("so 3 + 5 = 9 then"), words("so 3 + 5 = 8 then, yes")
    found = diff(left, right)
    assert found.whole
    assert parts(found.blocks, left, right) == [
        (True, "so 3 + 5 = ", "so 3 + 5 = "),
        (False, "9 ", "8 "),
        (True, "then", "then"),
        (False, "", ", yes"),
    ]


@given(PIECES, PIECES, st.sampled_from([0, 3, 20, 10**6]))
def test_blocks_give_both_texts_back(left: list[str], right: list[str], most: int) -> None:
    blocks = diff(left, right, most).blocks
    at = (0, 0)
    for before, block in zip([None, *blocks], blocks, strict=False):
        assert (block.left[0], block.right[0]) == at
        assert before is None or before.equal != block.equal
        assert (left[slice(*block.left)] == right[slice(*block.right)]) == block.equal
        at = (block.left[1], block.right[1])
    assert at == (len(left), len(right))


@given(PIECES)
def test_a_text_equals_itself(pieces: list[str]) -> None:
    end = len(pieces)
    assert diff(pieces, pieces).blocks == [Block(True, (0, end), (0, end))][: bool(pieces)]


def test_lines_come_first_where_words_would_take_long() -> None:
    left = ["same\n", *"ababab", "\n", "end\n", "x", "\n"]
    right = ["same\n", *"bababa", "\n", "end\n", "y", "\n"]
    assert diff(left, right).whole
    lines = diff(left, right, most=4)
    assert not lines.whole
    assert parts(lines.blocks, left, right) == [
        (True, "same\n", "same\n"),
        (False, "ababab\n", "bababa\n"),
        (True, "end\n", "end\n"),
        (False, "x", "y"),
        (True, "\n", "\n"),
    ]


def test_tokens_cut_otherwise_are_not_the_same_line() -> None:
    found = diff(["a", "b\n", *"xyxyxy"], ["ab\n", *"yxyxyx"], most=5)
    assert not found.blocks[0].equal


@pytest.mark.parametrize("kind", ["prose", "digits", "one letter", "empty lines"])
def test_long_texts_do_not_block(kind: str) -> None:
    rng = random.Random(0)
    make = {
        "prose": lambda: " ".join(f"w{int(rng.paretovariate(0.5)) % 3000}" for _ in range(4000)),
        "digits": lambda: "".join(rng.choice("0123456789+-*=") for _ in range(20_000)),
        "one letter": lambda: "a " * 10_000 + rng.choice("bc") + "a " * rng.randrange(3000),
        "empty lines": lambda: "\n" * 10_000 + rng.choice("bc") + "\n" * rng.randrange(3000),
    }[kind]
    left, right = make(), make()
    start = time.process_time()
    found = diff(words(left), words(right))
    assert time.process_time() - start < 2.0
    assert found.blocks[-1].left[1] == len(words(left))


def test_the_text_view_escapes_marks_and_aligns() -> None:
    both = text_diff_html(f"one\n{HOSTILE}\nend", f"one\n2 {HOSTILE}\nend", unified=False)
    assert "<img" not in both and "<script" not in both
    body = both.split("</style>")[1]
    assert body.count('<div class="a">') == body.count('<div class="b">') == 3
    assert "<ins>2 </ins>&lt;" in body
    unified = text_diff_html("a b c", "a x c", unified=True).split("</style>")[1]
    assert 'class="diff">a <del>b </del><ins>x </ins>c</div>' in unified


def test_a_changed_line_break_is_seen() -> None:
    body = text_diff_html("a\n\nb", "a\nb", unified=True)
    assert "<del>a⏎\n⏎\n</del><ins>a⏎\n</ins>b</div>" in body


def test_texts_that_are_cut_say_so() -> None:
    assert "characters of each" in text_diff_html("a" * (LONGEST + 1), "a", unified=True)
    assert "characters of each" not in text_diff_html("a" * LONGEST, "a", unified=True)


def tokens(texts: Sequence[str | None], entropies: Sequence[float | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "position": range(len(texts)),
            "token_id": range(len(texts)),
            "text": texts,
            "behaviour_logprob": [-1.0] * len(texts),
            "logprob": [None if entropy is None else -0.5 for entropy in entropies],
            "entropy": entropies,
        },
        schema_overrides={"text": pl.String, "entropy": pl.Float64, "logprob": pl.Float64},
    )


def test_equal_tokens_stand_in_one_column_on_one_scale() -> None:
    left = tokens(["3", "+", HOSTILE], [0.0, 0.75, 3.0])
    right = tokens(["3", "+", "5", "\n"], [1.5, 0.75, None, 0.0])
    made = token_diff_html(left, right, SCALES["entropy"])
    body = made.split('<div class="diff">')[1]
    assert "<img" not in made and "<script" not in made
    columns = body.split('<span class="pair">')[1:]
    assert len(columns) == 4
    assert columns[0].count("<span") == 2 and "0.000)" in columns[0] and "0.800)" in columns[0]
    assert columns[1].count("0.400)") == 2
    assert "<del" in columns[2] and "<ins" in columns[2] and "transparent" in columns[2]
    assert columns[3].startswith("<span> </span><ins") and columns[3].endswith("<br></div>")
    assert "the same scale for both" in made


def test_long_token_lists_are_cut_and_say_so() -> None:
    many = tokens(["a"] * (MOST_TOKENS + 1), [0.1] * (MOST_TOKENS + 1))
    made = token_diff_html(many, many, SCALES["ratio"])
    assert made.count('class="pair"') == MOST_TOKENS
    assert "tokens of each are compared" in made
