"""Every statistical test by the name that the ledger gives it."""

from collections.abc import Callable

from analysis.claims.accuracy import (
    accuracy_at_equal_cost,
    accuracy_by_extraction,
    accuracy_difference,
    continued_difference,
    masked_difference,
    retirement_difference,
    weak_base_difference,
)
from analysis.claims.entropy import (
    difficulty_auroc,
    entropy_auroc,
    entropy_auroc_at_equal_length,
    entropy_auroc_over_nll,
    shortcut_auroc,
)
from analysis.claims.finding import Finding, Frames, NotTestableError
from analysis.claims.ledger import Claim
from analysis.claims.snowball import Detected, snowball_detected
from analysis.claims.starts import delayed_start_difference
from analysis.claims.training import (
    collected_share,
    late_entropy_difference,
    retired_over_buffered,
    step_time_ratio,
)


def not_testable(claim: Claim, frames: Frames) -> Finding:
    """Nothing here can test the claim; `given.reason` says why."""
    raise NotTestableError(claim.given["reason"])


TESTS: dict[str, Callable[[Claim, Frames], Finding | Detected]] = {
    test.__name__: test
    for test in (
        accuracy_difference,
        accuracy_by_extraction,
        accuracy_at_equal_cost,
        masked_difference,
        weak_base_difference,
        retirement_difference,
        continued_difference,
        delayed_start_difference,
        entropy_auroc,
        entropy_auroc_at_equal_length,
        entropy_auroc_over_nll,
        difficulty_auroc,
        shortcut_auroc,
        snowball_detected,
        late_entropy_difference,
        collected_share,
        retired_over_buffered,
        step_time_ratio,
        not_testable,
    )
}
