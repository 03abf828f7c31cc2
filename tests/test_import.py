"""Import of real model outputs: graded, grouped, in the lake; bad files change nothing."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from foreign_logs import ask

from exgrpo.data_set_file import DataSetFile
from exgrpo.data_set_shapes import question_of, reader_of
from exgrpo.errors import UserError
from exgrpo.grading import Answer, Grader, rules_of
from exgrpo.questions import question_id
from exgrpo.settings_files import parse, read_yaml
from pipeline.history import read_history
from pipeline.imports.command import import_file
from pipeline.imports.formats import Options, find
from pipeline.imports.rows import Tally, rows_of
from pipeline.imports.shapes import SHAPES

GENERIC: list[dict[str, object]] = [
    {"question": "1+1?", "gold": "2", "response": r"\boxed{2}", "correct": True},
    {"question": "2+2?", "gold": 4, "response": r"\boxed{5}", "correct": True},
    {"question": "1+1?", "gold": "2", "response": r"print(3) \boxed{3}", "correct": False},
]


def write(path: Path, rows: Sequence[object]) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with both real files of the product's promise imported."""
    outputs = Path(__file__).resolve().parents[2] / "shared" / "data" / "model-outputs"
    if not outputs.is_dir():
        pytest.skip("needs ../shared/data/model-outputs, which is not part of the repo")
    results = tmp_path_factory.mktemp("imports") / "results"
    import_file(outputs / "gsm8k-openai-600x4.jsonl", "gsm8k", results)
    import_file(outputs / "math-qwen-100x8.jsonl", "math", results)
    return results


def test_real_files_are_graded_and_grouped(real: Path) -> None:
    groups = ask(
        real,
        """
        SELECT run, "group", count(*) AS responses, count(DISTINCT question) AS questions,
               count(*) FILTER (correct) AS k, any_value(group_successes) AS logged_k,
               any_value(group_size) AS size, any_value(bucket) AS bucket,
               max(slot) + 1 AS slots, count(*) FILTER (correct IS NULL) AS ungraded
        FROM trajectories GROUP BY ALL
        """,
    )
    size = pl.when(pl.col("run") == "import-gsm8k").then(4).otherwise(8)
    for column in ("responses", "size", "slots"):
        assert groups.select((pl.col(column) == size).all()).item()
    assert groups["questions"].max() == 1
    assert groups["ungraded"].sum() == 0
    assert groups.select((pl.col("k") == pl.col("logged_k")).all()).item()
    between = (pl.col("k") > 0) & (pl.col("k") < pl.col("size"))
    expected = pl.when(between).then(pl.col("k"))
    assert groups.select(pl.col("bucket").eq_missing(expected).all()).item()
    counts = Counter(groups["run"])
    assert counts == {"import-gsm8k": 600, "import-math": 100}


def test_real_buckets(real: Path) -> None:
    buckets = ask(
        real,
        'SELECT run, group_successes AS k, count(DISTINCT "group") AS groups '
        "FROM trajectories GROUP BY ALL",
    )
    by_run = {
        run: dict(buckets.filter(run=run).select("k", "groups").sort("k").iter_rows())
        for run in ("import-gsm8k", "import-math")
    }
    # GSM8K: counted from the file's own labels, with which ours agree in all 2400 responses.
    assert by_run["import-gsm8k"] == {0: 204, 1: 129, 2: 102, 3: 87, 4: 78}
    # MATH: the same but for question 72, whose k is 8 and not 7 (see below).
    assert by_run["import-math"] == {0: 3, 1: 2, 2: 1, 3: 2, 4: 3, 6: 2, 7: 1, 8: 86}


