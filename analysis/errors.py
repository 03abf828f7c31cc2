"""The one error that is the user's to mend; the twin of `exgrpo.errors` for this folder."""


class UserError(Exception):
    """Bad input. The message names the file, the key or row, the value and the remedy.

    The terminal prints it alone, without a traceback, and ends with exit code 2.
    """
