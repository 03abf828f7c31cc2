"""The shape of a model, and what follows from it: parameters, bytes of the key-value cache.

The families are those whose layers are of Llama's kind: attention and a gated MLP, a norm before
each, and no other weights.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

from huggingface_hub import try_to_load_from_cache
from pydantic import Field

from exgrpo.errors import UserError
from exgrpo.policy import names_hub
from exgrpo.pretraining import ORDINARY, SPECIAL
from exgrpo.section import Section
from exgrpo.settings import BaseModelSource, Pretraining
from exgrpo.settings_files import parse, read_yaml

FAMILIES = ("llama", "mistral", "qwen2")
CONFIG_FILE = "config.json"


class ModelShape(Section):
    """The counts that decide memory, by the names that they have in transformers' config.json."""

    num_hidden_layers: int = Field(ge=1)
    hidden_size: int = Field(ge=1)
    intermediate_size: int = Field(ge=1)
    num_attention_heads: int = Field(ge=1)
    num_key_value_heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    vocab_size: int = Field(ge=1)
    tie_word_embeddings: bool
    qkv_bias: bool = False  # Qwen2 has it
    output_bias: bool = False  # of attention
    mlp_bias: bool = False

    @property
    def query_size(self) -> int:
        return self.num_attention_heads * self.head_dim

    @property
    def key_value_size(self) -> int:
        """Of the keys of a token in a layer; its values have as many."""
        return self.num_key_value_heads * self.head_dim

    @property
    def stacked_parameters(self) -> int:
        """Query, key, value, gate and up of all layers: what decoding keeps a stacked copy of."""
        rows = self.query_size + 2 * self.key_value_size + 2 * self.intermediate_size
        return self.num_hidden_layers * rows * self.hidden_size

    @property
    def matrices(self) -> int:
        """Weights of all matrix products, the head included."""
        rest = self.query_size + self.intermediate_size  # output and down
        layers = self.stacked_parameters + self.num_hidden_layers * rest * self.hidden_size
        return layers + self.embedding

    @property
    def embedding(self) -> int:
        return self.vocab_size * self.hidden_size

    @property
    def layer_parameters(self) -> int:
        """Of one layer, norms and biases included."""
        biases = (
            self.qkv_bias * (self.query_size + 2 * self.key_value_size)
            + self.output_bias * self.hidden_size
            + self.mlp_bias * (2 * self.intermediate_size + self.hidden_size)
        )
        matrices = (self.matrices - self.embedding) // self.num_hidden_layers
        return matrices + biases + 2 * self.hidden_size

    @property
    def parameters(self) -> int:
        """Of the whole model; a tied head is the embedding, counted once."""
        ends = self.embedding * (1 if self.tie_word_embeddings else 2) + self.hidden_size
        return self.num_hidden_layers * self.layer_parameters + ends

    @property
    def cache_values(self) -> int:
        """Numbers in the key-value cache for one token: keys and values of every layer."""
        return 2 * self.num_hidden_layers * self.key_value_size


class PublicModel(Section):
    """A file of `config/models/`: the shape of a published model, for where it is not at hand."""

    word: ClassVar[str] = "model"
    folder: ClassVar[str] = "models"
    title: str
    names: list[str]  # on the Hub, or of the package that carries it
    published: float  # parameters as its model card says
    shape: ModelShape


def shape_of(source: BaseModelSource, path: str, config: Path) -> tuple[ModelShape, str]:
    """The shape of a study's base model, and in words where it is known from.

    path: its folder or hub name, `pipeline.files.base_path`. The config.json of a folder or of the
    hub's cache comes first, then what pretraining here will make, then `config/models/`. UserError
    where none of them knows it.
    """
    if source.path is None and source.package is None:
        return pretrained_shape(source.pretraining), "the study's own pretraining settings"
    if (file := config_file(path)) is not None:
        return read_shape(file), str(file)
    name = source.package.name if source.package else path
    files = sorted((config / PublicModel.folder).glob("*.yaml"))
    for file in files:
        if name in (model := parse(PublicModel, read_yaml(file), file)).names:
            return model.shape, f"{file} ({model.title}); the model itself is not here yet"
    fetch = f", or fetch its own: `hf download {name} {CONFIG_FILE}`" if names_hub(path) else ""
    raise UserError(
        f"{name}: the shape of this model is not known: it is no folder with a config.json, not in "
        f"the hub's cache, and in no file of {config / PublicModel.folder}. "
        f"Write such a file{fetch}."
    )


def config_file(path: str) -> Path | None:
    """The config.json of a model folder, or of a hub name in the hub's cache; None without one."""
    local = Path(path) / CONFIG_FILE
    if local.is_file():
        return local
    if not names_hub(path):
        return None
    cached = try_to_load_from_cache(path, CONFIG_FILE)
    return Path(cached) if isinstance(cached, str) else None


def pretrained_shape(settings: Pretraining) -> ModelShape:
    """What `exgrpo.pretraining.make_model` makes."""
    return ModelShape(
        num_hidden_layers=settings.layers,
        hidden_size=settings.width,
        intermediate_size=8 * settings.width // 3,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        head_dim=settings.width // settings.heads,
        vocab_size=len(SPECIAL) + len(ORDINARY),
        tie_word_embeddings=False,
    )


def read_shape(file: Path) -> ModelShape:
    """The shape that a transformers config.json states. UserError on another family."""
    try:
        values = json.loads(file.read_text())
        return shape_from(values)
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(
            f"{file}: no shape of a model of these families can be read from it: "
            f"{', '.join(FAMILIES)} ({error!r}). The plan counts no other architecture."
        ) from error


def shape_from(values: dict[str, Any]) -> ModelShape:
    """The same of its content. KeyError or ValueError where it is not of `FAMILIES`."""
    family = values["model_type"]
    if family not in FAMILIES:
        raise ValueError(f"model_type {family!r}")
    heads, hidden = values["num_attention_heads"], values["hidden_size"]
    bias = bool(values.get("attention_bias", False))
    return ModelShape(
        num_hidden_layers=values["num_hidden_layers"],
        hidden_size=hidden,
        intermediate_size=values["intermediate_size"],
        num_attention_heads=heads,
        num_key_value_heads=values.get("num_key_value_heads") or heads,
        head_dim=values.get("head_dim") or hidden // heads,
        vocab_size=values["vocab_size"],
        tie_word_embeddings=values.get("tie_word_embeddings", False),
        qkv_bias=bias or family == "qwen2",
        output_bias=bias,
        mlp_bias=bool(values.get("mlp_bias", False)),
    )
