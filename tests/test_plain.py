"""Foreign text in Markdown, drawn by the real front end: letter for letter, and nothing else."""

import json
import random
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.components.plain import JOINER, plain

ROOT = Path(__file__).resolve().parents[1]
NASTY = [
    ":red[x] :blue-badge[x] :a[b]{c=d} :::box", ":smile: a :+1: :material/home: :streamlit: :)",
    "$x^2$ and $$y$$ cost $5 and $6", "[a](http://b.c) ![a](http://b.c/x.png) [x]: http://a.b",
    "http://example.com/x https://a.b www.example.com WWW.A.de", "a@b.com mailto:x+y@z.org",
    "<b>x</b> <img src=x onerror=alert(1)> <http://a.b> <!-- c -->", "&amp; &lt; &#58;",
    "# head", "- list", "1. list", "1) list", "> quote", "* a", "+ b", "    code", "- [ ] task",
    "`code` ``x``", "```\ncode\n```", "~~strike~~ **b** __i__ _x_ *y* ==x==", "===", "---", "~",
    "a | b\n--|--\n1 | 2", "a\n---", "a -> b <- c <-> d -- e >= f <= g ~= h", "<-> ->", "\\",
    "\\\\ \\[x\\] \\(y\\)", "[^1] note\n\n[^1]: x", "[[x]]", "exgrpo-s0-abc:12:3:4", "é 🙂",
]  # fmt: skip
PIECES = [*":[]()<>*_`~$#-+=|!\\/.@&;{}^\"' \n", "http://a.b", "www.a", "red", "smile", "1", "->"]
MARKUP = "a,img,b,strong,em,code,pre,del,h1,h2,ul,ol,blockquote,table,hr,span,svg,.katex"
SCRIPT = """
import json, sys
import streamlit as st
sys.path.insert(0, {root!r})
from app.components.plain import plain
for text in json.loads({texts!r}):
    st.markdown(plain(text))
    st.button("x " + plain(text), key=text)
"""


def nasty() -> list[str]:
    rng = random.Random(7)
    made = ("".join(rng.choices(PIECES, k=rng.randint(2, 14))) for _ in range(80))
    return list(dict.fromkeys([*NASTY, *(text for text in made if text.strip())]))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Any]:
    """A browser's page with every nasty text on it, in a paragraph and on a button."""
    pytest.importorskip("playwright", reason="needs the `dev` extra")
    tools = runpy.run_path(str(ROOT / "docs" / "screenshots.py"))
    if tools["chromium"]() is None:
        pytest.skip("needs an installed Chromium or Chrome")
    script = tmp_path / "nasty.py"
    script.write_text(SCRIPT.format(root=str(ROOT), texts=json.dumps(nasty())))
    port = tools["free_port"]()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true"]
    server = subprocess.Popen(
        [*command, "--server.address=127.0.0.1", f"--server.port={port}"],
        stdout=subprocess.DEVNULL,
    )
    try:
        tools["wait"](f"http://127.0.0.1:{port}/_stcore/health", server)
        with tools["browsing"]() as opened:
            opened.goto(f"http://127.0.0.1:{port}")
            tools["settle"](opened)
            yield opened
    finally:
        server.terminate()
        server.wait()


def test_any_text_is_drawn_letter_for_letter_and_without_markup(page: Any) -> None:
    drawn = page.locator("[data-testid=stMarkdownContainer]").evaluate_all(
        f"all => all.map(e => [e.innerText, e.querySelectorAll('{MARKUP}').length])"
    )
    texts = [" ".join(text.split()) for text in nasty()]
    expected = [[each, 0] for text in texts for each in (text, f"x {text}")]
    assert [[text.replace(JOINER, "").strip(), marks] for text, marks in drawn] == expected


def test_plain_words_stay_as_they_are() -> None:
    assert plain("two words  é\n🙂") == "two words é 🙂"
    assert plain("a_b") == "a\\_b"
