"""Queries on right and wrong: each against a plain loop over the rows of the golden lake.

Where the golden lake has no such case, rows made by hand stand for it.
"""

from math import comb
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope, by, first_step, share
from hypothesis import example, given, settings
from hypothesis import strategies as st
from replay_loops import assert_same, made_catalog

from analysis.queries import answer
from exgrpo.tables import EVALUATIONS

in_every_scope = pytest.mark.parametrize("scope", SCOPES, ids=str)


# paired_eval_diff


@in_every_scope
@pytest.mark.parametrize(
    ("arm_a", "arm_b", "benchmark", "step"),
    [
        ("exgrpo", "on_policy", "test_id", None),
        ("exgrpo", "base", "test_id", None),  # the base model has no seed and another last step
        ("on_policy", "exgrpo", "validation", 8),
    ],
)
def test_paired_eval_diff(
    golden: duckdb.DuckDBPyConnection,
    scope: Scope,
    arm_a: str,
    arm_b: str,
    benchmark: str,
    step: int | None,
) -> None:
    asked = {"arm_a": arm_a, "arm_b": arm_b, "benchmark": benchmark, "step": step}
    frame = answer(golden, "paired_eval_diff", **asked, **scope.asked)
    expected = paired(list(scope.rows("evaluations")), arm_a, arm_b, benchmark, step)
    assert any(row["difference"] for row in expected)
    assert {row["seed"] for row in expected} == ({0} if scope.name == "some runs" else {0, 1})
    assert_same(frame, expected, "study", "seed", "run_a", "run_b", "question")


def paired(rows: list[Row], arm_a: str, arm_b: str, benchmark: str, step: int | None) -> list[Row]:
    rows = [row for row in rows if row["benchmark"] == benchmark]
    last = {run: max(row["step"] for row in found) for (run,), found in by(rows, "run").items()}
    rows = [row for row in rows if row["step"] == (last[row["run"]] if step is None else step)]
    answers = by(rows, "study", "arm", "seed", "run", "question")
    expected = []
    for (study, arm, seed, run, question), found in answers.items():
        for (study_b, other, seed_b, run_b, question_b), against in answers.items():
            one_pair = seed == seed_b or seed is None or seed_b is None
            if (study, question) != (study_b, question_b) or not one_pair:
                continue
            if (arm, other) != (arm_a, arm_b):
                continue
            a, b = (share(row["correct"] for row in side) for side in (found, against))
            expected.append(
                {
                    "study": study,
                    "seed": seed_b if seed is None else seed,
                    "run_a": run,
                    "run_b": run_b,
                    "question": question,
                    "level": found[0]["level"],
                    "samples_a": sum(row["correct"] is not None for row in found),
                    "samples_b": sum(row["correct"] is not None for row in against),
                    "accuracy_a": a,
                    "accuracy_b": b,
                    "difference": None if a is None or b is None else a - b,
                }
            )
    return expected


def test_pairs_are_of_one_study_and_seed_and_graded() -> None:
    runs: list[Row] = [
        {"run": f"{study}-{arm}{seed}", "study": study, "arm": arm, "seed": seed}
        for study, arm, seed in [("s", "a", 0), ("s", "b", 0), ("s", "b", 1), ("t", "b", 0)]
    ]
    verdicts: dict[str, list[bool | None]] = {
        "s-a0": [True, None, False],
        "s-b0": [None, None, None],
    }
    samples = [
        sample(run["run"], question, number, correct)
        for run in runs
        for question in ("q", "only a" if run["arm"] == "a" else "only b")
        for number, correct in enumerate(verdicts.get(run["run"], [True] * 3))
    ]
    with made_catalog(runs=runs, evaluations=samples) as made:
        frame = answer(made, "paired_eval_diff", arm_a="a", arm_b="b", benchmark="test")
    names = ("run_a", "run_b", "question", "samples_a", "samples_b", "accuracy_a", "difference")
    assert frame.select(names).rows() == [("s-a0", "s-b0", "q", 2, 0, 0.5, None)]


