"""`exgrpo judge` end to end: import, judge, catalog, SQL; and what it says of files."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from analysis.catalog import open_catalog
from analysis.queries import answer, ask, named_queries
from exgrpo.errors import UserError
from exgrpo.judges import deterministic
from exgrpo.judges.asking import Tally
from pipeline import judge as command
from pipeline.catalog import build_catalog
from pipeline.imports.command import import_file
from pipeline.judge import LlmOptions, judge_runs
from pipeline.judge_files import measure_files
from pipeline.judge_lake import only_judge
from pipeline.lake import judged_run
from tests.judge_server import Asked, Reply, says, script, serving

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
    assert "0 judged now, 4 known; in the lake: 4 distinct" in capsys.readouterr().out
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
    assert "1 judged now, 2 known; in the lake: 3 distinct" in capsys.readouterr().out
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
    assert "0 judged now, 1 known; in the lake: 1 distinct" in capsys.readouterr().out
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


def test_a_catalog_older_than_the_lake_is_refused(results: Path, tmp_path: Path) -> None:
    """Ids are places in the file, so the old answers' verdicts would fit the new ones."""
    catalog, kept = results / "workbench.duckdb", tmp_path / "kept.duckdb"
    shutil.copyfile(catalog, kept)
    import_file(write(tmp_path / "some.jsonl", list(RESPONSES.values())[::-1]), None, results)
    shutil.copyfile(kept, catalog)
    with pytest.raises(UserError, match=r"import-some.*run `exgrpo catalog` first"):
        judge_runs("deterministic", results)
    build_catalog(results)
    judge_runs("deterministic", results)
    assert judged(results, "deterministic")[RESPONSES["slip"]][0] is False


def test_a_run_that_changes_while_it_is_judged_gets_no_judgements(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, other = command.judge_all, tmp_path / "other"
    import_file(write(tmp_path / "some.jsonl", [RESPONSES["slip"]]), None, other)

    def slow(*given: Any) -> Any:
        tally = real(*given)
        shutil.copytree(other / "lake", results / "lake", dirs_exist_ok=True)
        return tally

    monkeypatch.setattr(command, "judge_all", slow)
    with pytest.raises(UserError, match="run `exgrpo catalog` first"):
        judge_runs("deterministic", results)
    assert not (results / "lake" / "entries" / "judgements-deterministic-import-some.json").exists()


def test_a_catalog_of_another_lake_is_refused(results: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    build_catalog(own, elsewhere=str(results / "lake"))
    with pytest.raises(UserError, match="import-some") as error:
        judge_runs("deterministic", own)
    assert str(own / "lake") in str(error.value)
    assert f"built from {results / 'lake'}." in str(error.value)
    assert not (own / "lake").exists()


def test_a_new_version_without_a_verdict_takes_nothing_back(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_runs("deterministic", results)
    before = sql(results, "from judgements order by all")
    log = results / "judgements" / "deterministic" / "import-some" / "log" / "manifest.jsonl"
    monkeypatch.setattr(deterministic, "VERSION", "other")
    monkeypatch.setattr(command, "judge_all", lambda *_: Tally())
    capsys.readouterr()
    judge_runs("deterministic", results)
    said = "0 judged now, 0 known; none by this version; the lake keeps 4 judgements of others"
    assert said in capsys.readouterr().out
    assert log.is_file()
    assert sql(results, "from judgements order by all").equals(before)


def test_equal_answers_are_counted_once_and_all_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit counts trajectories; those with the same answer come along."""
    results = tmp_path / "results"
    same = [RESPONSES["sound"]] * 5
    import_file(write(tmp_path / "some.jsonl", same), None, results)
    judge_runs("code", results, limit=2)
    said = (
        "1 judged now, 1 known; in the lake: 1 distinct answers judged, which 5 trajectories gave"
    )
    assert said in capsys.readouterr().out


def test_two_at_once_do_not_mix(results: Path) -> None:
    with only_judge("code", results):
        with pytest.raises(UserError, match=r"judgements/code: another .* is at work"):
            judge_runs("code", results)
        judge_runs("deterministic", results)  # another judge has its own logs
    judge_runs("code", results)


def test_a_file_in_the_place_of_a_folder_is_told(results: Path) -> None:
    (results / "judgements").mkdir()
    (results / "judgements" / "code").write_text("mine")
    with pytest.raises(UserError, match="judgements/code: no folder to write judgements in"):
        judge_runs("code", results)
    assert (results / "judgements" / "code").read_text() == "mine"


def test_results_that_cannot_be_written_are_told(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UserError, match=r"judgements/code.*Read-only file system.*Allow writing"):
        judge_runs("code", results)


def test_a_catalog_of_another_version_is_told(results: Path) -> None:
    catalog = results / "workbench.duckdb"
    catalog.unlink()
    with duckdb.connect(catalog) as other:
        other.execute("CREATE TABLE runs (run TEXT)")
    with pytest.raises(UserError, match=r"workbench\.duckdb.*Build it anew: `exgrpo catalog`"):
        judge_runs("code", results)


def test_it_fails_when_no_answer_got_a_verdict(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda _: Reply(400, b"too long")) as server:
        options = LlmOptions(server.address, "tiny")
        with pytest.raises(UserError, match=r"4 answers got no verdict, and none.*too long"):
            judge_runs("llm", results, options=options)
    assert "none by this version" in capsys.readouterr().out


def test_the_first_request_made_again_is_printed(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(script(Reply(429, b"slow \x1b[31mdown"), says(r"\boxed{yes}"))) as server:
        judge_runs("llm", results, options=LlmOptions(server.address, "tiny"))
    said = capsys.readouterr().out
    assert "asking again" in said
    assert "HTTP 429" in said
    assert "\x1b" not in said


def test_runs_that_are_not_there(results: Path) -> None:
    with pytest.raises(UserError, match="'import-other'"):
        judge_runs("code", results, runs=["import-other"])
    with pytest.raises(UserError, match=r"--study 'tiny': .* It has: imports"):
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
