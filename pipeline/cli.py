"""The `exgrpo` command: what a person types, (`pipeline/cli_files.py`) the commands on a file or a
data set, and (`pipeline/cli_stages.py`) the stages.

Every command imports what it needs inside: `exgrpo --help` stays fast.
"""

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from exgrpo.errors import UserError
from pipeline.cli_files import files
from pipeline.cli_options import CONFIG, DEMO, RESULTS, Config, Results, StudyName, load
from pipeline.cli_plan import plans
from pipeline.cli_stages import stages
from pipeline.errors import INTERRUPTED, WORDS, told
from pipeline.terminal import printable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Train, ask and look: does replaying experience help, which experience, and why?",
)


def main() -> None:
    """Run the command line. A UserError, a full or a locked disk is told in a line, exit code 2.

    A job that was preempted ends with EX_TEMPFAIL: the workflow tries it again.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # where a terminal lacks a letter
    try:
        app()
    except Exception as error:
        if (line := told(error)) is None:
            raise
        code, message = line
        print(f"{WORDS[code]}: {printable(message)}", file=sys.stderr)
        sys.exit(code)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's answer to Ctrl-C
            print(
                "interrupted: run the same command again; a study goes on where it was",
                file=sys.stderr,
            )
        raise


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(help="A file of config/studies.")] = "tiny",
    cores: Annotated[
        int | None,
        typer.Option(min=1, help="Jobs side by side; 2 unless told, or as many as have GPUs."),
    ] = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Train nothing; report on the runs that are trained.")
    ] = False,
    hardware: Annotated[
        str | None, typer.Option(help="A file of config/hardware: what each run is given.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Send jobs to a cluster: slurm, kubernetes, or a folder.")
    ] = None,
) -> None:
    """Run a whole study and its companions; goes on where it was stopped."""
    from pipeline.reproduce import reproduce as run_workflow

    raise typer.Exit(run_workflow(study, cores, finished, hardware, profile))


@app.command("app")
def open_app(
    results: Results = RESULTS,
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 8501,
    address: Annotated[
        str, typer.Option(help="Address to listen at; beyond this machine it has no password.")
    ] = "127.0.0.1",
) -> None:
    """Open the dashboard, for this machine only unless told otherwise."""
    from pipeline.dashboard import start

    start(results, address, port)


@app.command()
def demo(
    results: Annotated[Path, typer.Option("--results", help="Folder to make it in.")] = DEMO,
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 8501,
    cut: Annotated[
        Path | None,
        typer.Option(help="Only cut it anew, from the study `tiny` of this results folder."),
    ] = None,
) -> None:
    """Open the dashboard over a small sample of a real study, without training anything."""
    from pipeline.demo import QUESTIONS_KEPT, cut_demo, open_demo

    if cut is not None:
        from exgrpo.studies import load_study

        size = cut_demo(cut, load_study("tiny", CONFIG), QUESTIONS_KEPT)
        print(f"demo: {size / 1e6:.1f} MB")
        return
    open_demo(results)
    open_app(results, port)


@app.command()
def sql(
    query: Annotated[
        str | None,
        typer.Argument(help="One SELECT, after `--` if it begins with a comment; else a prompt."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Run this named query.")] = None,
    study: Annotated[str | None, typer.Option(help="The named query's parameter study.")] = None,
    run: Annotated[list[str] | None, typer.Option(help="Its parameter run; repeatable.")] = None,
    param: Annotated[
        list[str] | None, typer.Option(help="Another of its parameters, key=value; repeatable.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--list", help="Explain the named queries, or the one of --name.")
    ] = False,
    format: Annotated[str, typer.Option(help="table, csv, json or parquet.")] = "table",
    limit: Annotated[int, typer.Option(min=1, help="Most rows to print.")] = 1000,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86400, help="Most time for a query.")
    ] = 30.0,
    live: Annotated[
        bool, typer.Option("--live", help="Also ask runs that are still being trained.")
    ] = False,
    results: Results = RESULTS,
) -> None:
    """Ask the catalog a question in SQL, read-only."""
    from analysis.limits import limit_memory
    from pipeline import named
    from pipeline.sql import Output, print_answer, print_named, prompt

    parameters = named.read_parameters(study, run or [], param or [])
    output = Output(format, limit, seconds)
    named.check_request(query, name, parameters, explain)
    limit_memory()
    if explain:
        print(named.explain(name))
    elif name is not None:
        print_named(results, name, parameters, output, live)
    elif query is not None:
        print_answer(results, query, output, live)
    else:
        prompt(results, output, live)


@app.command()
def status(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Results, a study's folder or a run's; `results` unless told."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
    watch: Annotated[
        float | None, typer.Option(min=0.1, help="Print it again every so many seconds.")
    ] = None,
) -> None:
    """Say how every run is getting on: step, rate, time left, reward, and what went wrong."""
    from pipeline.status import show_status

    show_status(folders or [RESULTS], as_json, watch)


@app.command("import")
def import_outputs(
    path: Annotated[Path, typer.Argument(help="A file or a folder of another trainer's log.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the import; that of the path unless told.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="verl, trl, prime-rl, history, ...; recognised unless told.")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="YAML: our column -> their key. See docs/import.md.")
    ] = None,
    right: Annotated[
        float | None, typer.Option(help="Least recorded score that counts as right; 1 unless told.")
    ] = None,
    reward: Annotated[
        str | None, typer.Option(help="TRL: the reward column that says what is right.")
    ] = None,
    grade: Annotated[
        bool, typer.Option("--grade", help="Also grade by the gold, beside the recorded score.")
    ] = False,
    group_size: Annotated[
        int | None,
        typer.Option(min=2, help="Accuracy histories: rollouts of a visit, K; 8 unless told."),
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Add the log of another trainer, or model outputs with gold answers, to the lake."""
    from pipeline.imports.command import import_file
    from pipeline.imports.formats import Options

    options = Options(format, mapping, right, reward, grade or None, group_size)
    import_file(path, name, results, options)


