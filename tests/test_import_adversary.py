"""Imports of hostile files and wrong requests: an error and nothing changed, or a true word."""

import json
import sys
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_logs import Row, ask, prime_rl, trl, verl, write_lines

from exgrpo.errors import UserError
from pipeline.imports.command import import_file
from pipeline.imports.formats import Options

GOOD = json.dumps(verl(1, 0, 1.0, 1))
MAPPED: Row = {"s": 1, "q": "1+1?", "r": 1.0}


def mapping(folder: Path, more: str = "", columns: str = "") -> Options:
    path = folder / "mapping.yaml"
    path.write_text(f"columns: {{step: s, question: q, score: r{columns}}}\n{more}")
    return Options(mapping=path)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('"score": 1.0', f'"score": 1{"0" * 400}', "key `score` is 1000.*Give a finite number"),
        ('"step": 1', f'"step": "{"9" * 5000}"', "key `step` is '9999.*Give a whole number"),
        ('"output": "', '"output": "\\ud800', "line 2: text with half a surrogate pair"),
        ('"output"', '"\\udfff": 1, "output"', "line 2: text with half a surrogate pair"),
    ],
)
def test_values_that_no_column_holds(old: str, new: str, wanted: str, tmp_path: Path) -> None:
    assert old in GOOD
    file = write_lines(tmp_path / "1.jsonl", [GOOD, GOOD.replace(old, new)])
    with pytest.raises(UserError, match=wanted):
        import_file(file, None, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_whole_surrogate_pair_is_text(tmp_path: Path) -> None:
    line = GOOD.replace('"output": "', '"output": "\\ud83d\\ude00')
    import_file(write_lines(tmp_path / "1.jsonl", [line]), None, tmp_path / "results")
    found = ask(tmp_path / "results", "SELECT response FROM trajectories").item()
    assert found == json.loads(line)["output"] and found.startswith("\U0001f600")


@pytest.mark.parametrize("last", [f"{GOOD}XYZ", '{"score": 1, "score": 2}', "[1]", "7"])
def test_a_last_line_that_is_whole_but_wrong_is_not_called_torn(last: str, tmp_path: Path) -> None:
    file = tmp_path / "1.jsonl"
    file.write_text(f"{GOOD}\n{last}")  # no newline at the end
    with pytest.raises(UserError, match=r"line 2: (no JSON object|key 'score' stands twice)"):
        import_file(file, None, tmp_path / "results")


def test_a_file_without_a_readable_line_says_what_is_wrong(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "1.jsonl", ['{"score": 1, "score": 2}'])
    with pytest.raises(UserError, match="First: line 1: key 'score' stands twice"):
        import_file(file, None, tmp_path / "results")


@pytest.mark.parametrize("name", ["²", "9" * 23])
def test_a_file_name_that_is_no_step(name: str, tmp_path: Path) -> None:
    row = {key: value for key, value in verl(1, 0, 1.0, 1).items() if key != "step"}
    file = write_lines(tmp_path / "log" / f"{name}.jsonl", [row])
    for path in (file, file.parent):
        with pytest.raises(UserError, match=r"is no step|step .the file's name.. is 9999"):
            import_file(path, "x", tmp_path / "results")


def test_what_else_lies_in_the_folder_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "log" / "1.jsonl", [GOOD])
    (tmp_path / "log" / "2.jsonl.gz").write_bytes(b"\x1f\x8b")
    import_file(tmp_path / "log", None, tmp_path / "results")
    assert "left out: 2.jsonl.gz: no files of this log" in capsys.readouterr().out
    trl(tmp_path / "c", 1, [{"prompt": "1?", "completion": "1", "score": 1.0}])
    (tmp_path / "c" / "notes.txt").touch()
    import_file(tmp_path / "c", None, tmp_path / "results")
    assert "left out: notes.txt: no files of this log" in capsys.readouterr().out


def test_paths_names_and_options_that_cannot_be(tmp_path: Path) -> None:
    file, results = write_lines(tmp_path / "1.jsonl", [GOOD]), tmp_path / "results"
    for path, name, options, wanted in (
        (tmp_path / ("n" * 300), None, Options(), "name too long"),
        (file, "n" * 240, Options(), "at most 200"),
        (file, None, Options(right=float("nan")), "--right nan: give a number"),
        (file, None, Options(reward="acc"), "--reward is for trl: .* taken for verl"),
        (file, None, Options(format="history", mapping=file), "--mapping is for mapped"),
    ):
        with pytest.raises(UserError, match=wanted):
            import_file(path, name, results, options)
        assert not results.exists()
    with pytest.raises(UserError, match="cannot be made: Not a directory"):
        import_file(file, None, file)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are Unicode")
