"""The observations on what is replayed: the choice of trajectory and its age, on planted rows."""

from statistics import mean, median

import pytest
from golden_lake import Row
from observed import FACTS, frames_of, interval, number, say, says_empty, trace
from replay_loops import made_catalog

from analysis.observations.selection_audit import SELECTION_AUDIT
from analysis.observations.staleness import STALENESS

# selection_audit


def choices() -> dict[str, list[Row]]:
    """Two stored trajectories a draw: one certain, long and valid, one unsure, short and flawed.

    The released metric takes the short one at three of four draws. An arm that takes the shortest
    answers twice as many questions right.
    """
    runs, candidates, trajectories, evaluations = [], [], [], []
    for seed in (0, 1):
        for arm in ("exgrpo", "shortest"):
            run = f"{arm}-{seed}"
            runs.append({"run": run, "study": "s", "arm": arm, "seed": seed, "steps": 9})
            evaluations += [
                {"run": run, "step": 9, "benchmark": "test_id", "question": f"t{at}", "sample": one}
                | {"correct": one == 0 or arm == "shortest"}
                for at in range(20)
                for one in range(2)
            ]
        for group in range(80):
            key = {"run": f"exgrpo-{seed}", "question": f"q{group % 20}", "group": group}
            for rank in (0, 1):
                source = f"exgrpo-{seed}:1:{group}:{rank}"
                by_released = rank if group % 4 == 0 else 1 - rank
                ranks = {"mean_entropy_rank": rank, "length_rank": 1 - rank, "nll_rank": rank}
                ranks |= {"released_rank": by_released, "summed_entropy_rank": rank}
                candidates.append(
                    key
                    | {"step": 2, "source": source, "mean_entropy": 0.1 + 0.2 * rank, "nll": 0.5}
                    | {"length": 30 - 10 * rank, "birth_entropy_rank": rank, "rank": rank}
                    | ranks
                )
                trajectories.append(
                    key | {"step": 1, "slot": rank, "trajectory": source, "chain_valid": rank == 0}
                )
    tables = {"candidates": candidates, "trajectories": trajectories, "evaluations": evaluations}
    return {"runs": runs} | tables


def test_a_metric_that_chooses_otherwise_and_what_comes_of_it() -> None:
    with made_catalog(**choices()) as catalog:
        frames = frames_of(SELECTION_AUDIT, catalog)
    text = say(SELECTION_AUDIT, frames)
    assert "exgrpo: 160 visits of a question with a choice, among 2.0 stored" in text
    assert number(text, "by the released code's metric") == 25
    assert number(text, "the shortest") == 0 and number(text, "a random one") == 50
    released = text.partition("Instead of it, the released code's metric: ")[2]
    assert number(released, "entropy") == pytest.approx(0.15)
    assert number(released, "length") == -7.5
    assert number(released, "valid chains") == -75
    low, high = interval(released, "valid chains")
    assert low < -75 < high
    assert number(text, "exgrpo minus shortest (replays the shortest): test_id") == -50
    assert "Not here: the accuracy of exgrpo against released_entropy, lowest_nll" in text
    plot = SELECTION_AUDIT.draw(FACTS, frames)
    released_at = list(plot.layout.yaxis.ticktext).index("the released code's metric")
    assert trace(plot, "what would have been replayed").x[released_at] == 25
    assert list(trace(plot, "test_id", "x5").x) == [-50]


def test_candidates_whose_chains_nobody_checked_and_arms_alone() -> None:
    tables = choices()
    with made_catalog(runs=tables["runs"], candidates=tables["candidates"]) as catalog:
        frames = frames_of(SELECTION_AUDIT, catalog)
    text = say(SELECTION_AUDIT, frames)
    assert "Not here: whether the chains of the candidates are valid." in text
    assert "Not here: the accuracy of exgrpo against released_entropy, shortest" in text
    assert SELECTION_AUDIT.draw(FACTS, frames).data
    del tables["candidates"]
    with made_catalog(**tables) as catalog:
        frames = frames_of(SELECTION_AUDIT, catalog)
    text = say(SELECTION_AUDIT, frames)
    assert text.startswith("Not here: no question with more than one stored trajectory")
    assert "over 2 seeds" in text
    assert [each.name for each in SELECTION_AUDIT.draw(FACTS, frames).data] == ["test_id"]


# staleness


def replays(trained: bool = True) -> dict[str, list[Row]]:
    """Ten replays of age 1 at ratio 1, five of age 4 at ratios 1.0, 1.5, .. 3.0."""
    ratios = [(1, 1.0)] * 10 + [(4, 1 + place / 2) for place in range(5)]
    settings = '{"objective": {"shaping": "ratio", "beta": 0.1, "clip_after_start": "none"}}'
    trajectories = []
    for place, (age, ratio) in enumerate(ratios):
        weight = ratio / (ratio + 0.1)
        row = {"run": "r", "step": 1 + age, "group": place, "slot": 0, "question": "q"}
        row |= {"replayed": True, "source": f"r:1:{place}:0", "birth_step": 1}
        if trained:
            row |= {"ratio_mean": ratio, "ratio_ess": 0.5, "weight_mean": weight, "weight_ess": 1.0}
        trajectories.append(row)
    run = {"run": "r", "study": "s", "arm": "exgrpo", "seed": 0, "settings": settings}
    return {"runs": [run], "trajectories": trajectories}


def test_ratios_that_grow_with_age() -> None:
    with made_catalog(**replays()) as catalog:
        frames = frames_of(STALENESS, catalog)
    text = say(STALENESS, frames)
    assert "exgrpo: 15 replayed trajectories, median age 1.0 steps (oldest 4)." in text
    assert "4 to 7 steps, 2.000 (1.100 to 2.900; 5 trajectories)" in text
    ratios = [1.0] * 10 + [1.0, 1.5, 2.0, 2.5, 3.0]
    assert number(text, "of a trajectory: median") == median(ratios)
    kept = mean(0.1 * ratio / (ratio + 0.1) ** 2 for ratio in ratios)
    assert number(text, "Shaping keeps") == pytest.approx(kept, abs=0.00006)
    assert "(0.0826 at ratio 1)" in text
    plot = STALENESS.draw(FACTS, frames)
    assert list(trace(plot, "exgrpo").y) == [1.0, 2.0]
    assert list(trace(plot, "exgrpo").error_y.array) == pytest.approx([0.0, 0.9])


def test_replays_that_never_had_a_gradient() -> None:
    with made_catalog(**replays(trained=False)) as catalog:
        frames = frames_of(STALENESS, catalog)
    assert "Not here: ratios, for none of them had a gradient." in say(STALENESS, frames)
    assert says_empty(STALENESS.draw(FACTS, frames))


def test_an_arm_that_does_not_shape() -> None:
    tables = replays()
    tables["runs"][0]["settings"] = '{"objective": {"shaping": "none"}}'
    for row in tables["trajectories"]:
        row["clipped_share"] = 0.25
    with made_catalog(**tables) as catalog:
        text = say(STALENESS, frames_of(STALENESS, catalog))
    assert "Not shaped by w / (w + beta); the clip removed 25.0 % of tokens." in text
