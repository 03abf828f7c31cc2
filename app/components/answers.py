"""How an answer was graded, and how many of a group were right, in words."""

ANSWERS = {True: "✓ right", False: "✗ wrong", None: "? ungraded"}


def right_of(k: int | None, size: int | None, after: str = "") -> str:
    """`3 of 8` and what comes `after` it; `k not known` where the log does not tell."""
    return "k not known" if k is None or size is None else f"{k} of {size}{after}"
