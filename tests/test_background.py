"""The processes that answer the dashboard's questions: whatever happens to one of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asked
import polars as pl
import psutil
import pytest
from lake_fixture import DemoResults

from analysis import background
from analysis.background import Processes, Question, Version
from analysis.errors import UserError
from app import data

HERE = str(Path(__file__).parent)
SOON = 20.0  # s; much longer than any of this takes


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", HERE)  # where `asked` is
        started = Processes(2)
        yield started
        started.end()


@pytest.fixture
def ask(processes: Processes, demo: DemoResults) -> Callable[..., Any]:
    def answer(function: Callable[..., Any], *arguments: Any, seconds: float = SOON) -> Any:
        question = Question(version(demo.catalog), function, arguments, ())
        return processes.ask(question, seconds, lambda passed: None).value

    return answer


def version(catalog: Path) -> Version:
    status = catalog.stat()
    return Version(catalog, status.st_ino, status.st_mtime_ns)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_one_process_answers_one_question_after_the_other(
    ask: Callable[..., Any], demo: DemoResults
) -> None:
    assert ask(asked.pid) == ask(asked.pid) != os.getpid()
    assert ask(asked.runs) == sorted(row["run"] for row in demo.rows["runs"])


def test_a_user_error_is_passed_on_and_the_process_stays(ask: Callable[..., Any]) -> None:
    before = ask(asked.pid)
    with pytest.raises(UserError, match=r"^no such thing$"):
        ask(asked.refuse)
    assert ask(asked.pid) == before


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (asked.stumble, "in stumble[\\s\\S]*ZeroDivisionError: a bug of ours"),
        (asked.stumble_stubbornly, "StubbornError: stubborn"),
        (asked.unsendable, "cannot pickle '_thread.lock'"),
    ],
)
def test_a_bug_is_shown_with_its_traceback(
    ask: Callable[..., Any], function: Callable[..., Any], words: str
) -> None:
    before = ask(asked.pid)
    with pytest.raises(RuntimeError, match=f"Traceback[\\s\\S]*{words}"):
        ask(function)
    assert ask(asked.pid) == before


def test_sql_that_is_wrong_is_a_bug_and_a_file_that_is_torn_is_not(
    ask: Callable[..., Any], processes: Processes, own: DemoResults
) -> None:
    with pytest.raises(RuntimeError, match="BinderException"):
        ask(asked.rows, "SELECT nonsense FROM runs")
    content = bytearray(own.catalog.read_bytes())
    content[3 * 4096 :] = bytes(len(content) - 3 * 4096)
    own.catalog.write_bytes(content)
    question = Question(version(own.catalog), asked.rows, ("SELECT * FROM trajectories",), ())
    with pytest.raises(UserError, match="exgrpo catalog"):
        processes.ask(question, SOON, lambda passed: None)


def test_a_process_that_ends_takes_its_question_only(ask: Callable[..., Any]) -> None:
    before = ask(asked.pid)
    with pytest.raises(UserError, match="the process of this question ended"):
        ask(asked.die)
    assert ask(asked.pid) != before


def test_a_free_process_that_was_killed_is_replaced_without_a_word(
    ask: Callable[..., Any],
) -> None:
    for _ in range(3):
        before = ask(asked.pid)
        os.kill(before, signal.SIGKILL)  # and asked at once, dead or not yet
        assert ask(asked.pid) != before


def test_a_lack_of_memory_is_told(ask: Callable[..., Any]) -> None:
    before = ask(asked.pid)
    with pytest.raises(UserError, match="out of memory"):
        ask(asked.swallow)
    assert ask(asked.pid) == before


def test_a_large_answer_comes_whole(ask: Callable[..., Any]) -> None:
    frame: pl.DataFrame = ask(asked.large, 2**26)
    assert frame["text"].str.len_bytes().item() == 2**26


@pytest.mark.parametrize("sql", [asked.ENDLESS, asked.STUBBORN])
def test_the_time_limit_holds_also_where_duckdb_does_not_look(
    ask: Callable[..., Any], sql: str
) -> None:
    before = ask(asked.pid)
    start = time.monotonic()
    with pytest.raises(UserError, match=r"time limit of 0\.3 s"):
        ask(asked.rows, sql, seconds=0.3)
    assert time.monotonic() - start < 2
    assert gone(before)


class GivenUp(BaseException):
    """As Streamlit ends a script."""


def test_whoever_waits_can_give_up(processes: Processes, demo: DemoResults) -> None:
    told: list[float] = []

    def waiting(seconds: float) -> None:
        told.append(seconds)
        if len(told) == 3:
            raise GivenUp

    question = Question(version(demo.catalog), asked.rows, (asked.STUBBORN,), ())
    start = time.monotonic()
    with pytest.raises(GivenUp):
        processes.ask(question, SOON, waiting)
    assert time.monotonic() - start < 2
    assert told == sorted(told) and 0.1 <= told[0] < 1


def test_questions_beyond_the_processes_wait_their_turn(
    processes: Processes, demo: DemoResults
) -> None:
    found: list[int] = []

    def one(number: int) -> None:
        question = Question(version(demo.catalog), asked.echo, (number,), ())
        found.append(processes.ask(question, SOON, lambda passed: None).value)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert sorted(found) == list(range(12))


def test_waiting_for_ones_turn_can_be_given_up_and_costs_no_time(demo: DemoResults) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", HERE)
        single = Processes(1)
    known = version(demo.catalog)
    single.ask(Question(known, asked.pid, (), ()), SOON, lambda passed: None)
    first = threading.Thread(
        target=single.ask,
        args=(Question(known, asked.wait, (1.0,), ()), SOON, lambda passed: None),
    )
    first.start()
    until(lambda: not single._free)

    def no(passed: float) -> None:
        raise GivenUp

    with pytest.raises(GivenUp):
        single.ask(Question(known, asked.pid, (), ()), SOON, no)
    # Longer in the queue than its own limit: that counts from its turn.
    assert single.ask(Question(known, asked.echo, (7,), ()), 0.5, lambda passed: None).value == 7
    first.join()
    single.end()


def test_a_catalog_that_was_replaced_is_opened_anew(
    processes: Processes, own: DemoResults, golden_path: Path
) -> None:
    def runs() -> list[str]:
        question = Question(version(own.catalog), asked.runs, (), ())
        found: list[str] = processes.ask(question, SOON, lambda passed: None).value
        return found

    before = runs()
    new = own.catalog.with_suffix(".new")
    new.write_bytes(golden_path.read_bytes())

    def replace(seconds: float) -> None:
        if new.exists():
            new.replace(own.catalog)

    slow = Question(version(own.catalog), asked.wait, (0.3,), ())
    assert processes.ask(slow, SOON, replace).value == 0.3  # replaced meanwhile: no harm
    assert not new.exists() and runs() != before


def test_a_catalog_that_vanished_is_told(
    processes: Processes, own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = version(own.catalog)
    own.catalog.unlink()
    with pytest.raises(UserError, match="there is no catalog yet"):
        processes.ask(Question(known, asked.runs, (), ()), SOON, lambda passed: None)
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    with pytest.raises(UserError, match="the catalog is not there any more"):
        data.answer("runs_overview")


def test_two_hundred_questions_leave_no_open_files(ask: Callable[..., Any]) -> None:
    ask(asked.pid)
    before = psutil.Process().num_fds()
    child = psutil.Process(ask(asked.pid))
    theirs = child.num_fds()
    for number in range(200):
        assert ask(asked.echo, number) == number
    assert child.num_fds() == theirs
    for _ in range(5):
        with pytest.raises(UserError):
            ask(asked.die)
    assert psutil.Process().num_fds() == before


PARENT = """
import sys
from pathlib import Path
import asked
from analysis.background import Processes, Question, Version
catalog = Path(sys.argv[1])
status = catalog.stat()
known = Version(catalog, status.st_ino, status.st_mtime_ns)
processes = Processes(2)
print(processes.ask(Question(known, asked.pid, (), ()), 60, print).value, flush=True)
if sys.argv[2]:
    processes.ask(Question(known, asked.rows, (sys.argv[2],), ()), 600, lambda passed: None)
