"""Where a lake lies: in a folder, or in S3-compatible storage (`s3://bucket/path`).

Credentials, region and endpoint are those of the environment and of ~/.aws, as for every AWS tool:
AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL and so on.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from re import fullmatch
from typing import TYPE_CHECKING

import duckdb

from analysis.errors import UserError

if TYPE_CHECKING:
    from s3fs import S3FileSystem

S3 = "s3://"
READERS = 16  # small files at once


@dataclass(frozen=True)
class S3Lake:
    """A lake in S3-compatible storage, as it was listed when it was opened."""

    address: str  # s3://bucket/path, without a slash at its end
    files: "S3FileSystem"
    sizes: dict[str, int]  # bytes of each file, by its path in the lake

    def __str__(self) -> str:
        return self.address


Lake = Path | S3Lake


def open_lake(where: str, folder: Path = Path()) -> Lake:
    """The lake at an address, or at a path seen from `folder`.

    What lies at an address is listed once, here: open it anew to see what came later. Raises
    UserError when it cannot be reached, or a package that this needs is missing.
    """
    if "://" not in where:
        return folder / where
    if not where.startswith(S3):
        raise UserError(f"{where}: a lake is read from a folder or from an address {S3}bucket/path")
    try:
        from botocore.exceptions import BotoCoreError
        from s3fs import S3FileSystem
    except ImportError as error:
        raise UserError(
            f"{where}: reading from S3 needs the package {error.name}. Install it: "
            f"`pip install 'exgrpo-workbench[s3]'`."
        ) from error
    address = where.rstrip("/")
    # DuckDB asks for the ranges that it needs: reading ahead would fetch much more than them.
    files = S3FileSystem(default_cache_type="none", skip_instance_cache=True)
    try:
        found = files.find(address, detail=True)
    except (OSError, BotoCoreError) as error:
        raise UserError(
            f"{where}: cannot list it: {error}. Check the bucket's name, and the credentials, "
            f"region and endpoint that the environment gives (AWS_PROFILE, AWS_ACCESS_KEY_ID, "
            f"AWS_ENDPOINT_URL)."
        ) from error
    root = address.removeprefix(S3) + "/"
    return S3Lake(address, files, {k.removeprefix(root): v["size"] for k, v in found.items()})


def locate(lake: Lake, path: str) -> str:
    """The name of a file of the lake, as DuckDB takes it and as a person reads it."""
    return str(lake / path) if isinstance(lake, Path) else f"{lake.address}/{path}"


def entry_paths(lake: Lake) -> list[str]:
    """The paths in the lake of all `entries/*.json`, sorted."""
    if isinstance(lake, Path):
        return sorted(f"entries/{path.name}" for path in (lake / "entries").glob("*.json"))
    return sorted(path for path in lake.sizes if fullmatch(r"entries/[^/]+\.json", path))


def contents(lake: Lake, paths: list[str]) -> list[bytes]:
    """What these small files hold; from S3 they are read side by side. Raises UserError."""
    if isinstance(lake, Path):
        return [(lake / path).read_bytes() for path in paths]
    from botocore.exceptions import BotoCoreError

    names = [locate(lake, path) for path in paths]
    try:
        with ThreadPoolExecutor(READERS) as pool:
            return list(pool.map(lake.files.cat_file, names))
    except (OSError, BotoCoreError) as error:
        raise UserError(f"{lake}: cannot read its entries: {error}. Run again.") from error


def sizes(lake: Lake, paths: Iterable[str]) -> dict[str, int]:
    """The bytes of each of these files that is there."""
    if isinstance(lake, Path):
        found = ((path, lake / path) for path in paths)
        return {path: file.stat().st_size for path, file in found if file.is_file()}
    return {path: lake.sizes[path] for path in paths if path in lake.sizes}


def register(connection: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Let DuckDB read the files of the lake by their names."""
    if isinstance(lake, S3Lake):
        connection.register_filesystem(lake.files)
