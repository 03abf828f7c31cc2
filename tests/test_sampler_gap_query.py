"""`sampler_gap_by_length` against a plain loop over logged rows, and by hand (trap 19)."""

import math
from collections import defaultdict
from typing import Any

import duckdb
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope
from replay_loops import assert_same, made, made_catalog
from test_golden_replay_entropy import between

from analysis.queries import answer

RUN = {"study": "s", "arm": "a", "seed": 0, "run": "r"}


def band(length: int) -> tuple[int, int]:
    low = 1
    while 2 * low <= length:
        low *= 2
    return low, 2 * low - 1


def expected_rows(found: list[Row], cap: float = 2.0) -> list[Row]:
    groups: dict[Any, list[tuple[float, int]]] = defaultdict(list)
    for row in found:
        if not row["replayed"] and None not in (row["nll"], row["behaviour_nll"], row["length"]):
            apart = row["behaviour_nll"] - row["nll"]
            groups[row["study"], row["arm"], *band(row["length"])].append((apart, row["length"]))
    expected = []
    for key, pairs in groups.items():
        sums = [apart * length for apart, length in pairs]
        expected.append(
            dict(zip(("study", "arm", "length_from", "length_to"), key, strict=True))
            | {
                "trajectories": len(pairs),
                "token_gap": sum(abs(apart) for apart, _ in pairs) / len(pairs),
                "log_ratio_mean": sum(sums) / len(sums),
                "log_ratio_p05": between(sums, 0.05),
                "log_ratio_p50": between(sums, 0.5),
                "log_ratio_p95": between(sums, 0.95),
                "above_cap_share": sum(each > math.log(cap) for each in sums) / len(sums),
            }
        )
    return expected


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_sampler_gap_by_length(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    expected = expected_rows(list(scope.rows("trajectories")))
    assert len({row["length_from"] for row in expected}) > 1
    found = answer(golden, "sampler_gap_by_length", **scope.asked)
    assert_same(found, expected, "study", "arm", "length_from")


def test_a_small_gap_of_every_token_is_a_large_ratio_of_a_long_response() -> None:
    """A hundred tokens that the sampler finds 0.012 nat less probable: exp(1.2) = 3.3."""
    rows = [
        made(1, slot, length=length, nll=1.0, behaviour_nll=1.0 + apart)
        for slot, (length, apart) in enumerate([(100, 0.012), (100, -0.012), (10, 0.012)])
    ]
    rows.append(made(2, 0, length=100, nll=1.0, behaviour_nll=3.0, replayed=True, source="r:1:0:0"))
    rows.append(made(2, 1, length=100, nll=None, behaviour_nll=3.0))
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        short, long = answer(connection, "sampler_gap_by_length").to_dicts()
        (_, wide) = answer(connection, "sampler_gap_by_length", cap=3.5).to_dicts()
    assert (short["length_from"], short["length_to"], short["trajectories"]) == (8, 15, 1)
    assert short["log_ratio_mean"] == pytest.approx(0.12, abs=1e-5)
    assert short["above_cap_share"] == 0
    assert (long["length_from"], long["length_to"], long["trajectories"]) == (64, 127, 2)
    assert long["token_gap"] == pytest.approx(0.012, abs=1e-6)
    assert math.exp(long["log_ratio_p95"]) == pytest.approx(math.exp(1.2 * 0.9), rel=1e-4)
    assert (long["above_cap_share"], wide["above_cap_share"]) == (0.5, 0)
