"""Put into sentences what a rule saw in many votes."""

from typing import Any

import pandas as pd


def format_details(template: str, *columns: "pd.Series[Any]") -> "pd.Series[str]":
    """Fill the template row by row, by the index of the first column; the columns may be empty.

    Args:
        template: for `str.format`.
        columns: columns of equal length for its places, in order.
    """
    rows = zip(*columns, strict=True)
    return pd.Series([template.format(*row) for row in rows], index=columns[0].index, dtype=str)
