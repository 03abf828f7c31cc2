"""Trajectories: filter and search all of them; look at one, its tokens, group and lineage."""

from dataclasses import replace

import streamlit as st

from analysis.browse import Page, columns_of, sortable
from app import data, state
from app.browser import (
    MOST_ROWS,
    Browser,
    neighbour,
    open_trajectory,
    read,
    rows,
    shown_columns,
    sorted_by,
)
from app.components.detail import show_detail
from app.components.export import show_export
from app.components.filter_chips import chips, show_chips
from app.components.filters import clear, control, show_filters, show_source
from app.components.row_picker import row_picker
from app.components.sample import show_sample
from app.components.steps import show_steps
from app.components.trajectory_rows import SORTED_BY, column_config, header, trajectory_rows

NAMES = {"training": ("trajectory", "trajectories"), "evaluation": ("sample", "samples")}


def show() -> None:
    data.require_catalog()
    state.restore("trajectories")
    browser = read()
    with st.sidebar:
        show_filters(browser)
    _top(browser)
    show_chips(browser)
    page = rows(browser, browser.page)
    if page.total and page.frame.is_empty():  # an old link, or fewer rows than there were
        browser = replace(browser, page=_pages(browser, page))
        page = rows(browser, browser.page)
    _table(browser, page)
    if browser.trajectory is None:
        if page.total:
            st.caption("Click a row to read it; click a header to sort all rows by it.")
    else:
        _steps(browser, page)
        (show_sample if browser.filters.source == "evaluation" else show_detail)(browser)
    state.remember("trajectories")


def _top(browser: Browser) -> None:
    """Which rows, their order, how many on a page, and the columns, side by side."""
    filters = browser.filters
    known = list(sortable(filters.source))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        show_source(browser)
        st.selectbox(
            "Sort by",
            known if filters.sort in known else [*known, filters.sort],
            width=200,
            **control("sort", filters.sort),
        )
        st.toggle("greatest first", **control("descending", filters.descending))
        st.number_input("Rows a page", 1, MOST_ROWS, width=130, **control("size", browser.size))
        with st.popover("Columns", icon=":material/view_column:"):
            st.multiselect(
                "Columns of the table",
                columns_of(filters.source),
                format_func=header,
                **state.control(Browser, "columns", shown_columns(browser)),
            )


def _table(browser: Browser, page: Page) -> None:
    if page.frame.is_empty():
        _say_nothing(browser)
        return
    columns = shown_columns(browser)
    filters = browser.filters
    row_picker(
        trajectory_rows(page.frame, columns),
        page.frame["trajectory"].to_list(),
        browser.trajectory,
        f"browser.rows {filters.sort} {filters.descending}",  # anew: no header is chosen yet
        open_trajectory,
        _sort,
        height=300 if browser.trajectory else 560,
        column_config=column_config(columns, filters),
    )
    _under_the_table(browser, page)


def _say_nothing(browser: Browser) -> None:
    many = NAMES[browser.filters.source][1]
    if chips(browser):
        st.info("No row passes all of these filters. Take one off above, or all of them:")
        st.button("Clear all filters", on_click=clear, key="browser.clear")
    else:
        st.info(f"The catalog holds no {many}.")


def _sort(column: str) -> None:
    state.write(sorted_by(read(), SORTED_BY.get(column, column)))


def _under_the_table(browser: Browser, page: Page) -> None:
    """How many rows there are, the other pages, and this one as a file."""
    pages = _pages(browser, page)
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        one, many = NAMES[browser.filters.source]
        of_pages = f", page {browser.page:,} of {pages:,}" if pages > 1 else ""
        st.markdown(f"**{page.total:,}** {one if page.total == 1 else many}{of_pages}")
        if pages > 1:
            key = f"page {browser.page} of {pages}"  # of its own: the address decides the page
            st.pagination(pages, default=browser.page, key=key, on_change=_turn, args=(key,))
        show_export(page.frame, f"trajectories-page-{browser.page}")


def _pages(browser: Browser, page: Page) -> int:
    return max(1, -(-page.total // browser.size))


def _turn(key: str) -> None:
    state.write(replace(read(), page=st.session_state[key]))


def _steps(browser: Browser, page: Page) -> None:
    """The buttons to the row before and after this one in the table."""
    before, after = neighbour(browser, page, -1), neighbour(browser, page, 1)
    there = browser.trajectory in page.frame["trajectory"]
    words = "in the order of the table" if before or after else "the only row of the table"
    place = words if there else "not on this page of the table"
    show_steps(before, after, state.write, "browser", place)


show()
