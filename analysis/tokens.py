"""The tokens of one trajectory, read from the lake: 90 % of its bytes, so never in the catalog."""

import re
from functools import cache
from glob import escape
from pathlib import Path

import duckdb
import polars as pl

from analysis.catalog import THREADS
from analysis.errors import UserError, reason
from analysis.lake import Entry, check_there, read_entries, read_entry
from analysis.storage import Lake, locate, register
from exgrpo.tables import TOKENS, VOCABULARY

SCHEMA = {
    "position": pl.Int64,
    "token_id": pl.Int64,
    "text": pl.String,
    "behaviour_logprob": pl.Float32,
    "logprob": pl.Float32,
    "entropy": pl.Float32,
}

# A run may have colons; 18 digits fit into 64 bits.
_ID = re.compile(r".+:(?P<step>\d{1,18}):(?P<group>\d{1,18}):(?P<slot>\d{1,18})", re.A | re.S)

# Step, group and slot let DuckDB skip all row groups but one: ids are no use for that.
# Lists of unequal length, or none at all, are filled with nulls.
_TOKENS = """
    SELECT
        generate_subscripts(token_ids, 1) - 1 AS position,
        unnest(token_ids)::BIGINT AS token_id,
        unnest(behaviour_logprobs) AS behaviour_logprob,
        unnest(logprobs) AS logprob,
        unnest(entropies) AS entropy
    FROM read_parquet($file)
    WHERE step = $step AND "group" = $group AND slot = $slot AND trajectory = $trajectory
"""
_WORDS = """
    SELECT token_id::BIGINT AS token_id, text
    FROM read_parquet($file)
    WHERE tokenizer = $tokenizer AND token_id IN (SELECT unnest($ids::BIGINT[]))
"""


def read_tokens(lake: Lake, run: str, trajectory: str) -> pl.DataFrame:
    """One row a token: position (from 0), token_id, text, and three floats in nat.

    Floats that the run did not log are null; a token without vocabulary has no text. No rows
    when the lake holds no tokens of this trajectory, as for an import. Raises UserError when a
    file of the run is missing from the lake or torn; its content is checked by whoever builds the
    catalog, not at each view.
    """
    entry = read_entry(lake, run)
    place = _place(trajectory)
    if entry is None or entry.run is None or place is None or TOKENS.name not in entry.tables:
        return pl.DataFrame(schema=SCHEMA)
    check_there([entry], lake)
    file = locate(lake, entry.tables[TOKENS.name].path)
    values = {"file": escape(file), "trajectory": trajectory, **place}
    try:
        with _reader(lake) as connection:
            tokens = connection.sql(_TOKENS, params=values).pl()
            words = _words(connection, lake, entry, tokens["token_id"])
    except duckdb.Error as error:
        raise UserError(
            f"{file}: cannot read the tokens of {trajectory}: {reason(error)}"
        ) from error
    return tokens.join(words, on="token_id", how="left", maintain_order="left").select(list(SCHEMA))


def _reader(lake: Lake) -> duckdb.DuckDBPyConnection:
    """A connection that reads this lake, for one view."""
    if isinstance(lake, Path):
        return _of_folders().cursor()
    connection = duckdb.connect(config={"threads": THREADS})
    register(connection, lake)
    return connection


@cache
def _of_folders() -> duckdb.DuckDBPyConnection:
    """One connection for all views: to open one takes as long as to read with it."""
    return duckdb.connect(config={"threads": THREADS})


def _place(trajectory: str) -> dict[str, int] | None:
    """Step, group and slot of a trajectory's id, `run:step:group:slot`; None if it is none."""
    if not (found := _ID.fullmatch(trajectory)):
        return None
    return {name: int(number) for name, number in found.groupdict().items()}


def _words(
    connection: duckdb.DuckDBPyConnection, lake: Lake, entry: Entry, ids: pl.Series
) -> pl.DataFrame:
    """The texts of these tokens, from the first entry that knows the run's tokenizer."""
    tokenizer = _tokenizer(entry)
    known = [entry] if VOCABULARY.name in entry.tables else read_entries(lake) if tokenizer else []
    for each in known:
        if VOCABULARY.name in each.tables and _tokenizer(each) == tokenizer:
            file = escape(locate(lake, each.tables[VOCABULARY.name].path))
            values = {"file": file, "tokenizer": tokenizer, "ids": ids.unique().to_list()}
            return connection.sql(_WORDS, params=values).pl()
    return pl.DataFrame(schema={"token_id": pl.Int64, "text": pl.String})


def _tokenizer(entry: Entry) -> str | None:
    """The hash of the run's tokenizer; an import names none."""
    return entry.run.get("tokenizer") if entry.run else None