def test_our_labels_against_the_recorded_ones(real: Path, shared: Path) -> None:
    differ = ask(
        real,
        """
        SELECT run, version AS file, "group" AS line, slot AS sample, correct, valid AS recorded
        FROM judgements JOIN trajectories USING (run, trajectory)
        WHERE judge = 'recorded' AND valid IS DISTINCT FROM correct
        """,
    ).to_dicts()
    listed = {
        (row["file"], row["line"], row["sample"]): row["by_hand"]
        for row in map(
            json.loads,
            (shared / "data/model-outputs/label-disagreements.jsonl").read_text().splitlines(),
        )
    }
    for row in differ:
        by_hand = listed[row["file"], row["line"], row["sample"]]
        assert by_hand is None or by_hand is row["correct"]
    # The only one: gold 10{,}000, answer 10000. The other listed labels are of other files. On
    # GSM8K there is none: gold and answers are plain numbers after a last "A:".
    assert [(row["run"], row["line"], row["sample"]) for row in differ] == [("import-math", 72, 7)]
    compared = ask(real, "SELECT run, count(*) AS n FROM judgements GROUP BY run")
    assert dict(compared.iter_rows()) == {"import-gsm8k": 2400, "import-math": 800}


def test_what_a_file_cannot_know_is_null(real: Path) -> None:
    unknown = "length, mean_entropy, nll, advantage, ratio_mean, finish, chain_valid"
    rows = ask(real, f"SELECT count(COLUMNS([{', '.join(map(repr, unknown.split(', ')))}])) "
               "FROM trajectories")  # fmt: skip
    assert set(rows.row(0)) == {0}
    run = ask(real, "SELECT * FROM runs WHERE run = 'import-math'").to_dicts()[0]
    assert ask(real, "SELECT count(*) FROM steps").item() == 0  # model outputs are no training
    assert (run["study"], run["arm"], run["status"]) == ("imports", "math", "imported")
    assert json.loads(run["settings"])["shape"] == "math-qwen"


@pytest.mark.parametrize(
    ("file", "shape", "responses"),
    [
        ("gsm8k-openai-600x4.jsonl", "gsm8k-openai", 2400),
        ("math-qwen-100x8.jsonl", "math-qwen", 800),
        ("math500-rho-7b.jsonl", "math500-rho", 500),
        ("math-nemo-rs0.jsonl", "math-nemo", 50),
        ("openmathinstruct2-100.jsonl", "openmathinstruct2", 100),
        ("mmlu-pro-phi-3-mini-4k-instruct.jsonl", "mmlu-pro", 140),
    ],
)
def test_shapes_are_recognised(file: str, shape: str, responses: int, shared: Path) -> None:
    source, tally = find(shared / "data/model-outputs" / file, Options()), Tally()
    assert (source.format, len(list(rows_of(source, tally)))) == (shape, responses)
    assert not tally.bad and not tally.left_out


# right; recorded labels; responses in which we, and in which the file's own reader, read no letter
MMLU_PRO = {
    "mathstral-7b": (68, 140, 0, 0),
    "phi-3-mini-4k-instruct": (68, 134, 8, 6),
    "mistral-7b-instruct-v0.2": (45, 130, 13, 10),
}


@pytest.mark.parametrize("model", MMLU_PRO)
def test_real_multiple_choices_are_asked_in_letters_and_read_in_prose(
    model: str, shared: Path, tmp_path: Path, grader: Grader
) -> None:
    """Two letters (`(A) and (B)`) or an open bracket are no choice; the other reader takes one.

    Once that is the right one: `(E) and (I)` in line 49 of phi-3, whose label is the one that
    differs.
    """
    file = shared / f"data/model-outputs/mmlu-pro-{model}.jsonl"
    import_file(file, "choices", tmp_path)
    right, labels, unread, unread_there = MMLU_PRO[model]
    found = ask(tmp_path, "SELECT count(*) FILTER (correct), count(correct) FROM trajectories")
    assert found.row(0) == (right, 140)
    judged = ask(
        tmp_path,
        "SELECT count(*), count(*) FILTER (valid <> correct) "
        "FROM judgements JOIN trajectories USING (run, trajectory)",
    )
    assert judged.row(0) == (labels, 69 - right if model.startswith("phi") else 0)
    assert 140 - labels == unread_there
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    verdicts = grader.grade_all(
        [Answer(row["answer"], row["generated_text"], rules_of("prose+mcq")) for row in rows]
    )
    assert sum(not each.format_ok for each in verdicts) == unread
    asked = set(ask(tmp_path, "SELECT text FROM questions")["text"])
    data_set = parse_questions(shared / "data/mmlu-pro/sample-280.jsonl")
    assert asked <= data_set  # letter for letter as the data set asks them


