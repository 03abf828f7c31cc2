"""How do the buckets fill and empty, and the retired grow? (paper Figures 5 and 6, claim C18)"""

from html import escape

import plotly.graph_objects as go
import polars as pl

from analysis.behind import UNSEEN, Behind, rollouts
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations.clustered import first_arms, further
from analysis.observations.marks import Bar, add_bars, arm_panels
from analysis.observations.observation import Observation
from analysis.theme import INK, MUTED, PAPER, VALID, Look, faded

COLUMNS = 3
MOST = 100  # steps of a panel
PLACES = (("early", 0.1), ("halfway", 0.5), ("at the end", 1.0))  # parts of the training
DOT = Look(INK, "circle", "solid")
EMPTY = 0.005  # share of the questions: a bucket that holds less is called empty


def _with_buffer(occupancy: pl.DataFrame) -> pl.DataFrame:
    """Shares of the training questions, arms with a buffer only."""
    rows = occupancy.filter(pl.col("train_questions") > 0).with_columns(
        share=pl.col("questions") / pl.col("train_questions"),
        retired=pl.col("retired_questions") / pl.col("train_questions"),
    )
    return rows.filter(pl.col("questions").sum().over("arm") > 0)


def _means(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean over seeds of the share by step and bucket; the retired as the bucket null."""
    retired = rows.unique(["run", "step"]).with_columns(
        share=pl.col("retired"), bucket=pl.lit(None, pl.Int64)
    )
    return (
        pl.concat([rows, retired])
        .group_by("step", "bucket")
        .agg(pl.col("share").mean())
        .sort("bucket", "step", nulls_last=True)
    )


def _solved(rows: pl.DataFrame) -> pl.DataFrame:
    """Share of questions in the buffer or retired, of each seed and step."""
    return (
        rows.group_by("seed", "run", "step")
        .agg(buffer=pl.col("share").sum(), retired=pl.col("retired").first())
        .with_columns(solved=pl.col("buffer") + pl.col("retired"))
        .sort("seed", "run", "step")
    )


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Questions in every bucket and retired, stacked over training, a panel an arm."""
    rows = _with_buffer(frames["bucket_occupancy"])
    meaning = "areas: mean over seeds; bars at the end: least to greatest seed of their sum"
    arms = first_arms(rows["arm"].to_list())
    if not arms:
        return say_empty(start(facts, meaning), "no arm of this study has a buffer")
    columns = min(COLUMNS, len(arms))
    height = -(-len(arms) // columns)
    plot = arm_panels(arms, COLUMNS)
    most = max(rows["bucket"].to_list())
    named: set[str] = set()
    for place, arm in enumerate(arms):
        at = {"row": place // columns + 1, "col": place % columns + 1}
        mine = rows.filter(pl.col("arm") == arm)
        for (bucket,), part in _means(_thinned(mine)).group_by("bucket", maintain_order=True):
            name = "retired" if bucket is None else f"k = {bucket}"
            colour = (
                faded(MUTED, 0.3)
                if bucket is None
                else faded(VALID, 1 - 0.85 * (bucket - 1) / most)
            )
            plot.add_scatter(
                x=part["step"].to_list(),
                y=part["share"].to_list(),
                name=name,
                legendgroup=name,
                showlegend=name not in named,
                mode="lines+markers",
                marker=UNSEEN,
                stackgroup=arm,
                fillcolor=colour,
                line={"width": 0.5, "color": PAPER},
                customdata=[
                    _reached(arm, (bucket or most + 1) if share else None, step)
                    for step, share in part.select("step", "share").iter_rows()
                ],
                hovertemplate=f"%{{y:.1%}} {name}<extra>{escape(arm)}</extra>",
                **at,
            )
            named.add(name)
        end = [_range_of(arm, _solved(mine))]
        add_bars(plot, "buffer and retired", end, DOT, at["row"], at["col"], form=".1%")
    plot.update_xaxes(title_text="training step", row=height)
    plot.update_yaxes(tickformat=".0%", range=[0, 1])
    plot.update_yaxes(title_text="training questions", col=1)
    plot.update_layout(
        title_subtitle_text=facts.subtitle(meaning),
        margin_t=120,
        height=250 + 180 * height,
        legend_y=-0.32 / height,
        legend_traceorder="normal",
    )
    return plot


def _thinned(rows: pl.DataFrame) -> pl.DataFrame:
    """At most `MOST` steps of an arm, the last among them: a panel has no more pixels."""
    last = rows["step"].max()
    every = -(-rows["step"].n_unique() // MOST)
    return rows.filter((last - pl.col("step")) % every == 0)


def _reached(arm: str, bucket: int | None, step: int) -> Behind:
    """The groups that ended up in a bucket so far, newest first; in any if it is None."""
    buckets = None if bucket is None else [bucket]
    return rollouts(arm, steps=(1, step), bucket=buckets, descending=True)


def _range_of(arm: str, solved: pl.DataFrame) -> Bar:
    """Over the seeds, how many questions were right at least once by the last step."""
    last = solved.filter(pl.col("step") == pl.col("step").max())
    shares = last["solved"].to_numpy()
    step = last["step"][0]
    ends = shares.mean(), shares.min(), shares.max()
    return Bar(step, *ends, behind=_reached(arm, None, step))


def lines(frames: Frames) -> list[str]:
    """How full buffer and buckets are, which empty, and where visits lead, by arm."""
    rows = _with_buffer(frames["bucket_occupancy"])
    moves = frames["bucket_transitions"]
    arms = first_arms(rows["arm"].to_list())
    if not arms:
        return ["Not here: no arm of this study has a buffer.", *_all_moves(moves)]
    said = []
    for arm in arms:
        mine = rows.filter(pl.col("arm") == arm)
        said += [_filled(arm, _solved(mine)), _occupied(arm, mine)]
    return said + _all_moves(moves) + further(rows["arm"].to_list(), "bucket_occupancy")


def _filled(arm: str, solved: pl.DataFrame) -> str:
    last = solved.group_by("run").last()
    text = (
        f"{arm}: at the end {_range(last['solved'])} of the training questions were in the "
        f"buffer or retired, so right at least once (buffer {_range(last['buffer'])}, retired "
        f"{_range(last['retired'])}; {_seeds(last.height)})"
    )
    # Before replay starts the buffer is empty, and whoever has retired outnumbers it.
    filled = (pl.col("buffer") > 0).cum_max().over("run", order_by="step")
    leads = solved.filter(filled, pl.col("retired") > pl.col("buffer")).group_by("run")
    steps = leads.agg(pl.col("step").min())["step"].to_list()
    if not steps:
        return f"{text}; the retired never outnumber a buffer that has held any."
    which = "" if len(steps) == last.height else f" in {len(steps)} of {last.height} seeds"
    first = str(min(steps)) if min(steps) == max(steps) else f"{min(steps)} to {max(steps)}"
    return f"{text}; the retired first outnumber a buffer that has held any at step {first}{which}."


def _range(values: pl.Series) -> str:
    """Mean, and the least and greatest of several."""
    shares = values.to_numpy()
    mean = f"{shares.mean():.1%}"
    return mean if len(shares) == 1 else f"{mean} [{shares.min():.1%} .. {shares.max():.1%}]"


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"mean and range of {count} seeds"


def _occupied(arm: str, rows: pl.DataFrame) -> str:
    """The share of every bucket, early, halfway and at the end; and those that emptied."""
    at = {}
    for name, part in PLACES:
        place = pl.col("step") >= part * pl.col("step").max().over("run")
        first = rows.filter(place).filter(pl.col("step") == pl.col("step").min().over("run"))
        shares = first.group_by("bucket").agg(pl.col("share").mean()).sort("bucket")
        at[name] = dict(shares.iter_rows())
    texts = [
        f"{name} {', '.join(f'{share:.1%}' for share in shares.values())}"
        for name, shares in at.items()
    ]
    peak = rows.group_by("bucket", "step").agg(pl.col("share").mean())
    once = dict(peak.group_by("bucket").agg(pl.col("share").max()).iter_rows())
    emptied = [
        f"k = {bucket}"
        for bucket, share in at["at the end"].items()
        if share < EMPTY <= once[bucket]
    ]
    ending = f"; emptied (below {EMPTY:.1%}): {', '.join(emptied)}" if emptied else "; none emptied"
    buckets = f"k = 1 to {max(rows['bucket'].to_list())}"
    return f"{arm}, questions in the buckets {buckets}: {'; '.join(texts)}{ending}."


def _all_moves(moves: pl.DataFrame) -> list[str]:
    said = [
        _moved(arm, moves.filter(pl.col("arm") == arm))
        for arm in first_arms(moves["arm"].to_list())
    ]
    return said or ["Not here: no question was visited twice, so none moved."]


def _moved(arm: str, moves: pl.DataFrame) -> str:
    """Where visits led, from the inside, from failed and from solved."""
    before, after, size = pl.col("before"), pl.col("after"), pl.col("group_size")

    def share(of: pl.Expr, those: pl.Expr) -> str:
        chosen = moves.filter(those)
        total = int(chosen["transitions"].sum())
        return f"{int(chosen.filter(of)['transitions'].sum()) / total:.0%}" if total else "none"

    inside = (before > 0) & (before < size)
    return (
        f"{arm}, from one visit to the next: of questions in between, up "
        f"{share(after > before, inside)}, down {share(after < before, inside)}; of the failed, "
        f"some right {share(after > 0, before == 0)}; of the solved, solved again "
        f"{share(after == size, before == size)}."
    )


BUCKET_DYNAMICS = Observation(
    name="bucket_dynamics",
    title="How do the buckets fill and empty, and the retired grow?",
    reading=(
        "A bucket holds the questions of which k answers were right at their last visit; retired "
        "ones had all right. A group of few answers moves by luck as well: a question that neither "
        "gains nor loses still changes its bucket."
    ),
    queries=("bucket_occupancy", "bucket_transitions"),
    draw=draw,
    lines=lines,
)
