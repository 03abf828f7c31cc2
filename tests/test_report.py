"""The report, the closing table and the README block of a small study."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from lake_fixture import DemoResults, make_results
from markupsafe import escape

import pipeline.figures
from analysis.claims import load_ledger
from analysis.closing import VERDICTS, closing_rows, duration, interval, percent
from analysis.errors import UserError as AnalysisError
from analysis.figures import READINGS
from analysis.stage_outputs import read_stage_outputs
from exgrpo.errors import UserError
from exgrpo.studies import ArmFile, Study
from pipeline.analyse import analyse, queries_needed
from pipeline.figures import make_figures
from pipeline.readme import BEGIN, END, update_readme
from pipeline.report import make_report
from pipeline.summary import WIDTH, print_summary


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    made = make_results(tmp_path_factory.mktemp("report"))
    analyse(made.study, made.results)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline.figures, "_browser", lambda: None)  # static images take long
        make_figures(made.study, made.results)
    return made


@pytest.fixture(scope="module")
def page(demo: DemoResults) -> str:
    make_report(demo.study, demo.results)
    return (demo.results / demo.study.name / "report.html").read_text()


class Links(HTMLParser):
    """What a browser would load or follow, and every id and script."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.followed: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.ids.append(values["id"] or "")
        if tag == "a":
            self.followed.append(values.get("href") or "")
        elif address := values.get("src") or values.get("href"):
            self.loaded.append(address)


def test_analyse_writes_every_answer(demo: DemoResults) -> None:
    folder = demo.results / demo.study.name / "analyses"
    assert {path.stem for path in folder.glob("*.parquet")} == {*queries_needed(load_ledger())}
    claims = json.loads((folder / "claims.json").read_text())
    assert [claim["id"] for claim in claims["claims"]] == [c.id for c in load_ledger().claims]
    assert all(claim["verdict"] for claim in claims["claims"])


def test_report_is_self_contained(page: str) -> None:
    links = Links()
    links.feed(page)
    assert links.loaded == []
    assert {link[1:] for link in links.followed} <= set(links.ids)
    assert all(link.startswith("#") for link in links.followed)
    assert set(READINGS) <= set(links.ids)
    assert len(links.ids) == len(set(links.ids))
    assert page.count("plotly.js v") == 1


def test_report_holds_what_was_run_and_found(demo: DemoResults, page: str) -> None:
    text = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    for part in (
        "hard world: base model pretrained on chains of 1 to 5 steps",
        "0123456789ab",
        "on_policy, exgrpo",
        "whole, all 4 runs",
        "make reproduce STUDY=demo",
        "2 seeds: intervals take Student&#39;s t with 1 degrees of freedom",
        "All seeds of a study share one base model",
    ):
        assert part in text, part
    outputs = read_stage_outputs(demo.results, demo.study.name)
    assert outputs is not None
    for claim, verdict in outputs.verdicts:
        tested = verdict.verdict != "not testable here"
        assert escape(claim.statement if tested else claim.short) in text, claim.id
    for observed in outputs.observed:
        assert all(str(escape(line)) in text for line in observed.lines), observed.name
    headers = re.findall(r"<th[^>]*>([^<]*)</th>", text)
    assert headers.count("change next") == 1 and "study" not in headers  # there is one study


def test_report_escapes_what_it_shows(demo: DemoResults, tmp_path: Path) -> None:
    hostile = demo.study.model_copy(update={"title": "<script>alert(1)</script>"})
    folder = tmp_path / demo.study.name
    folder.mkdir()
    for stage in ("analyses", "figures"):
        (folder / stage).symlink_to(demo.results / demo.study.name / stage)
    make_report(hostile, tmp_path)
    page = (folder / "report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_closing_table_fits_and_is_kept(
    demo: DemoResults, capsys: pytest.CaptureFixture[str]
) -> None:
    print_summary(demo.study, demo.results)
    printed = capsys.readouterr().out
    folder = demo.results / demo.study.name
    text = (folder / "summary.txt").read_text()
    assert [line.rstrip() for line in printed.splitlines()] == text.splitlines()
    assert max(map(len, text.splitlines())) <= WIDTH
    rows = closing_rows(json.loads((folder / "analyses" / "comparison.json").read_text()))
    assert [row[0] for row in rows] == ["base", "on_policy", "exgrpo"]
    for row in rows:
        line = next(line for line in text.splitlines() if line.split()[:1] == [row[0]])
        assert re.split(r"\s{2,}", line.strip()) == row
    markdown = (folder / "summary.md").read_text()
    outputs = read_stage_outputs(demo.results, demo.study.name)
    assert outputs is not None
    for claim, verdict in outputs.verdicts:
        if claim.unit == "counted":  # says nothing about the study
            assert not re.search(rf"\b{claim.id}\b", text)
        elif verdict.verdict == "not testable here":
            assert re.search(rf"Not testable here: [^.]*\b{claim.id}\b", markdown)
        else:
            assert re.search(rf"^  {claim.id} +\w", text, re.M)
            assert f"| {claim.id} | {claim.short} |" in markdown
    assert "| C1 |" in markdown and "C9a" in markdown
    assert markdown.count("| on_policy | 2 |") == 1


