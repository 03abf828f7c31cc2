"""The tables of the screen Lineage: what was replayed most, draws, candidates, uses."""

from typing import Any

import polars as pl

from analysis.lineage import METRICS
from analysis.lineage_figures import short_id
from app.components.trajectory_rows import words

LONGEST = 60  # characters of a question in the table
THIS = "● this one"


def replayed_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of the query `lineage_replayed`, to choose one."""
    return frame.select(
        "arm",
        "seed",
        "replays",
        "first_step",
        "last_step",
        "birth_step",
        pl.col("text").str.replace_all(r"\s+", " ").str.slice(0, LONGEST).alias("question"),
        "level",
        words("chain_valid", "valid", "flawed", "").alias("chain"),
        "trajectory",
        "run",
    ).rename(
        {"first_step": "first replay", "last_step": "last replay", "birth_step": "sampled at step"}
    )


def draw_rows(draws: pl.DataFrame, trajectory: str, run: str) -> pl.DataFrame:
    """Rows of `analysis.lineage.draws`: who was taken, and whom each metric would have taken."""

    def named(id: str | None) -> str:
        return "" if id is None else THIS if id == trajectory else short_id(id, run)

    def taken(ids: list[str]) -> str:
        return ", ".join(named(id) for id in ids) or "none"

    return pl.DataFrame(
        {
            "step": draws["step"],
            "candidates": draws["stored"],
            "taken": [taken(ids) for ids in draws["chosen"].to_list()],
            "released as correct?": [
                _agrees(same, stored)
                for same, stored in draws.select("agrees", "stored").iter_rows()
            ],
            **{title: [named(id) for id in draws[name]] for name, title in METRICS.items()},
        }
    )


def _agrees(same: bool | None, stored: int) -> str:
    if stored == 1:
        return "only one stored"
    return {True: "✓ same", False: "✗ another"}.get(same, "unknown")  # type: ignore[arg-type]


def candidate_rows(candidates: pl.DataFrame, trajectory: str, run: str) -> pl.DataFrame:
    """The candidates of one draw, in the arm's own order; a metric's rank, from 1, behind it."""

    def ranked(name: str, form: str) -> list[str]:
        return [
            "" if value is None else form.format(value) + ("" if rank is None else f"  #{rank + 1}")
            for value, rank in zip(candidates[name], candidates[f"{name}_rank"], strict=True)
        ]

    return pl.DataFrame(
        {
            "trajectory": [
                THIS if id == trajectory else short_id(id, run) for id in candidates["source"]
            ],
            "taken": ["↻ taken" if chosen else "" for chosen in candidates["chosen"]],
            "sampled at step": candidates["birth_step"],
            "mean entropy": ranked("mean_entropy", "{:.4f}"),
            "released metric": ranked("released", "{:.4f}"),
            "summed entropy": ranked("summed_entropy", "{:.3f}"),
            "NLL": ranked("nll", "{:.4f}"),
            "length": ranked("length", "{}"),
            "entropy at birth": ranked("birth_entropy", "{:.4f}"),
        }
    )


def use_rows(uses: pl.DataFrame) -> pl.DataFrame:
    """Rows of `analysis.lineage.uses` for reading."""

    def between(name: str) -> list[str]:
        return [
            "" if row[f"{name}_mean"] is None else _range(row, name)
            for row in uses.iter_rows(named=True)
        ]

    return pl.DataFrame(
        {
            "step": uses["step"],
            "age (steps)": uses["age"],
            "advantage": uses["advantage"].round(3),
            "entropy then": uses["mean_entropy"].round(4),
            "ratio (min to max)": between("ratio"),
            "weight (min to max)": between("weight"),
            "ESS of ratios, %": (100 * uses["ratio_ess"]).round(0),
            "clipped tokens, %": (100 * uses["clipped_share"]).round(1),
            "k of K": uses.select(pl.format("{} of {}", "group_successes", "group_size")),
            "right at the visit before, %": (100 * uses["previous_share"]).round(0),
            "right then, %": (100 * uses["success_share"]).round(0),
            "right at the next, %": (100 * uses["next_share"]).round(0),
            "next visit": uses["next_step"],
        }
    )


def _range(row: dict[str, Any], name: str) -> str:
    mean, least, most = (row[f"{name}_{end}"] for end in ("mean", "min", "max"))
    if least is None or most is None:
        return f"{mean:.3f}"
    return f"{mean:.3f} ({least:.3g} to {most:.3g})"
