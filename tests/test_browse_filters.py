"""Every filter against plain Python over made-up rows, and ids of samples."""

import math
import string
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import browse
from analysis.browse_filters import TABLES, Filters, Source, active, filters_of, fitting, without
from analysis.catalog_build import MACROS, MATERIALISED
from analysis.errors import UserError
from analysis.sample_id import SampleKey, sample_key
from analysis.snippet import CLOSE, OPEN
from analysis.sql_types import declared
from exgrpo.tables.schema import BOOL, FLOAT, INT

Row = dict[str, Any]

NAMES = ("a", "b:c", "it's")  # of runs, arms, studies, questions, benchmarks and finish reasons
FEW: dict[Any, tuple[Any, ...]] = {
    INT: (0, 1, 2, 3, None),
    FLOAT: (0.0, 0.5, 1.25, math.nan, math.inf, None),
    BOOL: (True, False, None),
}
RESPONSES = ("Six \n7", "17 is 7", "seven", "%_", "(7)", "", "⟦É⟧", None)


def values(name: str, type_: Any) -> st.SearchStrategy[Any]:
    if name in ("run", "question"):
        return st.sampled_from(NAMES)
    if name == "benchmark":
        return st.sampled_from((*NAMES, "test_ood", "validation"))
    if name == "domain":
        return st.sampled_from(("in", "out", None))
    if name == "step":
        return st.integers(0, 3)
    texts = RESPONSES if name == "response" else (*NAMES, None)
    return st.sampled_from(FEW.get(type_, texts))


def rows(source: Source) -> st.SearchStrategy[list[Row]]:
    columns = {column.name: column.type for column in TABLES[source].columns}
    row = st.fixed_dictionaries({name: values(name, type_) for name, type_ in columns.items()})
    return st.lists(row, max_size=25)


def some(*values: Any) -> st.SearchStrategy[Any]:
    """A value in half of the cases, else none."""
    return st.none() | st.sampled_from(values)


def several(*values: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.just(()) | st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple)


ONES = {
    "study": some(*NAMES),
    "arms": several(*NAMES),
    "seeds": several(0, 1, 2),
    "run": some(*NAMES, "nobody"),
    "benchmark": some(*NAMES),
    "domain": some("in", "out"),
    "step_min": some(0, 1, 2),
    "step_max": some(0, 1, 3),
    "level": several(1, 2),
    "bucket": several(0, 3),
    "bucket_drawn": several(1, 2),
    "replayed": some(True, False),
    "correct": some(True, False),
    "ungraded": st.booleans(),
    "chain_valid": some(True, False),
    "finish": some(*NAMES),
    "markers": several("code", "shortcut", "repetition", "step_errors"),
    "length_min": some(0, 2),
    "length_max": some(0, 2),
    "age_min": some(-1, 0, 1),
    "age_max": some(-1, 0, 1),
    "entropy_min": some(0.0, 0.5),
    "entropy_max": some(0.5, 2.0),
    "question": some(*NAMES),
    "text": some("7", "SEVEN", "%", "(7)", "é", ""),
}
RUN_ROWS = {
    "a": {"study": "a", "arm": "a", "seed": 0},
    "b:c": {"study": "a", "arm": "b:c", "seed": 1},
    "it's": {"study": "b:c", "arm": "it's", "seed": None},
}


def passes(row: Row, name: str, value: Any) -> bool:
    """Whether a row passes one filter: the definition, in Python."""
    run = RUN_ROWS[row["run"]]
    age = None if row.get("birth_step") is None else row["step"] - row["birth_step"]
    ranged = {"step": row["step"], "length": row["length"], "age": age}
    ranged["entropy"] = row["mean_entropy"]
    base, _, end = name.rpartition("_")
    if base in ranged and end in ("min", "max"):
        number = ranged[base]
        if number is None or not math.isfinite(number):
            return False
        return number >= value if end == "min" else number <= value
    if name == "study":
        return run["study"] == value
    if name == "domain" and row["benchmark"] == "validation":
        return False
    if name == "domain" and row["domain"] is None:
        return value == ("out" if row["benchmark"] == "test_ood" else "in")
    if name in ("arms", "seeds"):
        return run[name[:-1]] in value
    if name == "bucket":
        return row["group_successes"] in value
    if name in ("level", "bucket_drawn"):
        return row[name] in value
    if name == "ungraded":
        return row["correct"] is None
    if name == "markers":
        return all((row[marker] or 0) > 0 for marker in value)
    if name == "text":
        return row["response"] is not None and value.lower() in row["response"].lower()
    return row[name] is not None and row[name] == value


@pytest.fixture(scope="module")
def made() -> Any:
    """A catalog of the tables that are browsed, without rows but with the runs."""
    with duckdb.connect() as connection:
        for table in MATERIALISED:
            connection.execute(f"CREATE TABLE {table.name} ({declared(table)})")
        connection.execute(MACROS)
        for run, row in RUN_ROWS.items():
            connection.execute(
                "INSERT INTO runs (run, study, arm, seed) VALUES (?, ?, ?, ?)", [run, *row.values()]
            )
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, source: Source, rows: list[Row]) -> None:
    table = TABLES[source]
    connection.execute(f"DELETE FROM {table.name}")
    if rows:
        frame = pl.DataFrame(rows, schema=table.polars_schema)
        connection.register("made_rows", frame)
        connection.execute(f"INSERT INTO {table.name} FROM made_rows")
        connection.unregister("made_rows")


