"""Makes the README's pictures of the dashboard: `python docs/screenshots.py [results]`.

Starts the dashboard on a free port over the results folder and saves a picture of seven screens in
`docs/images/`. Needs the `dev` extra and a Chromium.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

WIDTH = 1440
ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUERY = """\
select arm, group_successes as k, count(*) as answers,
       round(avg(mean_entropy), 3) as mean_entropy,
       round(avg((not chain_valid)::int), 3) as flawed
from trajectories join runs using (run)
where correct and not replayed
group by all
order by all"""


def chromium() -> str | None:
    """The path of an installed Chromium or Chrome; None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def served(results: Path) -> Iterator[str]:
    """The address of a dashboard over `results` that runs as long as the block."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.headless=true"]
    server = subprocess.Popen(
        [*command, "--server.address=127.0.0.1", f"--server.port={port}"],
        cwd=ROOT,
        env=os.environ | {"EXGRPO_RESULTS": str(results.resolve())},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait(health: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(150):
        if server.poll() is not None:
            raise RuntimeError(f"the dashboard ended with exit code {server.returncode}")
        try:
            urllib.request.urlopen(health, timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the dashboard did not answer at {health}")


@contextmanager
def browsing() -> Iterator[Page]:
    """A page of a headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield browser.new_page(viewport={"width": WIDTH, "height": 1500})
        finally:
            browser.close()


def settle(page: Page) -> None:
    """Wait until the screen has run and nothing in it is still a grey placeholder."""
    page.wait_for_selector('[data-testid="stElementContainer"]', state="attached", timeout=60_000)
    page.wait_for_selector('[data-test-script-state="notRunning"]', timeout=60_000)
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')")
    page.wait_for_timeout(1000)


def click_row(page: Page, table: int, row: int) -> None:
    """Click a row, from 0, of the n-th table in sight. Tables are canvases: click by place."""
    canvas = page.locator('[data-testid="stDataFrame"]:visible').nth(table)
    canvas.click(position={"x": 120, "y": 34 + 34 * row + 17})
    page.wait_for_timeout(300)
    settle(page)


def save_all(address: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with browsing() as page:
        for name, height, url in (
            ("overview", 1150, ""),
            ("question", 1900, "question"),
            ("compare", 1250, "compare"),
            ("maps", 1400, "maps"),
            ("sql", 900, "sql?" + urlencode({"sql": QUERY})),
            ("trajectories", 900, "trajectories?size=100&sort=mean_entropy&descending=true"),
            ("trajectory", 1250, "trajectories?replayed=true&view=entropy"),
        ):
            page.set_viewport_size({"width": WIDTH, "height": height})
            page.goto(f"{address}/{url}")
            settle(page)
            if name == "trajectory":
                click_row(page, 0, 2)
            page.screenshot(path=folder / f"{name}.png")


def main(results: Path) -> None:
    if not chromium():
        print("pictures: left as they are, for no Chromium or Chrome was found")
        return
    folder = ROOT / "docs" / "images"
    with served(results) as address:
        save_all(address, folder)
    print(f"pictures: in {folder.relative_to(ROOT)}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
