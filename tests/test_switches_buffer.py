"""What settings of the buffer and of the fresh stream do, each in a real training."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from watched import REPLAY, Go, WatchedRun, trains_in

from exgrpo.grading import Grader


@pytest.fixture
def go(able_folder: str, grader: Grader, tmp_path: Path) -> Go:
    return trains_in(tmp_path, able_folder, grader)


def groups(run: WatchedRun) -> pl.DataFrame:
    """One row a group of the run, in order."""
    return run.rows.group_by(["step", "group"], maintain_order=True).first()


def fresh_questions(run: WatchedRun) -> list[list[str]]:
    """The fresh questions of each step, in order."""
    fresh = groups(run).filter(~pl.col("experiential"))
    steps = range(1, run.settings.training.steps + 1)
    return [fresh.filter(step=step)["question"].to_list() for step in steps]


def events(run: WatchedRun, kind: str) -> pl.DataFrame:
    return run.table("experience").filter(event=kind)


# ---- the fresh stream ----


def test_unused_fresh_questions_are_kept_or_discarded(go: Go) -> None:
    sections = {"questions": {"train": 10}, "training": {"steps": 6}}
    plain = fresh_questions(go(**sections))
    kept = go(**sections, experience=REPLAY)
    discarded = go(**sections, experience=REPLAY, batch={"unused_fresh": "discarded"})
    for run in (kept, discarded):
        assert groups(run)["experiential"].sum() >= 3
    stream = [question for step in plain for question in step]
    asked = [question for step in fresh_questions(kept) for question in step]
    assert asked == stream[: len(asked)]
    for step, whole in zip(fresh_questions(discarded), plain, strict=True):
        assert step == whole[: len(step)]
    for run in (kept, discarded):
        seen: set[str] = set()
        for step, count in zip(
            fresh_questions(run), run.table("steps")["distinct_questions"], strict=True
        ):
            seen.update(step)
            assert count == len(seen)


def retired_before(run: WatchedRun) -> list[set[str]]:
    """The questions that had retired before each step."""
    retired = events(run, "retired")
    steps = range(1, run.settings.training.steps + 1)
    return [set(retired.filter(pl.col("step") < step)["question"]) for step in steps]


def stream_run(go: Go, rule: str, questions: int = 40) -> WatchedRun:
    """Groups of three, so that questions retire soon, for somewhat more than an epoch."""
    return go(
        questions={"train": questions},
        rollout={"group_size": 3},
        batch={"questions": 4},
        training={"steps": 26},
        buffer={"retired_fresh": rule},
        experience=REPLAY,
    )


def test_retired_questions_leave_the_fresh_stream_at_once(go: Go) -> None:
    run = stream_run(go, "leave_at_once")
    assert len(retired_before(run)[-1]) > 3
    for asked, retired in zip(fresh_questions(run), retired_before(run), strict=True):
        assert not retired & set(asked)


@pytest.mark.parametrize(
    "rule, room", [("leave_next_epoch", True), ("stay", True), ("leave_next_epoch", False)]
)
def test_retired_questions_leave_the_fresh_stream_at_the_next_epoch(
    go: Go, rule: str, room: bool
) -> None:
    """And only while more than a batch and 20 questions would be left."""
    questions = 40 if room else 26
    run = stream_run(go, rule, questions)
    asked = fresh_questions(run)
    first: list[str] = []
    for step, part in enumerate(asked):
        if len(first) + len(part) > questions:  # the second epoch begins in this step
            second = [
                *part[questions - len(first) :],
                *(q for rest in asked[step + 1 :] for q in rest),
            ]
            break
        first += part
    first += part[: questions - len(first)]
    retired = retired_before(run)[step]
    assert len(retired) > 2
    assert len(set(first)) == questions
    leaves = room and rule == "leave_next_epoch"
    order = second[: questions - len(retired) * leaves]
    assert len(set(order)) == len(order)
    assert bool(retired & set(order)) is not leaves


# ---- what is stored ----


@pytest.mark.parametrize("collect", [False, True])
def test_collect_before_start(go: Go, collect: bool) -> None:
    run = go(
        experience={"replay": "trajectory", "start": "never"},
        buffer={"collect_before_start": collect},
    )
    assert not run.table("steps")["replay_on"].any()
    assert not run.rows["replayed"].any()
    kinds = set(run.table("experience")["event"]) if collect else set()
    assert ({"entered", "stored"} <= kinds) is collect
    assert bool(run.table("steps")["buffer_trajectories"].sum()) is collect


def test_store_truncated_adds_an_end_token_of_probability_1(go: Go) -> None:
    """Three tokens are enough for the box and what is in it, not for the end token."""
    run = go(
        rollout={"max_new_tokens": 3},
        experience=REPLAY,
        buffer={"store_truncated": True, "retire": False},
    )
    replayed = run.rows.filter("replayed")
    assert replayed.height
    source = replayed.join(run.rows, left_on="source", right_on="trajectory", suffix="_source")
    for row in source.iter_rows(named=True):
        assert row["finish_source"] == "length"
        assert len(row["token_ids_source"]) == 3
        assert row["token_ids"] == [*row["token_ids_source"], 2]
        assert row["behaviour_logprobs"] == [*row["behaviour_logprobs_source"], 0.0]
        assert row["length"] == 4
        assert row["correct"]
        assert row["ratio_min"] < 1


def test_a_success_that_was_cut_off_is_not_stored(go: Go) -> None:
    run = go(rollout={"max_new_tokens": 8}, experience=REPLAY, buffer={"retire": False})
    assert run.rows.filter(correct=True, finish="length").height
    stored = events(run, "stored").join(run.rows, on="trajectory")
    assert (stored["finish"] == "stop").all()
    assert (run.rows.filter("replayed")["source"].is_in(stored["trajectory"].to_list())).all()


@pytest.mark.parametrize("rule", ["token_ids", "text", "kept"])
def test_duplicates(go: Go, rule: str) -> None:
    """Stored are all successes, or the first of each spelling."""
    run = go(experience=REPLAY, buffer={"duplicates": rule, "retire": False})
    right = run.rows.filter(~pl.col("replayed"), correct=True, finish="stop")
    right = right.filter(pl.col("bucket").is_not_null() | (pl.col("group_successes") == 8))
    column = {"token_ids": "token_ids", "text": "response", "kept": "trajectory"}[rule]
    first: dict[Any, str] = {}
    for row in right.iter_rows(named=True):
        first.setdefault((row["question"], str(row[column])), row["trajectory"])
    assert sorted(events(run, "stored")["trajectory"]) == sorted(first.values())
    assert (len(first) < right.height) is (rule != "kept")


def test_store_all_keeps_failures_and_what_was_cut_off(go: Go) -> None:
    run = go(
        rollout={"max_new_tokens": 8},
        experience={**REPLAY, "order": "random"},
        buffer={"store": "all", "duplicates": "kept", "retire": False},
    )
    sampled = run.rows.filter(~pl.col("replayed"))
    assert sorted(events(run, "stored")["trajectory"]) == sorted(sampled["trajectory"])
    finish = dict(sampled.select("trajectory", "finish").rows())
    replayed = run.rows.filter("replayed")
    assert replayed["finish"].to_list() == [finish[source] for source in replayed["source"]]
    assert set(finish.values()) == {"stop", "length"}
    assert set(sampled["correct"]) == {True, False}


# ---- what goes ----


def test_capacity_drops_the_oldest_overall(go: Go) -> None:
    run = go(experience=REPLAY, buffer={"capacity": 5, "duplicates": "kept", "retire": False})
    steps = run.table("steps")["buffer_trajectories"]
    assert steps.max() == 5
    stored, evicted = events(run, "stored"), events(run, "evicted")
    assert evicted["trajectory"].to_list() == stored["trajectory"].to_list()[: evicted.height]
    assert evicted.height == stored.height - 5


def test_per_question_drops_the_oldest_of_a_question(go: Go) -> None:
    run = go(experience=REPLAY, buffer={"per_question": 2, "duplicates": "kept", "retire": False})
    candidates = run.table("candidates").group_by(["step", "group"]).len()
    assert candidates["len"].max() == 2
    stored, evicted = events(run, "stored"), events(run, "evicted")
    assert evicted.height
    for (question,), gone in evicted.group_by(["question"], maintain_order=True):
        of_question = stored.filter(question=question)["trajectory"].to_list()
        assert gone["trajectory"].to_list() == of_question[: gone.height]
        assert gone.height == len(of_question) - 2


@pytest.mark.parametrize("age", [1, 2])
def test_max_age_is_the_age_of_the_oldest_replayed(go: Go, age: int) -> None:
    run = go(
        experience={**REPLAY, "order": "highest", "metric": "birth_entropy"},
        buffer={"max_age": age, "retire": False},
        training={"steps": 7},
    )
    candidates = run.table("candidates")
    ages = candidates["step"] - candidates["birth_step"]
    assert ages.max() == age
    assert events(run, "evicted").height


def test_without_retirement_a_solved_question_lies_in_the_last_bucket(go: Go) -> None:
    run = go(
        rollout={"group_size": 3},
        experience={**REPLAY, "share": 1.0},
        buffer={"retire": False},
        training={"steps": 8},
    )
    assert not events(run, "retired").height
    assert (run.table("steps")["retired_questions"] == 0).all()
    solved = groups(run).filter(group_successes=3)
    assert solved.height
    later = groups(run).filter("experiential")
    for row in solved.iter_rows(named=True):
        visits = later.filter(pl.col("step") > row["step"], question=row["question"])
        assert set(visits["bucket_drawn"][:1]) <= {2}


@pytest.mark.parametrize("rule", ["stays", "moves_to_1", "leaves"])
def test_a_drawn_question_that_fails_wholly(go: Go, rule: str) -> None:
    run = go(
        questions={"train": 12},
        rollout={"group_size": 3},
        batch={"questions": 8},
        experience={"replay": "question", "start": "at_once", "share": 0.7},
        buffer={"on_failure": rule, "retire": False},
        training={"steps": 24},
    )
    once = pl.len().over("step", "question") == 1  # a question may be drawn and fresh in one step
    failed = groups(run).filter(once).filter("experiential", group_successes=0)
    assert set(failed["bucket_drawn"]) == {1, 2}
    for row in failed.iter_rows(named=True):
        of_step = run.table("experience").filter(step=row["step"], question=row["question"])
        found = of_step.select("event", "bucket_before", "bucket_after").rows()
        drawn = row["bucket_drawn"]
        moved = [("moved", drawn, 1)] if drawn > 1 else []
        assert found == {"stays": [], "moves_to_1": moved, "leaves": [("left", drawn, None)]}[rule]


@pytest.mark.parametrize("counts", [True, False])
def test_whether_the_replayed_success_counts(go: Go, counts: bool) -> None:
    run = go(experience=REPLAY, buffer={"count_replayed": counts, "retire": False})
    drawn = run.rows.filter("experiential")
    assert drawn.height
    assert (drawn["group_size"] == (8 if counts else 7)).all()
    for _, group in drawn.group_by(["step", "group"]):
        right = group if counts else group.filter(~pl.col("replayed"))
        assert (group["group_successes"] == right["correct"].sum()).all()


# ---- retirement ----


def test_a_retired_question_never_comes_back(go: Go) -> None:
    run = go(
        questions={"train": 16},
        rollout={"group_size": 3},
        batch={"questions": 8},
        experience=REPLAY,
        training={"steps": 12},
    )
    retired = dict(events(run, "retired").select("question", "step").rows())
    assert len(retired) >= 2
    assert sorted(retired) == sorted(events(run, "retired")["question"]), "once each"
    for question, step in retired.items():
        after = run.table("experience").filter(pl.col("step") > step, question=question)
        assert after.height == 0
        visits = run.rows.filter(pl.col("step") > step, question=question)
        assert not visits["experiential"].any()
        assert not visits["replayed"].any()
        solved = run.rows.filter(step=step, question=question, group_successes=3)
        assert solved.height
        candidates = run.table("candidates").filter(pl.col("step") > step, question=question)
        assert candidates.height == 0
    assert run.table("steps")["retired_questions"].to_list()[-1] == len(retired)


def test_retired_review_is_exactly_as_stated(go: Go) -> None:
    """Every 3 steps half of those that can return, with their trajectories, to bucket K - 1."""
    run = go(
        questions={"train": 12},
        rollout={"group_size": 3},
        batch={"questions": 6},
        experience=REPLAY,
        buffer={"review_share": 0.5, "review_every": 3},
        training={"steps": 12},
    )
    log = run.table("experience").select("step", "question", "event", "trajectory", "bucket_after")
    right = run.rows.filter(~pl.col("replayed"), correct=True, finish="stop")
    rows = {row["trajectory"]: row for row in right.iter_rows(named=True)}
    kept: dict[str, list[str]] = {}  # question -> what is or was stored of it, in order
    able: set[str] = set()

    def keep(question: str, trajectory: str) -> None:
        known = kept.setdefault(question, [])
        if rows[trajectory]["token_ids"] not in [rows[each]["token_ids"] for each in known]:
            known.append(trajectory)

    for step in range(1, 13):
        returned: list[str] = []
        for _, question, event, trajectory, bucket in log.filter(step=step).iter_rows():
            if event == "stored":
                keep(question, trajectory)
            elif event == "retired":  # with the successes of the group that retires it
                for row in right.filter(step=step, question=question, group_successes=3).to_dicts():
                    keep(question, row["trajectory"])
                able |= {question} & kept.keys()
            elif event == "returned":
                assert (question in able, bucket) == (True, 2)
                returned.append(question)
                brought = log.filter(step=step, question=question, event="stored")
                brought = brought.tail(len(kept[question]))
                assert brought["trajectory"].to_list() == kept[question]
                assert (brought["bucket_after"] == 2).all(), "where the question now lies"
        due = round(0.5 * len(able)) if step % 3 == 0 else 0
        assert len(returned) == len(set(returned)) == due
        able -= set(returned)
    again = run.rows.filter(
        "experiential", pl.col("question").is_in(log.filter(event="returned")["question"].to_list())
    )
    assert again.height
