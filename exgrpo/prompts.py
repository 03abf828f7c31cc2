r"""How a question becomes a prompt: its text, and the token ids that the model is given.

Ids are made once, by `exgrpo questions`, and stored with the question. Training and evaluation
read them and never tokenise a prompt again, so that a replayed response is scored after the very
tokens that it was sampled after.
"""

import dataclasses
from collections.abc import Sequence
from itertools import islice

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from exgrpo.errors import UserError
from exgrpo.policy import special_ids, tokenizer_hash
from exgrpo.question_settings import Prompt
from exgrpo.questions import Question
from exgrpo.settings import content_hash

# [paper] appendix G.1 asks for the same, in other words.
SYSTEM = {
    "think": (
        "Work through every problem at length and in an orderly way before you settle on an "
        "answer: take it apart, explore, check each result, and go back to mend what turns out "
        "wrong. Your response has two sections, a thought and a solution. The thought comes first "
        "and stands inside tags: <think> your thought </think>. The solution follows the closing "
        "tag and sets out, clearly and without detours, the steps that lead to the result. If the "
        r"answer has a closed form, the solution ends with it in \boxed{}."
    )
}
# [ours] by the kind of the question.
INSTRUCTION = {
    "boxed": r"Reason step by step and put the final answer in \boxed{}.",
    "mcq": r"Reason step by step and put the letter of the right choice in \boxed{}.",
}

FRAME = {
    "question": "{}",
    "completion": "User: {}\nAnswer: Let's think step by step.",  # [paper] Llama base
}


def render(question: Question, settings: Prompt, tokenizer: PreTrainedTokenizerBase) -> str:
    """The prompt as text, less a beginning token that the tokenizer puts first by itself.

    UserError where the tokenizer has no chat template, or its template refuses or changes a turn.
    """
    turns = [
        (each.question + _instruction(each.kind, settings), each.response)
        for each in settings.examples
    ]
    asked = question.text + _instruction(question.kind, settings)
    if settings.template == "chat":
        text = _chat(turns, asked, settings, tokenizer)
        return text if _ends_with(text, settings.opening) else text + settings.opening
    # An example reads as the question does, with its response where the model's will be.
    frame = FRAME[settings.template]
    return "\n\n".join(
        frame.format(text) + settings.opening + response for text, response in [*turns, (asked, "")]
    )


def _instruction(kind: str, settings: Prompt) -> str:
    """What is asked for after a question, or an example, of this kind."""
    wanted = settings.instruction == "boxed" or (settings.instruction == "letter" and kind == "mcq")
    return f"\n\n{INSTRUCTION[kind]}" if wanted else ""


def prompt_ids(
    question: Question, settings: Prompt, tokenizer: PreTrainedTokenizerBase
) -> list[int]:
    """Token ids of the rendered prompt, with one beginning token where the tokenizer adds one.

    A beginning token that the chat template wrote, if need be behind white space, is not added
    again; an end token that the tokenizer adds to a text of its own is not added at all. UserError
    where the template begins with two.
    """
    ids: list[int] = tokenizer(
        render(question, settings, tokenizer), add_special_tokens=False
    ).input_ids
    beginning = tokenizer.bos_token_id
    seen = (each for each in ids if str(tokenizer.decode([each])).strip())
    written = list(islice(seen, 2))
    if written == [beginning, beginning]:
        raise UserError(
            f"{tokenizer.name_or_path}: the prompt begins with two beginning tokens "
            f"({tokenizer.bos_token}). Take one out of the chat template or of the question."
        )
    adds_one = tokenizer("0").input_ids[:1] == [beginning]
    return [beginning, *ids] if adds_one and written[:1] != [beginning] else ids


