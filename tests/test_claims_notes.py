"""What is said beside an estimate, and when a comparison of two arms says nothing."""

import re

import polars as pl
import pytest
from claim_frames import (
    ACCURACY_SCHEMA,
    CLAIMS,
    accuracy,
    base_rows,
    beside,
    later,
    planted,
    updates,
    verdict,
)


@pytest.mark.parametrize(
    ("begun", "said"),
    [
        ((2, 2, 2), "replay started at step 2 in every seed"),
        ((2, 3, 40), "replay started at steps 2, 3, 40"),
        ((2, None, None), "replay started at step 2; never started in seeds 1, 2"),
        ((None, None, None), "replay never started in seeds 0, 1, 2"),
    ],
)
def test_it_is_noted_when_replay_began(begun: tuple[int | None, ...], said: str) -> None:
    frames = planted(CLAIMS["C1"], 1)
    frames["run_updates"] = updates({"exgrpo": "0.35", "on_policy": "never"}, begun)
    found = verdict("C1", frames)
    assert found.verdict == "supported" and found.notes[-1] == f"exgrpo: {said}."
    at_once = updates({"exgrpo": "at_once", "on_policy": "never"}, begun)
    assert verdict("C1", frames | {"run_updates": at_once}).notes == found.notes[:-1]


@pytest.mark.parametrize(
    ("begun", "reason"),
    [
        ((1, 2, 10), "replay of exgrpo started at steps 1, 2, 10, so the delay does nothing"),
        ((None, None, None), "replay of exgrpo started in no seed"),
        ((1, 2, 11), None),
        ((1, 2, None), None),
    ],
)
def test_a_delay_must_have_delayed(begun: tuple[int | None, ...], reason: str | None) -> None:
    frames = planted(CLAIMS["C21a"], 1)
    frames["run_updates"] = updates({"exgrpo": "0.35", "start_at_0": "at_once"}, begun)
    found = verdict("C21a", frames)
    assert (found.verdict == "not testable here") == (reason is not None)
    assert (reason or "") in found.reading


def test_continued_training_is_noted_against_its_start() -> None:
    frames = planted(CLAIMS["C16"], 1)
    found = verdict("C16", frames)
    assert found.verdict == "supported"
    assert "continual minus the model it continues, on validation: +" in found.notes[1]
    late = frames["validation_accuracy"].filter(pl.col("step") > 0)
    unknown = verdict("C16", frames | {"validation_accuracy": late})
    assert unknown.notes[2].endswith("on validation: its start was not logged.")


def test_extraction_is_told_apart_from_knowing() -> None:
    """The first arm answers no better; a quarter of the second one's answers cannot be read."""
    first = accuracy({"exgrpo": 1.3}).with_columns(correct=pl.lit(3, pl.Int64))
    # One question of one seed apart, for without any difference there is no verdict.
    apart = (pl.col("question") == "q0") & (pl.col("seed") == 0)
    first = first.with_columns(correct=pl.when(apart).then(2).otherwise("correct"))
    second = first.with_columns(
        arm=pl.lit("on_policy"), extracted=pl.lit(3, pl.Int64), correct=pl.lit(3, pl.Int64)
    ).cast(ACCURACY_SCHEMA)
    found = verdict("C2", {"arm_accuracy": pl.concat([first.cast(ACCURACY_SCHEMA), second])})
    assert found.value == pytest.approx(-1 / 4 / 300)
    assert "Answers that can be read: +25.0 points, and nothing varies" in found.notes[1]
    note = found.notes[2]
    assert "among those that can be read: -25.1 points [" in note
    assert "over seeds only; it compares different answers" in note


def test_a_seed_without_a_readable_answer_costs_the_note_alone() -> None:
    rows = accuracy({"exgrpo": 0.7, "on_policy": 0.5})
    mute = (pl.col("arm") == "on_policy") & (pl.col("seed") == 1)
    rows = rows.with_columns(
        pl.when(mute).then(0).otherwise(name).cast(pl.Int64).alias(name)
        for name in ("correct", "extracted")
    )
    found = verdict("C2", {"arm_accuracy": rows})
    assert found.value is not None and found.seeds == 3
    assert found.notes[2].endswith("not here, no answer of seed 1 of on_policy can be read.")


