"""What a comparison came to: the difference, a dot a question, the flips, the questions behind."""

from dataclasses import asdict

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from analysis.closing import interval, percent
from analysis.compare_figure import MOST, question_dots
from analysis.pairs import HALF, Comparison, Flip
from analysis.theme import PLOT_CONFIG
from app import state
from app.components.compare_state import Compare, listed
from app.components.figure import themed
from app.components.row_picker import row_picker
from app.components.steps import neighbours, show_steps

WORDS: dict[Flip, str] = {
    "right_wrong": "right → wrong",
    "wrong_right": "wrong → right",
    "right_right": "right in both",
    "wrong_wrong": "wrong in both",
}
MATRIX: tuple[tuple[Flip, Flip], ...] = (
    ("right_wrong", "right_right"),
    ("wrong_wrong", "wrong_right"),
)
CHART = "compare.dots"
FEWEST = 2  # questions of an interval


def difference_words(made: Comparison) -> str:
    """`B − A: +3.1 [-1.0, +7.2] points`, the 95 % interval in brackets; none of one question."""
    assert made.difference is not None
    if made.difference.questions < FEWEST:
        return f"B − A: {100 * made.difference.value:+.1f} points"
    return f"B − A: {interval(asdict(made.difference), signed=True)} points"


def meaning(made: Comparison) -> str:
    """Accuracies, on how many questions B does better, and what the interval is about."""
    better, worse, same = made.signs
    total = made.questions.height
    likely = (better + same / 2) / total
    means = made.questions.select(pl.mean("accuracy_a", "accuracy_b")).row(0)
    return (
        f"Accuracy of A {percent(means[0])}, of B {percent(means[1])}, over the same {total:,} "
        f"question{'' if total == 1 else 's'}. B does better on {better:,}, worse on {worse:,}, "
        f"the same on {same:,}; on a question drawn at random B does better with probability "
        f"{percent(likely)}, equal ones counted half. {_covers(made)}"
    )


def _covers(made: Comparison) -> str:
    """What the interval of the difference is about, or why there is none."""
    pairs = len(made.pairs)
    if made.questions.height < FEWEST:
        return "One question has no interval: nothing tells how others like it would fare."
    if made.crossed:
        return (
            f"Runs without a seed are paired with every run of the other side ({pairs} pairs that "
            "share runs): the 95 % interval covers other questions like these, not other runs."
        )
    if pairs > 1:
        return (
            f"The 95 % interval covers other seeds and other questions like these ({pairs} pairs "
            "of runs)."
        )
    return (
        "There is one pair of runs: the 95 % interval covers other questions like these, not other "
        "seeds."
    )


def pairing(made: Comparison) -> str:
    """Which seeds are paired, and what is left out."""
    seeds = sorted({pair.seed for pair in made.pairs if pair.seed is not None})
    named = f" (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})" if seeds else ""
    pairs = len(made.pairs)
    steps = [
        f"{side} at step {' and '.join(map(str, steps))}"
        for side, steps in (("A", made.steps_a), ("B", made.steps_b))
        if steps
    ]
    left_out = [
        f"{count:,} {what}"
        for count, what in (
            (len(made.alone_a), "run(s) of A without a partner"),
            (len(made.alone_b), "run(s) of B without a partner"),
            (made.only_a, "question(s) that only A answered"),
            (made.only_b, "question(s) that only B answered"),
            (made.partly, "question(s) that not every paired run answered"),
        )
        if count
    ]
    return (
        f"Paired: {pairs} pair{'' if pairs == 1 else 's'} of runs{named}, "
        f"{made.questions.height:,} questions{'; ' if steps else ''}{', '.join(steps)}. "
        f"Left out: {', '.join(left_out) or 'nothing'}."
    )


def show_result(made: Comparison, address: Compare) -> str | None:
    """Draw all of it; the question that is chosen, or the first of the list."""
    st.subheader(difference_words(made), anchor=False)
    st.caption(meaning(made))
    questions = listed(made.questions, address.flip)
    ids: list[str] = questions["question"].to_list()
    known = set(made.questions["question"])
    chosen = address.question if address.question in known else ids[0] if ids else None
    picture, table = st.columns([1, 1], gap="medium")
    with picture:
        _dots(question_dots(made.questions, chosen))
        some = f"the {MOST:,} that changed most" if made.questions.height > MOST else "all of them"
        st.caption(
            f"A dot a question, {some}, moved a little apart; click one to read its answers below."
        )
    with table:
        _matrix(made.counts(), address)
        _table(questions, ids, chosen)
    if address.question is not None and address.question not in known:
        st.warning("The question that the address names is not among the paired ones:")
        st.code(address.question, language=None)
    if chosen is not None:
        place = (
            f"question {ids.index(chosen) + 1:,} of {len(ids):,} in the list"
            if chosen in ids
            else "this question is not in the list"
        )
        show_steps(*neighbours(ids, chosen), _choose, "compare", place)
    return chosen


def _dots(plot: go.Figure) -> None:
    st.plotly_chart(
        themed(plot),
        theme=None,
        key=CHART,
        on_select=_dot_clicked,
        selection_mode="points",
        config=PLOT_CONFIG,
        alt="Accuracy of B against accuracy of A, a dot a question",
    )


def _dot_clicked() -> None:
    points = st.session_state[CHART]["selection"]["points"]
    if points and (question := points[0].get("customdata")):
        _choose(question["question"])


def _choose(question: str) -> None:
    state.write(
        state.change(state.read(Compare), question=question, left_sample=None, right_sample=None)
    )


def _matrix(counts: dict[Flip, int], address: Compare) -> None:
    for row in MATRIX:
        with st.container(horizontal=True, wrap=False):
            for flip in row:
                chosen = address.flip == flip
                st.button(
                    f"**{counts[flip]:,}** {WORDS[flip]}",
                    key=f"compare.{flip}",
                    type="primary" if chosen else "secondary",
                    width="stretch",
                    on_click=_pick_flip,
                    args=("all" if chosen else flip,),
                )
    st.caption(
        f"Questions, from A to B. One counts as right on a side where more than {HALF:.0%} of its "
        "answers are. Click a cell to list its questions, again to list all."
    )


def _pick_flip(flip: str) -> None:
    state.write(
        state.change(
            state.read(Compare), flip=flip, question=None, left_sample=None, right_sample=None
        )
    )


def _table(questions: pl.DataFrame, ids: list[str], chosen: str | None) -> None:
    if not ids:
        st.info("No question flipped this way.")
        return
    row_picker(question_table(questions), ids, chosen, "compare.questions", _choose, height=300)


def question_table(questions: pl.DataFrame) -> pl.DataFrame:
    """Rows of `Comparison.questions` for reading."""
    return questions.select(
        pl.col("flip").replace_strict(WORDS).alias("from A to B"),
        *(
            pl.format("{} of {}", f"correct_{side}", f"graded_{side}").alias(f"{title} right")
            for side, title in (("a", "A"), ("b", "B"))
        ),
        (100 * pl.col("difference")).round(1).alias("B − A (points)"),
        "level",
        "question",
    )
