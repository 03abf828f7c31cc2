"""Shared by all tests, made once a session: a small base model, and a made-up study."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import torch
from golden_lake import build_golden
from lake_fixture import DemoResults, make_results
from lessons import teach

from analysis.catalog import open_catalog
from exgrpo.grading import Grader
from exgrpo.policy import load_policy, save_policy
from exgrpo.pretraining import pretrain
from exgrpo.settings import Pretraining
from pipeline.analyse import analyse

torch.set_num_threads(1)

SMALL = Pretraining(steps=150, batch=32, width=32, layers=2, heads=2, max_level=2)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", help="a folder to keep the pictures of journeys in")
    parser.addoption("--answers", type=int, default=3000, help="junk that the grader is fed")
    parser.addoption(
        "--accept-prompts", action="store_true", help="write tests/prompts/ as prompts are now"
    )
    parser.addoption("--no-skips", action="store_true", help="a test that skips is a failure")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("no_skips") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Llama of about 30 000 parameters that has seen short chains."""
    folder = tmp_path_factory.mktemp("model") / "base"
    pretrain(SMALL, folder, lambda line: None)
    return str(folder)


@pytest.fixture(scope="session")
def able_folder(tmp_path_factory: pytest.TempPathFactory, base_folder: str) -> str:
    """The same model after some lessons: it knows some of the questions of `lessons`."""
    folder = tmp_path_factory.mktemp("model") / "able"
    teach(base_folder, folder)
    return str(folder)


@pytest.fixture(scope="session")
def many_ends(tmp_path_factory: pytest.TempPathFactory, able_folder: str) -> str:
    """The able model, whose generation config knows `+` for an end too."""
    folder = tmp_path_factory.mktemp("many ends") / "base"
    model, tokenizer = load_policy(able_folder)
    plus = tokenizer.convert_tokens_to_ids("+")
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, plus]
    save_policy(model, tokenizer, folder)
    return str(folder)


@pytest.fixture(scope="session")
def grader() -> Iterator[Grader]:
    """A grader whose worker starts once for all tests."""
    with Grader(workers=1) as opened:
        yield opened


@pytest.fixture
def shared() -> Path:
    """The folder of real data beside the checkout; tests that need it skip without it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder ../shared with real data, which is not part of the repo")
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    """A made-up study with lake and catalog. Not to be changed: see `own`."""
    return make_results(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def connection(demo: DemoResults) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_catalog(demo.catalog) as opened:
        yield opened


@pytest.fixture(scope="session")
def golden_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalog of the golden lake."""
    return build_golden(tmp_path_factory.mktemp("golden") / "workbench.duckdb")


@pytest.fixture(scope="session")
def golden(golden_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same, opened; its rows without SQL: `golden_lake.rows`."""
    with open_catalog(golden_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def trajectories(demo: DemoResults) -> list[dict[str, Any]]:
    """Every trajectory of the made-up study, with its run's arm and seed."""
    runs = {row["run"]: row for row in demo.rows["runs"]}
    return [
        {**row, "arm": runs[row["run"]]["arm"], "seed": runs[row["run"]]["seed"]}
        for row in demo.rows["trajectories"]
    ]


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    """The made-up study with its analyses; each test module has one of its own."""
    made = make_results(tmp_path_factory.mktemp("analysed") / "results")
    analyse(made.study, made.results)
    return made


@pytest.fixture
def results(analysed: DemoResults, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results folder of the analysed study, which the dashboard then shows."""
    monkeypatch.setenv("EXGRPO_RESULTS", str(analysed.results))
    return analysed.results


@pytest.fixture
def own(demo: DemoResults, tmp_path: Path) -> DemoResults:
    """A copy of the made-up study that a test may change."""
    shutil.copytree(demo.results, tmp_path / "results")
    return DemoResults(tmp_path / "results", demo.study, demo.rows)


@pytest.fixture(scope="session")
def tools() -> dict[str, Any]:
    """What drives a browser, of docs/screenshots.py; tests skip where there is no Chromium."""
    pytest.importorskip("playwright", reason="needs the `dev` extra")
    found = runpy.run_path(str(Path(__file__).resolve().parents[1] / "docs" / "screenshots.py"))
    if found["chromium"]() is None:
        pytest.skip("needs an installed Chromium or Chrome")
    return found


@pytest.fixture
def page(tools: dict[str, Any]) -> Iterator[Any]:
    """A page of a browser with a fresh profile."""
    with tools["browsing"]() as made:
        made.set_default_timeout(60_000)
        yield made
