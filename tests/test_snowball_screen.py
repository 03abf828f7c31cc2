"""The snowball: what is drawn of the detector's findings, and the screen."""

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
    Measured,
    draw_curves,
    draw_doses,
    draw_events,
    draw_gaps,
    marked_rows,
    measure,
    pooled,
)


@pytest.fixture(scope="module")
def found(golden: duckdb.DuckDBPyConnection) -> Measured:
    return measure(golden, "golden", "flawed")


def test_the_findings_are_those_of_the_detector(
    golden: duckdb.DuckDBPyConnection, found: Measured
) -> None:
    frames = ask(golden, "golden")
    assert found.snowball == detect(frames, replicates=REPLICATES)
    mine = found.curves.filter(pl.col("arm") == "exgrpo").drop("arm")
    assert mine.rows() == curve(frames["snowball_fresh"], "exgrpo").rows()
    assert set(found.curves["arm"]) == {"exgrpo", "highest_entropy", "on_policy"}
    assert found.seeds == 2
    assert found.replayed == frames["snowball_visits"]["replayed"].sum() > found.replayed_marked > 0


def test_a_point_of_a_curve_opens_the_marked_rows_of_its_window(found: Measured) -> None:
    lines = [trace for trace in draw_curves(found.curves, "flawed").data if trace.customdata]
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


def test_figures_of_nothing_say_so(found: Measured) -> None:
    for plot in (
        draw_curves(found.curves.clear(), "code"),
        draw_gaps(found.gaps.clear(), "code"),
        draw_doses(found.doses.clear(), "code"),
        draw_events(found.events.clear(), "exgrpo", "code"),
    ):
        assert "Nothing to show" in plot.layout.annotations[0].text


def test_the_event_study_has_leads_and_the_placebo(found: Measured) -> None:
    treated, control = draw_events(found.events, "exgrpo", "flawed").data
    assert {-1, 0, 1} <= set(treated.x) | set(control.x)
    assert treated.customdata[0]["chain_valid"] is False
    assert control.customdata[0]["chain_valid"] is True


def test_the_screen_shows_the_card_and_what_would_count(results: Path) -> None:
    test = open_screen("snowball", study=STUDY)
    said = texts(test)
    assert "C8" in said  # the card of the ledger
    assert "What would count as a snowball" in "\n".join(each.label for each in test.expander)


def test_the_screen_lists_parts_and_offenders(
    golden: duckdb.DuckDBPyConnection, golden_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    parts, offenders = open_screen("snowball", study="golden").dataframe
    assert list(parts.value["part"]) == ["arms contrast", "dose-response", "inheritance"]
    assert len(offenders.value) == answer(golden, "snowball_rows", study="golden").height
    assert list(offenders.value["replays"]) == sorted(offenders.value["replays"], reverse=True)


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
