"""Tables as files that other programs open: without cells that a spreadsheet would run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = tuple("=+-@\t\r\n")


def make_csv_safe(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a copy with an apostrophe before text that a spreadsheet would take for a formula (= + - @, controls)."""
    import pandas as pd

    safe = frame.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            # Each different text once: a long table says the same few again and again.
            unsafe = [text for text in safe[name].unique() if isinstance(text, str) and _is_formula(text)]
            if unsafe:
                safe[name] = safe[name].replace({text: f"'{text}" for text in unsafe})
    return safe


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet would take a text for a formula; a number with its sign is none."""
    try:
        float(text)
    except ValueError:
        return text.startswith(_FORMULA)
    return False
