"""What other metrics would have replayed than lowest mean entropy (claim C9, LUFFY#57)."""

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.behind import rollouts
from analysis.comparison import CURVE_REPLICATES, benchmarks_by_domain, mean_of, paired
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations import evidence
from analysis.observations.clustered import clustered_ratios, drawn_over
from analysis.observations.evidence import said_change
from analysis.observations.marks import percent, points
from analysis.observations.observation import Observation
from analysis.shown_tests import ShownTest, shown_tests
from analysis.statistics import REPLICATES, Bootstrap
from analysis.theme import BLUE, GREEN, ORANGE, PINK

PICKS, AUDIT, ACCURACY = "selection_picks", "selection_audit", "arm_accuracy"
CORRECT, RANDOM = "mean_entropy", "random"
METRICS = {
    "released": "the released code's metric",
    "summed_entropy": "summed entropy",
    "length": "the shortest",
    "nll": "NLL",
    "birth_entropy": "entropy at birth",
    RANDOM: "a random one",
}
OF_METHOD = "exgrpo"
SELECTORS = {
    "released_entropy": "the released code's metric",
    "shortest": "the shortest",
    "lowest_nll": "lowest NLL",
    "no_trajectory_selection": "a random one",
    "highest_entropy": "highest entropy",
}
NO_DRAWS = "no question with more than one stored trajectory was visited for replay"
ByMetric = dict[str, Bootstrap]
ByTest = dict[tuple[str, ShownTest], Bootstrap]


def _of_one_arm(frames: Frames) -> pl.DataFrame:
    """The picks of the arm looked at: the method itself where it is there."""
    picks = frames[PICKS]
    arm = evidence.arm_of(picks["arm"], OF_METHOD)
    return picks.clear() if arm is None else picks.filter(pl.col("arm") == arm)


def _agreement(picks: pl.DataFrame) -> ByMetric:
    """How often a metric takes the one of lowest mean entropy."""
    made = clustered_ratios(picks, ("metric",), "same", "draws")
    return {metric: made[metric,] for metric in METRICS if (metric,) in made}


def _changes(picks: pl.DataFrame, total: str, count: str = "draws") -> ByMetric:
    """What a metric's pick has of a quantity minus what that of lowest mean entropy has, paired."""
    made = clustered_ratios(picks, ("metric",), total, count)
    return {metric: made[metric,].minus(made[CORRECT,]) for metric in METRICS if (metric,) in made}


def _accuracy(frames: Frames, replicates: int = REPLICATES) -> ByTest:
    """Accuracy of the method minus that of an arm that selects otherwise, by arm and test."""
    accuracy = frames[ACCURACY]
    made = {}
    for test in shown_tests(benchmarks_by_domain(accuracy)):
        method = test.table(accuracy, OF_METHOD)
        for arm in SELECTORS:
            pairs = paired(method, test.table(accuracy, arm))
            if found := mean_of(pairs, replicates, test.benchmarks):
                made[arm, test] = found
    return made


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    picks, accuracy = _of_one_arm(frames), _accuracy(frames, CURVE_REPLICATES)
    if picks.is_empty() and not accuracy:
        return say_empty(start(facts, ""), NO_DRAWS)
    plot = make_subplots(
        rows=2,
        cols=4,
        specs=[[{}] * 4, [{"colspan": 4}, None, None, None]],
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.17,
        row_heights=[0.58, 0.42],
        subplot_titles=(
            "same choice, %",
            "entropy, nat/token",
            "length, tokens",
            "valid chains, points",
            "accuracy of exgrpo minus that of an arm that selects otherwise, points",
        ),
    )
    if picks.height:
        _draw_picks(plot, picks)
    _draw_accuracy(plot, accuracy)
    plot.update_layout(height=640, legend_y=-0.1)
    arm = f"above: {picks['arm'][0]}, against the lowest mean entropy; " if picks.height else ""
    return evidence.subtitle(plot, facts, arm + evidence.bar_meaning(_rows_of_seeds(picks, frames)))


def _rows_of_seeds(picks: pl.DataFrame, frames: Frames) -> pl.DataFrame:
    """Rows that name the seeds behind the intervals."""
    return picks if picks.height else frames[ACCURACY].filter(pl.col("arm") == OF_METHOD)


def _draw_picks(plot: go.Figure, picks: pl.DataFrame) -> None:
    metrics = list(METRICS)[::-1]
    panels = (
        (_agreement(picks), 100.0, (0.0, 100.0)),
        (_changes(picks, "summed_entropy"), 1.0, evidence.UNBOUNDED),
        (_changes(picks, "summed_length"), 1.0, evidence.UNBOUNDED),
        (_changes(picks, "valid", "checked"), 100.0, (-100.0, 100.0)),
    )
    for column, (made, factor, clip) in enumerate(panels, 1):
        evidence.add_estimates(
            plot,
            "what would have been replayed",
            [(at, made.get(metric)) for at, metric in enumerate(metrics)],
            BLUE,
            "circle",
            col=column,
            horizontal=True,
            factor=factor,
            clip=clip,
            behind=[rollouts(picks["arm"][0], replayed=True)] * len(metrics),
        )
        if column > 1:
            evidence.add_reference(plot, 0.0, 1, column, horizontal=True)
    plot.update_yaxes(tickvals=list(range(len(metrics))), row=1)
    plot.update_yaxes(ticktext=[METRICS[metric] for metric in metrics], row=1, col=1)
    plot.update_xaxes(range=[0, 103], row=1, col=1)


