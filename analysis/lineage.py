"""Where a gradient came from: the draws, the uses and the fate of one stored trajectory.

All from answers of the named queries `candidates_of_question`, `lineage`, `question_visits`,
`question_events` and `lineage_rules`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

Row = Mapping[str, Any]

# By which a draw can choose; of each, the candidate with the lowest value.
METRICS = {
    "mean_entropy": "lowest mean entropy",
    "released": "released code",
    "summed_entropy": "lowest summed entropy",
    "nll": "lowest NLL",
    "length": "shortest",
    "birth_entropy": "lowest entropy at birth",
}
_NAMES = {
    "mean_entropy": "mean entropy",
    "released": "the released code's metric",
    "summed_entropy": "summed entropy",
    "nll": "negative log-probability",
    "length": "length",
    "birth_entropy": "entropy at birth",
}
_ORDERS = {
    "random": "at random",
    "recent": "the newest first",
    "reward": "right ones first, the newest among them",
    "variance": "right and wrong by turns, the newest first",
}


def order_words(rules: Row) -> str:
    """How a run orders the stored trajectories of a drawn question; a row of `lineage_rules`."""
    order, metric = rules["order"], rules["metric"]
    if order in ("lowest", "highest"):
        return f"the {order} {_NAMES.get(metric, 'value of its metric')} first"
    return _ORDERS.get(order, "in an order that the log does not tell")


def draws(candidates: pl.DataFrame, trajectory: str) -> pl.DataFrame:
    """One row a draw of a question in a run, from its rows of `candidates_of_question`.

    step, group; stored: candidates; considered, taken: whether `trajectory` was among them, and
    replayed; `chosen`: ids that were replayed; a column a metric of METRICS: the id that its lowest
    value would have taken, null where the log has no ranks; agrees: the released metric takes what
    the lowest mean entropy does, null with one candidate only.
    """
    source = pl.col("source")
    table = candidates.group_by("step", "group", maintain_order=True).agg(
        stored=pl.len(),
        considered=(source == trajectory).any(),
        taken=((source == trajectory) & pl.col("chosen")).any(),
        chosen=source.filter(pl.col("chosen")),
        **{name: source.filter(pl.col(f"{name}_rank") == 0).first() for name in METRICS},
    )
    same = pl.col("released") == pl.col("mean_entropy")
    return table.with_columns(agrees=pl.when(pl.col("stored") > 1).then(same))


@dataclass(frozen=True)
class Agreement:
    """Of `draws` with more than one candidate, how often two metrics take the same one."""

    same: int
    draws: int


def agreement(table: pl.DataFrame) -> Agreement:
    """How often the released metric takes what the correct one does, over rows of `draws`."""
    known = table["agrees"].drop_nulls()
    return Agreement(int(known.sum()), known.len())


def telling_draw(table: pl.DataFrame) -> int:
    """The step of the draw to look at first, of rows of `draws`.

    Where the released metric takes another than the correct one; else the one of most candidates.
    """
    differ = table.filter(~pl.col("agrees"))
    largest = table.sort("stored", descending=True, maintain_order=True)
    return int((largest if differ.is_empty() else differ)["step"][0])


def uses(lineage: pl.DataFrame, visits: pl.DataFrame) -> pl.DataFrame:
    """The replays among the rows of `lineage`, each with its age and the visit it was part of.

    age: steps since it was sampled, null where it was sampled outside of this run. From
    `question_visits`: previous_share, success_share (sampled before this update), next_step and
    next_share (after it).
    """
    born = lineage.filter(~pl.col("replayed"))
    own = pl.col("run").is_in(born["run"].to_list())
    columns = ("previous_share", "success_share", "next_step", "next_share")
    return (
        lineage.filter("replayed")
        .with_columns(age=pl.when(own).then(pl.col("step") - pl.col("birth_step")))
        .join(
            visits.select("run", "step", "group", *columns),
            on=("run", "step", "group"),
            how="left",
            maintain_order="left",
        )
    )


@dataclass(frozen=True)
class Change:
    """Mean share of right fresh rollouts at uses: before their update, and at the next visit."""

    uses: int
    then: float
    after: float


def change(table: pl.DataFrame) -> Change | None:
    """Over the rows of `uses` that have a later visit; None without any."""
    known = table.drop_nulls(["success_share", "next_share"])
    if known.is_empty():
        return None
    then, after = (known[name].to_list() for name in ("success_share", "next_share"))
    return Change(known.height, sum(then) / len(then), sum(after) / len(after))


def fate(
    birth: Row, rules: Row | None, events: Sequence[Row], considered: int, replays: int
) -> list[str]:
    """What became of a trajectory after it was sampled, in sentences, as far as the log tells.

    birth: its row of `trajectories`; rules: its run's row of `lineage_rules`; events: those of its
    question in its run; considered: at how many draws it was a candidate; replays: how often it
    was replayed.
    """
    if rules is None or rules["status"] == "imported":
        return ["An import holds rollouts as they were written: it tells of no replay."]
    if rules["replay"] == "none":
        return ["This arm replays nothing: no rollout of it is stored."]
    if rules["join_source"] not in (None, "buffer"):
        return ["This arm replays trajectories from outside, never rollouts of its own."]
    if not events and rules["replay"] is None:
        return ["The log does not tell what this run stored or replayed."]
    told = _stored_and_gone(birth, events)
    if replays and not told:
        return [f"It was replayed {_times(replays)}; the log does not hold when it was stored."]
    if not told:
        return [_why_not_stored(birth, rules, events)]
    if rules["replay"] == "question":
        return [*told, "This arm only asks a stored question again: it replays no trajectory."]
    if replays:
        return [*told, f"It was replayed {_times(replays)}."]
    if considered:
        return [*told, f"It was a candidate {_times(considered)}; another was taken each time."]
    return [*told, "Its question was never drawn from the buffer while it was stored."]


def _stored_and_gone(birth: Row, events: Sequence[Row]) -> list[str]:
    told: list[str] = []
    inside = False
    for event in events:
        step, name = event["step"], event["event"]
        if name == "stored" and _about(event, birth):
            bucket = event["bucket_after"]
            lies = f", its question in bucket {bucket}" if bucket is not None else ""
            told.append(f"Stored {'again ' if told else ''}at step {step}{lies}.")
            inside = True
        elif inside and name == "evicted" and _about(event, birth):
            told.append(f"Evicted at step {step}: too old, or no more room.")
            inside = False
        elif inside and name == "retired":
            told.append(
                f"At step {step} its question was solved (k = K) and retired: all that was stored "
                "of it left the buffer."
            )
            inside = False
        elif inside and name == "left":
            told.append(f"At step {step} its question failed (k = 0) and left the buffer.")
            inside = False
    return [*told, "It is still stored at the end of the log."] if inside else told


def _why_not_stored(birth: Row, rules: Row, events: Sequence[Row]) -> str:
    step, on_step = birth["step"], rules["on_step"]
    moves = [event for event in events if event["event"] in ("retired", "returned")]
    before = [event for event in moves if event["step"] < step]
    if birth["correct"] is None:
        return "It was never stored: the grader could not judge it."
    if not birth["correct"] and rules["store"] != "all":
        return "It was never stored: its answer is wrong, and this arm stores right ones only."
    if not rules["collect_before_start"] and (on_step is None or step < on_step):
        since = "shows no step with it" if on_step is None else f"has it from step {on_step}"
        return f"It was never stored: nothing is before replay is on, and the log {since}."
    if before and before[-1]["event"] == "retired":
        return f"It was never stored: its question had retired at step {before[-1]['step']}."
    if any(event["event"] == "retired" and event["step"] == step for event in moves):
        return "It was never stored: its group was solved (k = K), and the question retired."
    if birth["finish"] == "length" and not rules["store_truncated"]:
        return "It was never stored: it was cut off at the length limit."
    return (
        "It was never stored, and the log does not say why. The usual reason: the same response "
        "was stored already, or a rollout of its group could not be graded."
    )


def _about(event: Row, birth: Row) -> bool:
    return bool(event["trajectory"] == birth["trajectory"])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
