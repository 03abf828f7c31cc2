"""What every step of a run uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from exgrpo.experience import Trajectory
from exgrpo.grading import Grader, Rules, rules_for
from exgrpo.policy import stop_ids
from exgrpo.processes import Processes
from exgrpo.questions import Question
from exgrpo.records import Recorder, Unrecorded
from exgrpo.rollout import Engine
from exgrpo.sampling import Sampler
from exgrpo.settings import RunSettings
from exgrpo.update import Learner


@dataclass(frozen=True)
class RunContext:
    """What every step of a run uses; built once a start.

    outside: question -> trajectories that are not the run's own (an expert's, another run's).
    """

    settings: RunSettings
    train_questions: dict[str, Question]
    validation: Sequence[Question]
    learner: Learner
    policy: PreTrainedModel  # the learner's, without the scorer and Accelerate's wrapper
    tokenizer: PreTrainedTokenizerBase
    outside: Mapping[str, Sequence[Trajectory]]
    grader: Grader
    recorder: Recorder | Unrecorded
    engine: Engine

    @property
    def processes(self) -> Processes:
        return self.learner.processes

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.engine, self.tokenizer, self.stop_ids, self.grader, self.processes)

    def rules(self, question: Question) -> Rules:
        """How responses to a question are read in training."""
        return rules_for(question.kind, self.settings.grading)

    @cached_property
    def stop_ids(self) -> tuple[int, ...]:
        """Every token id that ends a response."""
        return stop_ids(self.policy, self.tokenizer, self.settings.prompt.stop)
