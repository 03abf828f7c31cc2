"""How old replayed experience is, and how far the policy has moved since (claim C13)."""

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.behind import rollouts
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations import evidence
from analysis.observations.clustered import first_arms, further
from analysis.observations.marks import Bar, add_bars
from analysis.observations.observation import Observation
from analysis.theme import look

BANDS, AGES = "staleness_ratio", "replay_age"
NOTHING = "no trajectory of an earlier step of its own run was replayed"
TICKS = [0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100]
PANELS = (
    ("importance ratio, policy now / then", "ratio_p50"),
    ("effective sample size of the ratios", "ratio_ess"),
    ("mean weight in the loss", "weight_mean"),
)


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    bands = frames[BANDS].filter(pl.col("with_gradient") > 0)
    if bands.is_empty():
        return say_empty(start(facts, ""), NOTHING)
    plot = make_subplots(
        rows=1, cols=3, horizontal_spacing=0.06, subplot_titles=[title for title, _ in PANELS]
    )
    arms = first_arms(bands["arm"].to_list())
    places = {age: at for at, age in enumerate(bands["age_from"].unique().sort())}
    for number, arm in enumerate(arms):
        shift = 0.12 * (number - (len(arms) - 1) / 2)
        mine = bands.filter(pl.col("arm") == arm).with_columns(
            at=pl.col("age_from").replace_strict(places, return_dtype=pl.Float64) + shift
        )
        for column, (_, name) in enumerate(PANELS, 1):
            add_bars(plot, arm, _bars(mine, name), look(arm), col=column, lines=True)
    plot.update_xaxes(
        tickvals=list(places.values()),
        ticktext=[str(age) for age in places],
        tickangle=0,
        title_text="age, steps, at least",
    )
    plot.update_yaxes(type="log", tickvals=TICKS, ticktext=[f"{each:g}" for each in TICKS], col=1)
    plot.update_yaxes(rangemode="tozero", col=2)
    plot.update_yaxes(rangemode="tozero", col=3)
    evidence.add_reference(plot, 1.0, 1, 1)
    return evidence.subtitle(
        plot, facts, "left: median of trajectories; bar: 5 to 95 % of them, not an interval"
    )


def _bars(rows: pl.DataFrame, name: str) -> list[Bar]:
    """A column by age; only the ratios have a bar."""
    return [
        Bar(
            row["at"],
            row[name],
            row["ratio_p05"] if name == "ratio_p50" else None,
            row["ratio_p95"] if name == "ratio_p50" else None,
            note=f"trajectories {row['with_gradient']}",
            behind=rollouts(
                row["arm"], replayed=True, age_min=row["age_from"], age_max=row["age_to"]
            ),
        )
        for row in rows.drop_nulls(name).iter_rows(named=True)
    ]


def lines(frames: Frames) -> list[str]:
    ages, bands = frames[AGES], frames[BANDS]
    if ages.is_empty():
        return [f"Not here: {NOTHING}."]
    return [
        *(
            _of_arm(arm, ages.filter(pl.col("arm") == arm), bands.filter(pl.col("arm") == arm))
            for arm in first_arms(ages["arm"].to_list())
        ),
        *further(ages["arm"].to_list(), AGES),
        "Ranges: 5 to 95 % of trajectories, or over seeds where it says so; they are no intervals.",
    ]


def _of_arm(arm: str, ages: pl.DataFrame, bands: pl.DataFrame) -> str:
    oldest_age = ages.select(pl.col("age_max").max()).item()
    said = (
        f"{arm}: {ages['replayed'].sum()} replayed trajectories, median age "
        f"{_over_seeds(ages, 'age_p50', 1)} steps (oldest {oldest_age}). "
    )
    trained = bands.filter(pl.col("with_gradient") > 0)
    if trained.is_empty():
        return said + "Not here: ratios, for none of them had a gradient."
    oldest = trained.sort("age_from").row(-1, named=True)
    return (
        f"{said}Importance ratio of a trajectory: median {_over_seeds(ages, 'ratio_p50', 3)}; at "
        f"the greatest ages, {oldest['age_from']} to {oldest['age_to']} steps, "
        f"{oldest['ratio_p50']:.3f} ({oldest['ratio_p05']:.3f} to {oldest['ratio_p95']:.3f}; "
        f"{oldest['with_gradient']} trajectories). "
        + _effective(ages, oldest["ratio_ess"])
        + _shaped(ages, oldest["clipped_share"])
    )


def _effective(ages: pl.DataFrame, oldest: float | None) -> str:
    """Nothing where the log does not tell it: another trainer's, or one of an older kind."""
    if oldest is None or ages["ratio_ess"].is_null().all():
        return ""
    return (
        f"Effective sample size of the token ratios: {100 * oldest:.0f} % of the tokens there, "
        f"{100 * _mean(ages, 'ratio_ess'):.0f} % over all ages. "
    )


def _shaped(ages: pl.DataFrame, clipped: float | None) -> str:
    known = ages.drop_nulls("gradient_kept")
    if known.is_empty():
        if clipped is None:
            return "Not here: what shaping or the clip took."
        return f"Not shaped by w / (w + beta); the clip removed {100 * clipped:.1f} % of tokens."
    return (
        f"Shaping keeps {_over_seeds(known, 'gradient_kept', 4)} of a replayed token's gradient "
        f"({_mean(known, 'gradient_at_one'):.4f} at ratio 1)."
    )


def _mean(rows: pl.DataFrame, column: str) -> float:
    """Mean over the seeds."""
    return float(rows.select(pl.col(column).mean()).item())


def _over_seeds(rows: pl.DataFrame, column: str, places: int) -> str:
    """The mean over seeds, and the least and greatest seed where there are two or more."""
    mean = f"{_mean(rows, column):.{places}f}"
    if rows.height < 2:
        return mean
    low, high = rows.select(pl.col(column).min(), pl.col(column).max().alias("high")).row(0)
    return f"{mean} (seeds {low:.{places}f} to {high:.{places}f})"


STALENESS = Observation(
    name="staleness",
    title="How far has the policy moved from the experience that it replays?",
    reading="A ratio near 1 at every age means that correcting for the old policy changes little; "
    "a wide bar and a small effective sample size, that a few tokens carry the correction. "
    "Trajectories are replayed because the policy still finds them likely, so the ratios do not "
    "show how far it has moved elsewhere.",
    queries=(BANDS, AGES),
    draw=draw,
    lines=lines,
)
