"""Accuracy in and out of distribution: over one benchmark or several, each weighing the same.

A study may test on several benchmarks of a domain. Its accuracy there is the paper's "Avg.": the
unweighted mean over the benchmarks of the mean over their questions. To the statistics of
`analysis.statistics` it is a mean over questions, for which values are rewritten here; where a
table has one benchmark they stay as they are.
"""

from collections import Counter
from typing import Literal, get_args

import numpy as np

from analysis.statistics import Floats

Domain = Literal["in", "out"]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
NAMES: dict[str, str] = {"in": "in distribution", "out": "out of distribution"}


def balanced(values: Floats, benchmarks: list[str]) -> Floats:
    """values [S, Q] moved so that their mean over questions is the mean over benchmarks.

    A question's value becomes the seed's mean over benchmarks, plus its own distance from its
    benchmark's mean, weighed by `weights`. So a bootstrap over all questions has the variance of
    one that draws the questions of each benchmark by themselves: that benchmarks differ in how hard
    they are is no uncertainty. Distances from a mean of n questions are too short by a factor of
    sqrt((n - 1) / n), which in a benchmark of few would make intervals too narrow: that is undone.
    Without a NaN; `benchmarks` names that of each question.

    Raises ValueError where one of several benchmarks has one question: how far others like it may
    be, nothing tells.
    """
    names = sorted(set(benchmarks))
    if len(names) < 2:
        return values
    sizes = Counter(benchmarks)
    if alone := [name for name in names if sizes[name] == 1]:
        raise ValueError(f"{alone[0]} has one question that every seed answered: no interval")
    members = np.array([[name == own for own in benchmarks] for name in names], float)  # [B, Q]
    means = values @ members.T / members.sum(axis=1)  # [S, B]
    whole = means.mean(axis=1, keepdims=True)
    longer = np.array([(sizes[name] / (sizes[name] - 1)) ** 0.5 for name in benchmarks])
    moved: Floats = whole + weights(benchmarks) * longer * (values - means @ members)
    return moved


def weights(benchmarks: list[str]) -> Floats:
    """Weight [Q] of each question, with mean 1, by which every benchmark weighs the same."""
    sizes = Counter(benchmarks)
    equal = len(benchmarks) / len(sizes)
    return np.array([equal / sizes[name] for name in benchmarks])