def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "\udcff.jsonl"  # the byte 0xff
    file.write_text(f"{GOOD}\n")
    for path in (file, tmp_path):
        with pytest.raises(UserError, match="the name is no UTF-8"):
            import_file(path, "x", tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_keys_are_printed_but_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_lines(tmp_path / "1.jsonl", [verl(1, 0, 1.0, 1, **{"k\x1b[31m": 1})])
    import_file(file, None, tmp_path / "results")
    said = capsys.readouterr().out
    assert "\x1b" not in said and "  k\\x1b[31m: 1\n" in said


def test_keys_without_a_value_are_not_said_to_be_mapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_lines(tmp_path / "log.jsonl", [MAPPED])
    import_file(file, None, tmp_path / "results", mapping(tmp_path, "", ", level: lev"))
    mapped, absent = capsys.readouterr().out.split("keys that would be read, but have no value")
    assert "  r -> score\n" in mapped and "lev" not in mapped
    assert absent.startswith(" here:\n  lev -> level\n")


def test_a_reward_that_no_file_has(tmp_path: Path) -> None:
    trl(tmp_path / "c", 1, [{"prompt": "1?", "completion": "1", "acc": 1.0, "format": 1.0}])
    for reward in ("acurracy", "step", "advantage"):
        with pytest.raises(UserError, match=f"--reward '{reward}': .* It has acc, format"):
            import_file(tmp_path / "c", None, tmp_path / "results", Options(reward=reward))


def test_parts_of_messages_that_are_not_kept_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"role": "assistant", "content": "2", "tool_calls": [{"name": "add"}]}
    trl(tmp_path / "c", 1, [{"prompt": "1+1?", "completion": [said], "score": 1.0}])
    import_file(tmp_path / "c", None, tmp_path / "results")
    assert "1 rows whose `completion` has more than role and content" in capsys.readouterr().out


def test_parquet_values_without_a_column(tmp_path: Path) -> None:
    file, results = tmp_path / "log.parquet", tmp_path / "results"
    row = {key: [value] for key, value in MAPPED.items()}
    twice = pa.table([*map(pa.array, row.values()), pa.array([0.0])], names=[*row, "r"])
    late = pa.table({**row, "at": pa.array([2**62], pa.timestamp("us"))})
    for table, wanted in (
        (twice, "two columns have the name 'r'"),
        (late, "rows 0 to 0: a value cannot be read"),
        (pa.table({**row, "f": [date(2024, 1, 1)]}), "row 0: key `f` is datetime.date"),
        (pa.table({**row, "f": [b"stop"]}), "row 0: key `f` is b'stop'"),
        (pa.table({**row, "f": [float("nan")]}), "row 0: key `f` is nan"),
    ):
        pq.write_table(table, file)
        with pytest.raises(UserError, match=wanted):
            import_file(file, None, results, mapping(tmp_path, "", ", finish: f"))
        assert not results.exists()


@pytest.mark.parametrize(
    ("more", "columns", "row", "wanted"),
    [
        ("constants: {finish: 2024-01-01}", "", {}, "key `finish` is datetime.date"),
        ("constants: {correct: true}", "", {}, "'correct' as a constant says nothing"),
        ("right: [yes]", ", correct: v", {"v": "yes"}, "key `v` is 'yes'. `right` holds no text"),
        ("x: " + "[" * 3000, "", {}, "cannot be read as YAML"),
        ("", ", step: t", {"t": 2}, "line 1: key 'step' stands twice"),
        (
            "",
            ", token_ids: t, entropies: h",
            {"t": [1, 2], "h": [0.5]},
            "line 1: the lists of tokens differ in length: token_ids has 2, entropies has 1",
        ),
    ],
)
def test_mappings_that_would_guess(
    more: str, columns: str, row: Row, wanted: str, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "log.jsonl", [{**MAPPED, **row}])
    with pytest.raises(UserError, match=wanted):
        import_file(file, None, tmp_path / "results", mapping(tmp_path, more, columns))
    assert not (tmp_path / "results").exists()


def test_a_mapped_folder_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for number in (10, 2):
        row = {**MAPPED, "o": str(number), "run": f"worker {number}"}  # no key of ours
        write_lines(tmp_path / "log" / f"part-{number}.jsonl", [row])
    options = mapping(tmp_path, "", ", response: o")
    import_file(tmp_path / "log", None, tmp_path / "results", options)
    found = ask(tmp_path / "results", "SELECT response FROM trajectories ORDER BY slot")
    assert found["response"].to_list() == ["2", "10"]


