"""The derived tables against plain loops written from what `exgrpo/tables/derived.py` says."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
from golden_lake import rows
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.compaction import compact
from exgrpo.records import Recorder
from exgrpo.tables import DERIVED, TABLES
from exgrpo.tables.manifest import live_parts

Row = dict[str, Any]
NAMES = [table.name for table in DERIVED]


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def share(group: Row) -> float | None:
    return group["right"] / group["graded"] if group["graded"] else None


def visits(trajectories: Sequence[Row]) -> list[Row]:
    """One row a group, and what the visits before and after it of its question were."""
    members: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in trajectories:
        members[row["run"], row["step"], row["group"]].append(row)
    groups = [one_group(key, members[key]) for key in sorted(members)]
    of_question: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for group in groups:
        of_question[group["run"], group["question"]].append(group)
    for seen in of_question.values():
        for number, group in enumerate(seen, start=1):
            before = seen[number - 2] if number > 1 else None
            after = seen[number] if number < len(seen) else None
            group |= {
                "visit": number,
                "success_share": share(group),
                "previous_step": before and before["step"],
                "previous_successes": before and before["successes"],
                "previous_bucket": before and before["bucket"],
                "previous_share": before and share(before),
                "next_step": after and after["step"],
                "next_share": after and share(after),
            }
    return groups


def one_group(key: tuple[Any, ...], members: Sequence[Row]) -> Row:
    fresh = [row for row in members if not row["replayed"]]
    replayed = [row for row in members if row["replayed"]]
    right = [row for row in fresh if row["correct"] is True]
    responses = [row["response"] for row in fresh if row["response"] is not None]
    ends = {row["finish"] for row in members} - {None}
    first = members[0]
    return {
        **dict(zip(("run", "step", "group"), key, strict=True)),
        **{name: first[name] for name in ("question", "level", "experiential", "bucket_drawn")},
        "bucket": first["bucket"],
        "successes": first["group_successes"],
        "size": first["group_size"],
        "fresh": len(fresh),
        "graded": sum(row["correct"] is not None for row in fresh),
        "right": len(right),
        "mean_entropy": mean(row["mean_entropy"] for row in fresh),
        "length": mean(row["length"] for row in fresh),
        "truncated": sum(row["finish"] == "length" for row in fresh) if ends else None,
        "distinct": len(set(responses)) or None,
        "distinct_plain": len({"".join(each.split()).lower() for each in responses}) or None,
        "replayed": len(replayed),
        **marks(right, members, ""),
        **marks(replayed, members, "replayed_"),
    }


def marks(of: Sequence[Row], group: Sequence[Row], prefix: str) -> Row:
    """How many chains could be checked, how many of them are flawed, how many have each marker.

    None for a marker that is known of nothing in the group.
    """
    checked = [row["chain_valid"] for row in of if row["chain_valid"] is not None]
    counts: Row = dict.fromkeys(MARKERS)
    for name in MARKERS:
        if any(row[name] is not None for row in group):
            counts[name] = sum(row[name] is True for row in of)
    counts |= {"checked": len(checked), "flawed": checked.count(False)}
    return {prefix + name: count for name, count in counts.items()}


MARKERS = ("shortcut", "code", "repetition")


def logged_entropies(
    trajectories: Sequence[Row], tokens: Sequence[Row]
) -> list[tuple[tuple[Any, ...], int, int, int, float]]:
    """(run, replayed, correct), token id, place, tokens of its response, entropy: if logged."""
    of = {row["trajectory"]: row for row in trajectories}
    found = []
    for row in tokens:
        whose = of[row["trajectory"]]
        kind = whose["run"], whose["replayed"], whose["correct"]
        entropies = row["entropies"] or []
        for place, entropy in enumerate(entropies):
            found.append((kind, row["token_ids"][place], place, len(entropies), entropy))
    return found


def token_profile(trajectories: Sequence[Row], tokens: Sequence[Row]) -> list[Row]:
    sums: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for kind, _, place, length, entropy in logged_entropies(trajectories, tokens):
        tenth = next(tenth for tenth in range(10) if place * 10 < (tenth + 1) * length)
        sums[*kind, tenth].append(entropy)
    names = ("run", "replayed", "correct", "tenth")
    return [
        dict(zip(names, key, strict=True))
        | {
            "tokens": len(values),
            "summed_entropy": sum(values),
            "summed_square": sum(value * value for value in values),
        }
        for key, values in sums.items()
    ]


def token_totals(trajectories: Sequence[Row], tokens: Sequence[Row]) -> list[Row]:
    """High is what is not below the run's 0.8 quantile, between two values on the line."""
    logged = logged_entropies(trajectories, tokens)
    of_run: dict[str, list[float]] = defaultdict(list)
    for (run, *_), *_, entropy in logged:
        of_run[run].append(entropy)
    bound = {run: quantile(values) for run, values in of_run.items()}
    sums: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for kind, token, *_, entropy in logged:
        sums[*kind, token].append(entropy)
    names = ("run", "replayed", "correct", "token_id")
    return [
        dict(zip(names, key, strict=True))
        | {
            "tokens": len(values),
            "high": sum(value >= bound[key[0]] for value in values),
            "summed_entropy": sum(values),
        }
        for key, values in sums.items()
    ]


