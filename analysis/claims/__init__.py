"""The ledger of claims, how each is tested, and what a study says about it."""

from analysis.claims.counted import COUNTS
from analysis.claims.finding import Finding, Frames, NotTestableError
from analysis.claims.judge import judge
from analysis.claims.ledger import LEDGER, Claim, Ledger, PaperRow, Unit, load_ledger
from analysis.claims.show import show, show_effect, show_interval, show_paper, show_power
from analysis.claims.tests import TESTS
from analysis.claims.verdict import Verdict, VerdictWord

__all__ = [
    "COUNTS",
    "LEDGER",
    "TESTS",
    "Claim",
    "Finding",
    "Frames",
    "Ledger",
    "NotTestableError",
    "PaperRow",
    "Unit",
    "Verdict",
    "VerdictWord",
    "judge",
    "load_ledger",
    "show",
    "show_effect",
    "show_interval",
    "show_paper",
    "show_power",
]
