"""A run's status in words, the same in the terminal and in the dashboard."""

from analysis.live import RunStatus

BARS = "▁▂▃▄▅▆▇█"


def as_row(run: RunStatus) -> dict[str, str]:
    """One line of the table: every cell as text, empty where nothing is known."""
    speed = run.steps_a_second
    return {
        "run": run.run,
        "state": run.state,
        "step": f"{run.step}/{run.steps}",
        "steps/s": "" if speed is None else f"{speed:.2f}" if speed < 10 else f"{speed:.0f}",
        "tokens/s": "" if run.tokens_a_second is None else f"{run.tokens_a_second:,.0f}",
        "ETA": duration(run.eta),
        "checkpoint": _checkpoint(run),
        "reward": "" if run.reward is None else f"{run.reward:.3f}",
        "change": "" if run.reward_change is None else f"{run.reward_change:+.3f}",
        "curve": sparkline(run.curve),
        "alarm": ", ".join(alarm.name for alarm in run.alarms),
    }


def sentences(run: RunStatus) -> list[str]:
    """What is wrong with the run: why it stopped, its alarms, what could not be read."""
    named = f"run {run.run}: "
    said = [*run.notes, *(alarm.sentence for alarm in run.alarms)]
    return [named + sentence.removeprefix(named) for sentence in said]


def duration(seconds: float | None) -> str:
    """`0:07`, `12:30`, `3:05:00`; `4 days` from two days on; "" for None."""
    if seconds is None:
        return ""
    if seconds >= 2 * 86_400:
        return f"{seconds / 86_400:.0f} days"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def sparkline(values: tuple[float, ...]) -> str:
    """Shares from 0 to 1 as bars: an eighth of the height each."""
    return "".join(BARS[min(7, int(8 * min(max(value, 0.0), 1.0)))] for value in values)


def _checkpoint(run: RunStatus) -> str:
    return "" if run.checkpoint is None else f"{run.checkpoint}, {duration(run.checkpoint_age)} ago"
