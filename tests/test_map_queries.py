"""The queries of the maps and the offenders against plain loops over the golden lake."""

import math
from typing import Any

import duckdb
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope, by, first_step, share
from replay_loops import RUN, assert_same, made, made_catalog, marked, replay_of

from analysis.queries import answer

WINDOW, WIDTH, BINS = 5, 0.1, 4
CELL = ("study", "arm", "first_step", "bucket", "entropy_bin")


def bin_of(entropy: float | None) -> int | None:
    return None if entropy is None else min(math.floor(entropy / WIDTH), BINS - 1)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("narrower", [{}, {"replayed": True}, {"replayed": False, "correct": True}])
def test_map_cells(golden: duckdb.DuckDBPyConnection, scope: Scope, narrower: Row) -> None:
    placed = [
        row
        | {
            "first_step": first_step(row["step"], WINDOW),
            "bucket": row["group_successes"],
            "entropy_bin": bin_of(row["mean_entropy"]),
        }
        for row in scope.rows("trajectories")
        if all(row[name] == value for name, value in narrower.items())
    ]
    expected = [
        dict(zip(CELL, cell, strict=True)) | facts(rows) for cell, rows in by(placed, *CELL).items()
    ]
    assert len({row["entropy_bin"] for row in expected}) >= 3
    found = answer(
        golden, "map_cells", **scope.asked, window=WINDOW, width=WIDTH, bins=BINS, **narrower
    )
    assert_same(found, expected, *CELL)


def facts(rows: list[Row]) -> Row:
    chains = [None if row["chain_valid"] is None else not row["chain_valid"] for row in rows]
    return {
        "group_size": max(row["group_size"] for row in rows),
        "trajectories": len(rows),
        "mean_entropy": share(row["mean_entropy"] for row in rows),
        "right_share": share(row["correct"] for row in rows),
        "flawed_share": share(chains),
        "length": share(row["length"] for row in rows),
    }


def test_an_axis_that_is_not_asked_for_is_null(golden: duckdb.DuckDBPyConnection) -> None:
    found = answer(golden, "map_cells", study="golden", by_bucket=False)
    assert found.select(CELL[2:]).null_count().row(0) == (3, 3, 3)
    assert found["trajectories"].to_list() == [1024, 1024, 1024]


@pytest.mark.parametrize("strange", [math.nan, math.inf])
def test_an_entropy_that_is_no_number_is_not_known(strange: float) -> None:
    rows = [made(1, slot, mean_entropy=entropy) for slot, entropy in enumerate([strange, 0.25])]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        cells = answer(connection, "map_cells", width=0.1)
        extent = answer(connection, "map_extent").row(0, named=True)
    assert cells.select("entropy_bin", "trajectories", "mean_entropy").rows() == [
        (2, 1, 0.25),
        (None, 1, None),
    ]
    assert (extent["known"], extent["greatest"], extent["trajectories"]) == (1, 0.25, 2)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_map_extent(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    expected = []
    for (study, arm), rows in by(scope.rows("trajectories"), "study", "arm").items():
        known = [row["mean_entropy"] for row in rows if row["mean_entropy"] is not None]
        mean = share(known)
        expected.append(
            {
                "study": study,
                "arm": arm,
                "trajectories": len(rows),
                "last_step": max(row["step"] for row in rows),
                "group_size": max(row["group_size"] for row in rows),
                "known": len(known),
                "greatest": max(known, default=None),
                "mean": mean,
                "deviation": spread(known),
            }
        )
    assert_same(answer(golden, "map_extent", **scope.asked), expected, "study", "arm")


def spread(values: list[float]) -> float | None:
    mean = share(values)
    return None if mean is None else math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("marker", ["flawed", "shortcut"])
@pytest.mark.parametrize("by_later", [False, True])
def test_snowball_rows(
    golden: duckdb.DuckDBPyConnection, scope: Scope, marker: str, by_later: bool
) -> None:
    rows = list(scope.rows("trajectories"))
    sources = by(
        (row for row in rows if row["replayed"] and marked(row, marker)),
        *("study", "arm", "seed", "run", "source"),
    )
    expected = [offender(key, replays, rows, marker) for key, replays in sources.items()]
    assert expected
    order = ("later_marked", "replays") if by_later else ("replays",)
    for row in expected:
        row["order"] = tuple(-row[name] for name in order)
    found = answer(golden, "snowball_rows", **scope.asked, marker=marker, by_later=by_later)
    ordered = sorted(
        expected,
        key=lambda row: tuple(row[n] for n in ("study", "arm", "seed", "run", "order", "source")),
    )
    assert found.to_dicts() == [{k: v for k, v in row.items() if k != "order"} for row in ordered]
    few = answer(golden, "snowball_rows", **scope.asked, marker=marker, by_later=by_later, most=1)
    assert few.height == len({row["run"] for row in expected})


def offender(key: tuple[Any, ...], replays: list[Row], rows: list[Row], marker: str) -> Row:
    study, arm, seed, run, source = key
    first = min(replays, key=lambda row: (row["step"], row["group"], row["slot"]))
    right = [
        row
        for row in rows
        if (row["run"], row["question"]) == (run, first["question"])
        and row["correct"]
        and not row["replayed"]
        and marked(row, marker) is not None
        and row["chain_valid"] is not None
    ]
    early = [row for row in right if row["step"] <= first["step"]]
    late = [row for row in right if row["step"] > first["step"]]
    return {
        **{"study": study, "arm": arm, "seed": seed, "run": run},
        **{"question": first["question"], "source": source, "opened": first["trajectory"]},
        "replays": len(replays),
        "first_replay": first["step"],
        "last_replay": max(row["step"] for row in replays),
        "earlier_right": len(early),
        "earlier_marked": sum(bool(marked(row, marker)) for row in early),
        "later_right": len(late),
        "later_marked": sum(bool(marked(row, marker)) for row in late),
    }


def test_a_replay_of_another_runs_trajectory_is_counted_too() -> None:
    rows = [replay_of("other:1:0:0", 2, code=True), made(2, 1), made(3, code=True)]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        found = answer(connection, "snowball_rows", marker="code").row(0, named=True)
    assert (found["source"], found["opened"]) == ("other:1:0:0", "r:2:0:0")
    assert (found["earlier_marked"], found["earlier_right"]) == (0, 1)
    assert (found["later_marked"], found["later_right"]) == (1, 1)
