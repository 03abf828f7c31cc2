"""The commands that the workflow calls: one a stage.

Every stage is imported inside its command: `exgrpo --help` stays fast, and the number of threads
is set before torch reads it.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli_options import (
    CONFIG,
    RESULTS,
    Config,
    HardwareName,
    Results,
    Run,
    StudyName,
    Threads,
    load,
)

if TYPE_CHECKING:
    from exgrpo.hardware import Hardware

stages = typer.Typer()


@stages.command()
def questions(
    study: StudyName = "tiny", config: Config = CONFIG, results: Results = RESULTS
) -> None:
    """Stage: make or load the questions of every split, with their prompts."""
    from pipeline.questions import make_questions

    make_questions(load(study, config), results, config)


@stages.command("base-model")
def base_model(
    study: StudyName = "tiny",
    config: Config = CONFIG,
    results: Results = RESULTS,
    threads: Threads = 1,
) -> None:
    """Stage: pretrain the model that training starts from."""
    _before_torch(threads)
    from pipeline.base_model import make_base_model

    make_base_model(load(study, config), results, threads)


@stages.command()
def train(
    run: Run,
    study: StudyName = "tiny",
    config: Config = CONFIG,
    results: Results = RESULTS,
    threads: Threads = 1,
    hardware: HardwareName = None,
) -> None:
    """Stage: train one run, from its last checkpoint on.

    Where the hardware has several processes, this launches them as `accelerate launch` does, and
    ends as they do: 0 when the run is trained, 75 when SIGTERM came and the step is saved, 2 for a
    mistake that one line tells. Several nodes: docs/processes.md.
    """
    given, threads = _given(hardware, config, threads)

    def stage() -> None:
        from pipeline.train import train_run

        train_run(load(study, config), run, results, threads, given)

    _in_all_processes(given, threads, stage)


@stages.command()
def evaluate(
    run: Run,
    study: StudyName = "tiny",
    config: Config = CONFIG,
    results: Results = RESULTS,
    threads: Threads = 1,
    hardware: HardwareName = None,
) -> None:
    """Stage: sample test questions with a trained model.

    Where the hardware has several processes, it launches them like `exgrpo train`.
    """
    given, threads = _given(hardware, config, threads)

    def stage() -> None:
        from pipeline.evaluate import evaluate_run

        evaluate_run(load(study, config), run, results, threads, given)

    _in_all_processes(given, threads, stage)


@stages.command()
def lake(
    entry: Annotated[str, typer.Option(help="A run id, or questions-<study>.")],
    study: StudyName = "tiny",
    config: Config = CONFIG,
    results: Results = RESULTS,
) -> None:
    """Stage: put the log of one run into the lake."""
    from pipeline.lake import add_study_entry
    from pipeline.study import write_study

    made = load(study, config)
    add_study_entry(made, entry, results)
    if not (results / study / "study.json").exists():  # the workflow's stays while it runs
        write_study(made, results)


@stages.command()
def catalog(
    study: Annotated[
        str | None, typer.Option(help="Also note for this study what the catalog holds.")
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            help="A lake elsewhere: a folder, or s3://bucket/path; <results>/lake unless told."
        ),
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Stage: build the read-only SQL catalog from the lake."""
    from pipeline.catalog import build_catalog

    build_catalog(results, study, lake)


@stages.command()
def analyse(study: StudyName = "tiny", config: Config = CONFIG, results: Results = RESULTS) -> None:
    """Stage: estimate every effect with its interval."""
    from pipeline.analyse import analyse as analyse_study

    analyse_study(load(study, config), results)


@stages.command()
def figures(study: StudyName = "tiny", config: Config = CONFIG, results: Results = RESULTS) -> None:
    """Stage: draw the figures."""
    from pipeline.figures import make_figures

    make_figures(load(study, config), results)


@stages.command()
def report(study: StudyName = "tiny", config: Config = CONFIG, results: Results = RESULTS) -> None:
    """Stage: write the self-contained HTML report."""
    from pipeline.report import make_report

    make_report(load(study, config), results)


@stages.command()
def summary(study: StudyName = "tiny", config: Config = CONFIG, results: Results = RESULTS) -> None:
    """Stage: print the closing table."""
    from pipeline.summary import print_summary

    print_summary(load(study, config), results)


def _given(name: str | None, config: Path, threads: int) -> "tuple[Hardware, int]":
    """The hardware of a command, and the threads of each process, which are set."""
    from exgrpo.hardware import CPU, load_hardware

    hardware = load_hardware(name, config) if name else CPU
    threads = hardware.threads or threads
    _before_torch(threads)
    return hardware, threads


def _in_all_processes(hardware: "Hardware", threads: int, stage: Callable[[], None]) -> None:
    """Do the stage if this process was launched for it, or launch those that do.

    Who was not launched takes the GPUs, for itself or for those. Only who starts launchers on all
    nodes takes none: the one on this node has to.
    """
    from pipeline.gpus import assigned, require_cuda

    if hardware.all_processes == 1 and "WORLD_SIZE" not in os.environ:
        with assigned(hardware.gpus):
            require_cuda(hardware)
            stage()
        return
    from pipeline.launch import in_slurm_alone, is_launched, launch, reporting, start_on_all_nodes

    if is_launched(hardware):
        with reporting():
            stage()
    elif in_slurm_alone(hardware, os.environ):
        start_on_all_nodes(hardware, sys.argv[1:])
    else:
        with assigned(hardware.gpus):
            require_cuda(hardware)
            launch(hardware, threads, sys.argv[1:])


def _before_torch(threads: int) -> None:
    # Numerical libraries read these once, when they are imported.
    for library in ("OMP", "MKL", "OPENBLAS", "VECLIB", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # our own lines say enough
