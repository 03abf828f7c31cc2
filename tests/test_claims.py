"""The ledger and its verdicts: every word of the enum is reached, and for the right reason."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.claims import (
    LEDGER,
    TESTS,
    Claim,
    Ledger,
    Verdict,
    judge,
    load_ledger,
    show,
    show_effect,
    show_interval,
)
from analysis.comparison import accuracy_table, compare, estimate, learning_curves, paired
from analysis.errors import UserError
from analysis.queries import named_queries
from analysis.statistics import auroc
from pipeline.analyse import QUERIES

ACCURACY_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "run": pl.String, "step": pl.Int64, "benchmark": pl.String,
    "question": pl.String, "level": pl.Int64, "samples": pl.Int64, "correct": pl.Int64,
    "extracted": pl.Int64, "checked": pl.Int64, "flawed": pl.Int64,
}  # fmt: skip
ENTROPY_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "question": pl.String, "level": pl.Int64,
    "bucket": pl.Int64, "window_start": pl.Int64, "chain_valid": pl.Boolean,
    "mean_entropy": pl.Float64, "nll": pl.Float64, "length": pl.Int64, "one_in": pl.Int64,
}  # fmt: skip
SNOWBALL_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "window_start": pl.Int64, "question": pl.String,
    "right_fresh": pl.Int64, "flawed": pl.Int64,
}  # fmt: skip


def accuracy(means: dict[str, float], seeds: int = 3, questions: int = 200) -> pl.DataFrame:
    """Rows as `arm_accuracy` gives them: 4 samples a question, arms with the given accuracy."""
    rng = np.random.default_rng(0)
    shift = rng.uniform(-0.2, 0.2, questions)
    rows = [
        {
            "arm": arm,
            "seed": seed,
            "run": f"{arm}-s{seed}",
            "step": 150,
            "benchmark": benchmark,
            "question": f"q{question}",
            "level": 1,
            "samples": 4,
            "correct": int(rng.binomial(4, np.clip(mean + shift[question], 0, 1))),
        }
        for arm, mean in means.items()
        for seed in range(seeds)
        for benchmark in ("test_id", "test_ood")
        for question in range(questions)
    ]
    return pl.DataFrame(rows, schema=ACCURACY_SCHEMA)


def entropies(flawed_mean: float, seeds: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    rows = []
    for at in range(1500):
        valid = bool(rng.random() < 0.7)
        entropy = rng.normal(0.3 if valid else flawed_mean, 0.1)
        rows.append(
            {
                "arm": "on_policy",
                "seed": at % seeds,
                "question": f"q{at % 100}",
                "level": 1 + at % 8,
                "bucket": 1 + at % 7,
                "window_start": 1 + at % 2 * 10,
                "chain_valid": valid,
                "mean_entropy": entropy,
                "nll": entropy + rng.normal(0, 0.3),
                "length": 10,
                "one_in": 1,
            }
        )
    return pl.DataFrame(rows, schema=ENTROPY_SCHEMA)


def snowball(rise: float) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    rows = [
        {
            "arm": arm,
            "seed": seed,
            "window_start": 1 + 10 * window,
            "question": f"q{question}",
            "right_fresh": 4,
            "flawed": int(rng.binomial(4, 0.3 + slope * window / 10)),
        }
        for arm, slope in (("highest_entropy", rise), ("exgrpo", 0.0))
        for seed in range(3)
        for window in range(15)
        for question in range(40)
    ]
    return pl.DataFrame(rows, schema=SNOWBALL_SCHEMA)


def frames(
    means: dict[str, float] | None = None, flawed: float = 0.4, rise: float = 0.2, seeds: int = 3
) -> dict[str, pl.DataFrame]:
    means = means or {
        "on_policy": 0.4, "exgrpo": 0.5, "highest_entropy": 0.4, "question_replay": 0.4,
    }  # fmt: skip
    return {
        "arm_accuracy": accuracy(means, seeds),
        "entropy_validity_rows": entropies(flawed, seeds),
        "snowball_questions": snowball(rise),
    }


def verdicts(given: dict[str, pl.DataFrame]) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in judge(load_ledger(), given)}


def test_ledger_is_sound() -> None:
    ledger = load_ledger()
    assert [claim.id for claim in ledger.claims] == ["C1", "C2", "C4", "C5", "C8", "C9", "C23"]
    for claim in ledger.claims:
        assert claim.query in named_queries(), claim.id
        assert claim.query in QUERIES, claim.id
        assert claim.test in TESTS, claim.id


def test_real_effects_are_supported() -> None:
    found = verdicts(frames())
    assert {verdict.verdict for verdict in found.values()} == {"supported"}
    first = found["C1"]
    assert first.value == pytest.approx(0.1, abs=0.03)
    assert first.low is not None and first.high is not None and first.level is not None
    assert 0 < first.low < first.value < first.high
    assert first.level >= 0.95
    assert first.notes[0].startswith("By seed: +")
    assert found["C8"].value == pytest.approx(0.2, abs=0.05)  # 0.2 more in 10 windows of 10 steps
    assert found["C8"].notes[0].startswith("highest_entropy: own slope +18.9 points per")
    assert "on_policy: no trend in this study." in found["C8"].notes
    assert (found["C4"].value or 0) > 0.7


def test_entropy_that_only_follows_training_time_is_not_support() -> None:
    """Flawed chains and high entropy both come early; inside a window entropy says nothing."""
    given = frames()
    early = pl.col("window_start") == 1
    at = pl.int_range(pl.len())
    rows = given["entropy_validity_rows"].with_columns(
        chain_valid=at // 14 % 5 > pl.when(early).then(3).otherwise(0),
        mean_entropy=0.3 + 0.2 * early + (at * 0.6180339887) % 1 / 10,
    )
    assert auroc(rows["mean_entropy"], ~rows["chain_valid"]) > 0.65
    verdict = verdicts(given | {"entropy_validity_rows": rows})["C4"]
    assert verdict.value == pytest.approx(0.5, abs=0.1)
    assert verdict.verdict == "inconclusive (underpowered)"


def test_few_and_different_seeds_leave_a_claim_open() -> None:
    """Every seed says the same direction, but three that differ so much could by chance."""
    shifts = {0: 1, 1: 2, 2: 4}
    given = frames({"on_policy": 0.4, "exgrpo": 0.4})
    arm = pl.col("arm") == "exgrpo"
    lifted = pl.min_horizontal(4, pl.col("correct") + pl.col("seed").replace_strict(shifts))
    given["arm_accuracy"] = given["arm_accuracy"].with_columns(
        correct=pl.when(arm).then(lifted).otherwise("correct")
    )
    verdict = verdicts(given)["C1"]
    assert verdict.verdict == "inconclusive (underpowered)"
    assert verdict.high is not None and verdict.high <= 1


def test_effects_the_other_way_are_contradicted() -> None:
    means = {
        "on_policy": 0.5, "exgrpo": 0.4, "highest_entropy": 0.5, "question_replay": 0.5,
    }  # fmt: skip
    found = verdicts(frames(means, flawed=0.2, rise=-0.2))
    del found["C5"]
    assert {verdict.verdict for verdict in found.values()} == {"contradicted"}
    assert found["C1"].reading.endswith("against the claim.")


def test_no_effect_is_inconclusive_and_says_what_could_be_found() -> None:
    arms = ("on_policy", "exgrpo", "highest_entropy", "question_replay")
    found = verdicts(frames(dict.fromkeys(arms, 0.4), flawed=0.3, rise=0.0))
    for verdict in found.values():
        assert verdict.verdict == "inconclusive (underpowered)", verdict
        assert verdict.low is not None and verdict.high is not None
        assert verdict.smallest_effect is not None and verdict.smallest_effect > 0
    assert f"{100 * (found['C1'].smallest_effect or 0):.1f} points" in found["C1"].reading


def test_a_first_form_is_not_testable_for_the_right_reason() -> None:
    smoke = frames({"on_policy": 0.4, "exgrpo": 0.5}, seeds=1)
    smoke["snowball_questions"] = smoke["snowball_questions"].filter(pl.col("arm") == "exgrpo")
    found = verdicts(smoke)
    assert {verdict.verdict for verdict in found.values()} == {"not testable here"}
    assert "2 seeds or more" in found["C1"].reading and "has 1" in found["C1"].reading
    assert "`question_replay`" in found["C23"].reading
    assert found["C1"].value is None and found["C1"].notes == []


def test_missing_data_is_not_testable_and_never_a_crash() -> None:
    given = frames()
    empty = {name: frame.clear() for name, frame in given.items()}
    assert {verdict.verdict for verdict in verdicts(empty).values()} == {"not testable here"}
    given["arm_accuracy"] = given["arm_accuracy"].filter(pl.col("benchmark") == "test_id")
    given["entropy_validity_rows"] = given["entropy_validity_rows"].filter(pl.col("chain_valid"))
    given["snowball_questions"] = given["snowball_questions"].filter(pl.col("window_start") == 1)
    found = verdicts(given)
    assert "`test_ood`" in found["C2"].reading
    assert "no right answer has a flawed chain" in found["C4"].reading
    assert "two windows" in found["C8"].reading
    assert found["C1"].verdict == "supported"


def test_an_invalid_chain_in_a_bucket_of_its_own_is_not_testable() -> None:
    given = frames()
    alone = pl.when("chain_valid").then(1).otherwise(2).alias("bucket")
    given["entropy_validity_rows"] = given["entropy_validity_rows"].with_columns(alone)
    assert "share a stratum" in verdicts(given)["C4"].reading


def test_the_family_widens_the_interval() -> None:
    """Two claims without effect share alpha: both intervals are at 1 - alpha / 2, and wider."""
    claims, given = load_ledger().claims, frames({"on_policy": 0.4, "exgrpo": 0.4})
    alone = judge(Ledger(alpha=0.05, claims=claims[:1]), given)[0]
    family = judge(Ledger(alpha=0.05, claims=claims[:2]), given)
    assert alone.level == 0.95
    assert [verdict.level for verdict in family] == [0.975, 0.975]
    assert (family[0].low or 0) < (alone.low or 0) < (alone.high or 0) < (family[0].high or 0)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("alpha: 0.05", "alpha: 5"), ["`alpha`", "5"]),
        (("test: entropy_auroc\n", "test: entropy\n"), ["claims.2.test", "'entropy'"]),
        (("    threshold: 0.5\n", "    treshold: 0.5\n"), ["claims.2.treshold", "threshold"]),
        (("id: C2", "id: C1"), ["'C1' is listed twice"]),
        (("alpha: 0.05", "alpha: [0.05"), ["no valid YAML"]),
    ],
)
def test_a_wrong_ledger_is_explained(
    tmp_path: Path, change: tuple[str, str], expected: list[str]
) -> None:
    text = LEDGER.read_text()
    assert change[0] in text
    broken = tmp_path / "claims.yaml"
    broken.write_text(text.replace(change[0], change[1], 1))
    with pytest.raises(UserError) as error:
        load_ledger(broken)
    for part in [str(broken), *expected]:
        assert part in str(error.value)


def test_numbers_are_shown_in_their_unit() -> None:
    assert show(0.052, "points") == "+5.2 points"
    assert show_effect(0.052, "points per 100 steps") == "5.2 points per 100 steps"
    assert show(0.61234, "AUROC") == "0.612"
    verdict = Verdict("C8", "supported", "", 0.02, 0.01, 0.03)
    assert show_interval(verdict, "points per 100 steps") == (
        "+2.0 points per 100 steps [+1.0, +3.0]"
    )
    assert show_interval(Verdict("C1", "not testable here", ""), "points") == ""


def test_pairs_are_matched_by_seed_and_question() -> None:
    """Rows in another order, a seed and a question that only one arm has: the rest is paired."""
    given = accuracy({"a": 0.3, "b": 0.6}, questions=5)
    first = given.filter(~((pl.col("arm") == "a") & (pl.col("seed") == 2))).sample(
        fraction=1, shuffle=True, seed=0
    )
    first = first.filter(~((pl.col("arm") == "b") & (pl.col("question") == "q3")))
    table = paired(accuracy_table(first, "a", "test_id"), accuracy_table(first, "b", "test_id"))
    assert (table.seeds, table.questions) == ([0, 1], ["q0", "q1", "q2", "q4"])
    known = {
        (row["arm"], row["seed"], row["question"]): row["correct"] / 4
        for row in given.filter(pl.col("benchmark") == "test_id").iter_rows(named=True)
    }
    for i, seed in enumerate(table.seeds):
        for j, question in enumerate(table.questions):
            expected = known["a", seed, question] - known["b", seed, question]
            assert table.values[i, j] == pytest.approx(expected)


def test_comparison_of_arms() -> None:
    given = accuracy({"exgrpo": 0.5, "on_policy": 0.4, "base": 0.2}).with_columns(
        seed=pl.when(pl.col("arm") == "base").then(None).otherwise("seed")
    )
    given = given.filter((pl.col("arm") != "base") | pl.col("run").str.ends_with("s0"))
    facts = pl.DataFrame({"arm": ["exgrpo"], "signal_share": [0.5]})
    curves = given.filter((pl.col("benchmark") == "test_id") & (pl.col("arm") != "base"))
    made = compare(given, facts, curves)
    base, reference, exgrpo = made["arms"]
    assert [entry["arm"] for entry in made["arms"]] == ["base", "on_policy", "exgrpo"]
    assert base["seeds"] == [] and base["difference"] == {} and base["training"] is None
    assert base["accuracy"]["test_id"]["seeds"] == 1
    assert reference["difference"] == {}
    difference = exgrpo["difference"]["test_id"]
    assert difference["value"] == pytest.approx(
        exgrpo["accuracy"]["test_id"]["value"] - reference["accuracy"]["test_id"]["value"]
    )
    assert np.mean(difference["by_seed"]) == pytest.approx(difference["value"])
    assert base["accuracy"]["test_id"]["low"] >= 0 and exgrpo["training"] == facts.row(
        0, named=True
    )
    empty = compare(given.clear(), facts, curves.clear())
    assert empty["arms"] == [] and empty["learning_curves"] == {}


def test_learning_curves_carry_bootstrap_intervals_of_the_same_seeds() -> None:
    rows = accuracy({"exgrpo": 0.5, "on_policy": 0.4}, questions=60).filter(
        pl.col("benchmark") == "test_id"
    )
    steps = pl.concat(
        [rows.with_columns(step=pl.lit(step), correct=pl.col("correct") // divide)
         for step, divide in ((0, 4), (10, 2), (20, 1))]
    )  # fmt: skip
    stopped = steps.filter(~((pl.col("step") == 20) & (pl.col("seed") == 2)))
    curves = learning_curves(stopped)
    assert list(curves) == ["on_policy", "exgrpo"]
    assert [point["step"] for point in curves["exgrpo"]] == [0, 10, 20]
    for point in curves["exgrpo"]:
        assert point["seeds"] == 2 and point["questions"] == 60
        assert point["low"] < point["value"] < point["high"]
    last = rows.filter((pl.col("arm") == "exgrpo") & (pl.col("seed") < 2))
    assert curves["exgrpo"][-1]["value"] == pytest.approx((last["correct"] / 4).mean())
    again = estimate(accuracy_table(last, "exgrpo", "test_id"))
    assert again is not None
    assert curves["exgrpo"][-1]["low"] == pytest.approx(again.low, abs=0.01)


def test_claim_needs_what_its_test_needs() -> None:
    claim = load_ledger().claims[0]
    one_arm = Claim.model_validate(claim.model_dump() | {"arms": ["exgrpo"]})
    with pytest.raises(ValueError, match="compares two arms"):
        judge(Ledger(alpha=0.05, claims=[one_arm]), frames())
