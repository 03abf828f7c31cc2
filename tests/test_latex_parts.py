"""The maths of a response: found whole, or left as the text that it is."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.latex_parts import LONGEST, Part, latex_parts
from app.components.latex_view import first_maths, lines_of

PIECES = ["$", "$$", "\\(", "\\)", "\\[", "\\]", "\\", "\\boxed{", "{", "}", "x", "5 ", "\n"]
MADE_UP = st.lists(st.sampled_from([*PIECES, "\\href{", "\\def\\a{\\a}"]), max_size=40)


@settings(max_examples=60, deadline=None)
@given(MADE_UP.map("".join) | st.text())
def test_the_parts_joined_are_the_response(text: str) -> None:
    parts = latex_parts(text)
    assert "".join(part.raw for part in parts) == text
    lines = lines_of(parts)
    assert "\n".join("".join(part.raw for part in line) for line in lines) == text
    for part in parts:
        assert part.maths is None or part.maths in part.raw


@pytest.mark.parametrize(
    ("text", "maths"),
    [
        (r"so \(a+b\) and \[ \frac{1}{2} \] end", ["a+b", r"\frac{1}{2}"]),
        ("$x^2$ is $$y\nz$$", ["x^2", "y\nz"]),
        (r"7+5=2;\boxed{\text{a \} b}}", [r"\boxed{\text{a \} b}}"]),
        (r"$\boxed{4}$", [r"\boxed{4}"]),
        (r"$5\$ + x$", [r"5\$ + x"]),
        (r"\(a \\\)", [r"a \\"]),
        ("it costs $5 and $6.", []),
        ("a $ b $ c", []),
        ("$a\nb$", []),
        (r"\$x\$ and \\(y\\)", []),
        (r"\(never closed", []),
        (r"\boxed{never closed", []),
        ("$a{b$ and $c}d$", []),
        ("$$ $$", []),
    ],
)
def test_what_is_maths(text: str, maths: list[str]) -> None:
    assert [part.maths for part in latex_parts(text) if part.maths is not None] == maths


@pytest.mark.parametrize(
    "inside",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\url{http://a}",
        r"\includegraphics{http://a/b.png}",
        r"\htmlClass{a}{b}",
        r"\htmlStyle{color:red}{b}",
        r"\def\a{\a\a}\a",
        r"\gdef\a{\a}",
        r"\newcommand{\a}{\a}",
        "a $$\n# b",
        "x" * (LONGEST + 1),
    ],
)
def test_what_could_trick_a_typesetter_stays_text(inside: str) -> None:
    for text in (rf"\({inside}\)", rf"\[{inside}\]", rf"\boxed{{{inside}}}"):
        assert all(part.maths is None for part in latex_parts(text))


def test_a_macro_that_only_begins_like_a_hostile_one_is_maths() -> None:
    assert latex_parts(r"$\left(a\right)\urcorner$")[0].maths == r"\left(a\right)\urcorner"


@pytest.mark.parametrize(
    "text", ["\\boxed{" * 20_000, "$" * 200_000, "\\(" * 100_000, "$a " * 70_000, "$\\$" * 60_000]
)
def test_no_text_takes_long(text: str) -> None:
    start = time.process_time()
    latex_parts(text)
    assert time.process_time() - start < 5  # 0.6 s at most here


def test_lines_keep_maths_in_its_line_and_run_text_together() -> None:
    parts = [Part("a\nb\nlet "), Part("$x$", "x"), Part(" be\nc\nd")]
    assert lines_of(parts) == [
        [Part("a"), Part("\n"), Part("b")],
        [Part("let "), Part("$x$", "x"), Part(" be")],
        [Part("c"), Part("\n"), Part("d")],
    ]


def test_only_the_first_pieces_are_typeset() -> None:
    parts = [Part("$a$", "a"), Part(" "), Part("$b$", "b"), Part("$c$", "c")]
    assert first_maths(parts, 2) == [*parts[:3], Part("$c$")]
