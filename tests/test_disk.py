"""A disk that is full, or cannot be written: a clear error, and nothing lost that was there."""

import errno
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from dying import Death, in_child, run_folder, small_study, train_small, train_until
from test_checkpoint import files
from test_unkillable import require_equal
from test_unkillable import unbroken as unbroken

from exgrpo.errors import UserError
from exgrpo.records import Recorder
from exgrpo.tables.manifest import check_part, live_parts


@pytest.fixture
def begun(tmp_path: Path, able_folder: str) -> Path:
    """A study whose run was killed after its second checkpoint, at step 4."""
    small_study(tmp_path, able_folder)
    assert train_until(tmp_path, Death("checkpoint", "after", 2))
    return tmp_path


def train_with_room(folder: Path, room: int) -> None:
    """Train where no file may have more than `room` bytes; leaves the error in `error.txt`."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        train_small(folder)
    except UserError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        (folder / "error.txt").write_text(str(error))


@pytest.mark.parametrize(
    ("room", "what"),
    [
        (200_000, "step-00000006.pt: cannot write: File too large"),
        (6_000, "cannot write the log: "),
        (500, "settings.json: cannot write: File too large"),
    ],
)
def test_a_full_disk(begun: Path, unbroken: Path, room: int, what: str) -> None:
    run = run_folder(begun)
    kept = files(run / "checkpoints")
    assert in_child(begun, train_with_room, room) == 0, (begun / "printed.txt").read_text()
    error = (begun / "error.txt").read_text()
    assert what in error and "Free disk space" in error
    assert files(run / "checkpoints") == kept
    assert not list(run.rglob("*.tmp"))
    for part in live_parts(run / "log"):
        check_part(run / "log", part)
    assert not train_until(begun)
    require_equal(run, unbroken)


def read_only(*_: Any, **__: Any) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Path, "mkdir"),
        (Path, "write_bytes"),
        (pyarrow.parquet, "write_table"),
        (Recorder, "_append"),
    ],
)
def test_a_read_only_disk(
    begun: Path, unbroken: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """Injected, since tests may run as root, whom no permission stops."""
    kept = files(run_folder(begun))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, read_only)
        with pytest.raises(UserError, match=r"cannot write.*Read-only file system"):
            train_small(begun)
    left = files(run_folder(begun))
    mine = ("settings.json", "run.json", "log/manifest.jsonl", ".lock")  # a new attempt's
    assert {path: left[path] for path in kept if path not in mine} == {
        path: each for path, each in kept.items() if path not in mine
    }
    assert not train_until(begun)
    require_equal(run_folder(begun), unbroken)


@pytest.mark.parametrize("place", [".", "log", "log/steps", "checkpoints"])
def test_a_file_where_a_folder_should_be(tmp_path: Path, able_folder: str, place: str) -> None:
    small_study(tmp_path, able_folder)
    path = run_folder(tmp_path) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("no folder")
    with pytest.raises(UserError, match=r"cannot write.*(File exists|Not a directory)") as told:
        train_small(tmp_path)
    assert str(path) in str(told.value)
    assert path.read_text() == "no folder"
    path.unlink()
    assert not train_until(tmp_path)
