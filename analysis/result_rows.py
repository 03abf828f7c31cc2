"""The rows behind the rows of any answer, by what columns the answer happens to have."""

from typing import Any

import polars as pl

from analysis.behind import Behind

PLACE = ("run", "step", "group", "slot")  # a trajectory's id is made of these
MOST_LISTED = 20  # arms or seeds in one filter: the address has to hold them

# Of each column that is a filter of trajectories or samples: its type there.
_TYPES: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("study", "arm", "run", "question", "benchmark", "finish"), pl.String),
    **dict.fromkeys(("replayed", "correct", "chain_valid"), pl.Boolean),
    **dict.fromkeys(("seed", "step", "level", "group_successes"), pl.Int64),
}
_LISTS = {"arm": "arms", "seed": "seeds", "level": "level", "group_successes": "bucket"}


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
    """What a click on each row's point opens: its trajectory, else the rows of its arm, step, ...

    Empty for a row that names nothing.
    """
    if (ids := trajectories(frame)) is not None:
        return [{"trajectory": id} if id else {} for id in ids]
    known = frame.select(name for name in _TYPES if _fits(frame, name))
    return [
        _filters({name: [value] for name, value in row.items()})
        for row in known.iter_rows(named=True)
    ] or [{}] * frame.height


def groups_behind(frame: pl.DataFrame, by: str) -> list[Behind]:
    """The same for the rows of each value of `by` together, in the order of the answer.

    A trajectory where one row is alone; else the filters that hold all rows of the group.
    """
    ids = trajectories(frame)
    known = [name for name in _TYPES if _fits(frame, name)]
    rows = frame.select(
        pl.col(by).alias("\0by"),
        pl.Series("\0id", ids or [None] * frame.height, pl.String),
        *known,
    )
    groups = rows.group_by("\0by", maintain_order=True).agg(
        pl.col("\0id"), *(pl.col(name).unique(maintain_order=True) for name in known)
    )
    behind = []
    for group in groups.iter_rows(named=True):
        these = group["\0id"]
        alone = these[0] if len(these) == 1 else None
        found = _filters({name: group[name] for name in known})
        behind.append({"trajectory": alone} if alone else found)
    return behind


def _filters(values: dict[str, list[Any]]) -> Behind:
    """The fewest filters that pass all rows with these values; none where a value is missing."""
    behind: Behind = {}
    for name, these in values.items():
        if None in these:
            continue
        if name == "step":
            behind |= {"step_min": min(these), "step_max": max(these)}
        elif name in _LISTS and len(these) <= MOST_LISTED:
            behind[_LISTS[name]] = sorted(these)
        elif name not in _LISTS and len(these) == 1:
            behind[name] = these[0]
    return behind | ({"source": "evaluation"} if "benchmark" in behind else {})


def _fits(frame: pl.DataFrame, column: str) -> bool:
    type_ = frame.schema.get(column)
    if type_ is None:
        return False
    wanted = _TYPES.get(column, pl.Int64)
    return type_.is_integer() if wanted == pl.Int64 else type_ == wanted
