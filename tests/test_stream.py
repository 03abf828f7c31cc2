"""The stream of fresh questions: epochs, what leaves it, what is thrown away, and the resume."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exgrpo.questions import Question
from exgrpo.settings import Batch, Buffer, RunSettings
from exgrpo.stream import SPARE, FreshStream, take

BATCH = 4


def some_questions(count: int) -> list[Question]:
    return [Question(f"question {number}", "1", None, "test") for number in range(count)]


def a_run(unused: Any = "kept", retired: Any = "stay", seed: int = 0) -> RunSettings:
    return RunSettings(
        study="s",
        arm="a",
        seed=seed,
        batch=Batch(questions=BATCH, unused_fresh=unused),
        buffer=Buffer(retired_fresh=retired),
    )


def ids(questions: list[Question]) -> list[str]:
    return [question.id for question in questions]


@given(st.integers(1, 30), st.lists(st.integers(0, 9), max_size=30), st.integers(0, 99))
def test_every_epoch_asks_every_question_once(size: int, counts: list[int], seed: int) -> None:
    stream, questions, run = FreshStream(), some_questions(size), a_run(seed=seed)
    drawn = [id for count in counts for id in ids(take(stream, questions, (), count, run))]
    assert len(drawn) == sum(counts)
    epochs = [drawn[start : start + size] for start in range(0, len(drawn), size)]
    for epoch in epochs:
        assert len(set(epoch)) == len(epoch)
        assert set(epoch) <= set(ids(questions))
    assert stream.epoch * size + stream.place == len(drawn)
    assert stream.asked == set(drawn)


def test_epochs_and_seeds_differ_in_their_order() -> None:
    questions = some_questions(50)

    def order(seed: int, epochs: int) -> list[str]:
        return ids(take(FreshStream(), questions, (), 50 * epochs, a_run(seed=seed)))

    one = order(0, 2)
    assert one == order(0, 2)
    assert sorted(one[:50]) == sorted(one[50:]) == sorted(ids(questions))
    assert one[:50] != one[50:]
    assert one[:50] != order(1, 1)
    assert one[:50] != ids(questions)


def test_unused_questions_are_kept_for_the_next_step_or_thrown_away() -> None:
    """Experience takes 3 of a batch of 4: the stream moves by the one question asked, or by 4."""
    questions = some_questions(12)
    order = ids(take(FreshStream(), questions, (), 12, a_run()))
    kept, discarded = FreshStream(), FreshStream()
    for step in range(3):
        assert ids(take(kept, questions, (), 1, a_run("kept"))) == order[step : step + 1]
        found = ids(take(discarded, questions, (), 1, a_run("discarded")))
        assert found == order[BATCH * step : BATCH * step + 1]
    assert (kept.place, discarded.place) == (3, 12)
    assert kept.asked == set(order[:3])
    assert discarded.asked == {order[0], order[4], order[8]}, "thrown away is not asked"


def test_thrown_away_questions_come_back_in_the_next_epoch() -> None:
    questions, stream = some_questions(12), FreshStream()
    for _ in range(40):
        take(stream, questions, (), 1, a_run("discarded"))
    assert stream.epoch == 13
    assert len(stream.asked) > 3


def test_no_fresh_question_wanted() -> None:
    questions, stream = some_questions(12), FreshStream()
    assert take(stream, questions, (), 0, a_run("kept")) == []
    assert stream == FreshStream()
    assert take(stream, questions, (), 0, a_run("discarded")) == []
    assert stream.place == BATCH


def epochs_with_retired(
    rule: Any, size: int, retired: int
) -> tuple[list[str], list[str], set[str]]:
    """The rest of an epoch whose first half was asked when so many retire, and the next epoch."""
    questions, stream, run = some_questions(size), FreshStream(), a_run(retired=rule)
    order = ids(take(FreshStream(), questions, (), size, run))
    take(stream, questions, (), size // 2, run)
    gone = order[::-1][:retired]  # all of them still to come in this epoch
    left = size - size // 2 - (retired if rule == "leave_at_once" else 0)
    rest = ids(take(stream, questions, gone, max(left, 0), run))
    next_epoch = ids(take(stream, questions, gone, size - retired, run))
    return rest, next_epoch, set(gone)


def test_retired_questions_stay() -> None:
    rest, next_epoch, gone = epochs_with_retired("stay", 60, 10)
    assert gone <= set(rest)
    assert gone & set(next_epoch)


def test_retired_questions_leave_at_once() -> None:
    rest, next_epoch, gone = epochs_with_retired("leave_at_once", 60, 10)
    assert len(rest) == 20 and not gone & set(rest)
    assert len(set(next_epoch)) == 50 and not gone & set(next_epoch)


def test_retired_questions_leave_at_the_next_epoch() -> None:
    rest, next_epoch, gone = epochs_with_retired("leave_next_epoch", 60, 10)
    assert gone <= set(rest), "this epoch goes on as it began"
    assert len(set(next_epoch)) == 50 and not gone & set(next_epoch)


@pytest.mark.parametrize("rule", ["leave_at_once", "leave_next_epoch"])
def test_retired_questions_leave_only_while_more_than_a_batch_and_twenty_are_left(
    rule: Any,
) -> None:
    questions, run = some_questions(BATCH + SPARE + 10), a_run(retired=rule)
    for count, leaves in ((9, True), (10, False), (11, False)):
        retired = ids(questions[:count])
        stream = FreshStream()
        take(stream, questions, (), len(questions), run)  # up to the end of an epoch
        drawn = ids(take(stream, questions, retired, BATCH + SPARE + 1, run))
        assert bool(set(retired) & set(drawn)) != leaves


def test_who_retires_during_an_epoch_is_left_out_from_the_next_one_on() -> None:
    """And who returns by the Retired Review is asked again then."""
    questions, stream = some_questions(40), FreshStream()
    run = a_run(retired="leave_next_epoch")
    one, other = ids(questions[:2])
    take(stream, questions, (), 40, run)
    first = ids(take(stream, questions, [one], 20, run))
    first += ids(take(stream, questions, [one, other], 19, run))
    assert one not in first and other in first
    second = ids(take(stream, questions, [other], 39, run))
    assert one in second and other not in second


@given(
    st.sampled_from(("kept", "discarded")),
    st.sampled_from(("stay", "leave_at_once", "leave_next_epoch")),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12),
    st.integers(0, 12),
)
def test_a_resumed_stream_goes_on_the_same(
    unused: str, rule: str, steps: list[tuple[int, int]], stopped: int
) -> None:
    questions, run = some_questions(BATCH + SPARE + 8), a_run(unused, rule)
    whole, resumed = FreshStream(), FreshStream()
    for step, (count, retired) in enumerate(steps):
        if step == stopped:
            resumed = FreshStream.from_state(resumed.state())
            assert resumed == whole
        gone = ids(questions[:retired])
        expected = take(whole, questions, gone, count, run)
        assert take(resumed, questions, gone, count, run) == expected
        assert len(expected) == count
    assert resumed == whole


def test_a_state_is_plain_and_does_not_follow_the_stream() -> None:
    questions, stream = some_questions(12), FreshStream()
    take(stream, questions, (), 3, a_run())
    state = stream.state()
    before = FreshStream.from_state(state)
    take(stream, questions, (), 12, a_run())
    assert FreshStream.from_state(state) == before != stream
    assert {type(value) for value in state.values()} == {int, list}
