"""Questions to the catalog in processes of their own: whoever asks can wait, or give up.

DuckDB looks at its limits between rows, so that one value can take minutes. A process can be ended
at any moment, and takes nothing with it when it runs out of memory.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from analysis.catalog import open_catalog
from analysis.errors import UserError
from analysis.limits import limit_memory

ROOT = Path(__file__).resolve().parents[1]
MOST = 3  # processes: more would only wait for the processor
STEP = 0.1  # s between two looks
LONGEST = 3600.0  # s; whoever asks gives up earlier


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


class Process:
    """A Python process that answers one question after the other."""

    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        paths = (str(ROOT), os.environ.get("PYTHONPATH"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "analysis.background", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)},
        )
        theirs.close()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.pipe.close()


class Processes:
    """The processes of one dashboard, at most `most`; a question takes one that is free."""

    def __init__(self, most: int = MOST) -> None:
        self._turn = threading.Condition()
        self._most = most
        self._busy = 0
        self._free = [Process()]  # ready before it is asked

    def ask(self, question: Question, seconds: float, waiting: Callable[[float], None]) -> Any:
        """The answer, in at most `seconds`; `waiting` is told ten times a second how many passed.

        What `waiting` raises ends the question at once, and goes on. Raises UserError when the
        question does, when the time is over, and when its process ends.
        """
        start = time.monotonic()
        process = self._take(lambda: waiting(time.monotonic() - start))
        try:
            process.pipe.send(question)
            while not process.pipe.poll(STEP):
                passed = time.monotonic() - start
                if passed > seconds:
                    raise UserError(
                        f"stopped at the time limit of {seconds:g} s. Ask for fewer rows: filter "
                        f"by run or step."
                    )
                waiting(passed)
            error, reply = process.pipe.recv()
        except (EOFError, ConnectionError) as lost:
            self._replace(process)
            raise UserError(
                "the process of this question ended, most likely for want of memory; the terminal "
                "of the dashboard may say more. Ask for fewer rows: filter by run or step."
            ) from lost
        except BaseException:
            self._replace(process)
            raise
        self._give_back(process)
        if error is not None:
            raise error
        return reply

    def end(self) -> None:
        """End the processes that no question holds."""
        with self._turn:
            for process in self._free:
                process.end()
            self._free.clear()

    def _take(self, waiting: Callable[[], None]) -> Process:
        while True:
            with self._turn:
                if self._busy < self._most:
                    self._busy += 1
                    return self._free.pop() if self._free else Process()
                self._turn.wait(STEP)
            waiting()

    def _give_back(self, process: Process) -> None:
        with self._turn:
            self._busy -= 1
            self._free.append(process)
            self._turn.notify()

    def _replace(self, process: Process) -> None:
        process.end()
        self._give_back(Process())


def main(descriptor: int) -> None:
    """Answer questions until whoever asks is gone."""
    limit_memory()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    pipe = Connection(descriptor)
    opened: tuple[Version, duckdb.DuckDBPyConnection] | None = None
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        try:
            if opened is None or opened[0] != question.catalog:
                if opened is not None:
                    opened[1].close()
                    opened = None
                opened = question.catalog, open_catalog(question.catalog.path, LONGEST)
            with opened[1].cursor() as cursor:
                named = dict(question.named)
                answer = question.function(cursor, *question.arguments, **named)
            pipe.send((None, answer))
        except UserError as error:
            pipe.send((error, None))


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended, even within a question."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    from analysis.background import main as answer_questions  # pickle knows it by this name

    answer_questions(int(sys.argv[1]))
