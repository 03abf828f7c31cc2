"""The SQL screen through AppTest: addresses, explain, charts, schema, history, named queries."""

import io
from pathlib import Path

import polars as pl
import pytest
from hostile_sql import HOSTILE_SQL
from lake_fixture import STUDY, DemoResults
from screens import open_screen, texts
from streamlit.testing.v1 import AppTest

from analysis.catalog import open_catalog
from analysis.errors import UserError
from analysis.examples import EXAMPLES
from analysis.exporting import EXPORTS, csv, parquet
from analysis.lookups import first_rows, frequent_values
from analysis.named import OTHER_TOPIC, TOPICS, topic
from analysis.queries import ask, explain_named, explain_plan, named_queries
from app import state
from app.sql_question import HISTORY, SqlQuestion, another

ROWS = "select trajectory, run, step, mean_entropy from trajectories"


def press(test: AppTest, label: str) -> AppTest:
    return next(item for item in test.button if item.label == label).click().run()


def test_every_state_comes_back_from_its_address() -> None:
    question = SqlQuestion(
        named="arm_summary",
        parameters=("study=a", "run=b,c", "run=d=e"),
        limit=100_000,
        seconds=600,
        explain=True,
        shown_as="heatmap",
        x="x",
        y="y",
        colour="c",
        row="r:1:2:3",
        topic="Entropy",
        chosen="buckets",
        table="runs",
        find="of",
    )
    assert state.from_query(SqlQuestion, state.to_query(question)) == question
    assert state.from_query(SqlQuestion, {"limit": ["7"], "seconds": ["1e9"]}) == SqlQuestion()


def test_another_query_drops_what_was_chosen_for_the_columns() -> None:
    columns = {"x": "x", "y": "y", "colour": "c", "row": "r:1:2:3", "chosen": "d"}
    before = SqlQuestion(sql="a", limit=100, shown_as="bar", explain=True, **columns)
    assert another(before, named="b") == SqlQuestion(named="b", limit=100, shown_as="bar")


def test_explain_shows_a_plan_and_run_the_rows(results: Path) -> None:
    test = open_screen("sql", sql=ROWS)
    press(test, "Explain")
    assert test.query_params["explain"] == "true"
    assert "Seq Scan" in test.code[-1].value and "rows**" not in texts(test)
    press(test, "Run")
    assert "explain" not in test.query_params and "rows**" in texts(test)


def test_explain_goes_through_the_gate(demo: DemoResults) -> None:
    with open_catalog(demo.catalog) as connection:
        for sql in HOSTILE_SQL:
            with pytest.raises(UserError):
                explain_plan(connection, sql)
        assert "Seq Scan" in explain_plan(connection, "(FROM runs)")
        assert "Seq Scan" in explain_plan(connection, "-- a comment\nWITH a AS (FROM runs) FROM a")
        assert "Seq Scan" in explain_named(connection, "arm_summary", {"study": STUDY})
        with pytest.raises(UserError, match="line 1, at `nothing`"):
            explain_plan(connection, "SELECT nothing FROM runs")


@pytest.mark.parametrize("kind", ["line", "bar", "scatter", "histogram", "box", "heatmap"])
def test_each_chart_is_drawn_from_the_address(kind: str, results: Path) -> None:
    chosen = {"x": "step", "y": "mean_entropy"}
    for query in (chosen, {}):
        test = open_screen("sql", sql=ROWS, shown_as=kind, **query)
        assert len(test.get("plotly_chart")) == 1
    gone = open_screen("sql", sql=ROWS, shown_as=kind, **chosen, colour="none")
    assert "no such column" in gone.info[-1].value and not gone.get("plotly_chart")


def test_what_cannot_be_drawn_is_said(results: Path) -> None:
    nothing = open_screen("sql", sql="select [1] as a from runs", shown_as="bar")
    assert "no column to draw" in nothing.info[-1].value
    texts_only = open_screen(
        "sql", sql="select run, arm from runs", shown_as="box", x="run", y="arm"
    )
    assert "numbers for y" in texts_only.info[-1].value


def test_the_history_holds_what_was_answered_once(results: Path) -> None:
    test = open_screen("sql", sql="select 1")
    for sql in ("select 2", "selec 3", "select 1"):
        test.text_area[0].set_value(sql)
        press(test, "Run")
    assert [each.sql for each in test.session_state[HISTORY]] == ["select 1", "select 2"]


