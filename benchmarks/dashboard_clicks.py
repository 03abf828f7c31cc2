"""What `dashboard.py` clicks, by name: on which screen, and how."""

from collections.abc import Callable
from typing import Any

Click = tuple[str, Callable[[Any], None]]

CLICKS: dict[str, Click] = {}
