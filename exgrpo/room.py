"""Whether prompt and response fit in the positions that a model was made for.

Beyond them a model with rotary positions goes on without an error, and answers worse and worse.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from exgrpo.errors import UserError
from exgrpo.questions import Question
from exgrpo.settings import RunSettings

# Kinds of rotary scaling that lengthen what `max_position_embeddings` says.
_LENGTHENING = ("linear", "dynamic", "yarn")


def positions_of(config: Mapping[str, Any]) -> int | None:
    """The tokens that a model can take in, by its config.json; None where that does not say."""
    said = config.get("max_position_embeddings") or config.get("n_positions")
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if said is None or scaling.get("rope_type", scaling.get("type")) not in _LENGTHENING:
        return said
    before = scaling.get("original_max_position_embeddings") or said
    return max(said, int(before * (scaling.get("factor") or 1)))


def require_room(
    splits: Mapping[str, Sequence[Question]], settings: RunSettings, positions: int | None
) -> None:
    """UserError where a prompt of a split and the longest response are too long for the model.

    positions: of `positions_of`. A split without questions stands for its responses alone.
    """
    for split, members in splits.items():
        section = "rollout" if split == "train" else "evaluation"
        response = getattr(settings, section).max_new_tokens
        prompt = max((len(each.prompt_ids) for each in members), default=0)
        if positions is not None and prompt + response > positions:
            raise UserError(
                f"{split}: the longest prompt has {prompt} tokens and settings.{section}."
                f"max_new_tokens is {response}, in all {prompt + response}; the base model takes "
                f"{positions} (max_position_embeddings). Lower max_new_tokens to "
                f"{max(positions - prompt, 0)} or less, lower settings.questions."
                f"max_prompt_tokens, or choose a model that takes more."
            )
