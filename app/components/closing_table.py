"""The closing table of a study as a frame: one row an arm, every accuracy with its interval."""

from typing import Any

import polars as pl

from analysis.closing import HEADER, closing_rows, interval
from analysis.domains import Domain


def closing_table(comparison: dict[str, Any]) -> pl.DataFrame:
    """The rows of `analysis.closing`, and beside them each arm's difference to on-policy."""
    table = pl.DataFrame(closing_rows(comparison), schema=list(HEADER), orient="row")
    domains = {entry["arm"]: entry["domains"] for entry in comparison["arms"]}

    def column(domain: Domain) -> list[str]:
        found = [domains.get(arm, {}).get(domain, {}) for arm in table["arm"]]
        return [interval(each.get("difference"), signed=True) for each in found]

    return table.insert_column(4, pl.Series("to on-policy", column("in"), pl.String)).insert_column(
        5, pl.Series("to on-policy, out of d.", column("out"), pl.String)
    )
