"""The torch engine: what it records is what a fresh forward says, and every draw is its seed's."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from exgrpo.policy import TokenSequence, load_policy, stop_ids
from exgrpo.rollout import Rollout, Sampling, stacked
from exgrpo.rollout.plain import PlainDecoder
from exgrpo.rollout.prefill import prefill
from exgrpo.rollout.stacked import StackedDecoder
from exgrpo.rollout.torch_engine import _draw, _uniform, generate
from exgrpo.scorer import Scorer, score_sequences

TEXTS = ["7+5=", "1*2+3=", "9-9-9*4=", "0+0="]
SMALL = {
    "vocab_size": 20, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def seeds(*counts: int, start: int = 0) -> list[list[int]]:
    """So many seeds a prompt, all different."""
    numbers = iter(range(start, start + sum(counts)))
    return [[next(numbers) for _ in range(count)] for count in counts]


def flat(groups: list[list[Rollout]]) -> list[Rollout]:
    return [rollout for group in groups for rollout in group]


@pytest.fixture(params=["llama", "pad is end", "absolute positions", "tied weights"])
def folder(request: pytest.FixtureRequest, base_folder: str, tmp_path: Path) -> str:
    """A model folder: ours, ours with one token for padding and end, and two other families."""
    if request.param == "llama":
        return base_folder
    tokenizer = AutoTokenizer.from_pretrained(base_folder)
    tokenizer.pad_token = tokenizer.eos_token
    torch.manual_seed(0)
    size, end = len(tokenizer), tokenizer.eos_token_id
    model: PreTrainedModel
    if request.param == "pad is end":
        model, _ = load_policy(base_folder)
    elif request.param == "absolute positions":
        config = GPT2Config(
            vocab_size=size, n_positions=64, n_embd=32, n_layer=2, n_head=2, eos_token_id=end
        )
        model = GPT2LMHeadModel(config)
        with torch.no_grad():
            model.transformer.wpe.weight.mul_(30)  # so that a wrong position would show
    else:
        model = Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                num_attention_heads=2, num_key_value_heads=1, eos_token_id=end,
                tie_word_embeddings=True,
            )
        )  # fmt: skip
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_recorded_scores_equal_a_forward_alone_and_in_any_company(
    folder: str, temperature: float
) -> None:
    """Prompts padded on the left and a cache when sampled, padded on the right when scored.

    Traps 27 to 29: attention, positions (a model of absolute ones too), and pad == end.
    """
    model, tokenizer = load_policy(folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(temperature, 24, stop_ids(model, tokenizer), batch=10)
    counts = [8, 7, 8, 1]
    groups = generate(model, prompts, seeds(*counts), sampling)
    assert [len(group) for group in groups] == counts
    rollouts = flat(groups)
    asked = [prompt for prompt, count in zip(prompts, counts, strict=True) for _ in range(count)]
    sequences = [
        TokenSequence(prompt, rollout.token_ids)
        for prompt, rollout in zip(asked, rollouts, strict=True)
    ]
    assert len({len(sequence) for sequence in sequences}) > 5
    alone = score_sequences(Scorer(model), sequences, temperature, 1)
    for rollout, score in zip(rollouts, alone, strict=True):
        recorded = torch.tensor(rollout.logprobs), torch.tensor(rollout.entropies)
        torch.testing.assert_close(recorded[0], score.logprobs, rtol=0, atol=1e-4)
        torch.testing.assert_close(recorded[1], score.entropies, rtol=0, atol=1e-4)
    for seed, budget in enumerate((60, 200, 100_000)):
        order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(seed))
        shuffled = [sequences[index] for index in order.tolist()]
        together = score_sequences(Scorer(model), shuffled, temperature, budget)
        for index, score in zip(order.tolist(), together, strict=True):
            for name in ("logprobs", "entropies"):
                one, other = getattr(alone[index], name), getattr(score, name)
                torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_ends_where_the_end_token_comes_and_says_so(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(1.0, 10, stop_ids(model, tokenizer), batch=128)
    rollouts = flat(generate(model, prompts, seeds(32, 32, 32, 32), sampling))
    assert {rollout.finish for rollout in rollouts} == {"stop", "length"}
    for rollout in rollouts:
        end = tokenizer.eos_token_id
        assert end not in rollout.token_ids[:-1]
        assert (rollout.token_ids[-1] == end) == (rollout.finish == "stop")
        assert len(rollout.token_ids) == 10 or rollout.finish == "stop"
        assert len(rollout.token_ids) == len(rollout.logprobs) == len(rollout.entropies)


def test_no_rollouts_of_a_question_whose_places_are_all_taken(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(1.0, 10, stop_ids(model, tokenizer), batch=4)
    groups = generate(model, prompts, seeds(0, 2, 0, 3), sampling)
    assert [len(group) for group in groups] == [0, 2, 0, 3]
    assert generate(model, prompts, seeds(0, 0, 0, 0), sampling) == [[], [], [], []]


def test_same_seed_same_rollouts_other_seed_others_and_a_group_differs(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(1.0, 24, stop_ids(model, tokenizer), batch=32)
    once, again, other = (
        flat(generate(model, prompts, seeds(8, 8, 8, 8, start=start), sampling))
        for start in (3, 3, 100)
    )
    for one, same in zip(once, again, strict=True):
        assert one.token_ids == same.token_ids
        assert np.array_equal(one.logprobs, same.logprobs)
        assert np.array_equal(one.entropies, same.entropies)
    assert [one.token_ids for one in once] != [one.token_ids for one in other]
    assert len({tuple(rollout.token_ids) for rollout in once[8:16]}) > 1


def test_a_rollout_does_not_depend_on_what_else_is_in_the_batch(folder: str) -> None:
    """Other batch sizes, another order of the questions, a question alone: the same tokens.

    Tolerance: a number drawn within the rounding of the logits (some 1e-6) of a token's bound could
    fall on its other side, once in about 100 000 tokens. Here are some 2 000 and none may.
    """
    model, tokenizer = load_policy(folder)
    prompts = [tokenizer(text).input_ids for text in [*TEXTS, "8-3*2+1=", "5="]]
    own = seeds(*[40] * len(prompts), start=7)
    for batch in (1000, 64, 7):
        sampling = Sampling(1.0, 24, stop_ids(model, tokenizer), batch)
        groups = generate(model, prompts, own, sampling)
        if batch == 1000:
            first = groups
        for ours, others in zip(flat(first), flat(groups), strict=True):
            assert ours.token_ids == others.token_ids
            np.testing.assert_allclose(ours.logprobs, others.logprobs, rtol=0, atol=1e-4)
    backwards = generate(model, prompts[::-1], own[::-1], sampling)[::-1]
    alone = [
        generate(model, [prompt], [numbers], sampling)[0]
        for prompt, numbers in zip(prompts, own, strict=True)
    ]
    for groups in (backwards, alone):
        assert [one.token_ids for one in flat(groups)] == [one.token_ids for one in flat(first)]
    assert sum(len(rollout.token_ids) for rollout in flat(first)) > 1500


def test_a_longer_limit_only_adds_tokens(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    short, long = (
        flat(
            generate(
                model,
                prompts,
                seeds(8, 8, 8, 8),
                Sampling(1.0, limit, stop_ids(model, tokenizer), 64),
            )
        )
        for limit in (9, 24)
    )
    assert any(len(rollout.token_ids) > 9 for rollout in long)
    for one, other in zip(short, long, strict=True):
        assert one.token_ids == other.token_ids[:9]


def test_stacked_decoding_equals_the_models_own_forward(folder: str) -> None:
    """Ragged prompts, rows dropped on the way; float64, but the norms are float32 in both."""
    model, tokenizer = load_policy(folder, "float64")
    if not stacked.fits(model):
        assert model.config.model_type == "gpt2"
        return
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    with torch.no_grad():
        start = prefill(model, prompts).of([0, 0, 1, 2, 3, 3])
        decoders = [kind(model, start, 12) for kind in (PlainDecoder, StackedDecoder)]
        generator = torch.Generator().manual_seed(0)
        rows = 6
        for step in range(12):
            tokens = torch.randint(3, 20, (rows,), generator=generator)
            plain, ours = (decoder.step(tokens) for decoder in decoders)
            torch.testing.assert_close(ours, plain, rtol=0, atol=2e-6)
            if step in (4, 8):
                living = torch.arange(rows) != 2
                rows -= 1
                for decoder in decoders:
                    decoder.keep(living)


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(
            rope_parameters={
                "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0,
                "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
            attention_bias=True, mlp_bias=True, head_dim=16, **SMALL,
        ),
        Qwen2Config(**SMALL),
        MistralConfig(sliding_window=None, **SMALL),
    ],
    ids=["llama 3", "qwen 2", "mistral"],
)  # fmt: skip
def test_stacked_decoding_of_the_family(config: PreTrainedConfig) -> None:
    """Grouped heads, biases, scaled angles: every member that `fits` says is served."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config).double().eval()
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weight)
    assert stacked.fits(model)
    with torch.no_grad():
        start = prefill(model, [[1, 5, 9, 4, 4, 7], [1, 3]]).of([0, 1, 1])
        plain, ours = PlainDecoder(model, start, 20), StackedDecoder(model, start, 20)
        for step in range(20):
            tokens = torch.tensor([3 + step % 7, 4, 5])
            torch.testing.assert_close(ours.step(tokens), plain.step(tokens), rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(sliding_window=4, **SMALL),
        LlamaConfig(
            rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}, **SMALL
        ),
        GPT2Config(vocab_size=20, n_embd=32, n_layer=1, n_head=2),
    ],
    ids=["sliding window", "angles of the length", "another family"],
)
def test_other_models_go_through_their_own_forward(config: PreTrainedConfig) -> None:
    assert not stacked.fits(AutoModelForCausalLM.from_config(config))


