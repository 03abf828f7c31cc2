"""The snowball queries on made-up rows: odd cases, and worlds where it is known what replay does.

In these worlds an answer is marked by chance, and the arm may choose what it replays by the mark,
as one that chooses by entropy does where marked answers have a low one. What was sampled before
the choice is then no fair comparison, whatever replay does.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import pytest
from replay_loops import RUN, Rows, made, made_catalog, replay_of

from analysis.queries import answer

QUESTIONS, VISITS, FRESH, FIRST_REPLAY = 3000, 7, 4, 3
LUCK = 0.3  # how often an answer is marked by chance alone
SPREAD = 0.2  # how much more often after a marked replay, in a world where replay spreads marks


def test_a_replay_from_another_run_leaves_nothing_out() -> None:
    """The source lies in the same step and group of its own run."""
    elsewhere = made(1, run="other", trajectory="other:1:0:0", code=True)
    rows = [elsewhere, made(1, code=True), replay_of("other:1:0:0", 2, code=True), made(2, 1)]
    with made_catalog(runs=[RUN, RUN | {"run": "other"}], trajectories=rows) as connection:
        events = answer(connection, "snowball_event_study", marker="code")
    assert events["treated_right"].to_list() == [1, 1]
    assert events["treated_share"].to_list() == [1.0, 0.0]


def test_an_effect_is_against_the_gap_of_its_own_study() -> None:
    """At visit 0 the gap is 1 in study `s` and 0 in study `t`, at visit 1 it is 0 in both."""
    rows = []
    for run, gap in (("r", True), ("t", False)):
        for group, treated in enumerate([True, False]):
            where = {"run": run, "group": group, "question": f"q{group}"}
            rows.append(replay_of("elsewhere", 2, code=treated, **where))
            rows += [made(2, 1, code=gap and treated, **where), made(3, **where)]
    with made_catalog(runs=[RUN, RUN | {"run": "t", "study": "t"}], trajectories=rows) as found:
        events = answer(found, "snowball_event_study", marker="code")
    assert events["effect"].to_list() == [0, -1, 0, 0]


def test_what_the_first_replay_was_if_one_of_two_is_not_known() -> None:
    """q: flawed and unknown, so treated. other: valid and unknown, so neither."""
    rows = [
        replay_of(f"r:0:0:{slot}", 2, slot=slot, group=group, question=question, chain_valid=valid)
        for group, (question, known) in enumerate([("q", False), ("other", True)])
        for slot, valid in enumerate([known, None])
    ]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        events = answer(connection, "snowball_event_study")
    assert events.select("relative", "treated", "control").rows() == [(0, 1, 0)]


@pytest.mark.parametrize("marker", ["shortcut", "code", "repetition"])
def test_a_marker_that_is_not_known_is_not_counted_as_absent(marker: str) -> None:
    """At visit 3 it is not known of any; the one of visit 1 is replayed at visit 2."""
    known = {marker: True, "chain_valid": False}
    unknown = {"code": None, "repetition": None, "response": None}
    rows = [
        made(1, **known),
        replay_of("r:1:0:0", 2, **known),
        made(2, 1, **{marker: False, "chain_valid": True}),
        made(3, **unknown),
    ]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        doses = answer(connection, "snowball_dose_response", marker=marker)
        events = answer(connection, "snowball_event_study", marker=marker)
        counts = connection.sql(f"select {marker}, replayed_{marker} from visits order by visit")
        assert counts.fetchall() == [(1, 0), (0, 1), (None, None)]
        (shares,) = answer(connection, "snowball").to_dicts()
    assert doses.select("dose", "right_fresh", "marked").rows() == [(0, 2, 1), (1, 0, 0)]
    assert doses["compared"].to_list() == [0, 0]
    assert events.select("relative", "treated_right").rows() == [(-1, 0), (0, 1), (1, 0)]
    assert shares["shortcut_share"] == (0.5 if marker == "shortcut" else None)


@pytest.mark.parametrize("marker", ["code", "repetition"])
def test_a_replay_whose_marker_is_not_known_is_no_control(marker: str) -> None:
    rows = [
        made(1, code=None, repetition=None),
        replay_of("r:1:0:0", 2, code=None, repetition=None),
    ]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        assert answer(connection, "snowball_event_study", marker=marker).is_empty()


@dataclass(frozen=True)
class World:
    """Questions, of each a group a step; from `FIRST_REPLAY` on a right answer is replayed."""

    by_marker: bool  # a marked one if there is one; else any
    spread: float

    def rows(self) -> Rows:
        luck = random.Random(0)
        return [row for place in range(QUESTIONS) for row in self._question(luck, place)]

    def _question(self, luck: random.Random, place: int) -> Iterator[dict[str, object]]:
        stored: Rows = []
        dose = 0
        for step in range(1, VISITS + 1):
            where = {"question": f"q{place}", "group": place}
            chance = LUCK + (self.spread if dose else 0)
            if stored and step >= FIRST_REPLAY:
                marked = [row for row in stored if row["code"]]
                source = luck.choice(marked if self.by_marker and marked else stored)
                dose += source["code"]
                where["trajectory"] = f"r:{step}:{place}:0"
                yield replay_of(source["trajectory"], step, code=source["code"], **where)
            for slot in range(1, FRESH + 1):
                where["trajectory"] = f"r:{step}:{place}:{slot}"
                drawn = {"correct": luck.random() < 0.5, "code": luck.random() < chance}
                row = made(step, slot, **where, **drawn)
                stored += [row] if row["correct"] else []
                yield row


@pytest.fixture(scope="module", params=[True, False], ids=["by marker", "by chance"])
def by_marker(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module", params=[0.0, SPREAD], ids=["nothing", "spread"])
def spread(request: pytest.FixtureRequest) -> float:
    return float(request.param)


@pytest.fixture(scope="module")
def asked(by_marker: bool, spread: float) -> dict[str, pl.DataFrame]:
    queries = ("snowball_dose_response", "snowball_event_study")
    with made_catalog(runs=[RUN], trajectories=World(by_marker, spread).rows()) as connection:
        return {name: answer(connection, name, marker="code") for name in queries}


def test_a_change_is_what_replay_did(asked: dict[str, pl.DataFrame], spread: float) -> None:
    """The first marked replay spreads marks, if any does; the next ones change nothing more."""
    frame = asked["snowball_dose_response"]
    doses = {row["dose"]: row for row in frame.to_dicts() if row["compared"] > 100}
    assert doses.keys() >= {1, 2, 3}
    for dose, row in doses.items():
        # The difference of two shares, each of one right answer or more.
        error = (2 * 0.25 / row["compared"]) ** 0.5
        assert row["change"] == pytest.approx(spread if dose == 1 else 0, abs=2 * error), dose
    assert doses[1]["compared"] > 1500  # so that a change of 0.05 would be seen


def test_an_effect_is_what_replay_did(
    asked: dict[str, pl.DataFrame], by_marker: bool, spread: float
) -> None:
    """Later marked replays of the controls spread marks too: the effect is that of visit 1."""
    rows = {row["relative"]: row for row in asked["snowball_event_study"].to_dicts()}
    assert rows.keys() == {-3, -2, -1, 0, 1, 2, 3}
    assert all(row["effect"] is None for visit, row in rows.items() if visit < 0)
    assert abs(rows[-1]["gap"]) > (0.15 if by_marker else 0.02)  # it shows the choice
    for visit in (0,) if spread else (0, 2, 3):
        assert rows[visit]["gap"] == pytest.approx(0, abs=3 * gap_error(rows[visit]))
    error = (gap_error(rows[0]) ** 2 + gap_error(rows[1]) ** 2) ** 0.5
    assert rows[1]["effect"] == pytest.approx(spread, abs=3 * error)
    assert 3 * error < 0.1


def gap_error(row: dict[str, float]) -> float:
    """Standard error of the difference of two shares."""
    variances = [
        row[f"{side}_share"] * (1 - row[f"{side}_share"]) / row[f"{side}_right"]
        for side in ("treated", "control")
    ]
    return float(sum(variances) ** 0.5)
