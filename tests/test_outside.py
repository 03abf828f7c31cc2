"""Trajectories that are not the run's own: the expert's answers, and another run's pool."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from lessons import QUESTIONS
from prompted import prompted
from transformers import PreTrainedTokenizerBase
from watched import WatchedRun, little, watched_run

from exgrpo import chain
from exgrpo.errors import UserError
from exgrpo.grading import Grader, grade
from exgrpo.outside import expert_trajectories, outside_trajectories, pool_trajectories
from exgrpo.policy import load_tokenizer
from exgrpo.questions import Question
from exgrpo.settings import Questions
from exgrpo.tables.manifest import live_parts


@pytest.fixture
def tokenizer(able_folder: str) -> PreTrainedTokenizerBase:
    return load_tokenizer(able_folder)


@pytest.fixture
def asked(able_folder: str) -> list[Question]:
    return prompted(Questions.model_validate(QUESTIONS), able_folder)["train"]


# ---- the expert ----


def test_the_built_in_expert_writes_the_exact_chain(
    tokenizer: PreTrainedTokenizerBase, asked: list[Question]
) -> None:
    expert = expert_trajectories(asked, tokenizer, None)
    assert list(expert) == [question.id for question in asked]
    for question in asked:
        (answer,) = expert[question.id]
        assert answer.token_ids[-1] == tokenizer.eos_token_id
        assert answer.prompt_ids == list(question.prompt_ids)
        text = tokenizer.decode(answer.token_ids, skip_special_tokens=True)
        assert grade(question.gold, text).correct
        assert chain.check(question.text, text).valid
        assert answer.logprobs.tolist() == [0.0] * len(answer), "behaviour probability 1"


def test_answers_from_a_file_belong_to_the_questions_they_name(
    tokenizer: PreTrainedTokenizerBase, asked: list[Question], tmp_path: Path
) -> None:
    file = tmp_path / "expert.jsonl"
    file.write_text(
        f'{{"question": "{asked[1].text} ", "response": "\\\\boxed{{4}}"}}\n'
        '{"question": "stranger", "response": "5"}\n'
    )
    expert = expert_trajectories(asked, tokenizer, str(file))
    assert list(expert) == [asked[1].id], "the others have none"
    text = tokenizer.decode(expert[asked[1].id][0].token_ids, skip_special_tokens=True)
    assert text == r"\boxed{4}"


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"question": "1+1=", "response": "2"}\nnonsense\n', "line 2: .*nonsense"),
        (b'{"question": "1+1="}\n', "line 1: KeyError.*response"),
        (b'["1+1=", "2"]\n', "line 1: TypeError"),
        (
            b'{"question": "1+1=", "response": 2}\n',
            "line 1: `question` and `response` must be text",
        ),
        (b'{"question": "1+1=", "response": "\xff"}\n', "no UTF-8 text"),
        (None, "no such file.*settings.join.expert"),
    ],
)
def test_a_file_of_answers_that_cannot_be_read(
    content: bytes | None,
    message: str,
    tokenizer: PreTrainedTokenizerBase,
    asked: list[Question],
    tmp_path: Path,
) -> None:
    file = tmp_path / "expert.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        expert_trajectories(asked, tokenizer, str(file))
    assert str(file) in str(error.value)


def check_no_buffer(run: WatchedRun) -> None:
    """What is not the run's own needs no buffer: nothing is stored, and no question retires."""
    assert "experience" not in {part.table for part in live_parts(run.folder / "log")}
    assert (run.table("steps")["buffer_trajectories"] == 0).all()


