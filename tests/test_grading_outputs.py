"""1950 real responses to MATH questions: graded in little time, as a reader grades them."""

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from exgrpo.grading import Answer, Grader, Verdict, rules_of
from pipeline.imports.formats import Options, find
from pipeline.imports.rows import Tally, rows_of

FILES = (
    "math-qwen-100x8",
    "math500-rho-7b",
    "math500-rho-1b",
    *(f"math-nemo-rs{sample}" for sample in range(3)),
)
# Where our rules and the reader differ, with our verdict: docs/grading.md says why.
OTHERWISE = {
    ("math-nemo-rs0", 41, 0): False,
    ("math-nemo-rs2", 16, 0): False,
}


@dataclass(frozen=True)
class Graded:
    """Verdicts by file, line and sample (from 0), and the seconds that they took."""

    verdicts: dict[tuple[str, int, int], Verdict]
    seconds: float


@pytest.fixture(scope="module")
def graded(outputs: Path) -> Graded:
    answers = {}
    samples: Counter[tuple[str, int]] = Counter()
    for name in FILES:
        source = find(outputs / f"{name}.jsonl", Options())
        assert source.kind is not None
        for row in rows_of(source, Tally()):
            line = int(row["place"].removeprefix("line ")) - 1
            answer = Answer(row["gold"], row["response"], rules_of(source.kind))
            answers[name, line, samples[name, line]] = answer
            samples[name, line] += 1
    with Grader(workers=2) as grader:
        began = time.monotonic()
        verdicts = grader.grade_all(list(answers.values()))
        return Graded(dict(zip(answers, verdicts, strict=True)), time.monotonic() - began)


@pytest.fixture(scope="module")
def outputs() -> Path:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "model-outputs"
    if not folder.is_dir():
        pytest.skip("needs the folder ../shared with real data, which is not part of the repo")
    return folder


def test_all_are_graded_in_under_a_minute(graded: Graded) -> None:
    assert len(graded.verdicts) == 1950
    assert all(verdict.correct is not None for verdict in graded.verdicts.values())
    assert graded.seconds < 60  # some three on two cores


def test_verdicts_are_those_of_a_reader(graded: Graded, outputs: Path) -> None:
    lines = (outputs / "label-disagreements.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    by_hand = {
        (row["file"].removesuffix(".jsonl"), row["line"], row["sample"]): row["by_hand"]
        for row in rows
        if row["by_hand"] is not None
    }
    assert len(by_hand) == 27
    for key, verdict in (by_hand | OTHERWISE).items():
        assert graded.verdicts[key].correct is verdict, key
    assert all(by_hand[key] is not verdict for key, verdict in OTHERWISE.items())
