"""The Overview through AppTest: its sections, its address, what is missing; and what it draws."""

from pathlib import Path

import plotly.graph_objects as go
import polars as pl
import pytest
from lake_fixture import STEPS, STUDY, make_results
from screens import open_screen, texts, write_import
from streamlit.testing.v1 import AppTest

from analysis.behind import clickable
from analysis.theme import (
    _COLOURS,
    DARK_MUTED,
    DARK_PAPER,
    INK,
    LEAST_CONTRAST,
    LOOKS,
    MUTED,
    PAPER,
    contrast,
    faded,
    on_dark,
    recoloured,
)
from app.components.bucket_bars import bucket_bars
from app.components.figure import untitled
from app.components.overview_arms import behind_arm, clicked_row
from app.components.overview_health import health_frame
from app.components.plain import JOINER
from pipeline.analyse import analyse

SECTIONS = ("curves", "accuracy", "claims", "health", "training", "observed")


def section(name: str, **query: str | list[str]) -> AppTest:
    return open_screen("overview", section=name, **query)


def said_by(test: AppTest) -> str:
    """What the screen says, without the escapes of Markdown."""
    return texts(test).replace("\\", "").replace(JOINER, "")


def plots(test: AppTest) -> list[str]:
    return [str(item.proto.id) for item in test.get("plotly_chart")]


def test_the_overview_shows_table_world_and_curves(results: Path) -> None:
    test = open_screen("overview")
    table = test.dataframe[0].value
    assert list(table["arm"]) == ["base", "on_policy", "exgrpo"]
    assert "[" in table["accuracy"].iloc[1]
    said = said_by(test)
    assert "Hard world" in said
    assert "How does accuracy grow?" in said and "95 % interval" in said
    assert len(plots(test)) == 1  # only what is in sight


def test_the_claims_are_cards_that_lead_to_their_screen(results: Path) -> None:
    test = section("claims")
    said = said_by(test)
    assert "inconclusive (underpowered)" in said
    assert "Not testable here: " in said
    links = [item.proto for item in test.get("page_link")]
    of_claims = [link for link in links if link.label.startswith("How C")]
    assert of_claims and all("claim=C" in link.query_string for link in of_claims)
    assert not plots(test)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_opens_from_its_address(name: str, results: Path) -> None:
    test = section(name, study=STUDY)
    assert test.segmented_control[0].value == name
    assert not test.error


@pytest.mark.parametrize("by", ["tokens", "time", "questions"])
def test_the_curve_runs_over_what_the_address_says(by: str, results: Path) -> None:
    test = open_screen("overview", by=by, arms=["exgrpo"])
    assert [item.value for item in test.segmented_control] == ["curves", by]
    assert test.multiselect[0].value == ["exgrpo"]


def test_nonsense_in_the_address_is_said_or_left_out(results: Path) -> None:
    test = open_screen("overview", section="none", by="none", arms=["none"])
    assert "Arms: this study does not hold" in test.warning[0].value
    test = section("observed", figure="none")
    assert "no observation by the name" in test.warning[0].value


def test_run_health_has_a_row_a_run(results: Path) -> None:
    test = section("health")
    table = test.dataframe[1].value
    assert list(table["arm"]) == ["exgrpo", "exgrpo", "on_policy", "on_policy"]
    assert set(table["steps"]) == {STEPS}
    assert "of 4 runs have something to look at" in said_by(test)


def test_without_analyses_curves_and_health_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(make_results(tmp_path / "results").results))
    test = open_screen("overview")
    assert "no analyses yet" in test.info[0].value
    assert f"make reproduce STUDY={STUDY}" in test.code[0].value
    assert "least to greatest seed" in said_by(test)
    assert len(plots(test)) == 1
    assert "comes with the analysis" in said_by(section("claims"))
    assert len(section("health").dataframe) == 1


def test_without_figures_the_command_is_named(results: Path) -> None:
    test = section("accuracy")
    assert "not drawn yet" in test.info[0].value
    assert f"exgrpo figures --study {STUDY}" in test.code[0].value


def test_verdicts_of_another_version_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_results(tmp_path / "results")
    analyse(made.study, made.results)
    claims = made.results / STUDY / "analyses" / "claims.json"
    claims.write_text(claims.read_text().replace('"statement"', '"said"'))
    monkeypatch.setenv("EXGRPO_RESULTS", str(made.results))
    assert f"exgrpo analyse --study {STUDY}" in open_screen("overview").code[0].value


