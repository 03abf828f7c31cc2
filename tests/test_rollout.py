"""The torch engine: what it records is what a fresh forward says, and every draw is its seed's."""

from collections import Counter

import pytest
import torch

from exgrpo.policy import TokenSequence, load_policy, score_sequences, stop_ids
from exgrpo.rollout import Sampling
from exgrpo.rollout.torch_engine import generate

TEXTS = ["7+5=", "1*2+3=", "9-9-9*4=", "0+0="]


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_recorded_scores_equal_a_fresh_forward(base_folder: str, temperature: float) -> None:
    model, tokenizer = load_policy(base_folder)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    sampling = Sampling(temperature, 24, stop_ids(model, tokenizer))
    counts = [8, 7, 8, 1]
    groups = generate(model, prompts, counts, sampling, torch.Generator().manual_seed(1))
    assert [len(group) for group in groups] == counts
    for prompt, group in zip(prompts, groups, strict=True):
        sequences = [TokenSequence(prompt, rollout.token_ids) for rollout in group]
        for rollout, score in zip(
            group, score_sequences(model, sequences, temperature, 500), strict=True
        ):
            logprobs = torch.tensor(rollout.logprobs)
            torch.testing.assert_close(logprobs, score.logprobs, rtol=0, atol=1e-5)
            entropies = torch.tensor(rollout.entropies)
            torch.testing.assert_close(entropies, score.entropies, rtol=0, atol=1e-5)


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
