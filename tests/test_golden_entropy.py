"""The queries of the entropy observations: each against a plain loop over the golden lake.

Where the golden lake has no such case, rows made by hand stand for it.
"""

from collections import defaultdict
from collections.abc import Iterator
from statistics import mean
from typing import Any

import duckdb
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope, by, first_step, share
from replay_loops import RUN, assert_same, made, made_catalog, replay_of

from analysis.queries import answer

in_every_scope = pytest.mark.parametrize("scope", SCOPES, ids=str)
ARM = ("study", "arm")


def judged_by(scope: Scope, judge: str | None) -> dict[tuple[str, str], bool]:
    """The decided verdicts of a judge, by run and trajectory."""
    return {
        (row["run"], row["trajectory"]): row["valid"]
        for row in scope.rows("judgements")
        if row["judge"] == judge and row["valid"] is not None
    }


def right_fresh(scope: Scope, judge: str | None = None) -> Iterator[Row]:
    """Right fresh answers of groups with signal; `valid`, `judge`: by check, else by the judge."""
    verdicts = judged_by(scope, judge)
    for row in scope.rows("trajectories"):
        if row["correct"] and not row["replayed"] and row["bucket"] is not None:
            by_judge = verdicts.get((row["run"], row["trajectory"]))
            exact = row["chain_valid"]
            said = "exact" if exact is not None else judge if by_judge is not None else None
            yield row | {"valid": by_judge if exact is None else exact, "judge": said}


def quantile(values: list[float], share: float) -> float:
    """With linear interpolation."""
    place = (len(values) - 1) * share
    low, rest = int(place), place - int(place)
    ordered = sorted(values)
    return ordered[low] + rest * (ordered[min(low + 1, len(values) - 1)] - ordered[low])


# entropy_validity_rows


@in_every_scope
@pytest.mark.parametrize("window", [10, 3])
def test_entropy_validity_rows(
    golden: duckdb.DuckDBPyConnection, scope: Scope, window: int
) -> None:
    frame = answer(golden, "entropy_validity_rows", window=window, **scope.asked)
    same = ("question", "level", "bucket", "difficulty")
    markers = ("code", "shortcut", "repetition", "mean_entropy", "nll", "length")
    found = [row for row in right_fresh(scope) if row["mean_entropy"] is not None]
    found.sort(key=lambda row: (*(row[name] for name in (*ARM, "seed")), row["trajectory"]))
    expected = [
        {name: row[name] for name in (*ARM, "seed", *same)}
        | {"window_start": first_step(row["step"], window)}
        | {"chain_valid": row["valid"], "judge": row["judge"]}
        | {name: row[name] for name in markers}
        | {"one_in": 1}
        for row in found
    ]
    assert frame.to_dicts() == expected
    assert len({(row["window_start"], row["chain_valid"]) for row in expected}) > 3


def test_a_judge_counts_where_the_task_has_no_exact_check() -> None:
    """Checked exactly; by the judge; by another judge; undecided; without entropy (left out)."""
    signal = {"bucket": 1, "difficulty": "hard", "mean_entropy": 0.5}
    trajectories = [
        made(1, 0, chain_valid=True, **signal),
        made(1, 1, **signal),
        made(1, 2, **signal),
        made(1, 3, **signal),
        made(1, 4, bucket=1, difficulty="hard"),
    ]
    verdicts = [(0, "j", False), (1, "j", False), (2, "other", True), (3, "j", None)]
    judgements = [
        {"run": "r", "trajectory": f"r:1:0:{slot}", "judge": judge, "valid": valid}
        for slot, judge, valid in verdicts
    ]
    judgements.append({"run": "another", "trajectory": "r:1:0:2", "judge": "j", "valid": False})
    with made_catalog(runs=[RUN], trajectories=trajectories, judgements=judgements) as catalog:
        rows = answer(catalog, "entropy_validity_rows", judge="j")
        counts = answer(catalog, "marker_entropy", judge="j").filter(marker="code")
        alone = answer(catalog, "entropy_validity_rows", judge=None)
        catalog.execute("update judgements set judge = 'llm' where judge = 'other'")
        by_model = answer(catalog, "entropy_validity_rows")
    columns = ("chain_valid", "judge")
    nobody = (None, None)
    assert rows.select(columns).rows() == [(True, "exact"), (False, "j"), nobody, nobody]
    assert alone.select(columns).rows() == [(True, "exact"), nobody, nobody, nobody]
    assert by_model.select(columns).rows() == [(True, "exact"), nobody, (True, "llm"), nobody]
    assert counts.select("right_fresh", "with_entropy", "checked", "valid").rows() == [(5, 4, 2, 1)]


# entropy_by_difficulty


