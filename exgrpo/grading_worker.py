"""A worker of `exgrpo.grading.Grader`: one JSON pair a line in, one JSON verdict a line out.

`python -m exgrpo.grading_worker TIME_LIMIT MEMORY_LIMIT` (seconds of processor time for one
answer, bytes). An answer over the time limit ends the process by SIGPROF, which also stops code
that never returns to Python; the grader starts another worker.
"""

import json
import os
import resource
import signal
import sys


def main() -> None:
    time_limit, memory_limit = float(sys.argv[1]), int(sys.argv[2])
    # A machine that is taken away tells every process; the step that training ends needs this one,
    # and it ends with its input.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Only verdicts may reach the pipe: what a library prints goes to the error stream.
    with os.fdopen(os.dup(1), "w") as verdicts:
        os.dup2(2, 1)
        from exgrpo import algebra

        algebra.compare("x+1", r"\frac{2}{2}+x")  # loads the parser's tables
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
        print('[true, "ready"]', file=verdicts, flush=True)
        for line in sys.stdin:
            gold, answer = json.loads(line)
            signal.setitimer(signal.ITIMER_PROF, time_limit)
            verdict = algebra.compare(gold, answer)
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(json.dumps(verdict), file=verdicts, flush=True)


if __name__ == "__main__":
    main()
