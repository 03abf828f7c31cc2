"""What an import holds, in numbers, and its summary for the terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from pipeline.imports.rows import Tally

MOST_SHOWN = 10  # disagreements and scores printed
MOST_KEYS = 50
Groups = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class Label:
    """A recorded label that differs from our grade."""

    place: str
    recorded: bool | None
    ours: bool | None
    gold: str | None
    answer: str | None


@dataclass(frozen=True)
class Facts:
    """groups: how many of each (K, k). steps: how many, first, last. keys: theirs -> ours.

    labelled, differ: rows with a recorded label and our grade, and how many of them differ;
    `examples` are the first of those. rows: responses; 0 where only groups are known.
    """

    rows: int
    groups: Groups
    steps: tuple[int, int, int]
    questions: int
    keys: Mapping[str, str]
    right: int = 0
    unread: int = 0
    ungraded: int = 0
    several_golds: int = 0
    scores: Sequence[tuple[float | None, int]] = ()
    quantiles: Sequence[float] = ()
    labelled: int = 0
    differ: int = 0
    examples: Sequence[Label] = ()
    several_prompts: int = 0
    absent: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    notes: Mapping[str, int] = field(default_factory=dict)


def gather(connection: duckdb.DuckDBPyConnection, keys: Mapping[str, str], tally: Tally) -> Facts:
    """The facts of staged rows (`pipeline.imports.log.staged_rows`)."""

    def rows(sql: str) -> list[tuple]:
        return connection.execute(sql).fetchall()

    label = "coalesce(recorded, ours)"
    differs = f"{label} is not null and {label} is distinct from correct"
    (counts,) = rows(
        f"""
        select count(*), count(distinct step), min(step), max(step), count(distinct question),
            count(*) filter (correct),
            count(*) filter (response is not null and format_ok is not null and extracted is null),
            count(*) filter (correct is null), count({label}), count(*) filter ({differs})
        from staged
        """
    )
    groups = rows(
        'select size, k, count(*) from (select distinct step, question, "group", k, size '
        "from places) group by size, k order by size, k"
    )
    scores = rows(
        f"select score, count(*) from staged where score is not null group by score "
        f"order by score limit {MOST_SHOWN + 1}"
    )
    quantiles = rows(
        "select quantile_cont(score, [0, .25, .5, .75, 1]) from staged"
        if len(scores) > MOST_SHOWN
        else "select null"
    )[0][0]
    (golds,) = rows(
        "select count(*) from (select question from staged group by question "
        "having count(distinct gold) > 1)"
    )
    (prompts,) = rows(  # hashes: prompts are long
        "select count(*) from (select question from staged group by question "
        "having min(hash(prompt)) <> max(hash(prompt)))"
    )
    examples = rows(
        "select place, case when ours is null then recorded else correct end, "
        f"coalesce(ours, correct), gold, extracted from staged where {differs} "
        f"order by row limit {MOST_SHOWN}"
    )
    total, steps, first, last, questions, right, unread, ungraded, labelled, differ = counts
    return Facts(
        rows=total,
        groups=Counter({(size, k): count for size, k, count in groups}),
        steps=(steps, first, last),
        questions=questions,
        keys={theirs: ours for theirs, ours in keys.items() if tally.occurs(theirs)},
        absent={theirs: ours for theirs, ours in keys.items() if not tally.occurs(theirs)},
        right=right,
        unread=unread,
        ungraded=ungraded,
        several_golds=golds[0],
        several_prompts=prompts[0],
        scores=[] if quantiles else scores,
        quantiles=quantiles or [],
        labelled=labelled,
        differ=differ,
        examples=[Label(*example) for example in examples],
        dropped=tally.dropped(dict(keys)),
        left_out=tally.left_out,
        notes=tally.notes,
    )


def describe(facts: Facts, name: str, format: str, right: float) -> str:
    """The summary, down to what was dropped and left out."""
    count, first, last = facts.steps
    steps = f"step {first}" if count == 1 else f"{count} steps ({first} to {last})"
    rows = (
        f"{facts.rows} responses, {facts.right} right, {facts.unread} without an answer, "
        f"{facts.ungraded} ungraded"
        if facts.rows
        else f"{sum(facts.groups.values())} groups without responses"
    )
    lines = [
        f"imported {name} ({format}): {facts.questions} questions, {rows}; {steps}",
        "  k of K   groups",
    ]
    for (size, k), groups in sorted(facts.groups.items()):
        lines.append(f"  {k:>2} of {size:<3} {groups:>5}   {_word(k, size)}")
    decides = not {"score", "correct"} <= set(facts.keys.values())  # else the key of `correct`
    lines += (_scores(facts, right) if decides else []) + _labels(facts)
    lines += ["their keys and our columns:"]
    lines += [f"  {theirs} -> {ours}" for theirs, ours in facts.keys.items()]
    if facts.absent:
        lines += ["keys that would be read, but have no value here:"]
        lines += [f"  {theirs} -> {ours}" for theirs, ours in facts.absent.items()]
    if facts.dropped:
        lines += ["their keys that have no column here, with their non-null values:"]
        lines += [f"  {key}: {values}" for key, values in list(facts.dropped.items())[:MOST_KEYS]]
        if (more := len(facts.dropped) - MOST_KEYS) > 0:
            lines.append(f"  and {more} more")
    if facts.several_golds:
        lines += [f"{facts.several_golds} questions have several golds: the first one is kept"]
    if facts.several_prompts:
        lines += [f"{facts.several_prompts} questions have several prompts: the first one is kept"]
    lines += [f"left out: {each}" for each in facts.left_out]
    lines += [f"{count} {what}" for what, count in facts.notes.items() if count]
    return "\n".join(lines)


def _word(k: int, size: int) -> str:
    if size == 0:
        return "ungraded"
    return "failed" if k == 0 else "solved" if k == size else f"bucket {k}"


def _scores(facts: Facts, right: float) -> list[str]:
    if facts.quantiles:
        parts = zip(
            ("least", "a quarter below", "half below", "most below"),
            facts.quantiles[:4],
            strict=True,
        )
        spread = ", ".join(f"{what} {value:g}" for what, value in parts)
        return [f"scores (right from {right:g} on): {spread}, greatest {facts.quantiles[4]:g}"]
    if not facts.scores:
        return []
    return [f"scores (right from {right:g} on):"] + [
        f"  {score:<8g} {count:>6}   {'right' if score >= right else 'wrong'}"
        for score, count in facts.scores
        if score is not None
    ]


def _labels(facts: Facts) -> list[str]:
    if not facts.labelled:
        return []
    lines = [f"{facts.differ} of {facts.labelled} recorded labels differ from ours"]
    for each in facts.examples:
        answer = None if each.answer is None else each.answer[:60]
        lines.append(
            f"  {each.place}: recorded {_label(each.recorded)}, ours {_label(each.ours)}: gold "
            f"{each.gold!r}, answer {answer!r}"
        )
    if facts.differ > MOST_SHOWN:
        lines.append(
            "  all of them: SELECT * FROM judgements JOIN trajectories USING (run, trajectory) "
            "WHERE valid IS DISTINCT FROM correct"
        )
    return lines


def _label(label: bool | None) -> str:
    return "ungraded" if label is None else "right" if label else "wrong"
