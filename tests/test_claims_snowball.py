"""Claim C8 is what the snowball detector says, at the rate that the ledger's family grants."""

import polars as pl
import pytest
from claim_frames import planted
from planted_worlds import World, catalog, play

from analysis.claims import Ledger, judge, load_ledger
from analysis.snowball import ask, snowball_finding
from analysis.snowball.verdict import STRONG

CLAIMS = {claim.id: claim for claim in load_ledger().claims}
SMALL = World(seeds=3, steps=60, pool=120)


@pytest.fixture(scope="module")
def strong() -> dict[str, pl.DataFrame]:
    """A small world with a strong snowball, and what the named queries say of it."""
    with catalog(*play(SMALL.of_strength(1), 1)) as connection:
        return ask(connection, "planted")


def test_the_ledger_shows_what_the_detector_found(strong: dict[str, pl.DataFrame]) -> None:
    (shown,) = judge(Ledger(alpha=0.05, claims=[CLAIMS["C8"]]), strong)
    found = snowball_finding(strong)
    assert (shown.verdict, shown.reading) == (found.verdict, found.reading)
    assert (shown.value, shown.low, shown.high) == (found.value, found.low, found.high)
    assert shown.value is not None and shown.value > 0
    assert shown.p == found.p and shown.notes == found.notes


def test_the_effect_that_the_ledger_names_is_the_planted_one() -> None:
    assert CLAIMS["C8"].effect == STRONG["arms contrast"]


def test_it_counts_in_the_family(strong: dict[str, pl.DataFrame]) -> None:
    """Beside a clear claim and an open one its interval is wider than alone, by Holm."""
    clear, opened = CLAIMS["C1"], CLAIMS["C23a"]
    frames = planted(clear, 1) | strong
    answers = planted(opened, 0)["arm_accuracy"].filter(pl.col("arm") == opened.arms[1])
    frames["arm_accuracy"] = pl.concat([frames["arm_accuracy"], answers])
    (alone,) = judge(Ledger(alpha=0.05, claims=[CLAIMS["C8"]]), frames)
    together = judge(Ledger(alpha=0.05, claims=[clear, CLAIMS["C8"], opened]), frames)[1]
    assert together.p == alone.p
    assert alone.level is not None and together.level is not None
    assert together.level >= alone.level


def test_without_arms_or_answers_it_is_not_testable(strong: dict[str, pl.DataFrame]) -> None:
    empty = {name: frame.clear() for name, frame in strong.items()}
    one_arm = {name: frame.filter(pl.col("arm") == "exgrpo") for name, frame in strong.items()}
    for frames in ({}, empty, one_arm):
        (found,) = judge(Ledger(alpha=0.05, claims=[CLAIMS["C8"]]), frames)
        assert found.verdict == "not testable here"
        assert found.value is None and found.reading.startswith("Not testable here: ")
