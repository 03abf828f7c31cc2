"""Made-up answers of the named queries that claims take, with an effect of a known size in them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from analysis.claims import Claim, Ledger, Verdict, judge, load_ledger

Frames = dict[str, pl.DataFrame]
CLAIMS = {claim.id: claim for claim in load_ledger().claims}

ACCURACY_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "run": pl.String, "step": pl.Int64, "benchmark": pl.String,
    "domain": pl.String, "question": pl.String, "level": pl.Int64, "samples": pl.Int64,
    "correct": pl.Int64, "extracted": pl.Int64, "checked": pl.Int64, "flawed": pl.Int64,
}  # fmt: skip
ENTROPY_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "question": pl.String, "level": pl.Int64,
    "bucket": pl.Int64, "difficulty": pl.String, "window_start": pl.Int64,
    "chain_valid": pl.Boolean, "judge": pl.String, "shortcut": pl.Boolean,
    "mean_entropy": pl.Float64, "nll": pl.Float64, "length": pl.Int64, "one_in": pl.Int64,
}  # fmt: skip
DYNAMICS_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "step": pl.Int64, "buffer_questions": pl.Int64,
    "retired_questions": pl.Int64, "train_questions": pl.Int64, "entropy": pl.Float64,
}  # fmt: skip
RUNS_SCHEMA = {"arm": pl.String, "seed": pl.Int64, "steps": pl.Int64, "seconds": pl.Float64}
BUDGET_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "step": pl.Int64, "fresh_questions": pl.Int64,
    "sampled_tokens": pl.Int64, "seconds": pl.Float64,
}  # fmt: skip
LATER_SCHEMA = {
    "arm": pl.String, "retired": pl.Boolean, "visits": pl.Int64, "weight": pl.Float64,
    "lost": pl.Float64,
}  # fmt: skip
UPDATES_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "updated_groups": pl.Float64, "replay_rule": pl.String,
    "replay_from": pl.Int64,
}  # fmt: skip
PHASES_SCHEMA = {
    "arm": pl.String, "seed": pl.Int64, "rollout_seconds": pl.Float64,
    "select_seconds": pl.Float64, "update_seconds": pl.Float64, "buffer_bytes": pl.Int64,
}  # fmt: skip
LENGTH_SCHEMA = {"arm": pl.String, "trajectories": pl.Int64, "length": pl.Float64}


def verdict(name: str, frames: Frames) -> Verdict:
    """The claim alone, a family of one."""
    (found,) = judge(Ledger(alpha=0.05, claims=[CLAIMS[name]]), frames)
    return found


def accuracy(means: Mapping[str, float], seeds: int = 3, questions: int = 100) -> pl.DataFrame:
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
            "domain": "out" if benchmark == "test_ood" else "in",
            "question": f"q{question}",
            "level": 1,
            "samples": 4,
            "correct": int(rng.binomial(4, np.clip(mean + shift[question], 0, 1))),
            "extracted": 4,
        }
        for arm, mean in means.items()
        for seed in range(seeds)
        for benchmark in ("test_id", "test_ood")
        for question in range(questions)
    ]
    return pl.DataFrame(rows, schema=ACCURACY_SCHEMA)


def base_rows(rows: pl.DataFrame, right: float) -> pl.DataFrame:
    """The base model's rows beside those given: no seed, a share `right` of the questions right."""
    one = rows.filter((pl.col("arm") == rows["arm"][0]) & (pl.col("seed") == 0))
    at = pl.int_range(pl.len()).over("benchmark")
    base = one.with_columns(
        arm=pl.lit("base"),
        seed=pl.lit(None, pl.Int64),
        step=pl.lit(0, pl.Int64),
        correct=pl.when(at < right * one.height / 2).then(4).otherwise(0).cast(pl.Int64),
    )
    return pl.concat([base, rows])


