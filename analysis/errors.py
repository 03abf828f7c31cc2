"""The one error that is the user's to mend, the twin of `exgrpo.errors`; how others are told."""


class UserError(Exception):
    """Bad input. The message names the file, the key or row, the value and the remedy.

    The terminal prints it alone, without a traceback, and ends with exit code 2.
    """


def reason(error: Exception) -> str:
    """An error in one line: its first, or the last where DuckDB passes on a traceback of Python."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else lines[0]
