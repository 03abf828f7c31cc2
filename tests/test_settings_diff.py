"""Settings of runs, flattened and compared."""

import pytest

from analysis.errors import UserError
from analysis.settings_diff import Difference, differences, kind_of, read_settings, shown


def test_settings_are_flattened_by_section() -> None:
    text = '{"a": {"b": {"c": 1}, "d": [1, 2], "e": {}}, "f": null, "g.h": "x", "": true}'
    assert read_settings(text) == {
        "a.b.c": 1,
        "a.d": [1, 2],
        "a.e": {},
        "f": None,
        '"g.h"': "x",
        "": True,
    }
    assert read_settings(None) == read_settings("") == read_settings("{}") == {}


@pytest.mark.parametrize(
    "text", ["{", "[1]", "3", '"x"', '{"a":' * 3000 + "1" + "}" * 3000, "{a: 1}"]
)
def test_what_are_no_settings_is_an_error(text: str) -> None:
    with pytest.raises(UserError, match="these settings cannot be read"):
        read_settings(text)


def test_only_what_differs_and_what_one_lacks() -> None:
    left = read_settings('{"a": {"b": 1, "c": 0.5, "d": true}, "n": null, "l": [1]}')
    right = read_settings('{"a": {"b": 1.0, "c": 0.25, "d": 1}, "l": [2], "new": {"x": "y"}}')
    assert differences(left, right) == [
        Difference("a.c", "0.5", "0.25"),
        Difference("a.d", "true", "1"),  # a number is no yes
        Difference("n", "null", None),  # set to nothing is not the same as not set
        Difference("l", "[1]", "[2]"),
        Difference("new.x", None, '"y"'),
    ]
    assert differences(left, left) == []
    assert [each.name for each in differences({}, {"x": 1})] == ["x"]


def test_numbers_that_are_none_and_texts_that_look_like_numbers() -> None:
    one = read_settings('{"a": NaN, "b": "1"}')
    assert differences(one, read_settings('{"a": NaN, "b": 1}')) == [Difference("b", '"1"', "1")]


def test_types_are_named() -> None:
    values = [True, 3, 0.5, "x", [1], {}, None]
    words = ["yes or no", "whole number", "number", "text", "list", "", ""]
    assert [kind_of(value) for value in values] == words
    assert shown("<b>é</b>") == '"<b>é</b>"'
