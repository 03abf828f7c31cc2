"""The real dashboard in a real browser: what only a browser can show to work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from lake_fixture import HOSTILE, STEPS, STUDY, DemoResults, make_results

from exgrpo.records import Recorder
from pipeline.analyse import analyse
from pipeline.figures import draw_figures

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "docs" / "screenshots.py"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    made = make_results(tmp_path_factory.mktemp("browser") / "results")
    analyse(made.study, made.results)
    figures = made.results / STUDY / "figures"
    figures.mkdir()
    for figure in draw_figures(STUDY, made.results):  # not the stage: static images take long
        (figures / f"{figure.name}.json").write_text(figure.plot.to_json())
    return made


@pytest.fixture(scope="module")
def address(tools: dict[str, Any], demo: DemoResults) -> Iterator[str]:
    with tools["served"](demo.results) as started:
        yield started


def query(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


def test_a_click_opens_a_trajectory_and_the_address_restores_it(
    address: str, tools: dict[str, Any], page: Any, demo: DemoResults, tmp_path: Path
) -> None:
    page.goto(f"{address}/trajectories?replayed=true&view=entropy")  # first address of the server
    tools["settle"](page)
    tools["click_row"](page, 0, 2)
    chosen = query(page)["trajectory"][0]
    rows = {row["trajectory"]: row for row in demo.rows["trajectories"]}
    assert rows[chosen]["replayed"]
    tokens = page.locator(".tokens span")
    assert tokens.count() == rows[chosen]["length"]
    assert "rgba(226, 122, 20" in tokens.first.evaluate("e => getComputedStyle(e).background")
    assert "entropy" in tokens.first.get_attribute("data-tip")

    permalink = page.url
    tools["click_row"](page, 2, 1)  # the second of its group, after the surprising tokens
    group = rows[chosen]["run"], rows[chosen]["step"], rows[chosen]["group"]
    other = rows[query(page)["trajectory"][0]]
    assert (other["run"], other["step"], other["group"]) == group
    assert other["slot"] == 1

    page.goto(permalink)
    tools["settle"](page)
    assert query(page) == {"replayed": ["true"], "view": ["entropy"], "trajectory": [chosen]}
    assert page.get_by_text(chosen, exact=True).count() >= 1
    page.keyboard.press("n")
    tools["settle"](page)
    assert query(page)["trajectory"] != [chosen]
    page.screenshot(path=tmp_path / "trajectory.png")


@pytest.mark.parametrize("section", ["curves", "accuracy", "training", "observed"])
def test_the_overview_draws_each_section(
    section: str, address: str, tools: dict[str, Any], page: Any
) -> None:
    page.goto(f"{address}/overview?section={section}")
    tools["settle"](page)
    page.locator(".js-plotly-plot .main-svg").first.wait_for()


def test_hostile_text_runs_nothing(
    address: str, tools: dict[str, Any], page: Any, demo: DemoResults
) -> None:
    alerts: list[str] = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    hostile = next(row for row in demo.rows["trajectories"] if row["response"] == HOSTILE)
    page.goto(f"{address}/trajectories?trajectory={hostile['trajectory']}")
    tools["settle"](page)
    page.locator('[data-testid="stCode"]', has_text="<img src=x onerror=alert(1)>").wait_for()
    assert page.locator('img[src="x"]').count() == 0
    assert alerts == []


def test_the_live_screen_reads_anew_by_itself(
    address: str, tools: dict[str, Any], page: Any, demo: DemoResults
) -> None:
    points = "document.querySelector('.js-plotly-plot')?.data?.[0].x.length"
    page.goto(f"{address}/live")
    tools["settle"](page)
    page.wait_for_function(f"{points} === {STEPS}")
    run = next(iter(demo.study.runs))
    recorder = Recorder(demo.results / STUDY / "runs" / run / "log", resumed_from=STEPS)
    recorder.add("steps", [{"run": run, "step": STEPS + 1, "reward": 0.5}])
    recorder.flush(STEPS + 1, STEPS + 1)
    page.wait_for_function(f"{points} === {STEPS + 1}")


def test_every_picture_of_the_readme_is_made_and_small(
    address: str, tools: dict[str, Any], tmp_path: Path
) -> None:
    tools["save_all"](address, tmp_path)
    sizes = {path.stem: path.stat().st_size for path in tmp_path.glob("*.png")}
    assert sizes.keys() == {
        "overview",
        "question",
        "compare",
        "maps",
        "sql",
        "trajectories",
        "trajectory",
    }
    assert max(sizes.values()) < 300_000
