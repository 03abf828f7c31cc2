"""Every screen, at every address that another one links to, on every kind of lake."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lake_fixture import DemoResults
from lakes import BENCHMARK, EVIL, EVIL_BENCHMARKS, EVIL_NAME, LAKES, evil_study
from markupsafe import escape
from screens import open_screen, texts
from streamlit.testing.v1 import AppTest

from analysis.catalog import open_catalog
from analysis.queries import ask
from pipeline.report import make_report
from pipeline.scores import show_scores
from pipeline.summary import print_summary
from pipeline.terminal import CONTROL, printable

SCREENS = sorted(
    path.stem
    for path in (Path(__file__).resolve().parents[1] / "app" / "screens").glob("*.py")
    if path.stem != "__init__"
)
FULL = "full"
ALL = (FULL, *LAKES)

# What of EVIL would be read as Markdown, and as HTML: by the page or by Plotly.
MARKDOWN = ("![b](", "[l](javascript", ":red[", ":material/home", "$\\frac", "$x$", "http://evil")
MARKDOWN += ("**s**", "`c`")
HTML = ("<img src=x", "<script>", "<b>Evil</b>", "</span></div>\x1b")
# Fields of Streamlit's messages that are read as Markdown; of choices only those of a radio.
READ = {False: {"label", "help", "body", "content", "title", "caption", "captions", "delta"}}
READ[True] = READ[False] | {"options"}
SHOWN_AS_TEXT = {"code", "text", "arrow_data_frame"}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory, analysed: DemoResults) -> dict[str, Path]:
    """A results folder of each kind."""
    made = {FULL: analysed.results}
    for name, make in LAKES.items():
        made[name] = tmp_path_factory.mktemp("lakes") / name
        make(analysed, made[name])
    return made


@pytest.fixture(params=ALL)
def lake(
    request: pytest.FixtureRequest, lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.setenv("EXGRPO_RESULTS", str(lakes[request.param]))
    yield request.param


def addresses(results: Path) -> list[dict[str, str]]:
    """Addresses that name what this lake holds, and some that name what none holds."""
    with open_catalog(results / "workbench.duckdb") as connection:
        row = ask(
            connection,
            "select study, arm, run, question, trajectory from trajectories join runs using (run) "
            "order by replayed desc, trajectory",
            1,
        ).frame.rows(named=True)
    known = row[0] if row else {}
    return [
        {},
        {"study": "none", "run": "none", "arms": "none", "question": "none", "claim": "C99"},
        {"trajectory": "none:1:2:3", "source": "evaluation", "benchmark": "none"},
        {name: known[name] for name in ("study", "run", "question", "trajectory") if name in known},
        {name: known[name] for name in ("study", "trajectory") if name in known},
        {"study": known.get("study", ""), "arms": known.get("arm", ""), "source": "evaluation"},
    ]


@pytest.mark.parametrize("name", SCREENS)
def test_it_stands(name: str, lake: str, lakes: dict[str, Path]) -> None:
    """No exception, something said or shown, and no foreign text read as markup."""
    found: set[str] = set()
    for address in addresses(lakes[lake]):
        test = open_screen(name, **address)
        assert texts(test) or len(test.dataframe), (name, address)
        if lake == "hostile":
            found |= set(read_as_markup(test))
    assert not found


VIEWS = {
    "overview": [{"section": s} for s in ("accuracy", "claims", "health", "training", "observed")],
    "runs": [{"view": view} for view in ("quality", "settings", "origin", "differences")],
    "snowball": [{"view": view} for view in ("curves", "replays", "events", "offenders")],
    "buffer": [{"view": v} for v in ("events", "age", "reuse", "draws", "snapshot")],
    "compare": [{"on": "training"}, {"benchmark": BENCHMARK + EVIL_NAME}],
    "sql": [
        {"sql": "select * from judgements"},
        {"sql": "select judge, reason, valid from judgements", "shown_as": "bar", "x": "judge"},
    ],
    "trajectories": [{"source": "evaluation", "benchmark": BENCHMARK + EVIL_NAME}],
}


@pytest.mark.parametrize("name", VIEWS)
def test_no_view_reads_foreign_text_as_markup(
    name: str, lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(lakes["hostile"]))
    found: set[str] = set()
    for address in VIEWS[name]:
        found |= set(read_as_markup(open_screen(name, **address)))
    assert not found


def test_report_and_terminal_obey_no_foreign_name(
    lakes: dict[str, Path], analysed: DemoResults, capsys: pytest.CaptureFixture[str]
) -> None:
    study, results = evil_study(analysed), lakes["hostile"]
    make_report(study, results)
    page = (results / study.name / "report.html").read_text()
    shown = page[page.index('id="result"') : page.index('id="claims"')]
    assert not [mark for mark in HTML if mark in shown]
    print_summary(study, results)
    show_scores(results, study.name)
    printed = capsys.readouterr().out
    for name in EVIL_BENCHMARKS:
        assert escape(name) in shown
    assert "rejected" in printed and printable("\x1b") in printed
    assert not {each for each in printed if CONTROL.match(each)}


# SQL can be asked without a run: it says how many rows it found.
@pytest.mark.parametrize("name", [name for name in SCREENS if name != "sql"])
def test_an_empty_catalog_is_said(
    name: str, lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(lakes["empty"]))
    test = open_screen(name)
    assert len(test.info) + len(test.warning) >= 1


def read_as_markup(test: Any) -> list[str]:
    """What of EVIL stands unescaped where markup is read, each with the kind of its element."""
    found = []
    for node in (*test.main, *test.sidebar):
        for text, marks in _texts(node.type, node.proto):
            found += [f"{node.type}: {mark} in {text[:200]}" for mark in marks if mark in text]
    return found


def _texts(kind: str, proto: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The texts of an element as its reader sees them, with the marks that this one reads."""
    if kind == "html":
        yield proto.body, HTML
    elif kind == "plotly_chart":
        for text in _strings(json.loads(proto.spec)):
            yield text, HTML
    elif kind not in SHOWN_AS_TEXT and proto is not None:
        for text in _fields(proto):
            # Streamlit shows HTML in Markdown as text; what it reads is Markdown.
            yield re.sub(r"\\[!-/:-@\[-`{-~]", "", text), MARKDOWN


