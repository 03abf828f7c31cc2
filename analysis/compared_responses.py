"""The responses to one question, of the runs of one side of a comparison."""

import duckdb
import polars as pl

from analysis.pairs import Side
from analysis.queries import asking

MOST = 200  # responses of one side

_COLUMNS = "correct, chain_valid, finish, length, mean_entropy, response"

_SAMPLES = f"""
    WITH asked AS (
        SELECT * FROM evaluations
        WHERE benchmark = $benchmark AND question = $question AND list_contains($runs, run)
            AND step = coalesce($step, step)
        QUALIFY step = max(step) OVER (PARTITION BY run)
    )
    SELECT concat_ws(':', run, step, sample) AS id, run, seed, step, sample, {_COLUMNS}
    FROM asked JOIN runs USING (run)
    ORDER BY seed, run, sample LIMIT {MOST}
"""
_ROLLOUTS = f"""
    SELECT trajectory AS id, run, seed, step, slot AS sample, {_COLUMNS}
    FROM trajectories JOIN runs USING (run)
    WHERE list_contains($runs, run) AND question = $question AND NOT replayed
        AND step >= coalesce($first, step) AND step <= coalesce($last, step)
    ORDER BY seed, run, step, slot LIMIT {MOST}
"""
_QUESTION = """
    SELECT text, gold FROM questions WHERE question = $question
    ORDER BY split = $benchmark DESC LIMIT 1
"""


def responses(
    connection: duckdb.DuckDBPyConnection,
    benchmark: str | None,
    side: Side,
    runs: tuple[str, ...],
    question: str,
) -> pl.DataFrame:
    """The first `MOST` responses of these runs: id, run, seed, step, sample, correct, text, ...

    Samples of a benchmark, or, if it is None, fresh rollouts of training: then `id` is the
    trajectory's and `sample` its slot. Raises UserError when the catalog cannot be read.
    """
    values = {"runs": list(runs), "question": question}
    with asking(connection, "responses") as cursor:
        if benchmark is None:
            window = {"first": side.first, "last": side.last}
            return cursor.sql(_ROLLOUTS, params=values | window).pl()
        checkpoint = {"benchmark": benchmark, "step": side.step}
        return cursor.sql(_SAMPLES, params=values | checkpoint).pl()


def question_text(
    connection: duckdb.DuckDBPyConnection, benchmark: str | None, question: str
) -> pl.DataFrame:
    """Text and gold answer of a question, in a row; none where the catalog does not hold it."""
    values = {"question": question, "benchmark": benchmark or "train"}
    with asking(connection, "responses") as cursor:
        return cursor.sql(_QUESTION, params=values).pl()
