"""How long the dashboard takes to open a screen and to answer a click, in a real browser.

    python benchmarks/dashboard.py [--trajectories 1000000 10000000] [--folder FOLDER]

Lakes are those of `lake.py` (FOLDER keeps them for the next time), analysed as a study is. All
times go to the last change of the page. *Opened* is a click in the navigation of an open dashboard:
*first*, when nothing of what the screen asks has been answered yet, and *again*, when the server
still has the answers. *Loaded* is a link opened in a browser that knows the dashboard: it starts
with the script of every Streamlit page, which an empty page in the same browser is measured for. A
click is one within a screen. Beside each stands its limit.
"""

import argparse
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dashboard_clicks import CLICKS
from lake import A_RUN, STUDY, WITH_TOKENS, alone, build, compact_runs, make_logs, say, study_of

from analysis.catalog import open_catalog
from analysis.queries import ask
from exgrpo.records import write_whole
from pipeline.analyse import analyse
from pipeline.figures import draw_figures

LOAD_LIMITS = {1_000_000: 1000, 10_000_000: 1500}  # ms, by number of trajectories
CLICK_LIMITS = {1_000_000: 500, 10_000_000: 1500}
QUIET = 400  # ms without a change: the page has settled
ROOT = Path(__file__).resolve().parents[1]
TOOLS = runpy.run_path(str(ROOT / "docs" / "screenshots.py"))

