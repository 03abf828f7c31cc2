"""Second half of an import: the staged rows become the parts of a log, as a run writes them.

DuckDB works out which rows are a group (a question in a step, in the order of the log), k of K,
bucket and difficulty, within `MEMORY` and with a spill folder beyond it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import duckdb

from analysis.sql_types import cast, literal, quoted
from analysis.worker import open_worker
from exgrpo.batch import Outcome
from exgrpo.errors import UserError
from exgrpo.records import Recorder
from exgrpo.tables import TABLES
from pipeline.imports.rows import LISTS, OWN, Source

MEMORY = "512MiB"
ROW_GROUP = 2048  # DuckDB's least: rows may be long

PLACES = """
create table places as
with keyed as (
    select row, step, question, group_key, correct,
        min(row) over same as first,
        row_number() over (same order by row) - 1 as slot
    from staged
    window same as (partition by step, question, group_key)
)
select row, step, question, slot,
    dense_rank() over (partition by step order by first) - 1 as "group",
    count(*) filter (correct) over (partition by first) as k,
    count(correct) over (partition by first) as size
from keyed
"""

TRAJECTORY = "concat({run}, ':', places.step, ':', places.\"group\", ':', places.slot)"

# SQL for the rows of each table; {run} and {name} are literals, {own} the columns of the log.
ROWS = {
    "questions": """
        select staged.question, {source} as source, {name} as split, text, prompt, first.gold,
            first.level
        from staged join (
            select min(row) as row, arg_min(gold, row) as gold, arg_min(level, row) as level
            from staged group by question
        ) as first using (row)
    """,
    "trajectories": """
        select {trajectory} as trajectory, {run} as run, "group", slot, {own},
            false as experiential, false as replayed, staged.step as birth_step,
            k as group_successes, size as group_size, bucket, difficulty
        from staged join places using (row) join outcomes using (k, size)
    """,
    "tokens": """
        select {trajectory} as trajectory, {run} as run, staged.step, "group", slot, {lists}
        from staged join places using (row) where token_ids is not null
    """,
    "judgements": """
        select {run} as run, {trajectory} as trajectory, judge, version, valid, '' as reason
        from (
            select row, 'recorded' as judge, {source} as version, recorded as valid
            from staged where recorded is not null
            union all
            select row, 'workbench', {grader}, ours from staged where ours is not null
        ) join places using (row)
    """,
    "steps": """
        with rewarded as (
            select staged.step, "group", coalesce(score, correct::int) as reward,
                correct, k, size, length, summed_entropy, advantage
            from staged join places using (row)
        ), groups as (
            select step, "group", any_value(k) as k, any_value(size) as size,
                min(reward) <> max(reward) as signal,
                count(advantage) > 0 as known, bool_or(advantage <> 0) as updated
            from rewarded group by step, "group"
        ), totals as (
            select step, avg(reward) as reward, count(*) - count(correct) as ungraded,
                sum(summed_entropy) / sum(length) filter (summed_entropy is not null) as entropy,
                avg(length) as length,
                sum(length)::bigint as sampled_tokens
            from rewarded group by step
        )
        select {run} as run, step, any_value(reward) as reward, count(*) as groups,
            count(*) filter (signal) as signal_groups,
            case when bool_and(known) then count(*) filter (updated) end as updated_groups,
            count(*) filter (0 < size and k = size) as solved_groups,
            count(*) filter (0 < size and k = 0) as failed_groups,
            any_value(ungraded) as ungraded, any_value(entropy) as entropy,
            any_value(length) as length, any_value(sampled_tokens) as sampled_tokens
        from groups join totals using (step) group by step
    """,
}


@contextmanager
def staged_rows(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the view `staged` and the tables `places` and `outcomes` of its groups.

    UserError when DuckDB fails within, as on a full disk.
    """
    spill = str(file.with_name("spill"))
    try:
        with open_worker(
            MEMORY, temp_directory=spill, preserve_insertion_order=False
        ) as connection:
            _group(connection, file)
            yield connection
    except duckdb.Error as error:
        raise UserError(
            f"{file.parent}: cannot group what was read: {error}. Free disk space if it is full, "
            f"run again."
        ) from error


def _group(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    connection.execute(f"create view staged as from read_parquet({literal(escape(str(file)))})")
    connection.execute(PLACES)
    connection.execute(
        "create table outcomes (k bigint, size bigint, bucket bigint, difficulty text)"
    )
    for k, size in connection.execute("select distinct k, size from places").fetchall():
        outcome = Outcome(k, size)
        row = [k, size, outcome.bucket, outcome.difficulty]
        connection.execute("insert into outcomes values (?, ?, ?, ?)", row)


def check_golds(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """UserError when rows give the same question different golds: our grade would have no sense."""
    clashes = connection.execute(
        """
        with first as (select question, min(row) as row from staged group by question)
        select staged.place, staged.gold, other.place, other.gold
        from staged join first using (question) join staged as other on other.row = first.row
        where staged.gold <> other.gold order by staged.row limit 10
        """
    ).fetchall()
    if clashes:
        listed = "\n".join(
            f"  {place}: gold {gold!r}, but {first} gives the same question the gold {other!r}."
            for place, gold, first, other in clashes
        )
        raise UserError(
            f"{path}: nothing was imported: make the golds agree, or remove rows:\n{listed}"
        )


def write_log(
    connection: duckdb.DuckDBPyConnection, log: Path, run: str, source: Source, grader: str
) -> None:
    """Write the parts of every table that has rows. grader: the version of ours."""
    first, last = connection.execute("select min(step), max(step) from places").fetchall()[0]
    recorder = Recorder(log)
    values = {
        "run": literal(run),
        "name": literal(run.removeprefix("import-")),
        "source": literal(source.path.name),
        "grader": literal(grader),
        "own": ", ".join(f"staged.{quoted([column.name])}" for column in OWN),
        "lists": quoted([column.name for column in LISTS]),
        "trajectory": TRAJECTORY.format(run=literal(run)),
    }
    for table, rows in ROWS.items():
        if table == "steps" and source.kind:
            continue  # a file of model outputs is no training
        part = log.with_name(f"{table}.parquet")
        if count := _copy(connection, table, rows.format(**values), part):
            recorder.adopt(table, part, count, first, last)
        else:
            part.unlink()


def _copy(connection: duckdb.DuckDBPyConnection, table: str, rows: str, part: Path) -> int:
    """Write rows as Parquet with the declared types; how many they are."""
    chosen = cast(TABLES[table], connection.sql(rows).columns)
    statement = (
        f"copy (select {chosen} from ({rows})) to {literal(str(part))} "
        f"(format parquet, compression zstd, row_group_size {ROW_GROUP}, use_tmp_file false)"
    )
    return int(connection.execute(statement).fetchall()[0][0])
