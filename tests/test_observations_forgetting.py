"""Forgetting after retirement: what was planted is found, and arms are compared by the visit."""

import random
import re

import pytest
from observed import FACTS, frames_of, interval, number, say, says_empty
from replay_loops import Row, Rows, made_catalog

from analysis.observations.forgetting import FORGETTING


def arm_runs() -> Rows:
    return [
        {"run": f"{arm}-{seed}", "study": "s", "arm": arm, "seed": seed}
        for arm in ("exgrpo", "on_policy")
        for seed in (0, 1)
    ]


def forgetting_world(kept: float) -> tuple[Rows, Rows, Rows]:
    """40 questions retire at step 1 and come back at 15, 40 and 65; then only `kept` of them are
    right, the rest has nothing right. 40 others are never right. on_policy forgets nothing."""
    runs = arm_runs()
    found: Rows = []
    for run in runs:
        for q in range(80):
            for step in (1, 15, 40, 65):
                forgets = run["arm"] == "exgrpo" and step == 65 and q % 10 >= 10 * kept
                shared: Row = {"run": run["run"], "step": step, "group": q, "question": f"q{q}"}
                shared |= {"replayed": False, "experiential": False}
                found += [
                    shared | {"slot": slot, "correct": q < 40 and not forgets} for slot in (0, 1)
                ]
    events = [
        {"run": run["run"], "step": 1, "question": f"q{q}", "event": "retired"}
        for run in runs
        if run["arm"] == "exgrpo"
        for q in range(40)
    ]
    return runs, found, events


def test_forgetting_finds_what_was_forgotten_and_when() -> None:
    runs, found, events = forgetting_world(kept=0.6)
    with made_catalog(runs=runs, trajectories=found, experience=events) as connection:
        frames = frames_of(FORGETTING, connection)
    said = FORGETTING.lines(frames)
    # Of three visits after retirement 40 % forget the last: 13.3 % of all.
    assert re.match(r"exgrpo: fresh visits of retired questions were right in 86.7 % \[8", said[0])
    assert "those of others at the same time in 0.0 %" in said[0]
    assert re.search(
        r"at most half right at 13.3 % \[8.\d, 1[78].\d\] of these 240 visits", said[0]
    )
    assert re.search(r"0.0 % \(every draw: no interval\) from 1 on, 40.0 % \[2", said[0])
    on_policy, exgrpo = said[1:]
    once = "visits after a question had been solved once,"
    assert f"on_policy: of the 240 {once} 0.0 % (every draw: no interval) had" in on_policy
    assert f"exgrpo: of the 240 {once} 13.3 % [" in exgrpo
    assert re.search(r"against on_policy \+13.3 points \[\+\d.\d, \+1\d.\d\] \(", exgrpo)
    assert "asked again 3.0 times on average, 40.0 % [" in exgrpo
    retired = next(t for t in FORGETTING.draw(FACTS, frames).data if t.name == "retired")
    assert list(zip(retired.x, retired.y, strict=True)) == [
        (1, 1.0),
        (26, 1.0),
        (51, pytest.approx(0.6)),
    ]


def test_arms_that_forget_alike_but_ask_more_often_do_not_differ() -> None:
    """A visit after the first fails with probability 0.2; on_policy has 8 of them, exgrpo 2."""
    rng = random.Random(3)
    found: Rows = []
    for run in arm_runs():
        for q in range(200):
            for step in range(3 if run["arm"] == "exgrpo" else 9):
                row: Row = {"run": run["run"], "step": step + 1, "group": q, "question": f"q{q}"}
                right = step == 0 or rng.random() >= 0.2
                row |= {"group_successes": int(right), "group_size": 1, "slot": 0}
                found.append(row | {"experiential": False, "replayed": False, "correct": right})
    with made_catalog(runs=arm_runs(), trajectories=found) as connection:
        text = say(FORGETTING, frames_of(FORGETTING, connection))
    low, high = interval(text, "against on_policy")
    assert low < 0 < high and abs(number(text, "against on_policy")) < 4
    ever = [float(share) for share in re.findall(r"on average, ([\d.]+) % ", text)]
    assert ever == pytest.approx([100 * (1 - 0.8**8), 100 * (1 - 0.8**2)], abs=5)
    assert text.count("neither compares arms") == 2


def test_a_retired_question_with_nothing_beside_it_is_not_told() -> None:
    runs = arm_runs()[:1]
    found = [
        {"run": "exgrpo-0", "step": step, "group": 0, "question": "q", "slot": 0, "correct": True}
        | {"group_successes": 1, "group_size": 1, "experiential": False, "replayed": False}
        for step in (1, 30)
    ]
    event = {"run": "exgrpo-0", "step": 1, "question": "q", "event": "retired"}
    with made_catalog(runs=runs, trajectories=found, experience=[event]) as connection:
        frames = frames_of(FORGETTING, connection)
    said = FORGETTING.lines(frames)
    assert said[0].startswith("Not here: no retired question was asked again while others were")
    assert says_empty(FORGETTING.draw(FACTS, frames))
