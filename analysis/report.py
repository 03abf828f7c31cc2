"""The report of a study: one HTML page that holds everything it needs and works offline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from analysis import closing
from analysis.arms import REFERENCE, arm_order
from analysis.claims import Claim, Verdict, show_effect, show_interval, show_power
from analysis.figures import Figure
from analysis.stage_outputs import Observed
from analysis.theme import PLOT_CONFIG, look

TEMPLATES = Path(__file__).parent / "templates"
COUNTS = (
    "arm",
    "runs",
    "steps",
    "right_fresh",
    "sampled_tokens",
    "distinct_questions",
    "retired_questions",
)
TRAINING_NOTE = (
    "Runs: one a seed. Steps: the least of any run. Right fresh: right fresh answers whose chain "
    "could be checked, summed over the runs. The rest: means over the runs of an arm."
)


@dataclass(frozen=True)
class Arm:
    """An arm as the report introduces it."""

    name: str
    title: str
    claim: str
    paper: str


@dataclass(frozen=True)
class ReportInput:
    """All that the report shows. facts: what was run, label and text, in order.

    comparison: as in `analysis.stage_outputs.StageOutputs`.
    """

    study: str
    title: str
    world: str
    facts: list[tuple[str, str]]
    arms: list[Arm]
    comparison: dict[str, Any]
    alpha: float
    verdicts: list[tuple[Claim, Verdict]]
    observations: list[Observed]
    figures: list[Figure]
    frames: dict[str, pl.DataFrame]
    limits: list[str]
    commands: list[tuple[str, str]]


@dataclass(frozen=True)
class NumberTable:
    """A table of the appendix: title, note, header and cells."""

    title: str
    note: str
    header: list[str]
    rows: list[list[str]]


def render(content: ReportInput) -> str:
    """The page as HTML. Every text is escaped; only Plotly's own output is taken as it is."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    several = closing.has_many_benchmarks(content.comparison)
    return environment.get_template("report.html.j2").render(
        content=content,
        plotlyjs=Markup(get_plotlyjs().replace("</script", "<\\/script")),
        lines={each.name: each.lines for each in content.observations},
        plots=[(figure, _div(figure)) for figure in content.figures],
        header=closing.HEADER,
        closing_rows=closing.closing_rows(content.comparison),
        scores_header=closing.SCORES_HEADER,
        scores=closing.benchmark_rows(content.comparison) if several else [],
        scores_meaning=closing.scores_meaning(content.comparison),
        progress=closing.progress(content.comparison),
        meaning=closing.meaning(content.comparison),
        tables=number_tables(content.comparison, content.frames),
        colour=lambda arm: look(arm).colour,
        show_interval=show_interval,
        show_effect=show_effect,
        show_power=show_power,
    )


def _div(figure: Figure) -> Markup:
    html = figure.plot.to_html(
        full_html=False,
        include_plotlyjs=False,
        config=PLOT_CONFIG,
        div_id=f"figure-{figure.name}",
        default_width="100%",
        default_height=f"{figure.plot.layout.height}px",
    )
    return Markup(html)


def number_tables(comparison: dict[str, Any], frames: dict[str, pl.DataFrame]) -> list[NumberTable]:
    """The numbers behind the figures, as text."""
    arms = {entry["arm"]: entry for entry in comparison["arms"]}
    order = arm_order(list(arms))
    benchmarks = comparison["benchmarks"]
    differences = [
        [arm, benchmark, closing.interval(made, signed=True), _by_seed(made)]
        for arm in order
        for benchmark in benchmarks
        if (made := arms[arm]["difference"].get(benchmark)) and arm != REFERENCE
    ]
    flawed = [
        [
            arm,
            benchmark,
            closing.percent(arms[arm]["flawed"].get(benchmark)),
        ]
        for arm in order
        for benchmark in benchmarks
    ]
    return [
        NumberTable(
            f"Difference to {REFERENCE}",
            "Points, paired by seed and question, with interval and the difference of each seed. "
            + closing.UNADJUSTED,
            ["arm", "test", "difference", "by seed"],
            differences,
        ),
        *([] if closing.has_many_benchmarks(comparison) else [_scores(comparison)]),
        NumberTable(
            "Flawed answers on the tests",
            "Of the right answers whose chain could be checked, those that are not valid.",
            ["arm", "test", "right but flawed"],
            flawed,
        ),
        _table("Training", TRAINING_NOTE, frames["arm_summary"], COUNTS),
        _table(
            "Entropy of right fresh answers",
            "By arm, k right answers in the group, and validity of the chain.",
            frames["entropy_by_validity"],
            (
                "arm",
                "bucket",
                "chain_valid",
                "trajectories",
                "mean_entropy",
                "mean_nll",
                "mean_length",
            ),
        ),
        _table(
            "Visits by difficulty",
            "What the fresh rollouts of a visit gave, by the bucket before it, and the change of "
            "the share right to the next visit. Retired questions have no next visit.",
            frames["difficulty_vs_gain"],
            (
                "arm",
                "experiential",
                "bucket",
                "groups",
                "success_share",
                "signal_share",
                "next_visits",
                "change_next",
            ),
        ),
    ]


def _scores(comparison: dict[str, Any]) -> NumberTable:
    """Every benchmark by itself; where a domain has several the result has this table."""
    return NumberTable(
        "Scores on the tests",
        closing.scores_meaning(comparison),
        list(closing.SCORES_HEADER),
        closing.benchmark_rows(comparison),
    )


def _table(title: str, note: str, frame: pl.DataFrame, columns: tuple[str, ...]) -> NumberTable:
    rows = [[_cell(value) for value in row] for row in frame.select(columns).rows()]
    return NumberTable(title, note, [name.replace("_", " ") for name in columns], rows)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"
    return str(value)


def _by_seed(made: dict[str, Any]) -> str:
    return ", ".join(f"{100 * value:+.1f}" for value in made["by_seed"])
