"""How often metrics agree on what to replay: a worked example by hand."""

import pytest
from replay_loops import RUN, made_catalog

from analysis.queries import answer, named_queries

METRICS = ("mean_entropy", "released", "summed_entropy", "length", "nll", "birth_entropy")


def test_agreement_by_hand() -> None:
    """Three draws: one with a single candidate (left out), one of 2, one of 4.

    Of the two: all metrics take `a`, but the released one takes `b`, which NLL does not.
    Of the four: mean entropy takes `c`; released, length and sum take `d`; NLL and birth `c`.
    """
    ranks = {
        ("a", 1): (0, 1, 0, 0, 0, 0),
        ("b", 1): (1, 0, 1, 1, 1, 1),
        ("only", 2): (0, 0, 0, 0, 0, 0),
        ("c", 3): (0, 2, 1, 3, 0, 0),
        ("d", 3): (1, 0, 0, 0, 1, 1),
        ("e", 3): (2, 1, 2, 1, 2, 2),
        ("f", 3): (3, 3, 3, 2, 3, 3),
    }
    candidates = [
        {"run": "r", "step": 5, "group": group, "question": f"q{group}", "source": source}
        | {f"{name}_rank": rank for name, rank in zip(METRICS, places, strict=True)}
        for (source, group), places in ranks.items()
    ]
    runs = [RUN, RUN | {"run": "other", "study": "t"}]
    with made_catalog(runs=runs, candidates=candidates) as connection:
        (row,) = answer(connection, "selection_audit", study="s").to_dicts()
        assert answer(connection, "selection_audit", study="t").height == 0
    assert list(row) == list(named_queries()["selection_audit"].columns)
    assert (row["study"], row["arm"], row["draws"]) == ("s", "a", 2)
    assert row["candidates"] == 3
    assert row["chance"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert row["released"] == 0
    assert row["summed_entropy"] == row["shortest"] == 0.5
    assert row["nll"] == row["birth_entropy"] == 1
    assert row["released_is_shortest"] == row["released_is_summed"] == 0.5
