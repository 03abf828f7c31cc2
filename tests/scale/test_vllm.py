"""vLLM for real, on the processor: what it samples is the policy, also after the policy has moved.

Needs the package vllm (`make test-vllm`). One engine serves the tests of one model.
"""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rounding import FLOAT32
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from exgrpo.errors import UserError
from exgrpo.hardware import CPU
from exgrpo.policy import TokenSequence, load_policy, load_tokenizer, stop_ids
from exgrpo.processes import ALONE
from exgrpo.rollout import Rollout, Sampling
from exgrpo.rollout.engines import engine_of
from exgrpo.rollout.vllm_engine import VllmEngine, require_same_policy
from exgrpo.scorer import Scorer, score_sequences
from exgrpo.settings import RunSettings

pytest.importorskip("vllm", reason="needs the package vllm: make test-vllm")
pytestmark = pytest.mark.vllm

# nat a token, the greatest of some thousand tokens: what bfloat16 rounds.
BFLOAT16 = 0.5
TEXTS = ("1+2", "3*4+1", "2-1", "9*9-4")
SAMPLES, TOKENS = 8, 40


@dataclass(frozen=True)
class Opened:
    """An engine, the policy that it samples from, and the prompts that it is asked."""

    engine: VllmEngine
    model: PreTrainedModel
    prompts: list[list[int]]
    stops: tuple[int, ...]

    def sample(self, temperature: float = 1.0, **other: Any) -> list[list[Rollout]]:
        how = {"max_new_tokens": TOKENS, "stop_ids": self.stops, "batch": 64, **other}
        seeds = [[100 * number + k for k in range(SAMPLES)] for number in range(len(self.prompts))]
        return self.engine.generate(
            self.prompts, seeds, Sampling(temperature, **how), lambda numbers, rollouts: None
        )

    def gaps(self, groups: Sequence[Sequence[Rollout]], temperature: float = 1.0) -> np.ndarray:
        """|torch's forward - recorded|, of every token."""
        pairs = [
            (TokenSequence(prompt, rollout.token_ids), rollout)
            for prompt, own in zip(self.prompts, groups, strict=True)
            for rollout in own
        ]
        scores = score_sequences(Scorer(self.model), [each for each, _ in pairs], temperature, 4096)
        return np.concatenate(
            [
                np.abs(score.logprobs.numpy() - rollout.logprobs)
                for score, (_, rollout) in zip(scores, pairs, strict=True)
            ]
        )


@contextmanager
def opened(folder: Path, dtype: str = "float32", **rollout: Any) -> Iterator[Opened]:
    """The engine of a model folder, synced."""
    settings = RunSettings.model_validate(
        {
            "study": "t", "arm": "a", "seed": 0,
            "rollout": {"engine": "vllm", "engine_dtype": dtype, "batch": 64, **rollout},
        }
    )  # fmt: skip
    model, tokenizer = load_policy(str(folder))
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    prompts.append([5 + number % 10 for number in range(150)])  # longer than a block of the cache
    with engine_of(settings, CPU, Scorer(model), model, str(folder), ALONE, prompts) as engine:
        assert isinstance(engine, VllmEngine)
        engine.sync()
        yield Opened(engine, model, prompts, stop_ids(model, tokenizer))


@pytest.fixture(scope="module")
def llama(wide_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """The small base, whose folder asks for a truncated, penalised distribution."""
    folder = tmp_path_factory.mktemp("llama") / "model"
    shutil.copytree(wide_base, folder)
    path = folder / "generation_config.json"
    asked = {"do_sample": True, "top_k": 2, "top_p": 0.5, "repetition_penalty": 3.0}
    path.write_text(json.dumps({**json.loads(path.read_text()), **asked, "max_new_tokens": 3}))
    with opened(folder) as made:
        yield made


@pytest.fixture
def moved(llama: Opened) -> Iterator[Callable[[float], None]]:
    """Moves the policy's weights by noise of this size; afterwards it is as before, and synced."""
    before = {name: value.clone() for name, value in llama.model.state_dict().items()}

    @torch.no_grad()
    def move(size: float) -> None:
        generator = torch.Generator().manual_seed(0)
        for weight in llama.model.parameters():
            weight += size * torch.randn(weight.shape, generator=generator)

    yield move
    llama.model.load_state_dict(before)
    llama.engine.sync()


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.3])
def test_log_probabilities_are_those_of_the_forward_at_that_temperature(
    llama: Opened, temperature: float
) -> None:
    """Traps 16 and 17; the folder's own top-k, top-p, penalty and length have no say."""
    groups = llama.sample(temperature)
    gaps = llama.gaps(groups, temperature)
    print(f"float32, temperature {temperature}: mean {gaps.mean():.2g}, max {gaps.max():.2g}")
    assert gaps.max() < FLOAT32
    assert llama.gaps(groups, temperature + 0.3).max() > 100 * FLOAT32
    lengths = {len(rollout.token_ids) for own in groups for rollout in own}
    assert max(lengths) > 3 and len(lengths) > 3
    probable = [np.exp(rollout.logprobs) for own in groups for rollout in own]
    assert np.concatenate(probable).min() < 0.2, "top-k 2 or top-p 0.5 would leave nothing so rare"


