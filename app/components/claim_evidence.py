"""What a claim rests on: the figure that shows it, and the rows and queries behind it."""

from typing import Any

from analysis.claims import Claim

# By test: the figure of the study that shows the same comparison.
FIGURES = {
    "accuracy_difference": "difference_to_on_policy",
    "accuracy_by_extraction": "difference_to_on_policy",
    "accuracy_at_equal_cost": "data_efficiency",
    "masked_difference": "masked_grpo",
    "weak_base_difference": "difference_to_on_policy",
    "retirement_difference": "forgetting",
    "continued_difference": "difference_to_on_policy",
    "delayed_start_difference": "difference_to_on_policy",
    "entropy_auroc": "entropy_validity",
    "entropy_auroc_at_equal_length": "entropy_validity",
    "entropy_auroc_over_nll": "entropy_validity",
    "difficulty_auroc": "entropy_by_difficulty",
    "shortcut_auroc": "markers",
    "snowball_detected": "snowball",
    "collected_share": "bucket_dynamics",
    "retired_over_buffered": "bucket_dynamics",
    "bucket_count": "bucket_dynamics",
    "step_time_ratio": "data_efficiency",
}

_RIGHT_FRESH = {"replayed": False, "correct": True, "sort": "mean_entropy", "descending": True}
_ROWS: dict[str, dict[str, Any]] = {
    "entropy_auroc": _RIGHT_FRESH | {"chain_valid": False},
    "entropy_auroc_at_equal_length": _RIGHT_FRESH | {"chain_valid": False},
    "entropy_auroc_over_nll": _RIGHT_FRESH | {"chain_valid": False},
    "difficulty_auroc": _RIGHT_FRESH,
    "shortcut_auroc": _RIGHT_FRESH | {"markers": ["shortcut"]},
    "snowball_detected": {"replayed": True, "chain_valid": False},
    "late_entropy_difference": {"replayed": False, "sort": "step", "descending": True},
    "collected_share": {"replayed": True},
    "retired_over_buffered": {"replayed": True},
    "bucket_count": {"replayed": True},
    "stores_wrong_answers": {"replayed": True},
    "weight_formula": {"replayed": True},
    "step_time_ratio": {},
}


def figure_of(claim: Claim) -> str | None:
    """The name of the study's figure that shows the claim; None where no figure does."""
    return FIGURES.get(claim.test)


def rows_behind(claim: Claim, study: str) -> dict[str, Any] | None:
    """Filters of the screen Trajectories for the rows that the claim is tested on.

    The samples of its tests, else the trajectories that its test looks at. None where it is
    about no rows of this study.
    """
    if claim.asks == "paper" or not claim.arms:
        return None
    scope = {"study": study, "arms": list(claim.arms)}
    if claim.domain:
        return {**scope, "source": "evaluation", "domain": claim.domain}
    if claim.benchmark:
        return {**scope, "source": "evaluation", "benchmark": claim.benchmark}
    return {**scope, **_ROWS.get(claim.test, {})}


def queries_of(claim: Claim) -> list[str]:
    """The named queries whose answers the test and its notes use; none that ask the paper."""
    return [] if claim.asks == "paper" else [claim.query, *claim.beside]