@app.command()
def claims(
    study: Annotated[str | None, typer.Option(help="A study that was analysed.")] = None,
    claim: Annotated[
        str | None, typer.Option(help="All about this one: C9a; C9: its parts.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not a table.")] = False,
    paper: Annotated[
        str | None, typer.Option(help="Answer a question about the paper's tables; list: which.")
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Print the ledger: every claim, the paper's figure, and what a study says of it."""
    from pipeline.claims import show_claims, show_paper_tables

    if paper is not None:
        show_paper_tables(None if paper == "list" else paper)
        return
    show_claims(results, study, claim, as_json)


@app.command()
def scores(
    study: Annotated[str, typer.Option(help="A study that was analysed.")] = "tiny",
    benchmark: Annotated[
        str | None, typer.Option(help="Only this one, and pass@k and maj@k for every k.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
    results: Results = RESULTS,
) -> None:
    """Print what every arm scores on every benchmark: avg@k, pass@k, maj@k, answers read."""
    from pipeline.scores import show_scores

    show_scores(results, study, benchmark, as_json)


@app.command()
def observe(
    names: Annotated[
        list[str] | None, typer.Argument(help="Observations, by name; all unless told.")
    ] = None,
    study: Annotated[str | None, typer.Option(help="One study; all in turn unless told.")] = None,
    run: Annotated[str | None, typer.Option(help="One run, for example an import.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also draw each, into this folder, as HTML.")
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Say what every study or import shows of difficulty, entropy and replay."""
    from pipeline.observe import observe as observe_all

    observe_all(results, study, run, names or [], figures)


@app.command()
def snowball(
    study: Annotated[str, typer.Option(help="A study of the catalog, or `imports`.")],
    marker: Annotated[str, typer.Option(help="flawed, shortcut, code or repetition.")] = "flawed",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not sentences.")] = False,
    results: Results = RESULTS,
) -> None:
    """Say whether replay of marked trajectories spreads the marker, with the power to tell."""
    from pipeline.snowball import show_snowball

    show_snowball(results, study, marker, as_json)


@app.command()
def judge(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Measure the judge on files of model outputs instead of runs."),
    ] = None,
    judge: Annotated[str, typer.Option(help="deterministic, code or llm.")] = "deterministic",
    study: Annotated[str | None, typer.Option(help="Judge the runs of this study.")] = None,
    run: Annotated[list[str] | None, typer.Option(help="Judge this run; repeatable.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most trajectories a run, chosen by hash; others with the same answers, and what "
            "was judged before, come along.",
        ),
    ] = None,
    show: Annotated[
        int | None, typer.Option(min=0, help="Files: show so many flagged answers.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="llm: an OpenAI-compatible URL that ends in /v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="llm: the model's name there.")] = None,
    requests_per_minute: Annotated[float | None, typer.Option(help="llm: most of them.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="llm: requests at once.")] = None,
    temperature: Annotated[float | None, typer.Option(help="llm: of its sampling.")] = None,
    top_p: Annotated[float | None, typer.Option(help="llm: of its sampling.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="llm: of an answer.")] = None,
    timeout: Annotated[float | None, typer.Option(help="llm: seconds for a request.")] = None,
    results: Results = RESULTS,
) -> None:
    """Judge the chains of right answers; each verdict is a row of table `judgements`."""
    from pipeline.judge import LlmOptions, judge_runs
    from pipeline.judge_files import measure_files

    options = LlmOptions(
        endpoint, model, requests_per_minute, workers, temperature, top_p, max_tokens, timeout
    )
    if files:
        for option, given in (("study", study), ("run", run or None), ("limit", limit)):
            if given is not None:
                raise UserError(f"--{option} is for runs, not for files. Leave it out.")
        measure_files(judge, files, show or 0, options)
        return
    if show is not None:
        raise UserError("--show is for files, and none is named. Leave it out.")
    judge_runs(judge, results, study, run, limit, options)


@app.command()
def grade(
    file: Annotated[
        Path, typer.Argument(help="JSONL with `gold` and `response` a line; - reads stdin.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="JSONL of the verdicts, replaced whole; printed unless told."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(help="boxed, mcq, think, prose, or think+mcq, for lines that name none."),
    ] = "boxed",
    workers: Annotated[int, typer.Option(min=1, help="Processes that compare formulas.")] = 2,
    time_limit: Annotated[
        float, typer.Option(min=0.01, max=3600, help="Seconds of processor time an answer.")
    ] = 5.0,
) -> None:
    """Grade a file of golds and responses: a verdict a line, in the same order.

    Exit code 1: some line has no verdict (`correct` is null); 2: nothing could be graded.
    """
    from pipeline.grade import grade_file

    raise typer.Exit(int(grade_file(file, output, kind, workers, time_limit) > 0))


@app.command("results")
def write_results(
    study: Annotated[str, typer.Argument(help="A study that was analysed; its companions too.")],
    to: Annotated[Path, typer.Option(help="The page; its tables lie in a folder of its name.")],
    config: Config = CONFIG,
    results: Results = RESULTS,
) -> None:
    """Write what a study and its companions say to a Markdown page and CSV tables."""
    from exgrpo.studies import load_with_companions
    from pipeline.results import write_results as write_page

    write_page(load_with_companions(study, config), results, to)


@app.command()
def readme(study: StudyName = "tiny", config: Config = CONFIG, results: Results = RESULTS) -> None:
    """Put the closing table of a study into README.md, between its markers."""
    from pipeline.readme import update_readme

    changed = update_readme(load(study, config), results)
    print("README.md: updated" if changed else "README.md: up to date")


app.add_typer(plans)
app.add_typer(files)
app.add_typer(stages)


if __name__ == "__main__":
    main()
