"""The snowball detector: does replaying marked right answers make later ones marked, ever more?

The rule, fixed before it was asked about real runs. Parts that decide: the arms contrast, the
event study and the dose-response; their intervals miss together at rate `alpha`, by Holm.

- `not testable here`: there is no arms contrast (too few arms or seeds), or neither of the other
  two. What can be estimated is told all the same. Correlation alone is never a snowball.
- `supported`: (1) the interval of the arms contrast lies above 0; (2) the marked share in the arm
  that replays the most marked ones rises (Mann-Kendall, tau > 0 and p < 0.05: a description, since
  windows depend on each other); (3) the interval of the event study or of the dose-response lies
  above 0, and that of the other not below; (4) the placebo is flat: its p is 0.01 or more.
- `contradicted`: not supported, and below the smallest effect of interest, that of the planted weak
  snowball, lie the interval of the arms contrast and that of the event study or of the
  dose-response, while the other does not lie above 0.
- `inconclusive (underpowered)` is the rest.

Its power is a lower bound of the chance that (1) and (3) find the planted strong snowball, one that
adds 15 points to the marked share by the end of training, with the noise of this lake; the planted
worlds of `benchmarks/snowball.py` say how often the whole rule does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import duckdb
import polars as pl

from analysis.queries import answer
from analysis.snowball.arms import COMPARED, HIGH, contrast, rise, slope
from analysis.snowball.cells import NotHereError
from analysis.snowball.inheritance import inherited
from analysis.snowball.parts import Name, Part, absent, found, numbers
from analysis.snowball.replays import dose_response, effect, gap
from analysis.statistics import REPLICATES, Bootstrap, holm_levels

Frames = Mapping[str, pl.DataFrame]
Verdict = Literal["supported", "contradicted", "inconclusive (underpowered)", "not testable here"]

QUERIES = ("snowball_fresh", "snowball_visits", "marker_inheritance")
REPLAYING = (HIGH, "exgrpo", "no_trajectory_selection")  # arms whose replays are studied

# What the planted snowballs do to each part: measured in worlds where it is known, see
# `benchmarks/snowball.py`. Weak is a third of strong.
STRONG: dict[Name, float] = {"arms contrast": 0.15, "event study": 0.04, "dose-response": 0.034}
WEAK = {name: value / 3 for name, value in STRONG.items()}
FLAT = 0.01  # a placebo with a p below this is not
RISING = 0.05  # p of the trend


@dataclass(frozen=True)
class Snowball:
    """The verdict on one marker, and the parts that it rests on.

    p: the least alpha at which the rule's points (1) and (3) would still hold; 1 where the estimate
    of the arms contrast, or those of both others, are not above 0. power: see the rule. Both are
    None where it is not testable.
    """

    marker: str
    verdict: Verdict
    reading: str
    power: float | None
    p: float | None
    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    def part(self, name: Name) -> Part:
        return next(part for part in self.parts if part.name == name)

    @property
    def lines(self) -> list[str]:
        """Verdict and parts, a sentence each."""
        head = f"Snowball of marker `{self.marker}`: {self.verdict}. {self.reading}"
        return [head, *(part.sentence for part in self.parts), *self.notes]


def ask(
    connection: duckdb.DuckDBPyConnection, study: str, marker: str = "flawed"
) -> dict[str, pl.DataFrame]:
    """The frames that `detect` needs: of the arms that it looks at, or of all if none is there.

    Raises UserError on an unknown marker.
    """
    arms = pl.col("arm").is_in([*REPLAYING, *COMPARED])
    runs = answer(connection, "study_runs", study=study).filter(arms)["run"].to_list() or None
    given = {"study": study, "run": runs, "marker": marker}
    return {name: answer(connection, name, **given) for name in QUERIES}


def detect(
    frames: Frames, marker: str = "flawed", alpha: float = 0.05, replicates: int = REPLICATES
) -> Snowball:
    """Judge one study, or import. frames: the answers of QUERIES for the marker, see `ask`."""
    fresh, visits = frames["snowball_fresh"], studied(frames["snowball_visits"])
    copies = studied(frames["marker_inheritance"])
    compared: list[str] = []

    def of_arms() -> Bootstrap:
        made, arms = contrast(fresh, replicates)
        compared.extend(arms)
        return made

    made, missing = _try(
        {
            "arms contrast": of_arms,
            "event study": lambda: effect(visits, replicates),
            "dose-response": lambda: dose_response(visits, replicates),
            "placebo": lambda: gap(visits, 0, replicates),
            "inheritance": lambda: inherited(copies, replicates),
        }
    )
    deciding = [name for name in STRONG if name in made]
    levels = holm_levels([made[name].p_value() for name in deciding], alpha)
    rates = dict(zip(deciding, levels, strict=True))
    what = _sentences(compared)
    parts = tuple(
        found(name, made[name], rates.get(name, alpha), STRONG.get(name), what[name])
        if name in made
        else absent(name, missing[name])
        for name in what
    )
    trend = rise(fresh, HIGH)
    rises = trend.tau > 0 and trend.p < RISING
    verdict, reading = judge({part.name: part for part in parts}, rises)
    strictest = {name: made[name].power(STRONG[name], alpha / len(deciding)) for name in deciding}
    testable = verdict != "not testable here"
    return Snowball(
        marker,
        verdict,
        reading,
        _joint(strictest) if testable else None,
        _joint_p({name: made[name] for name in deciding}) if testable else None,
        parts,
        tuple(_of_arm(arm, frames, replicates) for arm in (HIGH, *COMPARED) if _there(arm, frames)),
    )


def studied(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the arms whose replays are studied; of all arms where none of them is there."""
    mine = rows.filter(pl.col("arm").is_in(REPLAYING))
    return rows if mine.is_empty() else mine


