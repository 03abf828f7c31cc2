"""Statements that are decided by looking: in the paper's own tables, or in the log of a run.

They are no statistical tests and lie outside the family. Each function says whether the statement
holds, and what was seen.
"""

from collections.abc import Callable

import polars as pl

from analysis.claims.finding import Frames, NotTestableError, answer_of
from analysis.claims.ledger import Claim
from analysis.paper import ask

Counted = tuple[bool, str]
TOLERANCE = 1e-3  # weights and ratios are logged in single precision


def costs_fall(claim: Claim, frames: Frames) -> Counted:
    """Whether a step costs less with replay, on every backbone that is printed."""
    rows = ask(claim.query)
    seen = "; ".join(
        f"{row['backbone']}: {row['exgrpo']:.2f} s a step against {row['on_policy']:.2f}, "
        f"{row['percent']:+.1f} %"
        for row in rows.iter_rows(named=True)
    )
    return bool((rows["percent"] < 0).all()), seen


def ablation_named(claim: Claim, frames: Frames) -> Counted:
    """Whether an ablation of the name `given.method` is in a table."""
    methods = ask(claim.query)["method"].unique().sort().to_list()
    return claim.given["method"] in methods, f"the ablations are {', '.join(methods)}"


def gains_within(claim: Claim, frames: Frames) -> Counted:
    """Whether the gains of a backbone lie in `given.between`: domain to lowest and highest."""
    rows = ask(claim.query).filter(pl.col("backbone") == claim.given["backbone"])
    gains = dict(rows.select("domain", "gain").iter_rows())
    holds = all(
        low - 1e-9 <= gains[domain] <= high + 1e-9
        for domain, (low, high) in claim.given["between"].items()
    )
    seen = ", ".join(f"{gain:+.1f} points {domain}" for domain, gain in sorted(gains.items()))
    return holds, f"{claim.given['backbone']} gains {seen}"


def one_domain_tested(claim: Claim, frames: Frames) -> Counted:
    """Whether the paper tests nothing but `given.domain`."""
    rows = ask(claim.query)
    seen = "; ".join(
        f"{row['domain']}: {row['benchmarks']} benchmarks ({row['sources']})"
        for row in rows.iter_rows(named=True)
    )
    return rows["domain"].to_list() == [claim.given["domain"]], seen


def bucket_count(claim: Claim, frames: Frames) -> Counted:
    """Whether the buffer has `given.buckets` buckets, filled or not, by the log."""
    rows = _arm_rows(claim, frames)
    there, filled = (
        part["bucket"].unique().sort().to_list()
        for part in (rows, rows.filter(pl.col("questions") > 0))
    )
    return len(there) == claim.given["buckets"], (
        f"there are {len(there)} buckets, those of {', '.join(map(str, there))} right; "
        f"{len(filled)} of them held questions"
    )


def stores_wrong_answers(claim: Claim, frames: Frames) -> Counted:
    """Whether wrong answers enter the buffer, where there were any to store."""
    rows = _arm_rows(claim, frames)
    stored, wrong, sampled = (
        int(rows[name].sum()) for name in ("stored", "stored_wrong", "sampled_wrong")
    )
    if not stored or not sampled:
        raise NotTestableError("nothing was stored, or no wrong answer was sampled")
    return wrong > 0, (
        f"of {stored} stored trajectories {wrong} are wrong; {sampled} wrong ones were sampled"
    )


def weight_formula(claim: Claim, frames: Frames) -> Counted:
    """Whether the weights of replayed tokens are `w + beta w`, and if not, `w / (w + beta)`."""
    rows = _arm_rows(claim, frames).drop_nulls("from_sum")
    if rows.is_empty():
        raise NotTestableError("no replayed trajectory had a gradient")
    total, shaped = max(rows["from_sum"]), max(rows["from_ratio"])
    return total <= TOLERANCE, (
        f"over {rows['trajectories'].sum()} replayed trajectories the weights lie up to "
        f"{total:.3g} from w + beta w, and up to {shaped:.3g} from w / (w + beta)"
    )


COUNTS: dict[str, Callable[[Claim, Frames], Counted]] = {
    "costs_fall": costs_fall,
    "ablation_named": ablation_named,
    "gains_within": gains_within,
    "one_domain_tested": one_domain_tested,
    "bucket_count": bucket_count,
    "stores_wrong_answers": stores_wrong_answers,
    "weight_formula": weight_formula,
}


def _arm_rows(claim: Claim, frames: Frames) -> pl.DataFrame:
    rows = answer_of(claim, frames).filter(pl.col("arm") == claim.arms[0])
    if rows.is_empty():
        raise NotTestableError(f"the study has no rows of arm `{claim.arms[0]}`")
    return rows
