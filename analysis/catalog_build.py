"""Building the catalog `workbench.duckdb`: every table of the lake but `tokens`, ready for SQL.

It is built aside and put in place in one move. What the old catalog holds already is copied as it
is, so that one more run in a lake of a hundred costs the copy and that run.
"""

import json
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from glob import escape
from hashlib import sha256
from pathlib import Path

import duckdb
import polars as pl

from analysis.catalog import MEMORY
from analysis.compaction import MANY_ROWS_A_KEY
from analysis.errors import UserError, reason
from analysis.lake import Entry, check_files, check_there
from analysis.sql_types import SQL_TYPE, declared, literal, quoted
from analysis.storage import Lake, locate, register
from analysis.worker import open_worker
from exgrpo.tables import RUNS, TABLES, TOKENS
from exgrpo.tables.schema import INT, TEXT, Column, Table

# The same fact may come from several entries (two studies that share questions or a tokenizer), or
# an entry holds facts of another's run (judgements): `run` does not say whose rows these are.
SHARED = {
    "questions": ("question", "split"),
    "vocabulary": ("tokenizer", "token_id"),
    "judgements": ("run", "trajectory", "judge"),
}
MATERIALISED = [table for table in TABLES.values() if table is not TOKENS]

# Table macros and others, that named queries use beside the tables.
MACROS = (Path(__file__).parent / "macros.sql").read_text()

INFO = Table(
    "catalog_info",
    "an entry of the lake, taken or left out",
    ("entry",),
    (
        Column("entry", TEXT, "", "an entry of the lake: a run, a study's questions, or an import"),
        Column("study", TEXT, "", "the study that it belongs to"),
        Column("rows", INT, "row", "its rows over all tables, `tokens` included"),
        Column("left_out", TEXT, "", "why it is not in this catalog; null if it is"),
        Column("fingerprint", TEXT, "", "hash of what the lake holds of it; null if left out"),
        Column("lake", TEXT, "", "where the lake is: an address, or a path seen from here"),
        Column("built", TEXT, "UTC", "when this catalog was built, ISO 8601"),
    ),
)


def build(
    entries: list[Entry],
    left_out: dict[str, str],
    lake: Lake,
    path: Path,
    old: Path | None = None,
) -> pl.DataFrame:
    """Build the catalog at `path` from the lake's entries; return its `catalog_info`.

    `left_out` names the entries that do not count, each with the reason. What the catalog `old`
    (that at `path` unless told) holds of an unchanged entry is taken from there; the files of the
    others are checked first. The old catalog stays in place until the new one is whole. Raises
    UserError when a file of the lake is damaged or the disk is full.
    """
    taken = [entry for entry in entries if entry.entry not in left_out]
    check_there(taken, lake)
    info = _info(entries, left_out, _where(lake, path.parent))
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.stem + ".building" + path.suffix)
    leftovers = [aside, aside.with_name(aside.name + ".wal")]
    _remove(leftovers)
    try:
        if not _update(aside, old or path, taken, lake, info):
            _remove(leftovers)
            _build_anew(aside, taken, lake, info)
        aside.replace(path)
    except (duckdb.Error, OSError) as error:
        raise UserError(
            f"{path}: cannot build the catalog: {reason(error)}. The old one is "
            f"untouched. Check the disk space and the files under {lake}, run again."
        ) from error
    finally:
        _remove(leftovers)
    return info


def _where(lake: Lake, folder: Path) -> str:
    """How `storage.open_lake` finds the lake from the catalog's folder; both may move together."""
    if not isinstance(lake, Path):
        return str(lake)
    beside = lake.absolute().parent == folder.absolute()
    return lake.name if beside else str(lake.absolute())


def _info(entries: list[Entry], left_out: dict[str, str], lake: str) -> pl.DataFrame:
    built = datetime.now(UTC).isoformat(timespec="seconds")
    return pl.DataFrame(
        [
            {
                "entry": entry.entry,
                "study": entry.study,
                "rows": sum(file.rows for file in entry.tables.values()),
                "left_out": left_out.get(entry.entry),
                "fingerprint": None if entry.entry in left_out else fingerprint(entry),
                "lake": lake,
                "built": built,
            }
            for entry in entries
        ],
        schema=INFO.polars_schema,
    )


def fingerprint(entry: Entry) -> str:
    """A hash of the entry's content, wherever its files lie."""
    content = asdict(entry)
    for file in content["tables"].values():
        del file["path"]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _update(path: Path, old: Path, taken: list[Entry], lake: Lake, info: pl.DataFrame) -> bool:
    """Write `path` as a copy of the catalog `old` with what has changed; False if none fits."""
    if not old.is_file():
        return False
    shutil.copyfile(old, path)
    before = _held(path, lake)
    if before is None:
        return False
    held = dict(before.select("entry", "fingerprint").iter_rows())
    new = [entry for entry in taken if held.get(entry.entry) != fingerprint(entry)]
    kept = {entry.entry for entry in taken} - {entry.entry for entry in new}
    gone = before.filter(~pl.col("entry").is_in(kept))
    if 2 * gone["rows"].sum() > before["rows"].sum():
        return False  # a copy would be mostly holes
    check_files(new, lake)
    with _writing(path, lake) as connection:
        _write(connection, gone["entry"].to_list(), new, taken, lake, info)
    return True


