"""`exgrpo history`: a history made up by hand, the recorded run of ../shared, and bad files."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exgrpo.errors import UserError
from pipeline.cli import main
from pipeline.history import read_history, run_history
from pipeline.history_report import DRAWN, FRESH, Later, Report, report_on

K = 8
Captured = pytest.CaptureFixture[str]


# ---- by hand ----

BY_HAND = {
    "never": [0, 0, 0, 0],
    "solved": [4, 4, 2, 4],  # retired by its first visit of 4 rollouts
    "stale": [3, 0, 0],
    "rises": [0, 1, 2, 3],
    "at once": [4],
}


def test_a_history_by_hand() -> None:
    """K = 4. One step an epoch, so nothing is drawn before epoch 2."""
    report = report_on("by hand", BY_HAND, 4)
    shown = [
        (each.visited, each.outside, each.buckets, each.stale, each.retired, each.trajectories)
        for each in report.occupancy
    ]
    assert shown == [
        (5, 2, [0, 0, 1], 0, 2, 3),
        (4, 1, [1, 0, 1], 1, 2, 4),
        (4, 1, [0, 1, 1], 1, 2, 6),
        (3, 1, [0, 0, 2], 1, 2, 9),
    ]
    accuracies = [11 / 20, 5 / 16, 4 / 16, 7 / 12]
    assert [each.accuracy for each in report.occupancy] == pytest.approx(accuracies)
    found = report.forgetting
    assert (found.solved, found.visited_again, found.kept) == (2, 1, 0)
    assert found.later == Later((1, None), 3, 1 / 3, 0.0, (10 / 3) / 4)
    assert found.by_lag[0] == Later((1, 1), 1, 0.0, 0.0, 1.0)
    assert found.by_lag[1] == Later((2, 5), 2, 0.5, 0.0, 0.75)
    assert found.by_lag[2] == Later((6, 10), 0, None, None, None)
    for draws in report.draws:  # fewer in the buffer than are drawn: all of them, every step
        assert (draws.draws, draws.distinct, draws.most_drawn, draws.most) == (5, 2, "stale", 3)
        assert draws.bucket_shares == [1 / 5, 1 / 5, 3 / 5]
        assert draws.half == 1


def test_half_of_the_draws_may_be_taken_exactly() -> None:
    """Both questions are drawn once: the first takes half."""
    report = report_on("two", {"a": [1, 1], "b": [1, 1]}, 4)
    assert {(each.draws, each.half) for each in report.draws} == {(2, 1)}


def test_a_history_without_any_success(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "history.json"
    file.write_text('{"1": [0, 0.0], "2": [0]}')
    run_history(file, K, as_json=False)
    out = capsys.readouterr().out
    assert "0 questions have a solved visit" in out
    run_history(file, K, as_json=True)
    draws = json.loads(capsys.readouterr().out)["draws"]
    assert {(each["draws"], each["half"], each["most_drawn"]) for each in draws} == {(0, 0, None)}


# ---- the recorded run ----


@pytest.fixture(scope="module")
def recorded() -> tuple[dict[str, list[float]], Report]:
    """The accuracies as they are in the file, and our report on them."""
    file = Path(__file__).resolve().parents[2] / "shared/data/rlvr-train/acc_step_500.json"
    if not file.is_file():
        pytest.skip("needs ../shared/data/rlvr-train/acc_step_500.json, not part of the repo")
    return json.loads(file.read_text()), report_on(file.name, read_history(file, K), K)


def test_occupancy_of_the_recorded_run(recorded: tuple[dict[str, list[float]], Report]) -> None:
    accuracies, report = recorded
    assert (report.questions, report.visits) == (1209, 64_000)
    assert len(report.occupancy) == 57
    for each in report.occupancy:
        buckets, retired, stale, kept = Counter[int](), 0, 0, 0
        for values in accuracies.values():
            past = values[: each.epoch]
            if 1.0 in past:
                retired += 1
            elif any(past):
                buckets[int(K * [value for value in past if value][-1])] += 1
                stale += past[-1] == 0
                kept += int(K * sum(past))
        assert each.buckets == [buckets[k] for k in range(1, K)]
        assert (each.retired, each.stale, each.trajectories) == (retired, stale, kept)
        assert each.outside == len(accuracies) - sum(buckets.values()) - retired
        now = [
            values[each.epoch - 1] for values in accuracies.values() if len(values) >= each.epoch
        ]
        assert each.visited == len(now)
        assert each.accuracy == pytest.approx(sum(now) / len(now))
    first, last = report.occupancy[0], report.occupancy[-1]
    assert (first.outside, first.retired) == (439, 92), "as ../shared/data/README.md has it"
    assert (last.outside, last.retired) == (99, 497)


def test_forgetting_in_the_recorded_run(recorded: tuple[dict[str, list[float]], Report]) -> None:
    accuracies, report = recorded
    later: list[tuple[int, float]] = []  # visits since the first solved one, accuracy
    solved = again = kept = 0
    for values in accuracies.values():
        since, here = 0, []
        for value in values:
            if since:
                here.append((since, value))
            if since or value == 1.0:
                since += 1
        solved += since > 0
        again += bool(here)
        kept += bool(here) and all(value == 1.0 for _, value in here)
        later += here
    found = report.forgetting
    assert (found.solved, found.visited_again, found.kept) == (solved, again, kept)
    for each in (found.later, *found.by_lag):
        first, last = each.lag
        values = [value for since, value in later if first <= since <= (last or since)]
        assert each.visits == len(values)
        assert each.unsolved == pytest.approx(sum(value < 1 for value in values) / len(values))
        assert each.failed == pytest.approx(sum(value == 0 for value in values) / len(values))
        assert each.accuracy == pytest.approx(sum(values) / len(values))
    assert found.later.visits == sum(each.visits for each in found.by_lag)
    # Retirement takes one lucky group for mastery: the very next visit is mostly below 8 of 8.
    assert found.by_lag[0].unsolved == pytest.approx(0.72, abs=0.005)
    assert found.later.accuracy == pytest.approx(0.90, abs=0.005)


def test_draws_of_the_recorded_run(recorded: tuple[dict[str, list[float]], Report]) -> None:
    """Against the mean of what each convention should draw, step after step, in plain Python.

    Overflow is left out of that mean: it moves less than a share of 0.005.
    """
    accuracies, report = recorded
    latest: dict[str, int] = {}
    retired: set[str] = set()
    total, expected = 0, {each.convention: np.zeros(K - 1) for each in report.draws}
    gaussian = np.array([np.exp(-((k - 4) ** 2) / 2) for k in range(1, K)])
    wide = np.array([np.exp(-((k / K - 0.5) ** 2) / 2) for k in range(1, K)])
    for epoch in range(max(map(len, accuracies.values()))):
        visited = [question for question, values in accuracies.items() if len(values) > epoch]
        for start in range(0, len(visited), FRESH):
            sizes = np.array([list(latest.values()).count(k) for k in range(1, K)], float)
            drawn = min(DRAWN, int(sizes.sum()))
            total += drawn
            weights = {
                "gaussian, counts": gaussian * (sizes > 0),
                "gaussian, accuracy": wide * (sizes > 0),
                "uniform": 1.0 * (sizes > 0),
                "questions": sizes,
            }
            for name, weight in weights.items():
                expected[name] += drawn * weight / max(weight.sum(), 1e-9)
            for question in visited[start : start + FRESH]:
                k = round(K * accuracies[question][epoch])
                if k == K:
                    retired.add(question)
                    latest.pop(question, None)
                elif k and question not in retired:
                    latest[question] = k
    assert (FRESH, DRAWN) == (16, 16)
    for each in report.draws:
        mean = expected[each.convention] / total
        assert each.draws == total
        assert sum(each.bucket_shares) == pytest.approx(1)
        assert np.abs(each.bucket_shares - mean).max() < 0.005 + 5 * (0.25 / total) ** 0.5
        assert each.half <= each.distinct <= 1209 and each.most >= total / each.distinct
    counts, accuracy, _, questions = report.draws
    # In counts nearly nine draws in ten go to buckets 3 to 5, so to fewer questions, more often; in
    # accuracy units hardly more than the three sevenths of a uniform draw.
    assert sum(counts.bucket_shares[2:5]) > 0.85 > 0.45 > sum(accuracy.bucket_shares[2:5])
    assert counts.distinct < accuracy.distinct and counts.half < accuracy.half < questions.half


# ---- the command ----


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Command:
    """`exgrpo history ...` in this process: exit code, output, errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["exgrpo", "history", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capsys.readouterr()

    return run


def test_the_command_prints_tables_or_json(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "history.json"
    file.write_text(json.dumps({q: [k / 4 for k in counts] for q, counts in BY_HAND.items()}))
    code, out, _ = command(str(file), "--group-size", "4", "--json")
    expected = asdict(report_on("history.json", BY_HAND, 4))
    assert (code, json.loads(out)) == (0, json.loads(json.dumps(expected)))
    code, out, _ = command(str(file), "--group-size", "4")
    lines = [line.split() for line in out.splitlines()]
    assert ["epoch", "1", "2", "3", "4"] in lines
    assert ["bucket", "3", "1", "1", "1", "2"] in lines
    assert ["retired", "2", "2", "2", "2"] in lines
    assert ["all", "3", "0.333", "0.000", "0.833"] in lines
    assert ["6", "to", "10", "0", "-", "-", "-"] in lines
    assert ["most", "drawn", "3", "3", "3", "3"] in lines


def test_names_of_questions_are_shown_and_not_obeyed(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "history.json"
    file.write_text(json.dumps({"[red]\x1b[31mq": [0.5, 0.5]}))
    run_history(file, K, as_json=False)
    out = capsys.readouterr().out
    assert "\x1b" not in out and r"[red]\x1b[31mq" in out


@pytest.mark.parametrize(
    "content, told",
    [
        ('{"7": [0.5, 0.3]}', ["key '7', visit 2", "0.3 of 8 rollouts is 2.4", "--group-size"]),
        ('{"7": [0.5, 1.125]}', ["key '7', visit 2", "1.125", "from 0 to 1"]),
        ('{"7": [-0.125]}', ["key '7', visit 1", "-0.125", "from 0 to 1"]),
        ('{"7": [NaN]}', ["key '7', visit 1", "NaN", "from 0 to 1"]),
        ('{"7": [1e999]}', ["key '7', visit 1", "Infinity", "from 0 to 1"]),
        ('{"7": [true]}', ["key '7', visit 1", "true", "from 0 to 1"]),
        ('{"7": ["0.5"]}', ["key '7', visit 1", '"0.5"', "from 0 to 1"]),
        ('{"7": [null]}', ["key '7', visit 1", "null", "from 0 to 1"]),
        ('{"7": []}', ["key '7'", "[]", "list of its accuracies"]),
        ('{"7": 0.5}', ["key '7'", "0.5", "list of its accuracies"]),
        ('{"7": [0.5], "7": [1]}', ["key '7' occurs twice"]),
        ("{}", ["holds {}", "JSON object"]),
        ("[0.5]", ["holds [0.5]", "JSON object"]),
        ("", ["cannot be read", "JSON object"]),
        ('{"7": [0.5}', ["cannot be read", "line 1"]),
        ("[" * 100_000, ["cannot be read", "JSON object"]),
        (b"\xff\xfe{", ["cannot be read", "JSON object"]),
        (None, ["cannot be read", "No such file"]),
    ],
)
def test_a_bad_file_is_told_with_key_value_and_remedy(
    content: Any, told: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "history.json"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as error:
        read_history(file, K)
    for part in (str(file), *told):
        assert part in str(error.value)


def test_shares_with_few_digits_are_whole_numbers_of_rollouts(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text('{"7": [0.333, 0.667, 1, 0]}')
    assert read_history(file, 3) == {"7": [1, 2, 3, 0]}


def test_a_bad_file_ends_with_code_two(tmp_path: Path, command: Command) -> None:
    code, out, told = command(str(tmp_path / "none.json"))
    assert (code, out) == (2, "")
    assert told.startswith("error: ") and "none.json" in told
