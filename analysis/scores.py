"""What each arm scores on each benchmark: avg@k, pass@k, maj@k, and what answers are like."""

from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from analysis.comparison import CURVE_REPLICATES, estimate, table_of
from analysis.statistics import Floats, maj_at_k, pass_at_k

QUESTION = ("run", "benchmark", "question")


def benchmark_scores(
    averages: dict[str, dict[str, dict[str, Any] | None]],
    accuracy: pl.DataFrame,
    votes: pl.DataFrame,
    runs: pl.DataFrame,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Scores by arm and benchmark, ready for JSON.

    averages: accuracy by arm and benchmark, as `analysis.comparison.compare` has it; accuracy,
    votes, runs: rows of `arm_accuracy`, `answer_votes` and `benchmark_scores` for one study. k is
    the least number of graded samples that a question of the benchmark has anywhere; avg@k is over
    all samples, pass@k and maj@k over draws of k. All are over the questions that every seed of the
    arm answered; intervals are over questions and seeds, as everywhere. `by_k` has pass@k and
    maj@k, without intervals, for k = 1, 2, 4, ...
    """
    graded = accuracy.filter(pl.col("samples") > 0).join(
        _ballots(votes), on=QUESTION, maintain_order="left"
    )
    made: dict[str, dict[str, dict[str, Any]]] = {}
    for (benchmark,), rows in graded.group_by("benchmark", maintain_order=True):
        k = int(rows["samples"].to_numpy().min())
        for (arm,), own in rows.group_by("arm", maintain_order=True):
            of_runs = runs.filter((pl.col("arm") == arm) & (pl.col("benchmark") == benchmark))
            average = averages[str(arm)].get(str(benchmark))
            made.setdefault(str(arm), {})[str(benchmark)] = {
                "k": k,
                "questions": average["questions"] if average else 0,
                "avg_at_k": average,
                **_of_draws(own, average, k),
                **_of_answers(of_runs),
            }
    return made


def _ballots(votes: pl.DataFrame) -> pl.DataFrame:
    """One row a run and question: how often each right and wrong answer was given, and none."""
    answer, right = pl.col("answer").is_not_null(), pl.col("correct")
    return votes.group_by(QUESTION).agg(
        pl.col("votes").filter(answer & right).sort().alias("right_votes"),
        pl.col("votes").filter(answer & ~right).sort().alias("wrong_votes"),
        pl.col("votes").filter(~answer).sum().alias("silent"),
    )


def _of_draws(rows: pl.DataFrame, average: dict[str, Any] | None, k: int) -> dict[str, Any]:
    """What several samples together are worth; rows: those of an arm and benchmark, graded."""
    if average is None:  # some seed lacks every question
        return {"pass_at_k": None, "maj_at_k": None, "by_k": []}
    rows = rows.filter(pl.col("seed").n_unique().over("question") == rows["seed"].n_unique())
    counts = rows["correct"].to_numpy(), rows["samples"].to_numpy()
    ballots = rows.select("right_votes", "wrong_votes", "silent").rows()
    curves = [_majority(tuple(right), tuple(wrong), silent) for right, wrong, silent in ballots]

    def passed(draws: int) -> Floats:
        return pass_at_k(*counts, draws)

    def elected(draws: int) -> Floats:
        return np.array([curve[draws - 1] for curve in curves])

    def estimated(values: Floats) -> dict[str, Any] | None:
        if k == 1:
            return average  # the same by definition
        made = estimate(table_of(rows, values), replicates=CURVE_REPLICATES)
        return None if made is None else asdict(made)

    return {
        "pass_at_k": estimated(passed(k)),
        "maj_at_k": estimated(elected(k)),
        "by_k": [
            {
                "k": draws,
                "pass_at_k": float(passed(draws).mean()),
                "maj_at_k": float(elected(draws).mean()),
            }
            for draws in sorted({k, *(2**power for power in range(k.bit_length()))})
        ],
    }


@cache
def _majority(right: tuple[int, ...], wrong: tuple[int, ...], silent: int) -> Floats:
    return maj_at_k(right, wrong, silent)


def _of_answers(runs: pl.DataFrame) -> dict[str, float | None]:
    """Shares of the graded samples of all runs, their mean length in tokens, and the ungraded."""
    samples = pl.col("samples")

    def known(column: str) -> pl.Expr:
        """The mean over the samples of the runs that know it; null where none does."""
        of = samples.filter(pl.col(column).is_not_null()).sum()
        return pl.when(of > 0).then((pl.col(column) * samples).sum() / of)

    answered = (pl.col("answered") * samples).sum()
    right = (pl.col("accuracy_answered") * pl.col("answered") * samples).sum()
    totals = runs.select(
        answered=answered / samples.sum(),
        accuracy_answered=pl.when(answered > 0).then(right / answered),
        truncated=known("truncated"),
        tokens=known("tokens"),
        ungraded=pl.col("ungraded").sum(),
    )
    return totals.row(0, named=True)
