"""Numbers of claims as people read them."""

import math

from analysis.claims.ledger import Claim, Unit
from analysis.claims.verdict import Verdict

# factor, decimals, sign, word behind the number
_FORM: dict[Unit, tuple[float, int, str, str]] = {
    "points": (100, 1, "+", " points"),
    "points per 100 steps": (100, 1, "+", " points per 100 steps"),
    "AUROC": (1, 3, "", ""),
    "nat/token": (1, 3, "+", " nat/token"),
    "share": (100, 1, "", " %"),
    "log ratio": (100, 1, "+", " %"),  # of the ratio less 1
    "counted": (1, 0, "", ""),
}

_LARGEST = math.log(1_000)  # a log ratio above is only said to be so

# What of a row about the paper stands beside our own estimate, in the direction that is claimed.
_PAPER = {
    "gaps": "{gap:+.1f} points",
    "gains": "{gain:+.1f} points",
    "overhead": "{percent:+.1f} %",
    "chain_entropy": "{difference:+.3f} nat/token",
    "code_marker": "{difference:+.3f} nat/token",
}
_PAPER_SHARE = "{shortfall:+.1f} points"  # of valid chains, where the marker means fewer


def show_paper(claim: Claim) -> str:
    """The paper's own figure in short; `-` where it prints none."""
    if claim.paper_row is None or claim.paper_row.query not in _PAPER:
        return "-"
    row = claim.paper_row.find()
    form = _PAPER_SHARE if row.get("measure") == "valid chains" else _PAPER[claim.paper_row.query]
    return form.format(**row)


def show(value: float, unit: Unit) -> str:
    """A number of a claim with its unit: shares become points, a log ratio the change in %."""
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
    if unit == "log ratio":
        if value > _LARGEST:
            return f"> {_number(_LARGEST, unit)}"
        value = math.expm1(value)
    text = f"{factor * value:{sign}z.{decimals}f}"
    return text if value else text.removeprefix("+")