def _fields(proto: Any) -> Iterator[str]:
    """Every text at any depth of a message that the page reads as Markdown."""
    for field, value in proto.ListFields():
        for item in [value] if isinstance(value, str | bytes) else _listed(value):
            if hasattr(item, "ListFields"):
                yield from _fields(item)
            elif isinstance(item, str) and field.name in READ[proto.DESCRIPTOR.name == "Radio"]:
                yield item


def _listed(value: Any) -> list[Any]:
    try:
        return list(value)
    except TypeError:  # a number, or one message
        return [value]


def _strings(value: Any) -> Iterator[str]:
    """Every text of a figure but what its points carry for a click."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in ("customdata", "meta"):
                yield from _strings(item)


def test_the_check_for_markup_finds_it() -> None:
    """It would see evil that a screen lets through, wherever it stands, and no escaped one."""
    shown = f"""
import html
import plotly.graph_objects as go
import streamlit as st
from app.components.plain import plain

EVIL, NAME = {EVIL!r}, {EVIL_NAME!r}

def draw(text, html):
    st.markdown(text)
    st.info(text)
    st.html(html)
    st.expander(text)
    st.tabs([text])
    st.popover(text)
    st.button(text)
    st.button("a", help=text)
    st.page_link("http://localhost", label=text)
    st.segmented_control("a", [text])
    st.radio("b", [text])
    st.metric(text, 1)
    st.plotly_chart(go.Figure(go.Bar(x=[html], y=[1])), key=html)
"""
    evil = AppTest.from_string(shown + "draw(EVIL, EVIL)").run()
    assert not evil.exception
    kinds = {"markdown", "info", "html", "expander", "tab", "popover", "button", "page_link"}
    kinds |= {"button_group", "radio", "metric", "plotly_chart"}
    found = read_as_markup(evil)
    assert {line.split(":")[0] for line in found} == kinds
    for mark in (*MARKDOWN, *HTML):
        assert any(f": {mark} in " in line for line in found) or mark in EVIL_NAME
    text = "st.code(EVIL, language=None); st.text(EVIL); st.selectbox('c', [EVIL])"
    good = AppTest.from_string(f"{shown}draw(plain(EVIL), html.escape(EVIL))\n{text}").run()
    assert not good.exception and not read_as_markup(good)
