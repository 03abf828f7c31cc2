"""The closing table of a study as a frame: one row an arm, every accuracy with its interval."""

from typing import Any

import polars as pl

from analysis.closing import HEADER, closing_rows, interval


def closing_table(comparison: dict[str, Any]) -> pl.DataFrame:
    """The rows of `analysis.closing`, and beside them each arm's difference to on-policy."""
    table = pl.DataFrame(closing_rows(comparison), schema=list(HEADER), orient="row")
    differences = {entry["arm"]: entry["difference"] for entry in comparison["arms"]}

    def column(benchmark: str) -> list[str]:
        return [
            interval(differences.get(arm, {}).get(benchmark), signed=True) for arm in table["arm"]
        ]

    return table.insert_column(
        4, pl.Series("to on-policy", column("test_id"), pl.String)
    ).insert_column(5, pl.Series("to on-policy, out of d.", column("test_ood"), pl.String))
