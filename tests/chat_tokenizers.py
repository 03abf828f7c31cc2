"""Small tokenizers with chat templates of the forms that real models have: one token a byte.

The templates are written for these tests; what they share with a model's own is its special
tokens, who writes the beginning token, and what they do with a system turn.
"""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

CHAT_ML = (
    "{% for turn in messages %}<|im_start|>{{ turn.role }}\n{{ turn.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# A system turn of its own where none is given.
POLITE = "<|im_start|>system\nAnswer politely.<|im_end|>\n"
QWEN = "{% if messages[0].role != 'system' %}" + POLITE + "{% endif %}" + CHAT_ML
# As of the paper's backbone: the generation prompt opens the thought itself.
QWEN_THINK = CHAT_ML.replace("assistant\n{% endif", "assistant\n<think>\n{% endif")
LLAMA = (
    "{{ bos_token }}{% for turn in messages %}<|start_header_id|>{{ turn.role }}<|end_header_id|>"
    "\n\n{{ turn.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
# The system turn that SmolLM2-Instruct's template (Apache-2.0) brings with it.
SMOLLM = QWEN.replace(
    "Answer politely.", "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
)
NO_SYSTEM += "{{ bos_token }}" + CHAT_ML
DROPS_SYSTEM = CHAT_ML.replace("in messages", "in messages if turn.role != 'system'")
DROPS_THOUGHT = CHAT_ML.replace("turn.content }}", "turn.content.split('</think>') | last }}")

CHAT_ML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LLAMA_TOKENS = ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")


def bytes_tokenizer(
    special: tuple[str, ...],
    template: str | None = None,
    begin: str | None = None,
    end: str | None = None,
    adds_begin: bool = False,
    adds_end: bool = False,
) -> PreTrainedTokenizerFast:
    """Every text has ids and comes back from them. begin, end: of `special`.

    adds_begin, adds_end: whether a text that is tokenised by itself gets them.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(each, special=True) for each in special])
    added = [(begin if adds_begin else None), "$A", (end if adds_end else None)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=" ".join(each for each in added if each),
        special_tokens=[
            (each, tokenizer.token_to_id(each)) for each in (begin, end) if each is not None
        ],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=begin,
        eos_token=end,
        pad_token=special[0],
        chat_template=template,
        name_or_path="bytes",
    )


def qwen(template: str = QWEN) -> PreTrainedTokenizerFast:
    """No beginning token at all."""
    return bytes_tokenizer(CHAT_ML_TOKENS, template, end="<|im_end|>")


def smollm() -> PreTrainedTokenizerFast:
    """The beginning token is the one that begins a turn: the template writes it, and it alone."""
    return bytes_tokenizer(CHAT_ML_TOKENS, SMOLLM, begin="<|im_start|>", end="<|im_end|>")


def llama(template: str | None = LLAMA, adds_begin: bool = True) -> PreTrainedTokenizerFast:
    """The template writes the beginning token, and the tokenizer adds it to a plain text."""
    return bytes_tokenizer(
        LLAMA_TOKENS, template, LLAMA_TOKENS[0], LLAMA_TOKENS[1], adds_begin=adds_begin
    )
