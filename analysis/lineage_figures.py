"""One stored trajectory over the training: its rivals, its uses, and its question afterwards."""

from html import escape
from math import log10
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.behind import listed
from analysis.question_figures import visit_rows
from analysis.theme import BLUE, GREEN, INK, MUTED, TEMPLATE, VERMILLION, faded, look

STRIP = 190  # px
AROUND = 140  # px: axis and legend
RATIO, WEIGHT = BLUE, VERMILLION
CORRECT, RELEASED = BLUE, GREEN
LEAST = 1e-3  # of a ratio or weight that is drawn; what is less ends at the axis
APART = 0.15  # steps between the bars of ratio and weight of one use


def lineage_timeline(
    trajectory: str,
    arm: str,
    candidates: pl.DataFrame,
    uses: pl.DataFrame,
    visits: pl.DataFrame,
    birth: tuple[int, float | None] | None,
    last: int,
) -> go.Figure:
    """By step: entropy of the candidates, ratio and weight of each use, the question's share right.

    candidates: rows of the query `candidates_of_question` for its run; uses: of
    `analysis.lineage.uses`; visits: of `question_visits`; birth: step and mean entropy as first
    sampled, where that is in this run. A strip without data is left out.
    """
    strips = []
    if candidates.height:
        strips.append("entropy then (nat/token)")
    if uses["ratio_mean"].count() or uses["weight_mean"].count():
        strips.append("ratio and weight")
    if visits.height:
        strips.append("share right")
    plot = make_subplots(rows=max(1, len(strips)), cols=1, shared_xaxes=True, vertical_spacing=0.05)
    for row, title in enumerate(strips, 1):
        plot.update_yaxes(title=title, row=row)
        match title:
            case "ratio and weight":
                _add_uses(plot, row, uses)
            case "share right":
                _add_visits(plot, row, arm, visits, uses, birth)
            case _:
                _add_candidates(plot, row, trajectory, arm, candidates, birth)
    plot.update_xaxes(range=[-0.02 * last, 1.03 * last])
    plot.update_xaxes(title="step", row=max(1, len(strips)))
    return plot.update_layout(
        template=TEMPLATE,
        height=STRIP * max(1, len(strips)) + AROUND,
        margin={"l": 64, "r": 12, "t": 16, "b": 100},
        legend={"y": -0.13 if len(strips) > 2 else -0.2, "font_size": 11},
        hoverlabel_align="left",
    )


def short_id(id: str, run: str) -> str:
    """A trajectory's id without its run: step, group and slot."""
    return id.removeprefix(f"{run}:")


def _add_candidates(
    plot: go.Figure,
    row: int,
    trajectory: str,
    arm: str,
    candidates: pl.DataFrame,
    birth: tuple[int, float | None] | None,
) -> None:
    place = {"row": row, "col": 1}
    others = candidates.filter(pl.col("source") != trajectory)
    for number, ((_,), its) in enumerate(others.group_by("source", maintain_order=True)):
        plot.add_scatter(
            **_entropies(its),
            name="other candidates",
            legendgroup="others",
            showlegend=number == 0,
            mode="lines+markers",
            line={"color": faded(MUTED, 0.45), "width": 1},
            marker={"color": MUTED, "size": 4, "opacity": 0.6},
            **place,
        )
    own = candidates.filter(pl.col("source") == trajectory)
    if own.height:
        plot.add_scatter(
            **_entropies(own),
            name="this trajectory",
            mode="lines+markers",
            line={"color": look(arm).colour, "width": 2.4},
            marker={"color": look(arm).colour, "size": 6},
            **place,
        )
    if birth and birth[1] is not None:
        plot.add_scatter(
            x=[birth[0]],
            y=[birth[1]],
            name="its birth",
            mode="markers",
            marker={"symbol": "star", "size": 13, "color": look(arm).colour},
            hovertext=[f"first sampled at step {birth[0]}<br>entropy {birth[1]:.4f} nat/token"],
            hovertemplate="%{hovertext}<extra></extra>",
            customdata=[{"trajectory": trajectory}],
            **place,
        )
    picks = {
        "taken": (pl.col("chosen"), "diamond", INK, 9, 0),
        "lowest mean entropy": (pl.col("mean_entropy_rank") == 0, "circle-open", CORRECT, 14, 1.8),
        "released code's pick": (pl.col("released_rank") == 0, "square-open", RELEASED, 13, 1.8),
    }
    for name, (condition, symbol, colour, size, width) in picks.items():
        its = candidates.filter(condition)
        if its.height:
            plot.add_scatter(
                **_entropies(its),
                name=name,
                mode="markers",
                marker={"symbol": symbol, "size": size, "color": colour, "line_width": width},
                **place,
            )


