"""Where a search of the trajectory browser hits within one text: what SQL found, marked."""

import duckdb

from analysis.errors import UserError
from analysis.queries import explain

Span = tuple[int, int]

MOST = 2000  # hits of one text


def hits(
    connection: duckdb.DuckDBPyConnection, text: str, wanted: str, regex: bool
) -> tuple[Span, ...]:
    """Start and end of each hit in `text`, in order, without overlap, at most `MOST`.

    Found by DuckDB, so that they mean what the filter means: in any case, and RE2 if `regex`, which
    no pattern can make slow. Hits of no length are left out. Raises UserError on a bad pattern.
    """
    if not wanted:
        return ()
    try:
        with connection.cursor() as cursor:
            return (_regex if regex else _plain)(cursor, text, wanted)[:MOST]
    except duckdb.Error as error:
        raise UserError(f"search for {wanted!r}: {explain(error)}") from error


def _plain(cursor: duckdb.DuckDBPyConnection, text: str, wanted: str) -> tuple[Span, ...]:
    # DuckDB lowers letter by letter: a place in the lowered text is a place in the text.
    sql = "SELECT lower($text), lower($wanted)"
    row = cursor.execute(sql, {"text": text, "wanted": wanted}).fetchone()
    assert row is not None
    lowered, needle = row
    found: list[Span] = []
    place = lowered.find(needle)
    while place >= 0 and len(found) < MOST:
        found.append((place, place + len(needle)))
        place = lowered.find(needle, place + len(needle))
    return tuple(found) if len(lowered) == len(text) else ()


def _regex(cursor: duckdb.DuckDBPyConnection, text: str, wanted: str) -> tuple[Span, ...]:
    """RE2 tells no places: it puts two characters that the text lacks around each hit instead."""
    opening, closing = _absent(text)
    sql = "SELECT regexp_replace($text, $wanted, $around, 'gi')"
    values = {"text": text, "wanted": wanted, "around": rf"{opening}\0{closing}"}
    row = cursor.execute(sql, values).fetchone()
    assert row is not None
    found: list[Span] = []
    place = start = 0
    for character in row[0]:
        if character == opening:
            start = place
        elif character == closing:
            found += [(start, place)] if place > start else []
        else:
            place += 1
    return tuple(found)


def _absent(text: str) -> tuple[str, str]:
    """Two characters, of those that mean nothing, that the text does not hold."""
    held = set(text)
    free = (chr(code) for code in range(0xF0000, 0xFFFFE) if chr(code) not in held)
    return next(free), next(free)
