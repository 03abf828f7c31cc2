"""What `dashboard.py` clicks, by name: on which screen, and how."""

from collections.abc import Callable
from typing import Any

Click = tuple[str, Callable[[Any], None]]


def choose(name: str) -> Callable[[Any], None]:
    """Click a segment of a control, by its words."""
    return lambda page: page.get_by_role("radio", name=name, exact=True).first.click()


def frame(page: Any) -> None:
    """Draw a box on the first map of a figure."""
    place = page.locator(".js-plotly-plot .draglayer .xy .nsewdrag").first.bounding_box()
    page.mouse.move(place["x"] + 0.3 * place["width"], place["y"] + 0.3 * place["height"])
    page.mouse.down()
    page.mouse.move(place["x"] + 0.6 * place["width"], place["y"] + 0.7 * place["height"], steps=5)
    page.mouse.up()


def row(number: int) -> Callable[[Any], None]:
    """Click a row of the first table, from 0; tables are canvases: click by place."""
    at: Any = {"x": 120, "y": 34 + 34 * number + 17}
    return lambda page: page.get_by_test_id("stDataFrame").first.click(position=at)


def header(page: Any) -> None:
    """Click the header of the first table's first column."""
    place = page.get_by_test_id("stDataFrame").first.bounding_box()
    page.mouse.click(place["x"] + 60, place["y"] + 17)


def press(key: str) -> Callable[[Any], None]:
    """Press a key that a button listens to."""
    return lambda page: page.keyboard.press(key)


def press_button(name: str) -> Callable[[Any], None]:
    """Click a button, by what its words begin with."""
    return lambda page: page.get_by_role("button", name=name).first.click()


CLICKS: dict[str, Click] = {
    "sort by a header": ("trajectories", header),
    "the second page": ("trajectories", press_button("2")),
    "a row": ("trajectories", row(4)),
    "right answers alone": ("trajectories", choose("right")),
    "tokens by entropy": ("trajectories: one", choose("entropy")),
    "another question": ("question", row(4)),
    "the next question": ("question", press("n")),
    "the next pair of answers": ("compare", press("n")),
    "one text": ("compare", choose("one text")),
    "a box to its rows": ("maps", frame),
    "entropy by step": ("maps", choose("entropy by step")),
    "another colour": ("maps", choose("right")),
    "after a replay": ("snowball", choose("after a replay")),
    "offenders": ("snowball", choose("offenders")),
    "events": ("buffer", choose("events")),
    "age": ("buffer", choose("age")),
    "curves by tokens": ("overview", choose("sampled tokens")),
    "run health": ("overview", choose("Run health")),
    "accuracy at the end": ("overview", choose("Accuracy at the end")),
    "a claim": ("claims", row(2)),
    "settings": ("runs", choose("Settings")),
    "another run": ("runs", row(5)),
    "another curve": ("live", lambda page: page.get_by_text("share of tokens clipped").click()),
}
