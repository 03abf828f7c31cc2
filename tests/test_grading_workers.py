"""Workers of the grader: limits hold, what hangs or dies is replaced, and a failure is null."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from exgrpo.grading import Answer, Grader

TOWER = Answer("16", r"\boxed{9^{9^{9^{9}}}}")
EASY = [Answer("x+1", rf"\boxed{{\frac{{2x}}{{2}}+{i}-{i - 1}}}") for i in range(20)]


def test_one_hanging_answer_costs_nobody_else_a_verdict() -> None:
    """o07, and trap 48: the tower of powers is wrong at its limit, what follows is graded."""
    # Time is processor time of the workers, so that a busy machine fails no test.
    limit = 4.0
    before = processor_seconds_of_children()
    with Grader(workers=2, time_limit=limit) as grader:
        found = grader.grade_all([TOWER, *EASY])
        assert [verdict.correct for verdict in found] == [False] + [True] * 20
        assert found[0].reason == "time limit"
        assert [worker.usable for worker in grader._workers] == [True, True]
    assert limit < processor_seconds_of_children() - before < 2 * limit


def processor_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_trap_47_limits_hold_in_a_thread() -> None:
    """A limit by SIGALRM works in the main thread alone: elsewhere every verdict would fail."""
    with Grader(workers=1, time_limit=0.5) as grader, ThreadPoolExecutor(1) as pool:
        found = pool.submit(grader.grade_all, [TOWER, *EASY]).result()
    assert [verdict.correct for verdict in found] == [False] + [True] * 20
    assert found[0].reason == "time limit"


def test_a_worker_that_dies_leaves_no_verdict_and_is_replaced() -> None:
    with Grader(workers=1, time_limit=60) as grader, ThreadPoolExecutor(1) as pool:
        grader.grade_all([Answer("x+1", r"\boxed{1+x}")])
        before = grader._workers[0].process
        pending = pool.submit(grader.grade_all, [TOWER, EASY[0]])
        time.sleep(0.3)
        os.kill(before.pid, signal.SIGKILL)
        tower, easy = pending.result(timeout=60)
        assert tower.correct is None
        assert tower.reason.startswith("grader failed")
        assert easy.correct is True
        idle = grader._workers[0].process
        os.kill(idle.pid, signal.SIGKILL)
        idle.wait()
        assert grader.grade_all([Answer("x+1", r"\boxed{x+2-1}")])[0].correct is True


def test_a_worker_that_does_not_run_is_killed_and_replaced() -> None:
    with Grader(workers=1) as grader:
        grader.grade_all(EASY[:1])
        stopped = grader._workers[0]
        stopped._wall_limit = 0.3
        os.kill(stopped.process.pid, signal.SIGSTOP)
        lost, easy = grader.grade_all([Answer("x+1", r"\boxed{1+x}"), EASY[1]])
        assert (lost.correct, lost.reason) == (None, "grader failed: a worker did not run")
        assert stopped.process.poll() == -signal.SIGKILL
        assert easy.correct is True


def test_a_worker_obeys_the_memory_limit_and_does_not_outlive_the_grader() -> None:
    limit = 1 << 20  # so little that nothing large can be allocated once sympy is loaded
    with Grader(workers=1, memory_limit=limit) as grader:
        assert grader.grade_all([Answer("16", r"\boxed{10^{10^{7}}}")])[0].correct is False
        process = grader._workers[0].process
        assert resource.prlimit(process.pid, resource.RLIMIT_AS) == (limit, limit)
    assert process.returncode is not None


def test_digits_are_settled_at_once_without_a_worker_or_sympy() -> None:
    code = (
        "import sys, time; from exgrpo.grading import Answer, Grader\n"
        "items = [Answer(str(i % 10), f'1+2=3;3+4=7 \\\\boxed{{{i % 7}}}') for i in range(256)]\n"
        "with Grader() as grader:\n"
        "    start = time.process_time(); found = grader.grade_all(items)\n"
        "    print(time.process_time() - start, sum(v.correct for v in found))\n"
        "    print(len(grader._workers), 'sympy' in sys.modules, 'torch' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = run.stdout.splitlines()
    seconds, right = first.split()
    assert float(seconds) < 0.05
    assert int(right) == sum(i % 10 == i % 7 for i in range(256))
    assert second == "0 False False"


def test_no_worker_thread_is_left_behind() -> None:
    with Grader(workers=1) as grader:
        grader.grade_all([Answer("x", r"\boxed{x+0}")])
        assert not [
            t for t in threading.enumerate() if isinstance(t, threading.Timer) and t.is_alive()
        ]


SNAKEFILE = """
rule all:
    input: "a.verdicts", "b.verdicts"
rule grade:
    input: "{{name}}.jsonl"
    output: "{{name}}.verdicts"
    threads: 2
    shell: "{python} -m pipeline.cli grade {{input}} --output {{output}} --workers {{threads}}"
           " --time-limit 1"
"""


def test_limits_hold_under_snakemake(tmp_path: Path) -> None:
    rows = [{"gold": each.gold, "response": each.response} for each in (TOWER, *EASY)]
    for name in ("a", "b"):
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(python=sys.executable))
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "4", "--quiet"]
    done = subprocess.run(snakemake, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("a", "b"):
        lines = (tmp_path / f"{name}.verdicts").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        assert [verdict["correct"] for verdict in found] == [False] + [True] * 20
        assert found[0]["reason"] == "time limit"
