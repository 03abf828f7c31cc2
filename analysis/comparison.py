"""Arms against each other: accuracy with its interval, at the end and over training."""

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from analysis.arms import BASE, REFERENCE, arm_order
from analysis.domains import DOMAINS, Domain, balanced
from analysis.statistics import REPLICATES, Bootstrap, Floats, avg_at_k, bootstrap_mean

LEVEL = 0.95
CURVE_REPLICATES = 2_000  # a step of a learning curve; drawn, not printed


@dataclass(frozen=True)
class AccuracyTable:
    """values [S, Q]: accuracy (avg@k) by seed and question; NaN where a question has no sample.

    benchmarks: that of each question; none where all are of one.
    """

    values: Floats
    seeds: list[int | None]
    questions: list[str]
    benchmarks: list[str] = field(default_factory=list)

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Benchmark and question of each column: a question may be asked in several."""
        return list(zip(self.benchmarks or [""] * len(self.questions), self.questions, strict=True))

    @property
    def tests(self) -> set[str]:
        """The benchmarks, each once."""
        return {benchmark for benchmark, _ in self.keys}

    def complete(self) -> "AccuracyTable":
        """Without the questions that lack a value in some seed."""
        whole = np.asarray(~np.isnan(self.values).any(axis=0))
        keys = [key for key, kept in zip(self.keys, whole.tolist(), strict=True) if kept]
        return _of_keys(self.values[:, whole], self.seeds, keys)


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval; by_seed holds the mean of each seed, in seed order."""

    value: float
    low: float
    high: float
    level: float
    se: float
    seeds: int
    questions: int
    by_seed: list[float]


def accuracy_table(frame: pl.DataFrame, arm: str, benchmark: str) -> AccuracyTable:
    """The accuracy of one arm from the rows of query `arm_accuracy`; empty if there are none."""
    return _table(frame.filter((pl.col("arm") == arm) & (pl.col("benchmark") == benchmark)))


def domain_table(frame: pl.DataFrame, arm: str, domain: Domain) -> AccuracyTable:
    """The same over all benchmarks of a domain; see `analysis.domains` for their mean."""
    return _table(frame.filter((pl.col("arm") == arm) & (pl.col("domain") == domain)))


def _table(rows: pl.DataFrame) -> AccuracyTable:
    """Rows of one arm, one a seed, benchmark (if they tell it) and question, as a table."""
    if "benchmark" not in rows.columns:
        rows = rows.with_columns(benchmark=pl.lit(""))
    values = avg_at_k(rows["correct"].to_numpy(), rows["samples"].to_numpy())
    return table_of(rows, values)


def table_of(rows: pl.DataFrame, values: Floats) -> AccuracyTable:
    """values: one a row, which has its seed, benchmark and question."""
    seeds = rows["seed"].unique().sort().to_list()
    keys = rows.select("benchmark", "question").unique().sort("benchmark", "question").rows()
    table = np.full((len(seeds), len(keys)), np.nan)
    seed_at = {seed: place for place, seed in enumerate(seeds)}
    key_at = {key: place for place, key in enumerate(keys)}
    table[
        [seed_at[seed] for seed in rows["seed"]],
        [key_at[key] for key in rows.select("benchmark", "question").iter_rows()],
    ] = values
    return _of_keys(table, seeds, keys)


def _of_keys(values: Floats, seeds: list[int | None], keys: list[tuple[str, str]]) -> AccuracyTable:
    return AccuracyTable(
        values, seeds, [question for _, question in keys], [benchmark for benchmark, _ in keys]
    )


def paired(first: AccuracyTable, second: AccuracyTable) -> AccuracyTable:
    """first - second over the seeds and questions that both have."""
    seeds = [seed for seed in first.seeds if seed in second.seeds]
    keys = sorted(set(first.keys) & set(second.keys))

    def part(table: AccuracyTable) -> Floats:
        rows = [table.seeds.index(seed) for seed in seeds]
        place = {key: at for at, key in enumerate(table.keys)}
        return table.values[np.ix_(rows, [place[key] for key in keys])]

    return _of_keys(part(first) - part(second), seeds, keys)


def mean_of(
    table: AccuracyTable, replicates: int = REPLICATES, benchmarks: Collection[str] = ()
) -> Bootstrap | None:
    """Mean over seeds and the questions that all of them have; None where there is none.

    Of a table of several benchmarks the mean over them, each of which weighs the same. None, too,
    unless it is over all of `benchmarks`, or those of the table: a mean over fewer would be of
    something else.
    """
    complete = table.complete()
    if complete.tests != (set(benchmarks) or table.tests):
        return None
    try:
        return bootstrap_mean(balanced(complete.values, complete.benchmarks), replicates)
    except ValueError:
        return None


def estimate(
    table: AccuracyTable,
    least: float = 0.0,
    level: float = LEVEL,
    replicates: int = REPLICATES,
    benchmarks: Collection[str] = (),
) -> Estimate | None:
    """The mean of `mean_of`, its interval cut to `least` .. 1.

    Of shares (`least` 0) that are all 0 or all 1 the bound that is not reached is exact: see
    `_where_all_agree`.
    """
    made = mean_of(table, replicates, benchmarks)
    if made is None:
        return None
    low, high = (min(max(bound, least), 1.0) for bound in made.interval(level))
    if least == 0.0 and (exact := _where_all_agree(table.complete(), level)):
        low, high = exact
    by_seed = made.by_seed.tolist()
    return Estimate(made.value, low, high, level, made.se, made.seeds, made.questions, by_seed)


