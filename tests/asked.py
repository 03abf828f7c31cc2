"""Questions to the processes of `analysis.background` that go wrong, one way each."""

import os
import signal
import threading
import time
from typing import Any

import duckdb
import polars as pl

from analysis.errors import UserError

# One value that takes minutes: DuckDB does not look at the time while it makes it.
STUBBORN = "SELECT damerau_levenshtein(repeat('ab', 20000), repeat('ba', 20000))"
ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(1000000) b"


def pid(connection: duckdb.DuckDBPyConnection) -> int:
    return os.getpid()


def echo(connection: duckdb.DuckDBPyConnection, value: Any, **named: Any) -> Any:
    return (value, named) if named else value


def runs(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [run for (run,) in connection.sql("SELECT run FROM runs ORDER BY run").fetchall()]


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    return connection.sql(sql).pl()


def large(connection: duckdb.DuckDBPyConnection, size: int) -> pl.DataFrame:
    return pl.DataFrame({"text": ["x" * size]})


def refuse(connection: duckdb.DuckDBPyConnection) -> None:
    raise UserError("no such thing")


def stumble(connection: duckdb.DuckDBPyConnection) -> None:
    raise ZeroDivisionError("a bug of ours")


class StubbornError(Exception):
    """It cannot be pickled: its arguments are not those that it was made of."""

    def __init__(self, one: int, other: object) -> None:
        super().__init__("stubborn")
        self.other = other


def stumble_stubbornly(connection: duckdb.DuckDBPyConnection) -> None:
    raise StubbornError(1, threading.Lock())


def unsendable(connection: duckdb.DuckDBPyConnection) -> object:
    return threading.Lock()


def die(connection: duckdb.DuckDBPyConnection) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def swallow(connection: duckdb.DuckDBPyConnection) -> int:
    return len(bytearray(10 * 2**30))


def wait(connection: duckdb.DuckDBPyConnection, seconds: float) -> float:
    time.sleep(seconds)
    return seconds
