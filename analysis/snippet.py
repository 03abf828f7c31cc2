"""The part of a response that a table shows: its beginning, or the surroundings of a hit."""

SHOWN = 120  # characters
BEFORE = 20  # at most, of them before the hit
OPEN, CLOSE = "⟦", "⟧"  # around the hit: a cell of a table has no other way to mark it


def snippet(regex: bool | None) -> str:
    """SQL for some `SHOWN` characters of the column `response`, in one line.

    `regex` is None without a search; else it says how the parameter `$text` is searched for, as in
    `analysis.browse_filters`. The first hit stands between `OPEN` and `CLOSE`, with dots where the
    response goes on before it and after it.
    """
    beginning = f"left(response, {SHOWN})"
    if regex is None:
        return _one_line(beginning)
    # RE2 tells no places. The shortest text that ends in a hit ends in the first one.
    wanted = "$text" if regex else "regexp_escape($text)"
    pattern = f"'(?s:^.*?(.{{0,{BEFORE}}}?))(' || {wanted} || ')'"
    to_end, before, hit = (f"regexp_extract(response, {pattern}, {i}, 'i')" for i in range(3))
    room = f"greatest(0, {SHOWN} - length({before}) - length({hit}))"
    around = f"""
        if(length({to_end}) > length({before}) + length({hit}), '…', '') || {before}
        || '{OPEN}' || left({hit}, {SHOWN}) || '{CLOSE}'
        || substring(response, length({to_end}) + 1, {room})
        || if(length(response) > length({to_end}) + {room}, '…', '')
    """
    return f"CASE WHEN {hit} = '' THEN {_one_line(beginning)} ELSE {_one_line(around)} END"


def _one_line(text: str) -> str:
    return rf"regexp_replace({text}, '\s+', ' ', 'g')"
