"""What tables, columns and files have where nothing was given is missing, and nothing else is."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from podeval.errors import is_missing


@pytest.mark.parametrize(
    "value",
    [
        *(None, float("nan"), np.nan, np.float32("nan"), np.float64("nan"), Decimal("NaN")),
        *(pd.NA, pd.NaT, np.datetime64("NaT"), pd.Series(["a", None])[1], pd.array([1, None])[1]),
        *("", "  \n", "\ufeff", "null", "NaN", "nan", "None", "<NA>", "NaT", "N/A", "null\nnull\n", np.str_("nan")),
    ],
    ids=repr,
)
def test_missing_values_are_seen(value: object) -> None:
    assert is_missing(value)


@pytest.mark.parametrize(
    "value",
    [
        *(
            0,
            0.0,
            False,
            True,
            5,
            np.int64(0),
            np.str_("a"),
            "0",
            "none of them",
            "Nan came.",
            "null\nand void",
            "na na",
        ),
        *([], {}, [None], (None, None), {"text": None}, b"", np.array([np.nan]), np.array([]), pd.Series([None])),
        *(Path(), object(), pd.Timestamp(0), np.datetime64(0, "s")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_there_is_not_missing(value: object) -> None:
    assert not is_missing(value)
