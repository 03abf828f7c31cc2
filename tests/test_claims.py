"""Verdicts: every word is reached by every test, for the right reason, and says what it should."""

import numpy as np
import polars as pl
import pytest
from claim_frames import (
    ACCURACY_SCHEMA,
    Frames,
    accuracy,
    base_rows,
    dynamics,
    entropies,
    planted,
    runs,
    validation,
)

from analysis.claims import (
    COUNTS,
    TESTS,
    Claim,
    Ledger,
    Verdict,
    judge,
    load_ledger,
    show,
    show_effect,
    show_interval,
    show_power,
)
from analysis.statistics import auroc

CLAIMS = {claim.id: claim for claim in load_ledger().claims}
# The snowball detector has a rule and tests of its own: test_claims_snowball.py, test_snowball.py.
TESTED = [
    claim for claim in CLAIMS.values() if claim.test in TESTS and claim.test != "snowball_detected"
]
WORDS = {1: "supported", 0: "inconclusive (underpowered)", -1: "contradicted"}
# One claim a test, and both that ask `difficulty_auroc` of another column.
ONE_A_TEST = [*{claim.test: claim.id for claim in TESTED if claim.test != "not_testable"}.values()]


def verdict(name: str, frames: Frames) -> Verdict:
    """The claim alone, a family of one."""
    (found,) = judge(Ledger(alpha=0.05, claims=[CLAIMS[name]]), frames)
    return found


@pytest.mark.parametrize("sign", WORDS)
@pytest.mark.parametrize("name", [*ONE_A_TEST, "C6a"])
def test_every_test_reaches_every_verdict(name: str, sign: int) -> None:
    found = verdict(name, planted(CLAIMS[name], sign))
    assert found.verdict == WORDS[sign], found
    assert found.value is not None and found.low is not None and found.high is not None
    assert found.low <= found.value <= found.high
    assert found.seeds == 3 and found.level == 0.95
    assert found.power is not None and found.smallest_effect is not None
    assert (found.power > 0.8) == ((CLAIMS[name].effect or 0) > found.smallest_effect)
    if sign == 0:
        assert "in four of five studies" in found.reading
    paired = CLAIMS[name].unit == "points"
    assert (found.permutation_p is not None) == paired
    if paired and sign:
        assert found.permutation_p < 0.01


def test_every_claim_without_its_data_is_not_testable_and_says_why() -> None:
    """No frame at all, frames without a row, and every arm with one seed."""
    for claim in TESTED:
        if claim.test == "not_testable":
            continue
        found = [verdict(claim.id, frames) for frames in ({}, emptied(claim), one_seed(claim))]
        assert {each.verdict for each in found} == {"not testable here"}, claim.id
        assert all(each.value is None and each.notes == [] for each in found)
        assert "no study is asked" in found[0].reading
        assert "2 seeds or more" in found[2].reading and "has 1" in found[2].reading, claim.id


def emptied(claim: Claim) -> Frames:
    return {name: frame.clear() for name, frame in planted(claim, 1).items()}


def one_seed(claim: Claim) -> Frames:
    return {
        name: frame.filter(pl.col("seed").is_null() | (pl.col("seed") == 0))
        if "seed" in frame.columns
        else frame
        for name, frame in planted(claim, 1).items()
    }


@pytest.mark.parametrize("name", ["C7b", "C22"])
def test_what_nothing_here_can_test_says_so(name: str) -> None:
    found = verdict(name, {})
    assert found.verdict == "not testable here"
    assert CLAIMS[name].given["reason"] in found.reading


def test_a_claim_names_the_arm_or_the_benchmark_that_is_missing() -> None:
    frames = planted(CLAIMS["C1"], 1)
    rows = frames["arm_accuracy"]
    without = {"arm_accuracy": rows.filter(pl.col("arm") != "on_policy")}
    assert "no rows of arm `on_policy`" in verdict("C1", without).reading
    assert "`question_replay`" in verdict("C23a", frames).reading
    without = {"arm_accuracy": rows.filter(pl.col("benchmark") == "test_id")}
    assert "`test_ood`" in verdict("C2", without).reading
    assert verdict("C1", without).verdict == "supported"


