"""Missing values: what columns, tables and files contain where nothing was given."""

from typing import Any

WRITTEN = frozenset(
    {
        *(
            "",
            "null",
            "NULL",
            "Null",
            "None",
            "NaN",
            "nan",
            "NAN",
            "-nan",
            "-NaN",
            "<NA>",
            "NaT",
            "NA",
            "N/A",
            "n/a",
            "#N/A",
        ),
        *(
            "#NA",
            "#N/A N/A",
            "<null>",
            "(null)",
            "(NULL)",
            "\\N",
            "undefined",
            "1.#QNAN",
            "1.#IND",
            "-1.#IND",
            "-1.#QNAN",
        ),
        *("#NULL!", "#VALUE!", "#REF!", "#NAME?", "#DIV/0!"),
    }
)
"""Texts that programs write in place of a missing value."""


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN in any form, pandas' NA and NaT, or a text that is empty or whose
    every line says so, as JSON lines of `null` do.

    Collections are never missing, whatever they contain.
    """
    if value is None:
        return True
    if isinstance(value, str):
        return all(line.strip(" \t\u00a0\u200b\u2060\ufeff") in WRITTEN for line in value.splitlines())
    if hasattr(value, "__len__"):
        return False
    # NaN differs from itself, and pandas' NA has no truth.
    return type(value).__name__ == "NAType" or bool(value != value)
