"""`exgrpo judge` end to end: import, judge, catalog, SQL; and what it says of files."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.catalog import open_catalog
from analysis.queries import answer, ask, named_queries
from exgrpo.errors import UserError
from exgrpo.judges import deterministic
from pipeline import judge as command
from pipeline.catalog import build_catalog
from pipeline.imports.command import import_file
from pipeline.judge import LlmOptions, judge_runs, make_judge
from pipeline.judge_files import measure_files
from pipeline.lake import judged_run
from tests.judge_server import Asked, Reply, says, serving

RESPONSES = {
    "sound": r"3 + 5 = 8, so \boxed{8}",
    "slip": r"3 + 5 = 9, no, \boxed{8}",
    "silent": r"Counting gives 8, so \boxed{8}",
    "code": "```python\nprint(3 + 5)\n```\n\\boxed{8}",
    "wrong": r"3 + 5 = 7, so \boxed{7}",
}


def write(path: Path, responses: list[str]) -> Path:
    """A log of verl with these responses to one question: its scores need no grader."""
    question = {"input": "What is 3 + 5?", "gts": "8", "step": 1}
    rows = [{**question, "output": each, "score": float("{8}" in each)} for each in responses]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log some.jsonl, and results that hold it."""
    folder = tmp_path_factory.mktemp("imported")
    log = write(folder / "some.jsonl", list(RESPONSES.values()))
    import_file(log, None, folder / "results")
    return folder


@pytest.fixture
def results(imported: Path, tmp_path: Path) -> Path:
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    return tmp_path / "results"


def sql(results: Path, query: str) -> pl.DataFrame:
    build_catalog(results)
    with open_catalog(results / "workbench.duckdb") as connection:
        return ask(connection, query).frame


def judged(results: Path, judge: str) -> dict[str, tuple[bool | None, str]]:
    """Verdict and reason by response, from the catalog."""
    found = sql(
        results,
        "select response, valid, reason from judgements join trajectories using (run, trajectory) "
        f"where judge = '{judge}'",
    )
    return {response: (valid, reason) for response, valid, reason in found.iter_rows()}


def test_right_answers_are_judged_into_the_catalog(results: Path) -> None:
    judge_runs("deterministic", results)
    found = judged(results, "deterministic")
    assert {name: found[text][0] for name, text in RESPONSES.items() if text in found} == {
        "sound": True,
        "slip": False,
        "silent": None,
        "code": None,
    }
    assert "3 + 5 = 9" in found[RESPONSES["slip"]][1]
    judge_runs("code", results, study="imports", runs=["import-some"])
    assert [text for text, (valid, _) in judged(results, "code").items() if not valid] == [
        RESPONSES["code"]
    ]
    entries = sql(results, "select entry, study, left_out from catalog_info order by all")
    assert entries.rows() == [
        ("import-some", "imports", None),
        ("judgements-code-import-some", "imports", None),
        ("judgements-deterministic-import-some", "imports", None),
    ]


