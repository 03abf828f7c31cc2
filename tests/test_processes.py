"""Several processes come to what one comes to: the same log, the same weights, the same end."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from alike import gap, require_alike
from dying import run_folder, small_study
from test_trainer import read
from together import evaluate, printed, several, together, train, train_broken, train_in_parts

from exgrpo.hardware import CPU
from exgrpo.tables.manifest import live_parts

pytestmark = pytest.mark.slow

# What rounding may come to: in the log, whose floats are float32, and in the weights after a run.
SINGLE, DOUBLE = (1e-4, 1e-5), (1e-6, 1e-10)

# name -> arm, settings
STUDIES: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "float32": ("exgrpo", {"training": {"dtype": "float32", "keep_best": True}}),
    "float64": ("exgrpo", {}),
    # The norm that it is clipped by is of the gradients of all processes.
    "clipped": ("exgrpo", {"optimiser": {"grad_clip": 0.05}}),
    "no bonus": ("exgrpo", {"objective": {"entropy_bonus": 0.0}}),
    "remix": ("remix", {"rollout": {"group_size": 8}}),
    "dynamic": ("dapo_sampling", {}),
    # Three processes have two groups: one has none, and updates are of one group.
    "few groups": ("exgrpo", {"batch": {"questions": 2}}),
    # Trap 32: every row is cut off and wrong, so that there is nothing to learn from.
    "no signal": ("exgrpo", {"rollout": {"max_new_tokens": 1}, "training": {"steps": 3}}),
}
SIX = {"steps": 6, "checkpoint_every": 2, "dtype": "float64"}


def made(folder: Path, base: str, name: str) -> Path:
    arm, sections = STUDIES[name]
    small_study(folder, base, arm, **{**sections, "training": SIX | sections.get("training", {})})
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, able_folder: str) -> Any:
    """name -> folder of the study that one process has trained, made once."""
    done: dict[str, Path] = {}

    def trained(name: str) -> Path:
        if name not in done:
            folder = made(tmp_path_factory.mktemp("alone"), able_folder, name)
            assert together(CPU, folder, train) == {0}, printed(folder)
            done[name] = folder
        return done[name]

    return trained


@pytest.mark.parametrize("weights", ["replicated", "sharded"])
@pytest.mark.parametrize("name", ["float32", "float64", "clipped", "no bonus", "remix", "dynamic"])
def test_two_processes_come_to_the_same_log_and_weights_as_one(
    alone: Any, able_folder: str, tmp_path: Path, name: str, weights: str
) -> None:
    folder = made(tmp_path, able_folder, name)
    assert together(several(2, weights), folder, train) == {0}, printed(folder)
    found, expected = run_folder(folder), run_folder(alone(name))
    assert read(expected, "trajectories")["replayed"].any() == (name != "dynamic")
    require_alike(found, expected, *(SINGLE if name == "float32" else DOUBLE))
    if name == "float32":
        assert gap(found, expected, "best") <= SINGLE[1]
    if name == "clipped":
        assert (read(found, "steps")["grad_norm"] > 0.05).any(), "nothing was clipped"
    assert "2 processes, weights " + weights in (found / "run.json").read_text()


@pytest.mark.parametrize("weights", ["replicated", "sharded"])
@pytest.mark.parametrize("name", ["few groups", "no signal"])
def test_a_process_without_a_share_keeps_step(
    alone: Any, able_folder: str, tmp_path: Path, name: str, weights: str
) -> None:
    folder = made(tmp_path, able_folder, name)
    assert together(several(3, weights), folder, train) == {0}, printed(folder)
    require_alike(run_folder(folder), run_folder(alone(name)), *DOUBLE)
    if name == "no signal":
        steps = read(run_folder(folder), "steps")
        assert (steps["signal_groups"] == 0).all() and (steps["reward"] == 0).all()


@pytest.mark.parametrize("weights", ["replicated", "sharded"])
def test_trap_36_small_micro_batches_add_up_to_the_same(
    alone: Any, able_folder: str, tmp_path: Path, weights: str
) -> None:
    """One row a forward, and as many forwards in one process as in none other."""
    folder = made(tmp_path, able_folder, "float64")
    hardware = several(3, weights, micro_batch_tokens=1)
    assert together(hardware, folder, train) == {0}, printed(folder)
    require_alike(run_folder(folder), run_folder(alone("float64")), *DOUBLE)


@pytest.mark.parametrize("weights", ["replicated", "sharded"])
def test_two_processes_with_the_head_in_parts_come_to_the_same(
    alone: Any, able_folder: str, tmp_path: Path, weights: str
) -> None:
    """As at a real vocabulary, where the logits of a forward are never there at once."""
    folder = made(tmp_path, able_folder, "float64")
    assert together(several(2, weights), folder, train_in_parts) == {0}, printed(folder)
    assert re.search(r"head: most calls in a forward [2-9]", printed(folder))
    require_alike(run_folder(folder), run_folder(alone("float64")), *DOUBLE)


@pytest.mark.parametrize("weights", ["replicated", "sharded"])
def test_two_processes_give_the_same_bits_when_run_twice(
    able_folder: str, tmp_path: Path, weights: str
) -> None:
    first, second = (made(tmp_path / each, able_folder, "float64") for each in ("1", "2"))
    for folder in (first, second):
        assert together(several(2, weights), folder, train) == {0}, printed(folder)
    require_alike(run_folder(first), run_folder(second), 0.0, 0.0)


@pytest.mark.parametrize("weights", ["replicated", "sharded"])
def test_activation_checkpointing_changes_nothing(
    alone: Any, able_folder: str, tmp_path: Path, weights: str
) -> None:
    folder = made(tmp_path, able_folder, "float64")
    hardware = several(2, weights, activation_checkpointing=True)
    assert together(hardware, folder, train) == {0}, printed(folder)
    require_alike(run_folder(folder), run_folder(alone("float64")), *DOUBLE)


def test_traps_13_51_and_52_rollouts_are_of_the_run_s_seed_and_all_their_own(
    alone: Any, able_folder: str, tmp_path: Path
) -> None:
    """No process has a random state of its own, and none draws what another draws."""
    folder = made(tmp_path, able_folder, "float64")
    assert together(several(2), folder, train) == {0}, printed(folder)
    fresh = [
        read(run_folder(each), "tokens").sort("trajectory").select("trajectory", "token_ids")
        for each in (folder, alone("float64"))
    ]
    assert fresh[0].equals(fresh[1])
    first = read(run_folder(folder), "trajectories").filter(pl.col("step") == 1)
    drawn = first.join(fresh[0], on="trajectory").group_by("group").agg(pl.col("token_ids"))
    different = [len({tuple(ids) for ids in group}) for group in drawn["token_ids"].to_list()]
    assert max(different) > 1 and sum(different) > len(different)


def test_trap_46_a_metric_of_a_step_is_of_the_rows_of_all_processes(
    able_folder: str, tmp_path: Path
) -> None:
    folder = made(tmp_path, able_folder, "float32")
    assert together(several(2), folder, train) == {0}, printed(folder)
    rows, steps = (read(run_folder(folder), name) for name in ("trajectories", "steps"))
    fresh = rows.filter(~pl.col("replayed")).group_by("step").agg(
        reward=pl.col("correct").mean(), sampled_tokens=pl.col("length").sum()
    ).sort("step")  # fmt: skip
    assert (steps["reward"] - fresh["reward"]).abs().max() < 1e-6
    assert steps["sampled_tokens"].to_list() == fresh["sampled_tokens"].to_list()


# Ends and resumes: told or killed in step 3, in one process, with one kind; gone on with another.
RESUMES = [
    (several(2), several(2, "sharded")),
    (several(2, "sharded"), CPU),
    (CPU, several(3, "sharded")),
    (several(3), several(2)),
]


@pytest.mark.parametrize("kill", [False, True], ids=["told", "killed"])
@pytest.mark.parametrize("number", range(len(RESUMES)))
def test_a_checkpoint_of_one_kind_of_hardware_is_gone_on_from_on_another(
    alone: Any, able_folder: str, tmp_path: Path, number: int, kill: bool
) -> None:
    first, second = RESUMES[number]
    folder = made(tmp_path, able_folder, "float64")
    codes = together(first, folder, train, (3, first.all_processes - 1), kill)
    assert codes <= ({-9, 1} if kill else {75}), printed(folder)
    saved = run_folder(folder) / f"checkpoints/step-{2 if kill else 3:08d}.pt"
    assert max((run_folder(folder) / "checkpoints").glob("step-*.pt")) == saved
    assert not (run_folder(folder) / "done.json").exists()
    if not kill:
        assert "Saved after step 3 of 6" in printed(folder)
    assert together(second, folder, train) == {0}, printed(folder)
    require_alike(run_folder(folder), run_folder(alone("float64")), *DOUBLE)


def test_a_damaged_checkpoint_is_set_aside_by_the_first_and_missed_by_all(
    alone: Any, able_folder: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(alone("float64"), tmp_path / "study", symlinks=True))
    run = run_folder(folder)
    (run / "done.json").unlink()
    shutil.rmtree(run / "final")
    newest = run / "checkpoints/step-00000006.pt"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert together(several(2, "sharded"), folder, train) == {0}, printed(folder)
    assert printed(folder).count("damaged: its bytes are not those") == 1
    assert newest.with_suffix(".damaged").exists() and newest.exists()
    require_alike(run, run_folder(alone("float64")), *DOUBLE)


def test_training_that_stops_by_itself_stops_in_all(able_folder: str, tmp_path: Path) -> None:
    made(tmp_path, able_folder, "float64")
    assert together(several(2, "sharded"), tmp_path, train_broken) == {2}, printed(tmp_path)
    assert printed(tmp_path).count("training stops") == 2  # a launcher tells it once
    row = json.loads((run_folder(tmp_path) / "run.json").read_text())
    assert row["status"] == "stopped" and "training stops" in row["reason"]
    assert live_parts(run_folder(tmp_path) / "log"), "the rows are there to be looked at"


def test_a_run_that_is_being_trained_is_left_alone(alone: Any) -> None:
    from pipeline.train import _only_process

    folder = alone("float64")
    with _only_process(run_folder(folder)):
        codes = together(several(2), folder, train)
    assert codes == {1, 2} and "another process is training this run" in printed(folder)


@pytest.mark.parametrize("base", [False, True], ids=["run", "base model"])
def test_an_evaluation_by_two_has_the_rows_of_one(alone: Any, tmp_path: Path, base: bool) -> None:
    frames = []
    for number, hardware in enumerate((CPU, several(2, "sharded"))):
        copy = Path(shutil.copytree(alone("float64"), tmp_path / str(number), symlinks=True))
        assert together(hardware, copy, evaluate, base) == {0}, printed(copy)
        (done,) = (copy / "results/small").glob("evaluations/*/done.json")
        frames.append(read(done.parent, "evaluations"))
        assert together(hardware, copy, evaluate, base) == {0}
        assert printed(copy).count("evaluated before") == 1
    pl.testing.assert_frame_equal(*frames, abs_tol=1e-5)