def test_a_seed_without_a_row_that_counts_is_no_seed() -> None:
    """Two seeds have rows, one of them none with a known chain: one seed is left."""
    rows = entropies(0.2, seeds=2)
    known = pl.when(pl.col("seed") == 0).then("chain_valid")
    found = verdict("C4", {"entropy_validity_rows": rows.with_columns(chain_valid=known)})
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
    found = verdict("C4", {"entropy_validity_rows": rows})
    assert found.value == pytest.approx(0.5, abs=0.1)
    assert found.verdict == "inconclusive (underpowered)"


def test_chains_that_cannot_be_paired_are_not_testable() -> None:
    rows = entropies(0.2)
    alone = pl.when("chain_valid").then(1).otherwise(2).alias("bucket")
    for changed, reason in (
        (rows.with_columns(alone), "share a stratum"),
        (rows.filter("chain_valid"), "no right answer has a flawed chain"),
    ):
        assert reason in verdict("C4", {"entropy_validity_rows": changed}).reading


def test_few_and_different_seeds_leave_a_claim_open() -> None:
    """Every seed says the same direction, but three that differ so much could by chance."""
    shifts = {0: 1, 1: 1, 2: 4}
    rows = accuracy({"on_policy": 0.4, "exgrpo": 0.4})
    lifted = pl.min_horizontal(4, pl.col("correct") + pl.col("seed").replace_strict(shifts))
    rows = rows.with_columns(
        correct=pl.when(pl.col("arm") == "exgrpo").then(lifted).otherwise("correct")
    )
    found = verdict("C1", {"arm_accuracy": rows})
    assert found.verdict == "inconclusive (underpowered)"
    assert found.high is not None and found.high <= 1
    assert found.permutation_p is not None and found.permutation_p < 0.001  # of these three models


def test_two_seeds_apart_promise_no_effect_that_is_possible() -> None:
    rows = accuracy({"on_policy": 0.3, "exgrpo": 0.3}, seeds=2)
    lifted = pl.when((pl.col("arm") == "exgrpo") & (pl.col("seed") == 1)).then(4)
    found = verdict("C1", {"arm_accuracy": rows.with_columns(correct=lifted.otherwise("correct"))})
    assert found.smallest_effect is not None and found.smallest_effect > 1
    assert "it would find no effect that is possible in four of five studies" in found.reading


def test_the_family_widens_the_interval() -> None:
    """Two claims without effect share alpha: both intervals are at 1 - alpha / 2, and wider."""
    claims, given = (
        list(CLAIMS.values()),
        {"arm_accuracy": accuracy({"on_policy": 0.4, "exgrpo": 0.4})},
    )
    alone = judge(Ledger(alpha=0.05, claims=claims[:1]), given)[0]
    family = judge(Ledger(alpha=0.05, claims=claims[:2]), given)
    assert alone.level == 0.95
    assert [each.level for each in family] == [0.975, 0.975]
    assert (family[0].low or 0) < (alone.low or 0) < (alone.high or 0) < (family[0].high or 0)
    assert family[0].power is not None and alone.power is not None
    assert family[0].power < alone.power


def test_counted_statements_and_untestable_claims_are_outside_the_family() -> None:
    given = {"arm_accuracy": accuracy({"on_policy": 0.4, "exgrpo": 0.4})}
    outside = [claim for claim in CLAIMS.values() if claim.test in COUNTS]
    family = judge(Ledger(alpha=0.05, claims=[CLAIMS["C1"], CLAIMS["C22"], *outside]), given)
    assert family[0].level == 0.95
    assert [each.level for each in family[1:]] == [None] * (1 + len(outside))


