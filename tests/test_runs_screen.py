"""The screen Runs: the list, settings, provenance, data quality, and two runs held together."""

import json
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest
from golden_lake import LAKE, rows
from lake_fixture import STUDY, DemoResults
from screens import open_screen, texts, write_import

from analysis.data_quality import Check, token_checks
from analysis.errors import UserError
from analysis.provenance import (
    CatalogFacts,
    attempts_of,
    catalog_facts,
    judged_at,
    lake_files,
    origin,
)
from analysis.settings_diff import Difference
from app.components.plain import plain
from app.components.run_quality import behind_heading, rows_behind
from app.components.run_tables import (
    check_table,
    difference_table,
    origin_table,
    run_list,
    settings_table,
)


def a_run(**more: object) -> dict[str, object]:
    names = ("world", "base_model", "tokenizer", "commit", "hardware", "started", "finished")
    more_names = ("seconds", "attempts", "settings_hash", "status", "versions")
    return dict.fromkeys((*names, *more_names)) | more


def test_where_a_run_comes_from_leaves_out_what_is_not_known() -> None:
    run = a_run(commit="abc", versions='{"python": "3.11", "torch": null}', status="done")
    found = {"commit": "abc", "versions.python": "3.11", "versions.torch": None}
    assert origin(run) == found
    table = dict(origin_table(run, None).rows())
    assert table == {"status": "done", "commit": "abc", "versions.python": "3.11"}
    assert origin(a_run(versions="no JSON")) == origin(a_run(versions="[1]")) == {}


def test_the_list_says_how_far_a_run_came() -> None:
    run = {
        "arm": "a", "seed": 0, "status": "stopped", "steps": 3, "planned": 10, "seconds": 75.0,
        "sampled_tokens": 5, "trained_tokens": 6, "attempts": 1, "commit": "c",
        "started": "2026-01-02T03:04:05+00:00", "finished": None, "hardware": "h", "run": "r",
    }  # fmt: skip
    whole = {"steps": 10, "status": "done"}
    unplanned = {"planned": None, "status": "odd", "seconds": None}
    none = unplanned | {"steps": None}
    rows = [run, run | whole, run | unplanned, run | none]
    table = run_list(pl.DataFrame(rows, schema_overrides={"finished": pl.String}))
    assert table["steps"].to_list() == ["3 of 10", "10", "3", ""]
    assert table["status"].to_list() == ["■ stopped", "✓ done", "odd", "odd"]
    assert table["time"].to_list() == ["1:15", "1:15", "", ""]
    assert table["started"][0] == "2026-01-02 03:04:05" and table["finished"][0] is None


def test_settings_and_differences_as_tables() -> None:
    table = settings_table({"a.b": True, "c": None})
    assert table.rows() == [("a.b", "true", "yes or no"), ("c", "null", "")]
    found = [Difference("a", "1", None), Difference("b", None, '"x"')]
    table = difference_table(found, "one", "one")
    assert table.columns == ["setting", "A: one", "B: one"]
    assert table.rows() == [("a", "1", "(not set)"), ("b", "(not set)", '"x"')]


@pytest.mark.parametrize("names", [("setting", "x"), ("x", "setting"), ("A: x", "B: x")])
def test_runs_of_any_name_are_columns_of_their_own(names: tuple[str, str]) -> None:
    table = difference_table([Difference("a", "1", "2")], *names)
    assert table.rows() == [("a", "1", "2")] and len(set(table.columns)) == 3


def test_the_name_of_a_judge_is_no_markup() -> None:
    hostile = "Verdicts of judge <b>[x](http://a.b)</b> against `correct`"
    said = behind_heading(Check("judge_0", hostile, 1, 1234, ""))
    assert said == f"**{plain(hostile)}**: 1 of 1,234." and "[x](" not in said


def test_checks_as_a_table_have_a_word_and_a_sign() -> None:
    checks = [
        Check("a", "A", 1, 3, "So."),
        Check("b", "B", 0, 3, "So."),
        Check("c", "C", 0, 0, "So."),
        Check("d", "D", 1, 10_000, "So."),
    ]
    table = check_table(checks)
    assert table[""].to_list() == ["! look", "✓ ok", "– nothing to check", "! look"]
    assert table["share"].to_list() == ["33.3 %", "0 %", "", "< 0.1 %"]
    assert rows_behind(Check("skipped", "S", 1, 2, "", step=4)) == {"step_min": 4, "step_max": 4}
    assert rows_behind(Check("ungraded", "S", 1, 2, "")) == {"ungraded": True}
    assert rows_behind(Check("schema", "S", 1, 2, "")) is None