def _held(path: Path, lake: Lake) -> pl.DataFrame | None:
    """What a catalog says that it holds; None if it is none, or of another version."""
    try:
        with _writing(path, lake) as connection:
            if _schema(connection) != _declared_schema():
                return None
            return connection.sql(f"FROM {INFO.name} WHERE fingerprint IS NOT NULL").pl()
    except duckdb.Error:
        return None


def _build_anew(path: Path, taken: list[Entry], lake: Lake, info: pl.DataFrame) -> None:
    check_files(taken, lake)
    with _writing(path, lake) as connection:
        for table in (*MATERIALISED, INFO):
            connection.execute(f"CREATE TABLE {table.name} ({declared(table)})")
            _comment(connection, table)
        _write(connection, [], taken, taken, lake, info)


def _writing(path: Path, lake: Lake) -> duckdb.DuckDBPyConnection:
    connection = open_worker(MEMORY, path)
    register(connection, lake)
    return connection


def _write(
    connection: duckdb.DuckDBPyConnection,
    gone: list[str],
    new: list[Entry],
    taken: list[Entry],
    lake: Lake,
    info: pl.DataFrame,
) -> None:
    """Take out the rows of the entries `gone`, put in those of the entries `new`."""
    for table in MATERIALISED:
        if table.name in SHARED:
            if gone:  # other entries may hold the same facts
                connection.execute(f"DELETE FROM {table.name}")
            _insert(connection, table, taken if gone else new, lake)
        elif table is not RUNS:
            if gone:
                values = {"gone": gone}
                connection.execute(f"DELETE FROM {table.name} WHERE run IN $gone", values)
            _insert(connection, table, new, lake)
    rows = [entry.run for entry in taken if entry.run]
    runs = pl.DataFrame(rows, schema=RUNS.polars_schema).sort(RUNS.order)
    for table, frame in ((RUNS, runs), (INFO, info)):
        connection.execute(f"DELETE FROM {table.name}")
        connection.register("frame", frame)
        connection.execute(f"INSERT INTO {table.name} FROM frame")
    connection.execute(MACROS)


def _insert(
    connection: duckdb.DuckDBPyConnection, table: Table, entries: list[Entry], lake: Lake
) -> None:
    """Add the rows that these entries have of a table; UserError if they are more or fewer."""
    files = [entry.tables[table.name] for entry in entries if table.name in entry.tables]
    if not files:
        return
    # Without a fixed order two threads write at once; where it says what came first, it stays.
    connection.execute(f"SET preserve_insertion_order = {table.name in MANY_ROWS_A_KEY}")
    names = {"files": [escape(locate(lake, file.path)) for file in files]}
    columns = quoted(table.names)
    # Logs of an older version may lack columns: they are null.
    read = "FROM read_parquet($files, union_by_name = true)"
    rows = f"SELECT {columns} FROM ((FROM {table.name} LIMIT 0) UNION ALL BY NAME {read})"
    if table.name in SHARED:
        found = connection.execute("SELECT count(*) FROM read_parquet($files)", names).fetchall()
        key = quoted(SHARED[table.name])
        both = f"FROM {table.name} UNION ALL {rows}"
        once = f"SELECT DISTINCT ON ({key}) {columns} FROM ({both}) ORDER BY ALL"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE once AS {once}", names)
        connection.execute(f"DELETE FROM {table.name}")
        connection.execute(f"INSERT INTO {table.name} FROM once")
    else:
        found = connection.execute(f"INSERT INTO {table.name} {rows}", names).fetchall()
    if found != [(listed := sum(file.rows for file in files),)]:
        raise UserError(
            f"{locate(lake, table.name)}: read {found[0][0]:,} rows of {len(files)} files, their "
            f"entries say {listed:,}. Do not change the lake while it is read; run again."
        )


def _schema(connection: duckdb.DuckDBPyConnection) -> set[tuple[str, str, str, str]]:
    """Table, column, type and comment of every column."""
    columns = "SELECT table_name, column_name, data_type, comment FROM duckdb_columns()"
    return set(connection.execute(f"{columns} WHERE NOT internal").fetchall())


def _declared_schema() -> set[tuple[str, str, str, str]]:
    return {
        (table.name, column.name, SQL_TYPE[column.type], _meaning(column))
        for table in (*MATERIALISED, INFO)
        for column in table.columns
    }


def _comment(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Keep grain and meaning in the database itself, for any schema browser."""
    connection.execute(f"COMMENT ON TABLE {table.name} IS {literal(table.grain)}")
    for column in table.columns:
        name = f"{table.name}.{quoted([column.name])}"
        connection.execute(f"COMMENT ON COLUMN {name} IS {literal(_meaning(column))}")


def _meaning(column: Column) -> str:
    return column.meaning + (f" [{column.unit}]" if column.unit else "")


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
