"""The dashboard's screens through Streamlit's own AppTest, over a made-up study."""

import logging
import re
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Literal

import plotly.graph_objects as go
import pytest
from lake_fixture import HOSTILE, STUDY, DemoResults
from screens import SCREENS, open_screen, texts, write_import
from streamlit.testing.v1 import AppTest

from analysis.browse import Filters
from analysis.catalog_build import build
from analysis.compaction import compact
from app import data, state
from app.browser import Browser, neighbour
from app.components import response_view
from app.components.narrow_figure import narrow


@pytest.mark.parametrize("name", SCREENS)
def test_each_screen_renders_without_a_word_in_the_log(
    name: str, results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("streamlit").propagate = True
    open_screen(name)
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert not [line for line in said if "deprecat" in line or "default value" in line]


@pytest.mark.parametrize("name", SCREENS)
def test_without_a_catalog_each_screen_names_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    assert "make reproduce" in open_screen(name).info[0].value


def test_the_address_restores_filters_sort_page_and_trajectory(
    results: Path, analysed: DemoResults
) -> None:
    replayed = next(row for row in analysed.rows["trajectories"] if row["replayed"])
    test = open_screen(
        "trajectories",
        study=STUDY,
        arms=["exgrpo"],
        correct="true",
        step_min="2",
        sort="mean_entropy",
        descending="true",
        size="25",
        page="2",
        trajectory=replayed["trajectory"],
        view="entropy",
    )
    assert test.selectbox(key="Browser.study").value == STUDY
    assert test.multiselect(key="Browser.arms").value == ["exgrpo"]
    assert test.number_input(key="Browser.step_min").value == 2
    assert test.toggle(key="Browser.descending").value
    shown = test.dataframe[0].value
    right = [
        row["mean_entropy"]
        for row in analysed.rows["trajectories"]
        if row["run"].startswith("exgrpo-") and row["correct"] and row["step"] >= 2
    ]
    expected = sorted(right, reverse=True)[25:50]
    assert list(shown["mean_entropy"]) == expected
    assert f"**{len(right):,}** trajectories" in texts(test)
    assert replayed["trajectory"] in [item.value for item in test.code]
    assert f"first sampled at step {replayed['birth_step']}" in texts(test)


def test_a_filter_goes_into_the_address_and_back_to_page_one(results: Path) -> None:
    test = open_screen("trajectories", page="3")
    test.text_input(key="Browser.text").set_value("alert(1)").run()
    assert test.query_params["text"] == "alert(1)"
    assert "page" not in test.query_params
    assert len(test.dataframe[0].value) == 1
    assert "**1** trajectory" in texts(test)


def test_next_walks_over_the_end_of_a_page(results: Path) -> None:
    first = data.page(Filters(), 1, 25).frame["trajectory"].to_list()
    second = data.page(Filters(), 2, 25).frame["trajectory"].to_list()
    test = open_screen("trajectories", size="25", trajectory=first[-1])
    test.button(key="browser.next").click().run()
    assert test.query_params["trajectory"] == second[0]
    assert test.query_params["page"] == "2"
    test.button(key="browser.previous").click().run()
    assert test.query_params["trajectory"] == first[-1]
    assert neighbour(Browser(size=25, trajectory=first[0]), data.page(Filters(), 1, 25), -1) is None


def test_an_unknown_trajectory_in_the_address_is_said(results: Path) -> None:
    test = open_screen("trajectories", trajectory="no:1:2:3")
    assert "does not hold" in test.warning[0].value


def test_hostile_text_is_shown_as_text(results: Path, analysed: DemoResults) -> None:
    hostile = next(row for row in analysed.rows["trajectories"] if row["response"] == HOSTILE)
    test = open_screen("trajectories", trajectory=hostile["trajectory"])
    assert HOSTILE in [item.value for item in test.code]
    assert not [item for item in test.markdown if "onerror" in item.value]
    assert "<img" not in "".join(item.proto.body for item in test.get("html"))


def test_sql_answers_counts_and_offers_the_trajectory(results: Path, analysed: DemoResults) -> None:
    test = open_screen("sql")
    test.text_area[0].set_value("select trajectory, correct from trajectories")
    test.button[0].click().run()
    total = len(analysed.rows["trajectories"])
    assert f"**{total} rows**" in texts(test)
    assert test.query_params["sql"] == "select trajectory, correct from trajectories"
    again = open_screen("sql", sql="select trajectory from trajectories", limit="100")
    assert "**100 rows**, cut" in texts(again)
    assert len(again.dataframe[-1].value) == 100


@pytest.mark.parametrize(
    "sql", ["selec 1", "copy (select 1) to 'x.csv'", "select * from read_text('/etc/hostname')"]
)
def test_refused_sql_is_one_line(sql: str, results: Path) -> None:
    test = open_screen("sql", sql=sql)
    assert len(test.error) == 1
    assert "\n" not in test.code[-1].value


def test_a_named_query_runs_with_parameters(results: Path) -> None:
    test = open_screen("sql", named="arm_summary", parameters=[f"study={STUDY}"])
    assert list(test.dataframe[-1].value["arm"]) == ["exgrpo", "on_policy"]


def test_an_import_shows_its_buckets_and_says_that_it_has_no_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_import(tmp_path, ["1", "2", "3"], [0, 4, 4])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    test = open_screen("overview")
    assert test.dataframe[0].value.to_dict("list") == {
        "k of K": ["0 of 4", "4 of 4"],
        "questions": [1, 2],
    }
    detail = open_screen("trajectories", trajectory="long:1:1:0", view="entropy")
    assert "no tokens" in detail.info[0].value


def test_one_page_of_20000_long_responses_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, letters = 20_000, 8_000
    write_import(tmp_path, ["8" * letters] * rows, [None] * rows)
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    test = open_screen("trajectories")
    assert "**20,000** trajectories" in texts(test)
    shown = test.dataframe[0].value
    assert len(shown) == 50
    assert set(shown["preview"].str.len()) == {120}
    assert data.page(Filters(), 400, 50).frame.estimated_size() < 50 * letters / 10


def test_a_catalog_built_anew_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    for study in ("first", "second"):
        row = {"run": study, "study": study, "arm": study, "status": "imported"}
        entry = compact(study, study, row, {}, tmp_path / "lake")
        build([entry], {}, tmp_path / "lake", tmp_path / "workbench.duckdb")
        assert data.answer("runs_overview")["study"].to_list() == [study]


@dataclass(frozen=True)
class Inner:
    name: str | None = None
    counts: tuple[int, ...] = ()
    flag: bool | None = None


@dataclass(frozen=True)
class Outer:
    inner: Inner = dataclass_field(default_factory=Inner)
    number: float | None = None
    page: int = 1
    view: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    "value",
    [
        Outer(),
        Outer(Inner("x&y=1 ü", (3, 0), False), 0.25, 7, "b"),
        Outer(Inner("0012", (), True), 0.0, 1, "a"),
    ],
)
def test_a_state_survives_the_address(value: Outer) -> None:
    assert state.from_query(Outer, state.to_query(value)) == value
    assert state.to_query(Outer()) == {}


