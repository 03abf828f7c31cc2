"""What all figures share: what they say about their study, and lines, bands and empty plots."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go
import polars as pl

from analysis.arms import BASE, arm_order
from analysis.behind import UNSEEN, Behind, listed
from analysis.closing import CHOSEN_BY_TESTS
from analysis.theme import MUTED, faded, look

EMPTY_HEIGHT = 200  # pixels
Frames = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class StudyFacts:
    """What every figure says about its study."""

    name: str
    world: str
    seeds: list[int]  # none for an import
    arms: list[str]
    task: str | None = None  # what makes the training questions, or their data set; None: unknown
    caution: str = ""  # about which model was tested, where it matters

    @property
    def _one(self) -> str:
        return "seed" if self.seeds else "import"

    @property
    def seed_band(self) -> str:
        """What line and band of a curve are."""
        if len(self.seeds) <= 1:
            return f"line: the only {self._one}, so there is no band"
        return "line: mean over seeds; band: least to greatest seed, not an interval"

    def interval_over(self, level: float) -> str:
        """Of what an interval of tables and figures is one."""
        over = "questions and seeds" if len(self.seeds) > 1 else f"questions only: one {self._one}"
        return f"{100 * level:.0f} % interval over {over}"

    def subtitle(self, meaning: str) -> str:
        """World, seeds and the meaning of the band in one line, two if it is long."""
        name = "seed" if len(self.seeds) == 1 else "seeds"
        seeds = f" · {name} {', '.join(map(str, self.seeds))}" if self.seeds else ""
        caution = f" · {self.caution}" if self.caution else ""
        return f"{escape(self.world)}{seeds}{caution}<br>{meaning}"  # Plotly reads tags


def study_facts(name: str, runs: pl.DataFrame) -> StudyFacts:
    """What the figures say about a study, from the rows of query `study_runs`."""
    trained = runs.filter(pl.col("arm") != BASE)
    return StudyFacts(
        name,
        _world(runs),
        trained["seed"].drop_nulls().unique().sort().to_list(),
        arm_order(trained["arm"].to_list()),
        next(iter(trained["task"].drop_nulls()), None),
        chosen_by_tests(runs),
    )


def chosen_by_tests(runs: pl.DataFrame) -> str:
    """Says so where the tested checkpoint was chosen by test questions, else nothing.

    runs: rows of query `study_runs`.
    """
    trained = runs.filter(pl.col("arm") != BASE)
    chosen = trained.filter((pl.col("checkpoint") == "best") & pl.col("validated_on_tests"))
    return CHOSEN_BY_TESTS if chosen.height else ""


def _world(runs: pl.DataFrame) -> str:
    first = runs.sort("pretrained", nulls_last=True).row(0, named=True)
    if first["status"] == "imported":
        return f"import {first['arm']}"
    trained = runs.drop_nulls("max_level")
    tasks = runs["task"].drop_nulls().unique().sort().to_list()
    if first["world"] is None or first["pretrained"] is None or tasks not in ([], ["chain"]):
        task = f", trained on {', '.join(tasks)}" if tasks not in ([], ["chain"]) else ""
        return f"base model {first['base_model']}{task}"
    asked = (
        f", trained on {trained['min_level'][0]} to {trained['max_level'][0]}"
        if trained.height
        else ""
    )
    return (
        f"{first['world']} world: base model pretrained on chains of 1 to {first['pretrained']} "
        f"steps{asked}"
    )


def start(facts: StudyFacts, meaning: str, x: str = "", y: str = "") -> go.Figure:
    plot = go.Figure()
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), xaxis_title=x, yaxis_title=y)
    return plot


def say_empty(plot: go.Figure, what: str) -> go.Figure:
    plot.add_annotation(
        text=f"Nothing to show: {what}.",
        showarrow=False,
        font={"size": 14, "color": MUTED},
        xref="paper",
        yref="paper",
        x=0.5,
        y=0.5,
    )
    plot.update_xaxes(visible=False)
    plot.update_yaxes(visible=False)
    return plot.update_layout(height=EMPTY_HEIGHT)


def by_seed(rows: pl.DataFrame, x: str, y: str) -> pl.DataFrame:
    """Mean, least and greatest over seeds of column y at each x."""
    return (
        rows.drop_nulls(y)
        .group_by(x)
        .agg(
            pl.col(y).mean().alias("mean"),
            pl.col(y).min().alias("low"),
            pl.col(y).max().alias("high"),
        )
        .sort(x)
    )


def add_arm(
    plot: go.Figure,
    arm: str,
    table: pl.DataFrame,
    x: str,
    markers: bool = True,
    band: str = "seeds",
    behind: Callable[[dict[str, Any]], Behind] = lambda row: {},
) -> None:
    """A line through column `mean` and a band from `low` to `high`; `band` says what that is.

    behind: the rows behind the point that a row of the table makes.
    """
    style = look(arm)
    xs, shown = table[x].to_list(), escape(arm)  # Plotly reads tags in names
    plot.add_scatter(
        x=xs + xs[::-1],
        y=table["high"].to_list() + table["low"].to_list()[::-1],
        mode="lines",
        fill="toself",
        fillcolor=faded(style.colour),
        line_width=0,
        hoverinfo="skip",
        showlegend=False,
        legendgroup=shown,
    )
    plot.add_scatter(
        x=xs,
        y=table["mean"].to_list(),
        name=shown,
        legendgroup=shown,
        mode="lines+markers",
        line={"color": style.colour, "dash": style.dash, "width": 2.2},
        marker={"symbol": style.symbol, "size": 8, "color": style.colour}
        | ({} if markers else UNSEEN),
        hovertext=[
            f"{mean:.3f} ({band} {low:.3f} to {high:.3f})"
            for mean, low, high in table.select("mean", "low", "high").iter_rows()
        ],
        hovertemplate=f"%{{hovertext}}<extra>{shown}</extra>",
        customdata=listed([behind(row) for row in table.iter_rows(named=True)]),
    )
