"""One forward, one alignment: against a plain loop, whatever the padding and the chunks."""

import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Gemma2Config,
    Gemma2ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from exgrpo.errors import UserError
from exgrpo.policy import (
    TokenSequence,
    entropy,
    load_policy,
    micro_batches,
    score_tokens,
    stop_ids,
)
from exgrpo.scorer import Scorer, score_sequences


def _sequences(count: int, vocabulary: int) -> list[TokenSequence]:
    torch.manual_seed(0)
    sizes = [(2 + i % 5, 1 + (7 * i) % 11) for i in range(count)]
    return [
        TokenSequence(
            torch.randint(0, vocabulary, (prompt,)).tolist(),
            torch.randint(0, vocabulary, (response,)).tolist(),
        )
        for prompt, response in sizes
    ]


def _slow(model: torch.nn.Module, sequence: TokenSequence, temperature: float) -> list[tuple]:
    """One token at a time, alone, from the definition."""
    ids = sequence.prompt_ids + sequence.response_ids
    results = []
    for position in range(len(sequence.prompt_ids), len(ids)):
        logits = model(input_ids=torch.tensor([ids[:position]])).logits[0, -1].double()
        p = torch.softmax(logits / temperature, -1)
        results.append((math.log(p[ids[position]]), -sum(float(x) * math.log(x) for x in p)))
    return results


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.3])
def test_scores_equal_a_plain_loop_with_many_lengths_and_chunks(
    base_folder: str, temperature: float
) -> None:
    """Traps 27, 33 and 34: rows of a micro-batch do not see each other or their padding, and a
    value belongs to its token. Sequences are never packed into one row."""
    model, tokenizer = load_policy(base_folder)
    sequences = _sequences(9, len(tokenizer))
    for budget in (1, 40, 10_000):
        scores = score_sequences(Scorer(model), sequences, temperature, budget)
        for sequence, score in zip(sequences, scores, strict=True):
            with torch.no_grad():
                slow = torch.tensor(_slow(model, sequence, temperature))
            torch.testing.assert_close(score.logprobs, slow[:, 0], rtol=0, atol=2e-5)
            torch.testing.assert_close(score.entropies, slow[:, 1], rtol=0, atol=2e-5)


def test_other_architecture_and_pad_equal_to_end(base_folder: str, tmp_path: Path) -> None:
    """Traps 27, 29 and 31."""
    tokenizer = AutoTokenizer.from_pretrained(base_folder)
    tokenizer.pad_token = tokenizer.eos_token
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, eos_token_id=[2, 5],
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model, tokenizer = load_policy(str(tmp_path))
    assert stop_ids(model, tokenizer) == (2, 5)
    sequences = [TokenSequence([1, 4], [7, 2]), TokenSequence([1, 4, 5], [2]),
                 TokenSequence([1], [9, 9, 9, 2])]  # fmt: skip
    for alone, together in zip(
        [score_sequences(Scorer(model), [s], 1.0, 1)[0] for s in sequences],
        score_sequences(Scorer(model), sequences, 1.0, 1000),
        strict=True,
    ):
        assert len(together.logprobs) == len(alone.logprobs)
        torch.testing.assert_close(together.logprobs, alone.logprobs, rtol=0, atol=1e-6)


def test_scores_of_a_whole_sequence_end_with_those_of_its_response(base_folder: str) -> None:
    model, tokenizer = load_policy(base_folder)
    sequences = _sequences(9, len(tokenizer))
    whole = score_sequences(Scorer(model), [sequence.whole for sequence in sequences], 1.0, 60)
    apart = score_sequences(Scorer(model), sequences, 1.0, 60)
    for sequence, all_tokens, response in zip(sequences, whole, apart, strict=True):
        assert len(all_tokens.logprobs) == len(sequence) - 1
        for name in ("logprobs", "entropies"):
            ending = getattr(all_tokens, name)[-len(sequence.response_ids) :]
            torch.testing.assert_close(ending, getattr(response, name), rtol=0, atol=1e-5)


def test_entropy_with_impossible_tokens_has_finite_value_and_gradient() -> None:
    logits = torch.tensor([[0.0, 1.0, -torch.inf, -1e10]], requires_grad=True)
    value = entropy(torch.log_softmax(logits, -1))
    value.sum().backward()
    p = 1 / (1 + math.e)
    assert value.item() == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p), abs=1e-6)
    assert logits.grad is not None
    assert logits.grad[0, [0, 1, 3]].isfinite().all()


def test_entropy_gradient_only_when_asked_for(base_folder: str) -> None:
    model, _ = load_policy(base_folder)
    sequence = [TokenSequence([1, 4], [7, 2])]
    assert not score_tokens(model, sequence, 1.0).entropies.requires_grad
    assert score_tokens(model, sequence, 1.0, entropy_gradient=True).entropies.requires_grad