sys.stdin.read()
"""


@pytest.mark.parametrize("sql", ["", asked.STUBBORN], ids=["idle", "within a question"])
def test_a_process_ends_with_the_one_that_asks(demo: DemoResults, sql: str) -> None:
    paths = os.pathsep.join([HERE, str(background.ROOT)])
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(demo.catalog), sql],
        env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None and parent.stdin is not None
    lines = iter(parent.stdout.readline, "")
    child = next(int(line) for line in lines if line.strip().isdigit())
    if sql:  # until it is at work
        before = psutil.Process(child).cpu_times().user
        until(lambda: psutil.Process(child).cpu_times().user > before + 0.2)
    parent.kill()
    parent.wait()
    until(lambda: gone(child))


def test_answers_of_one_catalog_are_kept_by_what_was_asked(
    monkeypatch: pytest.MonkeyPatch, own: DemoResults
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    monkeypatch.setenv("PYTHONPATH", HERE)
    data._processes.clear()  # also ends those that know nothing of `asked`
    first = data.ask_catalog(asked.pid)
    os.kill(first, signal.SIGKILL)
    assert data.ask_catalog(asked.pid) == first  # not asked again
    assert data.ask_catalog(asked.echo, 1, more=[2]) == (1, {"more": (2,)})
    os.utime(own.catalog)
    assert data.ask_catalog(asked.pid) != first
    free = [process._child for process in data._processes(False)._free if process._child]
    data._processes.clear()
    assert free and all(child.returncode is not None for child in free)
