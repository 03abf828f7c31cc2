"""Figures of a small study through the real stages, and of studies with next to nothing in them."""

import json
import shutil
from pathlib import Path
from typing import Any

import plotly.io
import polars as pl
import pytest
from lake_fixture import DemoResults

import pipeline.figures
from analysis.arms import KNOWN, arm_order
from analysis.behind import UNSEEN
from analysis.drawing import study_facts
from analysis.figures import FIGURES, READINGS, all_figures
from analysis.theme import LOOKS, PLOT_CONFIG, look
from exgrpo.errors import UserError
from pipeline.analyse import read_frames, read_json
from pipeline.figures import draw_figures, make_figures, write_static


@pytest.fixture(scope="module")
def frames(analysed: DemoResults) -> dict[str, pl.DataFrame]:
    return read_frames(analysed.results / analysed.study.name / "analyses")


@pytest.fixture(scope="module")
def comparison(analysed: DemoResults) -> dict[str, Any]:
    return read_json(analysed.results / analysed.study.name / "analyses" / "comparison.json")


def test_every_figure_says_world_seeds_and_band(analysed: DemoResults) -> None:
    figures = draw_figures(analysed.study.name, analysed.results)
    assert [figure.name for figure in figures] == list(READINGS)
    for figure in figures:
        subtitle = figure.plot.layout.title.subtitle.text
        assert "hard world: base model pretrained on chains of 1 to 5 steps" in subtitle
        assert "seeds 0, 1" in subtitle
        assert figure.plot.layout.title.text and figure.reading
        if figure.name in FIGURES:
            assert any(word in subtitle for word in ("band:", "bar:", "mean over")), subtitle
            assert figure.plot.data, figure.name
        assert figure.plot.data or "Nothing to show" in figure.plot.layout.annotations[0].text


def test_arms_keep_their_colour_and_are_categories(analysed: DemoResults) -> None:
    for figure in draw_figures(analysed.study.name, analysed.results):
        for trace in figure.plot.data:
            for arm in ("on_policy", "exgrpo"):
                if trace.name == arm and trace.line.color:
                    assert trace.line.color == look(arm).colour, figure.name
                    assert trace.marker.color in (look(arm).colour, UNSEEN["color"])
        if figure.name in ("final_accuracy", "difference_to_on_policy"):
            assert figure.plot.layout.yaxis.type == "category"
    assert len({(style.colour, style.symbol) for style in LOOKS.values()}) == len(LOOKS)
    assert tuple(LOOKS) == KNOWN
    assert look("an arm of later") == look("an arm of later")
    assert arm_order(["z", "exgrpo", "base", "a"]) == ["base", "exgrpo", "a", "z"]


def test_curve_shows_mean_and_range_of_the_seeds(
    analysed: DemoResults, frames: dict[str, pl.DataFrame]
) -> None:
    plots = {f.name: f.plot for f in draw_figures(analysed.study.name, analysed.results)}
    line = next(trace for trace in plots["signal_share"].data if trace.name == "exgrpo")
    steps = frames["buffer_dynamics"].filter(pl.col("arm") == "exgrpo")  # all of one window
    shares = steps.group_by("seed").agg(pl.col("signal_share").mean())["signal_share"]
    assert list(line.y) == [pytest.approx(shares.mean())]
    assert f"seeds {shares.min():.3f} to {shares.max():.3f}" in line.hovertext[0]


def test_learning_curves_show_bootstrap_intervals(
    analysed: DemoResults, comparison: dict[str, Any]
) -> None:
    plots = {f.name: f.plot for f in draw_figures(analysed.study.name, analysed.results)}
    points = comparison["learning_curves"]["exgrpo"]
    for name in ("learning_curve", "learning_curve_tokens"):
        line = next(trace for trace in plots[name].data if trace.name == "exgrpo")
        assert list(line.y) == [point["value"] for point in points]
        ends = [f"interval {point['low']:.3f} to {point['high']:.3f}" for point in points]
        assert all(end in text for end, text in zip(ends, line.hovertext, strict=True))
        subtitle = plots[name].layout.title.subtitle.text
        assert "95 % interval over questions and seeds" in subtitle
    assert "not an interval" in plots["signal_share"].layout.title.subtitle.text


