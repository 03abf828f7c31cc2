"""Logs of other trainers: what becomes of each line, worked out again by plain loops."""

import json
import math
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from foreign_logs import Row, ask, trl, verl, write_lines

from exgrpo.errors import UserError
from exgrpo.questions import question_id
from pipeline.cli import main
from pipeline.imports.command import import_file
from pipeline.imports.formats import Options

# Scores of four samples of three questions, by step; question 2 is not asked at step 10.
SCORES = {
    2: {0: [0.0, 0.0, 0.0, 0.0], 1: [1.0, 0.0, 0.0, None], 2: [1.0, 1.0, 1.0, 0.0]},
    10: {0: [0.0, 1.0, 0.0, 0.0], 1: [1.0, 1.0, 1.0, 1.0]},
}


def verl_log(folder: Path) -> Path:
    for step, questions in SCORES.items():
        rows = [
            verl(question, sample, score, step, acc=score == 1, pred=str(sample))
            for question, scores in questions.items()
            for sample, score in enumerate(scores)
        ]
        write_lines(folder / f"{step}.jsonl", rows)
    return folder


def test_verl_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    import_file(verl_log(tmp_path / "rollouts"), None, results)
    rows = ask(results, 'SELECT * FROM trajectories ORDER BY step, "group", slot').to_dicts()
    expected = []
    for step, questions in SCORES.items():
        for group, (question, scores) in enumerate(questions.items()):
            known = [score for score in scores if score is not None]
            k, size = sum(score >= 1 for score in known), len(known)
            for slot, score in enumerate(scores):
                line = verl(question, slot, score, step)
                right = None if score is None else score >= 1
                expected.append((step, group, slot, line["input"], line["output"], right, k, size))
    found = [
        (
            *(r["step"], r["group"], r["slot"], r["question"], r["response"], r["correct"]),
            *(r["group_successes"], r["group_size"]),
        )
        for r in rows
    ]
    assert found == [(*e[:3], question_id(e[3]), *e[4:]) for e in expected]
    assert [r["bucket"] for r in rows[::4]] == [None, 1, 3, 1, None]
    assert [r["difficulty"] for r in rows[::4]] == [None, "medium", "easy", "hard", None]
    assert rows[5]["trajectory"] == "import-rollouts:2:1:1"

    said = capsys.readouterr().out
    assert "imported rollouts (verl): 3 questions, 20 responses, 9 right" in said
    assert "1 ungraded; 2 steps (2 to 10)" in said
    assert "0            10   wrong" in said and "1             9   right" in said
    assert "  acc: 20\n" in said and "  pred: 20\n" in said
    assert "  gts -> gold\n" in said
    questions = ask(results, "SELECT text, prompt, gold FROM questions ORDER BY gold")
    assert questions["gold"].to_list() == ["1", "2", "3"]
    assert questions["text"].equals(questions["prompt"].rename("text"))


def test_steps_and_visits_are_worked_out(tmp_path: Path) -> None:
    results = tmp_path / "results"
    import_file(verl_log(tmp_path / "rollouts"), None, results)
    steps = ask(
        results,
        "SELECT step, reward, groups, signal_groups, solved_groups, failed_groups, ungraded "
        "FROM steps ORDER BY step",
    ).rows()
    assert steps == [(2, pytest.approx(4 / 11), 3, 2, 0, 1, 1), (10, 5 / 8, 2, 1, 1, 0, 0)]
    visits = ask(
        results,
        "SELECT step, visit, successes, previous_successes, next_share FROM visits "
        'ORDER BY step, "group"',
    ).rows()
    assert visits == [
        (2, 1, 0, None, 0.25),
        (2, 1, 1, None, 1.0),
        (2, 1, 3, None, None),
        (10, 2, 1, 0, None),
        (10, 2, 4, 1, None),
    ]


