"""The log's tables, and its `manifest`: the only thing that the method and the analysis share.

One table a fact. A column has a name, a type, a unit and a meaning; the writer
(`exgrpo.records`), the lake, the catalog and the schema browser all read this module, so it
needs neither torch nor duckdb.
"""

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

SCHEMA_VERSION = 3

ColumnType = pl.DataType | type[pl.DataType]

TEXT, INT, FLOAT, BOOL = pl.String, pl.Int64, pl.Float64, pl.Boolean
INTS, FLOATS = pl.List(pl.Int32), pl.List(pl.Float32)

_ARROW = {
    TEXT: pa.string(),
    INT: pa.int64(),
    FLOAT: pa.float64(),
    BOOL: pa.bool_(),
    INTS: pa.list_(pa.int32()),
    FLOATS: pa.list_(pa.float32()),
}


@dataclass(frozen=True)
class Column:
    """One column: its type, its unit ("" where it has none) and what it means."""

    name: str
    type: ColumnType
    unit: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table: its grain (what one row is), its sort order and its columns."""

    name: str
    grain: str
    order: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def polars_schema(self) -> pl.Schema:
        return pl.Schema({column.name: column.type for column in self.columns})

    @property
    def arrow_schema(self) -> pa.Schema:
        fields = [pa.field(column.name, _ARROW[column.type]) for column in self.columns]
        return pa.schema(fields, metadata={"schema_version": str(SCHEMA_VERSION)})


_RUN = Column("run", TEXT, "", "run id: arm, seed and the hash of the resolved settings")
_STEP = Column("step", INT, "step", "training step, from 1; 0 is the base model")
_QUESTION = Column("question", TEXT, "", "question id: hash of its text")
_TRAJECTORY = Column("trajectory", TEXT, "", "trajectory id: run:step:group:slot")

RUNS = Table(
    "runs",
    "a run: one arm with one seed, a base model, or an import",
    ("study", "run"),
    (
        _RUN,
        Column("study", TEXT, "", "the study that the run belongs to"),
        Column("arm", TEXT, "", "arm; `base` for the untrained model, `import` for foreign logs"),
        Column("seed", INT, "", "seed of the run; null for a base model or an import"),
        Column("world", TEXT, "", "what the base model was pretrained on, for example `hard`"),
        Column("base_model", TEXT, "", "the model folder or hub name that training starts from"),
        Column("tokenizer", TEXT, "", "hash of its tokenizer, see `vocabulary`"),
        Column("settings", TEXT, "", "the resolved settings as JSON"),
        Column("settings_hash", TEXT, "", "hash of the resolved settings"),
        Column("versions", TEXT, "", "Python and library versions as JSON"),
        Column("commit", TEXT, "", "git commit of the code; `-dirty` when files were changed"),
        Column("hardware", TEXT, "", "processor, threads, device"),
        Column("started", TEXT, "UTC", "when the first attempt started, ISO 8601"),
        Column("finished", TEXT, "UTC", "when the run ended, ISO 8601; null while it runs"),
        Column("seconds", FLOAT, "s", "training wall time over all attempts, evaluation excluded"),
        Column("steps", INT, "step", "training steps done"),
        Column("attempts", INT, "", "1 + number of resumes"),
        Column("status", TEXT, "", "`running`, `stopped`, `done`, or `imported`"),
    ),
)

QUESTIONS = Table(
    "questions",
    "a question",
    ("split", "question"),
    (
        _QUESTION,
        Column("source", TEXT, "", "the task or file that it comes from"),
        Column("split", TEXT, "", "train, validation, test_id, test_ood, or the import's name"),
        Column("text", TEXT, "", "the question as asked"),
        Column("prompt", TEXT, "", "the prompt as rendered for the model"),
        Column("gold", TEXT, "", "the right answer, always text"),
        Column("level", INT, "", "difficulty known beforehand; for `chain` the number of steps"),
    ),
)

TRAJECTORIES = Table(
    "trajectories",
    "a trajectory in the batch of one training step (a replayed one is a new row)",
    ("run", "step", "group", "slot"),
    (
        _TRAJECTORY,
        _RUN,
        _STEP,
        Column("group", INT, "", "place of the question's group in the batch, from 0"),
        Column("slot", INT, "", "place in the group, from 0; replayed ones come first"),
        _QUESTION,
        Column("level", INT, "", "the question's level"),
        Column("experiential", BOOL, "", "the question was drawn from the replay buffer"),
        Column("replayed", BOOL, "", "the trajectory itself was replayed, not sampled now"),
        Column("trained", BOOL, "", "in the update; false: sampled, then dropped or replaced"),
        Column("source", TEXT, "", "replayed only: id of the trajectory as first sampled"),
        Column("birth_step", INT, "step", "the step (of its own run) whose policy sampled it"),
        Column("response", TEXT, "", "the response, decoded from the token ids"),
        Column("length", INT, "token", "response tokens, end token included"),
        Column("finish", TEXT, "", "`stop` (end token) or `length` (cut off)"),
        Column("extracted", TEXT, "", "the answer read from the response; null if none"),
        Column("correct", BOOL, "", "graded right; null when the grader failed"),
        Column("format_ok", BOOL, "", "an answer could be read"),
        Column("group_successes", INT, "", "k: right ones of those that count for the bucket"),
        Column("group_size", INT, "", "K: how many count: graded; replayed ones if the arm says"),
        Column("bucket_drawn", INT, "", "experiential only: bucket it was drawn from"),
        Column("bucket", INT, "", "bucket after this step: k if 0 < k < K, else null"),
        Column("difficulty", TEXT, "", "hard (k/K <= 1/4), medium, easy (k/K >= 3/4), by bucket"),
        Column("mean_entropy", FLOAT, "nat/token", "mean full-vocabulary token entropy now"),
        Column("summed_entropy", FLOAT, "nat", "the same, summed over the response"),
        Column("nll", FLOAT, "nat/token", "mean negative log-probability under the policy now"),
        Column("behaviour_nll", FLOAT, "nat/token", "the same under the policy that sampled it"),
        Column("advantage", FLOAT, "", "as trained on: reward minus the group's mean; 0 if masked"),
        Column("ratio_mean", FLOAT, "", "mean ratio, policy / behaviour policy; null: no gradient"),
        Column("ratio_min", FLOAT, "", "least importance ratio; null as well, like the rest"),
        Column("ratio_max", FLOAT, "", "greatest importance ratio"),
        Column("ratio_ess", FLOAT, "share", "effective sample size of the token ratios / tokens"),
        Column("weight_mean", FLOAT, "", "mean factor of the advantage: ratio, clipped or shaped"),
        Column("weight_min", FLOAT, "", "least factor of the advantage"),
        Column("weight_max", FLOAT, "", "greatest factor of the advantage"),
        Column("weight_ess", FLOAT, "share", "effective sample size of the weights / tokens"),
        Column("clipped_share", FLOAT, "share", "tokens whose gradient the clip removed"),
        Column("code", BOOL, "", "contains code"),
        Column("shortcut", BOOL, "", "answers without showing the steps; null outside `chain`"),
        Column("repetition", BOOL, "", "repeats itself"),
        Column("step_errors", INT, "", "written steps that are wrong; null where not checkable"),
        Column("chain_valid", BOOL, "", "every step needed is shown and right; null if unknown"),
    ),
)

TOKENS = Table(
    "tokens",
    "the tokens of one trajectory, same key as `trajectories`",
    ("run", "step", "group", "slot"),
    (
        _TRAJECTORY,
        _RUN,
        _STEP,
        Column("group", INT, "", "as in trajectories"),
        Column("slot", INT, "", "as in trajectories"),
        Column("token_ids", INTS, "", "response token ids as sampled"),
        Column("behaviour_logprobs", FLOATS, "nat", "log-probability when it was sampled"),
        Column("logprobs", FLOATS, "nat", "log-probability in the update; null: none, or sampled"),
        Column("entropies", FLOATS, "nat", "entropy of the policy now; may be sampled"),
    ),
)

VOCABULARY = Table(
    "vocabulary",
    "a token of a tokenizer",
    ("tokenizer", "token_id"),
    (
        Column("tokenizer", TEXT, "", "hash of the tokenizer"),
        Column("token_id", INT, "", "token id"),
        Column("text", TEXT, "", "the token's text; partial UTF-8 as replacement characters"),
    ),
)

CANDIDATES = Table(
    "candidates",
    "a stored trajectory considered for replay",
    ("run", "step", "group", "rank"),
    (
        _RUN,
        _STEP,
        Column("group", INT, "", "place of the question's group in the batch"),
        _QUESTION,
        Column("source", TEXT, "", "id of the stored trajectory"),
        Column("birth_step", INT, "step", "the step (of its own run) whose policy sampled it"),
        Column("correct", BOOL, "", "graded right when it was stored"),
        Column("length", INT, "token", "response tokens"),
        Column("mean_entropy", FLOAT, "nat/token", "under the policy at this step"),
        Column("summed_entropy", FLOAT, "nat", "under the policy at this step"),
        Column("nll", FLOAT, "nat/token", "under the policy at this step"),
        Column("birth_entropy", FLOAT, "nat/token", "mean entropy when it was sampled"),
        Column("released", FLOAT, "nat/token", "what the released code takes for mean entropy"),
        Column("rank", INT, "", "place by the arm's own order; the first are replayed"),
        Column("chosen", BOOL, "", "replayed at this step"),
        Column("mean_entropy_rank", INT, "", "place by this metric alone, 0 the lowest"),
        Column("summed_entropy_rank", INT, "", "place by this metric alone, 0 the lowest"),
        Column("nll_rank", INT, "", "place by this metric alone, 0 the lowest"),
        Column("length_rank", INT, "", "place by this metric alone, 0 the lowest"),
        Column("birth_entropy_rank", INT, "", "place by this metric alone, 0 the lowest"),
        Column("released_rank", INT, "", "place by this metric alone, 0 the lowest"),
    ),
)

EXPERIENCE = Table(
    "experience",
    "a change of the replay buffer",
    ("run", "step", "question"),
    (
        _RUN,
        _STEP,
        _QUESTION,
        Column(
            "event", TEXT, "", "entered, moved, stored, replayed, retired, returned, left, evicted"
        ),
        Column("trajectory", TEXT, "", "the trajectory concerned (stored, replayed, evicted)"),
        Column("bucket_before", INT, "", "bucket before the event"),
        Column("bucket_after", INT, "", "bucket after the event"),
    ),
)

STEPS = Table(
    "steps",
    "a training step",
    ("run", "step"),
    (
        _RUN,
        _STEP,
        Column("replay_on", BOOL, "", "the start has happened: replay is in force"),
        Column("reward", FLOAT, "share", "mean reward of the fresh rollouts"),
        Column("fresh_reward", FLOAT, "share", "mean reward, fresh questions only"),
        Column("experiential_reward", FLOAT, "share", "the same, experiential questions only"),
        Column("groups", INT, "", "groups in the batch"),
        Column("experiential_groups", INT, "", "groups whose question came from the buffer"),
        Column("replay_groups", INT, "", "groups that a stored trajectory joined"),
        Column("signal_groups", INT, "", "groups with unequal rewards"),
        Column("updated_groups", INT, "", "groups with a non-zero advantage in the update"),
        Column("solved_groups", INT, "", "groups with k = K"),
        Column("failed_groups", INT, "", "groups with k = 0"),
        Column("ungraded", INT, "", "trajectories that the grader could not judge"),
        Column("entropy", FLOAT, "nat/token", "token mean over the fresh rollouts"),
        Column("length", FLOAT, "token", "mean response length of the fresh rollouts"),
        Column("truncated_share", FLOAT, "share", "fresh rollouts cut at the length limit"),
        Column("loss", FLOAT, "", "loss, mean over the updates"),
        Column("grad_norm", FLOAT, "", "gradient norm before clipping, mean over the updates"),
        Column("grad_norm_fresh", FLOAT, "", "the same, of fresh tokens alone"),
        Column("grad_norm_replayed", FLOAT, "", "the same, of replayed tokens alone"),
        Column("skipped_updates", INT, "", "updates left out for a non-finite or huge gradient"),
        Column("ratio_mean_fresh", FLOAT, "", "mean ratio, fresh tokens with a gradient"),
        Column("ratio_mean_replayed", FLOAT, "", "mean ratio, replayed tokens with a gradient"),
        Column("weight_mean_replayed", FLOAT, "", "mean factor of the advantage, the same tokens"),
        Column("ratio_ess_replayed", FLOAT, "share", "mean ratio_ess over the same tokens"),
        Column("clipped_share", FLOAT, "share", "of tokens with a gradient: taken by the clip"),
        Column("buffer_questions", INT, "", "questions in the buffer after the step"),
        Column("buffer_trajectories", INT, "", "trajectories in the buffer after the step"),
        Column("buffer_bytes", INT, "byte", "token ids and log-probabilities in the buffer"),
        Column("bucket_sizes", INTS, "question", "questions in bucket 1 .. K-1"),
        Column("retired_questions", INT, "", "questions retired so far"),
        Column("distinct_questions", INT, "", "distinct fresh questions seen so far"),
        Column("sampled_tokens", INT, "token", "tokens sampled in this step"),
        Column("trained_tokens", INT, "token", "response tokens in the update"),
        Column("total_sampled_tokens", INT, "token", "tokens sampled so far"),
        Column("token_floats_logged", INT, "trajectory", "trajectories with float token columns"),
        Column("rollout_seconds", FLOAT, "s", "sampling"),
        Column("grade_seconds", FLOAT, "s", "grading"),
        Column("select_seconds", FLOAT, "s", "scoring, choosing and keeping experience"),
        Column("update_seconds", FLOAT, "s", "forward, backward, optimiser"),
        Column("record_seconds", FLOAT, "s", "logging since the step before, its rows too"),
        Column("checkpoint_seconds", FLOAT, "s", "the checkpoint after the step before"),
        Column("seconds", FLOAT, "s", "sum of these; without evaluation"),
        Column("run_seconds", FLOAT, "s", "training time so far"),
    ),
)

EVALUATIONS = Table(
    "evaluations",
    "a sample of a benchmark",
    ("run", "step", "benchmark", "question", "sample"),
    (
        _RUN,
        Column("step", INT, "step", "training step of the checkpoint; 0 is the base model"),
        Column("benchmark", TEXT, "", "validation, test_id, test_ood, ..."),
        _QUESTION,
        Column("sample", INT, "", "sample of the question, from 0"),
        Column("level", INT, "", "the question's level"),
        Column("temperature", FLOAT, "", "sampling temperature"),
        Column("response", TEXT, "", "the response"),
        Column("length", INT, "token", "response tokens, end token included"),
        Column("finish", TEXT, "", "`stop` or `length`"),
        Column("extracted", TEXT, "", "the answer read; null if none"),
        Column("correct", BOOL, "", "graded right; null when the grader failed"),
        Column("mean_entropy", FLOAT, "nat/token", "mean token entropy when sampled"),
        Column("nll", FLOAT, "nat/token", "mean negative log-probability when sampled"),
        Column("shortcut", BOOL, "", "answers without showing the steps"),
        Column("step_errors", INT, "", "written steps that are wrong"),
        Column("chain_valid", BOOL, "", "every step needed is shown and right; null if unknown"),
    ),
)

JUDGEMENTS = Table(
    "judgements",
    "a verdict on a chain by a judge other than the exact one of the task",
    ("run", "trajectory", "judge"),
    (
        _RUN,
        _TRAJECTORY,
        Column("judge", TEXT, "", "which judge"),
        Column("version", TEXT, "", "its version"),
        Column("valid", BOOL, "", "the verdict; null when it could not decide"),
        Column("reason", TEXT, "", "why"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        RUNS,
        QUESTIONS,
        TRAJECTORIES,
        TOKENS,
        VOCABULARY,
        CANDIDATES,
        EXPERIENCE,
        STEPS,
        EVALUATIONS,
        JUDGEMENTS,
    )
}
