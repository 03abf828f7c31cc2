"""Holm's step-down procedure over a declared family (Holm 1979, Scand. J. Stat. 6)."""


def holm_levels(p_values: list[float], alpha: float = 0.05) -> list[float]:
    """The error rate that Holm's step-down procedure grants each test, in the order given.

    Test number i in ascending p gets alpha / (m - i). From the first test that fails on, all
    get the rate at which that one failed: an interval of level 1 - rate then excludes the null
    exactly when Holm rejects it.
    """
    levels = [alpha] * len(p_values)
    stopped: float | None = None
    for place, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        levels[at] = stopped or alpha / (len(p_values) - place)
        if stopped is None and p_values[at] > levels[at]:
            stopped = levels[at]
    return levels
