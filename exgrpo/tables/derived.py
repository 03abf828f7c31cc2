"""Tables that the lake works out from the log when it takes it in (`analysis/derived/`).

An import that knows groups but no trajectories writes `visits` itself. A count of `visits` is null
where the log does not tell what it counts: of no trajectory of the group.
"""

from exgrpo.tables.schema import (
    BOOL,
    FLOAT,
    GROUP,
    INT,
    QUESTION_ID,
    RUN_ID,
    STEP,
    Column,
    Table,
)

VISITS = Table(
    "visits",
    "a group: one question in the batch of one step",
    ("run", "step", "group"),
    (
        RUN_ID,
        STEP,
        GROUP,
        QUESTION_ID,
        Column("level", INT, "", "the question's level"),
        Column("visit", INT, "", "which visit of the question in its run this is, from 1"),
        Column("experiential", BOOL, "", "the question was drawn from the replay buffer"),
        Column("bucket_drawn", INT, "", "experiential only: bucket it was drawn from"),
        Column("bucket", INT, "", "bucket after this step: k if 0 < k < K, else null"),
        Column("successes", INT, "", "k, `group_successes` of its trajectories"),
        Column("size", INT, "", "K, `group_size` of its trajectories"),
        Column("fresh", INT, "trajectory", "fresh rollouts"),
        Column("graded", INT, "trajectory", "of them graded"),
        Column("right", INT, "trajectory", "of them graded right"),
        Column("success_share", FLOAT, "share", "right / graded"),
        Column("mean_entropy", FLOAT, "nat/token", "mean over the fresh rollouts"),
        Column("length", FLOAT, "token", "mean over the fresh rollouts"),
        Column("truncated", INT, "trajectory", "fresh ones cut at the length limit; null: unknown"),
        Column("distinct", INT, "", "distinct responses among the fresh rollouts; null: unknown"),
        Column("distinct_plain", INT, "", "the same, case and white space aside; null: unknown"),
        Column("checked", INT, "trajectory", "right fresh ones whose chain could be checked"),
        Column("flawed", INT, "trajectory", "of those, chain not valid"),
        Column("shortcut", INT, "trajectory", "right fresh ones without steps; null: unknown"),
        Column("code", INT, "trajectory", "right fresh ones with code; null: unknown"),
        Column("repetition", INT, "trajectory", "right fresh ones with repetition; null: unknown"),
        Column("replayed", INT, "trajectory", "replayed trajectories"),
        Column("replayed_checked", INT, "trajectory", "of them, chain could be checked"),
        Column("replayed_flawed", INT, "trajectory", "of those, chain not valid"),
        Column("replayed_shortcut", INT, "trajectory", "replayed, without steps; null: unknown"),
        Column("replayed_code", INT, "trajectory", "replayed, with code; null: unknown"),
        Column("replayed_repetition", INT, "trajectory", "replayed, repetitive; null: unknown"),
        Column("previous_step", INT, "step", "step of the visit before; null at the first"),
        Column("previous_successes", INT, "", "k of the visit before"),
        Column("previous_bucket", INT, "", "bucket after the visit before; null: k = 0 or K"),
        Column("previous_share", FLOAT, "share", "success_share of the visit before"),
        Column("next_step", INT, "step", "step of the next visit; null at the last"),
        Column("next_share", FLOAT, "share", "success_share of the next visit"),
    ),
)

_REPLAYED = Column("replayed", BOOL, "", "of replayed trajectories, else of fresh ones")
_CORRECT = Column("correct", BOOL, "", "of trajectories graded right; null: ungraded")
_SUMMED_ENTROPY = Column("summed_entropy", FLOAT, "nat", "sum of their entropies")

TOKEN_PROFILE = Table(
    "token_profile",
    "a run and a tenth of the response, of right or wrong, fresh or replayed trajectories",
    ("run", "replayed", "correct", "tenth"),
    (
        RUN_ID,
        _REPLAYED,
        _CORRECT,
        Column("tenth", INT, "", "where in the response, 0 (its first tenth) .. 9"),
        Column("tokens", INT, "token", "tokens whose entropy was logged"),
        _SUMMED_ENTROPY,
        Column("summed_square", FLOAT, "nat^2", "sum of the squares of their entropies"),
    ),
)

TOKEN_TOTALS = Table(
    "token_totals",
    "a run and a token, in right or wrong, fresh or replayed trajectories",
    ("run", "replayed", "correct", "token_id"),
    (
        RUN_ID,
        _REPLAYED,
        _CORRECT,
        Column("token_id", INT, "", "token id, see `vocabulary`"),
        Column("tokens", INT, "token", "how often it occurs with a logged entropy"),
        Column("high", INT, "token", "of those, entropy in the run's top fifth"),
        _SUMMED_ENTROPY,
    ),
)

DERIVED = (VISITS, TOKEN_PROFILE, TOKEN_TOTALS)