def test_extraction_is_told_apart_from_knowing() -> None:
    """The first arm answers no better; a quarter of the second one's answers cannot be read."""
    first = accuracy({"exgrpo": 1.3}).with_columns(correct=pl.lit(3, pl.Int64))
    second = first.with_columns(arm=pl.lit("on_policy"), extracted=pl.lit(3, pl.Int64))
    found = verdict("C2", {"arm_accuracy": pl.concat([first, second])})
    assert found.value == 0
    assert "Answers that can be read: +25.0 points [+25.0, +25.0]" in found.notes[1]
    assert "among those that can be read: -25.0 points [-25.0, -25.0]" in found.notes[2]


def test_masked_arms_are_also_shown_as_in_the_paper() -> None:
    arms = CLAIMS["C3a"].arms
    rows = accuracy({arms[0]: 0.6, arms[1]: 0.5, "masked_medium": 0.4, "masked_easy": 0.5})
    found = verdict("C3a", {"arm_accuracy": rows})
    assert found.verdict == "supported" and "masked_medium minus masked_easy): -" in found.notes[-1]
    matched = rows.filter(pl.col("arm").is_in(arms))
    note = verdict("C3a", {"arm_accuracy": matched}).notes[-1]
    assert "not here, the study has no rows of arm `masked_medium`" in note


def test_a_weak_base_counts_the_runs_that_collapse() -> None:
    rows = base_rows(accuracy({"start_at_0": 0.5, "on_policy": 0.4}), right=0.05)
    collapsed = (pl.col("arm") == "on_policy") & (pl.col("seed") < 2)
    rows = rows.with_columns(correct=pl.when(collapsed).then(0).otherwise("correct"))
    found = verdict("C15", {"arm_accuracy": rows.cast(ACCURACY_SCHEMA)})
    assert found.notes[1:] == [
        "Base model: 5.0 % right.",
        "start_at_0: 0 of 3 runs end no better than the base model.",
        "on_policy: 2 of 3 runs end no better than the base model.",
    ]
    strong = base_rows(accuracy({"start_at_0": 0.5, "on_policy": 0.4}), right=0.5)
    assert (
        "below 10 % right, this one has 50.0 %" in verdict("C15", {"arm_accuracy": strong}).reading
    )
    none = {"arm_accuracy": strong.filter(pl.col("arm") != "base")}
    assert "the base model was not tested" in verdict("C15", none).reading


def test_forgetting_stands_beside_retirement() -> None:
    notes = verdict("C17a", planted(CLAIMS["C17a"], 1)).notes
    assert (
        "of 40 retired questions asked again, 3 were half wrong or worse then (7.5 %)" in notes[1]
    )


def test_equal_cost_is_where_the_lesser_arm_ends() -> None:
    """The first arm costs twice as much a step: half its way is compared with the other's end."""
    frames = validation(0.0, seeds=2)
    rises = {0: 0, 10: 1, 20: 4}
    rows = frames["validation_accuracy"].with_columns(
        correct=pl.when(pl.col("arm") == "exgrpo")
        .then(pl.col("step").replace_strict(rises, return_dtype=pl.Int64))
        .otherwise(1)
        .cast(pl.Int64)
    )
    twice = pl.when(pl.col("arm") == "exgrpo").then(2).otherwise(1) * pl.col("sampled_tokens")
    budgets = frames["validation_budgets"].with_columns(sampled_tokens=twice)
    answers = {"validation_accuracy": rows, "validation_budgets": budgets}
    found = verdict("C20b", answers)
    assert found.value == pytest.approx(0.0)  # 1 of 4 at step 10, and 1 of 4 at the end
    assert "Compared at 18,000, 18,000 sampled tokens" in found.notes[1]
    assert verdict("C20a", answers).value == pytest.approx(0.75)  # as many questions: 4 of 4
    shorter = budgets.filter(~((pl.col("arm") == "on_policy") & (pl.col("step") == 20)))
    early = verdict("C20b", answers | {"validation_budgets": shorter})
    assert early.value == pytest.approx(1 / 8 - 1 / 4)  # half way to step 10
    unknown = budgets.with_columns(sampled_tokens=pl.lit(None, pl.Int64))
    reading = verdict("C20b", answers | {"validation_budgets": unknown}).reading
    assert "the log has no `sampled_tokens`" in reading


