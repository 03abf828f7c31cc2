"""Does a score rank one kind of right answers above another? For claims and observations alike.

Rows are those of the query `entropy_validity_rows`. Only pairs of one seed and one stratum count,
so that neither training time nor difficulty can pass for separation. A seed without such a pair
says nothing: it is left out, and every estimate is the mean over the others.
"""

from collections.abc import Sequence
from math import log

import numpy as np
import polars as pl

from analysis.statistics import Bootstrap, auroc, bootstrap_auroc

AT_A_TIME = ("window_start",)
AT_K = ("bucket", "window_start")
AT_LENGTH = (*AT_K, "band")
SAME_LENGTH = 1.05  # lengths in one band differ by less than this factor; below 20, not at all
DRAWS = 1_000  # standard errors then err by 2 %


def with_bands(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the band of their length, a stratum of `AT_LENGTH`."""
    return rows.with_columns(band=(pl.col("length").log() / log(SAME_LENGTH)).floor())


def with_partner(
    rows: pl.DataFrame, score: str, positive: str, within: Sequence[str]
) -> pl.DataFrame:
    """The rows that have a partner: another of their seed and stratum on the other side.

    The rest adds nothing to an AUROC inside strata.
    """
    both = pl.col(positive).any() & (~pl.col(positive)).any()
    known = rows.drop_nulls([score, positive, *within])
    known = known.filter(pl.col(score).cast(pl.Float64).is_not_nan())
    return known.filter(both.over("seed", *within))


def share_with_partner(rows: pl.DataFrame, positive: str, within: Sequence[str]) -> float:
    """Share of the positive rows that have a partner; `positive` holds somewhere."""
    paired = with_partner(rows, "mean_entropy", positive, within)
    return int(paired[positive].sum()) / int(rows[positive].sum())


def point_separation(
    rows: pl.DataFrame, score: str, positive: str, within: Sequence[str]
) -> float | None:
    """AUROC of a column for another that is true or false: the mean over seeds; None: no pair."""
    parts = with_partner(rows, score, positive, within).partition_by("seed", maintain_order=True)
    found = [auroc(part[score], part[positive], _strata(part, within)) for part in parts]
    return float(np.mean(found)) if found else None


def separation(
    rows: pl.DataFrame, score: str, positive: str, within: Sequence[str]
) -> Bootstrap | None:
    """The same with draws of seeds and questions; None: no pair, or too few questions to draw.

    Two scores without nulls get the same draws: they pair.
    """
    rows = with_partner(rows, score, positive, within)
    if rows.is_empty():
        return None
    try:
        return bootstrap_auroc(
            rows[score].to_numpy(),
            rows[positive].to_numpy(),
            questions=rows["question"].to_numpy(),
            seeds=rows["seed"].fill_null(0).to_numpy(),
            strata=_strata(rows, within),
            replicates=DRAWS,
        )
    except ValueError:  # too few questions to draw from
        return None


def judged(rows: pl.DataFrame) -> str:
    """Who checked the chains of these rows."""
    names = rows["judge"].drop_nulls().unique().sort()
    return " and ".join(
        "by the exact check" if name == "exact" else f"by judge `{name}`" for name in names
    )


def _strata(rows: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    return rows.select(names).hash_rows().to_numpy()