def test_bfloat16_rollouts_are_near_the_forward_that_trains(able_folder: str) -> None:
    """Sampler and trainer round differently: ratios are near 1, no longer within 1e-5 of it."""
    model, tokenizer = load_policy(able_folder, "bfloat16")
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(1.0, 24, stop_ids(model, tokenizer), batch=32)
    groups = generate(model, prompts, seeds(8, 8, 8, 8), sampling)
    sequences = [
        TokenSequence(prompt, rollout.token_ids)
        for prompt, group in zip(prompts, groups, strict=True)
        for rollout in group
    ]
    scores = score_sequences(Scorer(model), sequences, 1.0, 500)
    recorded = np.concatenate([rollout.logprobs for rollout in flat(groups)])
    assert recorded.dtype == np.float32
    log_ratio = torch.cat([score.logprobs for score in scores]).numpy() - recorded
    assert np.abs(log_ratio).max() < 0.2
    assert np.abs(log_ratio).mean() < 0.02


def test_first_token_follows_the_policy(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompt = tokenizer("7+5=").input_ids
    with torch.no_grad():
        p = torch.softmax(model(input_ids=torch.tensor([prompt])).logits[0, -1], -1)
    draws = generate(model, [prompt], seeds(20_000), Sampling(1.0, 1, (2,), batch=8000))[0]
    counts = Counter(rollout.token_ids[0] for rollout in draws)
    for token, probability in enumerate(p.tolist()):
        error = 5 * (probability * (1 - probability) / 20_000) ** 0.5 + 1e-4
        assert counts[token] / 20_000 == pytest.approx(probability, abs=error)


def test_streams_of_neighbouring_seeds_and_tokens_are_unrelated() -> None:
    """Seeds 0 .. 1999, 64 tokens each: uniform, and no correlation along either axis."""
    numbers = _uniform(range(2000), 64).numpy()
    assert numbers.min() >= 0 and numbers.max() < 1
    counts, _ = np.histogram(numbers, bins=50, range=(0, 1))
    expected = numbers.size / 50
    assert ((counts - expected) ** 2 / expected).sum() < 85  # chi-square, 49 degrees: p = 0.001
    for one, other in ((numbers[:-1], numbers[1:]), (numbers[:, :-1], numbers[:, 1:])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / one.size**0.5


def test_a_token_of_probability_0_is_never_drawn() -> None:
    log_p = torch.tensor([[-torch.inf, np.log(0.5), -torch.inf, np.log(0.5), -torch.inf]])
    for number in (0.0, 0.25, 0.4999999, 0.5, 0.75, 1 - 2**-53):
        drawn = _draw(log_p.double(), torch.tensor([number], dtype=torch.float64))
        assert drawn.item() == (1 if number < 0.5 else 3)