def _where_all_agree(table: AccuracyTable, level: float) -> tuple[float, float] | None:
    """The exact interval (Clopper and Pearson 1934) where all values are 0, or all are 1.

    A bootstrap of equal values has no width. Draws are questions, not samples, and of several
    benchmarks as many each as the smallest has: wider than need be rather than too narrow.
    """
    all_0, all_1 = (np.allclose(table.values, share) for share in (0, 1))  # maj@k is a sum
    if not (all_0 or all_1):
        return None
    sizes = Counter(benchmark for benchmark, _ in table.keys)
    rare = (1 - level) / 2  # on each side, as everywhere
    least = rare ** (1 / (len(sizes) * min(sizes.values())))
    return (0.0, 1 - least) if all_0 else (least, 1.0)


def learning_curves(validation: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Validation accuracy of every arm at each measured step, with its interval.

    validation: rows of `validation_accuracy`. Only seeds that reached the last step of their arm
    count, so that every point of a curve is over the same seeds.
    """
    curves: dict[str, list[dict[str, Any]]] = {}
    for arm in arm_order(validation["arm"].to_list()):
        rows = validation.filter(pl.col("arm") == arm)
        whole = rows.filter(pl.col("step") == rows["step"].max())["seed"].unique()
        curves[arm] = [
            {"step": step} | asdict(made)
            for (step,), part in rows.filter(pl.col("seed").is_in(whole.to_list()))
            .sort("step")
            .group_by("step", maintain_order=True)
            if (made := estimate(_table(part), replicates=CURVE_REPLICATES))
        ]
    return curves


def compare(
    accuracy: pl.DataFrame, summary: pl.DataFrame, validation: pl.DataFrame
) -> dict[str, Any]:
    """Every arm's accuracy and its difference to the reference arm, ready for JSON.

    accuracy: rows of `arm_accuracy`; summary: rows of `arm_summary`; validation: rows of
    `validation_accuracy`, for the learning curves. `accuracy` and `difference` of an arm are by
    benchmark, those of its `domains` over all benchmarks of one (see `analysis.domains`).
    """
    arms = arm_order(accuracy["arm"].to_list())
    benchmarks = sorted(accuracy["benchmark"].unique())
    facts = {row["arm"]: row for row in summary.iter_rows(named=True)}
    tables = {
        (arm, benchmark): accuracy_table(accuracy, arm, benchmark)
        for arm in arms
        for benchmark in benchmarks
    }
    by_domain = benchmarks_by_domain(accuracy)
    found: dict[str, dict[str, dict[str, Any]]] = {
        arm: {
            "accuracy": {b: _json(estimate(tables[arm, b])) for b in benchmarks},
            "difference": {
                b: _json(estimate(paired(tables[arm, b], tables[REFERENCE, b]), least=-1.0))
                for b in benchmarks
                if REFERENCE in arms and arm not in (BASE, REFERENCE)
            },
        }
        for arm in arms
    }
    return {
        "reference": REFERENCE,
        "level": LEVEL,
        "benchmarks": benchmarks,
        "domains": by_domain,
        "learning_curves": learning_curves(validation),
        "arms": [
            {
                "arm": arm,
                "seeds": _seeds(accuracy, arm),
                **found[arm],
                "domains": {
                    name: _of_domain(accuracy, arm, name, by_domain[name], found[arm])
                    for name in DOMAINS
                    if by_domain[name]
                },
                "answered": {
                    b: _ratio(accuracy, arm, b, "extracted", "samples") for b in benchmarks
                },
                "flawed": {b: _ratio(accuracy, arm, b, "flawed", "checked") for b in benchmarks},
                "training": facts.get(arm),
            }
            for arm in arms
        ],
    }


def benchmarks_by_domain(accuracy: pl.DataFrame) -> dict[Domain, list[str]]:
    """The benchmarks in and out of distribution that any arm was tested on."""
    return {
        name: sorted(accuracy.filter(pl.col("domain") == name)["benchmark"].unique())
        for name in DOMAINS
    }


def _of_domain(
    accuracy: pl.DataFrame,
    arm: str,
    domain: Domain,
    benchmarks: list[str],
    found: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """Accuracy and difference over the benchmarks of a domain; found: those of each benchmark."""
    if len(benchmarks) == 1:
        return {name: values.get(benchmarks[0]) for name, values in found.items()}
    own = domain_table(accuracy, arm, domain)
    made = {"accuracy": _json(estimate(own, benchmarks=benchmarks)), "difference": None}
    if found["difference"]:
        pairs = paired(own, domain_table(accuracy, REFERENCE, domain))
        made["difference"] = _json(estimate(pairs, least=-1.0, benchmarks=benchmarks))
    return made


def _seeds(accuracy: pl.DataFrame, arm: str) -> list[int]:
    seeds = accuracy.filter(pl.col("arm") == arm)["seed"]
    return seeds.drop_nulls().unique().sort().to_list()


def _ratio(accuracy: pl.DataFrame, arm: str, benchmark: str, part: str, whole: str) -> float | None:
    rows = accuracy.filter((pl.col("arm") == arm) & (pl.col("benchmark") == benchmark))
    total = int(rows[whole].sum())
    return int(rows[part].sum()) / total if total else None


def _json(made: Estimate | None) -> dict[str, Any] | None:
    return None if made is None else asdict(made)
