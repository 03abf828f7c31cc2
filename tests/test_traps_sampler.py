"""Traps 17 to 22 and 24: log-probabilities of a sampler that is not quite the trainer.

The sampler here is the torch engine on a copy of the model whose weights are bfloat16: it samples
from, and reports, another distribution than the trainer's, as vLLM does. With vLLM itself:
tests/scale/.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from prompted import prompted
from transformers import PreTrainedModel
from watched import REPLAY, WatchedRun, little, watched_run

from exgrpo import trainer
from exgrpo.errors import UserError
from exgrpo.grading import Grader
from exgrpo.hardware import Hardware
from exgrpo.objective import sampler_correction, sampler_ratio
from exgrpo.policy import (
    TokenSequence,
    distribution,
    load_policy,
    load_tokenizer,
    save_policy,
    score_tokens,
)
from exgrpo.rollout.torch_engine import TorchEngine
from exgrpo.settings import Objective, Rollout

CAP = 1.002


@dataclass(frozen=True)
class RoundedEngine(TorchEngine):
    """Samples with rounded weights, and says that it is not exact."""

    @property
    def exact(self) -> bool:
        return False


@contextmanager
def rounded_engine_of(
    settings: Any, hardware: Any, scorer: Any, policy: PreTrainedModel, path: str, *more: Any
) -> Iterator[RoundedEngine]:
    replica, _ = load_policy(path)

    @torch.no_grad()
    def take_over() -> None:
        for name, value in policy.state_dict().items():
            replica.state_dict()[name].copy_(value.to(torch.bfloat16))

    yield RoundedEngine(replica, take_over)


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, able_folder: str, grader: Grader
) -> dict[str, WatchedRun]:
    """The same training with and without correction: its first step samples the same."""
    done = {}
    for correction in ("truncated", "none"):
        of = little(
            experience=REPLAY,
            buffer={"retire": False},
                optimiser={"grad_clip": None},
            objective={
                "sampler_correction": correction, "sampler_cap": CAP, "entropy_bonus": 0.0,
                "clip_before_start": "none", "clip_after_start": "none",
            },
        )  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trainer, "engine_of", rounded_engine_of)
            folder = tmp_path_factory.mktemp(correction)
            done[correction] = watched_run(folder, able_folder, of, grader, 0.1)
    return done


def test_trap_17_a_truncated_sampler_is_refused() -> None:
    for key, value in (("top_p", 0.9), ("top_k", 20), ("min_p", 0.1)):
        with pytest.raises(ValueError, match=f"{key} {value}: training samples from the whole"):
            Rollout.model_validate({key: value})


def test_trap_18_the_gap_is_logged_before_it_is_cut(runs: dict[str, WatchedRun]) -> None:
    """Of the raw ratios, and how many of them the cap cut: worked out again from the log."""
    run = runs["truncated"]
    model, _ = load_policy(run.base, "float64")
    model.load_state_dict(run.updates[0].weights)
    first = run.rows.filter(~pl.col("replayed"), step=1)
    gaps = []
    for row in first.iter_rows(named=True):
        prompt = load_tokenizer(run.base)(_text(run, row["question"])).input_ids
        with torch.no_grad():
            ours = score_tokens(model, [TokenSequence(prompt, row["token_ids"])], 1.0).logprobs
        gaps.append(ours.numpy() - np.array(row["behaviour_logprobs"]))
    gap = np.concatenate(gaps)
    ratio = np.exp(gap)
    (logged,) = run.table("steps").filter(step=1).to_dicts()
    assert logged["sampler_gap_mean"] == pytest.approx(np.abs(gap).mean(), rel=1e-4)
    assert logged["sampler_gap_max"] == pytest.approx(np.abs(gap).max(), rel=1e-4)
    assert logged["sampler_ratio_mean"] == pytest.approx(ratio.mean(), rel=1e-6)
    assert logged["sampler_capped_share"] == pytest.approx((ratio > CAP).mean())
    assert 0 < logged["sampler_capped_share"] < 1, "the cap is at work, and not everywhere"
    assert ratio.max() > CAP


def _text(run: WatchedRun, question: str) -> str:
    asked = prompted(run.settings.questions, run.base)["train"]
    return next(each.text for each in asked if each.id == question)


def test_trap_20_the_correction_is_of_the_policy_before_the_update(
    runs: dict[str, WatchedRun],
) -> None:
    """A constant of the update: its gradient is the corrected sum of the tokens' own gradients.

    Of the first update: rows, advantages and samples are the same with and without correction.
    """
    gradients = {}
    for name, run in runs.items():
        model, tokenizer = load_policy(run.base, "float64")
        model.load_state_dict(run.updates[0].weights)
        total = torch.zeros((), dtype=torch.float64)
        chosen = run.rows.filter((pl.col("group") % 2 == 0) & (pl.col("advantage") != 0), step=1)
        sequences = run.rows.filter(pl.col("group") % 2 == 0, step=1).height
        above = 0
        for row in chosen.iter_rows(named=True):
            prompt = tokenizer(_text(run, row["question"])).input_ids
            now = score_tokens(model, [TokenSequence(prompt, row["token_ids"])], 1.0).logprobs
            sampler = torch.tensor(row["behaviour_logprobs"], dtype=torch.float64)
            raw = (now.detach() - sampler).exp()
            above += int((raw > CAP).sum())
            constant = raw.clamp(max=CAP) if name == "truncated" else torch.ones_like(raw)
            total = total - (now * constant).sum() * row["advantage"]
        assert above > 0, "the cap is at work"
        (total / (sequences * run.settings.rollout.max_new_tokens)).backward()
        expected = {key: weight.grad for key, weight in model.named_parameters()}
        given = run.updates[0].gradient
        for key, gradient in given.items():
            assert expected[key] is not None
            torch.testing.assert_close(gradient, expected[key], rtol=0, atol=1e-7)
        gradients[name] = given
    apart = max(
        float((gradients["none"][key] - each).abs().max())
        for key, each in gradients["truncated"].items()
    )
    assert apart > 1e-5, "the correction would show"


def test_trap_24_a_replayed_rows_ratio_is_not_1_after_an_update(
    runs: dict[str, WatchedRun],
) -> None:
    """Its denominator is what the sampler said at birth, though another policy trains on it."""
    rows = runs["truncated"].rows
    births = {row["trajectory"]: row for row in rows.iter_rows(named=True)}
    replayed = rows.filter(pl.col("replayed") & pl.col("ratio_mean").is_not_null())
    assert replayed.height
    for row in replayed.iter_rows(named=True):
        source = births[row["source"]]
        assert row["behaviour_logprobs"] == source["behaviour_logprobs"]
        ratios = np.exp(np.array(row["logprobs"]) - np.array(source["behaviour_logprobs"]))
        assert row["ratio_mean"] == pytest.approx(ratios.mean(), rel=1e-5)
        assert abs(row["ratio_mean"] - 1) > 1e-5
    # A fresh row's is the trainer's own: 1 in the first update, whatever the sampler said.
    fresh = rows.filter(~pl.col("replayed") & (pl.col("group") % 2 == 0))
    assert (fresh["ratio_max"].drop_nulls() - 1).abs().max() < 1e-6


def test_trap_23_dropout_of_a_model_is_never_on(
    able_folder: str, grader: Grader, tmp_path: Path
) -> None:
    """Transformers checkpoints activations in training mode alone, which would turn it on."""
    model, tokenizer = load_policy(able_folder)
    model.config.attention_dropout = 0.5
    base = tmp_path / "model"
    save_policy(model, tokenizer, base)
    of = little(experience=REPLAY, training={"steps": 2})
    run = watched_run(tmp_path / "run", str(base), of, grader, 0.0)
    assert run.rows["ratio_max"].drop_nulls().len() > 10
    for column in ("ratio_min", "ratio_max"):
        assert (run.rows[column].drop_nulls() - 1).abs().max() < 1e-6
    hardware = Hardware(title="t", activation_checkpointing=True)
    with pytest.raises(UserError, match="activation_checkpointing: this model has dropout"):
        watched_run(tmp_path / "again", str(base), of, grader, 0.0, hardware=hardware)


@pytest.mark.parametrize("tied", [True, False])
def test_trap_21_logits_of_a_bfloat16_model_are_worked_with_in_float32(
    tied: bool, able_folder: str, tmp_path: Path
) -> None:
    """The head's product rounds to bfloat16, and nothing after it does."""
    model, tokenizer = load_policy(able_folder)
    with torch.no_grad():
        head = model.get_output_embeddings().weight.clone()
        model.config.tie_word_embeddings = tied
        if tied:
            model.get_output_embeddings().weight = model.get_input_embeddings().weight
        else:
            model.get_output_embeddings().weight = torch.nn.Parameter(head)
    save_policy(model, tokenizer, tmp_path / "model")
    mixed, _ = load_policy(str(tmp_path / "model"), "bfloat16")
    own, embedding = mixed.get_output_embeddings().weight, mixed.get_input_embeddings().weight
    assert (own.data_ptr() == embedding.data_ptr()) is tied
    asked = [TokenSequence([1, token, 5], [token]) for token in range(4, 14)]
    ids = torch.tensor([each.prompt_ids for each in asked])
    with torch.no_grad():
        scores = score_tokens(mixed, asked, 0.6)
        with torch.autocast("cpu", torch.bfloat16):
            hidden = mixed.base_model(input_ids=ids).last_hidden_state[:, -1]
        logits = hidden.to(torch.bfloat16) @ own.to(torch.bfloat16).T
    targets = torch.tensor([each.response_ids for each in asked])
    scaled = logits.double() / 0.6
    precise = torch.log_softmax(scaled, -1)
    torch.testing.assert_close(
        scores.logprobs.double(), precise.gather(-1, targets)[:, 0], rtol=0, atol=1e-5
    )
    entropies = -(precise.exp() * precise).sum(-1)
    torch.testing.assert_close(scores.entropies.double(), entropies, rtol=0, atol=1e-5)
    for rounded in (torch.log_softmax(logits / 0.6, -1), precise.to(torch.bfloat16)):
        assert (rounded.double() - precise).abs().max() > 1e-3, "rounded again, it would show"


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.3])
def test_trap_22_the_tail_of_bfloat16_logits_is_not_rounded_away(temperature: float) -> None:
    """The softmax is in float32: the tail of a distribution over many tokens keeps its digits."""
    torch.manual_seed(0)
    logits = (torch.randn(4, 50_000) * 4).to(torch.bfloat16)
    exact = torch.log_softmax(logits.double() / temperature, -1)
    ours = distribution(logits, temperature)
    assert ours.dtype == torch.float32
    assert (ours - exact).abs().max() < 1e-5
    rounded = torch.log_softmax(logits / temperature, -1).double()
    assert (rounded - exact).abs().max() > 0.05, "in bfloat16 it would be"
    assert distribution(logits.double(), temperature).dtype == torch.float64


def test_trap_19_no_correction_or_clip_grows_with_the_length_of_a_response() -> None:
    """A hundred tokens of gap 0.012: together a ratio of 3.3, above the cap; each of them below."""
    rules = Objective()
    previous = torch.full((100,), -1.0, dtype=torch.float64)
    fresh = torch.zeros(100, dtype=torch.bool)
    ratio = sampler_ratio(previous, previous - 0.012, fresh)
    assert float(ratio.prod()) == pytest.approx(3.32, abs=0.01)
    assert float(ratio.prod()) > rules.sampler_cap
    corrections = sampler_correction(ratio, rules)
    assert corrections.tolist() == pytest.approx([np.exp(0.012)] * 100)
