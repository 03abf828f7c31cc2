"""The observations on entropy: what they say and draw, where the answer is planted or missing.

Every frame comes from the named queries, asked of the golden lake or of rows made by hand.
"""

import re
from collections.abc import Callable, Iterable
from statistics import mean

import duckdb
import numpy as np
import polars as pl
import pytest
from golden_lake import Row
from golden_lake import rows as golden_rows
from observed import FACTS, NUMBER, frames_of, interval, number, say, says_empty, trace, traces
from replay_loops import made_catalog

from analysis.drawing import study_facts
from analysis.observations.entropy_by_difficulty import ENTROPY_BY_DIFFICULTY
from analysis.observations.entropy_validity import ENTROPY_VALIDITY
from analysis.observations.markers import MARKERS
from analysis.observations.observation import Observation
from analysis.observations.selection_audit import SELECTION_AUDIT
from analysis.observations.staleness import STALENESS
from analysis.queries import answer

EVERY = (ENTROPY_VALIDITY, ENTROPY_BY_DIFFICULTY, MARKERS, SELECTION_AUDIT, STALENESS)
of_every_one = pytest.mark.parametrize("observation", EVERY, ids=lambda each: each.name)


# what is there, and what is not


@of_every_one
def test_on_the_golden_lake(golden: duckdb.DuckDBPyConnection, observation: Observation) -> None:
    frames = frames_of(observation, golden, "golden")
    facts = study_facts("golden", answer(golden, "study_runs", study="golden"))
    text = say(observation, frames)
    assert not text.startswith("Not here")
    assert observation is STALENESS or "over 2 seeds" in text
    plot = observation.draw(facts, frames)
    assert plot.data and not says_empty(plot)
    assert observation.title.endswith("?") and observation.reading


@of_every_one
def test_without_rows(golden: duckdb.DuckDBPyConnection, observation: Observation) -> None:
    frames = {name: frame.clear() for name, frame in frames_of(observation, golden).items()}
    assert say(observation, frames).startswith("Not here: ")
    assert says_empty(observation.draw(FACTS, frames))


@of_every_one
def test_of_an_import_that_knows_little(
    golden: duckdb.DuckDBPyConnection, observation: Observation
) -> None:
    """The riddles: graded answers with code and repetition; no entropy, no seed, no buffer."""
    frames = frames_of(observation, golden, "imports")
    facts = study_facts("imports", answer(golden, "study_runs", study="imports"))
    text = say(observation, frames)
    assert says_empty(observation.draw(facts, frames))
    if observation is MARKERS:
        assert "repetition: 1 of 8 right answers have it. Not here: their entropy." in text
        assert "shortcut: not here, for it is not known which answers have it." in text
    else:
        assert text.startswith("Not here: ")


@of_every_one
def test_with_one_seed(golden: duckdb.DuckDBPyConnection, observation: Observation) -> None:
    frames = {
        name: frame.filter(pl.col("seed").is_null() | (pl.col("seed") == 0))
        if "seed" in frame.columns
        else frame
        for name, frame in frames_of(observation, golden, "golden").items()
    }
    text = say(observation, frames)
    assert observation is STALENESS or "over questions only, for there is one seed" in text
    assert observation.draw(FACTS, frames).data


# entropy_validity


def right(catalog_rows: Iterable[Row]) -> duckdb.DuckDBPyConnection:
    """A catalog with these right fresh answers, one a row: `seed`, `question` and what it has."""
    runs, trajectories = {}, []
    for place, row in enumerate(catalog_rows):
        seed, arm = row.pop("seed"), row.pop("arm", "on_policy")
        run = f"{arm}-{seed}"
        runs[run] = {"run": run, "study": "s", "arm": arm, "seed": seed}
        trajectories.append(
            {"run": run, "step": 1, "group": place, "slot": 0, "trajectory": f"{run}:{place}"}
            | {"correct": True, "replayed": False, "bucket": 4, "difficulty": "medium", "level": 3}
            | {"response": "", "code": False, "repetition": False}
            | row
        )
    return made_catalog(runs=list(runs.values()), trajectories=trajectories)


