"""What may be said about a log, how an import is named, and what is told when the disk fails."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
from foreign_logs import Row, ask, prime_rl, trl, verl, write_lines

from analysis.catalog import open_catalog
from analysis.queries import answer
from exgrpo.errors import UserError
from pipeline.imports.command import import_file
from pipeline.imports.formats import ONLY_FOR, Options

GIVEN = {"mapping": Path("m.yaml"), "right": 0.0, "reward": "acc", "grade": True, "group_size": 4}
FITTING = {
    "verl": {"right", "grade"},
    "trl": {"right", "reward"},
    "prime-rl": {"right"},
    "history": {"group_size"},
    "generic": set(),
}


def logs(folder: Path) -> dict[str, Path]:
    """A log of each format that is recognised by its content."""
    step = folder / "tokens" / "step_3"
    write_lines(step / "rank_0.jsonl", [prime_rl([5], [6, 7], 1.0)])
    (step / "STABLE").touch()
    history = folder / "history.json"
    history.write_text('{"1": [0.5, 1.0]}')
    outputs = [{"question": "1+1?", "gold": "2", "response": "\\boxed{2}"}]
    return {
        "verl": write_lines(folder / "1.jsonl", [verl(1, 0, 1.0, 1)]),
        "trl": trl(folder / "c", 1, [{"prompt": "1?", "completion": "1", "acc": 1.0}]),
        "prime-rl": folder / "tokens",
        "history": history,
        "generic": write_lines(folder / "outputs.jsonl", outputs),
    }


@pytest.mark.parametrize("format", FITTING)
@pytest.mark.parametrize("told", [False, True])
def test_options_of_other_formats_are_refused(format: str, told: bool, tmp_path: Path) -> None:
    path = logs(tmp_path)[format]
    assert {field.name for field in fields(Options)} == {"format", *GIVEN} == {"format", *ONLY_FOR}
    for option, value in GIVEN.items():
        if option in FITTING[format] or (option == "mapping" and not told):
            continue  # a mapping makes it another format
        options = Options(**{"format": format if told else None, option: value})  # type: ignore
        with pytest.raises(UserError) as error:
            import_file(path, "x", tmp_path / "results", options)
        wanted = f"--{option.replace('_', '-')} is for {', '.join(ONLY_FOR[option])}: {path}"
        assert str(error.value).startswith(wanted)
        assert not (tmp_path / "results").exists()
    fitting = {option: GIVEN[option] for option in FITTING[format]}
    import_file(path, "x", tmp_path / "results", Options(**fitting))  # type: ignore


@pytest.mark.parametrize("given", [{"right": 0.5}, {"grade": True}])
def test_a_mapping_without_a_score_takes_no_threshold(given: Row, tmp_path: Path) -> None:
    mapping = tmp_path / "m.yaml"
    mapping.write_text("columns: {question: q, gold: a, response: r}\nconstants: {step: 1}")
    file = write_lines(tmp_path / "log.jsonl", [{"q": "1+1?", "a": 2, "r": "2"}])
    with pytest.raises(UserError, match=f"--{next(iter(given))} is for logs with a recorded score"):
        import_file(file, None, tmp_path / "results", Options(mapping=mapping, **given))


def test_two_imports_are_two_arms(tmp_path: Path) -> None:
    for name, score in (("one", 1.0), ("two", 0.0)):
        rows = [verl(1, n, score, 1) for n in range(2)]
        write_lines(tmp_path / name / "1.jsonl", rows)
        import_file(tmp_path / name, None, tmp_path / "results")
    with open_catalog(tmp_path / "results" / "workbench.duckdb") as connection:
        found = answer(connection, "duplicate_trajectories", study="imports")
        assert found["arm"].to_list() == ["one", "two"]
        assert answer(connection, "arm_summary").is_empty()  # of arms that were trained here


def test_a_path_without_a_letter_asks_for_a_name(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "日本.jsonl", [verl(1, 0, 1.0, 1)])
    with pytest.raises(UserError, match=r"日本\.jsonl: .*Give one with --name"):
        import_file(file, None, tmp_path / "results")
    with pytest.raises(UserError, match="--name '': use letters"):
        import_file(file, "", tmp_path / "results")
    import_file(file, "japan", tmp_path / "results")
    assert ask(tmp_path / "results", "SELECT arm FROM runs").item() == "japan"


def test_a_catalog_that_cannot_be_built_leaves_the_import_in_the_lake(tmp_path: Path) -> None:
    results = tmp_path / "results"
    (results / "workbench.duckdb").mkdir(parents=True)  # in the way
    file = write_lines(tmp_path / "1.jsonl", [verl(1, 0, 1.0, 1)])
    with pytest.raises(
        UserError, match=r"import-x is in the lake, but the catalog .*`exgrpo catalog` builds it"
    ):
        import_file(file, "x", results)
    assert (results / "lake" / "trajectories" / "import-x.parquet").is_file()
    assert json.loads((results / "lake" / "entries" / "import-x.json").read_text())


def test_a_history_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text('{"1": [0.5, 1.0]}', encoding="utf-8-sig")
    import_file(file, None, tmp_path / "results", Options(group_size=2))
    found = ask(tmp_path / "results", "SELECT successes FROM visits ORDER BY visit")
    assert found["successes"].to_list() == [1, 2]
