"""Verdicts: every word is reached by every test, for the right reason, and says what it should."""

import numpy as np
import polars as pl
import pytest
from claim_frames import (
    CLAIMS,
    Frames,
    accuracy,
    dynamics,
    entropies,
    phases,
    planted,
    runs,
    validation,
    verdict,
)

from analysis.claims import (
    COUNTS,
    TESTS,
    Finding,
    Ledger,
    Verdict,
    judge,
    show,
    show_effect,
    show_interval,
    show_power,
)

# The snowball detector has a rule and tests of its own: test_claims_snowball.py, test_snowball.py.
TESTED = [
    claim for claim in CLAIMS.values() if claim.test in TESTS and claim.test != "snowball_detected"
]
WORDS = {1: "supported", 0: "inconclusive (underpowered)", -1: "contradicted"}
# One claim a test, and both that ask `difficulty_auroc` of another column.
ONE_A_TEST = [*{claim.test: claim.id for claim in TESTED if claim.test != "not_testable"}.values()]


def estimated(name: str, frames: Frames) -> Finding:
    """The estimate before its verdict, which it may lack where nothing varies."""
    found = TESTS[CLAIMS[name].test](CLAIMS[name], frames)
    assert isinstance(found, Finding)
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
        whole = planted(claim, 1)
        found = [verdict(claim.id, frames) for frames in ({}, emptied(whole), one_seed(whole))]
        assert {each.verdict for each in found} == {"not testable here"}, claim.id
        assert all(each.value is None and each.notes == [] for each in found)
        assert "no study is asked" in found[0].reading
        assert "2 seeds or more" in found[2].reading and "has 1" in found[2].reading, claim.id


def emptied(frames: Frames) -> Frames:
    return {name: frame.clear() for name, frame in frames.items()}


def one_seed(frames: Frames) -> Frames:
    return {
        name: frame.filter(pl.col("seed").is_null() | (pl.col("seed") == 0))
        if "seed" in frame.columns
        else frame
        for name, frame in frames.items()
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
    assert "no benchmark out of distribution" in verdict("C2", without).reading
    assert verdict("C1", without).verdict == "supported"


def test_without_any_variance_nothing_is_proved() -> None:
    """Two arms alike to the last answer, and chains that entropy tells apart without an error."""
    rows = accuracy({"exgrpo": 0.5})
    alike = pl.concat([rows, rows.with_columns(arm=pl.lit("on_policy"))])
    perfect = entropies().with_columns(mean_entropy=pl.col("chain_valid").cast(pl.Float64) * -1)
    for name, frames in (
        ("C1", {"arm_accuracy": alike}),
        ("C4a", {"entropy_validity_rows": perfect}),
    ):
        found = verdict(name, frames)
        assert found.verdict == "not testable here" and found.power is None
        assert "nothing varies between seeds and questions" in found.reading


def test_an_interval_may_exclude_the_effect_that_is_claimed() -> None:
    rows = accuracy({"on_policy": 0.5, "exgrpo": 0.5}, questions=600)
    smaller = judge_with_effect(0.2, rows)
    assert smaller.verdict == "inconclusive (underpowered)"
    assert smaller.reading.endswith("It excludes the effect that the ledger names (+20.0 points).")
    assert "excludes" not in judge_with_effect(0.001, rows).reading


def judge_with_effect(effect: float, rows: pl.DataFrame) -> Verdict:
    claim = CLAIMS["C1"].model_copy(update={"effect": effect})
    (found,) = judge(Ledger(alpha=0.05, claims=[claim]), {"arm_accuracy": rows})
    return found


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
    found = estimated("C20b", answers)
    assert found.made.value == pytest.approx(0.0)  # 1 of 4 at step 10, and 1 of 4 at the end
    assert found.notes[1:] == [
        "Compared at 18,000, 18,000 sampled tokens, one number a seed.",
        "That is exgrpo at steps 10, 10; on_policy at steps 20, 20.",
    ]
    assert "is noisy" in estimated("C20c", answers).notes[-1]
    assert estimated("C20a", answers).made.value == pytest.approx(0.75)  # as many questions: 4 of 4
    shorter = budgets.filter(~((pl.col("arm") == "on_policy") & (pl.col("step") == 20)))
    early = estimated("C20b", answers | {"validation_budgets": shorter})
    assert early.made.value == pytest.approx(1 / 8 - 1 / 4)  # half way to step 10
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
    assert alike.verdict == "not testable here" and "comes to 50.0 % and nothing" in alike.reading
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
    found = verdict("C19", {"study_runs": rows, "step_phases": phases(["exgrpo", "on_policy"])})
    by_seed = [
        np.log(part.filter(pl.col("arm") == "exgrpo")["seconds"][0])
        - np.log(part.filter(pl.col("arm") == "on_policy")["seconds"][0])
        for _, part in rows.group_by("seed", maintain_order=True)
    ]
    assert found.value == pytest.approx(np.mean(by_seed))
    percent = f"{100 * (np.exp(np.mean(by_seed)) - 1):+.1f} %"
    assert show_interval(found, "log ratio").startswith(percent)
    spent = "a step: rollouts 2.000 s, choosing 0.100 s, update 0.500 s"
    assert found.notes[1:3] == [
        f"exgrpo, {spent}; its buffer takes 2.000 MB at the end.",
        f"on_policy, {spent}.",
    ]


def test_numbers_are_shown_in_their_unit() -> None:
    assert show(0.052, "points") == "+5.2 points"
    assert show(0.0, "points") == "0.0 points"
    assert show_effect(0.052, "points per 100 steps") == "5.2 points per 100 steps"
    assert show(0.61234, "AUROC") == "0.612"
    assert show(0.61234, "share") == "61.2 %"
    assert show(np.log(1.19), "log ratio") == "+19.0 %" and show(-np.inf, "log ratio") == "-100.0 %"
    assert show(1e6, "log ratio") == "> +99900.0 %"
    found = Verdict("C8", "supported", "", 0.02, 0.01, 0.03)
    assert show_interval(found, "points per 100 steps") == "+2.0 points per 100 steps [+1.0, +3.0]"
    assert show_interval(Verdict("C1", "not testable here", ""), "points") == ""
    powers = [Verdict("C1", "supported", "", power=power) for power in (0.001, 0.5, 0.999, None)]
    assert [show_power(each) for each in powers] == ["< 1 %", "50 %", "> 99 %", ""]


def test_a_claim_needs_what_its_test_needs() -> None:
    claim = CLAIMS["C1"]
    one_arm = claim.model_copy(update={"arms": ["exgrpo"]})
    nowhere = claim.model_copy(update={"domain": None})
    frames = planted(claim, 1)
    for wrong, reason in ((one_arm, "compares two arms"), (nowhere, "needs a domain")):
        with pytest.raises(ValueError, match=reason):
            judge(Ledger(alpha=0.05, claims=[wrong]), frames)
