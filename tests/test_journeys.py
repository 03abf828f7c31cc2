"""What people do with the dashboard, in a real browser, over the demo; each leaves its pictures.

`pytest tests/test_journeys.py --pictures FOLDER` keeps them to be looked at.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from lake_fixture import DemoResults
from lakes import hostile

from pipeline.demo import open_demo

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SCREENS = sorted(path.stem for path in (ROOT / "app" / "screens").glob("[a-z]*.py"))
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def address(tools: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    results = tmp_path_factory.mktemp("journeys") / "results"
    open_demo(results)
    with tools["served"](results) as started:
        yield started


@pytest.fixture(scope="module")
def whole(tools: dict[str, Any], analysed: DemoResults) -> Iterator[str]:
    """A study of which no row is left out: behind every point there are some."""
    with tools["served"](analysed.results) as started:
        yield started


@pytest.fixture
def picture(
    page: Any, request: pytest.FixtureRequest, tools: dict[str, Any], tmp_path: Path
) -> Any:
    """Takes a picture of the settled page, by name."""
    folder = Path(request.config.getoption("--pictures") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def take(name: str, of: Any = page) -> None:
        tools["settle"](of)
        of.screenshot(path=folder / f"{name}.png")

    return take


def query(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


def screen(page: Any) -> str:
    return urlparse(page.url).path.strip("/") or "overview"


def click_point(page: Any, number: int) -> None:
    """Click a mark of the first chart in sight."""
    mark = page.locator(".js-plotly-plot .points path.point").nth(number)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_from_the_overview_to_tokens_and_by_link_into_a_fresh_profile(
    whole: str, page: Any, tools: dict[str, Any], picture: Any
) -> None:
    page.goto(f"{whole}/?section=training")
    picture("journey-1-curve")
    before = page.url
    click_point(page, 3)  # the first click: the rows behind the point
    page.wait_for_url("**/trajectories?**")
    picture("journey-2-rows")
    assert int(query(page)["step_min"][0]) <= int(query(page)["step_max"][0])
    tools["click_row"](page, 0, 1)  # the second: the text
    chosen = query(page)["trajectory"][0]
    page.get_by_text(chosen, exact=True).first.wait_for()
    page.get_by_role("radio", name="entropy", exact=True).first.click()
    page.locator(".tokens span").first.wait_for()
    picture("journey-3-tokens")

    fresh = page.context.browser.new_context().new_page()
    fresh.goto(page.url)
    fresh.locator(".tokens span").first.wait_for(timeout=60_000)
    picture("journey-4-fresh-profile", fresh)
    assert query(fresh) == query(page)
    assert fresh.locator(".tokens").inner_text() == page.locator(".tokens").inner_text()

    while screen(page) != "overview":  # the back button goes all the way, and finds it as it was
        page.go_back()
        tools["settle"](page)
    assert page.url == before


def test_accuracy_is_two_clicks_from_an_answer(
    address: str, page: Any, tools: dict[str, Any]
) -> None:
    page.goto(address)
    tools["settle"](page)
    click_point(page, 2)
    page.wait_for_url("**/trajectories?**")
    tools["settle"](page)
    assert query(page)["source"] == ["evaluation"]
    tools["click_row"](page, 0, 0)
    assert page.get_by_text("Gold", exact=True).count() == 1


def test_compare_and_diff(address: str, page: Any, tools: dict[str, Any], picture: Any) -> None:
    page.goto(f"{address}/compare?left=on_policy&right=exgrpo&benchmark=test_id")
    tools["settle"](page)
    page.get_by_role("button", name=re.compile("right → wrong")).click()
    page.wait_for_url("**flip=**")
    picture("compare-1-flips")
    first = page.locator("del, ins").count()
    assert first > 0
    page.keyboard.press("n")
    page.wait_for_url("**question=**")
    picture("compare-2-next-question")


def test_a_hostile_statement_is_refused_and_a_good_one_answered(
    address: str, page: Any, tools: dict[str, Any], picture: Any
) -> None:
    page.goto(f"{address}/sql")
    tools["settle"](page)
    editor = page.get_by_label("SQL over the read-only catalog: one SELECT")
    editor.fill("COPY (SELECT 1) TO 'stolen.csv'")
    editor.press("Control+Enter")
    page.get_by_text("COPY is refused").wait_for()
    picture("sql-1-refused")
    editor.fill(
        "select arm, avg(correct::int) as accuracy from trajectories join runs using (run) "
        "group by arm order by arm"
    )
    editor.press("Control+Enter")
    page.get_by_text(re.compile("^4 rows")).wait_for()
    picture("sql-2-answered")
    page.reload()
    page.get_by_text(re.compile("^4 rows")).wait_for()


def test_a_box_in_a_map_opens_its_rows(
    address: str, page: Any, tools: dict[str, Any], picture: Any
) -> None:
    page.goto(f"{address}/maps")
    tools["settle"](page)
    place = page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    x, y = place["x"], place["y"]
    page.mouse.move(x + 0.2 * place["width"], y + 0.2 * place["height"])
    page.mouse.down()
    page.mouse.move(x + 0.6 * place["width"], y + 0.8 * place["height"], steps=8)
    page.mouse.up()
    page.wait_for_url("**step_min=**")
    picture("maps-box")
    asked = query(page)
    page.get_by_role("link", name="Open all in Trajectories").click()
    page.wait_for_url("**/trajectories?**")
    assert query(page)["step_min"] == asked["step_min"]
    assert query(page)["step_max"] == asked["step_max"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen_fits_a_phone(
    address: str, tools: dict[str, Any], page: Any, picture: Any, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(PHONE)
    for name in SCREENS:
        page.goto(f"{address}/{'' if name == 'overview' else name}")
        picture(f"phone-{scheme}-{name}")
        wide = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
        assert wide <= 0, name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen_at_1280(address: str, page: Any, picture: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 1280, "height": 1400})
    for name in SCREENS:
        page.goto(f"{address}/{'' if name == 'overview' else name}")
        picture(f"{scheme}-{name}")
        assert page.locator('[data-testid="stException"]').count() == 0, name
        wide = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
        assert wide <= 0, name


def test_hostile_text_does_nothing_anywhere(
    tools: dict[str, Any], page: Any, demo: DemoResults, tmp_path: Path, picture: Any
) -> None:
    study = hostile(demo, tmp_path / "hostile")
    said: list[str] = []
    asked: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.context.on("request", lambda request: asked.append(request.url))
    with tools["served"](tmp_path / "hostile") as address:
        for name in SCREENS:
            page.goto(f"{address}/{'' if name == 'overview' else name}")
            picture(f"hostile-{name}")
            foreign = 'a[href^="http://evil"], a[href^="javascript"]'
            evil = page.locator(f'img[src="x"], img[src*="evil"], {foreign}, b:text-is("Evil")')
            assert evil.count() == 0, name
    assert study.name and said == []
    own = urlparse(address).netloc
    assert [url for url in asked if url.startswith("http") and urlparse(url).netloc != own] == []
