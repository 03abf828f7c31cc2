"""`exgrpo observe`: every observation speaks about every study and import, and about nothing."""

from pathlib import Path

import polars as pl
import pytest
from lake_fixture import DemoResults

from analysis.drawing import StudyFacts
from analysis.observations.registry import OBSERVATIONS
from analysis.queries import answer, named_queries
from exgrpo.errors import UserError
from pipeline.observe import observe


def test_observations_are_well_formed() -> None:
    names = [observation.name for observation in OBSERVATIONS]
    assert len(set(names)) == len(names) >= 9
    for observation in OBSERVATIONS:
        assert set(observation.queries) <= set(named_queries()), observation.name
        assert observation.title.endswith("?") and observation.reading


def test_every_study_is_told_and_drawn(
    demo: DemoResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    observe(demo.results, None, None, [], tmp_path)
    told = capsys.readouterr().out
    assert "study demo" in told
    for observation in OBSERVATIONS:
        assert observation.title in told
        assert (tmp_path / "demo" / f"{observation.name}.html").stat().st_size > 1000


def test_an_import_is_told(
    golden_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    observe(golden_path.parent, None, "import-riddles", [], None)
    told = capsys.readouterr().out
    assert "import-riddles" in told
    assert "Not here:" in told  # it has no arms and was not trained


def test_empty_answers_are_said(golden: object) -> None:
    facts = StudyFacts("none", "no world", [], [])
    for observation in OBSERVATIONS:
        frames = {
            name: answer(golden, name, study="no such study")  # type: ignore[arg-type]
            for name in observation.queries
        }
        assert all(frame.is_empty() for frame in frames.values()), observation.name
        lines = observation.lines(frames)
        assert lines, observation.name
        assert lines[0].startswith("Not here:"), observation.name
        assert all("ot here:" in line for line in lines)
        plot = observation.draw(facts, frames)
        assert any("Nothing to show" in (a.text or "") for a in plot.layout.annotations)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"study": "dmo"}, "holds no study 'dmo'. It holds: demo"),
        ({"run": "x"}, "holds no run 'x'"),
        ({"names": ["stalenes"]}, "Did you mean 'staleness'"),
    ],
)
def test_what_is_not_there_is_an_error(
    demo: DemoResults, asked: dict[str, object], said: str
) -> None:
    given = {"study": None, "run": None, "names": [], "figures": None} | asked
    with pytest.raises(UserError, match=said):
        observe(demo.results, **given)  # type: ignore[arg-type]


def test_frames_are_polars(golden: object) -> None:
    for observation in OBSERVATIONS:
        for name in observation.queries:
            assert isinstance(answer(golden, name), pl.DataFrame)  # type: ignore[arg-type]
