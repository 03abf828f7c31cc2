"""Settings of what is asked and how it is read: questions, prompts, grading.

Every default names its source, as in `exgrpo.settings`.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from exgrpo.section import Section

Count = Annotated[int, Field(ge=1)]  # of questions that the built-in task makes
MADE_TESTS = ("test_id", "test_ood")
# Names of files beside those of the benchmarks.
TAKEN = {"train", "validation", "rejected", *MADE_TESTS}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # of a file, of any system


class DataSet(Section):
    """Questions of a data set, described in `config/datasets/<dataset>.yaml`."""

    dataset: str
    limit: int | None = Field(None, ge=1)  # so many, drawn by `questions.seed`; None: all


class Benchmark(DataSet):
    """Test questions of a data set. Its key in `questions.benchmarks` is the benchmark's name."""

    domain: Literal["in", "out"] = "in"  # [paper] six of mathematics in, three others out
    # answers a question; None: `evaluation.test_samples`. [paper] 32 for AIME and AMC, else 1
    samples: int | None = Field(None, ge=1)


class Questions(Section):
    """Which questions to make or load. All splits are disjoint by content hash."""

    # what is made where a count is given: single-digit arithmetic chains (exgrpo/chain.py), or
    # arithmetic in words (exgrpo/arithmetic.py). [ours]
    task: Literal["chain", "arithmetic"] = "chain"
    seed: int = 0
    train: Count | DataSet = 600  # [ours] measured in the feasibility probe
    validation: Count | DataSet = 160  # [ours] held-out questions for the learning curves
    # [ours] made; 0: none, which it is beside loaded training questions unless it is given
    test_id: int = Field(400, ge=0)
    test_ood: int = Field(400, ge=0)  # [ours] the same, with the levels above `max_level`
    min_level: int = Field(1, ge=1)  # [ours] steps of the shortest made question
    max_level: int = Field(8, ge=1)  # [ours] steps of the longest one in distribution
    max_ood_level: int = Field(12, ge=2)  # [ours] out of distribution: max_level + 1 .. this
    benchmarks: dict[str, Benchmark] = Field(default_factory=dict)  # beside the made tests
    # [code] True: validation questions may be test questions too, so that a checkpoint may be
    # chosen by the test set; whatever shows its scores says so. [ours] False: they are left out
    validate_on_tests: bool = False
    max_prompt_tokens: int = Field(1024, ge=1)  # [paper] questions with longer prompts are left out

    @model_validator(mode="before")
    @classmethod
    def _tests_like_training(cls, given: Any) -> Any:
        """Nothing is made of the built-in task that nobody asked for."""
        if isinstance(given, dict) and isinstance(given.get("train"), dict | DataSet):
            return dict.fromkeys(MADE_TESTS, 0) | given
        return given

    @field_validator("benchmarks")
    @classmethod
    def _names_of_files(cls, benchmarks: dict[str, Benchmark]) -> dict[str, Benchmark]:
        for name in benchmarks:
            if name in TAKEN:
                raise ValueError(f"a benchmark cannot be called {name!r}: that is another file")
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"a benchmark cannot be called {name!r}: a name is of letters a to z, digits, "
                    f"`.`, `_` and `-`, and begins with a letter or digit"
                )
        return benchmarks

    @model_validator(mode="after")
    def _whole(self) -> "Questions":
        if not self.min_level <= self.max_level < self.max_ood_level:
            raise ValueError("need min_level <= max_level < max_ood_level")
        if not self.tests:
            raise ValueError("nothing to test with: give test_id, test_ood or benchmarks")
        return self

    @property
    def tests(self) -> dict[str, Benchmark | int]:
        """Every benchmark by its name: a count of made questions, or a data set."""
        made: dict[str, Benchmark | int] = {
            name: count for name in MADE_TESTS if (count := getattr(self, name))
        }
        return made | self.benchmarks

    def domain(self, benchmark: str) -> str:
        """`in` or `out` of the distribution trained on; ours for the made tests."""
        if benchmark in self.benchmarks:
            return self.benchmarks[benchmark].domain
        return "out" if benchmark == "test_ood" else "in"


class Example(Section):
    """A question with its answer, shown in the prompt before the question that is asked."""

    question: str
    response: str
    kind: Literal["boxed", "mcq"] = "boxed"  # of the question; decides its instruction


class Prompt(Section):
    """How a question becomes a prompt (exgrpo/prompts.py)."""

    # question: its text alone; chat: the tokenizer's chat template; completion: [paper] the bare
    # prompt of Llama base, "User: ... Answer: let's think step by step"
    template: Literal["question", "chat", "completion"] = "question"
    # chat only. think: [paper] two sections, thought and solution, the box in the second, in our
    # words; None: the template's own, if it has one
    system: Literal["think"] | None = None
    # after the question: boxed: [ours] reason step by step, the answer (of a multiple choice: the
    # letter) in a box; letter: after a multiple choice alone; None: nothing
    instruction: Literal["boxed", "letter"] | None = None
    # put at the end of the prompt, where the response goes on. [paper] "<think>\n"; nothing is
    # added where the chat template itself ends with it
    opening: str = ""
    examples: list[Example] = Field(default_factory=list)  # few-shot, in this order
    # tokens, by their text, that end a response beside the model's own end tokens
    stop: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fitting(self) -> "Prompt":
        if self.system and self.template != "chat":
            raise ValueError(f"system {self.system!r} needs the template `chat`")
        return self


class Grading(Section):
    """How a response is read (exgrpo/grading.py), and the limits of a grading worker."""

    # [paper] the reward needs a closing think tag: the text after the last one is graded. The
    # released code has a variant without
    think: bool = False
    # at test time; None: as in training. [code] False: a missing tag is not penalised there
    think_at_test: bool | None = None
    prose: bool = False  # [ours] without a box, the answer that the text states counts
    workers: int = Field(1, ge=1)  # [ours] processes that compare formulas, beside the sampling
    # [ours] seconds of processor time an answer
    time_limit: float = Field(5.0, gt=0, le=3600)
    memory_limit: int = Field(2 << 30, ge=1 << 20)  # [ours] bytes of a worker
