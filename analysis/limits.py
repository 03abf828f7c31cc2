"""Bounds of the whole process, for what DuckDB does not bound itself.

DuckDB looks at its limits between rows: one value of gigabytes, or a plan that takes minutes to
make, passes them.
"""

import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MORE_MEMORY = 6 * 2**30  # bytes beyond what the process holds: those of the catalog and some
GRACE = 10.0  # seconds that a query may take beyond its limit until the process ends


def limit_memory(more: int = MORE_MEMORY) -> None:
    """Let this process allocate at most `more` bytes from here on; a query beyond fails alone.

    On Linux only, elsewhere nothing is known to hold. A limit that is lower already stays.
    """
    sizes = Path("/proc/self/statm")
    if not sizes.is_file():
        return
    held = int(sizes.read_text().split()[5]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft in (resource.RLIM_INFINITY, -1) or soft > held + more:
        resource.setrlimit(resource.RLIMIT_DATA, (held + more, hard))


@contextmanager
def ending_after(seconds: float, say: Callable[[], None]) -> Iterator[None]:
    """End this process with exit code 2, after `say`, if what is inside is not over in time."""

    def end() -> None:
        say()
        sys.stderr.flush()
        os._exit(2)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
