"""The gold answer of a question, as it stands in somebody else's file."""

import ast
from contextlib import suppress

from exgrpo.errors import UserError
from exgrpo.grading import check_gold


class NoGoldError(UserError):
    """A row whose gold is null: it is named and left out, the others count."""


def gold_of(value: object, where: str) -> str:
    """The gold as text; of a list of one, also of one written as text (`['91']`), its item.

    NoGoldError on null; UserError on one that nothing can be graded against.
    """
    if value is None:
        raise NoGoldError(f"{where}: the gold is null: no answer can be graded against it")
    items = value
    if isinstance(value, str) and value.strip()[:2] in ("['", '["'):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            items = ast.literal_eval(value.strip())
    return check_gold(items[0] if isinstance(items, list) and len(items) == 1 else value, where)
