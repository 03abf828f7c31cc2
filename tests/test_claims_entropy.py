"""Claims on the entropy of right answers: which pairs count, and what cannot be told apart."""

import re

import polars as pl
import pytest
from claim_frames import entropies, verdict

from analysis.statistics import auroc


def test_a_seed_without_a_row_that_counts_is_no_seed() -> None:
    """Two seeds have rows, one of them none with a known chain: one seed is left."""
    rows = entropies(0.2, seeds=2)
    known = pl.when(pl.col("seed") == 0).then("chain_valid")
    found = verdict("C4a", {"entropy_validity_rows": rows.with_columns(chain_valid=known)})
    assert "this study has 1" in found.reading


def test_entropy_that_only_follows_training_time_is_not_support() -> None:
    """Flawed chains and high entropy both come early; inside a window entropy says nothing."""
    early = pl.col("window_start") == 1
    at = pl.int_range(pl.len())
    rows = entropies().with_columns(
        chain_valid=at // 14 % 5 > pl.when(early).then(3).otherwise(0),
        mean_entropy=0.3 + 0.2 * early + (at * 0.6180339887) % 1 / 10,
    )
    assert auroc(rows["mean_entropy"], ~rows["chain_valid"]) > 0.65
    found = verdict("C4a", {"entropy_validity_rows": rows})
    assert found.value == pytest.approx(0.5, abs=0.1)
    assert found.verdict == "inconclusive (underpowered)"


def test_chains_that_cannot_be_paired_are_not_testable() -> None:
    rows = entropies(0.2)
    alone = pl.when("chain_valid").then(1).otherwise(2).alias("bucket")
    for changed, reason in (
        (rows.with_columns(alone), "share a stratum, this study has 0"),
        (rows.filter("chain_valid"), "no right answer has a flawed chain"),
    ):
        assert reason in verdict("C4a", {"entropy_validity_rows": changed}).reading


def test_a_seed_without_a_pair_is_left_out_and_named() -> None:
    """As the observations do: the other seeds are judged, if they are two or more."""
    rows = entropies(0.2)
    whole = pl.when(pl.col("seed") == 1).then(True).otherwise("chain_valid")
    rows = rows.with_columns(chain_valid=whole)
    found = verdict("C4a", {"entropy_validity_rows": rows})
    alone = verdict("C4a", {"entropy_validity_rows": rows.filter(pl.col("seed") != 1)})
    assert found.verdict == "supported" and found.seeds == 2
    assert (found.value, found.low) == (alone.value, alone.low)
    assert found.notes[1] == "Left out, for they have no pair to compare: seeds 1."
    third = rows.with_columns(
        chain_valid=pl.when(pl.col("seed") == 2).then(False).otherwise("chain_valid")
    )
    reading = verdict("C4a", {"entropy_validity_rows": third}).reading
    assert "2 seeds or more in which two answers" in reading and "has 1" in reading


@pytest.mark.parametrize(
    ("entropy", "nll", "reason"),
    [
        (-0.1, -0.2, "neither score ranks"),
        (0.1, -0.2, "not both scores rank"),
        (-0.1, 0.2, "not both scores rank"),
    ],
)
def test_no_score_separates_better_by_separating_the_other_way(
    entropy: float, nll: float, reason: str
) -> None:
    """The less wrong of two AUROCs below one half is no better score."""
    rows = entropies(entropy).with_columns(nll=entropies(nll, draw=2)["mean_entropy"])
    found = verdict("C5", {"entropy_validity_rows": rows})
    assert found.verdict == "not testable here"
    assert f"{reason} flawed chains above valid ones (entropy 0." in found.reading


def longer(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Answers of one kind are longer, and entropy is what length makes it."""
    length = pl.when(column).then(20 + pl.int_range(pl.len()) % 2).otherwise(10)
    return rows.with_columns(length=length).with_columns(
        mean_entropy=pl.col("length") / 10 + pl.col("mean_entropy") / 10
    )


def test_a_marker_that_only_length_tells_apart_is_not_testable() -> None:
    found = verdict("C7a", {"entropy_validity_rows": longer(entropies(), "shortcut")})
    assert found.verdict == "not testable here"
    assert (
        "is as long as an unmarked one" in found.reading and "length alone 1.000" in found.reading
    )
    none = verdict("C7a", {"entropy_validity_rows": entropies().with_columns(shortcut=False)})
    assert "this study has 0" in none.reading


def test_flawed_chains_are_also_compared_at_equal_length() -> None:
    """Three in four flawed chains are longer and have the entropy of their length, no more."""
    rows = entropies().with_columns(
        long=~pl.col("chain_valid") & (pl.int_range(pl.len()) // 3 % 4 > 0)
    )
    frames = {"entropy_validity_rows": longer(rows, "long")}
    raw, equal = verdict("C4a", frames), verdict("C4b", frames)
    assert raw.verdict == "supported" and equal.verdict == "inconclusive (underpowered)"
    assert equal.value == pytest.approx(0.5, abs=0.1)
    note = raw.notes[1]
    shares = re.search(r"(\d+) % of the flawed ones have another .*, (\d+) % one of equal", note)
    assert "by the exact check (all there are)" in note
    assert shares and int(shares[1]) == 100 and int(shares[2]) == pytest.approx(25, abs=4)
    judged = frames["entropy_validity_rows"].with_columns(judge=pl.lit("a-judge"))
    assert "by judge `a-judge`" in verdict("C4a", {"entropy_validity_rows": judged}).notes[1]


def test_the_difference_of_two_scores_is_noted_by_seed() -> None:
    found = verdict("C5", {"entropy_validity_rows": entropies(0.2)})
    by_seed = [float(value) for value in re.findall(r"[+-]\d\.\d{3}", found.notes[0])]
    assert len(by_seed) == 3
    assert sum(by_seed) / 3 == pytest.approx(found.value, abs=0.001)
