"""The gold answer of a question, as it stands in somebody else's file."""

import ast
from contextlib import suppress

from exgrpo.errors import UserError
from exgrpo.grading import check_gold


class NoGoldError(UserError):
    """A row whose gold is null: it is named and left out, the others count."""


def gold_of(value: object, where: str) -> str:
    """The gold as text; of a list of one, also of one written as text (`['91']`), its item.

    NoGoldError on null; UserError on one that nothing can be graded against, such as several in a
    list, however it is written.
    """
    if value is None:
        raise NoGoldError(f"{where}: the gold is null: no answer can be graded against it")
    if isinstance(value, str) and value.strip()[:2] in ("['", '["'):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            written = ast.literal_eval(value.strip())
            value = written if isinstance(written, list) else value
    return check_gold(value[0] if isinstance(value, list) and len(value) == 1 else value, where)
