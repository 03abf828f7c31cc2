"""Two logs and models that are the same but for the order of rows and the rounding of floats."""

from pathlib import Path

from polars.testing import assert_frame_equal
from safetensors.torch import load_file
from test_trainer import read

from exgrpo.tables.manifest import live_parts


def require_alike(folder: Path, expected: Path, logged: float, weights: float) -> None:
    """Every table and the final weights; floats within a tolerance, all else equal."""
    names = {part.table for part in live_parts(expected / "log")}
    assert {part.table for part in live_parts(folder / "log")} == names
    for name in names:
        found, known = (read(each, name).drop("run", strict=False) for each in (folder, expected))
        assert_frame_equal(found, known, check_row_order=False, abs_tol=logged, rel_tol=logged)
    assert gap(folder, expected) <= weights


def gap(folder: Path, expected: Path, which: str = "final") -> float:
    """The greatest difference between two models' weights."""
    left, right = (load_file(each / which / "model.safetensors") for each in (folder, expected))
    assert left.keys() == right.keys()
    return max(float((left[key].double() - right[key].double()).abs().max()) for key in right)
