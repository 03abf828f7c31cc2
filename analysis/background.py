"""Questions to the catalog in processes of their own: whoever asks can wait, or give up.

DuckDB looks at its limits between rows, so that one value can take minutes. A process can be ended
at any moment, and takes nothing with it when it runs out of memory.
"""

import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple
from uuid import uuid4

import duckdb

from analysis.catalog import open_catalog
from analysis.errors import UserError, reason
from analysis.limits import limit_memory

ROOT = Path(__file__).resolve().parents[1]
MOST = 3  # processes: more would only wait for the processor
STEP = 0.1  # s between two looks
LONGEST = 3600.0  # s; whoever asks gives up earlier
BEGUN = b"begun"  # a child that ends after it has said so was ended by its question
FEWER = "Ask for fewer rows: filter by run or step."
UNREADABLE = (  # what DuckDB says of a file or of itself, not of the SQL
    duckdb.OperationalError,
    duckdb.InternalError,
    duckdb.FatalException,
    duckdb.InterruptException,
)


class Version(NamedTuple):
    """Which catalog: two with the same values hold the same rows."""

    path: Path
    inode: int
    changed: int


@dataclass(frozen=True)
class Question:
    """`function(connection, *arguments, **named)`, a function of a module, and a catalog."""

    catalog: Version
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]


class Answered(NamedTuple):
    """What the function returned, and how many bytes that is."""

    value: Any
    bytes: int


class Process:
    """A Python process that answers one question after the other. It starts when needed."""

    def __init__(self) -> None:
        self.pipe: Connection
        self._spill = Path(gettempdir()) / f"exgrpo-spill-{uuid4().hex}"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, or start anew."""
        self.end()
        self.pipe, theirs = Pipe()
        paths = (str(ROOT), os.environ.get("PYTHONPATH"))
        self._child = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "analysis.background"),
                *(str(theirs.fileno()), str(self._spill)),
            ],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)},
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the server, which then ends this one
        )
        theirs.close()

    def ask(self, question: Question, look: Callable[[], None]) -> bytes:
        """The reply; `look` is called ten times a second meanwhile. EOFError when the child ends.

        A child that ended while it was free is replaced, and the new one asked.
        """
        try:
            self._send(question, look)
        except (EOFError, ConnectionError):
            self.start()
            self._send(question, look)
        return self._receive(look)

    def _send(self, question: Question, look: Callable[[], None]) -> None:
        """Return when the child has begun."""
        if self._child is None:
            raise ConnectionError
        self.pipe.send(question)
        self._receive(look)

    def _receive(self, look: Callable[[], None]) -> bytes:
        while not self.pipe.poll(STEP):
            look()
        return self.pipe.recv_bytes()

    def end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self.pipe.close()
            self._child = None
            shutil.rmtree(self._spill, ignore_errors=True)  # a child that is killed leaves it


class Processes:
    """The processes of one dashboard, at most `most`; a question takes one that is free."""

    def __init__(self, most: int = MOST) -> None:
        self._turn = threading.Condition()
        self._free = [Process() for _ in range(most)]
        self._free[-1].start()  # ready before it is asked

    def ask(self, question: Question, seconds: float, waiting: Callable[[float], None]) -> Answered:
        """The answer, in at most `seconds` once it is this question's turn.

        `waiting` is told ten times a second for how many seconds; what it raises ends the question
        at once, and goes on. Raises UserError when the question does, when the time is over, and
        when its process ends; RuntimeError with the traceback when the function has a bug.
        """
        start = time.monotonic()
        process = self._take(lambda: waiting(time.monotonic() - start))
        begun = time.monotonic()

        def look() -> None:
            now = time.monotonic()
            if now - begun > seconds:
                raise UserError(f"stopped at the time limit of {seconds:g} s. {FEWER}")
            waiting(now - start)

        try:
            reply = process.ask(question, look)
            error, value = pickle.loads(reply)
        except (EOFError, OSError) as lost:
            process.start()
            raise UserError(
                "the process of this question ended, most likely for want of memory; the terminal "
                f"of the dashboard may say more. {FEWER}"
            ) from lost
        except BaseException:
            process.start()
            raise
        finally:
            self._give_back(process)
        if error is not None:
            raise error
        return Answered(value, len(reply))

    def end(self) -> None:
        """End the processes that no question holds."""
        with self._turn:
            for process in self._free:
                process.end()

    def _take(self, waiting: Callable[[], None]) -> Process:
        while True:
            with self._turn:
                if not self._free:
                    self._turn.wait(STEP)
                if self._free:
                    return self._free.pop()
            waiting()

    def _give_back(self, process: Process) -> None:
        with self._turn:
            self._free.append(process)  # the next question takes it first: it is warm
            self._turn.notify()


def main(descriptor: int, spill: Path) -> None:
    """Answer questions until whoever asks is gone."""
    limit_memory()
    _end_first()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    pipe = Connection(descriptor)
    opened: dict[Version, duckdb.DuckDBPyConnection] = {}
    with suppress(EOFError, ConnectionError):
        while True:
            message = pipe.recv_bytes()
            pipe.send_bytes(BEGUN)
            pipe.send_bytes(_reply(message, opened, spill))


def _reply(message: bytes, opened: dict[Version, duckdb.DuckDBPyConnection], spill: Path) -> bytes:
    """An error or None, and the answer. `opened` holds the catalog that was asked last."""
    try:
        question: Question = pickle.loads(message)
        if question.catalog not in opened:
            _close(opened)
            opened[question.catalog] = open_catalog(question.catalog.path, LONGEST, spill)
        with opened[question.catalog].cursor() as cursor:
            answer = question.function(cursor, *question.arguments, **dict(question.named))
        return pickle.dumps((None, answer), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        _close(opened)  # a fatal error spoils the connection
        return pickle.dumps((_told(error), None))


def _close(opened: dict[Version, duckdb.DuckDBPyConnection]) -> None:
    for connection in opened.values():
        connection.close()
    opened.clear()


def _told(error: Exception) -> Exception:
    """What whoever asked is told: the reader's to mend, or a bug with its traceback."""
    if isinstance(error, UserError):
        return UserError(str(error))
    if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
        return UserError(f"out of memory. {FEWER}")
    if isinstance(error, UNREADABLE):
        return UserError(
            f"the catalog cannot be read: {reason(error)}. Build it again with `exgrpo catalog`."
        )
    return RuntimeError("a question failed in its process:\n" + traceback.format_exc())


def _end_first() -> None:
    """Where the machine runs out of memory, let this process be ended, and not the server."""
    with suppress(OSError):  # Linux only
        Path("/proc/self/oom_score_adj").write_text("1000")


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended, even within a question."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    from analysis.background import main as answer_questions  # pickle knows it by this name

    answer_questions(int(sys.argv[1]), Path(sys.argv[2]))
