"""The only place of the app that asks the catalog, and keeps what it answers.

Questions run in processes of their own (`analysis.background`): a page says how long one runs and
can give it up. Answers are kept by the catalog file's inode and modification time: the catalog is
replaced as a whole, so a new file is a new world.
"""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import streamlit as st
from cachetools import LRUCache

from analysis import browse, lookups, queries
from analysis.background import Answered, Processes, Question, Version
from analysis.catalog import TIME_LIMIT
from analysis.errors import UserError
from analysis.stage_outputs import StageOutputs, read_stage_outputs
from app.components.waiting import waiting

MOST_KEPT = 256 * 2**20  # bytes of answers
MOST_TYPED = 2  # processes for SQL that is typed
SMALL = 2**14  # bytes that an answer counts at least


def results() -> Path:
    """The results folder: `EXGRPO_RESULTS`, else `results` where the app was started."""
    return Path(os.environ.get("EXGRPO_RESULTS", "results"))


def catalog() -> Path:
    """Where the catalog is, or would be."""
    return (results() / "workbench.duckdb").resolve()


def require_catalog() -> None:
    """Stop the page, saying which command to run, when there is no catalog yet."""
    if not catalog().is_file():
        st.info(
            f"There is no catalog at `{catalog()}` yet. Run `make reproduce` for the default "
            "study, or `exgrpo import FILE` for model outputs of your own; then reload this page. "
            "`make demo` shows every screen over a small sample."
        )
        st.stop()


def answer(name: str, **parameters: Any) -> pl.DataFrame:
    """All rows of a named query. Raises UserError."""
    rows: pl.DataFrame = ask_catalog(queries.answer, name, **parameters)
    return rows


def ask(sql: str, limit: int, seconds: float | None = None) -> queries.Answer:
    """The answer to typed SQL. Raises UserError."""
    found: queries.Answer = ask_catalog(queries.ask, sql, limit, seconds=seconds, typed=True)
    return found


def ask_named(
    name: str, parameters: Mapping[str, Any], limit: int, seconds: float | None = None
) -> queries.Answer:
    """The first rows of a named query whose parameters were typed. Raises UserError."""
    found: queries.Answer = ask_catalog(
        queries.ask_named, name, _given(parameters), limit, seconds=seconds, typed=True
    )
    return found


def plan(sql: str) -> str:
    """How DuckDB would answer typed SQL. Raises UserError."""
    found: str = ask_catalog(queries.explain_plan, sql)
    return found


def plan_named(name: str, parameters: Mapping[str, Any]) -> str:
    """How DuckDB would answer a named query. Raises UserError."""
    found: str = ask_catalog(queries.explain_named, name, _given(parameters))
    return found


def page(filters: browse.Filters, page: int, size: int, **named: Any) -> browse.Page:
    """Page number `page`, from 1, of the filtered trajectories: no other row is loaded.

    `named`: what else `browse.page` takes.
    """
    found: browse.Page = ask_catalog(browse.page, filters, (page - 1) * size, size, **named)
    return found


def trajectory(id: str) -> dict[str, Any] | None:
    """A whole trajectory with its question; None when the catalog does not hold it."""
    rows = ask_catalog(browse.trajectory, id)
    return None if rows.is_empty() else rows.row(0, named=True)


def tokens(run: str, trajectory: str) -> pl.DataFrame:
    """The tokens of a trajectory, as `analysis.tokens.read_tokens` gives them."""
    found: pl.DataFrame = ask_catalog(lookups.tokens, catalog().parent, run, trajectory)
    return found


def schema() -> pl.DataFrame:
    """One row a column of the catalog, see `lookups.schema`."""
    found: pl.DataFrame = ask_catalog(lookups.schema)
    return found


def stage_outputs(study: str) -> StageOutputs | None:
    """What the analysis of a study left; None when there is none. Small files: read each time."""
    return read_stage_outputs(results(), study)


def ask_catalog(
    function: Callable[..., Any],
    *arguments: Any,
    seconds: float | None = None,
    typed: bool = False,
    **named: Any,
) -> Any:
    """What `function(connection, *arguments, **named)` returns, kept for the next time.

    It must be a function of a module, its arguments hashable: it runs in another process. The page
    says so when it takes long, and whoever reads can give it up: the page then ends here. So it is
    neither for callbacks nor for the inside of a form. What was typed has processes of its own:
    slow SQL keeps no screen waiting. Raises UserError when the function does, and
    after `seconds`, or TIME_LIMIT.
    """
    question = Question(_version(), function, arguments, _given(named))
    kept = _kept()
    if (known := kept.get(question)) is not None:
        return known.value
    with waiting(question) as told:
        found = _processes(typed).ask(question, seconds or TIME_LIMIT, told)
    kept.put(question, found)
    return found.value


def _given(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, _fixed(value)) for name, value in parameters.items()))


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class _Kept:
    """The answers that were asked for last, for all sessions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: LRUCache[Question, Answered] = LRUCache(MOST_KEPT, getsizeof=_size)

    def get(self, question: Question) -> Answered | None:
        with self._lock:
            return self._answers.get(question)

    def put(self, question: Question, answer: Answered) -> None:
        with self._lock:
            if _size(answer) <= MOST_KEPT:
                self._answers[question] = answer


def _size(answer: Answered) -> int:
    return max(SMALL, answer.bytes)


@st.cache_resource(show_spinner=False)
def _kept() -> _Kept:
    return _Kept()


@st.cache_resource(show_spinner=False, on_release=Processes.end)
def _processes(typed: bool) -> Processes:
    return Processes(MOST_TYPED) if typed else Processes()


def _version() -> Version:
    """The catalog of this moment. Raises UserError when it has gone since the page began."""
    try:
        status = catalog().stat()
    except OSError as error:
        raise UserError(
            f"{catalog()}: the catalog is not there any more ({error.strerror}). When it has been "
            "built again, reload this page."
        ) from error
    return Version(catalog(), status.st_ino, status.st_mtime_ns)
