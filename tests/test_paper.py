"""The paper's own tables, and every question about them against plain Python over the CSV files."""

import csv
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.errors import UserError
from analysis.paper import QUESTIONS, TABLES, ask, paper_queries, table

FOLDER = Path(__file__).resolve().parents[1] / "analysis" / "paper"
Key = tuple[str, ...]
MAIN = "Qwen2.5-Math-7B"


def read(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def answers(name: str, *keys: str) -> dict[Key, dict[str, Any]]:
    """The rows of an answer by their key, which must be one."""
    frame = ask(name)
    rows = {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}
    assert len(rows) == frame.height
    return rows


@pytest.fixture(scope="module")
def parts() -> dict[Key, list[tuple[float, int | None]]]:
    """Scores and numbers of questions of a backbone, method and domain."""
    sizes = {row["benchmark"]: row for row in read("benchmarks")}
    found: dict[Key, list[tuple[float, int | None]]] = defaultdict(list)
    for row in read("scores"):
        benchmark = sizes[row["benchmark"]]
        questions = int(benchmark["questions"]) if benchmark["questions"] else None
        key = (row["backbone"], row["method"], benchmark["domain"])
        found[key].append((float(row["score"]), questions))
    return found


@pytest.fixture(scope="module")
def averages() -> dict[Key, float]:
    return {
        (row["backbone"], row["method"], row["domain"]): float(row["average"])
        for row in read("printed_averages")
    }


def error_of(scores: list[tuple[float, int | None]]) -> float | None:
    """The binomial standard error of a mean of benchmarks, in points."""
    variances = [100**2 * (s / 100) * (1 - s / 100) / n for s, n in scores if n]
    return math.sqrt(sum(variances)) / len(scores) if variances else None


@pytest.mark.parametrize("name", TABLES)
def test_tables_hold_figures_and_no_prose(name: str) -> None:
    rows = read(name)
    assert rows and list(rows[0]) == list(TABLES[name])
    assert table(name).height == len(rows)
    assert all(len(value) <= 30 for row in rows for value in row.values())
    texts = [column for column, kind in TABLES[name].items() if kind == pl.String()]
    keys = [tuple(row[column] for column in texts) for row in rows]
    assert len(keys) == len(set(keys)) and all(all(key) for key in keys)


def test_every_file_is_a_table_or_a_question() -> None:
    assert {path.stem for path in FOLDER.glob("*.csv")} == {*TABLES}
    assert {path.stem for path in FOLDER.glob("*.sql")} == {*QUESTIONS}
    with pytest.raises(UserError, match="unknown question 'gain'"):
        ask("gain")


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_declares_its_columns(name: str) -> None:
    query, frame = paper_queries()[name], ask(name)
    assert frame.columns == list(query.columns) and query.purpose and query.grain
    assert not query.parameters and frame.height
    assert not any(isinstance(kind, pl.Decimal) for kind in frame.schema.values())


def test_every_printed_average_against_its_parts(
    parts: dict[Key, list[tuple[float, int | None]]], averages: dict[Key, float]
) -> None:
    rows = answers("recomputed_averages", "backbone", "method", "domain")
    assert {*rows} == {*parts} == {key for key in averages if key in parts}
    wrong = {}
    for key, row in rows.items():
        mean = sum(score for score, _ in parts[key]) / len(parts[key])
        assert row["recomputed"] == pytest.approx(mean)
        assert row["difference"] == pytest.approx(averages[key] - mean)
        assert row["agrees"] == (abs(averages[key] - mean) < 0.1 + 1e-9)
        if not row["agrees"]:
            wrong[key] = (row["printed"], round(row["recomputed"], 1))
    # The paper prints 41.6 where the row's scores have the mean 53.7.
    assert wrong == {(MAIN, "GPG-Zero", "out of distribution"): (41.6, 53.7)}


def test_item_errors(
    parts: dict[Key, list[tuple[float, int | None]]], averages: dict[Key, float]
) -> None:
    rows = answers("item_errors", "backbone", "method", "domain")
    assert {*rows} == {*averages}
    for key, row in rows.items():
        scores = parts.get(key, [])
        assert row["average"] == averages[key] and row["benchmarks"] == len(scores)
        assert row["sized"] == sum(n is not None for _, n in scores)
        expected = error_of(scores)
        assert row["standard_error"] == (None if expected is None else pytest.approx(expected))
    inside = "in distribution"
    for method in ("on-policy", "ExGRPO"):
        assert 2.0 < rows[MAIN, method, inside]["standard_error"] < 2.15
        assert 1.6 < rows["Qwen2.5-Math-1.5B", method, inside]["standard_error"] < 1.8


def test_gaps(parts: dict[Key, list[tuple[float, int | None]]], averages: dict[Key, float]) -> None:
    rows = answers("gaps", "backbone", "domain", "first", "second")
    pairs = {
        (backbone, domain, first, second)
        for backbone, first, domain in averages
        for other, second, where in averages
        if (other, where) == (backbone, domain) and first != second
    }
    assert {*rows} == pairs
    for (backbone, domain, first, second), row in rows.items():
        gap = averages[backbone, first, domain] - averages[backbone, second, domain]
        errors = [error_of(parts.get((backbone, each, domain), [])) for each in (first, second)]
        assert row["gap"] == pytest.approx(gap)
        if None in errors:
            assert row["standard_error"] is None and row["beyond_two_errors"] is None
        else:
            error = math.hypot(*errors)
            assert row["standard_error"] == pytest.approx(error)
            assert row["beyond_two_errors"] == (abs(gap) > 2 * error)


def test_gains_and_what_one_backbone_makes_of_their_mean() -> None:
    rows = answers("gains", "backbone", "domain")
    # By hand, from the tables: in and out of distribution.
    by_hand = {
        MAIN: (3.0, 1.9),
        "Qwen2.5-Math-1.5B": (5.3, 1.3),
        "Qwen2.5-7B-Instruct": (4.1, 6.2),
        "Llama-3.1-8B": (2.7, 29.6),
        "Llama-3.1-8B-Instruct": (3.1, 7.1),
        "LUFFY-7B": (2.7, -0.5),
    }
    gaps = answers("gaps", "backbone", "domain", "first", "second")
    assert len(rows) == 12
    for (backbone, domain), row in rows.items():
        assert row["gain"] == pytest.approx(by_hand[backbone][domain.startswith("out")])
        gap = gaps[backbone, domain, "ExGRPO", "on-policy"]
        assert row["exgrpo"] - row["on_policy"] == pytest.approx(gap["gap"])
        assert row["standard_error"] == gap["standard_error"]
        assert row["beyond_two_errors"] == gap["beyond_two_errors"]
    for (left_out, domain), row in answers("mean_gains", "left_out", "domain").items():
        gains = {name: both[domain.startswith("out")] for name, both in by_hand.items()}
        others = [gain for name, gain in gains.items() if name != left_out]
        assert row["gain"] == pytest.approx(gains[left_out]) and row["backbones"] == 6
        assert row["mean_gain"] == pytest.approx(sum(gains.values()) / 6)
        assert row["mean_without"] == pytest.approx(sum(others) / 5)
    found = answers("mean_gains", "left_out", "domain")
    inside, outside = (found["Llama-3.1-8B", f"{where} distribution"] for where in ("in", "out of"))
    assert [round(inside[name], 2) for name in ("mean_gain", "mean_without")] == [3.48, 3.64]
    assert [round(outside[name], 2) for name in ("mean_gain", "mean_without")] == [7.60, 3.20]
    luffy = found["LUFFY-7B", "out of distribution"]
    assert round(luffy["mean_without"], 2) == 9.22


def test_the_gain_by_benchmark() -> None:
    rows = answers("benchmark_gains", "backbone", "benchmark")
    scores = {
        (r["backbone"], r["method"], r["benchmark"]): float(r["score"]) for r in read("scores")
    }
    sizes = {row["benchmark"]: row for row in read("benchmarks")}
    for (backbone, benchmark), row in rows.items():
        pair = [scores[backbone, method, benchmark] for method in ("ExGRPO", "on-policy")]
        domain = sizes[benchmark]["domain"]
        count = sum(each["domain"] == domain for each in sizes.values())
        assert row["gain"] == pytest.approx(pair[0] - pair[1]) and row["domain"] == domain
        assert row["part"] == pytest.approx((pair[0] - pair[1]) / count)
        questions = sizes[benchmark]["questions"]
        assert row["questions"] == (int(questions) if questions else None)
        if questions:
            error = math.sqrt(sum(score * (100 - score) for score in pair) / int(questions))
            assert row["standard_error"] == pytest.approx(error)
    assert len(rows) == 6 * 9
    small = [rows[MAIN, benchmark]["part"] for benchmark in ("AIME24", "AIME25", "AMC")]
    assert sum(small) == pytest.approx(17 / 6)  # of 3.0 points, from 143 of 1590 questions


def test_ablation_gaps() -> None:
    rows = answers("ablation_gaps", "method", "domain")
    gaps = answers("gaps", "backbone", "domain", "first", "second")
    for (method, domain), row in rows.items():
        # Tables 3 and 7 print 48.4 for ExGRPO where Table 1 has 48.3.
        own = "ExGRPO" if row["source"] == "Table 6" else "mu 0.5, sigma 1"
        gap = gaps[MAIN, domain, method, own]
        assert (row["gap"], row["standard_error"]) == (gap["gap"], gap["standard_error"])
        assert row["average"] - row["exgrpo"] == pytest.approx(row["gap"])
        if domain == "in distribution":
            assert row["exgrpo"] == (48.3 if row["source"] == "Table 6" else 48.4)
    printed = [row for row in read("printed_averages") if row["source"] in ("Table 3", "Table 6")]
    of_six = {row["method"] for row in printed} - {"mu 0.5, sigma 1", "ExGRPO in RePO's setting"}
    assert {method for method, _ in rows} == of_six | {"retired review"}
    beyond = {key for key, row in rows.items() if row["beyond_two_errors"]}
    assert beyond == {
        ("w/o shaping", "in distribution"),
        ("sigma 0.5", "out of distribution"),  # an error that leaves out MMLU-Pro
    }
    small = [row["gap"] for (_, domain), row in rows.items() if domain == "in distribution"]
    assert sorted(round(gap, 1) for gap in small)[:3] == [-7.1, -3.5, -3.1]
    assert sum(gap < -2.35 for gap in small) == 3


def test_overhead() -> None:
    costs = {(row["backbone"], row["method"]): row for row in read("costs")}
    for (backbone,), row in answers("overhead", "backbone").items():
        seconds = [
            float(costs[backbone, method]["mean_seconds"]) for method in ("on-policy", "ExGRPO")
        ]
        assert [row["on_policy"], row["exgrpo"]] == seconds
        assert row["percent"] == pytest.approx(100 * (seconds[1] - seconds[0]) / seconds[0])
        assert row["log_ratio"] == pytest.approx(math.log(seconds[1] / seconds[0]))
        assert row["buffer_gigabytes"] == float(costs[backbone, "ExGRPO"]["buffer_gigabytes"])
    percents = {
        key: round(row["percent"], 1) for (key,), row in answers("overhead", "backbone").items()
    }
    assert percents == {"Qwen2.5-Math-1.5B": 2.1, MAIN: 19.0}


def test_entropy_code_and_masks() -> None:
    found = answers("chain_entropy", "measure", "difficulty")
    for row in read("chains"):
        valid, flawed = float(row["valid"]), float(row["flawed"])
        apart = (
            math.log(flawed) - math.log(valid) if row["measure"] == "perplexity" else flawed - valid
        )
        assert found[row["measure"], row["difficulty"]]["difference"] == pytest.approx(apart)
    found = answers("code_marker", "measure", "difficulty")
    for row in read("code"):
        apart = float(row["with_code"]) - float(row["without_code"])
        assert found[row["measure"], row["difficulty"]]["difference"] == pytest.approx(apart)
        assert found[row["measure"], row["difficulty"]]["shortfall"] == pytest.approx(-apart)
    found = answers("masked_batches", "difficulty")
    for row in read("masked_questions"):
        share = float(row["questions"]) / 64
        assert found[(row["difficulty"],)]["share"] == pytest.approx(share)
    assert max(found, key=lambda key: found[key]["share"]) == ("medium",)


def test_tested_domains() -> None:
    domains = {row["benchmark"]: row["domain"] for row in read("benchmarks")}
    scored = [row for row in read("scores") if row["method"] == "ExGRPO"]
    found = answers("tested_domains", "domain")
    assert {domain for (domain,) in found} == {*domains.values()}
    for (domain,), row in found.items():
        mine = [each for each in scored if domains[each["benchmark"]] == domain]
        assert row["benchmarks"] == len({each["benchmark"] for each in mine})
        assert row["sources"] == ", ".join(sorted({each["source"] for each in mine}))
