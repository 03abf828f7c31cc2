"""The tokens of one trajectory, read from the lake: 90 % of its bytes, so never in the catalog."""

from glob import escape
from pathlib import Path

import duckdb
import polars as pl

from analysis.lake import Entry, check_files, read_entries, scan
from exgrpo.tables import TOKENS, VOCABULARY

SCHEMA = {
    "position": pl.Int64,
    "token_id": pl.Int64,
    "text": pl.String,
    "behaviour_logprob": pl.Float32,
    "logprob": pl.Float32,
    "entropy": pl.Float32,
}

# Lists of unequal length, or none at all, are filled with nulls.
_TOKENS = """
    SELECT
        generate_subscripts(token_ids, 1) - 1 AS position,
        unnest(token_ids)::BIGINT AS token_id,
        unnest(behaviour_logprobs) AS behaviour_logprob,
        unnest(logprobs) AS logprob,
        unnest(entropies) AS entropy
    FROM read_parquet($file)
    WHERE trajectory = $trajectory
"""


def read_tokens(results: Path, run: str, trajectory: str) -> pl.DataFrame:
    """One row a token: position (from 0), token_id, text, and three floats in nat.

    Floats that the run did not log are null; a token without vocabulary has no text. No rows
    when the lake holds no tokens of this trajectory, as for an import. Raises UserError when a
    file of the run is missing from the lake or not what was written there.
    """
    lake = results / "lake"
    entries = read_entries(lake)
    entry = next((e for e in entries if e.run and e.run["run"] == run), None)
    if entry is None or entry.run is None or TOKENS.name not in entry.tables:
        return pl.DataFrame(schema=SCHEMA)
    check_files([entry], lake)
    file = escape(str(lake / entry.tables[TOKENS.name].path))
    with duckdb.connect(config={"threads": 2}) as connection:
        values = {"file": file, "trajectory": trajectory}
        tokens = connection.sql(_TOKENS, params=values).pl()
    words = _vocabulary(entries, lake, entry.run["tokenizer"])
    return tokens.join(words, on="token_id", how="left", maintain_order="left").select(list(SCHEMA))


def _vocabulary(entries: list[Entry], lake: Path, tokenizer: str | None) -> pl.DataFrame:
    files = [lake / e.tables[VOCABULARY.name].path for e in entries if VOCABULARY.name in e.tables]
    if not files:
        return pl.DataFrame(schema={"token_id": pl.Int64, "text": pl.String})
    words = scan(files, VOCABULARY).filter(pl.col("tokenizer") == tokenizer)
    return words.select("token_id", "text").unique("token_id").collect()
