"""`exgrpo claims`: the ledger alone, as a study judged it, and all about one claim."""

import json
from pathlib import Path

import pytest
from lake_fixture import STUDY, DemoResults
from typer.testing import CliRunner

from analysis.claims import load_ledger, show_paper
from analysis.errors import UserError
from analysis.paper import QUESTIONS, ask, paper_queries
from exgrpo.errors import UserError as StageError
from pipeline.claims import show_claims, show_paper_tables
from pipeline.cli import app

CLAIMS = load_ledger().claims


def printed(results: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["claims", "--results", str(results), *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_ledger_needs_no_results(tmp_path: Path) -> None:
    text = printed(tmp_path)
    assert text.startswith("No study is asked")
    for claim in CLAIMS:
        line = next(line for line in text.splitlines() if line.split()[:1] == [claim.id])
        assert show_paper(claim) in line
        assert ("contradicted" in line) == (claim.asks == "paper")
    assert max(map(len, text.splitlines())) <= 110


def test_the_ledger_as_a_study_judged_it(analysed: DemoResults) -> None:
    judged = json.loads(printed(analysed.results, "--study", STUDY, "--json"))
    assert [claim["id"] for claim in judged] == [claim.id for claim in CLAIMS]
    text = printed(analysed.results, "--study", STUDY)
    assert text.startswith(f"study {STUDY}")
    for claim in judged:
        line = next(line for line in text.splitlines() if line.split()[:1] == [claim["id"]])
        assert claim["verdict"].split()[0] in line
    first = judged[0]
    assert first["verdict"] == "inconclusive (underpowered)"
    about = printed(analysed.results, "--study", STUDY, "--claim", "C1")
    for part in (
        first["statement"],
        first["paper"],
        first["deviations"],
        first["reading"],
        f"{first['power']:.2f} for 3.0 points",
        f"permutation p {first['permutation_p']:.4f}",
        f"2 seeds, {first['questions']} questions",
        *first["notes"],
    ):
        assert part in about


def test_a_claim_stands_for_its_parts(tmp_path: Path) -> None:
    parts = [line.split()[0] for line in printed(tmp_path, "--claim", "C9").splitlines() if line]
    assert [word for word in parts if word.startswith("C")] == ["C9a", "C9b", "C9c", "C9d"]
    parts = json.loads(printed(tmp_path, "--claim", "C10", "--json"))
    assert [claim["id"] for claim in parts] == [f"C10{part}" for part in "abcdefg"]
    one = json.loads(printed(tmp_path, "--claim", "C9b", "--json"))
    assert [claim["id"] for claim in one] == ["C9b"]


def test_what_the_papers_tables_say_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show_paper_tables()
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.split()]
    assert {*QUESTIONS} <= {*listed}
    for name in ("masked_batches", "benchmark_gains", "recomputed_averages"):
        show_paper_tables(name)
        text, frame = capsys.readouterr().out, ask(name)
        assert text.startswith(paper_queries()[name].purpose)
        for column in frame.columns:
            assert f"\n{column}: " in text
        first = frame.row(0)
        assert all(f"{value:.4g}" in text for value in first if isinstance(value, float))
        assert len(text.splitlines()) > frame.height + len(frame.columns)
    with pytest.raises(UserError, match=r"unknown question 'masked' about the paper\. Known: rec"):
        show_paper_tables("masked")


def test_wrong_names_are_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown claim 'C91'\. Known: C1, C2, C3a, "):
        show_claims(tmp_path, claim="C91")
    with pytest.raises(StageError, match=r"claims\.json: missing\. Run `exgrpo analyse"):
        show_claims(tmp_path, study="tiny")
