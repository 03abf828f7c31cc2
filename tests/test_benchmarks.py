"""A study of several loaded benchmarks: means over domains, claims, scores, and what shows them."""

import copy
import json
import re
import shutil
from pathlib import Path
from statistics import mean
from typing import Any

import duckdb
import polars as pl
import pytest
from lake_fixture import DemoResults
from lakes import LOADED, LOADED_QUESTIONS, loaded
from screens import open_screen, texts
from typer.testing import CliRunner

from analysis.catalog import open_catalog
from analysis.closing import HEADER
from analysis.closing import tested as words_of
from analysis.comparison import compare, domain_table, estimate, paired
from analysis.domains import weights
from analysis.drawing import study_facts
from analysis.errors import UserError
from analysis.queries import answer
from analysis.stage_outputs import read_stage_outputs
from analysis.statistics import permutation_p
from exgrpo.studies import Study
from pipeline.analyse import analyse
from pipeline.cli import app
from pipeline.report import make_report
from pipeline.summary import print_summary


@pytest.fixture(scope="module")
def many(
    tmp_path_factory: pytest.TempPathFactory, analysed: DemoResults
) -> tuple[Study, Path, dict[str, Any]]:
    """The study of loaded questions, and its comparison."""
    results = tmp_path_factory.mktemp("many") / "results"
    study = loaded(analysed, results)
    outputs = read_stage_outputs(results, study.name)
    assert outputs is not None
    return study, results, outputs.comparison


def accuracies(results: Path) -> dict[tuple[str, int | None, str], float]:
    """Accuracy by arm, seed and benchmark: the mean over questions of the share right."""
    with open_catalog(results / "workbench.duckdb") as connection:
        rows = connection.sql(
            "select arm, seed, benchmark, question, avg(correct::int) as accuracy "
            "from evaluations join runs using (run) where benchmark <> 'validation' group by all"
        ).pl()
    means = rows.group_by("arm", "seed", "benchmark").agg(pl.col("accuracy").mean())
    return {(arm, seed, name): value for arm, seed, name, value in means.iter_rows()}


def test_a_domain_is_the_unweighted_mean_over_its_benchmarks(
    many: tuple[Study, Path, dict[str, Any]],
) -> None:
    _, results, comparison = many
    own = accuracies(results)
    assert comparison["domains"] == {"in": ["aime", "math"], "out": ["gpqa"]}
    entries = {entry["arm"]: entry for entry in comparison["arms"]}

    def average(arm: str, seed: int | None) -> float:
        return (own[arm, seed, "aime"] + own[arm, seed, "math"]) / 2

    for arm, seeds in (("base", [None]), ("on_policy", [0, 1]), ("exgrpo", [0, 1])):
        found = entries[arm]["domains"]
        by_seed = [average(arm, seed) for seed in seeds]
        assert found["in"]["accuracy"]["by_seed"] == pytest.approx(by_seed)
        assert found["in"]["accuracy"]["questions"] == 5 + 12
        assert found["out"]["accuracy"] == entries[arm]["accuracy"]["gpqa"]
    difference = entries["exgrpo"]["domains"]["in"]["difference"]
    assert difference["value"] == pytest.approx(
        mean(average("exgrpo", seed) - average("on_policy", seed) for seed in (0, 1))
    )
    assert entries["on_policy"]["domains"]["in"]["difference"] is None


def test_claims_are_about_the_mean_over_benchmarks(
    many: tuple[Study, Path, dict[str, Any]],
) -> None:
    study, results, comparison = many
    claims = json.loads((results / study.name / "analyses" / "claims.json").read_text())["claims"]
    c1, c2 = (next(each for each in claims if each["id"] == name) for name in ("C1", "C2"))
    exgrpo = next(entry for entry in comparison["arms"] if entry["arm"] == "exgrpo")
    assert c1["value"] == pytest.approx(exgrpo["domains"]["in"]["difference"]["value"])
    assert c1["questions"] == 17 and "Mean over 2 benchmarks: aime, math." in c1["notes"]
    assert c2["value"] == pytest.approx(exgrpo["domains"]["out"]["difference"]["value"])
    assert "in distribution" in c1["estimand"] and "out of distribution" in c2["estimand"]
    with open_catalog(results / "workbench.duckdb") as connection:
        rows = answer(connection, "arm_accuracy", study=study.name)
    pairs = paired(*(domain_table(rows, arm, "in") for arm in ("exgrpo", "on_policy")))
    weighed = pairs.values * weights(pairs.benchmarks)
    assert c1["permutation_p"] == permutation_p(weighed)