def test_the_files_of_a_run_and_their_schema_version(golden: duckdb.DuckDBPyConnection) -> None:
    run = next(row["run"] for row in rows("runs") if row["arm"] == "exgrpo")
    files = lake_files(golden, LAKE.parent, run)
    entry = json.loads((LAKE / "entries" / f"{run}.json").read_text())
    assert {name: (rows, size) for name, rows, size, *_ in files.rows()} == {
        name: (file["rows"], file["bytes"]) for name, file in entry["tables"].items()
    }
    assert set(files["schema"]) == {"3"}
    assert files["sha256"][0] == entry["tables"][files["table"][0]]["sha256"][:12]
    assert lake_files(golden, LAKE.parent, "no such run").is_empty()


def test_what_the_catalog_says_of_a_study(golden: duckdb.DuckDBPyConnection) -> None:
    entries = [json.loads(path.read_text()) for path in (LAKE / "entries").glob("*.json")]
    mine = [entry for entry in entries if entry["study"] == "golden"]
    facts = catalog_facts(golden, "golden")
    assert facts is not None and (facts.entries, facts.left_out) == (len(mine), ())
    assert facts.rows == sum(file["rows"] for entry in mine for file in entry["tables"].values())
    assert isinstance(facts, CatalogFacts) and len(facts.fingerprint) == 12
    assert catalog_facts(golden, "no such study") is None


def test_lists_of_tokens_that_do_not_fit_are_found(golden: duckdb.DuckDBPyConnection) -> None:
    run = next(row["run"] for row in rows("runs") if row["arm"] == "exgrpo")
    found = token_checks(golden, LAKE.parent, run)
    assert found is not None
    assert [(check.name, check.found, check.of) for check in found] == [
        ("unequal", 0, 512),
        ("other_length", 0, 512),
    ]
    assert token_checks(golden, LAKE.parent, "import-riddles") is None


def test_tokens_of_other_lengths_are_counted(own: DemoResults) -> None:
    run = next(iter(own.study.runs))
    path = own.results / "lake" / "tokens" / f"{run}.parquet"
    tokens = pl.read_parquet(path)
    first, second = tokens["trajectory"][0], tokens["trajectory"][1]
    changed = tokens.with_columns(
        pl.when(pl.col("trajectory") == first)
        .then(pl.col("token_ids").list.slice(1))
        .otherwise(pl.col("token_ids"))
        .alias("token_ids"),
        pl.when(pl.col("trajectory") == second)
        .then(pl.col("entropies").list.slice(1))
        .otherwise(pl.col("entropies"))
        .alias("entropies"),
    )
    changed.write_parquet(path)
    entry = own.results / "lake" / "entries" / f"{run}.json"
    told = json.loads(entry.read_text())
    told["tables"]["tokens"]["bytes"] = path.stat().st_size
    entry.write_text(json.dumps(told))
    with duckdb.connect(own.catalog, read_only=True) as connection:
        found = token_checks(connection, own.results, run)
        assert found is not None
        assert [(check.name, check.found) for check in found] == [
            ("unequal", 2),
            ("other_length", 1),
        ]
        path.write_bytes(b"torn")
        with pytest.raises(UserError, match="torn or changed"):
            token_checks(connection, own.results, run)


def test_attempts_that_were_superseded(own: DemoResults, tmp_path: Path) -> None:
    first, resumed = list(own.study.runs)[:2]
    found = attempts_of(own.results, STUDY, resumed)
    assert found is not None and (found.started, found.parts, found.rows) == (2, 1, 2)
    once = attempts_of(own.results, STUDY, first)
    assert once is not None and (once.started, once.parts, once.rows) == (1, 0, 0)
    assert attempts_of(tmp_path / "elsewhere", STUDY, first) is None
    assert attempts_of(own.results, STUDY, f"../runs/{first}") is None


def test_when_claims_were_judged(results: Path, tmp_path: Path) -> None:
    found = judged_at(results, STUDY)
    assert found is not None and found.endswith("+00:00")
    assert judged_at(tmp_path, STUDY) is None


