"""The page and tables of `exgrpo results`, from a real analysis and from planted verdicts."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from lake_fixture import DemoResults

from analysis.claims import Claim, Verdict, load_ledger
from analysis.markdown import markdown_table
from analysis.results_page import LOUD, ORDER, StudyResult, results_page, results_tables
from analysis.stage_outputs import Observed
from exgrpo.errors import UserError
from pipeline.results import write_results

COMPARISON = {
    "arms": [],
    "planned": {"exgrpo": 2},
    "benchmarks": [],
    "domains": {"in": [], "out": []},
    "tested": "last checkpoint",
}


def planted() -> StudyResult:
    """The first four claims of the ledger, one verdict of each word."""
    claims = load_ledger().claims[:4]
    words = ("supported", "not testable here", "inconclusive (underpowered)", "contradicted")
    made = Verdict(
        "", "supported", "Read.", 0.02, -0.01, 0.05, 0.99, power=0.4, seeds=3, notes=["By seed."]
    )
    verdicts: list[tuple[Claim, Verdict]] = [
        (claim, replace(made, claim=claim.id, verdict=word))
        for claim, word in zip(claims, words, strict=True)
    ]
    nothing = Verdict(claims[1].id, "not testable here", "Not testable here: no arm `x`.")
    verdicts[1] = (claims[1], nothing)
    return StudyResult(
        "study", "hard world", [("steps", "3")], COMPARISON, verdicts, [Observed("q", "Q?", ["A."])]
    )


def test_contradictions_come_first_and_every_claim_is_told() -> None:
    study = planted()
    page = results_page([study], "study.md")
    places = [page.index(f"### {word[0].upper()}{word[1:]}: 1") for word in ORDER]
    assert places == sorted(places)
    glance = page[page.index("## At a glance") : page.index("## `study`: hard world")]
    for claim, verdict in study.verdicts:
        assert f"| {claim.id} | {claim.short} |" in glance
        assert page.count(f"{claim.id}") >= 2, verdict
    assert "**contradicted**" in glance and "**supported**" in glance
    assert "**inconclusive**" not in glance
    loud = [claim for claim, verdict in study.verdicts if verdict.verdict in LOUD]
    for claim, _ in study.verdicts:  # what qualifies a verdict stands beside it
        said = f"{claim.statement.rstrip('.')}. By seed. Deviations: {claim.deviations}." in page
        assert said == (claim in loud), claim.id
    assert "no run finished yet: `exgrpo`." in page
    assert "no arm `x`" in page and "- A." in page and "- steps: 3" in page


def test_the_tables_hold_the_numbers_of_the_page() -> None:
    tables = results_tables([planted()])
    claims = tables["claims"]
    assert claims["verdict"].to_list() == [verdict.verdict for _, verdict in planted().verdicts]
    assert claims.filter(pl.col("verdict") == "not testable here")["value"].to_list() == [None]
    assert claims["power"].drop_nulls().unique().to_list() == [0.4]


def test_the_command_writes_what_the_analysis_found(analysed: DemoResults, tmp_path: Path) -> None:
    page = tmp_path / "docs" / "demo.md"
    write_results([analysed.study], analysed.results, page)
    text = page.read_text()
    for claim in load_ledger().claims:
        assert f"| {claim.id} |" in text
    assert "partial" in text or "whole" in text
    claims = pl.read_csv(tmp_path / "docs" / "demo" / "claims.csv")
    assert claims["claim"].to_list() == [claim.id for claim in load_ledger().claims]
    arms = pl.read_csv(tmp_path / "docs" / "demo" / "arms.csv")
    assert {"base", "on_policy", "exgrpo"} == set(arms["arm"])
    write_results([analysed.study], analysed.results, page)
    assert page.read_text() == text  # the same again


def test_a_study_without_analyses_is_an_error(demo: DemoResults, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exgrpo analyse --study demo"):
        write_results([demo.study], tmp_path, tmp_path / "page.md")


@pytest.mark.parametrize(
    ("name", "said"),
    [("page.csv", "ends in .md"), ("other.md", "no page of results"), ("taken.md", "no folder")],
)
def test_nothing_else_is_written_over(
    analysed: DemoResults, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "other.md").write_text("# Mine")
    (tmp_path / "taken").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UserError, match=said):
        write_results([analysed.study], analysed.results, tmp_path / name)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_are_no_markup() -> None:
    rows = [["<img src=x>", "a|b\\|c", "two\nlines"]]
    assert markdown_table(["x", "y", "z"], rows)[2] == r"| \<img src=x> | a\|b\\\|c | two lines |"
