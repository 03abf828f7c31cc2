"""Entropy of right answers with valid and with flawed chain (paper section 3.2, C4 and C5)."""

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import REFERENCE, arm_order
from analysis.behind import Behind
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations import evidence
from analysis.observations.clustered import clustered_ratios
from analysis.observations.evidence import DIFFICULTIES, said, said_change
from analysis.observations.observation import Observation
from analysis.separation import (
    AT_K,
    AT_LENGTH,
    judged,
    point_separation,
    separation,
    share_with_partner,
    with_bands,
)
from analysis.theme import FLAWED, GREEN, INK, ORANGE, VALID

QUERY = "entropy_validity_rows"


def _checked(frames: Frames) -> pl.DataFrame:
    """The rows of all arms whose chain was checked, with `flawed` and the band of their length."""
    rows = frames[QUERY].drop_nulls("chain_valid")
    return with_bands(rows).with_columns(flawed=~pl.col("chain_valid"))


def _of_one_arm(checked: pl.DataFrame) -> tuple[str, pl.DataFrame] | str:
    """The arm that the paper looks at and its rows; or why there is nothing to compare."""
    if checked.is_empty():
        return (
            "no right answer of a group with signal has an entropy and a chain that was checked, "
            f"exactly or by a judge (parameter `judge` of `{QUERY}` says which)"
        )
    both = checked.group_by("arm").agg(pl.col("flawed").n_unique()).filter(pl.col("flawed") > 1)
    arm = evidence.arm_of(both["arm"], REFERENCE)
    if arm is None:
        return f"no right answer has a {'valid' if checked['flawed'].all() else 'flawed'} chain"
    return arm, checked.filter(pl.col("arm") == arm)


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    found = _of_one_arm(_checked(frames))
    if isinstance(found, str):
        return say_empty(start(facts, ""), found)
    arm, rows = found
    plot = make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.3, 0.7],
        horizontal_spacing=0.1,
        subplot_titles=("mean entropy", "AUROC for a flawed chain"),
    )
    _draw_means(plot, arm, rows)
    cells = _cells(rows)
    for shift, (name, score, within, colour, symbol) in enumerate(
        (
            ("entropy", "mean_entropy", AT_K, INK, "circle"),
            ("NLL (log of perplexity)", "nll", AT_K, ORANGE, "square"),
            ("entropy at equal length", "mean_entropy", AT_LENGTH, GREEN, "diamond"),
        )
    ):
        made = [
            (place + 0.22 * (shift - 1), separation(part, score, "flawed", within))
            for place, (_, part) in enumerate(cells)
        ]
        of = [_behind(arm, part) for _, part in cells]
        evidence.add_estimates(plot, name, made, colour, symbol, col=2, clip=(0, 1), behind=of)
    evidence.add_reference(plot, 0.5, 1, 2)
    labels = [label for label, _ in cells]
    plot.update_xaxes(tickvals=list(range(len(labels))), ticktext=labels, col=2)
    plot.update_yaxes(title_text="nat/token", rangemode="tozero", col=1)
    return evidence.subtitle(plot, facts, f"{arm}; {evidence.bar_meaning(rows)}")


def _draw_means(plot: go.Figure, arm: str, rows: pl.DataFrame) -> None:
    made = clustered_ratios(
        rows.with_columns(answers=1), ("difficulty", "flawed"), "mean_entropy", "answers"
    )
    for flawed, name, colour, symbol, shift in (
        (False, "valid chain", VALID, "triangle-up", -0.1),
        (True, "flawed chain", FLAWED, "x", 0.1),
    ):
        at = [
            (place + shift, made.get((difficulty, flawed)))
            for place, difficulty in enumerate(DIFFICULTIES)
        ]
        of = [_behind(arm, rows, each, flawed) for each in DIFFICULTIES]
        evidence.add_estimates(plot, name, at, colour, symbol, behind=of)
    plot.update_xaxes(tickvals=[0, 1, 2], ticktext=list(DIFFICULTIES), range=[-0.5, 2.5], col=1)


def _behind(
    arm: str, rows: pl.DataFrame, difficulty: str | None = None, flawed: bool | None = None
) -> Behind:
    """A chain that only a judge saw is not in the log's own column: then both kinds."""
    exact = (rows["judge"] == "exact").all()
    valid = None if flawed is None or not exact else not flawed
    return evidence.right_fresh(arm, rows, difficulty, chain_valid=valid)


