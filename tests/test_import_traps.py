"""Imports of awkward files: nothing guessed, nothing lost without a word, nothing twice."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from foreign_logs import Row, ask, trl, verl, write_lines

from exgrpo.errors import UserError
from pipeline.imports.command import import_file
from pipeline.imports.formats import Options


def mapped(folder: Path, columns: str) -> Options:
    """A mapping of `columns` besides those that every line of these tests has."""
    path = folder / "mapping.yaml"
    path.write_text(f"columns: {{step: step, question: q, score: score, {columns}}}\n")
    return Options(mapping=path)


def line(number: int, **more: object) -> Row:
    return {"step": 1, "q": f"question {number}", "score": 1.0, **more}


def test_o15_every_record_has_question_sample_and_step_and_is_sorted_by_them(
    tmp_path: Path,
) -> None:
    rows = [verl(question, sample, 1.0, 6) for sample in (0, 1) for question in (8, 3)]
    write_lines(tmp_path / "log" / "6.jsonl", rows)
    write_lines(tmp_path / "log" / "5.jsonl", [{**row, "step": 5} for row in rows])
    import_file(tmp_path / "log", None, tmp_path / "results")
    lake = tmp_path / "results" / "lake" / "trajectories" / "import-log.parquet"
    found = pl.read_parquet(lake)
    keys = found.select("step", "group", "slot").rows()
    assert keys == [(s, g, n) for s in (5, 6) for g in (0, 1) for n in (0, 1)]
    assert found["question"].null_count() == 0
    assert [len(set(found["question"][at : at + 2])) for at in range(0, 8, 2)] == [1] * 4


def test_o17_rewards_and_texts_of_two_workers(tmp_path: Path) -> None:
    scores = [[1.0, 0.0], [1.0, 1.0]]
    for worker, given in enumerate(scores):
        rows = [
            {**verl(4, 2 * worker + at, score, 1), "output": f"text {worker}-{at}"}
            for at, score in enumerate(given)
        ]
        write_lines(tmp_path / "log" / f"worker_{worker}.jsonl", rows)
    import_file(tmp_path / "log", None, tmp_path / "results")
    rows = ask(
        tmp_path / "results", "SELECT response, correct FROM trajectories ORDER BY slot"
    ).rows()
    assert rows == [("text 0-0", True), ("text 0-1", False), ("text 1-0", True), ("text 1-1", True)]
    assert ask(tmp_path / "results", "SELECT reward FROM steps").item() == 0.75


def test_o37_a_key_that_is_first_seen_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [line(n, **({"retired": n} if n >= 120 else {})) for n in range(1, 151)]
    file = write_lines(tmp_path / "log.jsonl", rows)
    import_file(file, None, tmp_path / "results", mapped(tmp_path, "level: retired"))
    found = ask(tmp_path / "results", "SELECT level FROM trajectories WHERE level IS NOT NULL")
    assert sorted(found["level"]) == list(range(120, 151))
    import_file(file, None, tmp_path / "results", mapped(tmp_path, "level: missing"))
    assert ask(tmp_path / "results", "SELECT count(level) FROM trajectories").item() == 0
    assert "  retired: 31\n" in capsys.readouterr().out  # dropped, but not without a word


@pytest.mark.parametrize("first", [0, 1])
def test_o39_several_files_with_a_key_in_only_one(first: int, tmp_path: Path) -> None:
    for at in (0, 1):
        rows = [line(200 * at + n, **({"adv": n} if at == first else {})) for n in range(200)]
        write_lines(tmp_path / "log" / f"{at}.jsonl", rows)
    import_file(tmp_path / "log", None, tmp_path / "results", mapped(tmp_path, "advantage: adv"))
    found = ask(tmp_path / "results", "SELECT advantage FROM trajectories")["advantage"]
    assert len(found) == 400
    assert sorted(found.drop_nulls()) == list(range(200))


def test_o39_parquet_files_with_a_column_in_only_one(tmp_path: Path) -> None:
    row = {"prompt": "1?", "completion": "1", "score": 1.0}
    trl(tmp_path / "c", 1, [row])
    trl(tmp_path / "c", 2, [{**row, "advantage": 0.5}])
    import_file(tmp_path / "c", None, tmp_path / "results")
    found = ask(tmp_path / "results", "SELECT step, advantage FROM trajectories ORDER BY step")
    assert found.rows() == [(1, None), (2, 0.5)]


def test_o41_text_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:
    rows = [
        {**verl(0, 0, 1.0, 1), "input": q, "gts": gold}
        for q, gold in zip("ab", ("016", "30"), strict=True)
    ]
    import_file(write_lines(tmp_path / "1.jsonl", rows), None, tmp_path / "results")
    golds = ask(tmp_path / "results", "SELECT gold FROM questions ORDER BY text")["gold"]
    assert golds.to_list() == ["016", "30"]


def test_o43_integers_over_64_bits_are_exact_or_an_error(tmp_path: Path) -> None:
    big = 2**63
    file = write_lines(tmp_path / "log.jsonl", [line(1, seed=big), line(2, seed=-3 * big)])
    import_file(file, None, tmp_path / "results", mapped(tmp_path, "extracted: seed"))
    found = ask(tmp_path / "results", 'SELECT extracted FROM trajectories ORDER BY "group"')
    assert found["extracted"].to_list() == ["9223372036854775808", "-27670116110564327424"]
    with pytest.raises(UserError, match=r"key `seed` is 9223372036854775808\. Give a whole"):
        import_file(file, "x", tmp_path / "results", mapped(tmp_path, "level: seed"))
    rows = [verl(1, 0, 1.0, 1, seed=big)]  # a key that has no column stops nothing
    import_file(write_lines(tmp_path / "1.jsonl", rows), None, tmp_path / "results")
    odd = write_lines(tmp_path / "2.jsonl", [verl(1, 0, 2**63 + 1, 1)])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="Give a finite number that a 64-bit float holds"):
        import_file(odd, None, tmp_path / "results")


def test_o45_rubbish_after_the_json_of_a_line(tmp_path: Path) -> None:
    rows = [json.dumps(verl(1, n, 1.0, 1)) for n in range(3)]
    rows[1] += "XYZ"
    file = write_lines(tmp_path / "1.jsonl", rows)
    with pytest.raises(UserError, match="line 2: no JSON object"):
        import_file(file, None, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_torn_last_line_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    whole = [json.dumps(verl(1, n, 1.0, 1)) for n in range(2)]
    torn = json.dumps(verl(1, 2, 1.0, 1), ensure_ascii=False).replace("helpful", "hölpful").encode()
    for cut in (1, torn.index("ö".encode()) + 1, len(torn)):
        file = write_lines(tmp_path / "1.jsonl", whole)
        file.write_bytes(file.read_bytes() + torn[:cut])
        import_file(file, "log", results)
        said = capsys.readouterr().out
        complete = cut == len(torn)
        assert ("left out: line 3: torn, the file ends inside it" in said) is not complete
        assert ask(results, "SELECT count(*) FROM trajectories").item() == 2 + complete


def test_bad_lines_name_file_and_line_and_change_nothing(tmp_path: Path) -> None:
    results = tmp_path / "results"
    good = [verl(1, n, 1.0, 1) for n in range(3)]
    write_lines(tmp_path / "good" / "1.jsonl", good)
    import_file(tmp_path / "good", "log", results)
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    bad: list[object] = [good[0], "{", {**good[0], "score": "1"}, {"input": "x"}, "[]", *["?"] * 9]
    write_lines(tmp_path / "bad" / "1.jsonl", good)
    write_lines(tmp_path / "bad" / "2.jsonl", bad)
    with pytest.raises(UserError, match="nothing was imported: 13 bad rows") as error:
        import_file(tmp_path / "bad", "log", results)
    said = str(error.value)
    assert said.startswith(str(tmp_path / "bad"))
    assert "  2.jsonl: line 2: no JSON object: '{'. Mend or remove it.\n" in said
    assert "  2.jsonl: line 3: key `score` is '1'. Give a number or null.\n" in said
    assert "  2.jsonl: line 4: misses the keys output, score; it has input." in said
    assert said.count("2.jsonl: line") == 10 and said.endswith("and 3 more")
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("score", ["NaN", "Infinity", "true", '"1"'])
def test_a_score_that_is_no_number_is_an_error(score: str, tmp_path: Path) -> None:
    text = json.dumps(verl(1, 0, 1.0, 1)).replace('"score": 1.0', f'"score": {score}')
    with pytest.raises(UserError, match="line 1: key `score` is"):
        import_file(write_lines(tmp_path / "1.jsonl", [text]), None, tmp_path / "results")


def test_several_golds_of_one_question_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**verl(1, n, 1.0, 1), "gts": gold} for n, gold in enumerate(["2", "2.0", "2"])]
    import_file(write_lines(tmp_path / "1.jsonl", rows), None, tmp_path / "results")
    assert "1 questions have several golds: the first one is kept" in capsys.readouterr().out
    assert ask(tmp_path / "results", "SELECT gold FROM questions").item() == "2"


def test_the_same_import_again_gives_the_same_rows_once(tmp_path: Path) -> None:
    results = tmp_path / "results"
    rows = [verl(n % 3, n, float(n % 2), 1 + n // 6) for n in range(12)]
    file = write_lines(tmp_path / "run[1]'s log.jsonl", rows)  # brackets are no pattern (o49)
    tables = ("trajectories", "questions", "steps", "visits")
    import_file(file, None, results)
    first = [ask(results, f"SELECT * FROM {table} ORDER BY ALL") for table in tables]
    import_file(file, None, results)
    again = [ask(results, f"SELECT * FROM {table} ORDER BY ALL") for table in tables]
    assert [frame.height for frame in first] == [12, 3, 2, 6]
    for one, other in zip(first, again, strict=True):
        assert one.equals(other)
    (folder,) = (results / "imports").iterdir()
    assert folder.name == "run-1-s-log"
    assert sorted(path.name for path in folder.iterdir()) == ["log", "run.json"]
    assert ask(results, "SELECT count(*) FROM runs").item() == 1


MEASURE = """
import resource, sys, tempfile
from pathlib import Path
from pipeline.imports.formats import Options, find
from pipeline.imports.command import write_import
with tempfile.TemporaryDirectory(dir=Path(sys.argv[1]).parent) as folder:
    source = find(Path(sys.argv[1]), Options())
    facts = write_import(source, Options(), Path(folder), "import-x")
print(facts.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def measure(file: Path, megabytes: int) -> tuple[int, int]:
    """Rows of a file of that size, and the most memory that reading and writing it takes [MiB]."""
    words = " ".join(f"{n * n % 9973} plus {n}" for n in range(300))
    rows = 0
    with file.open("w") as handle:
        while handle.tell() < megabytes * 2**20:
            row = verl(rows // 8 % 997, rows, float(rows % 3 == 0), 1 + rows // 4000)
            handle.write(json.dumps({**row, "output": f"{rows}: {words}"}) + "\n")
            rows += 1
    command = [sys.executable, "-c", MEASURE, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    read, peak = map(int, done.stdout.split())
    file.unlink()
    assert read == rows
    return rows, peak


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    rows, small = measure(tmp_path / "1.jsonl", 3)
    more, large = measure(tmp_path / "2.jsonl", 300)
    assert more > 90 * rows
    assert large < small + 200, f"{small} MiB for 3 MB, {large} MiB for 300 MB"
