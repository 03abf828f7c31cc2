"""The torch engine: what it records is what a fresh forward says, and every draw is its seed's."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from exgrpo.policy import TokenSequence, load_policy, score_sequences, stop_ids
from exgrpo.rollout import Sampling
from exgrpo.rollout.torch_engine import generate

TEXTS = ["7+5=", "1*2+3=", "9-9-9*4=", "0+0="]


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
    """Prompts padded on the left and a cache when sampled, padded on the right when scored."""
    model, tokenizer = load_policy(folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(temperature, 24, stop_ids(model, tokenizer))
    counts = [8, 7, 8, 1]
    groups = generate(model, prompts, counts, sampling, torch.Generator().manual_seed(1))
    assert [len(group) for group in groups] == counts
    rollouts = [rollout for group in groups for rollout in group]
    asked = [prompt for prompt, count in zip(prompts, counts, strict=True) for _ in range(count)]
    sequences = [
        TokenSequence(prompt, rollout.token_ids)
        for prompt, rollout in zip(asked, rollouts, strict=True)
    ]
    assert len({len(sequence) for sequence in sequences}) > 5
    alone = score_sequences(model, sequences, temperature, 1)
    for rollout, score in zip(rollouts, alone, strict=True):
        recorded = torch.tensor(rollout.logprobs), torch.tensor(rollout.entropies)
        torch.testing.assert_close(recorded[0], score.logprobs, rtol=0, atol=1e-4)
        torch.testing.assert_close(recorded[1], score.entropies, rtol=0, atol=1e-4)
    for seed, budget in enumerate((60, 200, 100_000)):
        order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(seed))
        shuffled = [sequences[index] for index in order.tolist()]
        together = score_sequences(model, shuffled, temperature, budget)
        for index, score in zip(order.tolist(), together, strict=True):
            for name in ("logprobs", "entropies"):
                one, other = getattr(alone[index], name), getattr(score, name)
                torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_ends_where_the_end_token_comes_and_says_so(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(1.0, 10, stop_ids(model, tokenizer))
    groups = generate(model, prompts, [32] * 4, sampling, torch.Generator())
    rollouts = [rollout for group in groups for rollout in group]
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
    sampling = Sampling(1.0, 10, stop_ids(model, tokenizer))
    groups = generate(model, prompts, [0, 2, 0, 3], sampling, torch.Generator().manual_seed(0))
    assert [len(group) for group in groups] == [0, 2, 0, 3]
    assert generate(model, prompts, [0] * 4, sampling, torch.Generator()) == [[], [], [], []]


def test_same_seed_same_rollouts_other_seed_others_and_a_group_differs(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(1.0, 24, stop_ids(model, tokenizer))
    once, again, other = (
        generate(model, prompts, [8] * 4, sampling, torch.Generator().manual_seed(seed))
        for seed in (3, 3, 4)
    )
    assert once == again
    assert once != other
    assert len({tuple(rollout.token_ids) for rollout in once[1]}) > 1


def test_first_token_follows_the_policy(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    prompt = tokenizer("7+5=").input_ids
    with torch.no_grad():
        p = torch.softmax(model(input_ids=torch.tensor([prompt])).logits[0, -1], -1)
    draws = generate(model, [prompt], [20_000], Sampling(1.0, 1, (2,)), torch.Generator())[0]
    counts = Counter(rollout.token_ids[0] for rollout in draws)
    for token, probability in enumerate(p.tolist()):
        error = 5 * (probability * (1 - probability) / 20_000) ** 0.5 + 1e-4
        assert counts[token] / 20_000 == pytest.approx(probability, abs=error)