@pytest.mark.parametrize("entropy_gradient", [False, True])
def test_logits_in_chunks_equal_logits_at_once(
    base_folder: str, entropy_gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients; neither forward nor backward has more logits than it may."""
    model, tokenizer = load_policy(base_folder)
    vocabulary = len(tokenizer)
    sequences = _sequences(9, vocabulary)
    held: list[int] = []
    head = model.get_output_embeddings()
    head.register_forward_hook(lambda module, inputs, logits: held.append(logits.numel()))

    def scores_and_gradient() -> list[torch.Tensor]:
        model.zero_grad()
        scores = score_tokens(model, sequences, 0.8, entropy_gradient)
        weight = torch.linspace(-1, 1, len(scores.logprobs))
        value = (scores.logprobs * weight).sum()
        if entropy_gradient:
            value = value + (scores.entropies * weight.flip(0)).sum()
        value.backward()
        gradients = [weight.grad.clone() for weight in model.parameters()]
        return [scores.logprobs.detach(), scores.entropies.detach(), *gradients]

    at_once = scores_and_gradient()
    assert len(held) == 1
    held.clear()
    monkeypatch.setattr("exgrpo.policy.HEAD_LOGITS", 7 * vocabulary + 3)
    in_chunks = scores_and_gradient()
    assert max(held) <= 7 * vocabulary + 3
    # Backward works them out again.
    assert len(held) == 2 * math.ceil(len(at_once[0]) * vocabulary / (7 * vocabulary + 3))
    for one, other in zip(at_once, in_chunks, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_a_model_that_caps_its_logits_is_refused(base_folder: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=20, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=16, final_logit_softcapping=0.5,
    )  # fmt: skip
    model = Gemma2ForCausalLM(config)
    torch.nn.init.normal_(model.get_output_embeddings().weight)  # logits that the cap is felt by
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(base_folder).save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"gemma2\) does more to its logits .*base\.path"):
        load_policy(str(tmp_path))


def test_bfloat16_is_of_the_products_alone(able_folder: str) -> None:
    """Weights and gradients stay float32; scores are near, not equal, and float32 too."""
    model, tokenizer = load_policy(able_folder, "bfloat16")
    exact, _ = load_policy(able_folder)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    sequences = _sequences(9, len(tokenizer))
    scores, precise = (score_tokens(each, sequences, 1.0) for each in (model, exact))
    assert scores.logprobs.dtype == scores.entropies.dtype == torch.float32
    difference = (scores.logprobs - precise.logprobs).abs().max()
    assert 1e-6 < difference < 0.5
    scores.logprobs.sum().backward()
    assert {weight.grad.dtype for weight in model.parameters()} == {torch.float32}


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 100))
def test_micro_batches_hold_every_sequence_once_within_the_budget(
    lengths: list[int], budget: int
) -> None:
    sequences = [TokenSequence([0], [0] * (length)) for length in lengths]
    batches = list(micro_batches(sequences, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = max(len(sequences[index]) for index in batch) * len(batch)
        assert padded <= budget or len(batch) == 1


def test_saved_base_model_is_an_ordinary_hugging_face_folder(base_folder: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(base_folder)
    tokenizer = AutoTokenizer.from_pretrained(base_folder)
    ids = tokenizer("7+5*3-2=", return_tensors="pt").input_ids
    assert ids[0, 0] == tokenizer.bos_token_id
    answer = tokenizer(r"7+5=2\boxed{2}", add_special_tokens=False).input_ids
    assert tokenizer.decode(answer) == r"7+5=2\boxed{2}"
    assert model.generate(ids, max_new_tokens=3, do_sample=False).shape[1] > ids.shape[1]


@pytest.mark.parametrize("path", ["./no/such/model", "/no/such/model", "missing-folder/x/y"])
def test_missing_model_folder(path: str) -> None:
    with pytest.raises(UserError, match="no model here") as error:
        load_policy(path)
    assert path in str(error.value)


def test_unknown_hub_name_without_a_network() -> None:
    with pytest.raises(UserError, match=r"nobody/nothing: cannot load the model .*base\.path"):
        load_policy("nobody/nothing")


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from exgrpo.errors import UserError
from exgrpo.policy import load_policy, save_policy
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
model, tokenizer = load_policy(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))  # a disk with 5000 bytes left a file
try:
    save_policy(model, tokenizer, Path(sys.argv[2]))
except UserError as error:
    print(error)
print(sorted(path.name for path in Path(sys.argv[2]).parent.iterdir()))
"""


def test_a_full_disk_while_saving_the_model_is_a_clear_error(
    base_folder: str, tmp_path: Path
) -> None:
    target = tmp_path / "final"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, base_folder, str(target)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"{target}: cannot save the model" in done.stdout
    assert "Free disk space" in done.stdout
    assert done.stdout.strip().endswith("[]"), "nothing half-written is left"


def test_a_damaged_model_file_is_named(base_folder: str, tmp_path: Path) -> None:
    shutil.copytree(base_folder, tmp_path / "base")
    weights = tmp_path / "base" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(UserError, match="cannot load the model") as error:
        load_policy(str(tmp_path / "base"))
    assert str(tmp_path / "base") in str(error.value)
