"""The command `exgrpo judge`: what a judge says of the right answers of runs, into the lake.

Off unless asked for: no stage needs it. Verdicts are kept by what was judged
(`exgrpo.judges.verdicts`), so nothing is asked twice and a killed command goes on; the entry
`judgements-<judge>-<run>` is made anew from them each time.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import duckdb

from analysis.catalog import open_catalog
from exgrpo.errors import UserError
from exgrpo.judges.asking import Tally, judge_all
from exgrpo.judges.code import code
from exgrpo.judges.deterministic import deterministic
from exgrpo.judges.endpoint import Endpoint, Patience
from exgrpo.judges.judge import Case, Judge
from exgrpo.judges.llm import Sampling, llm
from exgrpo.judges.verdicts import Verdicts, key_of
from exgrpo.records import Recorder
from pipeline.lake import add_judgements, judgement_folder
from pipeline.terminal import printable

JUDGES = ("deterministic", "code", "llm")
VERDICTS = "judgements/verdicts.sqlite"
SECONDS = 600.0  # for the query that reads a run's answers
_BATCH = 256  # answers in memory

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
    patience, sampling = Patience(), Sampling()
    return llm(
        Endpoint(
            options.endpoint,
            options.requests_per_minute,
            Patience(options.timeout or patience.timeout),
        ),
        options.model,
        Sampling(
            sampling.temperature if options.temperature is None else options.temperature,
            sampling.top_p if options.top_p is None else options.top_p,
            options.max_tokens or sampling.max_tokens,
        ),
    )


def judge_runs(
    name: str,
    results: Path,
    study: str | None = None,
    runs: list[str] | None = None,
    limit: int | None = None,
    options: LlmOptions = LlmOptions(),
) -> None:
    """Judge the right answers of the runs in scope, `limit` of each run at most, all unless told.

    Raises UserError when the catalog has no such run, and on what the judge cannot get over;
    then all that was judged is kept.
    """
    judge = make_judge(name, options)
    with (
        open_catalog(results / "workbench.duckdb", SECONDS) as connection,
        Verdicts(results / VERDICTS) as verdicts,
    ):
        scope = connection.execute(RUNS, {"study": study, "runs": runs}).fetchall()
        _check_scope(connection, study, runs, [run for _, run, _ in scope])
        left = 0
        for of_study, run, right in scope:
            sample = min(right, limit or right)
            print(f"{run}: {sample:,} of {right:,} right answers", flush=True)
            cases = (case for _, case in _right(connection, run, sample))
            tally = judge_all(judge, cases, verdicts, options.workers or 1, _sayer(run, sample))
            left += tally.unanswered.total()
            _say_unanswered(tally)
            rows = _write(judge, run, _right(connection, run, right), verdicts, results)
            if rows:
                add_judgements(judge.name, run, of_study, results)
            print(
                f"{run}: {tally.judged:,} judged now, {tally.known:,} known; {rows:,} in the lake"
            )
    if left:
        print(f"{left:,} answers got no verdict. The same command asks about them again.")
    print("Next: `exgrpo catalog`, then `exgrpo sql --name verifier_disagreement`.")


def _check_scope(
    connection: duckdb.DuckDBPyConnection,
    study: str | None,
    runs: list[str] | None,
    found: list[str],
) -> None:
    """UserError on a run that the catalog does not hold or has no right answer, and on none."""
    for run in runs or []:
        if run not in found:
            raise UserError(
                f"--run {run!r}: the catalog has no right answer of it{_of(study)}. "
                f"`exgrpo sql 'select study, run from runs'` lists the runs."
            )
    if not found:
        raise UserError(f"the catalog has no right answer to judge{_of(study)}.")


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


def _write(
    judge: Judge, run: str, right: Iterator[tuple[str, Case]], verdicts: Verdicts, results: Path
) -> int:
    """Write the log of all verdicts that this version has on the run; how many they are."""
    folder = judgement_folder(judge.name, run, results)
    shutil.rmtree(folder, ignore_errors=True)
    rows = [
        {
            "run": run,
            "trajectory": trajectory,
            "judge": judge.name,
            "version": judge.version,
            "valid": verdict.valid,
            "reason": verdict.reason,
        }
        for trajectory, case in right
        if (verdict := verdicts.get(key_of(judge, case))) is not None
    ]
    if rows:
        recorder = Recorder(folder / "log")
        recorder.add("judgements", rows)
        recorder.flush(0, 0)
    return len(rows)


def _sayer(run: str, sample: int) -> Callable[[Tally], None]:
    def say(tally: Tally) -> None:
        print(
            f"{run}: {tally.cases:,} of {sample:,}: {tally.judged:,} judged, "
            f"{tally.known:,} known, {tally.unanswered.total():,} without an answer",
            flush=True,
        )

    return say


def _say_unanswered(tally: Tally) -> None:
    for reason, times in tally.unanswered.most_common(3):
        print(printable(f"  no answer, {times} times: {reason}"))
