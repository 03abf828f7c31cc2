"""The screen Claims: the ledger as a table, one claim in full, and what it rests on."""

import shutil
from pathlib import Path

import pytest
from lake_fixture import STUDY, DemoResults
from screens import open_screen, texts, write_import

from analysis.claims import Claim, Verdict, load_ledger
from analysis.figures import READINGS
from analysis.queries import named_queries
from analysis.stage_outputs import read_verdicts
from app.components import claim_table
from app.components.claim_card import how_tested, paper_facts, result_facts
from app.components.claim_evidence import FIGURES, figure_of, queries_of, rows_behind
from app.components.claim_interval import interval_figure
from app.components.plain import plain
from app.links import named_query, rows_query

LEDGER = {claim.id: claim for claim in load_ledger().claims}


def verdict(claim: str, word: claim_table.VerdictWord, **more: object) -> Verdict:
    return Verdict(claim, word, "Read.", **more)  # type: ignore[arg-type]


JUDGED: list[claim_table.Judged] = [
    (LEDGER["C1"], verdict("C1", "inconclusive (underpowered)")),
    (LEDGER["C2"], verdict("C2", "supported")),
    (LEDGER["C3a"], verdict("C3a", "not testable here")),
    (LEDGER["S1"], verdict("S1", "contradicted")),
]


def ids(found: list[claim_table.Judged]) -> list[str]:
    return [claim.id for claim, _ in found]


def test_the_ledger_is_filtered_and_ordered() -> None:
    listed = claim_table.listed
    assert ids(listed(JUDGED, "all", "all", "ledger")) == ["C1", "C2", "C3a", "S1"]
    assert ids(listed(JUDGED, "all", "all", "verdict")) == ["S1", "C2", "C1", "C3a"]
    assert ids(listed(JUDGED, "supported", "all", "ledger")) == ["C2"]
    assert ids(listed(JUDGED, "all", "counted", "ledger")) == ["S1"]
    assert ids(listed(JUDGED, "supported", "counted", "ledger")) == []
    unjudged: list[claim_table.Judged] = [(claim, None) for claim, _ in JUDGED]
    assert ids(listed(unjudged, "all", "tested", "verdict")) == ["C1", "C2", "C3a"]
    assert listed(unjudged, "supported", "all", "ledger") == []


def test_a_claim_is_named_whole_or_by_its_first_part() -> None:
    names = list(LEDGER)
    assert claim_table.chosen_claim(names, "C5") == "C5"
    assert claim_table.chosen_claim(names, "C4") == "C4a"
    assert claim_table.chosen_claim(names, None) is None
    assert claim_table.chosen_claim(names, "C99") is None
    assert claim_table.chosen_claim(names, "C") is None  # C1 is no part of C


def test_the_table_has_the_papers_figure_beside_ours() -> None:
    found = verdict("C1", "contradicted", value=-0.05, low=-0.1, high=-0.01, seeds=3, power=0.5)
    table = claim_table.claim_table([(LEDGER["C1"], found)])
    assert table.row(0, named=True) == {
        "id": "C1",
        "verdict": "✗ contradicted",
        "what is claimed": LEDGER["C1"].short,
        "the paper": "+3.0 points",
        "this study": "-5.0 points [-10.0, -1.0]",
        "from": "3 seeds",
        "power": "50 %",
        "where in the paper": "Table 1",
    }
    without = claim_table.claim_table([(LEDGER["C1"], None)]).columns
    assert without == ["id", "what is claimed", "the paper", "where in the paper"]


def test_every_verdict_has_a_mark_of_its_own() -> None:
    assert set(claim_table.MARKS) == set(claim_table.FIRST)
    assert len(set(claim_table.MARKS.values())) == 4


def test_what_a_verdict_holds_is_said_and_nothing_else() -> None:
    full = verdict(
        "C1", "supported", value=0.05, low=0.01, high=0.1, level=0.998, p=0.00001,
        smallest_effect=0.04, power=0.3, permutation_p=0.02, seeds=3, questions=400,
    )  # fmt: skip
    assert dict(result_facts(LEDGER["C1"], full, 16)) == {
        "This study": "+5.0 points [+1.0, +10.0]",
        "From": "3 seeds, 400 questions",
        "Level": "99.80 % interval, as Holm's rule grants it among 16 claims tested together",
        "p": "< 0.0001",
        "p by permutation": "0.0200, arms' labels exchanged within a question",
        "Smallest effect found": "4.0 points, in four of five such studies",
        "Power": "30 % to find 3.0 points",
    }
    assert result_facts(LEDGER["S1"], verdict("S1", "supported"), 16) == []
    assert dict(how_tested(LEDGER["C1"]))["Threshold"] == "0.0 points"
    assert "Threshold" not in dict(how_tested(LEDGER["S1"]))
    assert dict(paper_facts(LEDGER["C1"]))["Where"] == "Table 1"


