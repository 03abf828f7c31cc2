"""When replay began where it waits for a threshold, and the test of that delay."""

import polars as pl

from analysis.claims.accuracy import accuracy_difference
from analysis.claims.finding import Finding, Frames, NotTestableError, frame_of, shared_seeds
from analysis.claims.ledger import Claim

QUERY = "run_updates"
_NO_THRESHOLD = ("at_once", "never")


def start_notes(claim: Claim, frames: Frames) -> list[str]:
    """For each arm of the claim that waits for a threshold, when its replay began."""
    if QUERY not in claim.beside or QUERY not in frames:
        return []
    rows = frames[QUERY].filter(~pl.col("replay_rule").is_in(_NO_THRESHOLD)).sort("seed")
    return [
        f"{arm}: replay {_begun(part)}."
        for arm in claim.arms
        if (part := rows.filter(pl.col("arm") == arm)).height
    ]


def delayed_start_difference(claim: Claim, frames: Frames) -> Finding:
    """Accuracy of the delayed arm minus the other, if the delay lasts `given.least` steps."""
    finding = accuracy_difference(claim, frames)
    rows = frame_of(QUERY, frames).filter(
        pl.col("arm") == claim.arms[0],
        pl.col("seed").is_in(shared_seeds(claim, frame_of(claim.query, frames))),
    )
    begun = rows["replay_from"].drop_nulls()
    if begun.is_empty():
        raise NotTestableError(f"replay of {claim.arms[0]} started in no seed")
    if begun.len() == rows.height and (begun <= int(claim.given["least"])).all():
        raise NotTestableError(
            f"replay of {claim.arms[0]} {_begun(rows.sort('seed'))}, so the delay does nothing"
        )
    return finding


def _begun(rows: pl.DataFrame) -> str:
    """`started at steps 2, 5; never in seeds 3`, by seed."""
    begun = rows.drop_nulls("replay_from")["replay_from"].to_list()
    never = rows.filter(pl.col("replay_from").is_null())["seed"].to_list()
    said = []
    if begun:
        alike = len({*begun}) == 1
        shown = f"step {begun[0]}" if alike else f"steps {', '.join(map(str, begun))}"
        said.append(f"started at {shown}{'' if never or not alike else ' in every seed'}")
    if never:
        said.append(f"never started in seeds {', '.join(map(str, never))}")
    return "; ".join(said)
