"""Commands that look at one file or data set alone: no study, no results."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli_options import CONFIG, Config

files = typer.Typer()


@files.command()
def dataset(
    name: Annotated[str, typer.Argument(help="A file of <config>/datasets.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many, as a study would.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The study's questions.seed.")] = 0,
    config: Config = CONFIG,
) -> None:
    """Check a data set: its questions, what is left out and why, and three samples."""
    from pipeline.dataset import show_data_set

    show_data_set(name, config, limit, seed)


@files.command()
def history(
    file: Annotated[Path, typer.Argument(help="JSON: question -> its accuracies, by visit.")],
    group_size: Annotated[int, typer.Option(min=2, help="Rollouts of a visit, K.")] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
) -> None:
    """Drive the replay buffer with the accuracies of a recorded run."""
    from pipeline.history import run_history

    run_history(file, group_size, as_json)