@in_every_scope
def test_entropy_by_difficulty(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "entropy_by_difficulty", **scope.asked)
    known = (row for row in right_fresh(scope) if row["mean_entropy"] is not None)
    expected = []
    for key, found in by(known, *ARM, "difficulty").items():
        entropies = [row["mean_entropy"] for row in found]
        expected.append(
            dict(zip((*ARM, "difficulty"), key, strict=True))
            | {"right_fresh": len(found), "questions": len({row["question"] for row in found})}
            | {"mean_entropy": mean(entropies)}
            | {f"p{at:02}": quantile(entropies, at / 100) for at in (5, 25, 50, 75, 95)}
        )
    assert_same(frame, expected, *ARM, "difficulty")
    assert all(row["p05"] < row["p50"] < row["p95"] for row in expected)


# marker_entropy


@in_every_scope
@pytest.mark.parametrize("judge", [None, "recorded"])
def test_marker_entropy(golden: duckdb.DuckDBPyConnection, scope: Scope, judge: str | None) -> None:
    frame = answer(golden, "marker_entropy", judge=judge, **scope.asked)
    keys = (*ARM, "seed", "question", "difficulty", "marker", "marked")
    cells = defaultdict(list)
    for row in right_fresh(scope, judge):
        for marker in ("code", "repetition", "shortcut"):
            if row[marker] is not None:
                where = (row[name] for name in keys[:5])
                cells[*where, marker, row[marker]].append(row)
    expected = []
    for key, found in cells.items():
        entropies = [row["mean_entropy"] for row in found if row["mean_entropy"] is not None]
        verdicts = [row["valid"] for row in found if row["valid"] is not None]
        expected.append(
            dict(zip(keys, key, strict=True))
            | {"right_fresh": len(found), "with_entropy": len(entropies)}
            | {"summed_entropy": sum(entropies) if entropies else None}
            | {"checked": len(verdicts), "valid": sum(verdicts)}
        )
    assert_same(frame, expected, *keys)
    assert any(row["marker"] == "shortcut" and row["marked"] for row in expected)
    imported = [row for row in expected if row["study"] == "imports"]
    assert bool(imported) == ("import-riddles" in scope.runs)
    assert any(row["checked"] for row in imported) == bool(imported and judge)


# selection_picks

RANKS = {
    "mean_entropy": "mean_entropy_rank",
    "released": "released_rank",
    "summed_entropy": "summed_entropy_rank",
    "length": "length_rank",
    "nll": "nll_rank",
    "birth_entropy": "birth_entropy_rank",
}
SUMS = {"summed_entropy": "mean_entropy", "summed_length": "length"}


def pick(draw: list[Row], metric: str) -> Row:
    """What a metric takes of the candidates of one draw: of each column that one's, or the mean."""
    best = min(draw, key=lambda row: row["mean_entropy"])
    taken = draw if metric == "random" else [row for row in draw if row[RANKS[metric]] == 0]
    checked = all(row["chain_valid"] is not None for row in draw)
    return {
        "same": sum(row is best for row in taken) / len(taken),
        "checked": int(checked),
        "valid": share(row["chain_valid"] for row in taken) if checked else 0,
    } | {name: mean(row[of] for row in taken) for name, of in SUMS.items()}


def picks(candidates: list[Row], chains: dict[tuple[str, str], bool | None]) -> list[Row]:
    keys = (*ARM, "seed", "question", "metric")
    cells = defaultdict(list)
    candidates = [
        row | {"chain_valid": chains.get((row["run"], row["source"]))} for row in candidates
    ]
    for key, draw in by(candidates, *keys[:4], "run", "step", "group").items():
        for metric in (*RANKS, "random"):
            if len(draw) > 1:
                cells[*key[:4], metric].append(pick(draw, metric))
    names = ("same", *SUMS, "checked", "valid")
    return [
        dict(zip(keys, key, strict=True))
        | {"draws": len(taken)}
        | {name: sum(row[name] for row in taken) for name in names}
        for key, taken in cells.items()
    ]


@in_every_scope
def test_selection_picks(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "selection_picks", **scope.asked)
    chains = {
        (row["run"], row["trajectory"]): row["chain_valid"] for row in scope.rows("trajectories")
    }
    expected = picks(list(scope.rows("candidates")), chains)
    assert_same(frame, expected, *ARM, "seed", "question", "metric")
    released = [row for row in expected if row["metric"] == "released"]
    assert any(row["same"] < row["draws"] for row in released)
    assert any(0 < row["valid"] < row["checked"] for row in expected)


def test_the_audit_is_the_sum_of_the_picks(golden: duckdb.DuckDBPyConnection) -> None:
    """`selection_audit` counts the same draws in another way."""
    rows = answer(golden, "selection_picks").to_dicts()
    for audit in answer(golden, "selection_audit").iter_rows(named=True):
        mine = [row for row in rows if (row["study"], row["arm"]) == (audit["study"], audit["arm"])]
        for metric, name in (
            ("released", "released"),
            ("random", "chance"),
            ("length", "shortest"),
        ):
            found = [row for row in mine if row["metric"] == metric]
            assert sum(row["draws"] for row in found) == audit["draws"]
            agreed = sum(row["same"] for row in found) / audit["draws"]
            assert agreed == pytest.approx(audit[name])


