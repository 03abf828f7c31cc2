"""SIGKILL at any moment: the log and the weights end as those of a run that nobody killed."""

import random
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import torch
from dying import HALVES, MOMENTS, Death, run_folder, small_study, train_until
from polars.testing import assert_frame_equal
from test_trainer import final_weights, read

from exgrpo.tables.manifest import live_parts

pytestmark = pytest.mark.slow

KILLS = 30


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """Every table of a log as its readers see it, in the order of its rows."""
    names = {part.table for part in live_parts(folder / "log")}
    return {name: read(folder, name) for name in names}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory, able_folder: str) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    small_study(folder, able_folder)
    assert not train_until(folder)
    return run_folder(folder)


def require_equal(folder: Path, unbroken: Path) -> None:
    expected, found = tables(unbroken), tables(folder)
    assert found.keys() == expected.keys()
    for name, frame in expected.items():
        assert_frame_equal(found[name], frame, check_exact=True)
    left, right = final_weights(folder), final_weights(unbroken)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[key], right[key]) for key in right)


def deaths(rng: random.Random) -> list[Death]:
    """Every moment in every way, and some that no one chose; in no order."""
    chosen = [
        Death(moment, how, count=1 if moment in ("done", "final model") else rng.randint(1, 4))
        for moment in MOMENTS
        for how in ("before", "after", *(["half way"] if moment in HALVES else []))
    ]
    chosen += [Death(seconds=rng.uniform(0.05, 1.0)) for _ in range(8)]
    rng.shuffle(chosen)
    return chosen


def test_the_log_of_the_unbroken_run_has_what_a_kill_could_harm(unbroken: Path) -> None:
    steps = tables(unbroken)["steps"]
    assert steps["step"].to_list() == list(range(1, 13))
    assert steps["replay_on"].all() and steps["experiential_groups"].sum() > 0
    assert {"candidates", "experience", "evaluations", "vocabulary"} <= tables(unbroken).keys()


def test_killed_at_thirty_random_moments_it_ends_like_an_unbroken_run(
    able_folder: str, unbroken: Path, tmp_path: Path
) -> None:
    rng = random.Random(4)
    folder, runs = tmp_path / "0", 0
    small_study(folder, able_folder)
    killed: Counter[str] = Counter()
    for death in deaths(rng):
        while not train_until(folder, death):  # it ended before its moment came
            require_equal(run_folder(folder), unbroken)
            runs += 1
            folder = tmp_path / str(runs)
            small_study(folder, able_folder)
        killed[death.moment] += 1
    assert not train_until(folder)
    require_equal(run_folder(folder), unbroken)
    assert killed.total() >= KILLS and killed.keys() >= MOMENTS.keys()
