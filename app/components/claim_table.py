"""The ledger as a table: what is claimed, the paper's figure beside ours, and the verdict."""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from analysis.claims import COUNTS, Claim, Verdict, VerdictWord, show_interval, show_paper
from analysis.claims import show_power as power

Judged = tuple[Claim, Verdict | None]
Kind = Literal["tested", "counted"]
Order = Literal["ledger", "verdict"]
KindChoice = Literal["all", Kind]
VerdictChoice = Literal["all", VerdictWord]

MARKS: dict[VerdictWord, str] = {
    "supported": "✓",
    "contradicted": "✗",
    "inconclusive (underpowered)": "?",
    "not testable here": "–",
}
# What is decided comes first, and of that what speaks against a claim.
FIRST: tuple[VerdictWord, ...] = (
    "contradicted",
    "supported",
    "inconclusive (underpowered)",
    "not testable here",
)


def kind_of(claim: Claim) -> Kind:
    """Whether it is tested statistically, or decided by counting."""
    return "counted" if claim.test in COUNTS else "tested"


def word(verdict: Verdict | None) -> str:
    """The verdict with its mark, `✓ supported`; empty where nothing was judged."""
    return "" if verdict is None else f"{MARKS[verdict.verdict]} {verdict.verdict}"


def listed(
    ledger: Sequence[Judged], verdict: VerdictChoice, kind: KindChoice, order: Order
) -> list[Judged]:
    """The claims of a kind with a verdict, in ledger order or by verdict."""
    found = [
        (claim, judged)
        for claim, judged in ledger
        if (verdict == "all" or (judged is not None and judged.verdict == verdict))
        and kind in ("all", kind_of(claim))
    ]
    if order == "verdict":
        found.sort(key=lambda each: FIRST.index(each[1].verdict) if each[1] else len(FIRST))
    return found


def chosen_claim(ids: Sequence[str], named: str | None) -> str | None:
    """The claim of that name, else the first of its parts (`C4` is `C4a`); None if there is none.

    Parts are named by a letter behind the name of their claim.
    """
    if named is None or named in ids:
        return named
    parts = [each for each in ids if each[:-1] == named and each[-1].isalpha()]
    return parts[0] if parts else None


def claim_table(claims: Sequence[Judged]) -> pl.DataFrame:
    """One row a claim; without verdicts only what is claimed and the paper's figure."""
    table = pl.DataFrame(
        [
            {
                "id": claim.id,
                "verdict": word(verdict),
                "what is claimed": claim.short,
                "the paper": show_paper(claim),
                "this study": show_interval(verdict, claim.unit) if verdict else "",
                "from": verdict.sample if verdict else "",
                "power": power(verdict) if verdict else "",
                "where in the paper": claim.source,
            }
            for claim, verdict in claims
        ]
    )
    if any(verdict for _, verdict in claims) or table.is_empty():
        return table
    return table.drop("verdict", "this study", "from", "power")