def test_verl_without_steps_in_its_lines_and_with_uids(tmp_path: Path) -> None:
    rows = [verl(7, sample, 1.0, 0, uid="ab"[sample // 2]) for sample in range(4)]
    for row in rows:
        del row["step"]
    import_file(write_lines(tmp_path / "31.jsonl", rows), "old", tmp_path / "results")
    groups = ask(
        tmp_path / "results", 'SELECT step, "group", count(*) FROM trajectories GROUP BY 1, 2'
    )
    assert sorted(groups.rows()) == [(31, 0, 2), (31, 1, 2)]  # one question, drawn twice

    file = write_lines(tmp_path / "rollouts.jsonl", rows)
    with pytest.raises(UserError, match=r"no key `step`, and the file's name rollouts\.jsonl"):
        import_file(file, None, tmp_path / "results")


def test_the_recorded_score_decides_and_our_grade_stands_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    rows = [verl(1, 0, 0.1, 1), verl(1, 2, 0.0, 1), verl(1, 3, 1.0, 1)]
    file = write_lines(tmp_path / "1.jsonl", rows)
    import_file(file, "log", results)
    assert ask(results, "SELECT count(*) FROM judgements").item() == 0
    assert ask(results, "SELECT count(extracted) FROM trajectories").item() == 0
    import_file(file, "log", results, Options(grade=True))
    graded = ask(
        results,
        "SELECT slot, correct, judge, valid, extracted FROM trajectories "
        "JOIN judgements USING (run, trajectory) ORDER BY slot",
    ).rows()
    assert graded == [
        (0, False, "workbench", True, "2"),
        (1, False, "workbench", True, "2"),
        (2, True, "workbench", True, "2"),
    ]
    assert "2 of 3 recorded labels differ from ours" in capsys.readouterr().out
    import_file(file, "log", results, Options(right=0.1))
    assert ask(results, "SELECT count(*) FILTER (correct) FROM trajectories").item() == 2


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_lines(tmp_path / "log" / "1.jsonl", [verl(1, 0, 0.5, 1)]).parent
    results = str(tmp_path / "results")

    def exgrpo(*options: str) -> object:
        command = ["exgrpo", "import", str(folder), "--results", results, *options]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    assert exgrpo("--format", "verl", "--right", "0.5", "--name", "mine") == 0
    said = capsys.readouterr().out
    assert said.startswith("imported mine (verl): 1 questions, 1 responses, 1 right")
    assert exgrpo("--format", "spam") == 2
    assert capsys.readouterr().err.startswith("error: --format 'spam': known are verl, trl")


def message(role: str, content: object) -> Row:
    return {"role": role, "content": content}


def test_trl_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    ask_q = [message("system", "Be short."), message("user", "2 + 2?")]
    rows: list[Row] = [
        {"prompt": ask_q, "completion": [message("assistant", "4")], "right_answer": 1.0},
        {"prompt": ask_q, "completion": [message("assistant", "5")], "right_answer": 0.0},
        {"prompt": ask_q, "completion": [message("assistant", "?")], "right_answer": math.nan},
    ]
    advantages = [0.5, -0.5, None]
    rows = [{**row, "advantage": a} for row, a in zip(rows, advantages, strict=True)]
    out = tmp_path / "out"
    trl(out / "completions", 5, [{**row, "format": 1.0} for row in rows])
    trl(out / "completions", 100, rows)  # a reward function that was added or removed
    with pytest.raises(UserError, match=r"several columns can be the reward: .*format"):
        import_file(out, None, results)
    assert not results.exists()
    import_file(out, "trl", results, Options(reward="right_answer"))
    found = ask(
        results,
        'SELECT step, "group", slot, response, correct, advantage, group_successes, group_size '
        "FROM trajectories ORDER BY step, slot",
    ).rows()
    assert found == [
        (step, 0, slot, "45?"[slot], (True, False, None)[slot], advantages[slot], 1, 2)
        for step in (5, 100)
        for slot in range(3)
    ]
    text = ask(results, "SELECT text FROM questions").item()
    assert text == "system: Be short.\nuser: 2 + 2?"
    assert "  format: 3\n" in capsys.readouterr().out


def test_trl_single_file_with_text_prompts_and_steps_as_text(tmp_path: Path) -> None:
    rows = [
        {"mode": mode, "prompt": "1 + 1?", "completion": "2", "reward_a": 1, "advantage": 0.0}
        for mode in ("train", "eval")
    ]
    file = trl(tmp_path / "c", "20", rows)
    import_file(file, None, tmp_path / "results")
    found = ask(tmp_path / "results", "SELECT step, response, correct FROM trajectories").rows()
    assert found == [(20, "2", True)]  # the rows of the mode eval are no training


MAPPING = """
columns:
  step: it
  question: item.problem
  gold: item.answer
  response: out
  correct: verdict.word
  advantage: adv
  entropies: h
constants: {finish: stop}
right: [pass, 1]
"""


def test_mapping_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pass", "fail", None, 1, True]
    rows = [
        {"it": 4, "item": {"problem": "p", "answer": "016", "id": at}, "out": "x"}
        | {"verdict": {"word": word}, "adv": at, "h": [0.5, 1.0] if at else None}
        for at, word in enumerate(words)
    ]
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(MAPPING)
    file = write_lines(tmp_path / "log.jsonl", rows)
    import_file(file, None, tmp_path / "results", Options(mapping=mapping))
    found = ask(
        tmp_path / "results",
        "SELECT correct, advantage, mean_entropy, finish FROM trajectories ORDER BY slot",
    ).rows()
    assert found == [
        (True, 0.0, None, "stop"),
        (False, 1.0, 0.75, "stop"),
        (None, 2.0, 0.75, "stop"),
        (True, 3.0, 0.75, "stop"),
        (False, 4.0, 0.75, "stop"),  # true is none of the values that count as right
    ]
    assert ask(tmp_path / "results", "SELECT gold FROM questions").item() == "016"
    said = capsys.readouterr().out
    assert "  item.id: 5\n" in said and "  item.answer -> gold\n" in said
    assert "  trajectories: level, " in said  # our columns that stay empty


@pytest.mark.parametrize(
    ("mapping", "wanted"),
    [
        ("columns: {step: a, question: b, score: c, spin: d}", "'spin' is no column that a log"),
        ("columns: {step: a, score: c}", "needs question under columns or constants"),
        ("columns: {step: a, question: b}", "needs gold, response .*or map score or correct"),
        ("columns: {step: a, question: b, score: c}\nright: [1]", "`right` says what of the key"),
        ("columns: {step: a, question: b, score: c}\nconstants: {step: 1}", "'step' is mapped and"),
        ("colums: {step: a}", "Give the keys columns, constants, right, kind"),
        ("columns: [step]", "is no mapping of our columns"),
        ("columns: {step: 1, question: b, score: c}", "1 is no key of theirs"),
        ("columns: {step: [", "cannot be read as YAML"),
        (
            "columns: {step: a, question: b, gold: c, response: d}\nkind: x",
            "kind: 'x'. Known: boxed",
        ),
    ],
)
def test_bad_mappings(mapping: str, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(mapping)
    file = write_lines(tmp_path / "log.jsonl", [{"a": 1}])
    with pytest.raises(UserError, match=wanted) as error:
        import_file(file, None, tmp_path / "results", Options(mapping=path))
    assert str(path) in str(error.value)


def test_a_mapping_without_score_is_graded_by_us(tmp_path: Path) -> None:
    mapping = tmp_path / "m.yaml"
    mapping.write_text("columns: {question: q, gold: a, response: r}\nconstants: {step: 1}")
    rows = [{"q": "1+1?", "a": 2, "r": rf"\boxed{{{n}}}"} for n in (2, 3)]
    file = write_lines(tmp_path / "log.jsonl", rows)
    import_file(file, None, tmp_path / "results", Options(mapping=mapping))
    found = ask(tmp_path / "results", "SELECT correct, extracted FROM trajectories ORDER BY slot")
    assert found.rows() == [(True, "2"), (False, "3")]


def test_history_of_group_accuracies(shared: Path, tmp_path: Path) -> None:
    file = shared / "data/rlvr-train/acc_step_500.json"
    results = tmp_path / "results"
    import_file(file, "history", results)
    expected = defaultdict(list)
    for key, shares in json.loads(file.read_text()).items():
        for at, share in enumerate(shares):
            later = shares[at + 1] if at + 1 < len(shares) else None
            before = shares[at - 1] if at else None
            expected[question_id(key)].append((at + 1, round(8 * share), share, before, later))
    found = defaultdict(list)
    for question, *rest in ask(
        results,
        "SELECT question, step, successes, success_share, previous_share, next_share "
        "FROM visits ORDER BY question, step",
    ).iter_rows():
        found[question].append(tuple(rest))
    assert found == expected
    totals = ask(
        results,
        'SELECT count(*), sum(fresh), sum("right"), max(visit), count(mean_entropy), '
        "count(*) FILTER (bucket IS DISTINCT FROM "
        "CASE WHEN successes BETWEEN 1 AND 7 THEN successes END) FROM visits",
    ).row(0)
    rows = [row for rows in expected.values() for row in rows]
    assert totals == (len(rows), 8 * len(rows), sum(row[1] for row in rows), 57, 0, 0)
    assert ask(results, "SELECT count(*) FROM trajectories").item() == 0
    assert ask(results, "SELECT count(DISTINCT text) FROM questions").item() == 1209


def test_what_cannot_be_recognised_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_lines(tmp_path / "odd" / "notes.txt", ["x"])
    file = write_lines(tmp_path / "odd.jsonl", [{"question": "?", "reply": "!"}])
    for path, held in (
        (tmp_path / "empty", "it is empty"),
        (tmp_path / "odd", "it holds notes.txt"),
        (file, "its first row has the keys question, reply"),
    ):
        with pytest.raises(UserError) as error:
            import_file(path, "x", tmp_path / "results")
        text = str(error.value)
        assert f"{path}: unknown shape: {held}" in text
        for name in ("prime-rl", "trl", "verl", "history", "mapped", "generic", "gsm8k-openai"):
            assert f"  {name}: " in text
    with pytest.raises(UserError, match="--format 'spam': known are verl, trl"):
        import_file(file, "x", tmp_path / "results", Options(format="spam"))
    with pytest.raises(UserError, match=r"line 1: misses the keys input, output, score"):
        import_file(file, "x", tmp_path / "results", Options(format="verl"))
    with pytest.raises(UserError, match="no log of the format prime-rl"):
        import_file(tmp_path / "odd", "x", tmp_path / "results", Options(format="prime-rl"))
    with pytest.raises(UserError, match="No such file"):
        import_file(tmp_path / "gone", "x", tmp_path / "results")