def entropies(
    flawed: float = 0.0,
    shortcut: float = 0.0,
    easy: float = 0.0,
    hard: float = 0.0,
    seeds: int = 3,
    draw: int = 1,
) -> pl.DataFrame:
    """Rows as `entropy_validity_rows` gives them; each kind lies so much above the others.

    Every `draw` has the same answers, flaws and all, with other errors in their entropy.
    """
    rng, errors = np.random.default_rng(1), np.random.default_rng([1, draw])
    raised = {"easy": easy, "hard": hard, "medium": 0.0}
    rows = []
    for at in range(900):
        valid, short = bool(rng.random() < 0.7), bool(rng.random() < 0.3)
        difficulty = ("easy", "medium", "hard")[at // seeds % 3]
        entropy = errors.normal(0.5, 0.1) + flawed * (not valid) + shortcut * short
        entropy += raised[difficulty]
        rows.append(
            {
                "arm": "on_policy",
                "seed": at % seeds,
                "question": f"q{at % 100}",
                "level": 1 + at % 8,
                "bucket": 1 + at // seeds % 3,
                "difficulty": difficulty,
                "window_start": 1 + at % 2 * 10,
                "chain_valid": valid,
                "judge": "exact",
                "shortcut": short,
                "mean_entropy": entropy,
                "nll": entropy + errors.normal(0, 0.3),
                "length": 10,
                "one_in": 1,
            }
        )
    return pl.DataFrame(rows, schema=ENTROPY_SCHEMA)


def dynamics(
    arms: Iterable[str],
    entropy: Mapping[str, float] | None = None,
    buffered: int = 50,
    retired: int = 50,
    seeds: int = 3,
) -> pl.DataFrame:
    """Rows as `buffer_dynamics` gives them: 20 steps, 200 questions; counts at the last step."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "arm": arm,
            "seed": seed,
            "step": step,
            "buffer_questions": buffered + seed if step == 20 else 1,
            "retired_questions": retired - seed if step == 20 else 1,
            "train_questions": 200,
            "entropy": (entropy or {}).get(arm, 0.5) + rng.normal(0, 0.02),
        }
        for arm in arms
        for seed in range(seeds)
        for step in range(1, 21)
    ]
    return pl.DataFrame(rows, schema=DYNAMICS_SCHEMA)


def validation(gain: float, seeds: int = 3) -> Frames:
    """Two arms that cost the same and of which the first learns more, along three steps."""
    rows: list[dict[str, Any]] = []
    budgets = []
    answers = accuracy({"exgrpo": 0.5 + gain, "on_policy": 0.5}, seeds)
    for arm in ("exgrpo", "on_policy"):
        part = answers.filter(pl.col("benchmark") == "test_id", pl.col("arm") == arm)
        for step in (0, 10, 20):
            rows += part.with_columns(step=pl.lit(step, pl.Int64)).to_dicts()
            budgets += [
                {"arm": arm, "seed": seed, "step": step, "seconds": 2.0 * step}
                | {"fresh_questions": 8 * step, "sampled_tokens": 900 * step}
                for seed in range(seeds)
            ]
    return {
        "validation_accuracy": pl.DataFrame(rows, schema=ACCURACY_SCHEMA),
        "validation_budgets": pl.DataFrame(budgets, schema=BUDGET_SCHEMA),
    }


def runs(ratio: float, seeds: int = 3) -> pl.DataFrame:
    """Rows as `study_runs` gives them: a step of the first arm takes `ratio` as long."""
    rng = np.random.default_rng(4)
    rows = [
        {"arm": arm, "seed": seed, "steps": 100, "seconds": 50 * factor * rng.uniform(0.98, 1.02)}
        for arm, factor in (("exgrpo", ratio), ("on_policy", 1.0))
        for seed in range(seeds)
    ]
    return pl.DataFrame(rows, schema=RUNS_SCHEMA)


def phases(arms: Iterable[str]) -> pl.DataFrame:
    """Rows as `step_phases` gives them; the second arm has no buffer."""
    rows = [
        (arm, seed, 1.0 + seed, 0.1, 0.5, None if at else 2_000_000)
        for at, arm in enumerate(arms)
        for seed in range(3)
    ]
    return pl.DataFrame(rows, schema=PHASES_SCHEMA, orient="row")


def later(arms: Iterable[str]) -> pl.DataFrame:
    """Rows as `retired_later` gives them: 3 of 40 later visits lost, half of the others'."""
    visits = ((True, 30, 30, 2), (True, 10, 10, 1), (False, 400, 40, 20))
    rows = [(arm, *rest) for arm in arms for rest in visits]
    return pl.DataFrame(rows, schema=LATER_SCHEMA, orient="row")


def updates(
    rules: Mapping[str, str | None], begun: Iterable[int | None] = (40, 40, 40)
) -> pl.DataFrame:
    """Rows as `run_updates` gives them: arms by their rule, and where each seed's replay began."""
    rows = [
        (arm, seed, 2.5, rule, None if rule == "never" else step)
        for arm, rule in rules.items()
        for seed, step in enumerate(begun)
    ]
    return pl.DataFrame(rows, schema=UPDATES_SCHEMA, orient="row")


def beside(arms: Iterable[str]) -> Frames:
    """The answers that notes of accuracy take."""
    arms = list(arms)
    courses = [
        accuracy({arm: 0.4 + 0.1 * (step > 0)}).with_columns(step=pl.lit(step, pl.Int64))
        for arm in arms
        for step in (0, 20)
    ]
    lengths = [(arm, n, length) for arm in arms for n, length in ((30, 10.0), (10, 30.0))]
    return {
        "retired_later": later(arms),
        "run_updates": updates(dict.fromkeys(arms, "0.35")),
        "buffer_dynamics": dynamics(arms),
        "length_truncation": pl.DataFrame(lengths, schema=LENGTH_SCHEMA, orient="row"),
        "validation_accuracy": pl.concat([accuracy({}), *courses]).filter(
            pl.col("benchmark") == "test_id"
        ),
    }


def planted(claim: Claim, sign: int) -> Frames:
    """Answers in which the claim is true (1), its opposite is (-1), or neither (0)."""
    test, arms = claim.test, claim.arms
    if claim.query == "arm_accuracy":
        gap = 0.2 * sign
        rows = accuracy({arms[0]: 0.5 + gap, arms[1]: 0.5})
        return {"arm_accuracy": base_rows(rows, 0.05)} | beside(arms)
    if test == "accuracy_at_equal_cost":
        return validation(0.2 * sign)
    if test == "entropy_auroc_over_nll":
        rows, other = entropies(flawed=0.2), entropies(flawed=0.2, draw=2)
        if sign == 0:  # as good as each other, for the errors alone differ
            return {claim.query: rows.with_columns(nll=other["mean_entropy"])}
        # The other way: the log-probability tells them apart and the entropy, its noisy copy, less.
        swapped = {"mean_entropy": "nll", "nll": "mean_entropy"}
        return {claim.query: rows.rename(swapped) if sign < 0 else rows}
    if claim.unit == "AUROC":
        kind = "shortcut" if test == "shortcut_auroc" else None
        kind = "flawed" if test.startswith("entropy_auroc") else kind
        return {claim.query: entropies(**{kind or claim.given["difficulty"]: 0.15 * sign})}
    if test == "late_entropy_difference":
        return {claim.query: dynamics(arms, {arms[0]: 0.5 + 0.3 * sign})}
    if test == "collected_share":
        rows = dynamics(arms, buffered=0, retired=100 + 60 * sign)
        return {claim.query: rows.with_columns(buffer_questions=0)}  # seeds then differ
    if test == "retired_over_buffered":
        return {claim.query: dynamics(arms, buffered=50 - 40 * sign, retired=50 + 40 * sign)}
    assert test == "step_time_ratio"
    return {claim.query: runs(1 + 0.5 * sign), "step_phases": phases(arms)}
