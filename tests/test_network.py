"""No screen asks anyone but its own server; while one question runs, others are answered."""

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlparse

import psutil
import pytest
from asked import ENDLESS
from lake_fixture import DemoResults

from analysis.theme import PLOT_CONFIG
from app.components.figure import SELECTING

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SCREENS = sorted(path.stem for path in (ROOT / "app" / "screens").glob("[a-z]*.py"))
OWN_SCHEMES = ("data", "blob")  # made by the page itself
RUNNING = re.compile(r"Asking the catalog: [1-9]")  # s


@pytest.fixture(scope="module")
def address(tools: dict[str, Any], analysed: DemoResults) -> Iterator[str]:
    with tools["served"](analysed.results) as started:
        yield started


def test_every_request_is_for_the_own_server(
    address: str, page: Any, tools: dict[str, Any], analysed: DemoResults
) -> None:
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    trajectory = analysed.rows["trajectories"][0]["trajectory"]
    addresses = [*SCREENS, f"trajectories?trajectory={trajectory}&view=entropy"]
    chart = {"sql": "select run, step, reward from steps", "shown_as": "line", "x": "step"}
    addresses.append(f"sql?{urlencode(chart)}")
    for each in addresses:
        page.goto(f"{address}/{'' if each == 'overview' else each}")
        tools["settle"](page)
    urls = [urlparse(url) for url in asked]
    assert {"http", "ws"} <= {url.scheme for url in urls}
    own = urlparse(address).netloc
    others = [url.geturl() for url in urls if url.scheme not in OWN_SCHEMES and url.netloc != own]
    assert others == []


def test_no_figure_offers_to_send_its_data_away() -> None:
    for config in (PLOT_CONFIG, SELECTING):
        assert config["showSendToCloud"] is False and config["displaylogo"] is False
        assert not {"plotlyServerURL", "showLink", "topojsonURL"} & config.keys()
    drawing = [
        path
        for folder in ("app", "analysis")
        for path in (ROOT / folder).rglob("*.py")
        if "plotly_chart(" in path.read_text() and "config=" not in path.read_text()
    ]
    assert drawing == []  # Streamlit's own default shows the button


def slow(address: str) -> str:
    return f"{address}/sql?{urlencode({'sql': ENDLESS, 'seconds': 600})}"


def asking() -> set[psutil.Process]:
    """The processes of `analysis.background` that dashboards of this test have."""
    found = set()
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            if "analysis.background" in " ".join(each.cmdline()):
                found.add(each)
    return found


def at_work() -> bool:
    for each in asking():
        with suppress(psutil.NoSuchProcess):
            if each.cpu_percent(0.3) > 10:
                return True
    return False


def idle() -> bool:
    end = time.monotonic() + 30
    while at_work():
        if time.monotonic() > end:
            return False
    return True


def test_a_slow_question_is_told_given_up_and_asked_again(address: str, page: Any) -> None:
    page.goto(slow(address))
    page.get_by_text(RUNNING).wait_for()
    assert asking()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("You gave this question up").wait_for()
    assert idle()
    page.get_by_role("button", name="Ask again").click()
    page.get_by_text(RUNNING).wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("You gave this question up").wait_for()
    assert page.get_by_role("button", name="Run").count() >= 1  # the page is there all the while


def test_meanwhile_another_session_is_answered_and_another_page_opens(
    address: str, page: Any, tools: dict[str, Any]
) -> None:
    page.goto(slow(address))
    page.get_by_text(RUNNING).wait_for()
    other = page.context.browser.new_page()
    other.goto(f"{address}/sql?{urlencode({'sql': 'select 41 + 1 as n'})}")
    other.get_by_text("1 row", exact=True).wait_for()
    assert page.get_by_text(RUNNING).count() == 1
    other.close()
    page.get_by_role("button", name="Explain").first.wait_for()
    page.get_by_test_id("stTopNavSection").filter(has_text="Read").click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Trajectories").click()
    page.wait_for_url("**/trajectories*")
    tools["settle"](page)
    assert page.get_by_text(RUNNING).count() == 0
    assert idle()  # the question ended with the page


def test_a_page_that_is_closed_ends_its_question(address: str, page: Any) -> None:
    tab = page.context.browser.new_page()
    tab.goto(slow(address))
    tab.get_by_text(RUNNING).wait_for()
    tab.close()
    assert idle()


def test_the_server_ends_within_a_question_and_leaves_no_process(
    tools: dict[str, Any], analysed: DemoResults, page: Any
) -> None:
    others = asking()
    with tools["served"](analysed.results) as address:
        page.goto(slow(address))
        page.get_by_text(RUNNING).wait_for()
        started = asking() - others
        assert started
    assert psutil.wait_procs(started, timeout=10)[1] == []
