"""What it costs to log every trajectory with all its tokens, as a share of a training step.

    python benchmarks/trajectory_log.py [--threads 1] [--results results]

Measured inside a real run of `tiny`: making the rows of each step, and writing and syncing them
every 25th step. The checkpoint is not part of it; the whole step holds everything.
"""

import time
from collections import defaultdict
from typing import Any

from workload import conditions, prepare, train_steps, wrapped

from exgrpo import step_records
from exgrpo.records import Recorder

FLUSHED = 25  # steps, as in the study
STEPS = 2 * FLUSHED + 1  # two flushes and, to end the last of them, one step more


def main() -> None:
    workload = prepare(__doc__)
    spent: dict[str, list[float]] = defaultdict(list)

    def timed(original: Any, *arguments: Any) -> Any:
        start = time.perf_counter()
        result = original(*arguments)
        spent[original.__name__].append(time.perf_counter() - start)
        return result

    with (
        wrapped(step_records, "step_row", timed),
        wrapped(step_records, "add_step", timed),
        wrapped(Recorder, "flush", timed),
    ):
        steps = train_steps(
            workload,
            STEPS,
            skip=1,
            training={"checkpoint_every": FLUSHED},
            evaluation={"every": STEPS},
        )
    flushes = spent["flush"][1:-1]  # the first holds the base model, the last only one step
    parts = {
        "its metrics": sum(spent["step_row"][1:]) / len(steps),
        "making its rows": sum(spent["add_step"][1:]) / len(steps),
        "writing and syncing them": sum(flushes) / len(flushes) / FLUSHED,
    }
    whole = sum(each.seconds for each in steps) / len(steps)
    print(f"a step: {whole:.3f} s, {sum(each.tokens for each in steps) / len(steps):,.0f} tokens")
    for part, seconds in parts.items():
        print(f"{part:26}{seconds / whole:7.2%}")
    print(f"{'together':26}{sum(parts.values()) / whole:7.2%}")
    print(conditions())


if __name__ == "__main__":
    main()