@pytest.mark.parametrize("source", TABLES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_found_are_those_that_pass_every_filter(
    made: duckdb.DuckDBPyConnection, source: Source, data: st.DataObject
) -> None:
    lines = data.draw(rows(source))
    place = "slot" if source == "training" else "sample"
    for number, line in enumerate(lines):
        line[place] = number
    fill(made, source, lines)
    names = data.draw(st.lists(st.sampled_from(filters_of(source)), max_size=4, unique=True))
    chosen = {name: data.draw(ONES[name]) for name in names}
    filters = Filters(source=source, **chosen)
    off = {"ungraded": False}
    on = {n: v for n, v in chosen.items() if v not in (None, (), "") and off.get(n) is not v}
    assert set(active(filters)) == on.keys()
    found = browse.page(made, filters, 0, 1000, columns=(place,))
    expected = [line for line in lines if all(passes(line, *item) for item in on.items())]
    assert sorted(found.frame[place]) == sorted(line[place] for line in expected)
    assert found.total == len(expected)


def test_a_table_has_the_filters_whose_columns_it_has() -> None:
    training, evaluation = set(filters_of("training")), set(filters_of("evaluation"))
    buckets = {"bucket", "bucket_drawn"}
    assert training - evaluation == {*buckets, "replayed", "markers", "age_min", "age_max"}
    assert evaluation - training == {"benchmark", "domain"}
    assert training | evaluation == set(ONES)
    asked = Filters(source="evaluation", bucket=(1,), replayed=False, arms=("a",), text="x")
    assert fitting(asked) == Filters(source="evaluation", arms=("a",), text="x")
    assert without(asked, *active(asked)) == Filters(
        source="evaluation", bucket=(1,), replayed=False
    )


@pytest.mark.parametrize(
    ("text", "regex", "response", "shown"),
    [
        ("B", False, "abc", f"a{OPEN}b{CLOSE}c"),
        ("7", False, "x 7 7", f"x {OPEN}7{CLOSE} 7"),
        (r"\b7\b", True, "17 7", f"17 {OPEN}7{CLOSE}"),
        ("(a)(b)|(c)", True, "xcab", f"x{OPEN}c{CLOSE}ab"),
        ("^B", True, "bb", f"{OPEN}b{CLOSE}b"),
        ("a.c", True, "a\nc abc", f"a c {OPEN}abc{CLOSE}"),
        ("z*", True, "abc", "abc"),
        ("x", False, "a" * 500 + "x" + "b" * 500, f"…{'a' * 20}{OPEN}x{CLOSE}{'b' * 99}…"),
        ("x+", True, "x" * 500, f"{OPEN}{'x' * 120}{CLOSE}"),
        (None, False, "a\n  b" + "c" * 500, "a b" + "c" * 115),
    ],
)
def test_the_preview_is_the_surroundings_of_the_first_hit(
    made: duckdb.DuckDBPyConnection, text: str | None, regex: bool, response: str, shown: str
) -> None:
    line: Row = {column.name: None for column in TABLES["evaluation"].columns}
    line |= {"run": "a", "step": 0, "sample": 0, "benchmark": "b", "question": "q"}
    fill(made, "evaluation", [line | {"response": response}])
    filters = Filters(source="evaluation", text=text, regex=regex)
    frame = browse.page(made, filters, 0, 1, columns=("preview",)).frame
    assert frame["preview"].to_list() == [shown]


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", "*", r"(?<=a)b", "a)|(b", "\\"])
def test_a_pattern_that_is_none_is_refused_in_a_sentence(
    made: duckdb.DuckDBPyConnection, pattern: str
) -> None:
    for source in TABLES:
        with pytest.raises(UserError, match="is no regular expression"):
            browse.page(made, Filters(source=source, text=pattern, regex=True), 0, 5)


@pytest.mark.parametrize("column", ['r"; DROP TABLE runs; --', "nosuch", "", "slot"])
def test_a_column_that_is_none_is_refused(made: duckdb.DuckDBPyConnection, column: str) -> None:
    with pytest.raises(UserError, match="cannot show the column"):
        browse.page(made, Filters(source="evaluation"), 0, 5, columns=(column,))
    with pytest.raises(UserError, match="cannot sort by"):  # o49
        browse.page(made, Filters(source="evaluation", sort=column), 0, 5)


# --- samples ---

KEYS = st.builds(
    SampleKey, st.text(), st.integers(0, 2**40), st.text(), st.text(), st.integers(0, 99)
)


@given(key=KEYS)
def test_an_id_is_read_in_one_way(key: SampleKey) -> None:
    try:
        key.id.encode()
    except UnicodeEncodeError:
        return
    assert sample_key(key.id) == key
    assert key.id.count(":") == 4


@given(text=st.text(alphabet=string.printable + "é%:"))
def test_any_other_text_is_no_id(text: str) -> None:
    key = sample_key(text)
    assert key is None or key.id == text


def test_ids_of_samples_are_made_by_sql_as_in_python(made: duckdb.DuckDBPyConnection) -> None:
    keys = [
        SampleKey(run, step, benchmark, question, sample)
        for step, (run, benchmark, question) in enumerate(
            [("a", "test:1/é", "q 1"), ("b:c", "%3A", "😀"), ("it's", "a+b~_.-", "'; DROP")]
        )
        for sample in (0, 11)
    ]
    empty = dict.fromkeys(TABLES["evaluation"].names)
    fill(made, "evaluation", [empty | key._asdict() | {"response": "r"} for key in keys])
    filters = Filters(source="evaluation")
    found = browse.page(made, filters, 0, 100).frame
    assert found["trajectory"].to_list() == [key.id for key in keys]
    starred = (keys[3].id, "run:1:0:0", "", keys[0].id)
    only = browse.page(made, filters, 0, 100, ids=starred)
    assert only.frame["trajectory"].to_list() == [keys[0].id, keys[3].id]
    assert only.total == 2
    assert browse.page(made, filters, 0, 100, ids=()).total == 0