def test_the_screen_lists_the_runs_and_their_data_quality(results: Path) -> None:
    test = open_screen("runs")
    table = test.dataframe[0].value
    assert set(table["arm"]) == {"base", "exgrpo", "on_policy"}
    said = texts(test)
    assert "No token entropies are logged for any of the 96 trajectories" in said
    assert "Click on a check to see what lies behind it." in said
    checks = test.dataframe[1].value
    assert "Trajectories ungraded" in checks["check"].to_list()
    first = table[table["steps"] != "0"].iloc[0]  # the base model was not trained
    assert test.code[0].value == first["run"]


def test_two_runs_are_held_together(results: Path, analysed: DemoResults) -> None:
    settings = analysed.study.runs
    left = next(run for run in settings if settings[run].arm == "exgrpo")
    right = next(run for run in settings if settings[run].arm == "on_policy")
    test = open_screen("runs", run=left, other=right, view="differences")
    table = test.dataframe[1].value
    assert list(table.columns) == ["setting", f"A: {left}", f"B: {right}"]
    by_name = {row.iloc[0]: (row.iloc[1], row.iloc[2]) for _, row in table.iterrows()}
    assert by_name["arm"] == ('"exgrpo"', '"on_policy"')
    assert by_name["experience.replay"] == ('"trajectory"', '"none"')
    assert "rollout.temperature" not in by_name
    links = [item.proto.label for item in test.get("page_link")]
    assert "Compare the answers of both" in links and "Trajectories" in links
    test.selectbox(key="Runs.other").set_value(next(r for r in settings if r not in (left, right)))
    test.run()
    assert test.query_params["other"] not in (left, right)


def test_settings_and_origin(results: Path, analysed: DemoResults) -> None:
    run = next(iter(analysed.study.runs))
    table = open_screen("runs", run=run, view="settings").dataframe[1].value
    values = dict(zip(table["setting"], table["value"], strict=True))
    assert values["rollout.group_size"] == "4" and values["study"] == f'"{STUDY}"'
    test = open_screen("runs", run=run, view="origin")
    facts = dict(test.dataframe[1].value.itertuples(index=False))
    assert facts["commit"] == "0123456789ab" and facts["hardware"] == "cpu"
    assert "trajectories" in test.dataframe[2].value["table"].to_list()
    assert "This catalog was built on" in texts(test)


def test_a_check_of_the_address_shows_its_rows(results: Path, analysed: DemoResults) -> None:
    ungraded = {row["run"] for row in analysed.rows["trajectories"] if row["correct"] is None}
    run = min(ungraded)
    count = sum(r["run"] == run and r["correct"] is None for r in analysed.rows["trajectories"])
    test = open_screen("runs", run=run, check="ungraded", tokens="true")
    assert test.dataframe[2].value.shape[0] == count
    assert test.toggle(key="Runs.tokens").value is True
    checks = test.dataframe[1].value["check"].to_list()
    assert "Trajectories whose token lists differ in length" in checks
    test = open_screen("runs", run=run, check="no such")
    assert "Check: there is none" in test.warning[0].value


def test_nonsense_in_the_address_is_said(results: Path) -> None:
    test = open_screen("runs", run="<b>x</b>", other=":red[y]", view="differences", tokens="9")
    said = [item.value for item in test.warning]
    assert any(line.startswith("Run: ") for line in said)
    assert any(line.startswith("Other run: ") for line in said)


def test_an_import_alone_has_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    write_import(tmp_path, ["4", ""], [1, None])
    test = open_screen("runs", check="no_response")
    assert "No token entropies are logged for any of the 2" in texts(test)
    assert test.dataframe[2].value.shape[0] == 1
    assert "no settings" in open_screen("runs", view="settings").info[0].value
    assert "no other run" in open_screen("runs", view="differences").info[0].value


def test_a_lake_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    write_import(tmp_path, ["4"], [1])
    shutil.rmtree(tmp_path / "lake")
    assert "no entry of this run" in texts(open_screen("runs", view="origin"))
    assert open_screen("runs").dataframe[1].value.shape[0]


def test_settings_that_cannot_be_read_are_said(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    with duckdb.connect(own.catalog) as connection:
        connection.execute("update runs set settings = '[1]' where arm = 'exgrpo'")
    for view in ("settings", "differences"):
        assert "cannot be read" in texts(open_screen("runs", view=view))
