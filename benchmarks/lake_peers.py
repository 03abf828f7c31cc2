"""The same questions, answered by SQL on the catalog, by polars and by pandas on the lake's files.

The peers read the columns that a question needs from the Parquet files each time, as a script of
one's own would. Every question ends in a polars frame with the same columns and order.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

TEXT = "6+2=8;"

SQL = {
    "accuracy by arm and ten steps": """
        select arm, (step - 1) // 10 as part, avg(correct::int) as accuracy, count(*) as rows
        from trajectories join runs using (run) where not replayed
        group by all order by all""",
    "entropy by bucket and correctness": """
        select group_successes, correct, avg(mean_entropy) as entropy, count(*) as rows
        from trajectories where not replayed and correct is not null
        group by all order by all""",
    "flawed chains among right ones": """
        select arm, replayed, avg((not chain_valid)::int) as flawed, count(*) as rows
        from trajectories join runs using (run) where correct and chain_valid is not null
        group by all order by all""",
    "how often each question was asked": """
        select question, count(distinct run) as runs, count(*) as rows
        from trajectories where slot = 0 group by question order by question""",
    "responses that hold a text": f"""
        select arm, count(*) as rows from trajectories join runs using (run)
        where contains(lower(response), '{TEXT}') group by arm order by arm""",
    "the 50 calmest wrong responses": """
        select trajectory, mean_entropy from trajectories where not correct
        order by mean_entropy, trajectory limit 50""",
}


def by_catalog(connection: duckdb.DuckDBPyConnection) -> dict[str, Callable[[], pl.DataFrame]]:
    return {name: partial(_ask, connection, sql) for name, sql in SQL.items()}


def _ask(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    return connection.sql(sql).pl()


def by_polars(files: list[Path], arms: dict[str, str]) -> dict[str, Callable[[], pl.DataFrame]]:
    """arms: of every run."""
    rows = pl.scan_parquet(files, glob=False)
    arm = pl.col("run").replace_strict(arms, return_dtype=pl.String).alias("arm")

    def collect(frame: pl.LazyFrame, *order: str) -> pl.DataFrame:
        return frame.sort(order or frame.collect_schema().names()).collect(engine="streaming")

    part = ((pl.col("step") - 1) // 10).alias("part")
    fresh = rows.filter(~pl.col("replayed"))
    return {
        "accuracy by arm and ten steps": lambda: collect(
            fresh.group_by(arm, part).agg(accuracy=pl.col("correct").mean(), rows=pl.len())
        ),
        "entropy by bucket and correctness": lambda: collect(
            fresh.filter(pl.col("correct").is_not_null())
            .group_by("group_successes", "correct")
            .agg(entropy=pl.col("mean_entropy").mean(), rows=pl.len())
        ),
        "flawed chains among right ones": lambda: collect(
            rows.filter(pl.col("correct") & pl.col("chain_valid").is_not_null())
            .group_by(arm, "replayed")
            .agg(flawed=(~pl.col("chain_valid")).mean(), rows=pl.len())
        ),
        "how often each question was asked": lambda: collect(
            rows.filter(pl.col("slot") == 0)
            .group_by("question")
            .agg(runs=pl.col("run").n_unique(), rows=pl.len())
        ),
        "responses that hold a text": lambda: collect(
            rows.filter(pl.col("response").str.to_lowercase().str.contains(TEXT, literal=True))
            .group_by(arm)
            .agg(rows=pl.len())
        ),
        "the 50 calmest wrong responses": lambda: collect(
            rows.filter(~pl.col("correct"))
            .select("trajectory", "mean_entropy")
            .bottom_k(50, by=["mean_entropy", "trajectory"]),
            "mean_entropy",
            "trajectory",
        ),
    }


def by_pandas(files: list[Path], arms: dict[str, str]) -> dict[str, Callable[[], pl.DataFrame]]:
    """arms: of every run."""
    import pandas as pd

    def read(*columns: str) -> Any:
        frame = pd.concat([pd.read_parquet(file, columns=[*columns]) for file in files])
        return frame.reset_index(drop=True)

    def told(frame: Any, *keys: str) -> pl.DataFrame:
        return pl.from_pandas(frame.reset_index()).sort(keys)

    def accuracy() -> pl.DataFrame:
        rows = read("run", "step", "replayed", "correct")
        rows = rows[~rows["replayed"].astype(bool)]
        rows = rows.assign(
            arm=rows["run"].map(arms),
            part=(rows["step"] - 1) // 10,
            correct=rows["correct"].astype("Float64"),
        )
        found = rows.groupby(["arm", "part"])["correct"].agg(accuracy="mean", rows="size")
        return told(found, "arm", "part")

    def entropy() -> pl.DataFrame:
        rows = read("replayed", "correct", "group_successes", "mean_entropy")
        rows = rows[~rows["replayed"].astype(bool) & rows["correct"].notna()]
        rows = rows.assign(correct=rows["correct"].astype(bool))
        groups = rows.groupby(["group_successes", "correct"])["mean_entropy"]
        return told(groups.agg(entropy="mean", rows="size"), "group_successes", "correct")

    def flawed() -> pl.DataFrame:
        rows = read("run", "replayed", "correct", "chain_valid")
        rows = rows[rows["correct"].eq(True) & rows["chain_valid"].notna()]
        rows = rows.assign(arm=rows["run"].map(arms), flawed=~rows["chain_valid"].astype(bool))
        groups = rows.groupby(["arm", "replayed"])["flawed"]
        return told(groups.agg(flawed="mean", rows="size"), "arm", "replayed")

    def asked() -> pl.DataFrame:
        rows = read("run", "slot", "question")
        groups = rows[rows["slot"] == 0].groupby("question")["run"]
        return told(groups.agg(runs="nunique", rows="size"), "question")

    def holding() -> pl.DataFrame:
        rows = read("run", "response")
        rows = rows[rows["response"].str.lower().str.contains(TEXT, regex=False)]
        return told(rows["run"].map(arms).rename("arm").value_counts().rename("rows"), "arm")

    def calmest() -> pl.DataFrame:
        rows = read("trajectory", "correct", "mean_entropy")
        rows = rows[rows["correct"].eq(False)][["trajectory", "mean_entropy"]]
        least = rows.nsmallest(50, "mean_entropy", keep="all")
        order = ["mean_entropy", "trajectory"]
        return pl.from_pandas(least).sort(order).head(50)

    return dict(zip(SQL, (accuracy, entropy, flawed, asked, holding, calmest), strict=True))
