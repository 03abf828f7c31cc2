"""The hits that the detail marks are those that the filter of the browser means."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.errors import UserError
from analysis.highlight import MOST, hits
from app.components.marked_text import marked_html

CONNECTION = duckdb.connect()


@pytest.mark.parametrize(
    ("text", "wanted", "regex", "found"),
    [
        ("Ab ab AB", "aB", False, ["Ab", "ab", "AB"]),
        ("aaaa", "aa", False, ["aa", "aa"]),
        ("ÄÖ äö İx", "äö", False, ["ÄÖ", "äö"]),
        ("a.c abc", "a.c", False, ["a.c"]),
        ("a.c abc", "a.c", True, ["a.c", "abc"]),
        ("foobar FOO x foo", r"\bfoo\b", True, ["FOO", "foo"]),
        ("12 ab 345", r"(\d)(\d)+", True, ["12", "345"]),
        ("xaaz", "a*", True, ["aa"]),
        ("a\nb", "a$", True, []),
        ("a\nb", "(?s)a.b", True, ["a\nb"]),
        ("x", "", False, []),
    ],
)
def test_hits(text: str, wanted: str, regex: bool, found: list[str]) -> None:
    spans = hits(CONNECTION, text, wanted, regex)
    assert [text[start:end] for start, end in spans] == found


def test_the_place_is_that_of_the_match_not_of_the_same_letters_before() -> None:
    assert hits(CONNECTION, "foobar foo", r"\bfoo\b", True) == ((7, 10),)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="aAbBßÄä€\U000f0000\n", max_size=30), st.sampled_from("aAbBßä€"))
def test_a_text_hits_exactly_where_the_filter_finds_it(text: str, wanted: str) -> None:
    query = "SELECT contains(lower($text), lower($wanted)), regexp_matches($text, $wanted, 'i')"
    row = CONNECTION.execute(query, {"text": text, "wanted": wanted}).fetchone()
    assert row is not None
    for regex, there in zip((False, True), row, strict=True):
        spans = hits(CONNECTION, text, wanted, regex)
        assert bool(spans) == there
        assert "".join(marked_html(text, spans).split("<mark>")).replace("</mark>", "") == text


def test_a_pattern_that_hangs_python_is_fast_and_hits_are_counted_up_to_a_limit() -> None:
    assert hits(CONNECTION, "a" * 5000 + "b", "(a+)+$", True) == ()
    assert len(hits(CONNECTION, "a" * 10_000, "a", True)) == MOST
    assert len(hits(CONNECTION, "a" * 10_000, "a", False)) == MOST


def test_a_broken_pattern_is_a_plain_error() -> None:
    with pytest.raises(UserError, match="missing"):
        hits(CONNECTION, "a", "(", True)


def test_every_piece_of_a_marked_text_is_escaped() -> None:
    page = marked_html("<b>x</b><i>", ((0, 4), (8, 11)))
    assert page == "<mark>&lt;b&gt;x</mark>&lt;/b&gt;<mark>&lt;i&gt;</mark>"
