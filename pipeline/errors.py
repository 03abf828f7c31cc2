"""How an error that a user can mend is told: an exit code and one line. For all else, a traceback.

Where several processes work for one command, the launched one hands both to its launcher.
"""

import errno
import os

from analysis.errors import UserError as AnalysisError
from exgrpo.errors import PreemptedError, UserError

BAD_INPUT, PREEMPTED, INTERRUPTED = 2, os.EX_TEMPFAIL, 130
WORDS = {BAD_INPUT: "error", PREEMPTED: "preempted"}  # what the line begins with

_FREE = "Free some, run the same again."
_ALLOW = "Allow writing there, or name another folder with --results."
REMEDIES = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EACCES: _ALLOW,
    errno.EPERM: _ALLOW,
    errno.EROFS: _ALLOW,
}


def told(error: BaseException) -> tuple[int, str] | None:
    """Exit code and message of a UserError, a preemption, a full or a locked disk; else None."""
    if isinstance(error, UserError | AnalysisError):
        return BAD_INPUT, str(error)
    if isinstance(error, PreemptedError):
        return PREEMPTED, str(error)
    if isinstance(error, OSError) and error.errno in REMEDIES:
        where = f"{error.filename}: " if error.filename else ""
        return BAD_INPUT, f"{where}{error.strerror}. {REMEDIES[error.errno]}"
    return None
