"""Which rows of the log a browser shows: the filters, and what each of them asks of a row.

Training trajectories and evaluation samples are filtered alike; a table has those filters whose
columns it has.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from analysis.domains import Domain
from analysis.sample_id import sample_key
from exgrpo.tables import EVALUATIONS, TRAJECTORIES, Table

Source = Literal["training", "evaluation"]
Marker = Literal["code", "shortcut", "repetition", "step_errors"]

TABLES: dict[Source, Table] = {"training": TRAJECTORIES, "evaluation": EVALUATIONS}


@dataclass(frozen=True)
class Filters:
    """Which rows to show, and in which order. None, empty or false: no such filter.

    `source` says of which table: the trajectories of training, or the samples of evaluations.
    `domain`: of benchmarks in or out of distribution.
    `bucket` holds numbers of right trajectories in the group (k), `bucket_drawn` those of the
    bucket that the question was drawn from; `age` is the step less the birth
    step, so 0 for a fresh one; `ungraded` are those that the grader could not judge; of `markers`
    all must be there; `text` is found anywhere in the response, in any case, and is a regular
    expression (RE2) if `regex`. A row without a value never passes a filter on it.
    """

    source: Source = "training"
    study: str | None = None
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    run: str | None = None
    benchmark: str | None = None
    domain: Domain | None = None
    step_min: int | None = None
    step_max: int | None = None
    level: tuple[int, ...] = ()
    bucket: tuple[int, ...] = ()
    bucket_drawn: tuple[int, ...] = ()
    replayed: bool | None = None
    correct: bool | None = None
    ungraded: bool = False
    chain_valid: bool | None = None
    finish: str | None = None
    markers: tuple[Marker, ...] = ()
    length_min: int | None = None
    length_max: int | None = None
    age_min: int | None = None
    age_max: int | None = None
    entropy_min: float | None = None
    entropy_max: float | None = None
    text: str | None = None
    regex: bool = False
    question: str | None = None
    sort: str = "step"
    descending: bool = False


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(Filters)}

# Of each filter: its condition, and the columns that this reads.
_CONDITIONS: dict[str, tuple[str, ...]] = {
    "study": ("run IN (SELECT run FROM runs WHERE study = $study)", "run"),
    "arms": ("run IN (SELECT run FROM runs WHERE list_contains($arms, arm))", "run"),
    "seeds": ("run IN (SELECT run FROM runs WHERE list_contains($seeds, seed))", "run"),
    "run": ("run = $run", "run"),
    "benchmark": ("benchmark = $benchmark", "benchmark"),
    "domain": ("domain_of(benchmark, domain) = $domain", "benchmark", "domain"),
    "step_min": ("step >= $step_min", "step"),
    "step_max": ("step <= $step_max", "step"),
    "level": ("list_contains($level, level)", "level"),
    "bucket": ("list_contains($bucket, group_successes)", "group_successes"),
    "bucket_drawn": ("list_contains($bucket_drawn, bucket_drawn)", "bucket_drawn"),
    "replayed": ("replayed = $replayed", "replayed"),
    "correct": ("correct = $correct", "correct"),
    "ungraded": ("correct IS NULL", "correct"),
    "chain_valid": ("chain_valid = $chain_valid", "chain_valid"),
    "finish": ("finish = $finish", "finish"),
    "markers": ("TRUE", "code", "shortcut", "repetition", "step_errors"),  # see `_MARKERS`
    "length_min": ("length >= $length_min", "length"),
    "length_max": ("length <= $length_max", "length"),
    "age_min": ("step - birth_step >= $age_min", "step", "birth_step"),
    "age_max": ("step - birth_step <= $age_max", "step", "birth_step"),
    "entropy_min": ("mean_entropy >= $entropy_min AND isfinite(mean_entropy)", "mean_entropy"),
    "entropy_max": ("mean_entropy <= $entropy_max", "mean_entropy"),
    "question": ("question = $question", "question"),
    "text": (
        "CASE WHEN $regex THEN regexp_matches(response, $text, 'i') "
        "ELSE contains(lower(response), lower($text)) END",
        "response",
    ),
}
_MARKERS: dict[Marker, str] = {
    "code": "code",
    "shortcut": "shortcut",
    "repetition": "repetition",
    "step_errors": "step_errors > 0",
}
_SAMPLES = (
    "(run, step, benchmark, question, sample) IN (SELECT unnest($runs::VARCHAR[]), "
    "unnest($steps::BIGINT[]), unnest($benchmarks::VARCHAR[]), unnest($questions::VARCHAR[]), "
    "unnest($samples::BIGINT[]))"
)


def filters_of(source: Source) -> tuple[str, ...]:
    """The filters that the rows of a source have, by field."""
    names = TABLES[source].names
    return tuple(key for key, (_, *needs) in _CONDITIONS.items() if set(needs) <= set(names))


def active(filters: Filters) -> tuple[str, ...]:
    """The fields of the filters that are on, of those that the source has."""
    return tuple(
        name
        for name in filters_of(filters.source)
        if getattr(filters, name) not in (_DEFAULTS[name], "")
    )


def without(filters: Filters, *names: str) -> Filters:
    """The filters with some of them off."""
    return dataclasses.replace(filters, **{name: _DEFAULTS[name] for name in names})


def fitting(filters: Filters) -> Filters:
    """The filters without those that the rows of the source do not have."""
    return without(filters, *(_CONDITIONS.keys() - set(filters_of(filters.source))))


def conditions(
    filters: Filters, ids: tuple[str, ...] | None
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """What a row has to meet, in SQL, and the values of the parameters; cheap conditions first.

    `ids`: only rows with one of these ids, if it is not None.
    """
    found, values = _only(filters.source, ids)
    for name in active(filters):
        value = getattr(filters, name)
        if name == "markers":
            found += [_MARKERS[marker] for marker in value]
            continue
        found.append(_CONDITIONS[name][0])
        if f"${name}" in found[-1]:
            values[name] = list(value) if isinstance(value, tuple) else value
    return tuple(found), values | ({"regex": filters.regex} if "text" in values else {})


def _only(source: Source, ids: tuple[str, ...] | None) -> tuple[list[str], dict[str, Any]]:
    if ids is None:
        return [], {}
    if source == "training":
        return ["trajectory IN (SELECT unnest($ids::VARCHAR[]))"], {"ids": list(ids)}
    keys = [key for key in map(sample_key, ids) if key is not None]
    names = ("runs", "steps", "benchmarks", "questions", "samples")
    return [_SAMPLES], {name: [key[i] for key in keys] for i, name in enumerate(names)}