def parse_questions(file: Path) -> set[str]:
    """The texts of a file of multiple choices as data sets have them."""
    described = DataSetFile(title="t", licence="l", local=file.name)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    found = set()
    for row in rows:
        read = reader_of(row, None)
        assert read is not None
        found.add(question_of(row, read, described, "mmlu-pro", 0)[0].text)
    return found


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"options": None}, "line 2: options that cannot be lettered: the options are None"),
        ({"options": ["sea"]}, "line 2: options that cannot be lettered"),
        ({"generated_text": None}, "line 2: a response is None"),
        ({"answer": "C"}, "line 2: the answer is 'C', the letters are AB"),
    ],
)
def test_a_bad_multiple_choice_is_named(
    changed: dict[str, object], message: str, tmp_path: Path
) -> None:
    good = {"question": "Wet?", "options": ["sand", "sea"], "answer": "B", "pred": None}
    good |= {"generated_text": "The answer is (B)."}
    file = write(tmp_path / "bad.jsonl", [good, {**good, "question": "Dry?", **changed}])
    with pytest.raises(UserError, match=message):
        import_file(file, None, tmp_path / "results")


# Files of ../shared/data that no command reads as questions, an import or a history, and why.
OTHERS = {
    "README.md": "what the folder holds",
    "model-outputs/label-disagreements.jsonl": "verdicts by hand, for the tests of the grader",
}


def test_every_real_file_is_read_by_a_command(shared: Path) -> None:
    """A data set, an import or a history; whatever comes anew must be given a reader, too."""
    data = shared / "data"
    described = [
        parse(DataSetFile, read_yaml(path), path) for path in Path("config/datasets").glob("*.yaml")
    ]
    data_sets = {file for each in described if each.local for file in data.glob(each.local)}
    for path in sorted(data.rglob("*")):
        name = str(path.relative_to(data))
        if path.is_dir() or name in OTHERS or path.parent.name == "licences":
            continue
        if path in data_sets:
            continue
        if path.suffix == ".json":
            assert read_history(path, 8), name
            continue
        tally = Tally()
        rows = list(rows_of(find(path, Options()), tally))
        assert rows and not tally.bad, name


def test_generic_lines_are_grouped_by_question_and_replaced_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    import_file(write(tmp_path / "my run.jsonl", GENERIC), None, results)
    said = capsys.readouterr().out
    assert "imported my-run (generic): 2 questions, 3 responses, 1 right" in said
    assert "1 of 2       1   bucket 1" in said
    assert "1 of 3 recorded labels differ" in said
    rows = ask(results, "SELECT * FROM trajectories ORDER BY trajectory")
    assert rows["trajectory"].to_list() == [f"import-my-run:1:{at}" for at in ("0:0", "0:1", "1:0")]
    assert rows["question"].to_list() == [question_id(q) for q in ("1+1?", "1+1?", "2+2?")]
    assert rows["correct"].to_list() == [True, False, False]
    assert rows["bucket"].to_list() == [1, 1, None]
    assert rows["code"].to_list() == [False, True, False]

    unlabelled = [{key: row[key] for key in ("question", "gold", "response")} for row in GENERIC]
    import_file(write(tmp_path / "again.jsonl", unlabelled[:2]), "my-run", results)
    assert ask(results, "SELECT count(*) FROM trajectories").item() == 2
    assert ask(results, "SELECT count(*) FROM judgements").item() == 0
    assert [folder.name for folder in (results / "imports").iterdir()] == ["my-run"]


