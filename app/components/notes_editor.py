"""Star and note of a trajectory or sample, kept beside the results, and the export of all."""

import streamlit as st

from analysis.errors import UserError
from analysis.notes import FILE, Note, as_csv, as_jsonl, broken_lines, change_note, read_notes
from app import data
from app.browser import Browser
from app.components.copy_link import show_link
from app.components.errors import show_error

LONGEST = 10_000  # characters of a note
FAILED = "notes.failed"  # in the session: why the last change was not written


def show_notes(id: str, browser: Browser) -> None:
    """Star, note, export and link of the row of this id, a trajectory's or a sample's."""
    notes = notes_or_error()
    with st.container(horizontal=True):
        if notes is not None:
            show_star(notes, id)
            show_export(notes)
        show_link(browser)
    if notes is not None:
        show_note(notes, id)


def show_star(notes: dict[str, Note], trajectory: str) -> None:
    """The star, by click or by the key S."""
    starred = notes.get(trajectory, Note(trajectory)).starred
    st.button(
        "★ Starred" if starred else "☆ Star",
        shortcut="S",
        key="detail.star",
        type="primary" if starred else "secondary",
        on_click=_change,
        args=(trajectory, not starred, None),
    )


def show_note(notes: dict[str, Note], trajectory: str) -> None:
    """The note's text; it is written when the field is left or Ctrl+Enter is pressed."""
    held = notes.get(trajectory, Note(trajectory))
    key = f"detail.note.{trajectory}"
    st.session_state[key] = held.note
    st.text_area(
        "Note",
        key=key,
        height=68,
        max_chars=LONGEST,
        placeholder="What is worth knowing about this response",
        on_change=_change_text,
        args=(trajectory, key),
    )
    if held.changed:
        st.caption(f"Changed {held.changed[:16].replace('T', ' ')} UTC")


def show_export(notes: dict[str, Note]) -> None:
    """All stars and notes as a file, and what of them could not be read."""
    with st.popover("Export notes", icon=":material/download:"):
        st.caption(f"{len(notes)} starred or with a note, in `{FILE}` of the results folder.")
        if broken := broken_lines(data.results()):
            numbers = ", ".join(map(str, broken[:10])) + (", …" if len(broken) > 10 else "")
            st.warning(f"Lines of that file that cannot be read and are passed over: {numbers}.")
        st.download_button("CSV", as_csv(notes.values()), "notes.csv", on_click="ignore")
        st.download_button("JSONL", as_jsonl(notes.values()), FILE, on_click="ignore")


def notes_or_error() -> dict[str, Note] | None:
    """All notes; None, and the error on the page, when the file cannot be read."""
    if failed := st.session_state.pop(FAILED, None):
        show_error(failed)
    try:
        return read_notes(data.results())
    except UserError as error:
        show_error(error)
        return None


def _change_text(trajectory: str, key: str) -> None:
    _change(trajectory, None, st.session_state[key])


def _change(trajectory: str, starred: bool | None, note: str | None) -> None:
    try:
        change_note(data.results(), trajectory, starred=starred, note=note)
    except UserError as error:
        st.session_state[FAILED] = error  # shown by the page's next run: this is a callback
