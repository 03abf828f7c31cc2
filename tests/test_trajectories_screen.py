"""The list of the trajectories screen: what it shows, what its widgets change, and its moves."""

import io
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from lake_fixture import STUDY, DemoResults
from screens import open_screen, texts

from analysis.browse import Page, columns_of, sortable
from analysis.browse_filters import Filters
from analysis.exporting import parquet
from analysis.notes import Note, read_notes, write_note
from analysis.sample_id import SampleKey
from app import state
from app.browser import Browser, sorted_by, switched
from app.components.answers import right_of
from app.components.bucket_bars import bucket_bars
from app.components.filter_chips import chips, without_chip
from app.components.filters import answered
from app.components.row_picker import clicked
from app.components.sample import counted
from app.components.trajectory_rows import SORTED_BY, column_config, meaning


def key(row: dict[str, object]) -> SampleKey:
    return SampleKey(*(row[name] for name in SampleKey._fields))  # type: ignore[arg-type]


# --- the list ---


def test_evaluation_samples_are_listed_beside_the_trajectories(
    results: Path, analysed: DemoResults
) -> None:
    kept = sorted(
        (row for row in analysed.rows["evaluations"] if row["benchmark"] == "test_id"),
        key=lambda row: (-row["length"], row["run"], row["step"], row["question"], row["sample"]),
    )
    test = open_screen(
        "trajectories",
        source="evaluation",
        benchmark="test_id",
        sort="length",
        descending="true",
        size="7",
        page="2",
        columns=["question", "length", "sample"],
        bucket=["3"],  # no filter of samples
    )
    shown = test.dataframe[0].value
    assert list(shown.columns) == ["question", "length", "sample"]
    expected = [(row["question"], row["length"], row["sample"]) for row in kept[7:14]]
    assert list(shown.itertuples(index=False, name=None)) == expected
    assert f"**{len(kept)}** samples, page 2 of {-(-len(kept) // 7)}" in texts(test)
    labels = {item.label for item in (*test.selectbox, *test.multiselect, *test.number_input)}
    assert "Benchmark" in labels
    assert not labels & {"k: right in the group", "Age from", "Markers, all of them"}
    assert not [button for button in test.button if "k \\=" in button.label]


def test_a_sample_is_read_with_those_beside_it(results: Path, analysed: DemoResults) -> None:
    row = next(r for r in analysed.rows["evaluations"] if r["sample"] == 1 and r["extracted"])
    beside = [
        other for other in analysed.rows["evaluations"] if key(other)._replace(sample=1) == key(row)
    ]
    question = next(q for q in analysed.rows["questions"] if q["question"] == row["question"])
    test = open_screen("trajectories", source="evaluation", trajectory=key(row).id)
    shown = [item.value for item in test.code]
    assert {row["response"], question["text"], question["gold"], row["extracted"]} <= set(shown)
    table = test.dataframe[1].value
    assert list(table["sample"]) == list(range(len(beside)))
    graded = [other["correct"] for other in beside if other["correct"] is not None]
    assert f"{sum(graded)} of {len(graded)} right" in texts(test)


def test_samples_are_counted_of_those_that_are_graded() -> None:
    page = Page(pl.DataFrame({"correct": [True, False, None, True]}), 4)
    assert counted(page) == "2 of 3 right, 1 ungraded"
    assert counted(replace(page, total=2000)) == "2 of 3 right, 1 ungraded (the first 4 of 2,000)"


def test_a_sample_has_its_link_and_its_maths(results: Path, analysed: DemoResults) -> None:
    id = key(analysed.rows["evaluations"][0]).id
    test = open_screen("trajectories", source="evaluation", trajectory=id, view="entropy")
    view = test.segmented_control(key="Browser.view")
    assert (view.options, view.value) == (["raw text", "LaTeX"], "raw")  # it has no tokens
    view.set_value("latex").run()
    assert not test.exception and test.query_params["view"] == "latex"
    links = [item.value for item in test.code if item.value.startswith("http") or "?" in item.value]
    assert any("trajectory=" in link and "view=latex" in link for link in links)


def test_age_is_sorted_by_itself_and_no_other_header_shows_it() -> None:
    assert "age" in sortable("training") and "age" not in sortable("evaluation")
    sorted_so = sorted_by(Browser(), SORTED_BY.get("age", "age"))
    assert sorted_so.filters.sort == "age"
    config = column_config(("age", "birth_step", "step"), sorted_so.filters)
    assert [config[name]["label"] for name in config] == ["age ↑", "birth_step", "step"]


def test_an_unknown_k_is_said() -> None:
    assert right_of(3, 8, " right") == "3 of 8 right"
    assert right_of(None, 8, " right") == right_of(None, None) == "k not known"
    buckets = pl.DataFrame(
        [(None, None, 5), (2, 4, 3)], ["group_successes", "group_size", "groups"], orient="row"
    )
    assert bucket_bars(buckets).data[0].x == ("k not known", "2 of 4")


