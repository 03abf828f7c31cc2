"""What the trajectory browser shows, as its address holds it, and the moves within it."""

from dataclasses import dataclass, field
from typing import Literal

from analysis.browse import Filters, Page
from app import data, state


@dataclass(frozen=True)
class Browser:
    """All that the screen shows: filters and sort, page, page size, trajectory, its view.

    `window` is the part of a long trajectory's tokens, from 1.
    """

    filters: Filters = field(default_factory=Filters)
    page: int = 1
    size: int = 50
    trajectory: str | None = None
    view: Literal["raw", "entropy", "ratio"] = "raw"
    window: int = 1


def read() -> Browser:
    """The browser as the address has it; numbers out of range fall back to the default."""
    browser = state.read(Browser)
    fine = browser.page >= 1 and 1 <= browser.size <= 1000
    return browser if fine else state.change(browser, page=1, size=Browser.size)


def open_trajectory(trajectory: str) -> None:
    state.write(state.change(read(), trajectory=trajectory, window=1))


def neighbour(browser: Browser, page: Page, by: int) -> Browser | None:
    """The browser one row further (`by` 1) or back (-1), over the page's end if need be.

    None at either end of the whole table, or when the trajectory is not on the page.
    """
    ids = page.frame["trajectory"].to_list()
    if browser.trajectory not in ids:
        return None
    place = ids.index(browser.trajectory) + by
    if 0 <= place < len(ids):
        return state.change(browser, trajectory=ids[place], window=1)
    number = browser.page + by
    if number < 1 or (number - 1) * browser.size >= page.total:
        return None
    other = data.page(browser.filters, number, browser.size).frame["trajectory"]
    return state.change(browser, page=number, trajectory=other[0 if by > 0 else -1], window=1)