def test_a_domain_with_a_benchmark_that_a_seed_lacks_has_no_mean(
    many: tuple[Study, Path, dict[str, Any]],
) -> None:
    study, results, _ = many
    with open_catalog(results / "workbench.duckdb") as connection:
        rows, *others = (
            answer(connection, name, study=study.name)
            for name in ("arm_accuracy", "arm_summary", "validation_accuracy")
        )
    lost = rows.filter(
        ~((pl.col("benchmark") == "aime") & (pl.col("seed") == 1) & (pl.col("arm") == "exgrpo"))
    )
    assert estimate(domain_table(rows, "exgrpo", "in")) is not None
    assert estimate(domain_table(lost, "exgrpo", "in")) is None
    never = rows.filter(~((pl.col("benchmark") == "aime") & (pl.col("arm") == "exgrpo")))
    for part, alone in ((lost, False), (never, True)):
        made = compare(part, *others)
        entry = next(each for each in made["arms"] if each["arm"] == "exgrpo")
        assert (entry["accuracy"]["aime"] is None) == alone
        assert entry["accuracy"]["math"] is not None and entry["difference"]["math"] is not None
        assert entry["domains"]["in"] == {"accuracy": None, "difference": None}
        assert entry["domains"]["out"]["difference"] is not None


# What shows them


def test_every_arm_has_its_scores_on_every_benchmark(
    many: tuple[Study, Path, dict[str, Any]],
) -> None:
    _, results, comparison = many
    own = accuracies(results)
    for entry in comparison["arms"]:
        assert set(entry["scores"]) == set(LOADED.benchmarks)
        for name, found in entry["scores"].items():
            assert found["k"] == (LOADED.benchmarks[name].samples or 1)
            assert found["questions"] == LOADED_QUESTIONS[name]
            seeds = entry["seeds"] or [None]
            average = mean(own[entry["arm"], seed, name] for seed in seeds)
            assert found["avg_at_k"]["value"] == pytest.approx(average)
            first, *_, last = found["by_k"] if found["k"] > 1 else found["by_k"] * 2
            assert first["k"] == 1 and last["k"] == found["k"]
            assert first["pass_at_k"] == pytest.approx(average)
            assert first["maj_at_k"] == pytest.approx(average)
            assert last["pass_at_k"] == pytest.approx(found["pass_at_k"]["value"])
            assert last["maj_at_k"] == pytest.approx(found["maj_at_k"]["value"])
            assert found["pass_at_k"]["value"] >= found["avg_at_k"]["value"] - 1e-9
            # An answer that could be read is right or not, and every right one could be read.
            assert found["accuracy_answered"] * found["answered"] == pytest.approx(
                share_right(results, entry["arm"], name)
            )
    aime = comparison["arms"][1]["scores"]["aime"]
    assert [at["k"] for at in aime["by_k"]] == [1, 2, 4, 8]
    assert aime["maj_at_k"]["value"] != pytest.approx(aime["avg_at_k"]["value"])
    assert 0 < aime["truncated"] < 1 and aime["tokens"] == 5


def share_right(results: Path, arm: str, benchmark: str) -> float:
    with open_catalog(results / "workbench.duckdb") as connection:
        found = connection.execute(
            "select avg(correct::int) from evaluations join runs using (run) "
            "where arm = ? and benchmark = ?",
            [arm, benchmark],
        ).fetchone()
    assert found is not None
    return float(found[0])


def run_scores(results: Path, *arguments: str) -> Any:
    return CliRunner().invoke(
        app, ["scores", "--study", "demo", "--results", str(results), *arguments]
    )