def test_nothing_is_judged_twice(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_runs("deterministic", results)
    before = sql(results, "from judgements order by all")
    capsys.readouterr()
    judge_runs("deterministic", results)
    assert "0 judged now, 4 known; 4 in the lake" in capsys.readouterr().out
    assert sql(results, "from judgements order by all").equals(before)
    monkeypatch.setattr(deterministic, "VERSION", "other")
    judge_runs("deterministic", results)
    assert "4 judged now, 0 known" in capsys.readouterr().out
    versions = sql(results, "select version, count(*) from judgements group by all")
    assert versions.rows() == [("other", 4)]


def test_a_limit_takes_the_same_sample_and_takes_nothing_back(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_runs("code", results, limit=2)
    first = set(judged(results, "code"))
    assert len(first) == 2
    judge_runs("code", results, limit=3)
    assert "1 judged now, 2 known; 3 in the lake" in capsys.readouterr().out
    assert first < set(judged(results, "code"))
    judge_runs("code", results, limit=1)
    assert len(judged(results, "code")) == 3


def test_other_trajectories_under_the_old_name_lose_their_judgements(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_runs("deterministic", results)
    same = tmp_path / "some.jsonl"
    import_file(same, None, results)  # the same once more
    assert len(judged(results, "deterministic")) == 4
    import_file(write(same, [RESPONSES["slip"]]), None, results)
    assert "is dropped" in capsys.readouterr().out
    assert not judged(results, "deterministic")
    judge_runs("deterministic", results)  # what it says of this text is known
    assert "0 judged now, 1 known; 1 in the lake" in capsys.readouterr().out
    assert judged(results, "deterministic") == {RESPONSES["slip"]: (False, "wrong: 3 + 5 = 9")}


def test_a_catalog_brought_up_to_date_is_the_one_built_anew(results: Path) -> None:
    """A run's row is deleted by its id, which its judgements share: they come back, and once."""
    judge_runs("deterministic", results)
    judge_runs("code", results, limit=1)
    build_catalog(results)
    judge_runs("code", results)
    build_catalog(results)
    updated = sql(results, "from judgements order by all")
    (results / "workbench.duckdb").unlink()
    assert sql(results, "from judgements order by all").equals(updated)
    assert updated.height == 8


def test_every_named_query_answers(results: Path) -> None:
    judge_runs("deterministic", results)
    assert sql(results, "from judgements").height == 4
    with open_catalog(results / "workbench.duckdb") as connection:
        for name, query in named_queries().items():
            if not any(each.required for each in query.parameters.values()):
                answer(connection, name)
        found = answer(connection, "verifier_disagreement", study="imports")
    row = found.filter(judge="deterministic", against="correct").to_dicts()[0]
    assert (row["verdicts"], row["undecided"], row["both_yes"], row["exact_only"]) == (4, 2, 1, 1)


def test_a_model_judges_and_goes_on_after_an_interrupt(results: Path) -> None:
    def reply(asked: Asked) -> Reply:
        slip = "3 + 5 = 9" in asked.body["messages"][0]["content"]
        return says(r"A slip: \boxed{no}" if slip else r"Sound. \boxed{yes}")

    with serving(reply) as server:
        options = LlmOptions(server.address, "tiny", workers=2, temperature=0.6)
        real = command.judge_all

        def interrupted(*given: Any) -> Any:
            tally = real(given[0], list(given[1])[:2], *given[2:])
            assert tally.judged == 2
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "judge_all", interrupted)
            with pytest.raises(KeyboardInterrupt):
                judge_runs("llm", results, options=options)
        judge_runs("llm", results, options=options)
        assert len(server.asked) == 4
    found = judged(results, "llm")
    assert {text for text, (valid, _) in found.items() if valid is False} == {RESPONSES["slip"]}
    (version,) = sql(results, "select distinct version from judgements where judge = 'llm'").rows()
    assert version[0].startswith("tiny t=0.6 p=1 ")


def test_an_answer_that_is_refused_is_no_judgement(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reply(asked: Asked) -> Reply:
        slip = "3 + 5 = 9" in asked.body["messages"][0]["content"]
        return Reply(400, b"too \x1b[31mlong") if slip else says(r"\boxed{yes}")

    with serving(reply) as server:
        judge_runs("llm", results, options=LlmOptions(server.address, "tiny"))
    said = capsys.readouterr().out
    assert "1 answers got no verdict" in said
    assert "too" in said
    assert "\x1b" not in said
    assert len(judged(results, "llm")) == 3


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("oracle", LlmOptions(), "known are deterministic, code, llm"),
        ("llm", LlmOptions(), "--endpoint"),
        ("llm", LlmOptions("http://127.0.0.1:1/v1"), "--model"),
        ("code", LlmOptions(requests_per_minute=3), "--requests-per-minute"),
    ],
)
def test_options_that_do_not_fit(name: str, options: LlmOptions, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_judge(name, options)


def test_runs_that_are_not_there(results: Path) -> None:
    with pytest.raises(UserError, match="'import-other'"):
        judge_runs("code", results, runs=["import-other"])
    with pytest.raises(UserError, match="'tiny'"):
        judge_runs("code", results, study="tiny")


def test_the_run_of_an_entry() -> None:
    assert judged_run("judgements-llm-exgrpo-s0-1a2b") == "exgrpo-s0-1a2b"
    assert judged_run("import-judgements") is None


def test_files_are_measured_by_right_and_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.jsonl"
    rows = [{"question": "?", "gold": "8", "response": each} for each in RESPONSES.values()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    measure_files("deterministic", [path], show=1)
    said = capsys.readouterr().out
    assert "| some.jsonl | right | 4 | 1 | 1 | 2 | 1, 1, 0 |" in said
    assert "| some.jsonl | wrong | 1 | 0 | 1 | 0 | 0, 1, 0 |" in said
    assert "wrong: 3 + 5 = 9" in said
    measure_files("code", [path])
    assert "| some.jsonl | right | 4 | 3 | 1 | 0 | fence 1, print 1 |" in capsys.readouterr().out
    with pytest.raises(UserError, match="import"):
        measure_files("llm", [path])