@pytest.mark.parametrize("tied", [False, True])
def test_qwen2_after_its_weights_have_moved(wide_base: Path, tmp_path: Path, tied: bool) -> None:
    """Trap 21: the packed copy of a tied head is renewed too."""
    tokenizer = load_tokenizer(str(wide_base))
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=tied,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with opened(tmp_path) as qwen:
        for temperature in (0.6, 1.3):
            gaps = qwen.gaps(qwen.sample(temperature), temperature)
            print(f"Qwen2, {tied=}: mean {gaps.mean():.2g}, max {gaps.max():.2g}")
            assert gaps.max() < FLOAT32
        with torch.no_grad():
            for weight in qwen.model.parameters():
                weight += 0.3 * torch.randn_like(weight)
        assert qwen.gaps(qwen.sample()).mean() > 0.1
        qwen.engine.sync()
        assert qwen.gaps(qwen.sample()).max() < 10 * FLOAT32  # logits of some tens


def test_a_sync_brings_the_policy_of_now_and_sleep_not_the_one_before(
    llama: Opened, moved: Callable[[float], None]
) -> None:
    """Trap 25: every prompt has been asked before, the long one fills a block of the cache."""
    before = llama.sample()
    moved(0.05)
    assert llama.gaps(llama.sample()).mean() > 0.01
    llama.engine.sync()
    now = llama.sample()
    assert llama.gaps(now).max() < FLOAT32
    assert ids(now) != ids(before)
    llama.engine.sleep()
    llama.engine.sync()
    assert llama.gaps(llama.sample()).max() < FLOAT32


def test_the_probe_refuses_an_engine_that_missed_the_last_update(
    llama: Opened, moved: Callable[[float], None]
) -> None:
    """As small a step as one of training: 1e-3 is the tiny task's learning rate."""
    moved(1e-3)
    engine, probe = llama.engine, llama.engine.probe
    how = Sampling(probe.temperature, probe.tokens, (), batch=64)
    seeds = [[number] for number in range(len(probe.prompts))]
    stale = engine.generate(probe.prompts, seeds, how, lambda numbers, rollouts: None)
    with pytest.raises(UserError, match=r"0\.0001 are allowed \(hardware\.probe_gap\)") as told:
        require_same_policy(probe, [[own[0] for own in stale]], engine.scorer, ALONE)
    print(re.findall(r"are \S+ nat a token", str(told.value)))


