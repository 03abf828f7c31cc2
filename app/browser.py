"""What the trajectory browser shows, as its address holds it, and the moves within it."""

from dataclasses import dataclass, field, replace
from typing import Literal

from analysis.browse import Page, columns_of, first_columns, sortable
from analysis.browse_filters import Filters, Source, fitting
from analysis.notes import read_notes
from analysis.surprising import Surprise
from app import data, state

MOST_ROWS = 10_000  # of a page

View = Literal["raw", "latex", "entropy", "ratio", "weight", "advantage"]


@dataclass(frozen=True)
class Browser:
    """All that the screen shows: filters and sort, page, page size, trajectory, its view.

    `starred`: only rows with a star; `columns` are those of the table, by default some of them;
    `trajectory` is the id of the row that is read, a sample's too (`analysis.sample_id`).
    `window` is the part of a long trajectory's tokens, from 1; `token` is the position, from 0, of
    the token that is marked; `surprising` is what the table of surprising tokens ranks by.
    """

    filters: Filters = field(default_factory=Filters)
    starred: bool = False
    page: int = 1
    size: int = 50
    columns: tuple[str, ...] = ()
    trajectory: str | None = None
    view: View = "raw"
    window: int = 1
    token: int | None = None
    surprising: Surprise = "improbable"


def read() -> Browser:
    """The browser as the address has it; what cannot be falls back to the default."""
    browser = state.read(Browser)
    if not (browser.page >= 1 and 1 <= browser.size <= MOST_ROWS):
        browser = replace(browser, page=1, size=Browser.size)
    known = columns_of(browser.filters.source)
    columns = tuple(dict.fromkeys(name for name in browser.columns if name in known))
    return replace(browser, filters=fitting(browser.filters), columns=columns)


def shown_columns(browser: Browser) -> tuple[str, ...]:
    """The columns of the table, in order."""
    return browser.columns or first_columns(browser.filters.source)


def rows(browser: Browser, number: int) -> Page:
    """Page `number` of the rows that pass the browser's filters."""
    ids = _starred() if browser.starred else None
    return data.page(browser.filters, number, browser.size, columns=browser.columns, ids=ids)


def _starred() -> tuple[str, ...]:
    notes = read_notes(data.results())
    return tuple(sorted(id for id, note in notes.items() if note.starred))


def switched(browser: Browser, source: Source) -> Browser:
    """The same questions to the other table, as far as it has what they ask for."""
    filters = fitting(replace(browser.filters, source=source))
    if filters.sort not in sortable(source):
        filters = replace(filters, sort=Filters.sort, descending=False)
    return Browser(filters, browser.starred, size=browser.size)


def sorted_by(browser: Browser, column: str) -> Browser:
    """The browser after a click on a column's header: by it, and the other way round next time."""
    filters = browser.filters
    if column not in sortable(filters.source):
        return browser
    descending = filters.sort == column and not filters.descending
    return replace(browser, filters=replace(filters, sort=column, descending=descending), page=1)


def open_trajectory(trajectory: str) -> None:
    state.write(state.change(read(), trajectory=trajectory, window=1, token=None))


def neighbour(browser: Browser, page: Page, by: int) -> Browser | None:
    """The browser one row further (`by` 1) or back (-1), over the page's end if need be.

    None at either end of the whole table, or when the trajectory is not on the page.
    """
    ids = page.frame["trajectory"].to_list()
    if browser.trajectory not in ids:
        return None
    place = ids.index(browser.trajectory) + by
    if 0 <= place < len(ids):
        return state.change(browser, trajectory=ids[place], window=1, token=None)
    number = browser.page + by
    if number < 1 or (number - 1) * browser.size >= page.total:
        return None
    other = rows(browser, number).frame["trajectory"]
    chosen = other[0 if by > 0 else -1]
    return state.change(browser, page=number, trajectory=chosen, window=1, token=None)
