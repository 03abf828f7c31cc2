"""The ledger: whole, each claim with a query and a test, figures of the paper never typed."""

import csv
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from analysis.claims import COUNTS, LEDGER, TESTS, load_ledger, show_paper
from analysis.claims.ledger import DEFAULTS, STATEMENTS, Test
from analysis.errors import UserError
from analysis.paper import QUESTIONS
from analysis.queries import named_queries
from pipeline.analyse import queries_needed

ROOT = Path(__file__).resolve().parents[1]
LEDGER_READ = load_ledger()
CLAIMS, NEEDED = LEDGER_READ.claims, queries_needed(LEDGER_READ)
NUMBER = re.compile(r"([CS]\d+)[a-z]?")


def number(name: str) -> str:
    """C9 for its part C9a."""
    match = NUMBER.fullmatch(name)
    assert match, name
    return match[1]


def test_the_ledger_is_whole() -> None:
    assert {number(claim.id) for claim in CLAIMS} == {
        *(f"C{n}" for n in range(1, 24)),
        *(f"S{n}" for n in range(1, 9)),
    }
    assert [claim.id[0] for claim in CLAIMS] == sorted(claim.id[0] for claim in CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_has_a_query_and_a_test(claim: Any) -> None:
    if claim.asks == "paper":
        assert claim.query in QUESTIONS and claim.test in COUNTS
    else:
        assert claim.query in named_queries() and claim.query in NEEDED
        assert {*claim.beside} <= {*NEEDED}
    assert (claim.test in TESTS) != (claim.test in COUNTS)
    assert (claim.unit == "counted") == (claim.test in COUNTS)
    stated = claim.test in TESTS and claim.test != "not_testable"
    assert (claim.effect is not None) == stated
    assert claim.effect is None or claim.effect > 0
    for text in (claim.short, claim.statement, claim.source, claim.paper, claim.scale):
        assert text and "{" not in text
    assert claim.estimand and claim.deviations


def test_every_test_has_a_claim() -> None:
    assert {*TESTS, *COUNTS} == {*get_args(Test)} == {claim.test for claim in CLAIMS}


def test_every_query_is_exercised_by_name_in_a_test() -> None:
    here = Path(__file__).resolve()
    tests = "".join(path.read_text() for path in here.parent.glob("test_*.py") if path != here)
    missing = [name for name in (*named_queries(), *QUESTIONS) if f'"{name}"' not in tests]
    assert not missing


def test_arms_and_claims_name_each_other() -> None:
    arms = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "config/arms").glob("*")
            if path.suffix == ".yaml"}  # fmt: skip
    known = {number(claim.id) for claim in CLAIMS}
    for arm, file in arms.items():
        assert {*file["claim"].split(", ")} <= known, arm
    for claim in CLAIMS:
        assert {*claim.arms} <= {*arms}, claim.id
        if claim.id[0] == "C" and claim.source != "ours":  # an arm stands for what it changes
            assert not claim.arms or any(
                number(claim.id) in arms[arm]["claim"].split(", ") for arm in claim.arms
            ), claim.id


def test_figures_of_the_paper_are_computed_not_typed() -> None:
    raw = [yaml.safe_load(path.read_text()) for path in (DEFAULTS, LEDGER, STATEMENTS)]
    texts = [
        entry["paper"]
        for file in raw
        for claim in (*file.get("defaults", {}).values(), *file.get("claims", []))
        for entry in (claim, *claim.get("parts", []))
        if "paper" in entry
    ]
    assert len(texts) > 20
    not_figures = r"\{.*?\}|Llama-3\.1|Section \d\.\d|beta 0\.1"
    assert not [text for text in texts if re.search(r"\d\.\d", re.sub(not_figures, "", text))]


def printed(method: str, backbone: str = "Qwen2.5-Math-7B") -> float:
    with (ROOT / "analysis/paper/printed_averages.csv").open() as file:
        (row,) = [
            row
            for row in csv.DictReader(file)
            if (row["method"], row["backbone"]) == (method, backbone)
            and row["domain"] == "in distribution"
        ]
    return float(row["average"])


def test_effects_are_the_gaps_of_the_paper() -> None:
    found = {claim.id: claim for claim in CLAIMS}
    for name, first, second in (
        ("C1", "ExGRPO", "on-policy"),
        ("C3a", "masked medium", "masked easy"),
        ("C9a", "ExGRPO", "highest entropy"),
        ("C11a", "ExGRPO", "w/o shaping"),
        ("C14c", "on-policy", "rho 75 %"),
        ("C17a", "mu 0.5, sigma 1", "retired review"),
        ("C20b", "ExGRPO", "on-policy"),
    ):
        gap = printed(first) - printed(second)
        assert found[name].effect == pytest.approx(gap / 100, abs=1e-6), name
        assert show_paper(found[name]) == f"{gap:+.1f} points"
    assert found["C1"].paper.startswith("48.3 against 45.3 points, +3.0; error of the gap")
    assert show_paper(found["C19"]) == "+19.0 %" and show_paper(found["C6a"]) == "-"
    assert show_paper(found["C4a"]) == "+0.020 nat/token"
    assert show_paper(found["C7a"]) == "+0.070 nat/token"
    assert show_paper(found["C7b"]) == "+10.2 points"
    assert "without Llama-3.1-8B, which gains 29.6, it is 3.2" in found["S4"].paper


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("alpha: 0.05", "alpha: 5"), ["`alpha`", "5"]),
        (("alpha: 0.05\n", "\n"), ["`alpha`", "missing"]),
        (("test: late_entropy_difference\n", "test: late\n"), ["'C12'", "`test`", "'late'"]),
        (("        threshold: 0.5\n", "        treshold: 0.5\n"), ["'C18a'", "treshold"]),
        (("id: C2\n", "id: C1\n"), ["'C1' is listed twice"]),
        (("alpha: 0.05", "alpha: [0.05"), ["no valid YAML"]),
        (("second: highest entropy", "second: highest"), ["'C9a'", "0 rows", "'highest'"]),
        (("{percent:+.1f}", "{per_cent:+.1f}"), ["'C19'", "per_cent"]),
        (("    effect: log_ratio", "    effect: logs"), ["'C19'", "logs"]),
    ],
)
def test_a_wrong_ledger_is_explained(
    tmp_path: Path, change: tuple[str, str], expected: list[str]
) -> None:
    text = LEDGER.read_text()
    assert change[0] in text
    broken = tmp_path / "claims.yaml"
    broken.write_text(text.replace(change[0], change[1], 1))
    with pytest.raises(UserError) as error:
        load_ledger(broken)
    for part in [str(broken), *expected]:
        assert part in str(error.value)


def test_a_default_of_no_test_is_explained(tmp_path: Path) -> None:
    broken = tmp_path / "claim_defaults.yaml"
    broken.write_text(DEFAULTS.read_text().replace("  weight_formula: *log", "  weights: *log"))
    with pytest.raises(UserError) as error:
        load_ledger(defaults=broken)
    assert str(broken) in str(error.value) and "weights" in str(error.value)
