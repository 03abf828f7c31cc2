"""Little data sets for tests: a description and its files, in a working folder."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from exgrpo.data_sets import Loaded, load_data_set

Row = dict[str, Any]


def write_file(path: Path, rows: Iterable[Any]) -> Path:
    """Rows as JSONL, a JSON array or Parquet, by the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(list(rows)))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def describe(config: Path, name: str, **keys: Any) -> None:
    """Write the description of a data set, with a title and a licence."""
    folder = config / "datasets"
    folder.mkdir(parents=True, exist_ok=True)
    described = {"title": "made for a test", "licence": "none", **keys}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(described))


def load_rows(folder: Path, lines: Iterable[Any], suffix: str = ".jsonl", **keys: Any) -> Loaded:
    """These rows as the file of a data set `made`, which lies in a folder as the Hub has it."""
    file = write_file(folder / "hub" / f"test{suffix}", lines)
    describe(folder / "config", "made", hub=str(file.parent), file=file.name, **keys)
    return load_data_set("made", folder / "config", 0)
