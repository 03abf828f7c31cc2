"""Where a response ends: end tokens, padding and the length limit, through the training itself.

The numbers of traps are those of what went wrong in other trainers.
"""

import dataclasses
import math
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from chat_tokenizers import CHAT_ML_TOKENS, bytes_tokenizer, qwen
from hypothesis import given, settings
from hypothesis import strategies as st
from prompted import prompted
from slow_step import forward_alone
from test_trainer import final_weights
from watched import REPLAY, WatchedRun, little, watched_run

from exgrpo import trainer
from exgrpo.batch import Row
from exgrpo.errors import UserError
from exgrpo.grading import Answer, Grader, Verdict, rules_of
from exgrpo.policy import (
    TokenSequence,
    load_policy,
    load_tokenizer,
    response_texts,
    save_policy,
    stop_ids,
)
from exgrpo.questions import Question

SHOT = {"question": "1+1=", "response": r"1+1=2\boxed{2}"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, able_folder: str, grader: Grader) -> WatchedRun:
    of = little(experience=REPLAY, buffer={"retire": False}, training={"steps": 3})
    return watched_run(tmp_path_factory.mktemp("plain"), able_folder, of, grader, 0.1)


# ---- traps 4 and 26: the tokens of a prompt and of a response, as they were ----


@pytest.mark.parametrize("examples", [[], [SHOT]], ids=["bare", "few-shot"])
def test_traps_4_and_26_rows_are_scored_after_the_stored_prompt(
    examples: list[dict[str, str]], able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """Fresh and replayed rows alike: the policy does not move, so one model scores them all."""
    of = little(
        prompt={"examples": examples}, experience=REPLAY, buffer={"retire": False},
        training={"steps": 3},
    )  # fmt: skip
    run = watched_run(tmp_path, able_folder, of, grader, learning_rate=0.0)
    model, tokenizer = load_policy(able_folder, "float64")
    asked = {each.id: each for each in prompted(of.questions, able_folder, of.prompt)["train"]}
    rows = run.rows.to_dicts()
    assert {row["replayed"] for row in rows} == {True, False}
    apart = 0.0
    for row in rows:
        question = asked[row["question"]]
        bare = tokenizer(question.text).input_ids
        with torch.no_grad():
            stored, alone = (
                forward_alone(model, {"prompt_ids": ids, "token_ids": row["token_ids"]})[0]
                for ids in (list(question.prompt_ids), bare)
            )
        # The log is float32.
        assert stored.numpy() == pytest.approx(np.array(row["behaviour_logprobs"]), abs=1e-5)
        apart = max(apart, float((stored - alone).abs().max()))
    assert (apart > 0.1) == bool(examples), "another prompt would show"
    learning = run.rows.filter(pl.col("ratio_min").is_not_null())
    assert learning["replayed"].any() and not learning["replayed"].all()
    for column in ("ratio_min", "ratio_max"):
        assert (learning[column] - 1).abs().max() < 1e-5
    assert (run.rows["nll"] - run.rows["behaviour_nll"]).abs().max() < 1e-5
    updated = learning.filter(pl.col("logprobs").is_not_null())  # for each token that of the update
    assert updated["replayed"].any() and not updated["replayed"].all()
    for now, then in updated.select("logprobs", "behaviour_logprobs").iter_rows():
        assert now == pytest.approx(then, abs=1e-5)


@pytest.fixture(scope="module")
def merging(tmp_path_factory: pytest.TempPathFactory, able_folder: str) -> str:
    """The able model, whose tokenizer reads `=2` as one token, where it samples two."""
    folder = tmp_path_factory.mktemp("merging") / "base"
    model, tokenizer = load_policy(able_folder)
    tokenizer.add_tokens([f"={digit}" for digit in range(10)])
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():  # as unlikely as a token that was never taught is
        model.get_output_embeddings().weight[-10:] = 0.0
    save_policy(model, tokenizer, folder)
    return str(folder)


def test_trap_26_tokens_are_kept_as_sampled_whatever_their_text_is(
    merging: str, grader: Grader, tmp_path: Path
) -> None:
    """Decoded and encoded again they would be others: in fresh rows, and in replayed ones."""
    of = little(experience=REPLAY, buffer={"retire": False}, training={"steps": 3})
    run = watched_run(tmp_path, merging, of, grader, learning_rate=0.0)
    model, tokenizer = load_policy(merging, "float64")
    asked = {each.id: each for each in prompted(of.questions, merging)["train"]}
    others = {True: 0, False: 0}
    for row in run.rows.iter_rows(named=True):
        again = tokenizer(row["response"], add_special_tokens=False).input_ids
        others[row["replayed"]] += again != row["token_ids"][: len(again)]
        given = {"prompt_ids": list(asked[row["question"]].prompt_ids)}
        with torch.no_grad():
            alone = forward_alone(model, given | {"token_ids": row["token_ids"]})[0]
        assert alone.numpy() == pytest.approx(np.array(row["behaviour_logprobs"]), abs=1e-5)
    assert min(others.values()) > 0, "no text would show it"
    fresh = run.rows.filter(~pl.col("replayed"))
    sampled = {tuple(ids) for ids in fresh["token_ids"].to_list()}
    replayed = run.rows.filter(pl.col("replayed"))
    assert {tuple(ids) for ids in replayed["token_ids"].to_list()} <= sampled


def test_trap_26_a_checkpoint_of_other_prompts_is_refused(
    plain: WatchedRun, able_folder: str, tmp_path: Path
) -> None:
    """The same questions with a beginning token too many, or with no prompt ids at all."""
    folder = shutil.copytree(plain.folder, tmp_path / "run")
    splits = prompted(plain.settings.questions, able_folder)
    first, *others = splits["train"]

    def go_on(prompt_ids: tuple[int, ...]) -> str:
        changed = dataclasses.replace(first, prompt_ids=prompt_ids)
        with pytest.raises(UserError) as told:
            trainer.train(
                plain.settings, able_folder, [changed, *others], splits["validation"], folder,
                lambda metrics: None, lambda progress: None,
            )  # fmt: skip
        return str(told.value)

    assert "  prompts: " in go_on((first.prompt_ids[0], *first.prompt_ids))
    assert "no prompt_ids in its question file" in go_on(())


def row(**changes: np.ndarray) -> Row:
    """A row of three tokens."""
    three = np.zeros(3, dtype=np.float32)
    arrays = {"behaviour_logprobs": three, "previous_logprobs": three, "entropies": three}
    return Row(
        id="r:1:0:0", group=0, slot=0, question=Question("1+1=", "2", 1, "here"),
        sequence=TokenSequence([1, 2], [4, 5, 2]), finish="stop", source=None, birth_step=1,
        response="", verdict=Verdict(True, "2", True, "same text"), **(arrays | changes),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["behaviour_logprobs", "previous_logprobs", "entropies"])
@pytest.mark.parametrize("length", [2, 4])
def test_trap_26_values_that_are_not_one_a_token_are_an_error(name: str, length: int) -> None:
    with pytest.raises(ValueError, match=f"r:1:0:0: {length} {name} for 3 tokens"):
        row(**{name: np.zeros(length)})
    assert row().advantage == 0.0


# ---- trap 30: what comes after the end ----


def test_trap_30_nothing_after_the_end_token_counts(plain: WatchedRun, able_folder: str) -> None:
    """Lengths differ and are below the limit; every token has values, and the end is the last."""
    end = load_tokenizer(able_folder).eos_token_id
    limit = plain.settings.rollout.max_new_tokens
    rows = plain.rows
    assert rows["length"].mean() < limit and rows["length"].n_unique() > 3
    assert set(rows["finish"]) == {"stop"} or set(rows["finish"]) == {"stop", "length"}
    for each in rows.iter_rows(named=True):
        ids = each["token_ids"]
        assert len(ids) == each["length"] == len(each["behaviour_logprobs"])
        assert ids.count(end) == (each["finish"] == "stop")
        assert (ids[-1] == end) == (each["finish"] == "stop")
    tokens = plain.table("steps").sort("step")["trained_tokens"].to_list()
    assert (
        tokens == rows.group_by("step").agg(pl.col("length").sum()).sort("step")["length"].to_list()
    )


# ---- trap 31: several end tokens ----


def test_trap_31_a_response_ends_by_any_end_token(
    many_ends: str, grader: Grader, tmp_path: Path
) -> None:
    """Those of the generation config, the tokenizer and the settings; none is in the text."""
    of = little(prompt={"stop": ["*", "}"]}, experience=REPLAY, training={"steps": 2})
    run = watched_run(tmp_path, many_ends, of, grader, 0.1)
    tokenizer = load_tokenizer(many_ends)
    ends = {tokenizer.convert_tokens_to_ids(token): token for token in ("+", "*", "}", "<eos>")}
    seen = set()
    for each in run.rows.iter_rows(named=True):
        *body, last = each["token_ids"]
        assert not ends.keys() & set(body)
        assert (last in ends) == (each["finish"] == "stop")
        assert each["response"] == tokenizer.decode(body + [last] * (last not in ends))
        seen.add(ends.get(last))
    assert {"+", "*", "}"} <= seen
    validated = run.table("evaluations")
    assert validated.height
    model, _ = load_policy(many_ends)
    assert stop_ids(model, tokenizer, ["*", "}"]) == tuple(sorted(ends))


def test_trap_31_a_stop_is_one_token_by_its_text(many_ends: str) -> None:
    model, tokenizer = load_policy(many_ends)
    for unknown in ("#", "+-", "", "<|im_end|>"):
        with pytest.raises(UserError, match=r"settings\.prompt\.stop: '.*' is not one token"):
            stop_ids(model, tokenizer, [unknown])
    real = qwen()  # its vocabulary writes a line end in its own way
    assert set(stop_ids(model, real, ["\n"])) >= set(real("\n").input_ids)
    assert real.convert_tokens_to_ids("<|im_start|>") in stop_ids(model, real, ["<|im_start|>"])


ENDED = bytes_tokenizer((*CHAT_ML_TOKENS, "</s>"), end="<|im_end|>")


@settings(deadline=None)
@given(text=st.text(st.characters(codec="utf-8")), end=st.sampled_from(["a", "</s>", "\n"]))
def test_trap_3_an_end_is_cut_off_by_its_id_and_once(text: str, end: str) -> None:
    """Whatever the text before it ends with, special or not."""
    ids = ENDED(text).input_ids
    stop = ENDED(end).input_ids
    assert response_texts(ENDED, [[*ids, *stop], ids], stop) == [
        text,
        text[: -len(end)] if text.endswith(end) else text,
    ]
    assert response_texts(ENDED, [], stop) == []


def test_think_tags_stay_in_the_text_where_they_are_special_tokens(grader: Grader) -> None:
    """Without them the grader would find no end of the thought, and every reward would be 0."""
    special = (*CHAT_ML_TOKENS, "<think>", "</think>")
    tokenizer = bytes_tokenizer(special, end="<|im_end|>")
    said = "<think>\n7+5<|im_start|>\n</think>\n\\boxed{12}"
    ids = tokenizer(said + "<|im_end|>").input_ids
    assert {tokenizer.convert_tokens_to_ids(each) for each in special[1:]} <= {*ids}
    (text,) = response_texts(tokenizer, [ids], [tokenizer.eos_token_id])
    assert text == said.replace("<|im_start|>", "")
    (verdict,) = grader.grade_all([Answer("12", text, rules_of("think"))])
    assert verdict.correct


# ---- trap 32: nothing to train on ----


@pytest.mark.parametrize("normaliser", ["constant", "constant_sum", "sequence", "token"])
@pytest.mark.parametrize("standardise", [False, True])
def test_trap_32_a_step_of_truncated_rows_alone_changes_nothing(
    normaliser: str, standardise: bool, able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """Loss 0, gradient 0, no NaN, and the weights have the same bits."""
    of = little(
        objective={
            "normaliser": normaliser, "standardise": standardise, "entropy_bonus": 0.0,
        },
        rollout={"group_size": 8, "max_new_tokens": 2},
        experience=REPLAY,
        training={"steps": 2},
    )  # fmt: skip
    run = watched_run(tmp_path, able_folder, of, grader, 0.5)
    rows = run.rows
    assert set(rows["finish"]) == {"length"} and not rows["correct"].any()
    assert (rows["advantage"] == 0).all()
    for step in run.table("steps").iter_rows(named=True):
        assert step["loss"] == 0 and step["grad_norm"] == 0
        assert all(math.isfinite(value) for value in step.values() if isinstance(value, float))
    for update in run.updates:
        assert all(torch.equal(each, torch.zeros_like(each)) for each in update.gradient.values())
    before = load_policy(able_folder, "float64")[0].state_dict()
    for name, weight in final_weights(run.folder).items():
        assert torch.equal(weight, before[name])
