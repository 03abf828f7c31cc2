"""Do the intervals hold what they say? Coverage, false alarms and power in made-up studies.

    python benchmarks/intervals.py [--worlds 1000]

Nothing is tuned by what it prints: it prints, and judges nothing. The grid is that of
`made_up_studies.World`; seeds are fixed. Where rliable can be imported, its interquartile mean is
computed beside ours.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
from made_up_studies import World, studies

from analysis.statistics import Bootstrap, Spread, bootstrap_iqm, holm_levels

SEEDS, QUESTIONS = (3, 4, 5), (100, 200)
SEED_SDS, QUESTION_SDS = (0.0, 0.02, 0.05, 0.15), (0.0, 0.1, 0.3)
FAMILY = 8  # claims judged together
RATE = 0.05
# Ranking all rows of a study takes longer than a mean, so there are fewer such studies.
SHARE_OF_WORLDS = {"difference": 1.0, "trend": 0.5, "AUROC": 0.25}
POWERS = (0.5, 0.8)
FORECASTS = 50  # studies whose own forecast of power is looked at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=1000, help="studies of a cell of the grid")
    worlds = parser.parse_args().worlds
    started = time.perf_counter()
    families: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for kind, share in SHARE_OF_WORLDS.items():
        print_coverage(kind, int(worlds * share), families)
    print_families(families)
    print_power(worlds)
    print_rliable()
    print(f"\n{time.perf_counter() - started:.0f} s")


def grid(kind: str) -> Iterator[tuple[int, int]]:
    """Seeds and questions of the rows of a table."""
    yield from product(SEEDS, QUESTIONS if kind == "difference" else QUESTIONS[:1])


def print_coverage(kind: str, worlds: int, families: dict[tuple[str, int], list[bool]]) -> None:
    """How often intervals hold the truth where there is no effect, and the family's alarms."""
    columns = list(product(SEED_SDS, QUESTION_SDS))
    print(f"\n{kind}: of {worlds} studies a cell, % whose 95 % interval holds 0")
    print("(in brackets the percentile interval); columns: deviation of seeds / of questions\n")
    print("| S | Q | " + " | ".join(f"{a:g}/{b:g}" for a, b in columns) + " |")
    print("|" + "---|" * (len(columns) + 2))
    for seeds, questions in grid(kind):
        cells = []
        for seed_sd, question_sd in columns:
            made = studies(kind, World(seeds, questions, seed_sd, question_sd), worlds)
            p = [each.p_value() for each in made]
            held = np.mean(
                [low <= 0 <= high for low, high in (each.percentiles() for each in made)]
            )
            cells.append(f"{100 * np.mean(np.array(p) > RATE):.1f} ({100 * held:.0f})")
            families[kind, seeds] += [
                alarm(p[at : at + FAMILY]) for at in range(0, worlds - FAMILY + 1, FAMILY)
            ]
        print(f"| {seeds} | {questions} | " + " | ".join(cells) + " |", flush=True)


def alarm(p_values: list[float]) -> bool:
    """Whether Holm rejects any claim of a family."""
    return any(p <= rate for p, rate in zip(p_values, holm_levels(p_values), strict=True))


def print_families(families: dict[tuple[str, int], list[bool]]) -> None:
    print(f"\nfamilies of {FAMILY} claims without an effect, judged by Holm at 5 %\n")
    print("| statistic | S | families | with a false alarm, % |\n|---|---|---|---|")
    for (kind, seeds), alarms in families.items():
        print(f"| {kind} | {seeds} | {len(alarms)} | {100 * np.mean(alarms):.1f} |")


def print_power(worlds: int) -> None:
    """Planted effects of the size that should be found half or four fifths of the time."""
    print("\npower at 5 %: predicted at the true variance, found, and what one study forecasts\n")
    print("| statistic | S | Q | seeds/questions | effect | predicted | found | forecast |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, seeds, seed_sd in product(SHARE_OF_WORLDS, (3, 5), (0.0, 0.05, 0.15)):
        if kind == "AUROC" and seed_sd > 0.1:
            continue  # 3 such seeds find only effects that no AUROC has room for
        part = max(int(worlds * SHARE_OF_WORLDS[kind]), 1)
        world = World(seeds, QUESTIONS[0], seed_sd, 0.1)
        true = mean_spread(studies(kind, world, 4 * part, seed=1))
        for power in POWERS:
            effect = true.smallest_effect(RATE, power)
            made = studies(kind, replace(world, effect=effect), part, seed=2)
            found = np.mean([each.p_value() <= RATE for each in made])
            forecasts = [100 * each.power(effect, RATE) for each in made[:FORECASTS]]
            low, middle, high = np.quantile(forecasts, [0.25, 0.5, 0.75])
            print(
                f"| {kind} | {seeds} | {world.questions} | {seed_sd:g}/0.1 | {effect:.3f} | "
                f"{100 * power:.0f} | {100 * found:.1f} | {middle:.0f} ({low:.0f} to {high:.0f}) |",
                flush=True,
            )


def mean_spread(made: list[Bootstrap]) -> Spread:
    """The parts of the variance, averaged over studies: each is without bias."""
    parts = [(each.spread.of_seeds, each.spread.of_questions, each.spread.shared) for each in made]
    return Spread(made[0].seeds, *(float(part) for part in np.mean(parts, axis=0)))


def print_rliable() -> None:
    """The interquartile mean of rliable beside ours, on the same scores."""
    try:
        from rliable import library, metrics
    except (ImportError, TypeError) as error:  # its `arch` fails with a TypeError under pandas 3
        print(f"\nrliable cannot be imported, so it is not compared: {error}")
        return
    scores = np.random.default_rng(0).beta(2, 3, (5, 6))
    np.random.seed(0)
    point, interval = library.get_interval_estimates(
        {"scores": scores}, lambda table: np.array([metrics.aggregate_iqm(table)]), reps=50_000
    )
    ours = bootstrap_iqm(scores, 50_000)
    low, high = ours.interval()
    print("\ninterquartile mean of 5 runs x 6 tasks, 50 000 replicates\n")
    print(f"rliable {point['scores'][0]:.5f} {interval['scores'].ravel().round(4).tolist()}")
    print(f"ours    {ours.value:.5f} [{low:.4f}, {high:.4f}]")


if __name__ == "__main__":
    main()
