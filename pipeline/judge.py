"""The command `exgrpo judge`: what a judge says of the right answers of runs, into the lake.

Off unless asked for: no stage needs it. Verdicts are kept by what was judged
(`exgrpo.judges.verdicts`), so nothing is asked twice and a killed command goes on; the entry
`judgements-<judge>-<run>` is made anew from them each time.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import duckdb

from analysis.catalog import open_catalog
from analysis.errors import reason
from exgrpo.errors import UserError
from exgrpo.judges.asking import judge_all
from exgrpo.judges.code import code
from exgrpo.judges.deterministic import deterministic
from exgrpo.judges.endpoint import Endpoint, Patience
from exgrpo.judges.judge import Case, Judge
from exgrpo.judges.llm import Sampling, llm
from exgrpo.judges.verdicts import Verdicts
from pipeline.judge_lake import check_current, only_judge, rows_in_lake, write
from pipeline.terminal import printable

JUDGES = ("deterministic", "code", "llm")
VERDICTS = "judgements/verdicts.sqlite"
SECONDS = 600.0  # for the query that reads a run's answers
_BATCH = 256  # answers in memory

# What the options of the judge `llm` may be, least and most; more is no server's or no clock's.
RANGES = {
    "requests_per_minute": (0.01, 1e6),
    "workers": (1, 1000),
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "max_tokens": (1, 10_000_000),
    "timeout": (0.1, 86400.0),
}

# Right answers, the sample first: it is one by the hash of the id, the same every time.
RIGHT = """
with picked as (
    select trajectory from trajectories
    where run = $run and correct and response is not null
    order by md5(trajectory), trajectory
    limit $most
), asked as (
    select question, coalesce(min(text), min(prompt), '') as text, coalesce(min(gold), '') as gold
    from questions group by question
)
select trajectory, coalesce(asked.text, ''), coalesce(asked.gold, ''), response
from trajectories semi join picked using (trajectory) left join asked using (question)
where run = $run
order by md5(trajectory), trajectory
"""
RUNS = """
select runs.study, runs.run, count(*) from runs join trajectories using (run)
where ($study is null or runs.study = $study) and ($runs is null or list_contains($runs, runs.run))
    and correct and response is not null