def test_seeds_are_noted_over_the_questions_that_count() -> None:
    """A question without a sample in one seed is left out of all, in the notes too."""
    rows = accuracy({"exgrpo": 0.7, "on_policy": 0.5})
    lost = (pl.col("question") == "q3") & (pl.col("seed") == 2)
    rows = rows.with_columns(samples=pl.when(lost).then(0).otherwise("samples").cast(pl.Int64))
    rows = rows.with_columns(correct=pl.when(lost).then(0).otherwise("correct").cast(pl.Int64))
    # Seed 0 differs in that question alone.
    even = (pl.col("seed") == 0) & (pl.col("question") != "q3")
    rows = rows.with_columns(correct=pl.when(even).then(2).otherwise("correct").cast(pl.Int64))
    found = verdict("C1", {"arm_accuracy": rows})
    assert found.questions == 99 and found.notes[0].startswith("By seed: +0.0, ")


def test_masked_arms_are_also_shown_as_in_the_paper() -> None:
    arms = CLAIMS["C3a"].arms
    rows = accuracy({arms[0]: 0.6, arms[1]: 0.5, "masked_medium": 0.4, "masked_easy": 0.5})
    found = verdict("C3a", beside(arms) | {"arm_accuracy": rows})
    assert found.verdict == "supported" and "masked_medium minus masked_easy): -" in found.notes[1]
    assert found.notes[2] == f"Groups a step that were learned from: {arms[0]} 2.5, {arms[1]} 2.5."
    matched = rows.filter(pl.col("arm").is_in(arms))
    note = verdict("C3a", beside(arms) | {"arm_accuracy": matched}).notes[1]
    assert "not here, the study has no rows of arm `masked_medium`" in note


def test_a_weak_base_counts_the_runs_that_collapse() -> None:
    rows = base_rows(accuracy({"start_at_0": 0.5, "on_policy": 0.4}), right=0.05)
    collapsed = (pl.col("arm") == "on_policy") & (pl.col("seed") < 2)
    rows = rows.with_columns(correct=pl.when(collapsed).then(0).otherwise("correct"))
    found = verdict(
        "C15", beside(CLAIMS["C15"].arms) | {"arm_accuracy": rows.cast(ACCURACY_SCHEMA)}
    )
    assert found.notes[1:4] == [
        "Base model: 5.0 % right.",
        "start_at_0: 0 of 3 runs end no better than the base model.",
        "on_policy: 2 of 3 runs end no better than the base model.",
    ]
    assert re.fullmatch(
        r"Entropy late in training, and response length over all of it: start_at_0 0\.\d{3} "
        r"nat/token and 15\.0 tokens; on_policy 0\.\d{3} nat/token and 15\.0 tokens\.",
        found.notes[4],
    )
    unknown = beside([]) | {"arm_accuracy": rows.cast(ACCURACY_SCHEMA)}
    assert "start_at_0 not logged; on_policy not logged" in verdict("C15", unknown).notes[4]
    strong = base_rows(accuracy({"start_at_0": 0.5, "on_policy": 0.4}), right=0.5)
    assert (
        "below 10 % right, this one has 50.0 %" in verdict("C15", {"arm_accuracy": strong}).reading
    )
    none = {"arm_accuracy": strong.filter(pl.col("arm") != "base")}
    assert "the base model was not tested" in verdict("C15", none).reading
    of_base = pl.col("arm") == "base"
    ungraded = rows.with_columns(
        pl.when(of_base).then(0).otherwise(name).alias(name) for name in ("samples", "correct")
    )
    failed = verdict("C15", beside([]) | {"arm_accuracy": ungraded.cast(ACCURACY_SCHEMA)})
    assert "the grader could judge no answer of the base model" in failed.reading


def test_forgetting_stands_beside_retirement() -> None:
    notes = verdict("C17a", planted(CLAIMS["C17a"], 1)).notes
    assert notes[1] == (
        "exgrpo: of 40 later visits of retired questions 7.5 % were half wrong or worse; of other "
        "questions' visits at the same time 50.0 %."
    )
    none = planted(CLAIMS["C17a"], 1) | {"retired_later": later([])}
    assert verdict("C17a", none).notes[1] == "exgrpo: no retired question was asked again."
