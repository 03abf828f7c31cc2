"""How often the snowball detector is right, in worlds where it is known whether there is one.

    python benchmarks/snowball.py [--worlds 50] [--docs docs]

Prints a table and, with --docs, puts it into `snowball.md` there, with the power curve as
`images/snowball-power.svg` and its numbers as `images/snowball-power.json`. World number i of a
row has seed i. A world is a whole study: 5 arms x 5 seeds x 150 steps x 32 questions of 600, K = 8
(see `planted_worlds.py`); the named queries and the rule are those of `exgrpo snowball`, with fewer
replicates of the bootstrap.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from planted_worlds import World, catalog, play
from snowball_curve import power_curve

from analysis.snowball import Snowball, ask, detect
from analysis.snowball.arms import HIGH, curve

REPLICATES = 500
STRONG, WEAK = 1.0, 1 / 3
BEGIN, END = "<!-- power:begin -->", "<!-- power:end -->"

CURVE = (0, 1 / 6, WEAK, 2 / 3, STRONG)  # strengths of the power curve
PLAIN = "every confounder"
OWN_DRIFT = "also, highest_entropy drifts by itself"
DOWN = "also, all drift downwards"
NOISY = "also, runs deviate four times as much"
LOPSIDED = "also, most questions are always or never marked"
FEW = "3 seeds"
WORLDS = {
    PLAIN: World(),
    OWN_DRIFT: World(arm_drift=0.4),
    DOWN: World(drift=-0.4),
    NOISY: World(seed_drift=0.6),
    LOPSIDED: World(questions=3.0),
    FEW: World(seeds=3),
}
ASKED = [(PLAIN, strength) for strength in CURVE]
ASKED += [(OWN_DRIFT, 0), (DOWN, 0), (NOISY, 0), (LOPSIDED, 0)]
ASKED += [(DOWN, STRONG), (NOISY, STRONG), (LOPSIDED, STRONG), (FEW, STRONG)]
MORE = 4  # times as many worlds of the first row: a rate of false alarms is small


@dataclass(frozen=True)
class Row:
    """How often which verdict was given. share: marked in the last fifth of arm HIGH, a mean."""

    strength: float
    what: str
    worlds: int
    supported: float
    contradicted: float
    said: float  # mean of the power that the detector states
    share: float
    contrast: float
    event: float
    dose: float


def look(world: World, seed: int) -> tuple[Snowball, float]:
    """The detector's verdict on a world, and the marked share that arm HIGH ended with."""
    with catalog(*play(world, seed)) as connection:
        frames = ask(connection, "planted")
    end = curve(frames["snowball_fresh"], HIGH)["mean"].tail(3).mean()
    return detect(frames, replicates=REPLICATES), float(end)  # type: ignore[arg-type]


def row(what: str, strength: float, worlds: int) -> Row:
    """The verdicts on so many worlds of one kind."""
    seen = [look(WORLDS[what].of_strength(strength), seed) for seed in range(worlds)]
    found = [snowball for snowball, _ in seen]

    def mean(value: Callable[[Snowball], float | None]) -> float:
        return float(np.mean([value(each) or 0.0 for each in found]))

    return Row(
        strength,
        what,
        worlds,
        mean(lambda each: each.verdict == "supported"),
        mean(lambda each: each.verdict == "contradicted"),
        mean(lambda each: each.power),
        float(np.mean([share for _, share in seen])),
        mean(lambda each: each.part("arms contrast").value),
        mean(lambda each: each.part("event study").value),
        mean(lambda each: each.part("dose-response").value),
    )


def table(rows: list[Row], base: float) -> list[str]:
    """The rows in Markdown. base: marked share without a snowball, every confounder."""
    lines = [
        "| strength | worlds of it | n | supported | contradicted | power stated "
        "| arms contrast | event study | dose-response |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in rows:
        lines.append(
            f"| {name(each.strength)} | {each.what} | {each.worlds} | {each.supported:.1%} "
            f"| {each.contradicted:.1%} | {each.said:.0%} | {100 * each.contrast:+.1f} "
            f"| {100 * each.event:+.1f} | {100 * each.dose:+.1f} |"
        )
    strong = next(each for each in rows if each.strength == STRONG and each.what == PLAIN)
    lines += [
        "",
        f"Strong adds {100 * (strong.share - base):.1f} points to the marked share of "
        f"`{HIGH}` in the last fifth of the training (without a snowball {base:.1%}). Contrast in "
        "points per 100 steps, the other two in points a marked replay; means over worlds.",
    ]
    return lines


def name(strength: float) -> str:
    return {0.0: "none", WEAK: "weak", STRONG: "strong"}.get(strength, f"{strength:.2f} of strong")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=50, help=f"of a row; {MORE} x in the first")
    parser.add_argument("--docs", type=Path, help="folder whose snowball.md gets the table")
    given = parser.parse_args()
    began = time.perf_counter()
    rows = []
    for place, (what, strength) in enumerate(ASKED):
        rows.append(row(what, strength, given.worlds * (1 if place else MORE)))
        print(rows[-1], flush=True)
    lines = table(rows, rows[0].share)
    print("\n".join(lines))
    print(f"{time.perf_counter() - began:.0f} s")
    if given.docs:
        _write(given.docs, lines, rows)


def _write(docs: Path, lines: list[str], rows: list[Row]) -> None:
    page = docs / "snowball.md"
    head, _, rest = page.read_text().partition(BEGIN)
    page.write_text("\n".join([head + BEGIN, "", *lines, "", END]) + rest.partition(END)[2])
    numbers = [asdict(each) for each in rows]
    (docs / "images" / "snowball-power.json").write_text(json.dumps(numbers, indent=1) + "\n")
    points = [(each.strength, each.supported, each.worlds) for each in rows if each.what == PLAIN]
    (docs / "images" / "snowball-power.svg").write_text(power_curve(points))


if __name__ == "__main__":
    main()