def test_parquet_and_steps(tmp_path: Path) -> None:
    file = tmp_path / "run[1]'s.parquet"
    rows = [{**row, "gold": str(row["gold"]), "step": step} for step in (3, 7) for row in GENERIC]
    pl.DataFrame(rows).write_parquet(file)
    import_file(file, None, tmp_path / "results")
    groups = ask(
        tmp_path / "results", 'SELECT step, "group", count(*) FROM trajectories GROUP BY ALL'
    )
    assert sorted(groups.iter_rows()) == [(3, 0, 2), (3, 1, 1), (7, 0, 2), (7, 1, 1)]


BAD_ROWS = [
    ("{not json", r"line 2: no JSON object: '\{not json'"),
    ("[1, 2]", "line 2: no JSON object"),
    ('{"gold": "2", "gold": "3"}', "line 2: key 'gold' stands twice in one object"),
    ({**GENERIC[0], "gold": "None"}, "line 2: the gold is 'None': no answer can be graded"),
    ({**GENERIC[0], "gold": ""}, "line 2: the gold is ''"),
    ({**GENERIC[0], "response": None}, "line 2: a response is None"),
    ({**GENERIC[0], "question": " "}, "line 2: key `question` is ' '"),
    ({**GENERIC[0], "correct": "yes"}, "line 2: key `correct` is 'yes'"),
    ({**GENERIC[0], "step": "one"}, "line 2: key `step` is 'one'"),
    ({**GENERIC[0], "gold": "3"}, "line 2: gold '3', but line 1 gives the same question"),
    ({"question": "1+1?", "gold": "2"}, "line 2: misses the keys response of the shape generic"),
]


@pytest.mark.parametrize(("row", "message"), BAD_ROWS)
def test_a_bad_row_is_named_and_nothing_is_imported(
    row: object, message: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "bad.jsonl", [GENERIC[0], row])
    with pytest.raises(UserError, match=message) as error:
        import_file(file, None, tmp_path / "results")
    assert str(file) in str(error.value)
    assert not (tmp_path / "results").exists()


def test_an_import_that_the_lake_cannot_take_leaves_the_older_one(tmp_path: Path) -> None:
    row = {"question": "1+1?", "gold": "2", "response": "\\boxed{2}"}
    results = tmp_path / "results"
    import_file(write(tmp_path / "log.jsonl", [row]), "mine", results)
    folder = results / "imports"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (results / "lake").rename(results / "elsewhere")
    (results / "lake").write_text("in the way")
    with pytest.raises(
        UserError, match=r"lake.*: cannot be read or written: .* Nothing was imported"
    ):
        import_file(write(tmp_path / "log.jsonl", [row, row]), "mine", results)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_all_bad_rows_are_listed_up_to_ten(tmp_path: Path) -> None:
    empty = {**GENERIC[0], "gold": ""}
    file = write(tmp_path / "bad.jsonl", [GENERIC[0], *[empty] * 12])
    with pytest.raises(UserError, match="12 bad rows") as error:
        import_file(file, None, tmp_path / "results")
    assert str(error.value).count("the gold is ''") == 10
    assert "and 2 more" in str(error.value)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    unknown = write(tmp_path / "unknown.jsonl", [{"prompt": "1+1?", "completion": "2"}])
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 torn")
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    runs = write(tmp_path / "runs.jsonl", [{**GENERIC[0], "run": run} for run in "ab"])
    for file, message in (
        (empty, "the file is empty"),
        (unknown, "has the keys prompt, completion"),
        (torn, "cannot be read"),
        (binary, "the file is empty, or no line of it is JSON"),
        (tmp_path / "missing.jsonl", "No such file"),
        (runs, "holds several runs: a, b"),
    ):
        with pytest.raises(UserError, match=message) as error:
            import_file(file, None, tmp_path / "results")
        assert str(file) in str(error.value)
        assert not (tmp_path / "results").exists()
    with pytest.raises(UserError) as error:
        import_file(unknown, None, tmp_path / "results")
    for shape in SHAPES:
        assert shape.name in str(error.value)
    with pytest.raises(UserError, match="use letters, digits"):
        import_file(write(tmp_path / "ok.jsonl", GENERIC), "../up", tmp_path / "results")
