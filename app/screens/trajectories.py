"""Trajectories: filter and search all of them; look at one, its tokens, group and lineage."""

import streamlit as st

from analysis.browse import Page
from app import data, state
from app.browser import Browser, neighbour, open_trajectory, read
from app.components.detail import show_detail
from app.components.filters import show_filters, show_order
from app.components.row_picker import row_picker
from app.components.trajectory_rows import trajectory_rows


def show() -> None:
    data.require_catalog()
    state.restore("trajectories")
    browser = read()
    with st.sidebar:
        show_filters(browser.filters)
    page = data.page(browser.filters, browser.page, browser.size)
    if page.total and page.frame.is_empty():  # an old link, or fewer rows than there were
        browser = state.change(browser, page=_pages(browser, page))
        page = data.page(browser.filters, browser.page, browser.size)
    _table(browser, page)
    if browser.trajectory is None:
        st.caption("Click a row to read the trajectory, its tokens, its group and its lineage.")
    else:
        _steps(browser, page)
        show_detail(browser)
    state.remember("trajectories")


def _table(browser: Browser, page: Page) -> None:
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"
    ):
        show_order(browser.filters, browser.size)
        st.markdown(f"**{page.total:,}** trajector{'y' if page.total == 1 else 'ies'}")
    if page.frame.is_empty():
        st.info("No trajectory passes these filters.")
        return
    row_picker(
        trajectory_rows(page.frame),
        page.frame["trajectory"].to_list(),
        browser.trajectory,
        "browser.rows",
        open_trajectory,
        height=300 if browser.trajectory else 620,
        column_config={
            "entropy": st.column_config.NumberColumn(format="%.4f"),
            "response": st.column_config.TextColumn(width="large"),
        },
    )
    pages = _pages(browser, page)
    if pages == 1:
        return
    key = f"page {browser.page} of {pages}"  # a key of its own: the address decides the page
    st.pagination(pages, default=browser.page, key=key, on_change=_turn, args=(key,))


def _pages(browser: Browser, page: Page) -> int:
    return max(1, -(-page.total // browser.size))


def _turn(key: str) -> None:
    state.write(state.change(read(), page=st.session_state[key]))


def _steps(browser: Browser, page: Page) -> None:
    """The buttons to the trajectory before and after this one in the table."""
    before, after = neighbour(browser, page, -1), neighbour(browser, page, 1)
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, key, target in (("Previous", "P", before), ("Next", "N", after)):
            st.button(
                label,
                shortcut=key,
                disabled=target is None,
                on_click=state.write,
                args=(target,),
                key=f"browser.{label.lower()}",
            )
        st.caption(
            "in the order of the table"
            if before or after
            else "this trajectory is not on this page of the table"
        )


show()