def _cells(rows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Every k, the three difficulties of the paper, and all, each with its rows."""
    by_k = [(f"k={k}", rows.filter(pl.col("bucket") == k)) for k in rows["bucket"].unique().sort()]
    by_difficulty = [(each, rows.filter(pl.col("difficulty") == each)) for each in DIFFICULTIES]
    return [*by_k, *by_difficulty, ("all", rows)]


def lines(frames: Frames) -> list[str]:
    checked = _checked(frames)
    found = _of_one_arm(checked)
    if isinstance(found, str):
        return [f"Not here: {found}."]
    arm, rows = found
    *parts, (_, every) = _cells(rows)
    by_part = "; ".join(
        f"{label} {said(separation(part, 'mean_entropy', 'flawed', AT_K))}" for label, part in parts
    )
    return [
        f"{arm}: {rows.height} right answers of groups with signal ({evidence.sample(rows)}), "
        f"{rows['flawed'].sum()} of them flawed {judged(rows)}. Mean entropy in "
        f"nat/token, valid / flawed: {_means(rows)}.",
        "AUROC of entropy for a flawed chain, over pairs of one seed, k and window of steps (above "
        "0.5: flawed ones have the higher entropy): "
        f"{said(separation(every, 'mean_entropy', 'flawed', AT_K))}; {by_part}.",
        _against_nll(rows),
        _at_equal_length(rows),
        *_other_arms(checked, arm),
        evidence.how_sure(rows),
    ]


def _means(rows: pl.DataFrame) -> str:
    means = rows.group_by("difficulty", "flawed").agg(pl.col("mean_entropy").mean())
    known = {(difficulty, flawed): f"{mean:.3f}" for difficulty, flawed, mean in means.iter_rows()}
    return ", ".join(
        f"{each} {known.get((each, False), 'none')} / {known.get((each, True), 'none')}"
        for each in DIFFICULTIES
    )


def _against_nll(rows: pl.DataFrame) -> str:
    rows = rows.drop_nulls("nll")  # of both scores the same pairs
    nll = separation(rows, "nll", "flawed", AT_K)
    entropy = separation(rows, "mean_entropy", "flawed", AT_K)
    if nll is None or entropy is None:
        return "Not here: entropy against perplexity, for no log-probabilities were logged."
    return (
        f"Against perplexity: its logarithm, NLL, reaches {said(nll)}; entropy minus NLL, paired: "
        f"{said_change(entropy.minus(nll))}."
    )


def _at_equal_length(rows: pl.DataFrame) -> str:
    made = separation(rows, "mean_entropy", "flawed", AT_LENGTH)
    if made is None:
        return "Not here: entropy at equal length, for no two such answers are equally long."
    by_level = (*AT_LENGTH, "level")
    return (
        f"Length alone reaches {said(separation(rows, 'length', 'flawed', AT_K))} (above 0.5: "
        f"flawed ones are longer). Between answers of equal length, to 5 %, entropy reaches "
        f"{said(made)}, over the {_with_partner(rows, AT_LENGTH)} of flawed ones that have such a "
        f"partner; where the question's level is equal as well, "
        f"{said(separation(rows, 'mean_entropy', 'flawed', by_level))}, over "
        f"{_with_partner(rows, by_level)}."
    )


def _with_partner(rows: pl.DataFrame, within: tuple[str, ...]) -> str:
    """Share of flawed answers that have a valid one in their seed and stratum."""
    return f"{100 * share_with_partner(rows, 'flawed', within):.0f} %"


def _other_arms(checked: pl.DataFrame, arm: str) -> list[str]:
    found = {}
    for other in arm_order(checked["arm"].to_list()):
        rows = checked.filter(pl.col("arm") == other)
        value = point_separation(rows, "mean_entropy", "flawed", AT_K)
        if other != arm and value is not None:
            found[other] = value
    if not found:
        return []
    return [f"The same AUROC in other arms, without interval: {evidence.spread(found, 3)}."]


ENTROPY_VALIDITY = Observation(
    name="entropy_validity",
    title="Does entropy tell flawed from valid chains among right answers?",
    reading="Above the dashed line flawed chains have the higher entropy, as the paper says. Pairs "
    "are of one seed, k and window of steps; the means pool all steps. Green compares only answers "
    "that are equally long: what falls to the line there was an effect of length. All of it is "
    "observed, so it cannot say that entropy makes flaws.",
    queries=(QUERY,),
    draw=draw,
    lines=lines,
)