def test_an_expert_joins_every_fresh_group(
    able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """LUFFY: one answer in place of a rollout, in the group's mean; no question is drawn."""
    of = little(
        experience={"replay": "trajectory", "start": "at_once"},
        join={"source": "expert", "visit": "fresh"},
        buffer={"retire": False},
    )
    run = watched_run(tmp_path, able_folder, of, grader, 0.1)
    assert not run.rows["experiential"].any()
    for (_, _), group in run.rows.group_by(["step", "group"]):
        assert group.height == 8
        expert = group.filter("replayed")
        assert expert["slot"].to_list() == [0]
        assert expert["source"].item() == f"expert:{group['question'][0]}"
        assert expert["correct"].item() and expert["chain_valid"].item()
        reward = group["correct"].cast(pl.Float64)
        assert (group["advantage"] - (reward - reward.mean())).abs().max() < 1e-9
    experts = run.rows.filter("replayed")
    probability = np.exp(-experts["nll"] * experts["length"])
    assert probability.max() < 1
    assert (experts["behaviour_nll"] == 0).all()
    assert (experts["birth_step"] == 0).all()
    check_no_buffer(run)


# ---- the pool ----


@pytest.fixture(scope="module")
def earlier(
    tmp_path_factory: pytest.TempPathFactory, able_folder: str, grader: Grader
) -> WatchedRun:
    """A run that replays itself: what it replayed was sampled before and counts once."""
    of = little(
        experience={"replay": "trajectory", "start": "at_once", "order": "random"},
        buffer={"retire": False},
        training={"steps": 6},
    )
    run = watched_run(tmp_path_factory.mktemp("earlier"), able_folder, of, grader, 0.1)
    assert run.rows["replayed"].any()
    return run


def right_answers(run: WatchedRun, room: int = 1000) -> dict[str, list[dict[str, Any]]]:
    """Question -> its right finished answers, each spelling once, the newest `room` of them."""
    right: dict[str, list[dict[str, Any]]] = {}
    for row in run.rows.filter(~pl.col("replayed"), correct=True, finish="stop").iter_rows(
        named=True
    ):
        kept = right.setdefault(row["question"], [])
        if row["token_ids"] not in [each["token_ids"] for each in kept]:
            right[row["question"]] = [*kept, row][-room:]
    return right


@pytest.mark.parametrize("room", [None, 2])
def test_the_pool_is_every_right_answer_once_the_newest_where_room_is_short(
    room: int | None, earlier: WatchedRun, asked: list[Question]
) -> None:
    log = earlier.folder / "log"
    pool = pool_trajectories(log, asked, room)
    expected = right_answers(earlier, room or 1000)
    assert any(len(rows) > 2 for rows in right_answers(earlier).values())
    assert pool.keys() == expected.keys()
    for question in asked:
        for row, each in zip(expected[question.id], pool[question.id], strict=True):
            assert each.id == row["trajectory"]
            assert each.token_ids.tolist() == row["token_ids"]
            assert each.logprobs.tolist() == row["behaviour_logprobs"]
            assert each.birth_step == row["step"]
            assert each.prompt_ids == list(question.prompt_ids)


def test_the_pool_joins_beside_the_group(
    earlier: WatchedRun, able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """RLEP: two right answers of the earlier run on top of K fresh rollouts."""
    of = little(
        experience={"replay": "trajectory", "start": "at_once", "order": "random"},
        join={"source": "pool", "pool": "x", "visit": "fresh", "count": 2, "place": "beside"},
        buffer={"retire": False, "count_replayed": False},
    )
    run = watched_run(tmp_path, able_folder, of, grader, 0.1, pool_log=earlier.folder / "log")
    sources = {row["trajectory"] for rows in right_answers(earlier).values() for row in rows}
    for _, group in run.rows.group_by(["step", "group"]):
        joined = group.filter("replayed")
        assert group.height == 8 + joined.height
        assert joined["slot"].to_list() == list(range(joined.height))
        assert set(joined["source"]) <= sources
        assert joined["correct"].all()
        assert (group["group_size"] == 8).all(), "k counts the fresh rollouts"
        fresh = group.filter(~pl.col("replayed"))
        assert (group["group_successes"] == fresh["correct"].sum()).all()
    assert run.rows.filter("replayed").group_by(["step", "group"]).len()["len"].max() == 2
    check_no_buffer(run)


def test_only_questions_of_the_training_set_are_in_the_pool(
    earlier: WatchedRun, asked: list[Question]
) -> None:
    pool = pool_trajectories(earlier.folder / "log", asked[:1], None)
    assert list(pool) == [asked[0].id]
    stranger = Question("9*9=", "1", 1, chain.SOURCE)
    with pytest.raises(UserError, match="no pool to replay from"):
        pool_trajectories(earlier.folder / "log", [stranger], None)


def test_a_pool_without_its_log(
    earlier: WatchedRun,
    tokenizer: PreTrainedTokenizerBase,
    asked: list[Question],
    tmp_path: Path,
) -> None:
    of = little(
        experience={"replay": "trajectory"},
        join={"source": "pool", "pool": "x", "visit": "fresh"},
    )
    with pytest.raises(UserError, match="no log of that run"):
        outside_trajectories(of, asked, tokenizer, None)
    with pytest.raises(UserError, match="no rows of table"):
        outside_trajectories(of, asked, tokenizer, tmp_path / "log")
    log = shutil.copytree(earlier.folder / "log", tmp_path / "log")
    for part in (log / "tokens").iterdir():
        part.unlink()
    with pytest.raises(UserError, match="missing"):
        outside_trajectories(of, asked, tokenizer, log)