@pytest.mark.parametrize("id", ["no:1:2:3", "a:1:b:c:0", "x" * 5000, f"a:{10**30}:b:c:0"])
def test_a_sample_that_is_none_is_said(results: Path, id: str) -> None:
    assert (
        "does not hold"
        in open_screen("trajectories", source="evaluation", trajectory=id).warning[0].value
    )


def test_the_next_sample_is_a_key_away(results: Path, analysed: DemoResults) -> None:
    order = sorted(key(row) for row in analysed.rows["evaluations"])
    order.sort(key=lambda each: each.step)
    test = open_screen("trajectories", source="evaluation", size="10", trajectory=order[9].id)
    test.button(key="browser.next").click().run()
    assert test.query_params["trajectory"] == order[10].id
    assert test.query_params["page"] == "2"


def test_a_sample_is_starred_and_noted_where_it_is_read(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    id = key(own.rows["evaluations"][0]).id
    test = open_screen("trajectories", source="evaluation", trajectory=id)
    test.button(key="detail.star").click().run()
    test.text_area(key=f"detail.note.{id}").set_value("odd").run()
    kept = read_notes(own.results)[id]
    assert (kept.starred, kept.note) == (True, "odd")
    starred = open_screen("trajectories", source="evaluation", starred="true")
    assert starred.dataframe[0].value.shape[0] == 1


def test_the_place_of_the_open_row_is_said(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(own.results))
    starred, other = (row["trajectory"] for row in own.rows["trajectories"][:2])
    write_note(own.results, Note(starred, True))

    def place(trajectory: str, **query: str) -> str:
        said = texts(open_screen("trajectories", trajectory=trajectory, **query))
        return next(line for line in said.splitlines() if "of the table" in line)

    assert place(starred, starred="true") == "the only row of the table"
    assert place(other, starred="true") == "not on this page of the table"
    assert place(other, size="10000") == "in the order of the table"


def test_switching_the_table_keeps_what_both_have(results: Path) -> None:
    test = open_screen(
        "trajectories", study=STUDY, bucket=["1"], sort="advantage", page="2", size="9"
    )
    test.segmented_control(key="browser.source").set_value("evaluation").run()
    assert not test.exception
    assert dict(test.query_params) == {"source": "evaluation", "study": STUDY, "size": "9"}


def test_every_filter_opens_again_from_its_address(results: Path) -> None:
    address = {
        "seeds": ["0", "1"], "level": ["1", "2"], "markers": ["shortcut"], "finish": "stop",
        "ungraded": "true", "length_min": "1", "age_max": "3", "question": "q", "regex": "true",
        "text": "[0-9]", "starred": "true",
    }  # fmt: skip
    test = open_screen("trajectories", **address)
    assert test.multiselect(key="Browser.seeds").value == [0, 1]
    assert test.multiselect(key="Browser.level").value == [1, 2]
    assert test.multiselect(key="Browser.markers").value == ["shortcut"]
    assert test.selectbox(key="Browser.finish").value == "stop"
    assert test.segmented_control(key="browser.answer").value == "ungraded"
    assert test.number_input(key="Browser.length_min").value == 1
    assert test.number_input(key="Browser.age_max").value == 3
    assert test.text_input(key="Browser.question").value == "q"
    assert test.toggle(key="Browser.regex").value
    assert test.toggle(key="Browser.starred").value
    assert next(item for item in test.expander if "More filters" in item.label).label[-4:] == "6 on"
    # Nothing passes them all: the filters are named, and taken off with a click.
    assert "No row passes" in texts(test)
    test.button(key="chip.text").click().run()
    assert "text" not in test.query_params
    test.button(key="browser.clear").click().run()
    assert dict(test.query_params) == {}
    assert len(test.dataframe[0].value) == 50


def test_ungraded_rows_are_listed(results: Path, analysed: DemoResults) -> None:
    test = open_screen("trajectories")
    test.segmented_control(key="browser.answer").set_value("ungraded").run()
    assert test.query_params["ungraded"] == "true"
    ungraded = [row for row in analysed.rows["trajectories"] if row["correct"] is None]
    assert len(test.dataframe[0].value) == len(ungraded) > 0


def test_a_search_marks_its_hit_in_the_cell(results: Path) -> None:
    test = open_screen("trajectories", text="ONERROR", columns=["preview", "slot"])
    assert "⟦onerror⟧=alert(1)" in test.dataframe[0].value["preview"].iloc[0]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"text": "(", "regex": "true"}, "is no regular expression"),
        ({"sort": 'r"; DROP TABLE t; --'}, "cannot sort by"),
        ({"sort": "benchmark"}, "cannot sort by"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(
    query: dict[str, str], said: str, results: Path
) -> None:
    assert said in open_screen("trajectories", **query).code[-1].value


@pytest.mark.parametrize(
    "query",
    [
        {"columns": ["nosuch", 'x"; --', "slot", "slot"]},
        {"source": "nowhere", "size": "10001"},
        {"source": "evaluation", "level": [str(2**53 - 1)], "markers": ["x"]},
    ],
)
def test_nonsense_in_the_address_falls_back(query: dict[str, str], results: Path) -> None:
    test = open_screen("trajectories", **query)
    if "columns" in query:
        assert list(test.dataframe[0].value.columns) == ["slot"]


def test_only_starred_rows(results: Path, analysed: DemoResults) -> None:
    trajectory = analysed.rows["trajectories"][5]["trajectory"]
    sample = key(analysed.rows["evaluations"][7]).id
    for id in (trajectory, sample):
        write_note(results, Note(id, starred=True))
    write_note(results, Note(analysed.rows["trajectories"][0]["trajectory"], note="no star"))
    for source, id in (("training", trajectory), ("evaluation", sample)):
        test = open_screen(
            "trajectories", starred="true", source=source, columns=["trajectory", "run"]
        )
        assert list(test.dataframe[0].value["trajectory"]) == [id]
    (results / "notes.jsonl").unlink()


# --- the moves, as functions ---


def test_a_header_sorts_and_a_second_click_turns_round() -> None:
    once = sorted_by(Browser(page=4), "length")
    assert once == Browser(Filters(sort="length"), page=1)
    assert sorted_by(once, "length") == Browser(Filters(sort="length", descending=True))
    assert sorted_by(sorted_by(once, "length"), "length") == once
    assert sorted_by(once, "nosuch") == once


def test_another_table_drops_what_it_lacks() -> None:
    filters = Filters(study="s", bucket=(1,), replayed=True, sort="slot", descending=True)
    there = switched(
        Browser(filters, size=7, page=3, trajectory="x", columns=("slot",)), "evaluation"
    )
    assert there == Browser(Filters(source="evaluation", study="s"), size=7)
    kept = switched(Browser(Filters(sort="length", descending=True)), "evaluation").filters
    assert (kept.sort, kept.descending) == ("length", True)


def test_a_click_names_an_id() -> None:
    ids = ["a", "b", "c"]
    assert clicked({"rows": [1]}, ids, None) == "b"
    assert clicked({"rows": [], "cells": [(2, "step")]}, ids, "b") == "c"
    assert clicked({"rows": [1], "cells": [(0, "step")]}, ids, "b") == "a"
    assert clicked({"rows": [1], "columns": ["step"]}, ids, "b") is None
    assert clicked({}, ids, None) is None


def test_each_filter_is_one_chip_and_can_be_taken_off() -> None:
    browser = Browser(
        Filters(
            arms=("a", "b"), step_min=3, step_max=9, entropy_max=0.5, length_min=4, length_max=4,
            replayed=False, correct=False, markers=("step_errors",), text="x" * 99, regex=True,
            run="*r*",
        ),
        starred=True,
        page=3,
    )  # fmt: skip
    found = chips(browser)
    assert found == {
        ("arms",): "arm a, b",
        ("run",): "run *r*",
        ("step_min", "step_max"): "step 3 to 9",
        ("replayed",): "fresh",
        ("correct",): "wrong",
        ("markers",): "marked wrong steps",
        ("length_min", "length_max"): "length 4",
        ("entropy_min", "entropy_max"): "entropy up to 0.5",
        ("text",): f"pattern “{'x' * 39}…”",
        ("starred",): "starred",
    }
    for names in found:
        browser = without_chip(browser, names)
        assert names not in chips(browser)
        assert browser.page == 1
    assert browser == Browser(Filters(regex=True))


def test_one_answer_at_a_time() -> None:
    wrong = answered(Browser(Filters(ungraded=True), page=2), "wrong")
    assert wrong == Browser(Filters(correct=False))
    assert answered(wrong, "ungraded") == Browser(Filters(ungraded=True))
    assert answered(wrong, None) == Browser()


def test_every_column_that_can_be_shown_is_explained() -> None:
    for source in ("training", "evaluation"):
        for name in columns_of(source):
            assert meaning(name, source)
    assert meaning("mean_entropy", "training").endswith("[nat/token]")


def test_a_page_is_saved_as_it_is() -> None:
    frame = pl.DataFrame({"a": [1, None], "b": ["x", "é"]})
    assert pl.read_parquet(io.BytesIO(parquet(frame))).equals(frame)


def test_the_address_holds_the_whole_browser() -> None:
    browser = Browser(
        Filters(source="evaluation", benchmark="b", level=(1, 2), ungraded=True), True, 2, 77
    )
    browser = replace(browser, columns=("run", "preview"))
    assert state.from_query(Browser, state.to_query(browser)) == browser
