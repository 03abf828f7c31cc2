"""Options that several commands share, and how they load what these name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from exgrpo.studies import Study

StudyName = Annotated[str, typer.Option("--study", help="A file of <config>/studies.")]
Config = Annotated[Path, typer.Option("--config", help="Folder of the studies and arms.")]
Results = Annotated[Path, typer.Option("--results", help="Folder of all results.")]
Run = Annotated[str, typer.Option("--run", help="Run id, as study.json lists them.")]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Processor threads to use.")]
HardwareName = Annotated[
    str | None,
    typer.Option("--hardware", help="A file of <config>/hardware: where it runs; one process."),
]

CONFIG, RESULTS, DEMO = Path("config"), Path("results"), Path("build/demo")


def load(name: str, config: Path) -> "Study":
    """The study of a command. Imported here, so that `exgrpo --help` stays fast."""
    from exgrpo.studies import load_study

    return load_study(name, config)
