"""Numbers with intervals, and dots with bars."""

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from analysis.observations.marks import CHANGE, SHARE, Bar, add_bars, estimated, percent, points
from analysis.statistics import Bootstrap, bootstrap_mean
from analysis.theme import Look

LOOK = Look("#000000", "circle", "solid")


def two_seeds(one: float, other: float) -> Bootstrap:
    """Two seeds far apart, whose interval reaches beyond what is possible."""
    rng = np.random.default_rng(0)
    return bootstrap_mean(np.array([[one], [other]]) + rng.uniform(-0.01, 0.01, (2, 50)))


def test_intervals_are_cut_to_what_is_possible() -> None:
    share, change = two_seeds(0.3, 0.8), two_seeds(-0.4, 0.6)
    assert share.interval()[0] < 0 and share.interval()[1] > 1
    assert percent(share).endswith(" % [0.0, 100.0]") and percent(share).startswith("5")
    assert points(change).endswith(" points [-100.0, +100.0]")
    (bar,) = estimated([("a", share)], SHARE)
    assert (bar.low, bar.high, bar.note) == (0, 1, "seeds 2, questions 50")
    (bar,) = estimated([("a", change)], CHANGE)
    assert (bar.low, bar.high) == (-1, 1)


def test_where_all_is_alike_no_interval_is_told() -> None:
    assert points(bootstrap_mean(np.full((3, 9), 0.1))) == "+10.0 points (every draw: no interval)"


def test_bars_reach_from_low_to_high_and_a_name_is_in_the_legend_once() -> None:
    plot = make_subplots(1, 2)
    bars = [Bar("a", 0.5, 0.2, 0.6, "many"), Bar("b", 0.7)]
    add_bars(plot, "one", bars, LOOK, lines=True)
    add_bars(plot, "one", bars, LOOK, col=2, horizontal=True, form=".0%")
    add_bars(plot, "none", [], LOOK)
    upright, flat = plot.data
    assert (upright.y, flat.x) == ((0.5, 0.7), (0.5, 0.7))
    for error in (upright.error_y, flat.error_x):
        assert error.array[0] == pytest.approx(0.1) and error.arrayminus[0] == pytest.approx(0.3)
        assert error.array[1] is None
    assert (upright.showlegend, flat.showlegend) == (True, False)
    assert upright.hovertext == ("0.500 [0.200, 0.600]<br>many", "0.700")
    assert flat.hovertext[0] == "50% [20%, 60%]<br>many"
    assert isinstance(upright, go.Scatter) and upright.mode == "lines+markers"
