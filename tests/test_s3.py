"""A lake in S3-compatible storage, against a local server: catalog, tokens, and clear errors."""

import builtins
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import duckdb
import numpy as np
import polars as pl
import pytest
from lake_fixture import DemoResults
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem
from typer.testing import CliRunner

from analysis import queries
from analysis.catalog import lake_of, open_catalog
from analysis.catalog_build import INFO, MATERIALISED
from analysis.errors import UserError as AnalysisError
from analysis.lake import read_entries
from analysis.storage import open_lake
from analysis.tokens import read_tokens
from app import data
from exgrpo.errors import UserError
from pipeline.catalog import build_catalog
from pipeline.cli import app

BUCKET, LAKE = "demo-bucket", "s3://demo-bucket/some where/lake"

FLOATS = ("behaviour_logprobs", "logprobs", "entropies")

Requests = list[tuple[str, str, int]]  # operation, key, bytes of the answer


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def s3(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3FileSystem]:
    """An empty bucket, and the environment in which the workbench finds it."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    files = S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    files.mkdir(BUCKET)
    yield files
    files.rm(BUCKET, recursive=True)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Every request of the workbench to the server from here on."""
    seen: Requests = []
    call = S3FileSystem._call_s3

    async def logged(self: S3FileSystem, method: str, *args: Any, **values: Any) -> Any:
        answer = await call(self, method, *args, **values)
        if self.default_cache_type == "none":  # how the workbench opens it
            seen.append((method, values.get("Key", ""), answer.get("ContentLength", 0)))
        return answer

    monkeypatch.setattr(S3FileSystem, "_call_s3", logged)
    return seen


def upload(
    s3: S3FileSystem, lake: Path, wanted: Callable[[str], bool] = lambda entry: True
) -> None:
    """Copy the files of the wanted entries to LAKE, those in entries/ last."""
    files = sorted(path for path in lake.rglob("*") if path.is_file() and wanted(path.stem))
    for path in sorted(files, key=lambda path: path.parent.name == "entries"):
        s3.pipe_file(f"{LAKE}/{path.relative_to(lake).as_posix()}", path.read_bytes())


def content(catalog: Path) -> dict[str, pl.DataFrame]:
    """Every table but catalog_info, and of that what does not depend on place and time."""
    with open_catalog(catalog) as connection:
        tables = [*(table.name for table in MATERIALISED), INFO.name]
        frames = {name: connection.sql(f"FROM {name} ORDER BY ALL").pl() for name in tables}
    return frames | {INFO.name: frames[INFO.name].drop("lake", "built")}


def same(one: Path, other: Path) -> None:
    expected, found = content(one), content(other)
    assert expected.keys() == found.keys()
    for name, frame in expected.items():
        assert frame.equals(found[name]), name
    assert expected["trajectories"].height and expected["questions"].height