@pytest.mark.parametrize("claim", LEDGER.values(), ids=list(LEDGER))
def test_what_a_claim_rests_on_can_be_opened(claim: Claim) -> None:
    assert set(queries_of(claim)) <= set(named_queries())
    assert figure_of(claim) is None or figure_of(claim) in READINGS
    rows = rows_behind(claim, "s")
    if rows is None:
        assert claim.asks == "paper" or not claim.arms
        return
    query = rows_query(**rows)  # fields that the screen Trajectories knows
    assert query["study"] == ["s"] and query["arms"] == claim.arms
    assert query.get("benchmark") == ([claim.benchmark] if claim.benchmark else None)
    assert query.get("domain") == ([claim.domain] if claim.domain else None)


def test_every_figure_is_one_of_a_test_of_the_ledger() -> None:
    assert FIGURES.keys() <= {claim.test for claim in LEDGER.values()}


def test_the_interval_is_drawn_with_threshold_and_effect() -> None:
    claim = LEDGER["C1"]
    found = verdict("C1", "supported", value=0.05, low=0.01, high=0.1)
    plot = interval_figure(claim, found, {"arms": ["exgrpo"]})
    ours, effect = plot.data
    assert ours.x == (0.05,) and ours.customdata == ({"arms": ["exgrpo"]},)
    assert ours.error_x.array[0] == pytest.approx(0.05)
    assert ours.error_x.arrayminus[0] == pytest.approx(0.04)
    assert effect.x == (0.03,) and plot.layout.shapes[0].x0 == 0.0
    assert list(plot.layout.xaxis.ticktext) == ["0.0 points", "+5.0 points", "+10.0 points"]


def test_the_address_of_a_named_query() -> None:
    assert named_query("group", study="s", run=["a", "b"]) == {
        "named": ["group"],
        "parameters": ["study=s", "run=a", "run=b"],
    }


def test_the_screen_shows_the_whole_ledger(results: Path) -> None:
    test = open_screen("claims")
    table = test.dataframe[0].value
    assert table["id"].to_list() == list(LEDGER)
    verdicts = read_verdicts(results, STUDY)
    assert verdicts is not None
    words = [found.verdict for _, found in verdicts]
    assert [text[2:] for text in table["verdict"]] == words
    assert f"– {words.count('not testable here')} not testable here" in texts(test)
    assert "Click on a claim" in texts(test) and "catalog built on" in texts(test)


def test_a_claim_of_the_address_is_shown_in_full(results: Path) -> None:
    test = open_screen("claims", study=STUDY, claim="C1", order="verdict")
    said = texts(test)
    assert f"**{plain(LEDGER['C1'].statement)}**" in said
    assert "**Estimand.**" in said and "**Deviations.**" in said and "**The paper.**" in said
    assert test.selectbox(key="Claims.order").value == "verdict"
    links = [item.proto.label for item in test.get("page_link")]
    assert "The rows behind it" in links and "Query arm_accuracy" in links
    assert "Settings of exgrpo" in links


def test_next_and_previous_claim_and_filters_are_in_the_address(results: Path) -> None:
    test = open_screen("claims", claim="C1")
    test.button(key="claims.Next").click().run()
    assert test.query_params["claim"] == "C2"
    test.button(key="claims.Previous").click().run()
    assert test.query_params["claim"] == "C1"
    assert test.button(key="claims.Previous").disabled
    test.selectbox(key="Claims.kind").set_value("counted").run()
    assert test.query_params["kind"] == "counted"
    assert all(name.startswith("S") for name in test.dataframe[0].value["id"])
    test.selectbox(key="Claims.kind").set_value("all").run()
    assert "kind" not in test.query_params
    test.button(key="claims.close").click().run()
    assert "claim" not in test.query_params


def test_nonsense_in_the_address_is_said_or_left_out(results: Path) -> None:
    test = open_screen("claims", claim="<b>C</b>", verdict="so so", kind="x", order="up")
    assert "none by the name" in test.warning[0].value
    assert test.dataframe[0].value.shape[0] == len(LEDGER)
    test = open_screen("claims", verdict="supported", kind="counted", study="no such")
    assert "does not hold the one" in texts(test)


def test_a_study_that_was_not_analysed_still_shows_what_is_claimed(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    shutil.rmtree(own.results / STUDY / "analyses", ignore_errors=True)
    test = open_screen("claims", claim="C4")
    assert "not analysed yet" in test.info[0].value
    assert test.code[0].value == f"exgrpo analyse --study {STUDY}"
    assert test.dataframe[0].value["id"].to_list() == list(LEDGER)
    assert "verdict" not in test.dataframe[0].value.columns
    assert plain(LEDGER["C4a"].statement) in texts(test)


def test_verdicts_of_another_version_are_said_and_the_ledger_is_shown(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    path = own.results / STUDY / "analyses" / "claims.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("{")
    test = open_screen("claims")
    assert "another version of the workbench" in test.code[0].value
    assert test.dataframe[0].value["id"].to_list() == list(LEDGER)


def test_imports_are_judged_by_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    write_import(tmp_path, ["4"], [1])
    test = open_screen("claims", claim="C1")
    assert "nothing is judged by them" in test.info[0].value
    assert test.dataframe[0].value["id"].to_list() == list(LEDGER)