def _try(
    estimates: Mapping[Name, Callable[[], Bootstrap]],
) -> tuple[dict[Name, Bootstrap], dict[Name, str]]:
    """Every estimate that this lake allows, and for the others what it lacks."""
    made: dict[Name, Bootstrap] = {}
    missing: dict[Name, str] = {}
    for name, estimate in estimates.items():
        try:
            made[name] = estimate()
        except (NotHereError, ValueError) as reason:  # ValueError: too few questions to draw from
            missing[name] = str(reason)
    return made, missing


def _sentences(compared: list[str]) -> dict[Name, str]:
    against = " and ".join(compared) or "arms that replay fewer marked trajectories"
    return {
        "arms contrast": f"Arms contrast, slope of the marked share in {HIGH} less that in "
        f"{against}",
        "event study": "Event study, change to the next visit after a first replay that was "
        "marked, less that after a like one that was not",
        "dose-response": "Dose-response, marked share of all later answers to the question",
        "placebo": "Placebo, the same two kinds of first replays at their own visit, before they "
        "were trained on",
        "inheritance": "Inheritance, words shared with the marked trajectory replayed, after less "
        "before",
    }


def judge(part: dict[Name, Part], rises: bool) -> tuple[Verdict, str]:
    """The rule; see the top of this file."""
    arms, placebo = part["arms contrast"], part["placebo"]
    within = [
        part[name] for name in ("event study", "dose-response") if part[name].value is not None
    ]
    if arms.value is None or not within:
        there = [each for each in (arms, *within) if each.value is not None]
        told = " and ".join(f"{each.name} {numbers(each)}" for each in there)
        return "not testable here", (
            "It takes arms to compare and, in them, marked and unmarked replays to compare. "
            + (f"Alone this shows no snowball: {told}." if told else "Here is neither.")
        )
    spreads = any(each.rises for each in within) and not any(each.below(0) for each in within)
    flat = placebo.p is None or placebo.p >= FLAT
    if arms.rises and rises and spreads and flat:
        return "supported", (
            f"The marked share rises in {HIGH}, faster than in the arms compared, and later "
            f"answers are marked more often after a marked replay than after a like unmarked one."
        )
    bounded = any(each.below(WEAK[each.name]) for each in within)
    if arms.below(WEAK[arms.name]) and bounded and not any(each.rises for each in within):
        return "contradicted", (
            "Arms and replays exclude the smallest effect of interest: 5 points more of marked "
            "answers by the end of a training of 150 steps."
        )
    misses = [
        sentence
        for fails, sentence in (
            (not arms.rises, "the arms contrast does not exclude 0"),
            (not rises, f"the marked share does not rise in {HIGH}"),
            (not spreads, "no effect of a marked replay on its own question is shown"),
            (not flat, "the placebo is not flat, so that the matching is not to be trusted"),
        )
        if fails
    ]
    return "inconclusive (underpowered)", f"For a snowball, {'; '.join(misses)}."


def _joint(power: dict[Name, float]) -> float:
    """Bonferroni: both happen at least this often, the contrast and the better one of the rest."""
    best = max(value for name, value in power.items() if name != "arms contrast")
    return max(0.0, power["arms contrast"] + best - 1)


def _joint_p(made: dict[Name, Bootstrap]) -> float:
    """The greater of Holm's adjusted p of the contrast and of the best other part above 0."""
    adjusted: dict[Name, float] = {}
    reached = 0.0
    ascending = sorted(made, key=lambda name: made[name].p_value())
    for place, name in enumerate(ascending):
        reached = max(reached, min(1.0, (len(made) - place) * made[name].p_value()))
        adjusted[name] = reached
    above = {name: p for name, p in adjusted.items() if made[name].value > 0}
    others = [p for name, p in above.items() if name != "arms contrast"]
    return max(above.get("arms contrast", 1.0), min(others, default=1.0))


def _there(arm: str, frames: Frames) -> bool:
    return not frames["snowball_fresh"].filter(pl.col("arm") == arm).is_empty()


def _of_arm(arm: str, frames: Frames, replicates: int) -> str:
    """A sentence about an arm: what it replayed, and its own slope and trend, not adjusted."""
    counts = frames["snowball_visits"].filter(pl.col("arm") == arm)
    replayed, marked = counts.select(pl.col("replayed", "replayed_marked").sum()).row(0)
    dose = f"{marked / replayed:.0%} of {replayed} replays marked" if replayed else "no replays"
    made = slope(frames["snowball_fresh"], arm, replicates)
    if made is None:
        return f"{arm}: {dose}; no slope."
    low, high = (100 * bound for bound in made.interval())
    tau = rise(frames["snowball_fresh"], arm).tau
    return (
        f"{arm}: {dose}; own slope {100 * made.value:+.1f} points per 100 steps [{low:+.1f}, "
        f"{high:+.1f}] (95 %, not adjusted), Mann-Kendall tau {tau:+.2f}."
    )
