"""Which named queries an import can answer: said in the summary, and true."""

from pathlib import Path

import pytest
from foreign_logs import prime_rl, verl, write_lines

from analysis.catalog import open_catalog
from analysis.lake import Entry, read_entries
from analysis.queries import answer
from pipeline.imports.command import import_file
from pipeline.imports.unlocks import contents, describe, needs


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two logs: texts and scores of verl, and tokens of prime-rl; three steps each."""
    folder = tmp_path_factory.mktemp("unlocks")
    for step in (1, 2, 3):
        scores = [float(n < step) for n in range(4)]
        rows = [
            verl(question, n, score, step) for question in (1, 2) for n, score in enumerate(scores)
        ]
        write_lines(folder / "texts" / f"{step}.jsonl", rows)
        export = folder / "tokens" / "token_exports" / f"step_{step}"
        rows = [
            prime_rl([7, 8], [10 + n, 3, 2], score, step=step, export_step=step)
            for n, score in enumerate(scores)
        ]
        write_lines(export / "rank_0.jsonl", rows)
        (export / "STABLE").touch()
    import_file(folder / "texts", None, folder / "results")
    import_file(folder / "tokens", None, folder / "results")
    return folder / "results"


def test_the_summary_names_tables_and_columns_with_nothing_in_them(results: Path) -> None:
    found = contents(entry_of(results, "texts"), results / "lake")
    with open_catalog(results / "workbench.duckdb") as connection:
        said = describe(found, needs(connection, found)).splitlines()
    assert any(line.startswith("  visits: level, bucket_drawn, mean_entropy, ") for line in said)
    assert any(line.startswith("named queries that it answers: bucket_trans") for line in said)
    assert "  entropy_by_correctness: mean_entropy" in said
    assert any(line.startswith("  question_flips: table experience") for line in said)
    assert not any(line.startswith("  learning_curve:") for line in said)  # of evaluations alone


def entry_of(results: Path, name: str) -> Entry:
    return next(e for e in read_entries(results / "lake") if e.entry == f"import-{name}")


def unlocked(results: Path, name: str) -> dict[str, list[str]]:
    """Query -> columns that it misses, of queries whose tables are all there."""
    found = contents(entry_of(results, name), results / "lake")
    with open_catalog(results / "workbench.duckdb") as connection:
        every = needs(connection, found)
    return {need.query: need.columns for need in every if not need.missing}


def test_what_is_missing_is_named(results: Path) -> None:
    texts, tokens = unlocked(results, "texts"), unlocked(results, "tokens")
    assert texts["bucket_transitions"] == tokens["bucket_transitions"] == []
    assert texts["entropy_by_correctness"] == ["mean_entropy"]
    assert tokens["entropy_by_correctness"] == tokens["entropy_position_profile"] == []
    assert texts["duplicate_trajectories"] == []
    assert tokens["duplicate_trajectories"] == ["distinct", "distinct_plain"]  # no texts
    assert "checked" in texts["snowball"] and "replayed" in texts["snowball"]  # zero throughout
    assert not {"learning_curve", "passk_curve", "selection_audit"} & (texts.keys() | tokens.keys())
    assert "entropy_position_profile" not in texts


def test_queries_that_are_said_to_answer_have_rows(results: Path) -> None:
    with open_catalog(results / "workbench.duckdb") as connection:
        for run, queries in (
            ("import-texts", ["bucket_transitions", "duplicate_trajectories"]),
            ("import-tokens", ["bucket_transitions", "entropy_by_correctness"]),
        ):
            for query in queries:
                assert answer(connection, query, run=[run]).height > 0, query
