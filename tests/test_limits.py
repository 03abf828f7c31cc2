"""Bounds of the process for queries that DuckDB does not bound: in processes of their own."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from lake_fixture import DemoResults

ROOT = Path(__file__).resolve().parents[1]


def sql(demo: DemoResults, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.cli", "sql", "--results", str(demo.results)]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=120
    )


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="the bound is Linux's")
def test_one_value_larger_than_memory_is_refused(demo: DemoResults) -> None:
    done = sql(demo, "SELECT len(range(2000000000))")
    assert done.returncode == 2
    assert done.stderr.startswith("error: Out of Memory")


def test_a_query_that_duckdb_does_not_stop_ends_with_the_process() -> None:
    program = (
        "import time, sys\n"
        "from analysis.limits import ending_after\n"
        "with ending_after(0.5, lambda: print('error: too late', file=sys.stderr)):\n"
        "    time.sleep(60)\n"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (2, "error: too late\n")
    assert time.monotonic() - start < 30


def test_what_is_over_in_time_goes_on() -> None:
    program = (
        "import time\n"
        "from analysis.limits import ending_after\n"
        "with ending_after(0.5, lambda: None):\n"
        "    pass\n"
        "time.sleep(1)\n"
        "print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "still here\n")
