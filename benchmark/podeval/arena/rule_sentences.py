"""How what a rule saw in many votes is put into words."""

from typing import Any

import pandas as pd


def worded(template: str, *columns: "pd.Series[Any]") -> "pd.Series[str]":
    """The template filled row by row, by the index of the first column; also where there is no row.

    Args:
        template: for `str.format`.
        columns: of one length, its places in order.
    """
    rows = zip(*columns, strict=True)
    return pd.Series([template.format(*row) for row in rows], index=columns[0].index, dtype=str)
