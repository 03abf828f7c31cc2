"""The log: whole or not at all, and dead attempts are never read."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from exgrpo.errors import UserError
from exgrpo.records import Recorder, write_whole
from exgrpo.tables import TABLES
from exgrpo.tables.manifest import check_part, live_parts


def _row(step: int) -> dict:
    return {"run": "r", "step": step, "question": "q", "event": "entered"}


def _write(recorder: Recorder, first: int, last: int) -> None:
    recorder.add("experience", (_row(step) for step in range(first, last + 1)))
    recorder.flush(first, last)


def _steps(log: Path) -> list[int]:
    parts = [check_part(log, part) for part in live_parts(log)]
    return sorted(step for part in parts for step in pq.read_table(part)["step"].to_pylist())


def test_parts_past_the_checkpoint_of_a_resume_are_dead(tmp_path: Path) -> None:
    first = Recorder(tmp_path)
    for start in (0, 1, 3):
        _write(first, start, max(start, start + 1 if start else 0))
    second = Recorder(tmp_path, resumed_from=2)
    assert second.attempt == 2
    assert _steps(tmp_path) == [0, 1, 2]
    _write(second, 3, 6)
    assert _steps(tmp_path) == [0, 1, 2, 3, 4, 5, 6]
    Recorder(tmp_path)
    assert _steps(tmp_path) == []


def test_a_torn_manifest_line_counts_for_nothing_and_is_mended(tmp_path: Path) -> None:
    _write(Recorder(tmp_path), 1, 2)
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text(manifest.read_text() + '{"kind": "part", "table"')
    assert _steps(tmp_path) == [1, 2]
    _write(Recorder(tmp_path, resumed_from=2), 3, 3)
    assert _steps(tmp_path) == [1, 2, 3]
    assert all(json.loads(line) for line in manifest.read_text().splitlines())


def test_unlisted_files_are_not_read(tmp_path: Path) -> None:
    _write(Recorder(tmp_path), 1, 1)
    (tmp_path / "experience" / "part-9-1-9.parquet").write_bytes(b"torn")
    (tmp_path / "experience" / "part-9-1-9.tmp").write_bytes(b"torn")
    assert _steps(tmp_path) == [1]


def test_a_damaged_or_missing_part_is_named(tmp_path: Path) -> None:
    _write(Recorder(tmp_path), 1, 1)
    part = live_parts(tmp_path)[0]
    path = tmp_path / part.path
    content = path.read_bytes()
    path.write_bytes(content[:-7] + b"garbage")
    with pytest.raises(UserError, match=f"{path}: corrupt"):
        check_part(tmp_path, part)
    path.unlink()
    with pytest.raises(UserError, match=f"{path}: listed in .* but missing"):
        check_part(tmp_path, part)


def test_unknown_columns_are_refused_and_missing_ones_are_null(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with pytest.raises(ValueError, match="has no column"):
        recorder.add("experience", [{"nonsense": 1}])
    _write(recorder, 1, 1)
    table = pq.read_table(tmp_path / live_parts(tmp_path)[0].path)
    assert table["bucket_before"].to_pylist() == [None]


FULL_DISK = """
import resource, signal, sys
from pathlib import Path

import numpy as np
import polars as pl
from exgrpo.errors import UserError
from exgrpo.records import Recorder, write_whole
from exgrpo.tables.manifest import live_parts
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Path(sys.argv[1])
recorder = Recorder(log)
recorder.add("experience", [{"run": "r", "step": 1}])
recorder.flush(1, 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # a disk with 3000 bytes left a file
failures = 0
try:
    recorder.add("experience", [{"run": f"{i * 7919 % 10007}", "step": 2} for i in range(9000)])
    recorder.flush(2, 2)
except UserError as error:
    failures += "cannot write the log" in str(error) and "File too large" in str(error)
try:
    write_whole(log / "big.json", b"x" * 9000)
except UserError as error:
    failures += "big.json: cannot write: File too large" in str(error)
left = sorted(p.name for p in log.rglob("*") if p.is_file())
print(failures, [p.path for p in live_parts(log)], left)
"""


def test_a_full_disk_is_a_clear_error_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    part = "experience/part-1-1-1.parquet"
    expected = f"2 ['{part}'] ['manifest.jsonl', 'part-1-1-1.parquet']"
    assert done.stdout.strip() == expected, done.stderr


def test_write_whole_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.json"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file.json"]


def test_lists_of_every_kind_come_back_as_they_were(tmp_path: Path) -> None:
    values = [None, [], [1, 2**31 - 1], np.array([-5], np.int32), [7]]
    floats = [np.array([0.5, np.nan, -np.inf]), None, [], [1.25], np.array([2.0], np.float32)]
    recorder = Recorder(tmp_path)
    recorder.add(
        "tokens",
        [
            {"trajectory": str(row), "token_ids": ids, "logprobs": logprobs}
            for row, (ids, logprobs) in enumerate(zip(values, floats, strict=True))
        ],
    )
    recorder.flush(1, 1)
    frame = pl.read_parquet(tmp_path / live_parts(tmp_path)[0].path)
    assert dict(frame.schema) == dict(TABLES["tokens"].polars_schema)
    assert frame["token_ids"].to_list() == [None, [], [1, 2**31 - 1], [-5], [7]]
    assert frame["logprobs"].to_list()[1:] == [None, [], [1.25], [2.0]]
    assert str(frame["logprobs"].to_list()[0]) == "[0.5, nan, -inf]"
    assert frame["entropies"].null_count() == 5
    recorder.add("tokens", [{"trajectory": "a", "token_ids": [2**31]}])
    with pytest.raises(pl.exceptions.InvalidOperationError):
        recorder.flush(2, 2)


def test_writing_the_log_does_not_import_pandas(tmp_path: Path) -> None:
    """It would take half a second of every start."""
    code = f"""
import sys
from pathlib import Path

import numpy as np
import polars as pl
from exgrpo.records import Recorder
recorder = Recorder(Path({str(tmp_path)!r}))
recorder.add("steps", [{{"run": "a", "step": 1, "reward": 0.5, "bucket_sizes": [1, 2]}}])
recorder.flush(1, 1)
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