# Notes the time of each change, from the first line of the document on.
WATCH = """
window.lastChange = 0;
new MutationObserver(() => { window.lastChange = performance.now(); }).observe(
  document, {subtree: true, childList: true, attributes: true, characterData: true});
"""
SETTLED = f"""
document.querySelector('[data-testid="stMainBlockContainer"] [data-testid="stElementContainer"]')
&& document.querySelector('[data-test-script-state="notRunning"]')
&& !document.querySelector('[data-testid="stSkeleton"]')
&& performance.now() - window.lastChange > {QUIET}
"""
HOME = "sql"  # the screen that asks the catalog nothing
NAVIGATION = {
    "overview": ("Study", "Overview"),
    "claims": ("Study", "Claims"),
    "runs": ("Study", "Runs"),
    "live": ("Study", "Live"),
    "trajectories": ("Read", "Trajectories"),
    "question": ("Read", "Question"),
    "lineage": ("Read", "Lineage"),
    "compare": ("Read", "Compare"),
    "maps": ("Why", "Difficulty and entropy"),
    "snowball": ("Why", "Snowball"),
    "buffer": ("Why", "Experience buffer"),
    "sql": ("Ask", "SQL"),
}
WHERE = """
select r.study, t.run, r.arm, t.step, t."group", t.question, t.trajectory
from trajectories t join runs r using (run)
where t.replayed and t.step > 200
order by t.run, t.trajectory
limit 1
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectories", type=int, nargs="+", default=list(LOAD_LIMITS))
    parser.add_argument("--folder", type=Path, help="keeps the lakes; a temporary one if not given")
    parser.add_argument("--only", nargs="+", help="names of screens; all if not given")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for wanted in asked.trajectories:
            runs = max(2, wanted // 100_000)
            results = prepared(asked.folder or Path(temporary), runs)
            print_size(wanted, runs, results, asked.only)


def prepared(folder: Path, runs: int) -> Path:
    """A results folder with that many runs: lake, catalog, analyses and figures."""
    results = folder / f"{runs}-runs"
    if not (results / "logs-made").exists():
        say(f"{runs * A_RUN:,} trajectories: making their logs")
        alone(make_logs, results, runs + 1, WITH_TOKENS)
        (results / "logs-made").touch()
    if not (results / "workbench.duckdb").exists():
        say(f"{runs * A_RUN:,} trajectories: lake and catalog")
        alone(compact_runs, results, runs)
        alone(build, results, runs)
    if not (results / STUDY / "figures").is_dir():
        say(f"{runs * A_RUN:,} trajectories: analyses and figures")
        alone(draw, results, runs)
    return results


def draw(results: Path, runs: int) -> None:
    analyse(study_of(runs), results)
    for figure in draw_figures(STUDY, results):
        path = results / STUDY / "figures" / f"{figure.name}.json"
        write_whole(path, figure.plot.to_json().encode())


def print_size(wanted: int, runs: int, results: Path, only: list[str] | None) -> None:
    with open_catalog(results / "workbench.duckdb") as connection:
        known = ask(connection, WHERE, 1).frame.row(0, named=True)
    loads, clicks = LOAD_LIMITS.get(wanted, 1500), CLICK_LIMITS.get(wanted, 1500)
    screens = {
        name: url
        for name, url in addresses(known).items()
        if not only or name.partition(":")[0] in only
    }
    with empty_page() as empty, TOOLS["served"](results) as served, TOOLS["browsing"]() as page:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.add_init_script(WATCH)
        load(page, empty)  # the browser keeps what every page of Streamlit needs
        peer = load(page, empty)
        load(page, f"{served}/{HOME}")  # and the server has imported what every screen needs
        print(f"\n{runs * A_RUN:,} trajectories, limit {loads} ms\n")
        print("| screen | first, ms | again, ms | first / limit |\n|---|---|---|---|")
        for name in NAVIGATION:
            if only and name not in only:
                continue
            first = opened(page, name)
            opened(page, HOME)
            again = opened(page, name)
            opened(page, HOME)
            print(f"| {name} | {first:.0f} | {again:.0f} | {first / loads:.2f} |", flush=True)
        print(f"\nLinks, limit {loads} ms; an empty page {peer:.0f} ms\n")
        print("| link | loaded, ms | / limit | / empty page |\n|---|---|---|---|")
        for name, url in screens.items():
            took = min(load(page, served + url) for _ in range(2))
            print(f"| {name} | {took:.0f} | {took / loads:.2f} | {took / peer:.1f} |", flush=True)
        print(f"\nlimit {clicks} ms\n\n| click | ms | / limit |\n|---|---|---|")
        for name, (screen, action) in CLICKS.items():
            if only and screen.partition(":")[0] not in only:
                continue
            load(page, served + addresses(known)[screen])
            took = click(page, action)
            print(f"| {screen}: {name} | {took:.0f} | {took / clicks:.2f} |", flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


def addresses(known: dict[str, Any]) -> dict[str, str]:
    """An address of each screen that shows something of what is known."""
    study, run, arm = known["study"], known["run"], known["arm"]
    one = {"trajectory": known["trajectory"]}
    queries: dict[str, dict[str, Any]] = {
        "overview": {"study": study},
        "claims": {"study": study},
        "runs": {"study": study, "run": run},
        "live": {"study": study},
        "trajectories": {},
        "trajectories: filtered": {
            **{"study": study, "arms": arm, "replayed": "true", "sort": "mean_entropy"},
        },
        "trajectories: searched in a run": {"run": run, "text": "boxed{7}"},
        "trajectories: one": {"run": run, **one},
        "trajectories: one, tokens": {"run": run, **one, "view": "entropy"},
        "question": {"study": study, "question": known["question"]},
        "lineage": one,
        "compare": {"study": study},
        "maps": {"study": study},
        "snowball": {"study": study},
        "buffer": {"study": study},
        "sql": {"sql": "select arm, count(*) from runs group by arm"},
    }
    return {name: f"/{_path(name)}?{urlencode(query)}" for name, query in queries.items()}


def _path(name: str) -> str:
    """The path of a screen; the first has none of its own."""
    screen = name.partition(":")[0]
    return "" if screen == "overview" else screen


def load(page: Any, url: str) -> float:
    """Milliseconds from the navigation to the last change of the page."""
    page.goto(url)
    return settled(page)


def opened(page: Any, name: str) -> float:
    """Milliseconds from a click in the navigation to the last change of the screen."""
    section, title = NAVIGATION[name]
    page.get_by_test_id("stTopNavSection").get_by_text(section, exact=True).click()
    link = page.get_by_test_id("stTopNavDropdownLink").filter(has_text=title)
    link.wait_for()
    page.wait_for_timeout(QUIET)
    return click(page, lambda _: link.click())


def click(page: Any, action: Callable[[Any], None]) -> float:
    """Milliseconds from the start of an action to the last change of the page."""
    start: float = page.evaluate("performance.now()")
    action(page)
    page.wait_for_timeout(50)  # until the browser has told the server
    return settled(page) - start


def settled(page: Any) -> float:
    page.wait_for_function(SETTLED, polling=50)
    last: float = page.evaluate("window.lastChange")
    return last


@contextmanager
def empty_page() -> Iterator[str]:
    """The address of a Streamlit page with one line of text."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "empty.py"
        script.write_text("import streamlit as st\nst.text('empty')\n")
        port = TOOLS["free_port"]()
        command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true"]
        server = subprocess.Popen(
            [*command, "--server.address=127.0.0.1", f"--server.port={port}"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        try:
            TOOLS["wait"](f"http://127.0.0.1:{port}/_stcore/health", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    started = time.monotonic()
    main()
    say(f"{time.monotonic() - started:.0f} s in all")
