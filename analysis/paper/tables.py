"""The paper's own tables, as CSV beside this file, and named questions about them.

Figures only, of arXiv 2510.02245, version 2. A question is a `.sql` file with the header of
`analysis.named`; it reads the CSV files by name, and the questions that come before it.
"""

from functools import cache
from pathlib import Path

import duckdb
import polars as pl

from analysis.errors import UserError
from analysis.named import NamedQuery, read_query

FOLDER = Path(__file__).parent

NUMBER, TEXT, COUNT = pl.Float64(), pl.String(), pl.Int64()
TABLES: dict[str, dict[str, pl.DataType]] = {
    "scores": {
        "source": TEXT, "backbone": TEXT, "method": TEXT, "benchmark": TEXT, "score": NUMBER,
    },
    "printed_averages": {
        "source": TEXT, "backbone": TEXT, "method": TEXT, "domain": TEXT, "average": NUMBER,
    },
    "benchmarks": {"benchmark": TEXT, "domain": TEXT, "questions": COUNT, "samples": COUNT},
    "costs": {
        "source": TEXT, "backbone": TEXT, "method": TEXT, "mean_seconds": NUMBER,
        "buffer_gigabytes": NUMBER,
    },
    "chains": {
        "source": TEXT, "difficulty": TEXT, "measure": TEXT, "valid": NUMBER, "flawed": NUMBER,
    },
    "code": {
        "source": TEXT, "difficulty": TEXT, "measure": TEXT, "without_code": NUMBER,
        "with_code": NUMBER,
    },
    "masked_questions": {"source": TEXT, "difficulty": TEXT, "questions": NUMBER},
}  # fmt: skip

# A question may read those before it.
QUESTIONS = (
    "recomputed_averages",
    "item_errors",
    "gaps",
    "gains",
    "mean_gains",
    "benchmark_gains",
    "ablation_gaps",
    "overhead",
    "chain_entropy",
    "code_marker",
    "masked_batches",
    "tested_domains",
)


def table(name: str) -> pl.DataFrame:
    """One of the paper's tables, a key of TABLES."""
    return pl.read_csv(FOLDER / f"{name}.csv", schema=TABLES[name])


@cache
def paper_queries() -> dict[str, NamedQuery]:
    """Every question about the paper's tables, by name."""
    return {name: read_query(FOLDER / f"{name}.sql") for name in QUESTIONS}


@cache
def ask(name: str) -> pl.DataFrame:
    """The answer to a named question about the paper. Raises UserError on an unknown name."""
    if name not in QUESTIONS:
        raise UserError(
            f"unknown question {name!r} about the paper. Known: {', '.join(QUESTIONS)}."
        )
    with duckdb.connect(":memory:") as connection:
        for each in TABLES:
            connection.register(each, table(each).to_arrow())
        for each, query in paper_queries().items():
            connection.execute(f"create view {each} as {query.sql}")
        return connection.table(name).pl()
