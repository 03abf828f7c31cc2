"""The trajectories behind the rows of any answer, by what columns the answer happens to have."""

from typing import Any

import polars as pl

from analysis.behind import Behind

PLACE = ("run", "step", "group", "slot")  # a trajectory's id is made of these


def trajectories(frame: pl.DataFrame) -> list[str | None] | None:
    """The id of a trajectory for each row; None when no column names one.

    From `trajectory`, else run, step, group and slot, else `source`: the first sampling of a
    replayed one.
    """
    for name in ("trajectory", PLACE, "source"):
        if name == PLACE and all(_fits(frame, column) for column in PLACE):
            return [
                None if None in row else ":".join(map(str, row))
                for row in frame.select(PLACE).iter_rows()
            ]
        if isinstance(name, str) and frame.schema.get(name) == pl.String:
            return frame[name].to_list()
    return None


def rows_behind(frame: pl.DataFrame) -> list[Behind]:
    """What a click on each row's point opens: its trajectory, else its run and step if it has them.

    Empty for a row with neither.
    """
    if (ids := trajectories(frame)) is not None:
        return [{"trajectory": id} if id else {} for id in ids]
    if not (_fits(frame, "run") and _fits(frame, "step")):
        return [{} for _ in range(frame.height)]
    return [_at(run, step) for run, step in frame.select("run", "step").iter_rows()]


def _at(run: str | None, step: int | None) -> Behind:
    if run is None:
        return {}
    steps: dict[str, Any] = {} if step is None else {"step_min": step, "step_max": step}
    return {"run": run, **steps}


def _fits(frame: pl.DataFrame, column: str) -> bool:
    type_ = frame.schema.get(column)
    if type_ is None:
        return False
    return type_ == pl.String if column == "run" else type_.is_integer()