def test_lists_that_become_means_alone_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_lines(tmp_path / "log.jsonl", [{**MAPPED, "h": [0.5, 1.0]}])
    import_file(file, None, tmp_path / "results", mapping(tmp_path, "", ", entropies: h"))
    assert "1 rows with lists but no token_ids" in capsys.readouterr().out


def test_a_gold_and_level_that_only_later_rows_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more: list[Row] = [
        {"p": "A", "g": None},
        {"p": "B", "g": "016", "l": 3},
        {"p": "A", "g": "16", "l": 4},
    ]
    file = write_lines(tmp_path / "log.jsonl", [{**MAPPED, **each} for each in more])
    options = mapping(tmp_path, "", ", prompt: p, gold: g, level: l")
    import_file(file, None, tmp_path / "results", options)
    found = ask(tmp_path / "results", "SELECT prompt, gold, level FROM questions").rows()
    assert found == [("A", "016", 3)]
    said = capsys.readouterr().out
    assert "1 questions have several prompts: the first one is kept" in said
    assert "1 questions have several golds: the first one is kept" in said


def test_scores_beside_labels_are_not_said_to_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**MAPPED, "v": False}, {**MAPPED, "r": 0.0, "v": True}]
    file = write_lines(tmp_path / "log.jsonl", rows)
    import_file(file, None, tmp_path / "results", mapping(tmp_path, "", ", correct: v"))
    found = ask(tmp_path / "results", "SELECT correct FROM trajectories ORDER BY slot")["correct"]
    assert found.to_list() == [False, True]
    assert "right from" not in capsys.readouterr().out


def test_another_log_under_the_same_name_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, wanted in (("a", False), ("a", False), ("b", True)):
        write_lines(tmp_path / folder / "rollouts" / "1.jsonl", [GOOD] * (1 + (folder == "b")))
        import_file(tmp_path / folder / "rollouts", None, tmp_path / "results")
        said = capsys.readouterr().out
        assert ("replaced another import of this name: rollouts" in said) is wanted


@pytest.mark.parametrize(
    ("lists", "wanted"),
    [
        ({"token_ids": None}, "key `token_ids` is None. Give a list of token ids"),
        ({"entropy": [10**400] * 3}, "key `entropy` is 1000.*does not fit"),
        ({"rewards": [2**53 + 1] * 3}, "key `rewards` is 9007199254740993.*does not fit"),
        ({"schema_version": True}, "key `schema_version` is True. This reads version 1"),
    ],
)
def test_prime_rl_lists_that_do_not_fit(lists: Row, wanted: str, tmp_path: Path) -> None:
    step = tmp_path / "token_exports" / "step_3"
    write_lines(step / "rank_0.jsonl", [prime_rl([5], [6, 7], 1.0, **lists)])
    (step / "STABLE").touch()
    with pytest.raises(UserError, match=wanted):
        import_file(tmp_path, "x", tmp_path / "results")


def test_prime_rl_sums_that_no_float_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step, results = tmp_path / "token_exports" / "step_3", tmp_path / "results"
    entropies = ([1e308] * 3, [int(1.7e308)] * 3, [0.5] * 3)
    write_lines(step / "rank_0.jsonl", [prime_rl([5], [6, 7], 1.0, entropy=e) for e in entropies])
    (step / "STABLE").touch()
    import_file(tmp_path, "x", results)
    found = ask(results, "SELECT summed_entropy, mean_entropy FROM trajectories ORDER BY slot")
    assert found.rows() == [(None, None), (None, None), (1.0, 0.5)]
    assert "2 rows whose `summed_entropy` no float holds" in capsys.readouterr().out


def test_prime_rl_large_ratios_and_a_file_without_marker(tmp_path: Path) -> None:
    step, results = tmp_path / "token_exports" / "step_3", tmp_path / "results"
    row = prime_rl([5], [6, 7], 1.0, importance_ratio=[1.0, 1e200, 3e200])
    file = write_lines(step / "rank_0.jsonl", [row])
    with pytest.raises(UserError, match="step_3: no marker STABLE"):
        import_file(file, "x", results)
    (step / "STABLE").touch()
    import_file(file, "x", results)
    found = pl.read_parquet(results / "lake" / "trajectories" / "import-x.parquet")
    assert found["ratio_ess"].item() == pytest.approx((1 + 3) ** 2 / (1 + 9) / 2)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('{"\\ud800": [0.5]}', "half a surrogate pair"),
        ('{"a": [0.5], "a ": [1.0]}', "keys 'a' and 'a ' are one question"),
    ],
)
def test_history_keys(content: str, wanted: str, tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text(content)
    with pytest.raises(UserError, match=wanted) as error:
        import_file(file, None, tmp_path / "results")
    assert str(file) in str(error.value)
    assert not (tmp_path / "results").exists()
