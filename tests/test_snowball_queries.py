"""The queries of the snowball detector against plain loops over the golden lake; what it shows."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from golden_lake import rows as golden_rows
from replay_loops import (
    RUN,
    History,
    Rows,
    assert_same,
    histories,
    made,
    made_catalog,
    marked,
    replay_of,
    start_of,
)

from analysis.drawing import study_facts
from analysis.errors import UserError
from analysis.observations.snowball import SNOWBALL
from analysis.queries import answer
from analysis.snowball import ask, detect
from pipeline.snowball import show_snowball

MARKERS = ["flawed", "shortcut", "code", "repetition"]


@pytest.fixture(scope="module")
def history() -> list[History]:
    return list(histories(golden_rows("trajectories"), golden_rows("runs")))


def known(rows: Rows, marker: str) -> tuple[int, int]:
    """How many have a marker that is known, and how many of them are marked."""
    values = [marked(row, marker) for row in rows]
    return sum(value is not None for value in values), sum(value is True for value in values)


def right(rows: Rows) -> Rows:
    return [row for row in rows if row["correct"]]


@pytest.mark.parametrize(("marker", "window"), [("flawed", 10), ("shortcut", 4), ("code", 10)])
def test_snowball_fresh(
    golden: duckdb.DuckDBPyConnection, history: list[History], marker: str, window: int
) -> None:
    cells: dict[tuple[Any, ...], list[tuple[int, int]]] = defaultdict(list)
    for each in history:
        for visit in each.visits:
            counts = known(right(visit.fresh), marker)
            if counts[0] and not visit.first["experiential"]:
                start = start_of(visit.step, window)
                cells[each.study, each.arm, each.seed, each.run, start, each.question].append(
                    counts
                )
    names = ("study", "arm", "seed", "run", "window_start", "question")
    expected = [
        dict(zip(names, cell, strict=True))
        | {"right_fresh": sum(n for n, _ in counts), "marked": sum(m for _, m in counts)}
        for cell, counts in cells.items()
    ]
    frame = answer(golden, "snowball_fresh", marker=marker, window=window)
    assert_same(frame, expected, *names)
    assert frame["marked"].sum() > 0 or marker == "code"


@pytest.mark.parametrize("marker", ["flawed", "code"])
def test_snowball_counts(
    golden: duckdb.DuckDBPyConnection, history: list[History], marker: str
) -> None:
    runs: dict[tuple[Any, ...], list[tuple[int, int, int, int]]] = defaultdict(list)
    for each in history:
        for visit in each.visits:
            counts = (*known(right(visit.fresh), marker), *known(visit.replays, marker))
            runs[each.study, each.arm, each.seed, each.run].append(counts)
    names = ("study", "arm", "seed", "run")
    columns = ("right_fresh", "marked", "replayed", "replayed_marked")
    expected = [
        dict(zip(names, run, strict=True))
        | dict(zip(columns, map(sum, zip(*counts, strict=True)), strict=True))
        for run, counts in runs.items()
    ]
    frame = answer(golden, "snowball_counts", marker=marker)
    assert_same(frame, expected, *names)
    assert frame["replayed_marked"].sum() > 0 or marker == "code"


@pytest.mark.parametrize("marker", ["flawed", "shortcut"])
def test_snowball_visits(
    golden: duckdb.DuckDBPyConnection, history: list[History], marker: str
) -> None:
    expected = []
    for each in history:
        replayed = [bool(visit.replays) for visit in each.visits]
        if True not in replayed:
            continue
        for place, visit in enumerate(each.visits):
            if place < replayed.index(True):
                continue
            earlier = [row for before in each.visits[:place] for row in right(before.fresh)]
            names = ("study", "arm", "seed", "run", "question")
            row = {name: getattr(each, name) for name in names}
            row |= {"visit": place + 1, "step": visit.step, "bucket": visit.first["bucket_drawn"]}
            row["replayed"], row["replayed_marked"] = known(visit.replays, marker)
            row["earlier_right"], row["earlier_marked"] = known(earlier, marker)
            row["right_fresh"], row["marked"] = known(right(visit.fresh), marker)
            expected.append(row)
    frame = answer(golden, "snowball_visits", marker=marker)
    assert_same(frame, expected, "study", "arm", "seed", "run", "question", "visit")
    assert frame["replayed_marked"].sum() > 0 and frame["earlier_marked"].sum() > 0


def test_what_is_not_known_is_not_counted_by_hand() -> None:
    unknown: dict[str, Any] = {"code": None, "repetition": None, "response": None}
    rows = [
        made(1, code=True),
        replay_of("r:1:0:0", 2, code=True),
        made(2, 1, **unknown),
        made(3, code=True),
        made(3, 1, correct=False, code=True),
    ]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        frame = answer(connection, "snowball_visits", marker="code")
    columns = ("visit", "replayed", "replayed_marked", "earlier_right", "right_fresh", "marked")
    # Of visit 2 the log knows the replay's marker, and of its right answer none: counted unmarked.
    assert frame.select(columns).rows() == [(2, 1, 1, 1, 1, 0), (3, 0, 0, 2, 1, 1)]


@pytest.mark.parametrize("study", ["golden", "imports"])
def test_the_observation_is_drawn_and_told_on_any_lake(
    golden: duckdb.DuckDBPyConnection, study: str
) -> None:
    frames = ask(golden, study)
    facts = study_facts(study, answer(golden, "study_runs", study=study))
    plot = SNOWBALL.draw(facts, frames)
    drawn = {trace.name for trace in plot.data} & set(facts.arms)
    assert drawn == set(frames["snowball_fresh"]["arm"])
    lines = SNOWBALL.lines(frames)
    found = detect(frames)
    untested = found.verdict == "not testable here"
    verdict = "Not here: a verdict on a snowball. " if untested else "Snowball of marker `flawed`: "
    assert lines[0].startswith(verdict)
    assert sum(line.startswith("Not here: ") for line in lines[1:]) == sum(
        part.value is None for part in found.parts
    )
    nothing = {name: frame.clear() for name, frame in frames.items()}
    assert "Nothing to show" in SNOWBALL.draw(facts, nothing).layout.annotations[-1].text
    assert SNOWBALL.lines(nothing)[0].startswith("Not here: a verdict on a snowball. ")


@pytest.mark.parametrize("marker", MARKERS)
def test_the_command_prints_every_part(
    golden_path: Path, capsys: pytest.CaptureFixture[str], marker: str
) -> None:
    show_snowball(golden_path.parent, "golden", marker)
    page = capsys.readouterr().out
    assert f"study golden, marker {marker}" in page and "\nverdict: " in page
    assert all(len(line) <= 96 for line in page.splitlines())
    show_snowball(golden_path.parent, "golden", marker, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert f"\nverdict: {told['verdict']}\n" in page
    names = [part["name"] for part in told["parts"]]
    assert names == ["arms contrast", "event study", "dose-response", "placebo", "inheritance"]


@pytest.mark.parametrize(
    ("study", "marker", "message"),
    [("nosuch", "flawed", "no study 'nosuch'"), ("golden", "flaw", "not flaw$")],
)
def test_a_wrong_study_or_marker_is_an_error(
    golden_path: Path, study: str, marker: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        show_snowball(golden_path.parent, study, marker)
