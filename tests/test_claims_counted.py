"""Statements that are counted: contradicted by the paper's tables, and both ways by a log."""

import polars as pl
import pytest

from analysis.claims import Claim, Ledger, Verdict, judge, load_ledger

STATEMENTS = {claim.id: claim for claim in load_ledger().claims if claim.unit == "counted"}
BUCKETS = {"arm": pl.String, "bucket": pl.Int64, "questions": pl.Int64}
STORED = {"arm": pl.String, "sampled_wrong": pl.Int64, "stored": pl.Int64, "stored_wrong": pl.Int64}
WEIGHTS = {"arm": pl.String, "trajectories": pl.Int64, "from_ratio": pl.Float64,
           "from_sum": pl.Float64}  # fmt: skip


def verdict(claim: Claim, frames: dict[str, pl.DataFrame] | None = None) -> Verdict:
    (found,) = judge(Ledger(alpha=0.05, claims=[claim]), frames or {})
    assert found.value is None and found.level is None and found.power is None
    return found


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("S1", "Qwen2.5-Math-7B: 184.92 s a step against 155.38, +19.0 %"),
        ("S2", "retired review"),
        ("S3", "Qwen2.5-Math-1.5B gains +5.3 points in distribution, +1.3 points out of"),
        ("S4", "Qwen2.5-Math-7B gains +3.0 points in distribution, +1.9 points out of"),
        ("S8", "instructions: 3 benchmarks (Table 2)"),
    ],
)
def test_the_papers_tables_contradict(name: str, seen: str) -> None:
    found = verdict(STATEMENTS[name])
    assert found.verdict == "contradicted"
    assert found.reading.startswith("By the paper's own tables: ") and seen in found.reading


def test_what_the_tables_do_say_is_supported() -> None:
    """The same tests, of statements that hold: they are decided by the data, not by the test."""
    right = {"in distribution": [5.25, 5.35], "out of distribution": [1.25, 1.35]}
    for name, given in (
        ("S2", {"method": "retired review"}),
        ("S3", {"backbone": "Qwen2.5-Math-1.5B", "between": right}),
    ):
        claim = STATEMENTS[name].model_copy(update={"given": given})
        assert verdict(claim).verdict == "supported"


@pytest.mark.parametrize("filled", [[1, 2, 3], []])
@pytest.mark.parametrize(("there", "word"), [(3, "supported"), (7, "contradicted")])
def test_buckets_count_whether_or_not_they_hold_a_question(
    there: int, word: str, filled: list[int]
) -> None:
    rows = [("exgrpo", bucket, int(bucket in filled)) for bucket in range(1, there + 1)]
    frame = pl.DataFrame(rows, schema=BUCKETS, orient="row")
    found = verdict(STATEMENTS["S5"], {"bucket_occupancy": frame})
    assert found.verdict == word
    assert f"there are {there} buckets" in found.reading
    assert f"{len(filled)} of them held questions" in found.reading
    assert verdict(STATEMENTS["S5"], {"bucket_occupancy": frame.clear()}).value is None


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (("exgrpo", 9, 5, 2), "supported"),
        (("exgrpo", 9, 5, 0), "contradicted"),
        (("exgrpo", 0, 5, 0), "not testable here"),
        (("exgrpo", 9, 0, 0), "not testable here"),
        (("repo_recent", 9, 5, 2), "not testable here"),  # another arm stores what it likes
    ],
)
def test_stored(row: tuple[str, int, int, int], word: str) -> None:
    frame = pl.DataFrame([row], schema=STORED, orient="row")
    assert verdict(STATEMENTS["S6"], {"stored_answers": frame}).verdict == word


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (("exgrpo", 4, 0.9, 1e-7), "supported"),
        (("exgrpo", 4, 1e-7, 0.9), "contradicted"),
        (("exgrpo", 4, 0.9, 0.8), "contradicted"),
        (("exgrpo", 4, None, None), "not testable here"),
    ],
)
def test_weights(row: tuple[str, int, float | None, float | None], word: str) -> None:
    frame = pl.DataFrame([row], schema=WEIGHTS, orient="row")
    assert verdict(STATEMENTS["S7"], {"replay_weights": frame}).verdict == word


def test_without_a_log_nothing_is_said_of_it() -> None:
    for name in ("S5", "S6", "S7"):
        assert "no study is asked" in verdict(STATEMENTS[name]).reading