def test_what_cannot_be_read_is_left_out() -> None:
    query = {"page": ["x"], "flag": ["maybe"], "view": ["c"], "number": ["1"], "other": ["1"]}
    assert state.from_query(Outer, query) == Outer(number=1.0)


def test_change_reaches_the_inner_state() -> None:
    assert state.change(Outer(), name="n", page=2) == Outer(Inner("n"), page=2)


def test_the_address_restores_the_row_limit(results: Path) -> None:
    sql = "select trajectory from trajectories"
    assert limit_shown(open_screen("sql", sql=sql, limit="100")) == 100
    foreign = open_screen("sql", sql=sql, limit="100000000")
    assert limit_shown(foreign) == 1000
    foreign.button[0].click().run()
    assert "limit" not in foreign.query_params


def limit_shown(test: AppTest) -> object:
    return next(item.value for item in test.selectbox if item.label == "Rows at most")


def test_the_address_restores_the_part_of_the_tokens(
    results: Path, analysed: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_view, "WINDOW", 3)
    row = next(row for row in analysed.rows["tokens"] if len(row["token_ids"]) > 6)
    parts = -(-len(row["token_ids"]) // 3)

    def positions(window: str) -> list[int]:
        test = open_screen(
            "trajectories", trajectory=row["trajectory"], view="ratio", window=window
        )
        page = "".join(item.proto.body for item in test.get("html"))
        return [int(number) for number in re.findall(r'data-tip="token (\d+),', page)]

    assert positions("2") == [3, 4, 5]
    assert positions("999") == list(range(3 * (parts - 1), len(row["token_ids"])))
    here = Browser(trajectory=row["trajectory"], window=2)
    page = data.page(Filters(), 1, 50)
    beside = neighbour(state.change(here, trajectory=page.frame["trajectory"][0]), page, 1)
    assert beside is not None and beside.window == 1


def test_a_long_subtitle_is_wrapped_and_gets_room() -> None:
    long = go.Figure(
        layout={"height": 300, "title": {"subtitle": {"text": "one<br>" + "a b " * 50}}}
    )
    plot = narrow(long)
    lines = plot.layout.title.subtitle.text.split("<br>")
    assert lines[0] == "one"
    assert len(lines) == 3
    assert max(map(len, lines)) <= 105
    assert plot.layout.height == 300 + 16
    assert narrow(plot).layout.height == plot.layout.height


def go_to(test: AppTest, screen: str) -> None:
    """As a click in the navigation: with a bare address."""
    test.switch_page(f"screens/{screen}.py")
    test.query_params.clear()
    test.run()


def test_a_screen_that_was_left_is_found_again(results: Path) -> None:
    test = open_screen("sql", sql="select 1")
    go_to(test, "overview")
    assert not test.query_params
    go_to(test, "sql")
    assert test.query_params["sql"] == "select 1"


def test_a_study_chosen_elsewhere_replaces_another_one(results: Path) -> None:
    test = open_screen("claims", study=STUDY, order="decided")
    go_to(test, "snowball")
    assert test.query_params["study"] == STUDY
    test.session_state[state.STUDY] = "other"
    go_to(test, "claims")
    assert dict(test.query_params) == {"study": "other"}
