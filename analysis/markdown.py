"""Tables in Markdown."""

import re
from collections.abc import Sequence


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table. Names and texts of a study are shown as they are, never as markup."""
    cells = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in cells]


def _cell(text: str) -> str:
    return re.sub(r"([\\|<])", r"\\\1", " ".join(text.split()))
