"""The errors that the terminal prints alone, without a traceback."""


class UserError(Exception):
    """Bad input. The message names the file, the key or row, the value and the remedy.

    Exit code 2.
    """


class PreemptedError(Exception):
    """The system took the machine away (SIGTERM). The work is saved: the same command goes on.

    Exit code 75, EX_TEMPFAIL: the workflow tries again.
    """