def test_picks_of_half_known_chains_and_of_an_expert_are_not_checked() -> None:
    values = {"mean_entropy": 1.0, "nll": 2.0, "length": 3}
    candidates = [
        {"run": "r", "step": step, "group": 0, "question": "q", "source": source}
        | dict.fromkeys(RANKS.values(), rank)
        | values
        for step, sources in ((5, ("r:1:0:0", "r:2:0:0")), (6, ("r:1:0:0", "expert:q")))
        for rank, source in enumerate(sources)
    ]
    stored = [made(1, chain_valid=True), made(2, chain_valid=False)]
    with made_catalog(runs=[RUN], candidates=candidates, trajectories=stored) as catalog:
        frame = answer(catalog, "selection_picks")
    columns = ("metric", "draws", "same", "summed_length", "checked", "valid")
    found = {row[0]: row[1:] for row in frame.select(columns).rows()}
    assert found["released"] == (2, 2, 6, 1, 1)
    assert found["random"] == (2, 1, 6, 1, 0.5)


# replay_age


def aged(rows: list[Row]) -> dict[str, Any]:
    """What a run replayed of its own: rows of one run."""
    ages = [row["step"] - row["birth_step"] for row in rows]
    trained = [row for row in rows if row["ratio_mean"] is not None]
    ratios = [row["ratio_mean"] for row in trained]
    # The mean square of f over tokens is its squared mean over its effective sample size.
    kept = [row["weight_mean"] - row["weight_mean"] ** 2 / row["weight_ess"] for row in trained]
    return (
        {"replayed": len(rows)}
        | {f"age_p{at:02}": quantile(ages, at / 100) for at in (5, 50, 95)}
        | {"age_max": max(ages), "with_gradient": len(trained)}
        | {f"ratio_p{at:02}": quantile(ratios, at / 100) for at in (5, 50, 95)}
        | {"ratio_ess": mean(row["ratio_ess"] for row in trained)}
        | {"gradient_kept": mean(kept), "gradient_at_one": 0.1 / 1.1**2}
    )


@in_every_scope
def test_replay_age(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "replay_age", **scope.asked)
    keys = (*ARM, "seed", "run")
    own = (
        row
        for row in scope.rows("trajectories")
        if row["replayed"] and row["source"].rsplit(":", 3)[0] == row["run"]
    )
    expected = [
        dict(zip(keys, key, strict=True)) | aged(rows) for key, rows in by(own, *keys).items()
    ]
    assert_same(frame, expected, *keys)
    assert any(row["with_gradient"] < row["replayed"] for row in expected)


@pytest.mark.parametrize(
    ("objective", "kept"),
    [
        ('{"shaping": "ratio", "beta": 0.1, "clip_after_start": "none"}', True),
        ('{"shaping": "ratio", "beta": 0.1, "clip_after_start": "all"}', False),
        ('{"shaping": "none", "beta": 0.1, "clip_after_start": "none"}', False),
        ("{}", False),
    ],
)
def test_the_gradient_that_shaping_keeps_by_hand(objective: str, kept: bool) -> None:
    """Two tokens of ratio 1 and 0.1, f(w) = w / (w + 0.1): w f'(w) is 0.1 / 1.21 and 0.01 / 0.04.

    A replay of another run has no age, one without a gradient no ratio.
    """
    ratios = (1.0, 0.1)
    weights = [w / (w + 0.1) for w in ratios]
    mean_weight, mean_square = mean(weights), mean(w * w for w in weights)
    rows = [
        replay_of(
            "r:2:0:0",
            5,
            birth_step=2,
            ratio_mean=mean(ratios),
            ratio_ess=0.6,
            weight_mean=mean_weight,
            weight_ess=mean_weight**2 / mean_square,
        ),
        replay_of("r:2:0:0", 9, birth_step=2),
        replay_of("other:1:0:0", 10, birth_step=1, ratio_mean=9.0),
    ]
    run = RUN | {"settings": f'{{"objective": {objective}}}'}
    with made_catalog(runs=[run], trajectories=rows) as catalog:
        row = answer(catalog, "replay_age").row(0, named=True)
    assert (row["replayed"], row["with_gradient"], row["age_p50"], row["age_max"]) == (2, 1, 5, 7)
    if kept:
        by_token = [0.1 * w / (w + 0.1) ** 2 for w in ratios]
        assert row["gradient_kept"] == pytest.approx(mean(by_token))
        assert row["gradient_at_one"] == pytest.approx(by_token[0])
    else:
        assert row["gradient_kept"] is row["gradient_at_one"] is None
