"""The command that says what a study needs before it runs."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli_options import CONFIG, RESULTS, Config, Results, load

plans = typer.Typer()


@plans.command()
def plan(
    study: Annotated[str, typer.Argument(help="A file of config/studies.")],
    hardware: Annotated[str | None, typer.Option(help="A file of config/hardware.")] = None,
    gpus: Annotated[
        int | None, typer.Option(min=0, help="GPUs of a node, in place of the file's.")
    ] = None,
    gpu_memory: Annotated[
        float | None, typer.Option(min=0.001, help="GB of each, in place of the file's.")
    ] = None,
    mean_response: Annotated[
        float | None, typer.Option(min=1, help="Tokens; the limit unless told.")
    ] = None,
    mean_prompt: Annotated[
        float | None, typer.Option(min=1, help="Tokens; measured or the limit unless told.")
    ] = None,
    success: Annotated[
        float, typer.Option(min=0, max=1, help="Share of rollouts that are right.")
    ] = 0.5,
    rollout_tokens_per_second: Annotated[
        float | None, typer.Option(min=0.001, help="Sampled on one GPU.")
    ] = None,
    update_tokens_per_second: Annotated[
        float | None, typer.Option(min=0.001, help="Through an update on one GPU.")
    ] = None,
    measured: Annotated[
        Path | None, typer.Option(help="Both from this file of benchmarks/gpu_check.py.")
    ] = None,
    config: Config = CONFIG,
    results: Results = RESULTS,
) -> None:
    """Say what a study needs before it runs: memory, tokens, disk, time; refuse what cannot fit."""
    from pipeline.plan import Options, show_plan

    rates = (rollout_tokens_per_second, update_tokens_per_second)
    options = Options(
        hardware, gpus, gpu_memory, mean_response, mean_prompt, success, *rates, measured
    )
    show_plan(load(study, config), config, results, options)