def test_the_course_of_training_is_read_at_its_end() -> None:
    arms = ("exgrpo", "no_shaping")
    rows = dynamics(arms, {"exgrpo": 0.7, "no_shaping": 0.5})
    found = verdict("C12", {"buffer_dynamics": rows})
    late = rows.filter(pl.col("step") > 15).group_by("arm").agg(pl.col("entropy").mean())
    means = dict(late.iter_rows())
    assert found.value == pytest.approx(means["exgrpo"] - means["no_shaping"])
    assert found.questions is None and found.sample == "3 seeds"
    alike = verdict("C18a", {"buffer_dynamics": rows})  # 50 + seed buffered, 50 - seed retired
    assert alike.verdict == "not testable here" and "comes to 50.0 %, so" in alike.reading
    more = rows.with_columns(buffer_questions=pl.col("buffer_questions") + 2 * pl.col("seed"))
    assert verdict("C18a", {"buffer_dynamics": more}).value == pytest.approx(102 / 200)
    apart = [
        (48 - 2 * seed - 48) / 200 for seed in range(3)
    ]  # retired 50 - seed, buffered 50 + seed
    assert verdict("C18b", {"buffer_dynamics": rows}).value == pytest.approx(np.mean(apart))
    no_counts = rows.with_columns(buffer_questions=pl.lit(None, pl.Int64))
    assert "no counts" in verdict("C18a", {"buffer_dynamics": no_counts}).reading
    no_entropy = rows.with_columns(entropy=pl.lit(None, pl.Float64))
    assert "no entropy" in verdict("C12", {"buffer_dynamics": no_entropy}).reading


def test_time_is_compared_by_its_logarithm() -> None:
    rows = runs(1.5)
    found = verdict("C19", {"study_runs": rows})
    by_seed = [
        np.log(part.filter(pl.col("arm") == "exgrpo")["seconds"][0])
        - np.log(part.filter(pl.col("arm") == "on_policy")["seconds"][0])
        for _, part in rows.group_by("seed", maintain_order=True)
    ]
    assert found.value == pytest.approx(np.mean(by_seed))
    assert found.notes[0] == f"That is {100 * (np.exp(np.mean(by_seed)) - 1):+.1f} % a step."


def test_numbers_are_shown_in_their_unit() -> None:
    assert show(0.052, "points") == "+5.2 points"
    assert show(0.0, "points") == "0.0 points"
    assert show_effect(0.052, "points per 100 steps") == "5.2 points per 100 steps"
    assert show(0.61234, "AUROC") == "0.612"
    assert show(0.61234, "share") == "61.2 %"
    assert show(-0.174, "log ratio") == "-0.174 log ratio"
    found = Verdict("C8", "supported", "", 0.02, 0.01, 0.03)
    assert show_interval(found, "points per 100 steps") == "+2.0 points per 100 steps [+1.0, +3.0]"
    assert show_interval(Verdict("C1", "not testable here", ""), "points") == ""
    powers = [Verdict("C1", "supported", "", power=power) for power in (0.001, 0.5, 0.999, None)]
    assert [show_power(each) for each in powers] == ["< 1 %", "50 %", "> 99 %", ""]


def test_a_claim_needs_what_its_test_needs() -> None:
    claim = CLAIMS["C1"]
    one_arm = claim.model_copy(update={"arms": ["exgrpo"]})
    nowhere = claim.model_copy(update={"benchmark": None})
    frames = planted(claim, 1)
    for wrong, reason in ((one_arm, "compares two arms"), (nowhere, "needs a benchmark")):
        with pytest.raises(ValueError, match=reason):
            judge(Ledger(alpha=0.05, claims=[wrong]), frames)
