"""Command: write what a study and its companions say to a page that is kept in the repository."""

from pathlib import Path

from analysis.closing import progress
from analysis.drawing import study_facts
from analysis.results_page import StudyResult, results_page, results_tables
from analysis.stage_outputs import read_stage_outputs
from exgrpo.records import write_whole
from exgrpo.studies import Study
from pipeline.analyse import not_analysed, read_frames
from pipeline.report import run_facts


def write_results(studies: list[Study], results: Path, page: Path) -> None:
    """Write the page, and its tables into the folder of its name beside it.

    studies: the one asked for first, then its companions; a companion that was not analysed is
    left out. Raises UserError when the first was not analysed.
    """
    analysed = [made for study in studies if (made := _result(study, results)) is not None]
    if not analysed or analysed[0].name != studies[0].name:
        raise not_analysed(results / studies[0].name / "analyses", studies[0].name)
    command = f"exgrpo results {studies[0].name} --to {page}"
    write_whole(page, results_page(analysed, command).encode())
    for name, table in results_tables(analysed).items():
        write_whole(page.with_suffix("") / f"{name}.csv", table.write_csv().encode())
    print(f"results: {page}, from {', '.join(study.name for study in analysed)}")


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
