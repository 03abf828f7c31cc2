"""The filters that are on, as a line of small buttons: a click takes one off."""

from dataclasses import replace

import streamlit as st

from analysis.browse_filters import Filters, active, without
from app import state
from app.browser import Browser, read
from app.components.filters import MARKERS
from app.components.plain import plain

LONGEST = 40  # characters of a text on a button

# A filter of two ends is one chip.
RANGES = ("step", "length", "age", "entropy")
FLAGS = {
    "replayed": {True: "replayed", False: "fresh"},
    "correct": {True: "right", False: "wrong"},
    "ungraded": {True: "ungraded"},
    "chain_valid": {True: "chain valid", False: "chain flawed"},
}
NAMES = {
    "arms": "arm",
    "seeds": "seed",
    "bucket": "k =",
    "bucket_drawn": "drawn from k =",
    "finish": "ends by",
    "domain": "distribution:",
    "markers": "marked",
}


def chips(browser: Browser) -> dict[tuple[str, ...], str]:
    """What each filter says in a few words, by the fields that it takes."""
    filters = browser.filters
    found: dict[tuple[str, ...], str] = {}
    for name in active(filters):
        base, _, end = name.rpartition("_")
        if base in RANGES and end in ("min", "max"):
            found[f"{base}_min", f"{base}_max"] = _range(filters, base)
        elif name == "text":
            kind = "pattern" if filters.regex else "text"
            found[("text",)] = f"{kind} “{_short(filters.text or '')}”"
        elif name in FLAGS:
            found[(name,)] = FLAGS[name][getattr(filters, name)]
        else:
            found[(name,)] = f"{NAMES.get(name, name)} {_values(getattr(filters, name))}"
    return found | ({("starred",): "starred"} if browser.starred else {})


def without_chip(browser: Browser, names: tuple[str, ...]) -> Browser:
    """The browser with one of its filters off, on the first page."""
    if names == ("starred",):
        return replace(browser, starred=False, page=1)
    return replace(browser, filters=without(browser.filters, *names), page=1)


def show_chips(browser: Browser) -> None:
    """Nothing where no filter is on."""
    found = chips(browser)
    if not found:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for names, words in found.items():
            st.button(
                f"{plain(words)} ✕",
                key=f"chip.{names[0]}",
                type="tertiary",
                help="Take this filter off",
                on_click=_take_off,
                args=(names,),
            )


def _take_off(names: tuple[str, ...]) -> None:
    state.write(without_chip(read(), names))


def _range(filters: Filters, base: str) -> str:
    low, high = getattr(filters, f"{base}_min"), getattr(filters, f"{base}_max")
    if low is None:
        return f"{base} up to {high:,}"
    if high is None:
        return f"{base} from {low:,}"
    return f"{base} {low:,}" if low == high else f"{base} {low:,} to {high:,}"


def _values(value: object) -> str:
    items = value if isinstance(value, tuple) else (value,)
    return _short(", ".join(MARKERS.get(item, str(item)) for item in items))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