def test_the_schema_is_searched(results: Path) -> None:
    test = open_screen("sql", find="importance RATIO")
    shown = next(frame.value for frame in test.dataframe if "type" in frame.value)
    assert len(shown) and set(shown.columns) == {"table", "column", "type", "meaning"}
    assert "ratio_max" in set(shown["column"])
    assert "No table has such a column" in texts(open_screen("sql", find="no such thing"))
    test = press(open_screen("sql", table="steps"), "First rows")
    assert test.query_params["sql"] == first_rows("steps") and test.query_params["table"]
    assert "bucket_sizes" in test.dataframe[-1].value


def test_clicks_of_the_schema_and_examples_are_answered(demo: DemoResults) -> None:
    with open_catalog(demo.catalog) as connection:
        for sql in (*EXAMPLES.values(), first_rows("steps"), frequent_values("runs", "arm")):
            assert ask(connection, sql).frame.width
        found = ask(connection, frequent_values("trajectories", "correct")).frame
    rows = demo.rows["trajectories"]
    assert found["rows"].sum() == len(rows)
    assert found["rows"][0] == max(
        sum(row["correct"] is value for row in rows) for value in (True, False, None)
    )


def test_named_queries_are_grouped(results: Path) -> None:
    known = {*TOPICS, OTHER_TOPIC}
    assert {topic(name) for name in named_queries()} == known
    test = open_screen("sql", topic="Entropy")
    names = [name.split(" — ")[0] for name in test.selectbox[2].options]
    assert names == sorted(name for name in named_queries() if topic(name) == "Entropy")


def test_a_query_that_is_chosen_is_in_the_address_before_it_is_run(results: Path) -> None:
    test = open_screen("sql", named="arm_summary", parameters=[f"study={STUDY}"])
    answer = test.dataframe[-1].value
    test.selectbox(key="SqlQuestion.chosen").set_value("studies").run()
    assert test.query_params["chosen"] == "studies"
    assert test.dataframe[-1].value.equals(answer)  # of the query that was run
    again = open_screen("sql", chosen="studies")
    assert again.selectbox(key="SqlQuestion.chosen").value == "studies"
    assert "rows**" not in texts(again)
    fallen = open_screen("sql", chosen="no such query", named="arm_summary")
    assert fallen.selectbox(key="SqlQuestion.chosen").value == "arm_summary"
    [item for item in again.button if item.label == "Run"][-1].click().run()
    assert "chosen" not in again.query_params and again.query_params["named"] == "studies"


def test_the_chosen_row_is_opened_from_a_link(demo: DemoResults, results: Path) -> None:
    row = demo.rows["trajectories"][0]["trajectory"]
    test = open_screen("sql", sql=ROWS, row=row)
    assert any("Open the chosen row" in link.proto.label for link in test.get("page_link"))
    assert "Click a row" in texts(open_screen("sql", sql=ROWS, row="none:1:1:1"))


def test_a_chart_says_when_its_marks_open_no_rows(results: Path) -> None:
    for kind, said in (("bar", False), ("histogram", True), ("heatmap", True)):
        test = open_screen(
            "sql",
            sql="select step, seed from runs join steps using (run)",
            shown_as=kind,
            x="step",
            y="seed",
        )
        assert ("open no rows" in texts(test)) is said


def test_an_answer_is_saved_in_each_format_with_a_warning_of_formulas(results: Path) -> None:
    frame = pl.DataFrame({"a": [1, None], "b": ["=HYPERLINK(1)", "é"], "c": [[1, 2], None]})
    assert pl.read_parquet(io.BytesIO(parquet(frame))).equals(frame)
    assert csv(frame).decode().splitlines()[1] == '1,=HYPERLINK(1),"[1, 2]"'
    test = open_screen("sql", sql=ROWS)
    assert [item.proto.label for item in test.get("download_button")] == list(EXPORTS)
    assert "take texts that begin with =" in texts(test)


def test_a_copy_of_a_named_query_can_be_edited(results: Path) -> None:
    test = open_screen("sql", named="arm_summary", parameters=[f"study={STUDY}"])
    expected = test.dataframe[-1].value
    press(test, "Edit a copy")
    assert "named" not in test.query_params and f"'{STUDY}'" in test.query_params["sql"]
    assert test.dataframe[-1].value.equals(expected)


def test_rows_lead_to_trajectories_also_by_their_place(results: Path) -> None:
    place = 'select run, step, "group", slot from trajectories'
    assert "Click a row" in texts(open_screen("sql", sql=place))
    assert "Click a row" not in texts(open_screen("sql", sql="select run from runs"))
