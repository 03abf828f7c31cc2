"""Questions as `exgrpo questions` leaves them: each with the ids of its prompt."""

from exgrpo import questions
from exgrpo.policy import load_tokenizer
from exgrpo.prompts import with_prompt_ids
from exgrpo.question_settings import Prompt, Questions
from exgrpo.questions import Question

BARE = Prompt()


def prompted(settings: Questions, base: str, prompt: Prompt = BARE) -> dict[str, list[Question]]:
    """Every split, with prompts for the tokenizer in the folder `base`."""
    tokenizer = load_tokenizer(base)
    splits = questions.make_splits(settings)
    return {name: with_prompt_ids(each, prompt, tokenizer) for name, each in splits.items()}
