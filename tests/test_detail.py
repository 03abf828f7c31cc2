"""The detail of one trajectory: every view of its text, its group, star, note and link."""

from pathlib import Path
from urllib.parse import parse_qs

import pytest
from golden_lake import build_golden, rows
from lake_fixture import HOSTILE, DemoResults
from screens import open_screen, texts, write_import
from streamlit.testing.v1 import AppTest

from analysis.notes import FILE, Note, read_notes, write_note
from app import state
from app.browser import Browser
from app.components import response_view
from app.components.copy_link import address


@pytest.fixture(scope="module")
def golden_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    build_golden(folder / "workbench.duckdb")
    return folder


@pytest.fixture
def golden_screen(golden_results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_results))
    return golden_results


@pytest.fixture
def hostile(analysed: DemoResults) -> str:
    found = (row for row in analysed.rows["trajectories"] if row["response"] == HOSTILE)
    return next(found)["trajectory"]


def pages(test: AppTest) -> str:
    """All of our own HTML on the screen."""
    return "".join(item.proto.body for item in test.get("html"))


def weighed_trajectory() -> str:
    """A replayed trajectory of the golden lake with a gradient and logged token floats."""
    floats = {row["trajectory"] for row in rows("tokens") if row["logprobs"] is not None}
    return next(
        row["trajectory"]
        for row in rows("trajectories")
        if row["replayed"] and row["weight_mean"] is not None and row["trajectory"] in floats
    )


@pytest.mark.parametrize("view", ["entropy", "ratio", "weight", "advantage"])
def test_each_number_of_the_tokens_has_colours_a_legend_and_a_table(
    view: str, golden_screen: Path
) -> None:
    test = open_screen("trajectories", trajectory=weighed_trajectory(), view=view)
    page = pages(test)
    assert response_view.SCALES[view].title in page
    assert "here from" in page
    assert "adv. × weight" in page
    assert not test.info
    assert test.segmented_control(key="Browser.view").value == view


def test_the_address_names_the_ranking_and_the_marked_token(golden_screen: Path) -> None:
    trajectory = weighed_trajectory()
    test = open_screen(
        "trajectories", trajectory=trajectory, view="entropy", surprising="ratio", token="2"
    )
    assert test.segmented_control(key="Browser.surprising").value == "ratio"
    ranked = next(
        item.value for item in test.dataframe if "|log-ratio| [nat]" in item.value.columns
    )
    values = list(ranked["|log-ratio| [nat]"])
    assert values == sorted(values, reverse=True)
    assert 'chosen" tabindex="0"' in pages(test)
    test.segmented_control(key="Browser.surprising").set_value("entropy").run()
    assert test.query_params["surprising"] == "entropy"


def test_a_token_of_a_long_text_brings_its_part_with_it(
    results: Path, analysed: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_view, "WINDOW", 3)
    row = next(row for row in analysed.rows["tokens"] if len(row["token_ids"]) > 6)
    test = open_screen("trajectories", trajectory=row["trajectory"], view="entropy", token="4")
    page = pages(test)
    assert [f'data-tip="token {place},' in page for place in (2, 3, 4, 5, 6)] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_an_import_has_no_weights_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_import(tmp_path, ["$x$ and <b>", "2"], [1, None])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    for view in ("weight", "advantage"):
        test = open_screen("trajectories", trajectory="long:1:0:0", view=view)
        assert "no tokens" in test.info[0].value
    test = open_screen("trajectories", trajectory="long:1:0:0", view="latex")
    assert [item.value for item in test.latex] == ["$$\nx\n$$"]
    assert "and &lt;b&gt;" in pages(test)


def test_numbers_that_do_not_agree_with_the_log_are_not_shown(
    results: Path, analysed: DemoResults
) -> None:
    row = next(row for row in analysed.rows["tokens"] if row["logprobs"])
    test = open_screen("trajectories", trajectory=row["trajectory"], view="weight")
    assert "do not agree" in test.info[0].value


@pytest.mark.parametrize("query", [{"text": "ERROR=Alert"}, {"text": "al.rt", "regex": "true"}])
def test_hits_of_the_search_are_marked_in_hostile_text(
    query: dict[str, str], results: Path, hostile: str
) -> None:
    test = open_screen("trajectories", trajectory=hostile, **query)
    page = pages(test)
    assert page.count("<mark>") == 1
    assert "<img" not in page
    assert "1 hit of the search" in texts(test)
    assert HOSTILE in [item.value for item in test.code]


def test_latex_typesets_maths_alone(results: Path, hostile: str) -> None:
    test = open_screen("trajectories", trajectory=hostile, view="latex")
    assert [item.value for item in test.latex] == [
        "$$\n\\frac{1}{0}\n$$",
        "$$\n\\boxed{5}\n$$",
    ]
    assert "&lt;img src=x onerror=alert(1)&gt;" in pages(test)
    assert "<img" not in pages(test)


def test_star_and_note_are_kept_and_shown_again(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    trajectory = own.rows["trajectories"][0]["trajectory"]
    test = open_screen("trajectories", trajectory=trajectory)
    test.button(key="detail.star").click().run()
    assert test.button(key="detail.star").label == "★ Starred"
    evil = "</textarea><script>alert(1)</script>"
    test.text_area(key=f"detail.note.{trajectory}").set_value(evil).run()
    kept = read_notes(own.results)[trajectory]
    assert (kept.starred, kept.note) == (True, evil)
    write_note(own.results, Note(trajectory, False, "written elsewhere"))
    test.run()
    assert test.text_area(key=f"detail.note.{trajectory}").value == "written elsewhere"
    assert test.button(key="detail.star").label == "☆ Star"


def test_a_note_that_cannot_be_written_or_read_is_one_line(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    trajectory = own.rows["trajectories"][0]["trajectory"]
    (own.results / FILE).write_text('{"trajectory": "a", "starred": true}\n{torn')
    test = open_screen("trajectories", trajectory=trajectory)
    assert any("passed over: 2." in item.value for item in test.warning)
    (own.results / FILE).unlink()
    (own.results / FILE).mkdir()
    test.button(key="detail.star").click().run()
    assert "cannot write the note" in texts(test)
    assert "cannot read the notes" in texts(test)
    assert own.rows["trajectories"][0]["response"] in texts(test)


def test_the_link_holds_the_whole_state(results: Path, hostile: str) -> None:
    browser = Browser(trajectory=hostile, view="weight", token=3, surprising="entropy")
    browser = state.change(browser, arms=("a&b", "ü"), text="x=1 #", regex=True)
    link = address("http://localhost:1/trajectories", state.to_query(browser))
    page, _, query = link.partition("?")
    assert page == "http://localhost:1/trajectories"
    assert state.from_query(Browser, parse_qs(query)) == browser
    assert address("http://localhost:1/", {}) == "http://localhost:1/"
    test = open_screen("trajectories", trajectory=hostile, view="latex")
    assert any(f"trajectory={hostile.replace(':', '%3A')}&view=latex" in c.value for c in test.code)


def test_each_other_rollout_of_the_group_can_be_compared(
    results: Path, hostile: str, analysed: DemoResults
) -> None:
    test = open_screen("trajectories", trajectory=hostile)
    links = [link.proto.query_string for link in test.get("page_link")]
    pairs = [parse_qs(link) for link in links if "a=" in link and "b=" in link]
    prefix = hostile.rsplit(":", 1)[0]
    assert [pair["a"] for pair in pairs] == [[hostile]] * 3
    assert [pair["b"] for pair in pairs] == [[f"{prefix}:{slot}"] for slot in (0, 1, 3)]
    assert any("question=" in link for link in links)