def test_a_partial_study_says_what_is_missing(
    demo: DemoResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 3 seeds and 3 arms planned there are 2 seeds of 2 arms."""
    results = Path(shutil.copytree(demo.results, tmp_path / "results"))
    arms = {**demo.study.arms, "shortest": ArmFile(title="of a later day")}
    study = demo.study.model_copy(update={"arms": arms, "seeds": [0, 1, 2]})
    analyse(study, results)
    print_summary(study, results)
    make_report(study, results)
    outputs = read_stage_outputs(results, study.name)
    assert outputs is not None
    rows = {row[0]: row[1:] for row in closing_rows(outputs.comparison)}
    assert list(rows) == ["base", "on_policy", "exgrpo", "shortest"]
    assert [row[0] for row in rows.values()] == ["-", "2 of 3", "2 of 3", "0 of 3"]
    assert rows["shortest"][1:] == ["-"] * 5
    folder = results / study.name
    text, markdown, page = (
        (folder / name).read_text() for name in ("summary.txt", "summary.md", "report.html")
    )
    for shown in (capsys.readouterr().out, text, markdown, page):
        assert "partial, 4 of 9 runs" in shown
        assert "Partial study" in shown
        assert "whole, all" not in shown
    assert "; 2 seeds, 6 steps." in markdown
    assert "2 seeds: intervals take Student" in page


def test_outputs_of_another_version_are_not_shown(demo: DemoResults, tmp_path: Path) -> None:
    analyses = tmp_path / demo.study.name / "analyses"
    shutil.copytree(demo.results / demo.study.name / "analyses", analyses)
    comparison = json.loads((analyses / "comparison.json").read_text())
    del comparison["planned"]
    (analyses / "comparison.json").write_text(json.dumps(comparison))
    with pytest.raises(AnalysisError, match=r"comparison\.json.*exgrpo analyse --study demo"):
        make_report(demo.study, tmp_path)


def test_cells() -> None:
    made = {"value": 0.5041, "low": 0.48, "high": 0.5289}
    assert interval(made) == "50.4 [48.0, 52.9]"
    assert interval(made, signed=True) == "+50.4 [+48.0, +52.9]"
    assert (interval(None), percent(None), duration(None)) == ("-", "-", "-")
    assert (percent(0.123), duration(59), duration(90)) == ("12.3 %", "59 s", "1.5 min")


def test_readme_block_alone_changes(demo: DemoResults, tmp_path: Path) -> None:
    print_summary(demo.study, demo.results)
    readme = tmp_path / "README.md"
    readme.write_text(f"# A\n\nbefore\n{BEGIN}\nof last week\n{END}\nafter\n")
    assert update_readme(demo.study, demo.results, readme)
    text = readme.read_text()
    assert text.startswith(f"# A\n\nbefore\n{BEGIN}\n\nStudy demo")
    assert f"\n{VERDICTS} Not testable here: " in text
    assert text.endswith(f"\n\n{END}\nafter\n")
    assert "of last week" not in text
    assert not update_readme(demo.study, demo.results, readme)


@pytest.mark.parametrize("text", ["no markers", f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_readme_without_its_markers_is_left_alone(
    demo: DemoResults, tmp_path: Path, text: str
) -> None:
    print_summary(demo.study, demo.results)
    readme = tmp_path / "README.md"
    readme.write_text(text)
    with pytest.raises(UserError, match="results:begin"):
        update_readme(demo.study, demo.results, readme)
    assert readme.read_text() == text


def test_stages_name_what_is_missing(demo: DemoResults, tmp_path: Path) -> None:
    for stage in (make_report, print_summary):
        with pytest.raises(UserError, match="exgrpo analyse --study demo"):
            stage(demo.study, tmp_path)
    (tmp_path / demo.study.name).mkdir()
    (tmp_path / demo.study.name / "analyses").symlink_to(
        demo.results / demo.study.name / "analyses"
    )
    with pytest.raises(
        UserError, match=rf"{len(READINGS)} figures missing.*exgrpo figures --study demo"
    ):
        make_report(demo.study, tmp_path)
    with pytest.raises(UserError, match="exgrpo summary --study demo"):
        update_readme(demo.study, tmp_path, tmp_path / "README.md")
    unknown: Study = demo.study.model_copy(update={"name": "other"})
    with pytest.raises(UserError, match="holds no run of study 'other'"):
        analyse(unknown, demo.results)