def quantile(values: Sequence[float]) -> Fraction:
    """The 0.8 quantile: of n values in order, the one at place 0.8 (n - 1), without rounding."""
    ordered = sorted(map(Fraction, values))
    place = Fraction(4, 5) * (len(ordered) - 1)
    low = ordered[int(place)]
    high = ordered[min(int(place) + 1, len(ordered) - 1)]
    return low + (place - int(place)) * (high - low)


def expected(trajectories: Sequence[Row], tokens: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        "visits": visits(trajectories),
        "token_profile": token_profile(trajectories, tokens),
        "token_totals": token_totals(trajectories, tokens),
    }


def assert_same(table: str, found: Sequence[Row], wanted: Sequence[Row]) -> None:
    """The same rows, whatever their order; floats but for rounding."""
    names, key = TABLES[table].names, TABLES[table].order

    def in_order(many: Sequence[Row]) -> list[Row]:
        picked = [{name: row[name] for name in names} for row in many]
        return sorted(picked, key=lambda row: [str(row[name]) for name in key])

    for row, other in zip(in_order(found), in_order(wanted), strict=True):
        assert row == {name: close(value, row[name]) for name, value in other.items()}


def close(wanted: Any, found: Any) -> Any:
    """The found value where it is the wanted float but for rounding; else the wanted value."""
    floats = isinstance(wanted, float) and isinstance(found, float)
    return found if floats and isclose(wanted, found, rel_tol=1e-9, abs_tol=1e-12) else wanted


@pytest.mark.parametrize("table", NAMES)
def test_golden_lake(table: str, golden: duckdb.DuckDBPyConnection) -> None:
    wanted = expected(rows("trajectories"), rows("tokens"))[table]
    assert wanted
    assert_same(table, rows(table), wanted)
    assert_same(table, golden.sql(f"FROM {table}").pl().to_dicts(), wanted)


# Few values each, so that they meet: eighths are exact in any float, spaces and cases collide.
MAYBE = st.sampled_from([None, True, False])
EIGHTHS = st.integers(0, 12).map(lambda number: number / 8)
RESPONSES = st.text("aA \n1", max_size=3)


@st.composite
def groups(draw: st.DrawFn) -> list[Row]:
    """The rows of one group, each with its tokens: what the group shares is the same in all."""
    shared = {
        "question": draw(st.sampled_from("pqr")),
        "level": draw(st.sampled_from([None, 1, 4])),
        "experiential": draw(st.booleans()),
        "bucket_drawn": draw(st.sampled_from([None, 2])),
        "bucket": draw(st.sampled_from([None, 1, 3])),
        "group_successes": draw(st.integers(0, 4)),
        "group_size": draw(st.integers(0, 4)),
    }
    graded, texts = draw(st.booleans()), draw(st.booleans())
    return [
        shared
        | {
            "replayed": draw(st.booleans()),
            "trained": draw(st.booleans()),
            "correct": draw(MAYBE) if graded else None,
            "mean_entropy": draw(st.none() | EIGHTHS),
            "length": draw(st.none() | st.integers(0, 9)),
            "finish": draw(st.sampled_from([None, "stop", "length"])),
            "response": draw(st.none() | RESPONSES) if texts else None,
            "chain_valid": draw(MAYBE),
            **{name: draw(MAYBE) for name in MARKERS},
            "entropies": draw(st.none() | st.lists(EIGHTHS, max_size=13)),
            "first_token": draw(st.integers(0, 2)),
        }
        for _ in range(draw(st.integers(1, 4)))
    ]


LOGS = st.lists(st.lists(groups(), min_size=1, max_size=3), min_size=1, max_size=4)


def as_logged(run: str, log: Sequence[Sequence[Sequence[Row]]]) -> list[tuple[int, Row, Row]]:
    """Step, row of `trajectories` and row of `tokens` of every trajectory."""
    found = []
    for step, members in enumerate(log, start=1):
        for group, drawn in enumerate(members):
            for slot, row in enumerate(drawn):
                key: Row = {"trajectory": f"{run}:{step}:{group}:{slot}", "run": run, "step": step}
                key |= {"group": group, "slot": slot}
                count = len(row["entropies"] or [])
                tokens = {
                    "token_ids": ([row["first_token"], 7] * count)[:count],
                    "entropies": row["entropies"],
                }
                rest = {name: row[name] for name in row if name in TABLES["trajectories"].names}
                found.append((step, key | rest, key | tokens))
    return found


@settings(max_examples=40, deadline=None)
@given(LOGS)
def test_any_log(log: list[list[list[Row]]]) -> None:
    """Nulls, ungraded groups, replays, dropped rows, a question twice in a step, empty lists."""
    run = "arm-s0-00000000"
    logged = as_logged(run, log)
    with TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder) / "log")
        for step in range(1, len(log) + 1):
            recorder.add("trajectories", [row for at, row, _ in logged if at == step])
            recorder.add("tokens", [row for at, _, row in logged if at == step])
            recorder.flush(step, step)
        parts: dict[str, list[Path]] = defaultdict(list)
        for part in live_parts(recorder.log):
            parts[part.table].append(recorder.log / part.path)
        lake = Path(folder) / "lake"
        entry = compact(run, "study", {"run": run, "study": "study"}, parts, lake)
        assert {*parts, *NAMES} == set(entry.tables)
        wanted = expected([row for _, row, _ in logged], [row for *_, row in logged])
        for table in NAMES:
            assert entry.tables[table].rows == len(wanted[table])
            assert_same(table, rows(table, lake), wanted[table])
