"""Words behind a number that make another value of it: for the grader and the judge of equations.

`5 hundred`, `5 squared` and `5 over two` are not 5; `5 apples` are.
"""

OTHER_VALUE = frozenset(
    """
    mod modulo base remainder rem with choose times plus minus squared cubed dozen dozens score
    hundred thousand million billion trillion pairs pair half halves quarters thirds tenths
    hundredths factorial or over percentage
    """.split()  # noqa: SIM905
)