def chains(by_length: bool, seeds: tuple[int | None, ...] = (0, 1, 2)) -> list[Row]:
    """Flawed chains are longer. Entropy follows the length, or else the flaw."""
    rng = np.random.default_rng(3)
    rows = []
    for seed in seeds:
        for place in range(600):
            flawed = place % 2 == 0
            length = int(rng.integers(18, 31) if flawed else rng.integers(10, 23))
            entropy = (length / 100 if by_length else 0.1 * flawed) + 0.2 * rng.random()
            rows.append(
                {"seed": seed, "question": f"q{place % 60}", "length": length}
                | {"mean_entropy": entropy, "nll": rng.random(), "chain_valid": not flawed}
            )
    return rows


RAW = "(above 0.5: flawed ones have the higher entropy):"
EQUAL = "to 5 %, entropy reaches"


@pytest.mark.parametrize("seeds", [(0, 1, 2), (0,), (None,)], ids=str)
def test_an_effect_of_length_is_none_of_entropy(seeds: tuple[int | None, ...]) -> None:
    with right(chains(by_length=True, seeds=seeds)) as catalog:
        frames = frames_of(ENTROPY_VALIDITY, catalog)
    text = say(ENTROPY_VALIDITY, frames)
    assert number(text, RAW) > 0.75
    low, high = interval(text, EQUAL)
    assert low < 0.5 < high and high - low < 0.3
    assert number(text, "Length alone reaches") > 0.9
    if seeds == (None,):
        assert "over questions only, for there is no seed" in text
    plot = ENTROPY_VALIDITY.draw(FACTS, frames)
    assert trace(plot, "entropy", "x2").y[-1] > 0.75
    assert trace(plot, "entropy at equal length", "x2").y[-1] == pytest.approx(0.5, abs=0.08)


def test_an_effect_of_the_flaw_is_there_at_equal_length_and_beats_nll() -> None:
    with right(chains(by_length=False)) as catalog:
        text = say(ENTROPY_VALIDITY, frames_of(ENTROPY_VALIDITY, catalog))
    low, high = interval(text, EQUAL)
    assert 0.7 < low < 1 - 0.5**2 / 2 < high  # uniform over 0.2, shifted by half of that
    assert number(text, "its logarithm, NLL, reaches") == pytest.approx(0.5, abs=0.1)
    assert interval(text, "entropy minus NLL, paired:")[0] > 0.25


def test_a_judge_is_named_and_unlogged_perplexity_is_missed() -> None:
    rows = chains(by_length=False, seeds=(None,))
    for row in rows:
        row["nll"] = None
    with right(rows) as catalog:
        catalog.execute(
            "insert into judgements select run, trajectory, 'a-judge', '1', chain_valid, '' "
            "from trajectories; update trajectories set chain_valid = null"
        )
        frames = frames_of(ENTROPY_VALIDITY, catalog)
        judged = {name: answer(catalog, name, judge="a-judge") for name in ENTROPY_VALIDITY.queries}
    assert say(ENTROPY_VALIDITY, frames).startswith("Not here: no right answer")
    text = say(ENTROPY_VALIDITY, judged)
    assert "300 of them flawed by judge `a-judge`" in text
    assert "Not here: entropy against perplexity" in text


@pytest.mark.parametrize(("valid", "missing"), [(True, "flawed"), (False, "valid")])
def test_chains_of_one_kind_cannot_be_compared(valid: bool, missing: str) -> None:
    rows = [row | {"chain_valid": valid} for row in chains(by_length=True, seeds=(0,))]
    with right(rows) as catalog:
        frames = frames_of(ENTROPY_VALIDITY, catalog)
    assert say(ENTROPY_VALIDITY, frames) == f"Not here: no right answer has a {missing} chain."
    assert says_empty(ENTROPY_VALIDITY.draw(FACTS, frames))


