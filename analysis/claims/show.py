"""Numbers of claims as people read them."""

from analysis.claims.ledger import Claim, Unit
from analysis.claims.verdict import Verdict

# factor, decimals, sign, word behind the number
_FORM: dict[Unit, tuple[float, int, str, str]] = {
    "points": (100, 1, "+", " points"),
    "points per 100 steps": (100, 1, "+", " points per 100 steps"),
    "AUROC": (1, 3, "", ""),
    "nat/token": (1, 3, "+", " nat/token"),
    "share": (100, 1, "", " %"),
    "log ratio": (1, 3, "+", " log ratio"),
    "counted": (1, 0, "", ""),
}

# What of a row about the paper stands beside our own estimate.
_PAPER = {
    "gaps": "{gap:+.1f} points",
    "gains": "{gain:+.1f} points",
    "overhead": "{percent:+.1f} %",
    "chain_entropy": "{difference:+.3f} nat/token",
    "code_marker": "{difference:+.3g} ({measure})",
}


def show_paper(claim: Claim) -> str:
    """The paper's own figure in short; `-` where it prints none."""
    if claim.paper_row is None or claim.paper_row.query not in _PAPER:
        return "-"
    return _PAPER[claim.paper_row.query].format(**claim.paper_row.find())


def show(value: float, unit: Unit) -> str:
    """A number of a claim with its unit: shares of accuracy become percentage points."""
    return _number(value, unit) + _FORM[unit][3]


def show_effect(size: float, unit: Unit) -> str:
    """The size of an effect, without sign."""
    return show(size, unit).removeprefix("+")


def show_interval(verdict: Verdict, unit: Unit) -> str:
    """`+5.2 points [+1.0, +9.3]`; empty when the claim was not tested."""
    if verdict.value is None or verdict.low is None or verdict.high is None:
        return ""
    return with_interval(verdict.value, verdict.low, verdict.high, unit)


def show_power(verdict: Verdict) -> str:
    """The power in percent; empty where none is stated."""
    if verdict.power is None:
        return ""
    percent = 100 * verdict.power
    return "< 1 %" if percent < 1 else "> 99 %" if percent > 99 else f"{percent:.0f} %"


def with_interval(value: float, low: float, high: float, unit: Unit) -> str:
    return f"{show(value, unit)} [{_number(low, unit)}, {_number(high, unit)}]"


def _number(value: float, unit: Unit) -> str:
    factor, decimals, sign, _ = _FORM[unit]
    text = f"{factor * value:{sign}.{decimals}f}"
    return text if value else text.removeprefix("+")