def _draw_accuracy(plot: go.Figure, accuracy: ByTest) -> None:
    arms = [arm for arm in SELECTORS if arm in {of for of, _ in accuracy}][::-1]
    looks = ((ORANGE, "square"), (GREEN, "diamond"), (PINK, "x"))
    tests = sorted({test for _, test in accuracy}, key=lambda test: test.name)
    for place, test in enumerate(tests):
        shift = 0.15 * ((len(tests) - 1) / 2 - place)
        evidence.add_estimates(
            plot,
            test.name,
            [(at + shift, accuracy.get((arm, test))) for at, arm in enumerate(arms)],
            *looks[place % len(looks)],
            row=2,
            horizontal=True,
            factor=100.0,
            clip=(-100.0, 100.0),
            behind=[test.behind(OF_METHOD, arm) for arm in arms],
        )
    plot.update_yaxes(
        tickvals=list(range(len(arms))), ticktext=arms, range=[-0.5, len(arms) - 0.5], row=2, col=1
    )
    if arms:
        evidence.add_reference(plot, 0.0, 2, 1, horizontal=True)
    else:
        text = f"no seed has {OF_METHOD} and an arm that selects otherwise"
        plot.add_annotation(
            text=text, showarrow=False, x=0.5, y=0.5, xref="x5 domain", yref="y5 domain"
        )


def lines(frames: Frames) -> list[str]:
    picks = _of_one_arm(frames)
    if picks.is_empty():
        return [f"Not here: {NO_DRAWS}.", *_accuracy_lines(frames)]
    arm, agreement = picks["arm"][0], _agreement(picks)
    audit = frames[AUDIT].filter(pl.col("arm") == arm).row(0, named=True)
    entropy, length, valid = (
        _changes(picks, "summed_entropy"),
        _changes(picks, "summed_length"),
        _changes(picks, "valid", "checked"),
    )
    return [
        f"{arm}: {audit['draws']} visits of a question with a choice, among "
        f"{audit['candidates']:.1f} stored trajectories on average; seeds "
        f"{evidence.counted_seeds(picks)}, questions {picks['question'].n_unique()}. The one of "
        f"lowest mean entropy would also have been taken by "
        + "; ".join(f"{METRICS[each]} {percent(made)}" for each, made in agreement.items())
        + f". The released metric took the shortest in {100 * audit['released_is_shortest']:.1f} % "
        f"and the lowest summed entropy in {100 * audit['released_is_summed']:.1f} %.",
        *(
            f"Instead of it, {METRICS[each]}: entropy {said_change(entropy[each])} nat/token, "
            f"length {said_change(length[each], 1)} tokens"
            + (f", valid chains {points(valid[each])}." if each in valid else ".")
            for each in entropy
        ),
        *([] if valid else ["Not here: whether the chains of the candidates are valid."]),
        *_other_arms(frames[AUDIT], arm),
        *_accuracy_lines(frames),
        evidence.how_sure(picks),
    ]


def _other_arms(audit: pl.DataFrame, arm: str) -> list[str]:
    released = audit.filter(pl.col("arm") != arm).select("arm", pl.col("released") * 100)
    found = dict(released.iter_rows())
    if not found:
        return []
    return [
        "Other arms: the released code's metric takes the one of lowest mean entropy "
        f"{evidence.spread(found, 1, ' %')}."
    ]


def _accuracy_lines(frames: Frames) -> list[str]:
    made = _accuracy(frames)
    there = [
        f"Accuracy of {OF_METHOD} minus {arm} (replays {what}): "
        + ", ".join(
            f"{test.name} {points(found)} ({drawn_over(found.seeds, found.questions)})"
            for (of, test), found in made.items()
            if of == arm
        )
        + "."
        for arm, what in SELECTORS.items()
        if arm in {of for of, _ in made}
    ]
    missing = [arm for arm in SELECTORS if arm not in {of for of, _ in made}]
    if missing:
        there.append(
            f"Not here: the accuracy of {OF_METHOD} against {', '.join(missing)}, for no seed has "
            "both."
        )
    return there


SELECTION_AUDIT = Observation(
    name="selection_audit",
    title="Does it matter by which metric the replayed trajectory is chosen?",
    reading="Above: at every visit where there was a choice, what each metric would have taken, "
    "held against the lowest mean entropy (line at 0); chance is `a random one`. That is no "
    "effect on training: the buffer is the one that this arm made. The effect is below, where "
    "arms that select otherwise were trained: right of the line, the lowest mean entropy does "
    "better.",
    queries=(PICKS, AUDIT, ACCURACY),
    draw=draw,
    lines=lines,
)