@pytest.mark.parametrize(
    ("observation", "rows", "plain"),
    [
        (ENTROPY_VALIDITY, lambda seeds: chains(False, seeds), {"chain_valid": True}),
        (MARKERS, lambda seeds: coded(seeds), {"code": False}),
    ],
    ids=["entropy_validity", "markers"],
)
def test_a_seed_that_has_nothing_to_compare_is_left_out(
    observation: Observation, rows: Callable[[tuple[int, ...]], list[Row]], plain: Row
) -> None:
    """Estimates are those of the other seeds: a mean over seeds takes none of it."""
    with right(rows((0, 1))) as catalog:
        alone = observation.draw(FACTS, frames_of(observation, catalog))
    with right([row | plain if row["seed"] == 2 else row for row in rows((0, 1, 2))]) as catalog:
        more = observation.draw(FACTS, frames_of(observation, catalog))
    for name, at in (("entropy", "y"), ("code", "x")):
        for axis in ("x", "x2", "x3"):
            for first, second in zip(
                traces(alone, name, axis), traces(more, name, axis), strict=True
            ):
                assert list(first[at]) == pytest.approx(list(second[at]))
                assert all("seeds 2," in each for each in second.hovertext)


def test_the_golden_auroc_and_means_by_a_plain_loop(golden: duckdb.DuckDBPyConnection) -> None:
    text = say(ENTROPY_VALIDITY, frames_of(ENTROPY_VALIDITY, golden, "golden"))
    runs = {row["run"]: row for row in golden_rows("runs") if row["arm"] == "on_policy"}
    rows = [
        row | {"seed": runs[row["run"]]["seed"], "window": (row["step"] - 1) // 10}
        for row in golden_rows("trajectories")
        if row["run"] in runs and row["correct"] and row["bucket"] is not None
    ]
    by_seed = []
    for seed in (0, 1):
        flawed, valid = (
            [row for row in rows if row["seed"] == seed and row["chain_valid"] is kind]
            for kind in (False, True)
        )
        wins = [
            (one["mean_entropy"] > other["mean_entropy"])
            + (one["mean_entropy"] == other["mean_entropy"]) / 2
            for one in flawed
            for other in valid
            if (one["bucket"], one["window"]) == (other["bucket"], other["window"])
        ]
        by_seed.append(mean(wins))
    assert number(text, RAW) == pytest.approx(mean(by_seed), abs=0.0006)
    hard = [row for row in rows if row["difficulty"] == "hard" and not row["chain_valid"]]
    shown = re.search(rf"hard {NUMBER} / ({NUMBER})", text)
    assert shown
    assert float(shown[1]) == pytest.approx(mean(r["mean_entropy"] for r in hard), abs=0.0006)


# entropy_by_difficulty


def difficulties(entropy: dict[str, float], early: dict[str, float]) -> list[Row]:
    """Answers of each difficulty, some share of them early, when all entropies are higher by 1."""
    rng = np.random.default_rng(4)
    rows = []
    for seed in range(3):
        for place in range(400):
            for difficulty, base in entropy.items():
                is_early = place < 400 * early[difficulty]
                rows.append(
                    {"seed": seed, "question": f"q{place % 50}", "difficulty": difficulty}
                    | {"step": 1 if is_early else 21}
                    | {"mean_entropy": base + is_early + rng.random()}
                )
    return rows


def test_medium_questions_with_the_lowest_entropy() -> None:
    even = dict.fromkeys(("hard", "medium", "easy"), 0.5)
    with right(difficulties({"hard": 0.9, "medium": 0.0, "easy": 0.6}, even)) as catalog:
        frames = frames_of(ENTROPY_BY_DIFFICULTY, catalog)
    text = say(ENTROPY_BY_DIFFICULTY, frames)
    assert interval(text, "Against easy")[0] > 0.85
    assert interval(text, "Against hard")[0] > 0.95
    (medium,) = [
        each for each in ENTROPY_BY_DIFFICULTY.draw(FACTS, frames).data if each.name == "medium"
    ]
    assert medium.q1[0] < medium.median[0] < medium.q3[0]


def test_medium_questions_that_are_only_asked_later() -> None:
    """Pooled, medium ones look certain; inside a window of steps they are like the others."""
    early = {"hard": 0.9, "medium": 0.1, "easy": 0.9}
    with right(difficulties(dict.fromkeys(early, 0.0), early)) as catalog:
        frames = frames_of(ENTROPY_BY_DIFFICULTY, catalog)
    text = say(ENTROPY_BY_DIFFICULTY, frames)
    medians = [number(text, f"{each} ") for each in ("of them: hard", "; medium")]
    assert medians[0] > medians[1] + 0.5
    for other in ("Against easy", "Against hard"):
        low, high = interval(text, other)
        assert low < 0.5 < high and high - low < 0.3


def test_medium_questions_that_are_only_shorter() -> None:
    """Entropy follows the question's level, and medium questions are of low level mostly."""
    mostly = {"hard": 4, "medium": 1, "easy": 4}
    rng = np.random.default_rng(6)
    rows: list[Row] = []
    for place in range(900):
        difficulty = ("hard", "medium", "easy")[place % 3]
        level = mostly[difficulty] if rng.random() < 0.7 else int(rng.integers(1, 5))
        rows.append(
            {"seed": 0, "question": f"q{place % 90}", "difficulty": difficulty, "level": level}
            | {"mean_entropy": level + rng.random()}
        )
    with right(rows) as catalog:
        text = say(ENTROPY_BY_DIFFICULTY, frames_of(ENTROPY_BY_DIFFICULTY, catalog))
    for other in ("Against easy", "Against hard"):
        assert interval(text, other)[0] > 0.6
        at_a_level = text.partition(other)[2].partition("where their levels are equal,")[2]
        low, high = interval(at_a_level, "")
        assert low < 0.5 < high and high - low < 0.3


# markers


def coded(seeds: tuple[int | None, ...] = (0, 1, 2)) -> list[Row]:
    """Every fourth answer has code: entropy is then 0.3 higher, and 30 % are valid, not 80 %."""
    rng = np.random.default_rng(5)
    return [
        {"seed": seed, "question": f"q{place % 40}", "code": code, "length": 9, "nll": 0.1}
        | {"mean_entropy": 0.2 + 0.3 * code + 0.1 * rng.random()}
        | {"chain_valid": bool(rng.random() < (0.3 if code else 0.8))}
        for seed in seeds
        for place in range(480)
        for code in [place % 4 == 0]
    ]


@pytest.mark.parametrize("seeds", [(0, 1, 2), (0,), (None,)], ids=str)
def test_code_with_higher_entropy_and_worse_chains(seeds: tuple[int | None, ...]) -> None:
    with right(coded(seeds)) as catalog:
        frames = frames_of(MARKERS, catalog)
    text = say(MARKERS, frames)
    total = 480 * len(seeds)
    assert f"code: {total // 4} of {total} right answers have it" in text
    low, high = interval(text, "medium 0.55")
    assert low < 0.3 < high and high - low < 0.05
    assert number(text, "inside one seed, k and window of steps:") == 1
    valid = text.partition("Valid chains")[2]
    low, high = interval(valid, "medium")
    assert low < -50 < high < -25
    assert "shortcut: not here, for it is not known" in text
    assert f"repetition: not here, for none of {total} answers has it" in text
    plot = MARKERS.draw(FACTS, frames)
    assert trace(plot, "code").x[0] == pytest.approx(0.3, abs=0.02)
    assert trace(plot, "code", "x3").x[0] == pytest.approx(-50, abs=10)


def test_verdicts_on_answers_without_entropy(golden: duckdb.DuckDBPyConnection) -> None:
    """The riddles again, with the verdicts that came with them."""
    frames = {
        name: answer(golden, name, study="imports", judge="recorded") for name in MARKERS.queries
    }
    text = say(MARKERS, frames)
    assert (
        "Not here: their entropy. Valid chains with / without it, in %: hard 100.0 / none; "
        "medium none / 50.0; easy none / 66.7." in text
    )
    assert MARKERS.draw(FACTS, frames).layout.annotations


def test_a_shortcut_is_flawed_by_definition(golden: duckdb.DuckDBPyConnection) -> None:
    text = say(MARKERS, frames_of(MARKERS, golden, "golden"))
    assert "on_policy, shortcut: 15 of 417 right answers have it." in text
    assert "holds by definition" in text
