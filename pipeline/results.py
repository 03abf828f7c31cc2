"""Command: write what a study and its companions say to a page that is kept in the repository."""

from pathlib import Path

from analysis.closing import progress
from analysis.drawing import study_facts
from analysis.results_page import HEADING, StudyResult, results_page, results_tables
from analysis.stage_outputs import read_stage_outputs
from exgrpo.errors import UserError
from exgrpo.records import write_whole
from exgrpo.studies import Study
from pipeline.analyse import not_analysed, read_frames
from pipeline.report import run_facts


def write_results(studies: list[Study], results: Path, page: Path) -> None:
    """Write the page, and its tables into the folder of its name beside it.

    studies: the one asked for first, then its companions; a companion that was not analysed is
    left out. Raises UserError when the first was not analysed.
    """
    _check_page(page)
    analysed = [made for study in studies if (made := _result(study, results)) is not None]
    if not analysed or analysed[0].name != studies[0].name:
        raise not_analysed(results / studies[0].name / "analyses", studies[0].name)
    for other in analysed[1:]:
        if [claim for claim, _ in other.verdicts] != [claim for claim, _ in analysed[0].verdicts]:
            raise UserError(
                f"{other.name} was judged by another ledger than {analysed[0].name}. "
                f"Run `exgrpo analyse --study` for both again."
            )
    for name, table in results_tables(analysed).items():
        write_whole(page.with_suffix("") / f"{name}.csv", table.write_csv().encode())
    write_whole(page, results_page(analysed, page.name).encode())
    print(f"results: {page}, from {', '.join(study.name for study in analysed)}")


def _check_page(page: Path) -> None:
    """Only a page of results is written over, and its folder of tables is none of a file."""
    if page.suffix != ".md":
        raise UserError(f"--to {page}: no Markdown file. Name one that ends in .md.")
    if page.exists() and not (page.is_file() and page.read_bytes().startswith(HEADING.encode())):
        raise UserError(f"--to {page}: is there and no page of results. Name another file.")
    if (folder := page.with_suffix("")).exists() and not folder.is_dir():
        raise UserError(f"{folder}: the tables go there, and it is no folder. Name another page.")


def _result(study: Study, results: Path) -> StudyResult | None:
    outputs = read_stage_outputs(results, study.name)
    if outputs is None:
        return None
    runs = read_frames(results / study.name / "analyses")["study_runs"]
    world = study_facts(study.name, runs).world
    return StudyResult(
        name=study.name,
        world=world,
        facts=[
            ("study", f"`{study.name}`, {progress(outputs.comparison)}"),
            *run_facts(study, runs),
        ],
        comparison=outputs.comparison,
        verdicts=outputs.verdicts,
        observed=outputs.observed,
    )
