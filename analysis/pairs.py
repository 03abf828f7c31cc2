"""Two sides on the same questions: which runs are paired, what each got right, what flipped.

A side is an arm with all its runs, or one run. Both are asked at a checkpoint, on a benchmark, or
in a window of training steps, on the fresh rollouts. Side A is what B is compared with: every
difference is B minus A. All numbers are over the questions that every pair of runs answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import duckdb
import polars as pl

from analysis.comparison import AccuracyTable, Estimate, estimate
from analysis.queries import answer

Flip = Literal["right_wrong", "wrong_right", "right_right", "wrong_wrong"]
FLIPS: tuple[Flip, ...] = get_args(Flip)

HALF = 0.5  # a question counts as right on a side where more of its answers are right
NOISE = 1e-9  # differences of means below it are none


@dataclass(frozen=True)
class Side:
    """The runs of an arm, or one of them.

    `step`: the checkpoint, None each run's last. `first`, `last`: the window of training steps,
    both included, None without an end. Only one of the two counts.
    """

    arm: str
    run: str | None = None
    step: int | None = None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class Pair:
    """A run of side A and the run of side B that it is compared with; their seed, if it is one."""

    seed: int | None
    run_a: str
    run_b: str


@dataclass(frozen=True)
class Comparison:
    """Side B against side A.

    `questions`: one row a question that every pair answered: question, level, correct_a, graded_a,
    correct_b, graded_b (samples of all paired runs), accuracy_a, accuracy_b (means over the pairs),
    difference, flip. `difference` is None without such a question; its seeds are the pairs, or
    where these are crossed one, their mean: then its interval is over questions alone.
    `only_a`, `only_b`: questions that only one side has graded answers to; `partly`: that some
    pairs answered, but not all. `alone_a`, `alone_b`: runs that are in no pair. `steps_a`,
    `steps_b`: the checkpoints of the paired runs; empty for training.
    """

    pairs: list[Pair]
    questions: pl.DataFrame
    difference: Estimate | None
    only_a: int
    only_b: int
    partly: int
    alone_a: list[str]
    alone_b: list[str]
    steps_a: list[int]
    steps_b: list[int]

    @property
    def signs(self) -> tuple[int, int, int]:
        """Questions on which B does better, worse, the same."""
        difference = self.questions["difference"]
        better, worse = int((difference > NOISE).sum()), int((difference < -NOISE).sum())
        return better, worse, difference.len() - better - worse

    @property
    def crossed(self) -> bool:
        """Runs of both sides are in several pairs, which are then no sample of pairs."""
        return crossed(self.pairs)

    def counts(self) -> dict[Flip, int]:
        """Questions by flip: their sum is the number of questions."""
        return {flip: int((self.questions["flip"] == flip).sum()) for flip in FLIPS}


def compare_sides(
    connection: duckdb.DuckDBPyConnection, study: str, benchmark: str | None, a: Side, b: Side
) -> Comparison:
    """Side B against side A on a benchmark; on training questions if `benchmark` is None.

    Raises UserError as `answer` does.
    """
    return compared(_rows(connection, study, benchmark, a), _rows(connection, study, benchmark, b))


def compared(a: pl.DataFrame, b: pl.DataFrame) -> Comparison:
    """Side B against side A, each as rows of `compare_answers` or `compare_rollouts`."""
    pairs = run_pairs(_runs(a), _runs(b))
    in_a, in_b = {pair.run_a for pair in pairs}, {pair.run_b for pair in pairs}
    alone_a, alone_b = sorted(set(a["run"]) - in_a), sorted(set(b["run"]) - in_b)
    a, b = a.filter(pl.col("run").is_in(in_a)), b.filter(pl.col("run").is_in(in_b))
    cells = paired_cells(a, b, pairs)
    answered = cells.group_by("question").len().filter(pl.col("len") == len(pairs))
    whole = cells.filter(pl.col("question").is_in(answered["question"].implode()))
    left, right = (set(rows.filter(pl.col("graded") > 0)["question"]) for rows in (a, b))
    return Comparison(
        pairs,
        question_rows(whole, a, b),
        estimate(_resampled(difference_table(whole, pairs), pairs), least=-1.0),
        len(left - right),
        len(right - left),
        len(left & right) - answered.height,
        alone_a,
        alone_b,
        _steps(a),
        _steps(b),
    )


def run_pairs(a: Mapping[str, int | None], b: Mapping[str, int | None]) -> list[Pair]:
    """Runs of one seed; a run without one, like the base model, with every run of the other side.

    a, b: seed by run. Where each side has one run, they are the pair, whatever their seeds.
    """
    single = len(a) == len(b) == 1
    pairs = [
        Pair(_one(seed, other), run, against)
        for run, seed in a.items()
        for against, other in b.items()
        if single or seed is None or other is None or seed == other
    ]
    return sorted(pairs, key=lambda pair: (pair.seed or 0, pair.run_a, pair.run_b))


def crossed(pairs: list[Pair]) -> bool:
    """Runs of both sides are in several pairs: runs without a seed on one side, many on the other.

    One run against many is not crossed: each of the many is in one pair.
    """
    sides = {pair.run_a for pair in pairs}, {pair.run_b for pair in pairs}
    return len(pairs) > max(map(len, sides))


def _resampled(table: AccuracyTable, pairs: list[Pair]) -> AccuracyTable:
    """The table as it is resampled: crossed pairs share their runs, so only their mean is."""
    if not pairs or not crossed(pairs):
        return table
    return AccuracyTable(table.values.mean(axis=0, keepdims=True), [None], table.questions)


def _one(seed: int | None, other: int | None) -> int | None:
    if seed is None or other is None:
        return other if seed is None else seed
    return seed if seed == other else None


def paired_cells(a: pl.DataFrame, b: pl.DataFrame, pairs: list[Pair]) -> pl.DataFrame:
    """One row a pair and question that both runs have a graded answer to, with both accuracies."""
    schema = {"pair": pl.Int64, "run_a": pl.String, "run_b": pl.String}
    members = [(place, pair.run_a, pair.run_b) for place, pair in enumerate(pairs)]
    cells = pl.DataFrame(members, schema, orient="row")
    for side, rows in (("a", a), ("b", b)):
        accuracy = (pl.col("correct") / pl.col("graded")).alias(f"accuracy_{side}")
        shares = rows.filter(pl.col("graded") > 0).select(
            pl.col("run").alias(f"run_{side}"), "question", accuracy
        )
        cells = cells.join(shares, on=[f"run_{side}", *(["question"] if side == "b" else [])])
    return cells.sort("pair", "question")


def difference_table(whole: pl.DataFrame, pairs: list[Pair]) -> AccuracyTable:
    """B - A by pair and question, from `paired_cells` of questions that every pair answered."""
    questions = whole["question"].unique().sort().to_list()
    values = (whole["accuracy_b"] - whole["accuracy_a"]).to_numpy()
    shape = (len(pairs), len(questions))
    return AccuracyTable(values.reshape(shape), [pair.seed for pair in pairs], questions)


def question_rows(whole: pl.DataFrame, a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """One row a question, as `Comparison.questions` holds them, by question."""
    means = whole.group_by("question").agg(
        pl.mean("accuracy_a"),
        pl.mean("accuracy_b"),
        (pl.col("accuracy_b") - pl.col("accuracy_a")).mean().alias("difference"),
    )
    for side, rows in (("a", a), ("b", b)):
        totals = rows.group_by("question").agg(
            pl.max("level").alias(f"level_{side}"),
            pl.sum("correct").alias(f"correct_{side}"),
            pl.sum("graded").alias(f"graded_{side}"),
        )
        means = means.join(totals, on="question")
    right_a, right_b = (
        pl.when(pl.col(f"accuracy_{side}") > HALF + NOISE)
        .then(pl.lit("right"))
        .otherwise(pl.lit("wrong"))
        for side in "ab"
    )
    return means.select(
        "question",
        pl.coalesce("level_a", "level_b").alias("level"),
        *(f"{what}_{side}" for side in "ab" for what in ("correct", "graded")),
        "accuracy_a",
        "accuracy_b",
        "difference",
        pl.concat_str(right_a, right_b, separator="_").alias("flip"),
    ).sort("question")


def _rows(
    connection: duckdb.DuckDBPyConnection, study: str, benchmark: str | None, side: Side
) -> pl.DataFrame:
    runs = answer(connection, "study_runs", study=study).filter(pl.col("arm") == side.arm)["run"]
    scope = {"study": study, "run": [run for run in runs if side.run in (None, run)]}
    if benchmark is not None:
        return answer(connection, "compare_answers", benchmark=benchmark, step=side.step, **scope)
    window = {"step_min": side.first, "step_max": side.last}
    return answer(connection, "compare_rollouts", **window, **scope)


def _runs(rows: pl.DataFrame) -> dict[str, int | None]:
    return dict(rows.select("run", "seed").unique().sort("run").iter_rows())


def _steps(rows: pl.DataFrame) -> list[int]:
    return rows["step"].unique().sort().to_list() if "step" in rows.columns else []