def _entropies(candidates: pl.DataFrame) -> dict[str, Any]:
    return {
        "x": candidates["step"].to_list(),
        "y": candidates["mean_entropy"].to_list(),
        "hovertext": [_candidate_words(row) for row in candidates.iter_rows(named=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": [{"trajectory": id} for id in candidates["source"]],
    }


def _candidate_words(row: dict[str, Any]) -> str:
    words = f"step {row['step']}: {escape(short_id(row['source'], row['run']))}"
    words += f", sampled at step {row['birth_step']}"
    for name, title in (("mean_entropy", "entropy"), ("released", "released metric")):
        if row[name] is not None:
            rank = row[f"{name}_rank"]
            place = "" if rank is None else f", rank {rank + 1}"
            words += f"<br>{title} {row[name]:.4f}{place}"
    return words + ("<br>taken" if row["chosen"] else "")


def _add_uses(plot: go.Figure, row: int, uses: pl.DataFrame) -> None:
    """A bar from least to greatest with its mean, of ratio and of weight, for each use."""
    for name, colour, symbol, shift in (
        ("ratio", RATIO, "circle", -APART),
        ("weight", WEIGHT, "square", APART),
    ):
        its = list(uses.drop_nulls([f"{name}_mean"]).iter_rows(named=True))
        if not its:
            continue
        means = [each[f"{name}_mean"] for each in its]
        least = [_or(each[f"{name}_min"], mean) for each, mean in zip(its, means, strict=True)]
        most = [_or(each[f"{name}_max"], mean) for each, mean in zip(its, means, strict=True)]
        plot.add_scatter(
            x=[each["step"] + shift for each in its],
            y=means,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [high - mean for high, mean in zip(most, means, strict=True)],
                "arrayminus": [mean - low for low, mean in zip(least, means, strict=True)],
                "thickness": 1,
                "width": 2,
                "color": colour,
            },
            name=f"{name}: mean, least to greatest",
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 7},
            hovertext=[
                f"step {each['step']}: {name} {mean:.3f} ({low:.3g} to {high:.3g})"
                for each, mean, low, high in zip(its, means, least, most, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            customdata=[{"trajectory": each["trajectory"]} for each in its],
            row=row,
            col=1,
        )
    most_of_all = max([1.0, *uses["ratio_max"].drop_nulls(), *uses["weight_max"].drop_nulls()])
    plot.add_hline(y=1, line={"color": MUTED, "dash": "dot", "width": 1}, row=row, col=1)
    plot.update_yaxes(
        type="log", range=[log10(LEAST), log10(2 * most_of_all)], dtick=1, row=row, col=1
    )


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _add_visits(
    plot: go.Figure,
    row: int,
    arm: str,
    visits: pl.DataFrame,
    uses: pl.DataFrame,
    birth: tuple[int, float | None] | None,
) -> None:
    used = set(uses["step"])
    rows = list(visits.iter_rows(named=True))

    def kind(step: int) -> str:
        if birth and step == birth[0]:
            return "star"
        return "diamond" if step in used else "circle-open"

    plot.add_scatter(
        x=[each["step"] for each in rows],
        y=[each["success_share"] for each in rows],
        name="fresh rollouts right; filled: it was replayed then",
        mode="lines+markers",
        line={"color": look(arm).colour, "width": 1.3},
        marker={
            "color": look(arm).colour,
            "symbol": [kind(each["step"]) for each in rows],
            "size": [6 if kind(each["step"]) == "circle-open" else 10 for each in rows],
        },
        hovertext=[
            f"step {each['step']}: {each['right']} of {each['graded']} fresh rollouts right"
            + ("<br>it was replayed then" if each["step"] in used else "")
            for each in rows
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=listed([visit_rows(each) for each in rows]),
        row=row,
        col=1,
    )
    plot.update_yaxes(range=[-0.08, 1.08], tickformat=".0%", row=row)