def test_no_figure_of_empty_answers_fails(
    frames: dict[str, pl.DataFrame], comparison: dict[str, Any]
) -> None:
    facts = study_facts("demo", frames["study_runs"])
    empty = {name: frame.clear() for name, frame in frames.items()}
    none = {"level": 0.95, "domains": {"in": [], "out": []}, "arms": [], "learning_curves": {}}
    for figure in all_figures(facts, empty, none):
        texts = [note.text for note in figure.plot.layout.annotations]
        assert any("Nothing to show" in text for text in texts), figure.name
        figure.plot.to_json()


def test_one_seed_one_arm_without_replay(
    frames: dict[str, pl.DataFrame], comparison: dict[str, Any]
) -> None:
    few = {
        name: frame.filter(pl.col("arm").is_in(["base", "on_policy"]))
        if "seed" not in frame.columns
        else frame.filter(
            pl.col("arm").is_in(["base", "on_policy"])
            & (pl.col("seed").is_null() | (pl.col("seed") == 0))
        )
        for name, frame in frames.items()
    }
    arms = [arm for arm in comparison["arms"] if arm["arm"] in ("base", "on_policy")]
    figures = all_figures(study_facts("demo", few["study_runs"]), few, comparison | {"arms": arms})
    by_name = {figure.name: figure.plot for figure in figures}
    assert "seed 0" in by_name["learning_curve"].layout.title.subtitle.text
    assert "questions only: one seed" in by_name["final_accuracy"].layout.title.subtitle.text
    assert not by_name["difference_to_on_policy"].data
    assert not by_name["masked_grpo"].data


def test_a_world_without_pretraining_names_the_model(frames: dict[str, pl.DataFrame]) -> None:
    null = pl.lit(None)
    foreign = frames["study_runs"].with_columns(
        pretrained=null.cast(pl.Int64), world=null.cast(pl.String), base_model=pl.lit("Qwen/Qwen")
    )
    assert study_facts("demo", foreign).world == "base model Qwen/Qwen"


def test_stage_writes_json_and_offline_html(
    analysed: DemoResults, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline.figures, "_browser", lambda: None)
    make_figures(analysed.study, analysed.results)
    said = capsys.readouterr().out
    assert "no static images: no Chrome or Chromium was found" in said
    folder = analysed.results / analysed.study.name / "figures"
    assert (folder / "plotly.min.js").stat().st_size > 1_000_000
    for name in READINGS:
        drawn = plotly.io.from_json((folder / f"{name}.json").read_text())
        assert drawn.data or name not in FIGURES
        page = (folder / f"{name}.html").read_text()
        assert 'src="plotly.min.js"' in page and "http" not in page.replace("http-equiv", "")
        assert f'"showSendToCloud": {json.dumps(PLOT_CONFIG["showSendToCloud"])}' in page
    assert not list(folder.glob("*.svg"))


def test_static_figures(analysed: DemoResults, tmp_path: Path) -> None:
    if not pipeline.figures._browser():
        pytest.skip("needs a Chrome or Chromium")
    stale = tmp_path / "gone.svg"
    stale.touch()
    figures = draw_figures(analysed.study.name, analysed.results)[:2]
    assert write_static(figures, tmp_path) is None
    assert sorted(path.stem for path in tmp_path.glob("*.svg")) == sorted(f.name for f in figures)
    for path in tmp_path.glob("*.svg"):
        assert "hard world" in path.read_text()


def test_a_browser_that_fails_costs_no_figure(
    analysed: DemoResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", shutil.which("false") or "/bin/false")
    reason = write_static(draw_figures(analysed.study.name, analysed.results)[:1], tmp_path)
    assert reason and reason.startswith("the browser failed")


def test_missing_analyses_are_named(analysed: DemoResults, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exgrpo analyse --study demo"):
        make_figures(analysed.study, tmp_path)
