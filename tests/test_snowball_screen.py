"""The snowball: what is drawn of the detector's findings, and the screen."""

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from lake_fixture import STUDY
from screens import open_screen, texts, write_import

from analysis.queries import answer
from analysis.snowball import ask, detect
from analysis.snowball.arms import curve
from analysis.snowball_figures import (
    MARKERS,
    REPLICATES,
    Replays,
    after_replays,
    draw_curves,
    draw_doses,
    draw_events,
    draw_gaps,
    judge,
    marked_rows,
    marked_shares,
    pooled,
)


@pytest.fixture(scope="module")
def shares(golden: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    return marked_shares(golden, "golden", "flawed")


@pytest.fixture(scope="module")
def replays(golden: duckdb.DuckDBPyConnection) -> Replays:
    return after_replays(golden, "golden", "flawed")


@pytest.fixture(scope="module")
def events(golden: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    return answer(golden, "snowball_event_study", study="golden")


def test_the_findings_are_those_of_the_detector(
    golden: duckdb.DuckDBPyConnection, shares: pl.DataFrame, replays: Replays
) -> None:
    frames = ask(golden, "golden")
    assert judge(golden, "golden", "flawed") == detect(frames, replicates=REPLICATES)
    mine = shares.filter(pl.col("arm") == "exgrpo").drop("arm")
    assert mine.rows() == curve(frames["snowball_fresh"], "exgrpo").rows()
    assert {"exgrpo", "highest_entropy", "on_policy"} <= set(shares["arm"])
    assert replays.doses["right"].sum() > 0
    assert replays.gaps["delay"].is_sorted()


def test_a_point_of_a_curve_opens_the_marked_rows_of_its_window(shares: pl.DataFrame) -> None:
    lines = [trace for trace in draw_curves(shares, "flawed").data if trace.customdata]
    line = next(trace for trace in lines if trace.name == "exgrpo")
    assert line.customdata[1] == {
        "arms": ["exgrpo"],
        "replayed": False,
        "correct": True,
        "chain_valid": False,
        "step_min": 11,
        "step_max": 20,
    }


@pytest.mark.parametrize("marker", MARKERS)
def test_the_filters_of_a_marker(marker: Any) -> None:
    expected = {"chain_valid": False} if marker == "flawed" else {"markers": [marker]}
    assert marked_rows(marker) == expected
    assert marked_rows(marker, marked=False) == (
        {"chain_valid": True} if marker == "flawed" else {}
    )


def test_sides_of_the_event_study_are_pooled_by_their_answers() -> None:
    rows = pl.DataFrame(
        {
            "relative": [-1, -1, 0, 0],
            "treated_right": [10, 30, 0, 5],
            "treated_share": [0.5, 0.1, None, 1.0],
        }
    )
    assert pooled(rows, "treated").rows() == [(-1, 40, 0.2), (0, 5, 1.0)]


def test_figures_of_nothing_say_so(
    shares: pl.DataFrame, replays: Replays, events: pl.DataFrame
) -> None:
    for plot in (
        draw_curves(shares.clear(), "code"),
        draw_gaps(replays.gaps.clear(), "code"),
        draw_doses(replays.doses.clear(), "code"),
        draw_events(events.clear(), "code"),
    ):
        assert "Nothing to show" in plot.layout.annotations[0].text


def test_the_event_study_has_leads_and_the_placebo(events: pl.DataFrame) -> None:
    mine = events.filter(pl.col("arm") == "exgrpo")
    treated, control = draw_events(mine, "flawed").data
    assert {-1, 0, 1} <= set(treated.x) | set(control.x)
    assert treated.customdata[0]["chain_valid"] is False
    assert control.customdata[0]["chain_valid"] is True
    both = draw_events(events, "flawed")
    assert {trace.yaxis for trace in both.data} == {"y", "y2"}  # an arm a row


def test_the_screen_shows_the_card_and_what_would_count(results: Path) -> None:
    test = open_screen("snowball", study=STUDY)
    assert "C8" in texts(test)  # the card of the ledger
    assert not test.dataframe
    assert open_screen("snowball", study=STUDY, parts="true").toggle[0].value
    assert "What would count as a snowball" in "\n".join(each.label for each in test.expander)


def test_the_power_of_the_verdict_is_beside_its_card(results: Path) -> None:
    path = results / STUDY / "analyses" / "claims.json"
    before = path.read_text()
    power = {"power": 0.026, "smallest_effect": None}
    whole = json.loads(before)
    claims = [item | (power if item["id"] == "C8" else {}) for item in whole["claims"]]
    path.write_text(json.dumps(whole | {"claims": claims}))
    try:
        said = texts(open_screen("snowball", study=STUDY))
    finally:
        path.write_text(before)
    assert "Power to find a strong snowball: 3 %" in said


def test_the_screen_lists_parts_and_offenders(
    golden: duckdb.DuckDBPyConnection, golden_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    (parts,) = open_screen("snowball", study="golden").dataframe
    (offenders,) = open_screen("snowball", study="golden", view="offenders").dataframe
    assert list(parts.value["part"]) == ["arms contrast", "dose-response", "inheritance"]
    assert len(offenders.value) == answer(golden, "snowball_rows", study="golden").height
    assert list(offenders.value["replays"]) == sorted(offenders.value["replays"], reverse=True)


@pytest.mark.parametrize("view", ["curves", "replays", "events"])
def test_each_view_opens_at_its_address(
    view: str, golden_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    charts = open_screen("snowball", study="golden", view=view).get("plotly_chart")
    assert len(charts) == (2 if view == "replays" else 1)


@pytest.mark.parametrize("marker", MARKERS)
def test_each_marker_opens_at_its_address(marker: str, results: Path) -> None:
    test = open_screen("snowball", study=STUDY, marker=marker, by_later="true")
    if marker != "flawed":
        assert f"Does replay spread {MARKERS[marker]}?" in texts(test)  # type: ignore[index]
    if marker in ("code", "repetition"):
        assert "Nothing that was replayed has this marker" in texts(test)


def test_a_study_without_analyses_is_judged_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo: Any
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(demo.results))
    test = open_screen("snowball", study=STUDY, marker="nonsense", by_later="maybe")
    assert "Does replay spread flawed chains?" in texts(test)


def test_an_import_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_import(tmp_path, ["a", "b"], [1, 2])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    said = texts(open_screen("snowball"))
    assert "it is known whether it has this marker" in said
    assert "No arm of this study replays a trajectory" in said
    assert "not testable here" in said


def test_offenders_are_in_the_order_that_the_address_names(
    golden: duckdb.DuckDBPyConnection,
) -> None:
    rows = answer(golden, "snowball_rows", study="golden", by_later=True)
    one = rows.filter(pl.col("run") == rows["run"][0])
    assert one["later_marked"].to_list() == sorted(one["later_marked"], reverse=True)
