"""Whether prompt and response fit in the positions that a model was made for.

Beyond them a model with rotary positions goes on without an error, and answers worse and worse.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from exgrpo.errors import UserError
from exgrpo.questions import Question
from exgrpo.settings import RunSettings

# Kinds of rotary scaling that lengthen what `max_position_embeddings` says. A config that says the
# lengthened number without the one before is believed, so that nothing right is refused.
_LENGTHENING = ("linear", "dynamic", "yarn")


def positions_of(config: Mapping[str, Any]) -> int | None:
    """The tokens that a model can take in, by its config.json; None where that does not say."""
    config = config.get("text_config") or config  # of a model that reads pictures too
    said = config.get("max_position_embeddings") or config.get("n_positions")
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if said is None or scaling.get("rope_type", scaling.get("type")) not in _LENGTHENING:
        return said
    before = scaling.get("original_max_position_embeddings") or said
    return max(said, int(before * (scaling.get("factor") or 1)))


def longest_prompts(splits: Mapping[str, Sequence[Question]]) -> dict[str, int]:
    """Tokens of the longest prompt of every split; 0 where it has no questions."""
    return {
        split: max((len(each.prompt_ids) for each in members), default=0)
        for split, members in splits.items()
    }


def require_room(prompts: Mapping[str, int], settings: RunSettings, positions: int | None) -> None:
    """UserError where the longest prompt of a split and response are too long for the model.

    prompts: of `longest_prompts`. positions: of `positions_of`.
    """
    for split, prompt in prompts.items():
        section = "rollout" if split == "train" else "evaluation"
        response = getattr(settings, section).max_new_tokens
        if positions is None or prompt + response <= positions:
            continue
        left = positions - prompt
        shorter = f"max_new_tokens to {left} or less, or " if left > 0 else ""
        raise UserError(
            f"{settings.run}, {split}: the longest prompt has {prompt} tokens and settings."
            f"{section}.max_new_tokens is {response}, in all {prompt + response}; the base model "
            f"takes {positions}, says its config.json. Lower {shorter}settings."
            f"questions.max_prompt_tokens, or choose a model that takes more."
        )