group by all order by all
"""


@dataclass(frozen=True)
class LlmOptions:
    """What only the judge `llm` has a use for; None: its default."""

    endpoint: str | None = None
    model: str | None = None
    requests_per_minute: float | None = None
    workers: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None


def make_judge(name: str, options: LlmOptions = LlmOptions()) -> Judge:
    """The judge of this name. UserError on another, and on an option too many or too few."""
    if name not in JUDGES:
        raise UserError(f"--judge {name!r}: known are {', '.join(JUDGES)}.")
    given = [each.name for each in fields(options) if getattr(options, each.name) is not None]
    if name != "llm":
        if given:
            option = given[0].replace("_", "-")
            raise UserError(f"--{option} is for --judge llm: {name} asks no server. Leave it out.")
        return deterministic() if name == "deterministic" else code()
    if options.endpoint is None or options.model is None:
        raise UserError(
            "--judge llm needs --endpoint (for example http://127.0.0.1:8000/v1) and --model: see "
            "docs/judges.md."
        )
    _check_values(options)
    patience, sampling = Patience(), Sampling()
    return llm(
        Endpoint(
            options.endpoint,
            options.requests_per_minute,
            Patience(options.timeout or patience.timeout),
            lambda line: print(printable(line), flush=True),
        ),
        options.model,
        Sampling(
            sampling.temperature if options.temperature is None else options.temperature,
            sampling.top_p if options.top_p is None else options.top_p,
            options.max_tokens or sampling.max_tokens,
        ),
    )


def _check_values(options: LlmOptions) -> None:
    if not (options.model and options.model.strip() and options.model.isprintable()):
        raise UserError(f"--model {options.model!a}: give the name that the server has for it.")
    for name, (least, most) in RANGES.items():
        value = getattr(options, name)
        if value is not None and not least <= value <= most:
            option = name.replace("_", "-")
            raise UserError(f"--{option} {value}: give a number from {least:g} to {most:,.10g}.")


def judge_runs(
    name: str,
    results: Path,
    study: str | None = None,
    runs: list[str] | None = None,
    limit: int | None = None,
    options: LlmOptions = LlmOptions(),
) -> None:
    """Judge the right answers of the runs in scope, `limit` of each run at most, all unless told.

    Answers that read the same are judged once, and the verdict is for each trajectory. Raises
    UserError when the catalog has no such run or is not that of the lake, on what the judge cannot
    get over, and when no answer got a verdict; all that was judged is kept.
    """
    judge = make_judge(name, options)
    catalog = results / "workbench.duckdb"
    judged, unanswered = 0, Counter[str]()
    with (
        open_catalog(catalog, SECONDS) as connection,
        only_judge(name, results),
        Verdicts(results / VERDICTS) as verdicts,
    ):
        scope = _scope(connection, study, runs, catalog)
        for _, run, _ in scope:
            check_current(connection, run, results)
        for of_study, run, right in scope:
            sample = min(right, limit or right)
            print(f"{run}: {sample:,} of {right:,} right answers", flush=True)
            cases = (case for _, case in _right(connection, run, sample))
            tally = judge_all(judge, cases, verdicts, options.workers or 1, _sayer(run))
            judged += tally.judged
            unanswered += tally.unanswered
            check_current(connection, run, results)  # judging may have taken hours
            now = write(judge, run, of_study, _right(connection, run, right), verdicts, results)
            print(f"{run}: {tally.judged:,} judged now, {tally.known:,} known;", end=" ")
            if now.trajectories:
                print(
                    f"in the lake: {now.answers:,} distinct answers judged, which "
                    f"{now.trajectories:,} trajectories gave"
                )
            else:
                print(
                    f"none by this version; the lake keeps "
                    f"{rows_in_lake(name, run, results):,} judgements of others"
                )
    _say_unanswered(unanswered, judged)
    print("Next: `exgrpo catalog`, then `exgrpo sql --name verifier_disagreement`.")


def _scope(
    connection: duckdb.DuckDBPyConnection, study: str | None, runs: list[str] | None, catalog: Path
) -> list[tuple[str, str, int]]:
    """Study, run and right answers of each run that is asked for; UserError where one has none."""
    try:
        studies = [
            name
            for (name,) in connection.sql("from runs select distinct study order by 1").fetchall()
        ]
        found = connection.execute(RUNS, {"study": study, "runs": runs}).fetchall()
    except duckdb.Error as error:
        raise UserError(f"{catalog}: {reason(error)}. Build it anew: `exgrpo catalog`.") from error
    if study is not None and study not in studies:
        raise UserError(
            f"--study {study!r}: the catalog has no such study. It has: {', '.join(studies)}."
        )
    for run in runs or []:
        if run not in [name for _, name, _ in found]:
            raise UserError(
                f"--run {run!r}: the catalog has no right answer of it{_of(study)}. "
                f"`exgrpo sql 'select study, run from runs'` lists the runs."
            )
    if not found:
        raise UserError(f"the catalog has no right answer to judge{_of(study)}.")
    return found


def _of(study: str | None) -> str:
    return f" in study {study!r}" if study else ""


def _right(
    connection: duckdb.DuckDBPyConnection, run: str, most: int
) -> Iterator[tuple[str, Case]]:
    """Trajectory and case of right answers, a batch at a time."""
    with connection.cursor() as cursor:
        cursor.execute(RIGHT, {"run": run, "most": most})
        while rows := cursor.fetchmany(_BATCH):
            for trajectory, question, gold, response in rows:
                yield trajectory, Case(question, gold, response)


def _sayer(run: str) -> Callable[[str], None]:
    return lambda line: print(f"{run}: {line}", flush=True)


def _say_unanswered(unanswered: Counter[str], judged: int) -> None:
    """Print why answers got no verdict; UserError when none at all got one."""
    if not unanswered:
        return
    for said, times in unanswered.most_common(3):
        print(printable(f"  no answer, {times} times: {said}"))
    left = f"{unanswered.total():,} answers got no verdict"
    if not judged:
        raise UserError(f"{left}, and none got one: {unanswered.most_common(1)[0][0]}.")
    print(f"{left}. The same command asks about them again.")
