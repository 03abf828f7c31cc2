"""The tables of the screen Question: which questions there are, and every visit of one."""

import polars as pl

LONGEST = 90  # characters of a question in the table


def question_rows(questions: pl.DataFrame) -> pl.DataFrame:
    """Rows of the query `question_list` for reading; shares in percent."""
    return questions.select(
        pl.col("text").fill_null("").str.replace_all(r"\s+", " ").str.slice(0, LONGEST),
        "level",
        "visits",
        (100 * pl.col("first_share")).round(0).alias("first visit, %"),
        (100 * pl.col("last_share")).round(0).alias("last visit, %"),
        "flips",
        "replays",
        pl.col("retired").alias("retired in runs"),
        pl.col("benchmarks").alias("asked in"),
        (100 * pl.col("accuracy")).round(0).alias("samples right, %"),
        "question",
    ).rename({"text": "question's text", "question": "id"})


def visit_rows(visits: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Rows of the query `question_visits` for reading, with what happened in the buffer then."""
    at = ("run", "question", "step")
    happened = events.group_by(*at, maintain_order=True).agg(
        pl.col("event").unique(maintain_order=True).str.join(", ").alias("buffer")
    )
    return visits.join(happened, on=at, how="left", maintain_order="left").select(
        "arm",
        "seed",
        "step",
        pl.format("{} of {}", "right", "graded").alias("fresh right"),
        pl.col("mean_entropy").round(4).alias("mean entropy"),
        pl.when("experiential")
        .then(pl.format("bucket {}", pl.col("bucket_drawn").cast(pl.String).fill_null("?")))
        .otherwise(pl.lit("fresh stream"))
        .alias("drawn from"),
        "replayed",
        pl.format("{} of {}", "successes", "size").alias("k of K"),
        "buffer",
        "run",
    )
