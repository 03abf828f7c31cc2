"""Checkpoints: they prove themselves, know whose they are, and a resume changes nothing."""

import dataclasses
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from polars.testing import assert_frame_equal
from prompted import prompted
from test_trainer import KilledError, final_weights, read, run, settings

from exgrpo import checkpoint, step, trainer
from exgrpo.errors import UserError
from exgrpo.rollout import torch_engine
from exgrpo.settings import RunSettings
from exgrpo.tables.manifest import MANIFEST, attempts

TABLES = ("trajectories", "tokens", "steps", "candidates", "experience", "evaluations")
# An epoch of 6 questions is three steps of 2.
EPOCHS = settings(
    questions={"train": 6},
    batch={"questions": 2},
    experience={"replay": "none"},
    training={"steps": 6, "checkpoint_every": 1},
)


def require_equal(folder: Path, expected: Path, tables: tuple[str, ...] = TABLES) -> None:
    for table in tables:
        assert_frame_equal(read(folder, table), read(expected, table), check_exact=True)
    left, right = final_weights(folder), final_weights(expected)
    assert all(torch.equal(left[key], right[key]) for key in right)


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and the time of its last change."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def cut_at(folder: Path, base: str, of: RunSettings, last: int) -> None:
    """Train until the end of a step, and no further: as a kill before its checkpoint does."""

    def die(metrics: dict[str, Any]) -> None:
        if metrics["step"] == last:
            raise KilledError

    with pytest.raises(KilledError):
        run(folder, base, of, die)


def steps_done(folder: Path, base: str, of: RunSettings) -> list[int]:
    seen: list[int] = []
    run(folder, base, of, lambda metrics: seen.append(metrics["step"]))
    return seen


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, base_folder: str) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run(folder, base_folder, settings())
    return folder


@pytest.fixture(scope="module")
def two_epochs(tmp_path_factory: pytest.TempPathFactory, base_folder: str) -> Path:
    folder = tmp_path_factory.mktemp("epochs")
    run(folder, base_folder, EPOCHS)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


# The file


def test_the_newest_two_are_kept_and_torch_opens_them(tmp_path: Path) -> None:
    for number in (8, 9, 10, 100):
        checkpoint.save(tmp_path, number, {"step": number})
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-00000010.pt", "step-00000100.pt"]
    assert checkpoint.load_latest(tmp_path) == {"step": 100}
    assert torch.load(tmp_path / names[1], weights_only=True) == {"step": 100}