def test_the_catalog_of_a_lake_in_a_bucket_is_that_of_the_folder(
    demo: DemoResults, s3: S3FileSystem, tmp_path: Path, requests: Requests
) -> None:
    upload(s3, demo.results / "lake")
    done = CliRunner().invoke(app, ["catalog", "--lake", LAKE + "/", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    same(demo.catalog, tmp_path / "workbench.duckdb")
    assert sum(method == "list_objects_v2" for method, _, _ in requests) == 1
    assert not any(method == "head_object" for method, _, _ in requests)
    assert not any("/tokens/" in key for _, key, _ in requests)
    with open_catalog(tmp_path / "workbench.duckdb") as connection:
        assert lake_of(connection) == LAKE
        assert queries.answer(connection, "runs_overview").height == len(demo.rows["runs"])
        with pytest.raises(AnalysisError, match="refused"):
            queries.ask(connection, f"SELECT * FROM read_parquet('{LAKE}/*/*.parquet')")
        with pytest.raises(AnalysisError, match="files are refused"):
            queries.ask(connection, f"SELECT * FROM '{LAKE}/steps/x.parquet'")
        with pytest.raises(duckdb.Error, match="disabled"):  # also without the gate before it
            connection.execute(f"SELECT * FROM read_parquet('{LAKE}/steps/x.parquet')")


def test_one_more_entry_costs_its_own_files_only(
    demo: DemoResults, s3: S3FileSystem, tmp_path: Path, requests: Requests
) -> None:
    last = list(demo.study.runs)[-1]
    upload(s3, demo.results / "lake", lambda entry: entry != last)
    build_catalog(tmp_path, elsewhere=LAKE)
    before = content(tmp_path / "workbench.duckdb")
    assert before["runs"].height == len(demo.rows["runs"]) - 1
    requests.clear()
    build_catalog(tmp_path, elsewhere=LAKE)
    assert {Path(key).parent.name for _, key, _ in requests if key} == {"entries"}
    upload(s3, demo.results / "lake", lambda entry: entry == last)
    requests.clear()
    build_catalog(tmp_path, elsewhere=LAKE)
    same(demo.catalog, tmp_path / "workbench.duckdb")
    read = {Path(key) for _, key, _ in requests if key.endswith(".parquet")}
    assert {path.stem for path in read} == {last}
    assert {"trajectories", "vocabulary"} <= {path.parent.name for path in read}


def test_tokens_are_read_from_the_bucket(
    demo: DemoResults, s3: S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(s3, demo.results / "lake")
    build_catalog(tmp_path, elsewhere=LAKE)
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    data._processes.clear()  # those that run already know another environment
    for row in demo.rows["tokens"][:: len(demo.rows["tokens"]) // 3]:
        found = data.tokens(row["run"], row["trajectory"])
        assert found.equals(read_tokens(demo.results / "lake", row["run"], row["trajectory"]))
        assert found["token_id"].to_list() == row["token_ids"]
        assert found["text"].null_count() == 0


def test_tokens_are_read_by_ranges(s3: S3FileSystem, tmp_path: Path, requests: Requests) -> None:
    rows, width = 40_960, 40
    numbers = np.random.default_rng(0).integers(0, 30_000, (rows, width))
    frame = pl.DataFrame(
        {
            "trajectory": [f"r:{step}:0:0" for step in range(rows)],
            "step": range(rows),
            "group": [0] * rows,
            "slot": [0] * rows,
            "token_ids": numbers.tolist(),
            **{name: (numbers / 7).tolist() for name in FLOATS},
        }
    )
    frame.write_parquet(path := tmp_path / "tokens.parquet", row_group_size=2048)
    size = path.stat().st_size
    entry = f"""{{"entry": "r", "study": "s", "layout": 2, "run": {{"run": "r", "tokenizer": "t"}},
        "tables": {{"tokens": {{"path": "tokens/r.parquet", "rows": {rows}, "bytes": {size},
        "sha256": ""}}}}}}"""
    s3.pipe_file(f"{LAKE}/tokens/r.parquet", path.read_bytes())
    s3.pipe_file(f"{LAKE}/entries/r.json", entry.encode())
    requests.clear()
    assert read_tokens(open_lake(LAKE), "r", "r:30000:0:0").height == width
    read = [bytes for method, _, bytes in requests if method == "get_object"]
    assert len(read) < 10
    assert sum(read) < size / 5


def test_a_lake_folder_elsewhere_counts_whole_and_may_move_with_its_results(
    demo: DemoResults, tmp_path: Path
) -> None:
    build_catalog(tmp_path / "other", elsewhere=str(demo.results / "lake"))
    same(demo.catalog, tmp_path / "other" / "workbench.duckdb")
    with open_catalog(tmp_path / "other" / "workbench.duckdb") as connection:
        assert Path(lake_of(connection)) == demo.results / "lake"
    with open_catalog(demo.catalog) as connection:
        assert lake_of(connection) == "lake"  # beside the catalog, wherever that is


def test_files_that_are_missing_or_torn_are_named(
    demo: DemoResults, s3: S3FileSystem, tmp_path: Path
) -> None:
    upload(s3, demo.results / "lake")
    run = next(iter(demo.study.runs))
    s3.pipe_file(f"{LAKE}/steps/{run}.parquet", b"PAR1")
    with pytest.raises(AnalysisError, match="torn or changed: it has 4 bytes") as error:
        build_catalog(tmp_path, elsewhere=LAKE)
    assert f"{LAKE}/steps/{run}.parquet" in str(error.value)
    s3.rm(f"{LAKE}/steps/{run}.parquet")
    with pytest.raises(AnalysisError, match="missing from the lake") as error:
        build_catalog(tmp_path, elsewhere=LAKE)
    assert f"Copy {run} there again" in str(error.value)


def test_fewer_rows_than_the_entry_says_are_an_error(
    demo: DemoResults, s3: S3FileSystem, tmp_path: Path
) -> None:
    shutil.copytree(demo.results / "lake", lake := tmp_path / "lake")
    for table in ("steps", "questions"):
        file = next(iter(sorted((lake / table).glob("*.parquet"))))
        rows = pl.read_parquet(file).height
        entry = lake / "entries" / f"{file.stem}.json"
        whole = entry.read_text()
        spot = whole.index('"rows"', whole.index(f'"{table}": {{'))
        entry.write_text(whole[:spot] + whole[spot:].replace(str(rows), str(rows + 1), 1))
        upload(s3, lake)
        with pytest.raises(AnalysisError, match=rf"{table}: read .* rows of"):
            build_catalog(tmp_path / "out", elsewhere=LAKE)
        entry.write_text(whole)
    assert not (tmp_path / "out" / "workbench.duckdb").exists()


def test_what_is_no_lake_is_told(
    s3: S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nothing in (LAKE, str(tmp_path / "nothing")):
        with pytest.raises(UserError, match="it has no entries"):
            build_catalog(tmp_path, elsewhere=nothing)
    with pytest.raises(AnalysisError, match=r"s3://no-such-bucket/x: cannot list it: .*bucket"):
        build_catalog(tmp_path, elsewhere="s3://no-such-bucket/x")
    with pytest.raises(AnalysisError, match="a folder or from an address s3://"):
        build_catalog(tmp_path, elsewhere="https://example.org/lake")
    assert not (tmp_path / "workbench.duckdb").exists()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AnalysisError, match=r"cannot list it: .*[Cc]redentials"):
        build_catalog(tmp_path, elsewhere=LAKE)


def test_no_access_is_told(
    s3: S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    _check_access_from(server, request=0)
    try:
        with pytest.raises(AnalysisError, match=r"cannot list it: .*[Aa]ccess"):
            build_catalog(tmp_path, elsewhere=LAKE)
    finally:
        _check_access_from(server, request=10**9)


def _check_access_from(server: str, request: int) -> None:
    """Let the server refuse strangers from that request on."""
    headers = {"Content-Type": "text/plain"}
    order = Request(f"{server}/moto-api/reset-auth", str(request).encode(), headers)
    with urlopen(order) as answer:
        assert answer.status == 200


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *args: Any, **values: Any) -> Any:
        if name == "s3fs":
            raise ModuleNotFoundError("No module named 's3fs'", name="s3fs")
        return load(name, *args, **values)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AnalysisError, match=r"s3fs.*pip install 'exgrpo-workbench\[s3\]'"):
        open_lake(LAKE)


def test_entries_of_a_bucket_are_those_of_the_folder(demo: DemoResults, s3: S3FileSystem) -> None:
    upload(s3, demo.results / "lake")
    s3.pipe_file(f"{LAKE}/entries/old/x.json", b"{}")  # no entry: it lies deeper
    assert read_entries(open_lake(LAKE)) == read_entries(demo.results / "lake")
