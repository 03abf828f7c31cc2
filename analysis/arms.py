"""The arms that every study knows by name, and the one order in which they are shown."""

BASE, REFERENCE, METHOD = "base", "on_policy", "exgrpo"
KNOWN = (
    BASE,
    REFERENCE,
    METHOD,
    "highest_entropy",
    "question_replay",
    "no_trajectory_selection",
    "on_policy_no_clip",
)


def arm_order(arms: list[str]) -> list[str]:
    """Arms in the order in which every figure and table shows them; unknown ones last, by name."""
    return sorted(set(arms), key=lambda arm: (KNOWN.index(arm) if arm in KNOWN else 99, arm))