def sample(run: str, question: str, number: int, correct: bool | None, step: int = 0) -> Row:
    names = ("run", "step", "benchmark", "question", "sample", "correct")
    return dict(zip(names, (run, step, "test", question, number, correct), strict=True))


# passk_curve


@in_every_scope
@pytest.mark.parametrize("asked", [{}, {"benchmark": "test_id"}, {"step": 16}])
def test_passk_curve(
    golden: duckdb.DuckDBPyConnection, scope: Scope, asked: dict[str, Any]
) -> None:
    frame = answer(golden, "passk_curve", **asked, **scope.asked)
    keys = ("study", "arm", "seed", "run", "step", "benchmark")
    samples = [
        row
        for row in scope.rows("evaluations")
        if all(row[name] == value for name, value in asked.items())
    ]
    expected = []
    for key, found in by(samples, *keys).items():
        verdicts = [[row["correct"] for row in each] for each in by(found, "question").values()]
        expected += [dict(zip(keys, key, strict=True)) | row for row in curve(verdicts)]
    assert any(0 < row["pass_at_k"] < 1 and row["k"] > 1 for row in expected)
    assert_same(frame, expected, *keys, "k")


def curve(questions: list[list[bool | None]]) -> list[Row]:
    """pass@k of the samples of each question, for every k that some question has samples for."""
    counts = [
        (len(graded), sum(graded))
        for verdicts in questions
        if (graded := [verdict for verdict in verdicts if verdict is not None])
    ]
    rows = []
    for k in range(1, max((n for n, _ in counts), default=0) + 1):
        passes = [1 - comb(n - c, k) / comb(n, k) for n, c in counts if n >= k]
        rows.append(
            {
                "k": k,
                "pass_at_k": sum(passes) / len(passes),
                "questions": len(passes),
                "all_questions": len(counts),
            }
        )
    return rows


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return made_catalog(runs=[{"run": "r", "study": "s", "arm": "a", "seed": 0}])


VERDICTS = st.lists(st.sampled_from([True, False, None]), max_size=40)


@settings(deadline=None)
@given(questions=st.lists(VERDICTS, min_size=1, max_size=5))
@example(questions=[[True] + [False] * 3])  # pass@1 .25, pass@2 .5, pass@4 1
@example(questions=[[True] * 2 + [False] * 254, [False] * 256, [True] * 256, [None]])
def test_passk_is_that_of_math_comb(
    empty: duckdb.DuckDBPyConnection, questions: list[list[bool | None]]
) -> None:
    samples = [
        sample("r", f"q{place}", number, verdict)
        for place, verdicts in enumerate(questions)
        for number, verdict in enumerate(verdicts)
    ]
    empty.register("samples", pl.DataFrame(samples, schema=EVALUATIONS.polars_schema))
    empty.execute("delete from evaluations")
    empty.execute("insert into evaluations from samples")
    frame = answer(empty, "passk_curve").select("k", "pass_at_k", "questions", "all_questions")
    expected = curve(questions)
    assert frame.height == len(expected)
    for found, row in zip(frame.to_dicts(), expected, strict=True):
        assert found == pytest.approx(row, rel=1e-9, abs=1e-9)
    if questions == [[True, False, False, False]]:
        assert frame["pass_at_k"].to_list() == pytest.approx([0.25, 0.5, 0.75, 1.0])


# compute_to_target