def test_weights_that_were_not_taken_over_are_told_bit_for_bit(
    wide_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap 25: in bfloat16 the probe lets a policy of one step before pass."""
    monkeypatch.setattr("exgrpo.rollout.vllm_engine.CHILD", "forgetful_process")
    path = (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    with opened(wide_base, "bfloat16") as forgetful:  # its first weights are those of the folder
        with torch.no_grad():
            for weight in forgetful.model.parameters():
                weight += 1e-3 * torch.randn_like(weight)
        probe = forgetful.engine.probe
        assert forgetful.gaps(forgetful.sample(), probe.temperature).mean() < probe.limit
        with pytest.raises(UserError, match=r"\w\.weight is not as it was given"):
            forgetful.engine.sync()


def test_an_error_among_requests_ends_the_engine_and_nothing_waits(wide_base: Path) -> None:
    with opened(wide_base) as failing:
        how = Sampling(1.0, TOKENS, failing.stops, batch=64)
        prompts = [failing.prompts[0], [10**6]]  # the other is no token
        with pytest.raises(UserError, match="vLLM cannot go on: IndexError"):
            failing.engine.generate(prompts, [[0], [1]], how, lambda numbers, rollouts: None)
        assert failing.engine.child.process.poll() is not None


def test_k_samples_are_distinct_and_a_rerun_is_the_same(llama: Opened) -> None:
    """Traps 52 and 53: every rollout has a seed of its own, whoever is sampled beside it."""
    first = llama.sample(1.3)
    for own in first:
        assert len({tuple(rollout.token_ids) for rollout in own}) > SAMPLES // 2
    llama.engine.sync()
    again = llama.sample(1.3)
    assert ids(again) == ids(first)
    for one, other in zip(flat(again), flat(first), strict=True):
        assert (one.logprobs == other.logprobs).all()
    alone = Opened(llama.engine, llama.model, llama.prompts[:1], llama.stops).sample(1.3)
    assert ids(alone) == ids(first[:1])


def test_every_stop_id_ends_a_response_and_nothing_else_does(llama: Opened) -> None:
    """Trap 31: the end token is one among others, and none where it is not asked for."""
    tokens = range(llama.model.config.vocab_size)
    stops = (*llama.stops, *tokens[8:11])
    groups = flat(llama.sample(1.3, stop_ids=stops))
    assert {rollout.token_ids[-1] for rollout in groups if rollout.finish == "stop"} > {*stops[1:]}
    for rollout in groups:
        ended = [token in stops for token in rollout.token_ids]
        assert not any(ended[:-1])
        assert rollout.finish == ("stop" if ended[-1] else "length")
        assert ended[-1] or len(rollout.token_ids) == TOKENS
    for rollout in flat(llama.sample(1.3, stop_ids=())):
        assert (rollout.finish, len(rollout.token_ids)) == ("length", TOKENS)


def test_token_ids_are_those_sampled_whatever_their_text_is(llama: Opened, wide_base: Path) -> None:
    """Trap 26: at a high temperature there are ids that decoding and encoding would change."""
    tokenizer = load_tokenizer(str(wide_base))
    groups = llama.sample(2.0, stop_ids=())
    assert llama.gaps(groups, 2.0).max() < FLOAT32
    texts = tokenizer.batch_decode(ids(groups), skip_special_tokens=True)
    assert tokenizer(texts, add_special_tokens=False).input_ids != ids(groups)


def test_rollouts_are_handed_over_while_others_are_sampled(llama: Opened) -> None:
    came: list[int] = []
    prompts, per = llama.prompts[:4], 40
    seeds = [[100 * number + k for k in range(per)] for number in range(len(prompts))]
    how = Sampling(1.3, TOKENS, llama.stops, batch=64)
    groups = llama.engine.generate(prompts, seeds, how, lambda numbers, _: came.extend(numbers))
    assert sorted(came) == list(range(4 * per))
    assert came != sorted(came), "the longest would be waited for"
    assert all(rollout.entropies is None for rollout in flat(groups))
    with pytest.raises(ValueError, match="that the engine was started for"):
        llama.sample(max_new_tokens=1000)


def test_bfloat16_has_a_gap_and_a_dead_engine_is_an_error_at_once(
    wide_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(wide_base, "bfloat16") as rounded:
        gaps = rounded.gaps(rounded.sample())
        print(f"bfloat16: mean {gaps.mean():.2g}, max {gaps.max():.2g}")
        assert 1e-4 < gaps.mean() < rounded.engine.probe.limit / 10
        assert gaps.max() < BFLOAT16
        os.kill(rounded.engine.child.process.pid, signal.SIGKILL)
        with pytest.raises(UserError, match=r"has ended \(signal SIGKILL\)") as told:
            rounded.sample()
        assert "Successfully reset prefix cache" in str(told.value), "its last words"
        monkeypatch.setattr("exgrpo.rollout.vllm_engine.SHARED_MEMORY", tmp_path)
        with pytest.raises(UserError, match="has ended"):
            rounded.engine.sync()
        assert list(tmp_path.iterdir()) == [], "the weights stay in memory"


def test_what_vllm_cannot_do_is_its_own_words(base_folder: str) -> None:
    """Heads of 16: its attention on a processor has none."""
    with (
        pytest.raises(UserError, match=r"vLLM cannot go on: .*head_dim=16.*rollout\.engine torch"),
        opened(Path(base_folder)),
    ):
        pass


def flat(groups: Sequence[Sequence[Rollout]]) -> list[Rollout]:
    return [rollout for own in groups for rollout in own]


def ids(groups: Sequence[Sequence[Rollout]]) -> list[list[int]]:
    return [rollout.token_ids for rollout in flat(groups)]