def prompts_by(tokenizer: PreTrainedTokenizerBase, settings: Prompt) -> str:
    """Names what makes prompt ids: the vocabulary and, where it is used, the chat template."""
    vocabulary = tokenizer_hash(tokenizer)
    if settings.template != "chat":
        return vocabulary
    known = tokenizer.chat_template
    templates = {"default": known} if isinstance(known, str) else known or {}
    # A tokenizer that is saved and loaded has other line ends.
    lines = {name: each.splitlines() for name, each in templates.items()}
    return content_hash([vocabulary, lines, tokenizer.bos_token, tokenizer.eos_token])


def unknown_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The id that stands for what a tokenizer cannot spell; -1 for one that can spell all."""
    token = tokenizer.unk_token
    if token is None and (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        token = getattr(backend.model, "unk_token", None)
    found = None if token is None else tokenizer.convert_tokens_to_ids(token)
    # Where it is the end token as well (GPT-2), every byte can be spelt.
    ends = (tokenizer.bos_token_id, tokenizer.eos_token_id)
    return found if isinstance(found, int) and found not in ends else -1


def with_prompt_ids(
    questions: Sequence[Question], settings: Prompt, tokenizer: PreTrainedTokenizerBase
) -> list[Question]:
    """The questions, each with the ids of its prompt."""
    return [
        dataclasses.replace(each, prompt_ids=tuple(prompt_ids(each, settings, tokenizer)))
        for each in questions
    ]


def control_texts(tokenizer: PreTrainedTokenizerBase) -> frozenset[str]:
    """The texts that are control tokens wherever they stand (`<|im_end|>`, `<s>`).

    Ordinary words that were added to a vocabulary are none.
    """
    texts = [str(tokenizer.convert_ids_to_tokens(each)) for each in special_ids(tokenizer)]
    return frozenset(text for text in texts if text.strip())


def prompts_hash(questions: Sequence[Question]) -> str:
    """Names the prompts of these questions: two sets with one hash are given the same tokens.

    UserError where a question has no prompt ids.
    """
    for each in questions:
        if not each.prompt_ids:
            raise UserError(
                f"question {each.id} ({each.text[:40]!r}): no prompt_ids in its question file. "
                f"Make the question files again with `exgrpo questions`."
            )
    return content_hash({each.id: each.prompt_ids for each in questions})


def _chat(
    turns: Sequence[tuple[str, str]],
    asked: str,
    settings: Prompt,
    tokenizer: PreTrainedTokenizerBase,
) -> str:
    """The turns in the tokenizer's own chat template, up to where the response goes on."""
    messages = [{"role": "system", "content": SYSTEM[settings.system]}] if settings.system else []
    for text, response in turns:
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": settings.opening + response},
        ]
    messages.append({"role": "user", "content": asked})
    if tokenizer.chat_template is None:
        raise UserError(
            f"{tokenizer.name_or_path}: this tokenizer has no chat template, and "
            f"settings.prompt.template is `chat`. Choose `question` or `completion`, or a model "
            f"with a chat template."
        )
    try:
        text = str(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        )
    except (TemplateError, ValueError) as error:
        raise UserError(
            f"{tokenizer.name_or_path}: the chat template refuses these turns "
            f"({', '.join(each['role'] for each in messages)}): {error}. " + _remedy(settings)
        ) from error
    for message in messages:
        if message["content"].strip() not in text:
            raise UserError(
                f"{tokenizer.name_or_path}: the chat template leaves out or changes the "
                f"{message['role']} turn {message['content'][:40]!r}. " + _remedy(settings)
            )
    return text


def _remedy(settings: Prompt) -> str:
    given = [name for name in ("system", "examples") if getattr(settings, name)]
    keys = " and ".join(f"settings.prompt.{name}" for name in given)
    return f"Leave out {keys}." if given else "Choose another settings.prompt.template."


def _ends_with(text: str, opening: str) -> bool:
    """Whether the chat template wrote the opening itself, with or without its line end."""
    return text.rstrip().endswith(opening.rstrip()) if opening.strip() else not opening