@in_every_scope
def test_compute_to_target(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    samples = [row for row in scope.rows("evaluations") if row["benchmark"] == "validation"]
    accuracies = {
        key: accuracy
        for key, found in by(samples, "run", "step").items()
        if (accuracy := share(row["correct"] for row in found)) is not None
    }
    metrics = {(row["run"], row["step"]): row for row in scope.rows("steps")}
    seen = set()
    for target in {*accuracies.values(), 0.0, 1.0}:
        frame = answer(golden, "compute_to_target", target=target, **scope.asked)
        expected = []
        for run, row in scope.runs.items():
            curve = {step: value for (of, step), value in accuracies.items() if of == run}
            step = min((at for at, value in curve.items() if value >= target), default=None)
            row = {name: row[name] for name in ("study", "arm", "seed", "run")} | {
                "best_accuracy": max(curve.values(), default=None),
                "step": step,
                "accuracy": None if step is None else curve[step],
            }
            at_once = {"total_sampled_tokens": 0, "run_seconds": 0.0, "distinct_questions": 0}
            there = at_once if step == 0 else metrics.get((run, step), dict.fromkeys(at_once))
            row |= {
                "sampled_tokens": there["total_sampled_tokens"],
                "seconds": there["run_seconds"],
                "distinct_questions": there["distinct_questions"],
            }
            expected.append(row)
            seen.add("never" if step is None else "at once" if step == 0 else "later")
        assert_same(frame, expected, "study", "arm", "seed", "run")
    assert seen == {"never", "at once", "later"}


# verifier_disagreement


@in_every_scope
def test_verifier_disagreement(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "verifier_disagreement", **scope.asked)
    judgements = list(scope.rows("judgements"))
    if scope.name == "a study":
        assert not judgements and frame.is_empty()
        return
    expected = disagreement(judgements, list(scope.rows("trajectories")))
    cells = ("both_yes", "judge_only", "exact_only", "both_no")
    assert any(all(row[cell] for cell in cells) for row in expected)
    assert_same(frame, expected, "study", "arm", "seed", "run", "judge", "version", "against")


def disagreement(judgements: list[Row], trajectories: list[Row]) -> list[Row]:
    exact = {row["trajectory"]: row for row in trajectories}
    keys = ("study", "arm", "seed", "run", "judge", "version")
    expected = []
    for key, found in by(judgements, *keys).items():
        for against in ("chain_valid", "correct"):
            sides = [(row["valid"], exact.get(row["trajectory"], {}).get(against)) for row in found]
            decided = [side for side in sides if None not in side]
            agreement = share(judge == other for judge, other in decided)
            by_chance = sum(
                sum(judge == word for judge, _ in decided)
                / len(decided)
                * sum(other == word for _, other in decided)
                / len(decided)
                for word in (True, False)
                if decided
            )
            expected.append(
                dict(zip(keys, key, strict=True))
                | {
                    "against": against,
                    "verdicts": len(sides),
                    "undecided": sum(judge is None for judge, _ in sides),
                    "unknown": sum(judge is not None and other is None for judge, other in sides),
                    "compared": len(decided),
                    "both_yes": decided.count((True, True)),
                    "judge_only": decided.count((True, False)),
                    "exact_only": decided.count((False, True)),
                    "both_no": decided.count((False, False)),
                    "agreement": agreement,
                    "kappa": None
                    if agreement is None or by_chance == 1
                    else (agreement - by_chance) / (1 - by_chance),
                }
            )
    return expected


def test_a_judge_may_be_undecided_lack_its_trajectory_or_agree_by_chance_alone() -> None:
    run = {"study": "s", "arm": "a", "seed": 0, "run": "r"}
    # trajectory: chain_valid, correct, verdict of a judge, verdict of one that always says yes
    cases = [
        (True, True, True, True),
        (True, None, False, True),
        (False, True, True, True),
        (False, False, False, True),
        (None, True, True, True),
        (True, True, None, True),
        (None, True, None, True),
    ]
    trajectories = [
        {"run": "r", "step": 1, "group": 0, "slot": slot, "trajectory": f"r:1:0:{slot}"}
        | {"replayed": False, "chain_valid": valid, "correct": correct, "question": "q"}
        for slot, (valid, correct, _, _) in enumerate(cases)
    ]
    judgements = [
        {"run": "r", "trajectory": f"r:1:0:{slot}", "judge": judge, "version": "1"}
        | {"valid": verdict}
        for slot, (_, _, *verdicts) in enumerate([*cases, (None, None, False, True)])
        for judge, verdict in zip(("careful", "lenient"), verdicts, strict=True)
    ]
    judgements.append(judgements[0] | {"judge": "once"})
    with made_catalog(runs=[run], trajectories=trajectories, judgements=judgements) as made:
        frame = answer(made, "verifier_disagreement")
    expected = disagreement([row | run for row in judgements], trajectories)
    assert_same(frame, expected, "judge", "against")
    careful = frame.row(0, named=True)
    assert [careful[name] for name in ("verdicts", "undecided", "unknown")] == [8, 2, 2]
    assert careful["kappa"] == 0  # 2 of 4, as chance would
    kappas = dict(frame.filter(against="correct").select("judge", "kappa").iter_rows())
    assert (kappas["lenient"], kappas["once"]) == (0, None)


# lucky_guess


@in_every_scope
@pytest.mark.parametrize("asked", [{}, {"window": 3, "short": 12}])
def test_lucky_guess(
    golden: duckdb.DuckDBPyConnection, scope: Scope, asked: dict[str, int]
) -> None:
    frame = answer(golden, "lucky_guess", **asked, **scope.asked)
    expected = lucky(list(scope.rows("trajectories")), **asked)
    for name in ("invalid_share", "no_steps_share", "short_share", "wrong_chain_right_share"):
        assert any(0 < (row[name] or 0) < 1 for row in expected), name
    assert_same(frame, expected, "study", "arm", "first_step")


def lucky(trajectories: list[Row], window: int = 10, short: int = 5) -> list[Row]:
    keys = ("study", "arm", "first_step")
    graded = [
        row | {"first_step": first_step(row["step"], window)}
        for row in trajectories
        if not row["replayed"] and row["correct"] is not None
    ]
    expected = []
    for key, found in by(graded, *keys).items():
        right = [row for row in found if row["correct"]]
        wrong_chains = [
            row for row in found if row["chain_valid"] is False and row["shortcut"] is False
        ]
        bare = [row for row in found if row["shortcut"]]
        brief = [None if row["length"] is None else row["length"] <= short for row in right]
        expected.append(
            dict(zip(keys, key, strict=True))
            | {
                "right": len(right),
                "checked": sum(row["chain_valid"] is not None for row in right),
                "invalid_share": share(
                    None if row["chain_valid"] is None else not row["chain_valid"] for row in right
                ),
                "no_steps_share": share(row["shortcut"] for row in right),
                "short_share": share(brief),
                "lucky_share": share(
                    True if row["chain_valid"] is False or row["shortcut"] else small
                    for row, small in zip(right, brief, strict=True)
                ),
                "wrong_chains": len(wrong_chains),
                "wrong_chain_right_share": share(row["correct"] for row in wrong_chains),
                "without_steps": len(bare),
                "without_steps_right_share": share(row["correct"] for row in bare),
            }
        )
    return expected


def test_unchecked_ungraded_and_replayed_answers_are_no_lucky_guesses() -> None:
    run = {"study": "s", "arm": "a", "seed": 0, "run": "r"}
    # correct, replayed, chain_valid, shortcut, length
    cases = [
        (True, False, True, False, 30),
        (True, False, False, False, 30),  # a mended chain
        (True, False, False, True, 4),  # no steps
        (True, False, None, None, 5),  # unchecked, very short
        (True, False, None, None, 30),  # unchecked
        (True, False, None, None, None),  # nothing known
        (False, False, False, False, 30),
        (None, False, False, False, 3),  # ungraded
        (True, True, False, False, 3),  # replayed
    ]
    names = ("correct", "replayed", "chain_valid", "shortcut", "length")
    trajectories = [
        {"run": "r", "step": 1, "group": 0, "slot": slot, "question": "q"}
        | dict(zip(names, case, strict=True))
        for slot, case in enumerate(cases)
    ]
    with made_catalog(runs=[run], trajectories=trajectories) as made:
        frame = answer(made, "lucky_guess")
    assert_same(frame, lucky([row | run for row in trajectories]), "first_step")
    found = frame.row(0, named=True)
    assert (found["right"], found["checked"], found["wrong_chains"]) == (6, 3, 2)
    assert found["lucky_share"] == 3 / 5
    assert found["wrong_chain_right_share"] == 1 / 2