def test_any_damage_is_found_and_the_one_before_serves(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in (1, 2):
        checkpoint.save(tmp_path / "sound", number, {"step": number, "weight": torch.arange(50.0)})
    content = (tmp_path / "sound/step-00000002.pt").read_bytes()
    harmed = [content[:length] for length in (0, 1, 31, 32, 33, len(content) - 1)]
    harmed += [content + b"\0", content[: len(content) // 2] + bytes(len(content) // 2)]
    for place in rng.choice(len(content), 40, replace=False):
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        harmed.append(bytes(flipped))
    for number, damaged in enumerate(harmed):
        folder = Path(shutil.copytree(tmp_path / "sound", tmp_path / str(number)))
        (folder / "step-00000002.pt").write_bytes(damaged)
        said: list[str] = []
        found = checkpoint.load_latest(folder, said.append)
        assert found is not None and found["step"] == 1
        (message,) = said
        assert "step-00000002.pt: damaged" in message
        assert "Going on from step-00000001.pt: steps 2 to 2 are done again" in message


def test_a_damaged_one_is_set_aside_and_takes_no_place_of_a_sound_one(tmp_path: Path) -> None:
    for number in (1, 2):
        checkpoint.save(tmp_path, number, {"step": number})
    (tmp_path / "step-00000002.pt").write_bytes(b"torn")
    checkpoint.load_latest(tmp_path)
    checkpoint.save(tmp_path, 3, {"step": 3})
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-00000001.pt", "step-00000002.damaged", "step-00000003.pt"]


def test_where_all_are_damaged_nothing_is_touched(copy: Path, base_folder: str) -> None:
    for path in (copy / "checkpoints").iterdir():
        path.write_bytes(path.read_bytes()[:1000])
    before = files(copy)
    with pytest.raises(UserError, match="every checkpoint is damaged") as told:
        run(copy, base_folder, settings())
    assert "step-00000004.pt, step-00000006.pt" in str(told.value)
    assert f"remove {copy / 'checkpoints'}" in str(told.value)
    assert files(copy) == before


def test_training_goes_on_from_the_one_before_a_damaged_one(
    copy: Path, finished: Path, base_folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = copy / "checkpoints/step-00000006.pt"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert steps_done(copy, base_folder, settings()) == [5, 6]
    printed = capsys.readouterr().out
    assert f"{newest}: damaged" in printed and "steps 5 to 6 are done again" in printed
    require_equal(copy, finished)


# Whose it is

OTHERS = {
    "a setting": ({"optimiser": {"learning_rate": 3e-4}}, "optimiser.learning_rate: 0.001 there, "),
    "a longer run": ({"training": {"steps": 8}}, "training.steps: 6 there, 8 now"),
    "a seed": ({"seed": 99}, f"seed: {settings().seed} there, 99 now"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_other_settings_is_refused(
    copy: Path, base_folder: str, other: str
) -> None:
    sections, line = OTHERS[other]
    values = settings().model_dump()
    for name, section in sections.items():
        values[name] = {**values[name], **section} if isinstance(section, dict) else section
    before = files(copy)
    with pytest.raises(UserError, match="are of another run") as told:
        run(copy, base_folder, RunSettings.model_validate(values))
    listed = [text for text in str(told.value).splitlines() if text.startswith("  ")]
    assert len(listed) == 1 and line in listed[0]
    assert f"remove {copy} to train afresh" in str(told.value)
    assert files(copy) == before


def test_a_checkpoint_of_another_model_is_refused(copy: Path, able_folder: str) -> None:
    with pytest.raises(UserError, match=r"start model: [0-9a-f]{16} there, [0-9a-f]{16} now"):
        run(copy, able_folder, settings())


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_checkpoint_of_other_questions_is_refused(
    copy: Path, base_folder: str, split: str
) -> None:
    splits = prompted(settings().questions, base_folder)
    changed = dataclasses.replace(splits[split][0], gold="other")
    splits[split] = [changed, *splits[split][1:]]
    with pytest.raises(UserError) as told:
        trainer.train(
            settings(), base_folder, splits["train"], splits["validation"], copy,
            lambda metrics: None, lambda progress: None,
        )  # fmt: skip
    listed = [text for text in str(told.value).splitlines() if text.startswith("  ")]
    names = {"train": "training questions", "validation": "validation questions"}
    assert len(listed) == 1 and listed[0].startswith(f"  {names[split]}: ")


def test_keys_that_only_one_side_knows_are_named(tmp_path: Path) -> None:
    saved = {"batch": {"old": 1, "same": 2}, "gone": {"key": None}}
    with pytest.raises(UserError) as told:
        checkpoint.require_same(tmp_path, saved, {"batch": {"same": 2, "new": 3}, "gone": {}})
    listed = str(told.value).splitlines()[1:-1]
    assert listed == [
        "  batch.old: 1 there, absent now",
        "  gone.key: None there, absent now",
        "  batch.new: absent there, 3 now",
    ]
    checkpoint.require_same(tmp_path, saved, saved)


def test_a_log_that_is_gone_or_short_is_not_gone_on_with(copy: Path, base_folder: str) -> None:
    manifest = copy / "log" / MANIFEST
    lines = manifest.read_text().splitlines(keepends=True)
    manifest.write_text("".join(line for line in lines if "steps/part-1-3-4" not in line))
    with pytest.raises(UserError, match="holds 4 of the 6 steps"):
        run(copy, base_folder, settings())
    shutil.rmtree(copy / "log")
    with pytest.raises(UserError, match="holds 0 of the 6 steps"):
        run(copy, base_folder, settings())
    assert not (copy / "log").exists()


# Where it goes on


@pytest.mark.parametrize("last_step", [1, 2, 3, 4, 5])
def test_a_resume_is_bit_equal_to_no_interruption(
    base_folder: str, finished: Path, tmp_path: Path, last_step: int
) -> None:
    cut_at(tmp_path, base_folder, settings(), last_step + 1)
    saved = last_step - last_step % 2
    assert steps_done(tmp_path, base_folder, settings()) == list(range(saved + 1, 7))
    require_equal(tmp_path, finished)


def test_o29_with_a_checkpoint_at_3_the_first_step_done_is_4(
    base_folder: str, finished: Path, tmp_path: Path
) -> None:
    of = settings(training={"checkpoint_every": 3})
    cut_at(tmp_path, base_folder, of, 5)
    assert steps_done(tmp_path, base_folder, of) == [4, 5, 6]
    for table in ("steps", "evaluations"):  # all but the run id, which the setting is part of
        assert_frame_equal(read(tmp_path, table).drop("run"), read(finished, table).drop("run"))


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6])
def test_o25_the_order_after_a_resume_is_that_of_a_run_without_a_break(
    base_folder: str, two_epochs: Path, tmp_path: Path, at: int
) -> None:
    """Two epochs of 6 questions; a resume at the end of the first is one of the cuts (at 4)."""
    cut_at(tmp_path, base_folder, EPOCHS, at)
    assert steps_done(tmp_path, base_folder, EPOCHS) == list(range(at, 7))
    order = read(tmp_path, "trajectories").filter(slot=0)["question"].to_list()
    assert order == read(two_epochs, "trajectories").filter(slot=0)["question"].to_list()
    assert sorted(order[:6]) == sorted(order[6:]) and len(set(order)) == 6
    assert order[:6] != order[6:]
    require_equal(tmp_path, two_epochs, ("trajectories", "tokens", "steps", "evaluations"))


def test_o27_questions_in_flight_at_a_kill_are_trained_once(
    base_folder: str, two_epochs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the rollouts of step 2 and its update: what was asked is asked again."""
    with monkeypatch.context() as patch:
        update_policy = step.update_policy
        updates: list[int] = []

        def update_once(*arguments: Any) -> Any:
            updates.append(1)
            if len(updates) == 2:
                raise KilledError
            return update_policy(*arguments)

        patch.setattr(step, "update_policy", update_once)
        with pytest.raises(KilledError):
            run(tmp_path, base_folder, EPOCHS)
    assert steps_done(tmp_path, base_folder, EPOCHS) == [2, 3, 4, 5, 6]
    rows = read(tmp_path, "trajectories").filter(slot=0, trained=True)
    assert set(Counter(rows.filter(rows["step"] <= 3)["question"]).values()) == {1}
    assert set(Counter(rows["question"]).values()) == {2}
    require_equal(tmp_path, two_epochs, ("trajectories", "steps"))


def test_o27_questions_beyond_those_that_learn_are_asked_once_too(
    base_folder: str, tmp_path: Path
) -> None:
    """Dynamic sampling asks more than it trains on: saved after that, no question is lost."""
    of = settings(
        questions={"train": 12},
        batch={"questions": 2, "learning_groups": 1, "max_rounds": 3},
        experience={"replay": "none"},
        training={"steps": 5, "checkpoint_every": 1},
    )
    run(tmp_path / "whole", base_folder, of)
    cut_at(tmp_path / "cut", base_folder, of, 4)
    run(tmp_path / "cut", base_folder, of)
    require_equal(tmp_path / "cut", tmp_path / "whole", ("trajectories", "steps"))
    order = read(tmp_path / "cut", "trajectories").filter(slot=0)["question"].to_list()
    assert len(order) > 2 * 5, "more were asked than two a step"
    for start in range(0, len(order), 12):
        epoch = order[start : start + 12]
        assert len(set(epoch)) == len(epoch)


def test_o23_a_resume_writes_no_old_row_again(base_folder: str, tmp_path: Path) -> None:
    of = settings(training={"steps": 4, "checkpoint_every": 3})
    cut_at(tmp_path, base_folder, of, 4)
    assert read(tmp_path, "steps")["step"].to_list() == [1, 2, 3]
    run(tmp_path, base_folder, of)
    assert read(tmp_path, "steps")["step"].to_list() == [1, 2, 3, 4]
    assert read(tmp_path, "trajectories")["trajectory"].is_duplicated().sum() == 0


def test_a_resume_samples_nothing_before_its_first_new_step(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(tmp_path, base_folder, settings(evaluation={"every": 100}), 4)
    generate = torch_engine.generate
    calls: list[int] = []

    def counted(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        return generate(*arguments, **more)

    monkeypatch.setattr(torch_engine, "generate", counted)
    done: list[int] = []
    run(
        tmp_path,
        base_folder,
        settings(evaluation={"every": 100}),
        lambda metrics: done.append(len(calls)),
    )
    assert done == [1, 2, 3, 4], "steps 3 to 6, one call each"


def test_a_finished_run_is_left_as_it_is(copy: Path, base_folder: str) -> None:
    before = files(copy)
    assert steps_done(copy, base_folder, settings()) == []
    assert files(copy) == before


def test_a_run_killed_before_its_final_model_only_saves_it(
    copy: Path, finished: Path, base_folder: str
) -> None:
    shutil.rmtree(copy / "final")
    kept = files(copy / "checkpoints")
    assert steps_done(copy, base_folder, settings()) == []
    assert files(copy / "checkpoints") == kept
    require_equal(copy, finished)


def test_a_checkpoint_folder_deleted_under_a_running_job_is_made_again(
    base_folder: str, finished: Path, tmp_path: Path
) -> None:
    def delete(metrics: dict[str, Any]) -> None:
        if metrics["step"] == 3:
            shutil.rmtree(tmp_path / "checkpoints")

    run(tmp_path, base_folder, settings(), delete)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000004.pt", "step-00000006.pt"]
    require_equal(tmp_path, finished)


def test_a_log_deleted_under_a_running_job_is_an_error_that_names_it(
    base_folder: str, tmp_path: Path
) -> None:
    def delete(metrics: dict[str, Any]) -> None:
        if metrics["step"] == 3:
            (tmp_path / "log" / MANIFEST).unlink()

    with pytest.raises(UserError, match=r"log/.*: cannot write the log: No such file") as told:
        run(tmp_path, base_folder, settings(), delete)
    assert "bring back what was removed" in str(told.value)
    assert attempts(tmp_path / "log") == 0, "no log that looks whole was begun in its place"
    assert checkpoint.load_latest(tmp_path / "checkpoints") is not None


def test_training_neither_uses_nor_moves_any_global_random_state(
    base_folder: str, finished: Path, tmp_path: Path
) -> None:
    import random

    random.seed(77)
    np.random.seed(77)
    torch.manual_seed(77)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    run(tmp_path, base_folder, settings())
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    assert after == before
    require_equal(tmp_path, finished)
