"""Compare: two runs, steps or arms on the same questions; what flipped; where responses differ."""

import polars as pl
import streamlit as st

from analysis.arms import BASE
from analysis.pairs import compare_sides
from app import data, state
from app.components.compare_responses import show_question, show_trajectories
from app.components.compare_result import pairing, show_result
from app.components.compare_sides import pick_side
from app.components.compare_state import Compare, chosen_arms, chosen_benchmark
from app.components.study_picker import pick_study, say_chosen_by_tests

MODES = {"evaluation": "evaluation samples", "training": "fresh training rollouts"}
NO_EVALUATIONS = (
    "This study has no evaluation samples (an import has none): fresh rollouts are compared."
)


def show() -> None:
    data.require_catalog()
    state.restore("compare")
    address = state.read(Compare)
    if address.a is None and address.b is None:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            study = pick_study(Compare, address.study)
            checkpoints = data.answer("compare_checkpoints", study=study)
            benchmark = _on(address, checkpoints)
        say_chosen_by_tests(study)
        _sides(
            study,
            address,
            checkpoints.filter(pl.col("benchmark").eq_missing(pl.lit(benchmark))),
            benchmark,
        )
    else:
        st.caption("Two trajectories of training, their texts and tokens against each other.")
        st.button("Compare arms instead", on_click=state.write, args=(Compare(address.study),))
        show_trajectories(address)
    state.remember("compare")


def _sides(study: str, address: Compare, asked: pl.DataFrame, benchmark: str | None) -> None:
    runs = data.answer("runs_overview", study=study)
    able = runs.filter(
        pl.col("arm") != BASE
        if benchmark is None
        else pl.col("run").is_in(asked["run"].unique().implode())
    )
    if able.is_empty():
        st.info("This study has no run with fresh rollouts yet.")
        return
    arms = chosen_arms(able["arm"].to_list(), address.left, address.right)
    if able["arm"].n_unique() == 1:
        st.caption("This study has one arm here: compare two runs of it, or two steps.")
    for side, named in (("A", address.left), ("B", address.right)):
        if named is not None and named not in arms:
            st.warning(f"{side}: no arm of the name that the address gives has answers here.")
    steps = [asked.filter(pl.col("arm") == arm)["step"].unique().sort().to_list() for arm in arms]
    left, right = st.columns(2)
    with left:
        a = pick_side(address, "left", arms[0], able, steps[0])
    with right:
        b = pick_side(address, "right", arms[1], able, steps[1])
    if a == b:
        st.info("A and B are the same: choose another arm, run or step for one of them.")
        return
    made = data.ask_catalog(compare_sides, study, benchmark, a, b)
    st.caption(pairing(made))
    if made.difference is None:
        _nothing(bool(made.pairs))
        return
    if (question := show_result(made, address)) is not None:
        show_question(made, address, benchmark, (a, b), study, question)


def _on(address: Compare, checkpoints: pl.DataFrame) -> str | None:
    """Let the kind of answers be chosen: the benchmark, or None for training."""
    if checkpoints.is_empty():
        st.caption(NO_EVALUATIONS)
        return None
    fresh = {"question": None, "left_sample": None, "right_sample": None, "flip": "all"}
    st.segmented_control(
        "On",
        list(MODES),
        format_func=MODES.__getitem__,
        required=True,
        **state.control(Compare, "on", address.on, **fresh),
    )
    if address.on == "training":
        return None
    domains = dict(checkpoints.select("benchmark", "domain").sort("benchmark").iter_rows())
    known = list(domains)
    benchmark = chosen_benchmark(domains, address.benchmark)
    st.selectbox(
        "Benchmark",
        known,
        width=220,
        **state.control(Compare, "benchmark", benchmark, **fresh),
    )
    if address.benchmark is not None and address.benchmark not in known:
        st.warning("Benchmark: the study was not evaluated on the one that the address names.")
    return benchmark


def _nothing(paired: bool) -> None:
    st.info(
        "No question was answered by every paired run of both sides. Choose one run a side, or "
        "wider windows of steps."
        if paired
        else "No two runs can be paired: A and B have no seed in common, or no answers here. "
        "Choose one run a side."
    )


show()