def test_the_command_shows_every_benchmark_with_its_interval(
    many: tuple[Study, Path, dict[str, Any]],
) -> None:
    _, results, comparison = many
    done = run_scores(results)
    assert done.exit_code == 0, done.output
    for entry in comparison["arms"]:
        made = entry["scores"]["aime"]["avg_at_k"]
        shown = f"{100 * made['value']:.1f} [{100 * made['low']:.1f}, {100 * made['high']:.1f}]"
        row = next(
            line for line in done.output.splitlines() if f"aime {entry['arm']}" in squeezed(line)
        )
        assert shown in row and "8" in row.split()
    assert "mean over 2 benchmarks in distribution" in squeezed(done.output)
    assert "last checkpoint" in done.output
    one = run_scores(results, "--benchmark", "aime")
    assert "gpqa" not in one.output and "maj@k" in one.output
    made = json.loads(run_scores(results, "--json", "--benchmark", "gpqa").output)
    assert {row["arm"] for row in made} == {"base", "on_policy", "exgrpo"}
    wrong = run_scores(results, "--benchmark", "none")
    assert "unknown benchmark 'none'. Known: aime, gpqa, math." in str(wrong.exception)
    nowhere = CliRunner().invoke(app, ["scores", "--study", "x", "--results", str(results)])
    assert "Run `exgrpo analyse --study x` first" in str(nowhere.exception)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_report_shows_benchmarks_and_is_true_of_loaded_questions(
    many: tuple[Study, Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    study, results, _ = many
    make_report(study, results)
    page = (results / study.name / "report.html").read_text().partition("</style>")[2]
    result = page[page.index('id="result"') : page.index('id="claims"')]
    assert "<td>aime</td>" in result and "avg@k" in result
    for part in (
        "base model small-model, trained on openr1",
        "12 of openr1 to train on",
        "aime (in distribution): aime, 8 answers each",
        "gpqa (out of distribution): gpqa, 2 answers each",
        "Tested: the last checkpoint.",
    ):
        assert part in page, part
    print_summary(study, results)
    lines = capsys.readouterr().out.splitlines()
    printed = squeezed(" ".join(lines))
    assert "base model small-model" in printed and "mean over 2 benchmarks" in printed
    row = next(line for line in lines if line.split()[:1] == ["on_policy"])
    cells = re.split(r"\s{2,}", row.strip())
    assert cells[HEADER.index("flawed")] == "-"  # nothing is known of chains
    assert "[" in cells[HEADER.index("accuracy")] and "%" in cells[HEADER.index("with signal")]


@pytest.mark.parametrize(
    ("checkpoint", "told", "words"),
    [
        ("final", True, "last checkpoint"),
        ("best", False, "checkpoint of the best validation"),
        ("best", True, "checkpoint chosen by test questions"),
    ],
)
def test_it_is_said_which_checkpoint_is_tested(
    checkpoint: str,
    told: bool,
    words: str,
    many: tuple[Study, Path, dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert words_of(checkpoint, told) == words
    study, results, _ = many
    (tmp_path / study.name).mkdir()
    (tmp_path / "workbench.duckdb").symlink_to(results / "workbench.duckdb")
    (tmp_path / study.name / "figures").symlink_to(results / study.name / "figures")
    runs = {
        run: each.model_copy(
            update={
                "evaluation": each.evaluation.model_copy(update={"checkpoint": checkpoint}),
                "questions": each.questions.model_copy(update={"validate_on_tests": told}),
            }
        )
        for run, each in study.runs.items()
    }
    chosen = study.model_copy(update={"runs": runs})
    analyse(chosen, tmp_path)
    make_report(chosen, tmp_path)
    page = (tmp_path / study.name / "report.html").read_text()
    assert f"Tested: the {words}" in page
    assert ("too high for questions that are new" in page) == ("chosen" in words)
    print_summary(chosen, tmp_path)
    assert words in squeezed(capsys.readouterr().out)
    assert words in run_scores(tmp_path).output
    for more in ([], ["--claim", "C1"]):
        asked = ["claims", "--study", study.name, "--results", str(tmp_path), *more]
        printed = CliRunner().invoke(app, asked).output
        assert ("Tested: the checkpoint chosen by test questions" in printed) == ("chosen" in words)


def test_screens_and_figures_say_that_test_questions_chose_the_checkpoint(
    many: tuple[Study, Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, results, _ = many
    shutil.copy(results / "workbench.duckdb", tmp_path)
    for name in ("lake", study.name):
        (tmp_path / name).symlink_to(results / name)
    asked = {"evaluation": {"checkpoint": "best"}, "questions": {"validate_on_tests": True}}
    with duckdb.connect(tmp_path / "workbench.duckdb") as connection:
        connection.execute(
            "update runs set settings = json_merge_patch(settings, ?)", [json.dumps(asked)]
        )
    for folder, said in ((results, False), (tmp_path, True)):
        monkeypatch.setenv("EXGRPO_RESULTS", str(folder))
        for screen in ("claims", "compare"):
            shown = [each.value for each in open_screen(screen, study=study.name).warning]
            assert any("chosen by test questions" in text for text in shown) == said
        with open_catalog(folder / "workbench.duckdb") as connection:
            facts = study_facts(study.name, answer(connection, "study_runs", study=study.name))
        assert ("chosen by test questions" in facts.subtitle("line: mean")) == said


def test_the_overview_has_a_table_of_benchmarks_where_there_are_many(
    many: tuple[Study, Path, dict[str, Any]],
    analysed: DemoResults,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(many[1]))
    test = open_screen("overview", section="accuracy")
    arms, benchmarks = (table.value for table in test.dataframe[:2])
    assert "[" in arms["to on-policy"].iloc[2]
    assert set(benchmarks["benchmark"]) == set(LOADED.benchmarks)
    assert "[" in benchmarks["avg@k"].iloc[0]
    titles = [
        note["text"]
        for note in json.loads(test.get("plotly_chart")[0].proto.spec)["layout"]["annotations"]
    ]
    assert titles[:2] == [
        "in distribution, mean of 2 benchmarks",
        "out of distribution, 1 benchmark",
    ]
    monkeypatch.setenv("EXGRPO_RESULTS", str(analysed.results))
    assert len(open_screen("overview").dataframe) == 1


AVERAGE = "the mean over 2 benchmarks in distribution"
VIEWS: list[tuple[str, dict[str, str], str]] = [  # a screen, its address, and what it must say
    ("overview", {"section": "curves"}, AVERAGE),
    ("overview", {"section": "claims"}, "2 seeds, 17 questions"),
    ("overview", {"section": "training"}, "Length, tokens"),
    ("overview", {"section": "observed"}, "no masked arm"),
    ("compare", {"benchmark": "aime"}, "2 pairs of runs (seeds 0, 1), 5 questions"),
    ("compare", {"on": "training"}, "Paired: 2 pairs of runs"),
    ("trajectories", {"source": "evaluation", "domain": "out"}, "60 samples"),
    ("claims", {"claim": "C1"}, "Mean over 2 benchmarks: aime, math."),
    ("claims", {"claim": "C15"}, "it needs a base model below 10 % right"),
    ("runs", {"view": "settings"}, "136 settings"),
]


@pytest.mark.parametrize(("name", "address", "said"), VIEWS)
def test_every_view_stands_on_loaded_questions(
    name: str,
    address: dict[str, str],
    said: str,
    many: tuple[Study, Path, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(many[1]))
    test = open_screen(name, study="demo", **address)
    assert not test.error
    assert said in re.sub(r"[\\*\u2060]", "", texts(test))


def test_an_analysis_of_another_version_is_to_be_made_again(
    many: tuple[Study, Path, dict[str, Any]], tmp_path: Path
) -> None:
    study, results, comparison = many
    analyses = tmp_path / study.name / "analyses"
    shutil.copytree(results / study.name / "analyses", analyses)
    older = copy.deepcopy(comparison)
    del older["arms"][0]["scores"]["aime"]["ungraded"]
    (analyses / "comparison.json").write_text(json.dumps(older))
    with pytest.raises(UserError, match="another version"):
        read_stage_outputs(tmp_path, study.name)
