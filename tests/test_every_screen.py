"""Every screen, at every address that another one links to, on every kind of lake."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lake_fixture import DemoResults
from lakes import EVIL, EVIL_NAME, LAKES
from screens import open_screen, texts

from analysis.catalog import open_catalog
from analysis.queries import ask

SCREENS = sorted(
    path.stem
    for path in (Path(__file__).resolve().parents[1] / "app" / "screens").glob("*.py")
    if path.stem != "__init__"
)
FULL = "full"
ALL = (FULL, *LAKES)

# Markdown and HTML that would be read as such.
READ_AS_MARKUP = ("![b](", "[l](javascript", "<img src=x", "<script>", "<b>B</b>")


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
    for address in addresses(lakes[lake]):
        test = open_screen(name, **address)
        assert texts(test) or len(test.dataframe), (name, address)
        if lake == "hostile":
            assert not read_as_markup(test), (name, address)


# SQL can be asked without a run: it says how many rows it found.
@pytest.mark.parametrize("name", [name for name in SCREENS if name != "sql"])
def test_an_empty_catalog_is_said(
    name: str, lakes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(lakes["empty"]))
    test = open_screen(name)
    assert len(test.info) + len(test.warning) >= 1


def read_as_markup(test: object) -> list[str]:
    """What of EVIL stands unescaped in an element that reads markup."""
    found = []
    for kind in ("markdown", "caption", "info", "warning", "error", "success", "html", "title"):
        for element in test.get(kind):  # type: ignore[attr-defined]
            body = str(getattr(element.proto, "body", ""))
            if kind != "html":
                # Streamlit shows HTML in Markdown as text; what it reads is Markdown.
                body = re.sub(r"\\.", "", body)
                found += [f"{kind}: {body[:200]}" for mark in READ_AS_MARKUP[:2] if mark in body]
            else:
                found += [f"{kind}: {body[:200]}" for mark in READ_AS_MARKUP[2:] if mark in body]
    return found


def test_the_check_for_markup_finds_it() -> None:
    """It would see evil that a screen lets through."""
    from streamlit.testing.v1 import AppTest

    test = AppTest.from_string(
        f"import streamlit as st\nst.markdown({EVIL!r})\nst.html({EVIL!r})\n"
        f"st.caption({EVIL_NAME!r})\nst.code({EVIL!r})"
    ).run()
    assert {line.split(":")[0] for line in read_as_markup(test)} == {"markdown", "html", "caption"}
