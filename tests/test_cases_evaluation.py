"""Cases from public reports on evaluation (o61, o63, o65, o67), through the real importer."""

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from foreign_logs import Row, ask, write_lines
from typer.testing import CliRunner

from analysis.catalog import open_catalog
from analysis.queries import answer
from analysis.statistics import avg_at_k, pass_at_k
from exgrpo.errors import UserError
from exgrpo.golds import gold_of
from pipeline.cli import app
from pipeline.imports.command import import_file

COPIES, QUESTIONS = 32, 30

BY_QUESTION = """
select text, gold, count(*) as samples, count(*) filter (correct) as correct
from trajectories join questions using (question) group by text, gold order by gold::int
"""


def imported(tmp_path: Path, rows: Iterable[Row]) -> Path:
    results = tmp_path / "results"
    import_file(write_lines(tmp_path / "outputs.jsonl", rows), None, results)
    return results


def response(question: str, gold: object, answered: object) -> Row:
    return {"question": question, "gold": gold, "response": f"So it is \\boxed{{{answered}}}."}


def test_o61_copies_of_a_question_in_the_file_are_its_samples(tmp_path: Path) -> None:
    """avg@32 of a file that holds 32 copies of each question, one response each.

    Question q is right in its first q copies: 960 responses, and 30 questions that differ.
    """
    rows = [
        response(f"What is {q} + 0?", str(q), q if copy < q else q + 1)
        for copy in range(COPIES)
        for q in range(QUESTIONS)
    ]
    file = write_lines(tmp_path / "aime.jsonl", rows)
    results = tmp_path / "results"
    done = CliRunner().invoke(app, ["import", str(file), "--results", str(results)])
    assert done.exit_code == 0, done.output
    assert "30 questions, 960 responses, 435 right" in done.output
    found = ask(results, BY_QUESTION)
    assert found["samples"].to_list() == [COPIES] * QUESTIONS
    assert found["correct"].to_list() == list(range(QUESTIONS))
    shares = avg_at_k(found["correct"].to_numpy(), found["samples"].to_numpy())
    assert shares.mean() == pytest.approx(sum(range(QUESTIONS)) / COPIES / QUESTIONS)
    with open_catalog(results / "workbench.duckdb") as connection:
        buckets = answer(connection, "run_buckets", run="import-aime")
    assert buckets.rows() == [(q, COPIES, 1) for q in range(QUESTIONS)]


def test_o63_pass_at_k_of_few_samples(tmp_path: Path) -> None:
    answers = ("4", "5", "6", "7")
    found = ask(imported(tmp_path, [response("2+2?", "4", a) for a in answers]), BY_QUESTION)
    assert found.select("samples", "correct").row(0) == (4, 1)
    counts = found["correct"].to_numpy(), found["samples"].to_numpy()
    assert [pass_at_k(*counts, k).item() for k in (1, 2, 4)] == pytest.approx([0.25, 0.5, 1])


def test_o65_the_gold_is_the_single_item_of_a_list(tmp_path: Path) -> None:
    rows = [response(f"7 * 13? {n}", gold, 91) for n, gold in enumerate((["91"], "['91']"))]
    found = ask(imported(tmp_path, rows), BY_QUESTION)
    assert [row[1:] for row in found.rows()] == [("91", 1, 1)] * 2
    for gold in ([91], '["91"]', " ['91'] ", "91", 91):
        assert gold_of(gold, "here") == "91"


def test_o65_through_a_mapping_and_a_parquet_file(tmp_path: Path) -> None:
    rows = [{"ask": "7 * 13?", "truth": ["91"], "said": f"\\boxed{{{n}}}"} for n in (91, 92)]
    file = tmp_path / "outputs.parquet"
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("columns: {question: ask, gold: truth, response: said, step: one}\n")
    pl.DataFrame([{**row, "one": 1} for row in rows]).write_parquet(file)
    arguments = ["--mapping", str(mapping), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(app, ["import", str(file), *arguments])
    assert done.exit_code == 0, done.output
    assert ask(tmp_path / "results", BY_QUESTION).row(0)[1:] == ("91", 2, 1)


@pytest.mark.parametrize("gold", [["91", "92"], []])
def test_o65_other_lists_are_no_gold(gold: object, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"line 2: the gold is \["):
        imported(tmp_path, [response("1+1?", "2", 2), response("7 * 13?", gold, 91)])


def test_o65_an_interval_is_no_list(tmp_path: Path) -> None:
    results = imported(tmp_path, [response("Where?", "[91]", "[91]")])
    assert ask(results, "select gold from questions").item() == "[91]"


def test_o67_a_null_gold_is_named_and_left_out(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 1000 real questions one has no answer; a response that says None must not be right."""
    source = shared / "data/math-train/math-first1000.json"
    if not source.is_file():
        pytest.skip("needs ../shared/data/math-train, which is not part of the repo")
    items = json.loads(source.read_text())
    (null,) = [place for place, item in enumerate(items) if item["answer"] is None]
    around = items[null - 3 : null + 4]
    rows = [response(item["problem"], item["answer"], item["answer"]) for item in around]
    results = imported(tmp_path, rows)
    assert "left out: line 4: the gold is null" in capsys.readouterr().out
    found = ask(results, "select text, gold from questions")
    assert found.height == 6
    assert set(found["gold"]) == {item["answer"] for item in around} - {None}
    assert items[null]["problem"] not in set(found["text"])
    assert ask(results, "select count(*), count(correct) from trajectories").row(0) == (6, 6)


def test_o67_many_null_golds_are_counted_and_a_file_of_them_alone_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    null = [response(f"{n}?", None, "None") for n in range(14)]
    imported(tmp_path, [*null, response("1+1?", "2", 2)])
    said = capsys.readouterr().out
    assert said.count("the gold is null: no answer") == 10
    assert "4 more rows whose gold is null, left out too" in said
    with pytest.raises(UserError, match=r"(?s)no row that counts.*line 1: the gold is null"):
        import_file(write_lines(tmp_path / "null.jsonl", null), None, tmp_path / "other")
    assert not (tmp_path / "other").exists()