def test_an_import_shows_its_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_import(tmp_path, ["a", "b"], [1, 2])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    test = open_screen("overview", study="imports", run="long")
    assert len(plots(test)) == 1 and not test.dataframe[0].value.empty
    assert "does not hold" in open_screen("overview", run="none").warning[0].value


def test_a_bar_of_an_import_opens_its_groups() -> None:
    frame = pl.DataFrame({"group_successes": [0, None], "group_size": [4, 4], "groups": [3, 1]})
    assert [behind for _, _, behind in clickable(bucket_bars(frame))] == [{"bucket": [0]}, {}]


def test_a_click_anywhere_in_a_row_is_of_that_row() -> None:
    assert clicked_row({"rows": [2], "cells": []}) == 2
    assert clicked_row({"rows": [], "cells": [(1, "arm")]}) == 1
    assert clicked_row({}) is None


def test_an_arm_without_training_opens_its_samples() -> None:
    comparison = {
        "arms": [{"arm": "base", "training": None}, {"arm": "a", "training": {"runs": 1}}]
    }
    assert behind_arm(comparison, "base") == {"source": "evaluation", "arms": ["base"]}
    assert behind_arm(comparison, "a") == {"arms": ["a"]}


def test_health_says_in_words_what_to_look_at() -> None:
    empty = dict.fromkeys(("ratio_replayed", "ess_replayed", "clipped_share", "entropy", "length"))
    fine = empty | {"run": "a", "arm": "x", "seed": 0, "status": "done", "steps": 9, "reward": 0.5}
    fine |= {"signal_share": 0.4, "truncated_share": 0.0, "grad_norm": 1.0}
    fine |= {"skipped_updates": 0, "ungraded": 0}
    bad = fine | {"run": "b", "status": "stopped", "truncated_share": 0.31, "signal_share": 0.05}
    bad |= {"skipped_updates": 3, "ungraded": 2, "ess_replayed": 0.4}
    floats = dict.fromkeys(empty, pl.Float64)
    rows = pl.DataFrame([fine, bad], schema_overrides=floats)
    coverage = pl.DataFrame({"run": ["a", "b"], "missing": [None, "groups of 2 steps"]})
    alarms = pl.DataFrame({"run": ["b"], "step": [9], "sentence": ["The reward has collapsed."]})
    frame = health_frame(rows, coverage, alarms)
    assert frame["to look at"].to_list() == [
        "nothing unusual",
        "The reward has collapsed; stopped; 3 updates left out; 2 answers ungraded; "
        "31% of answers cut off; 5% of groups with signal; "
        "40% effective sample size of replayed tokens; log lacks groups of 2 steps",
    ]
    assert frame["with signal, %"].to_list() == [40.0, 5.0]


def test_marks_show_on_light_and_on_dark_paper() -> None:
    colours = [*(look.colour for look in LOOKS.values()), *_COLOURS, INK, MUTED]
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1
    for colour in colours:
        assert contrast(colour, PAPER) >= LEAST_CONTRAST, colour
        assert contrast(on_dark(colour), DARK_PAPER) >= LEAST_CONTRAST, colour
    assert on_dark(MUTED) == DARK_MUTED and on_dark(PAPER) == DARK_PAPER
    assert on_dark("rgba(1,2,3,x)") == "rgba(1,2,3,x)" and on_dark("red") == "red"
    assert on_dark(faded(INK, 0.3)) == faded(on_dark(INK), 0.3)


def test_a_figure_is_recoloured_and_its_data_is_not() -> None:
    plot = go.Figure()
    plot.add_scatter(
        x=[1],
        y=[INK],
        text=[INK],
        customdata=[{"color": INK}],
        marker={"color": INK},
        line={"color": INK},
        fillcolor=faded(INK),
    )
    plot.add_hline(0, line_color=MUTED)
    made = go.Figure(recoloured(plot.to_dict()))
    trace = made.data[0]
    assert trace.marker.color == trace.line.color == on_dark(INK) != INK
    assert trace.fillcolor == faded(on_dark(INK))
    assert (trace.y[0], trace.text[0], trace.customdata[0]) == (INK, INK, {"color": INK})
    assert made.layout.shapes[0].line.color == DARK_MUTED
    assert plot.data[0].marker.color == INK


def test_a_figure_without_its_title_gives_the_room_back() -> None:
    plot = go.Figure(layout={"title": {"text": "t"}, "height": 300, "margin": {"t": 120}})
    bare = untitled(plot)
    assert bare.layout.title.text is None
    assert (bare.layout.height, bare.layout.margin.t) == (224, 44)
