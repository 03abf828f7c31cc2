"""A question to the catalog as text that asks the same elsewhere: a shell, a script, our editor."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.sql_types import literal

# Our own SQL has no `$$` texts; in quotes and comments a `$` is no parameter.
_PARAMETER = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\$(?P<name>\w+)""")


def shell(catalog: Path, sql: str) -> str:
    """A command for a POSIX shell that has the `duckdb` command-line client."""
    return f"duckdb -readonly {shlex.quote(str(catalog))} -c {shlex.quote(sql)}"


def python(catalog: Path, sql: str, values: Mapping[str, Any] | None = None) -> str:
    """A Python script that prints the answer; needs `duckdb` and `polars`."""
    lines = "".join(f"    {line!r}\n" for line in sql.splitlines(keepends=True))
    bound = f", params={dict(values)!r}" if values else ""
    return (
        f"import duckdb\n\nsql = (\n{lines})\n"
        f"with duckdb.connect({str(catalog)!r}, read_only=True) as catalog:\n"
        f"    frame = catalog.sql(sql{bound}).pl()\nprint(frame)\n"
    )


def with_values(sql: str, values: Mapping[str, Any]) -> str:
    """The SQL of a named query, without its header, with literals in the place of parameters.

    A parameter without a value stays.
    """

    def filled(found: re.Match[str]) -> str:
        return written(values[found["name"]]) if found["name"] in values else found[0]

    lines = sql.splitlines()
    while lines and lines[0].startswith("--"):
        lines.pop(0)
    return _PARAMETER.sub(filled, "\n".join(lines).strip())


def written(value: Any) -> str:
    """A value of a parameter as SQL that means the same, whatever a text holds."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    if isinstance(value, int):
        return f"({value})"
    if isinstance(value, list | tuple):
        return f"CAST([{', '.join(written(item) for item in value)}] AS VARCHAR[])"
    parts = [literal(part) for part in value.split("\0")]  # the parser takes no NUL
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"
