"""Event study and dose-response: what a marked replay does to later answers to its question.

Who is replayed marked had marked answers before: that alone makes his next ones marked. But of the
stored answers of a question an arm replays one by its entropy, and among replays whose question
had the same share of marked answers before, in the same run, window and bucket, whether the chosen
one is marked says little about the question: a draw near to an experiment. So the `luck` of a
replay is how many of the replayed were marked, less what its stratum lets expect (the stratum's
mean, and a line in the share before). Strata hold difficulty (bucket), drift (run and window),
survivorship (only right answers are stored) and the question's own share; a replay that could not
have gone the other way has luck 0 and no say.
"""

from collections.abc import Sequence

import polars as pl

from analysis.snowball.cells import NotHereError, by_cell, ratios, seeds_of
from analysis.statistics import Bootstrap, bootstrap_mean

WINDOW = 30  # steps of a stratum
CLASSES = 10  # of the marked share before
DELAYS = (0, 1, 2, 3)  # visits after a replay, of a figure

_DOSE = pl.col("replayed_marked")
_QUESTION = ("run", "question")


def effect(visits: pl.DataFrame, replicates: int) -> Bootstrap:
    """Event study, a difference in differences: how much more the marked share changes from the
    visit of a question's first replay to the next one if that replay was marked.

    visits: rows of query `snowball_visits`. The answers of the replay's own visit were sampled
    when it was chosen already and before it was trained on. Raises NotHereError.
    """
    rows = _first_replays(visits, 1).filter(
        (pl.col("right_fresh") > 0) & (pl.col("right_then") > 0)
    )
    before, after = pl.col("right_fresh"), pl.col("right_then")
    change = pl.col("marked_then") / after - pl.col("marked") / before
    return _matched(rows, change, before * after / (before + after), replicates)


def gap(visits: pl.DataFrame, delay: int, replicates: int) -> Bootstrap:
    """Marked share so many visits after a first replay, marked against unmarked ones; at 0, the
    replay's own visit, the placebo: no replay can have changed it. Raises NotHereError."""
    rows, right = _first_replays(visits, delay), pl.col("right_then")
    return _matched(rows.filter(right > 0), pl.col("marked_then") / right, right, replicates)


def dose_response(visits: pl.DataFrame, replicates: int) -> Bootstrap:
    """How much higher the marked share of all later answers is, for each marked replay so far.

    The luck of all replays of a question so far stands for their dose (an instrument): a dose
    hangs on the answers of the past, its luck does not. Shares and doses are less their mean in
    the run and window, so that a drift of all falls away. Raises NotHereError.
    """
    rows = _with_luck(visits, pl.lit(1.0)).with_columns(
        luck=_before(pl.col("luck").fill_null(0)), dose=_before(_DOSE)
    )
    weight = pl.col("right_fresh")
    rows = rows.filter(weight > 0).drop_nulls("luck")
    window = ("run", _window())
    rows = rows.with_columns(
        share=_inside(pl.col("marked") / weight, weight, window),
        dose=_inside(pl.col("dose"), weight, window),
    )
    luck = weight * pl.col("luck")
    return _bootstrap(by_cell(rows, luck * pl.col("share"), luck * pl.col("dose")), replicates)


def doses(visits: pl.DataFrame, most: int = 5) -> pl.DataFrame:
    """Observed marked share of right answers by dose; `most` stands for all above. No effect.

    Columns dose, right (answers), share.
    """
    dose = pl.min_horizontal(_before(_DOSE), most)
    return (
        visits.with_columns(dose=dose)
        .filter(pl.col("right_fresh") > 0)
        .drop_nulls("dose")
        .group_by("dose")
        .agg(right=pl.col("right_fresh").sum(), share=pl.col("marked").sum())
        .with_columns(share=pl.col("share") / pl.col("right"))
        .sort("dose")
    )


def _first_replays(visits: pl.DataFrame, delay: int) -> pl.DataFrame:
    """The first visit of every question, with right_then and marked_then `delay` visits later.

    Later replays are left out: they follow what the ones before them did.
    """
    then = pl.col("right_fresh", "marked").shift(-delay).over(_QUESTION, order_by="visit")
    rows = visits.with_columns(
        then.name.map(lambda name: "right_then" if name == "right_fresh" else "marked_then")
    )
    return rows.filter(pl.col("visit") == pl.col("visit").min().over(_QUESTION))


def _before(value: pl.Expr) -> pl.Expr:
    """The sum over the visits of a question before this one; null at the first."""
    return value.cum_sum().shift(1).over(_QUESTION, order_by="visit")


def _window() -> pl.Expr:
    return ((pl.col("step") - 1) // WINDOW).alias("window")


def _inside(value: pl.Expr, weight: pl.Expr, groups: Sequence[str | pl.Expr]) -> pl.Expr:
    """A value less its weighted mean in its group."""
    return value - ((value * weight).sum() / weight.sum()).over(*groups)


def _with_luck(visits: pl.DataFrame, weight: pl.Expr) -> pl.DataFrame:
    """The visits with column `luck`; null where nothing was replayed or nothing known before."""
    share = pl.col("earlier_marked") / pl.col("earlier_right")
    kind = (CLASSES * share).floor().clip(upper_bound=CLASSES - 1).alias("kind")
    there = (pl.col("replayed") > 0) & (pl.col("earlier_right") > 0)
    counted = pl.when(there).then(weight)
    stratum = ("run", _window(), "bucket", "replayed", kind)
    rows = visits.with_columns(
        luck=_inside(_DOSE, counted, stratum), above=_inside(share, counted, stratum)
    )
    above = pl.col("above")
    line = ((counted * above * pl.col("luck")).sum() / (counted * above**2).sum()).over("run")
    luck = pl.col("luck") - line.fill_nan(0) * above  # NaN: all shares of a stratum are equal
    return rows.with_columns(luck=pl.when(there).then(luck))


def _matched(rows: pl.DataFrame, value: pl.Expr, weight: pl.Expr, replicates: int) -> Bootstrap:
    """Effect of a marked replay on a value, by weighted least squares inside strata."""
    luck = weight * pl.col("luck")
    known = _with_luck(rows, weight).drop_nulls("luck")
    return _bootstrap(by_cell(known, luck * value, luck * _DOSE), replicates)


def _bootstrap(cells: pl.DataFrame, replicates: int) -> Bootstrap:
    seeds = sorted(seeds_of(cells))
    if not seeds:
        raise NotHereError("no two replays that are alike otherwise were marked and unmarked")
    return bootstrap_mean(ratios(cells, seeds, sorted(set(cells["question"]))), replicates)
