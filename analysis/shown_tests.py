"""Which tests the panels of a figure are about: each benchmark, or of many the two domains."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from analysis.behind import Behind, samples
from analysis.comparison import AccuracyTable, accuracy_table, domain_table
from analysis.domains import DOMAINS, NAMES, Domain

MOST_PANELS = 2  # benchmarks side by side; of more the means in and out of distribution
TITLES = {"test_id": "in distribution (test_id)", "test_ood": "out of distribution (test_ood)"}


@dataclass(frozen=True)
class ShownTest:
    """A benchmark, or with `domain` the mean over all those of one."""

    benchmarks: tuple[str, ...]
    domain: Domain | None = None

    @property
    def name(self) -> str:
        """As sentences name it."""
        return self.benchmarks[0] if self.domain is None else NAMES[self.domain]

    @property
    def phrase(self) -> str:
        """As sentences say where: `on aime`, `in distribution`."""
        return f"on {self.name}" if self.domain is None else self.name

    @property
    def title(self) -> str:
        """As figures name it: Plotly reads tags."""
        if self.domain is None:
            return TITLES.get(self.name, escape(self.name))
        count = len(self.benchmarks)
        return f"{self.name}, {f'mean of {count} benchmarks' if count > 1 else '1 benchmark'}"

    def estimate(self, entry: dict[str, Any], key: str) -> dict[str, Any] | None:
        """`accuracy` or `difference` there of an arm's entry in a comparison; None without one."""
        if self.domain is None:
            return entry[key].get(self.name)
        return entry["domains"].get(self.domain, {}).get(key)

    def table(self, accuracy: pl.DataFrame, arm: str) -> AccuracyTable:
        """The accuracy of an arm there, from rows of query `arm_accuracy`."""
        if self.domain is None:
            return accuracy_table(accuracy, arm, self.name)
        return domain_table(accuracy, arm, self.domain)

    def behind(self, *arms: str, **filters: Any) -> Behind:
        """The samples there of these arms."""
        if self.domain is None:
            return samples(*arms, benchmark=self.name, **filters)
        return samples(*arms, domain=self.domain, **filters)


def shown_tests(domains: Mapping[Domain, list[str]]) -> list[ShownTest]:
    """The tests in their order; domains: the benchmarks of each."""
    benchmarks = sorted({name for own in domains.values() for name in own})
    if len(benchmarks) <= MOST_PANELS:
        return [ShownTest((name,)) for name in benchmarks]
    return [ShownTest(tuple(domains[name]), name) for name in DOMAINS if domains[name]]
