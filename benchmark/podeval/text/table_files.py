"""Tables as files that other programs open: without cells that a spreadsheet would run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = tuple("=+-@\t\r\n")


def make_csv_safe(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a copy with an apostrophe before text that a spreadsheet would take for a formula (= + - @, controls).

    Carriage returns are line feeds in it.
    """
    import pandas as pd

    safe = frame.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            # Each different text once: a long table says the same few again and again.
            texts = [text for text in safe[name].unique() if isinstance(text, str)]
            if unsafe := {text: marked for text in texts if (marked := _mark(text)) != text}:
                safe[name] = safe[name].replace(unsafe)
    return safe


def _mark(text: str) -> str:
    """Return a text with an apostrophe if it is a formula, and with line feeds for carriage returns.

    A carriage return alone is not quoted in CSV, and what follows it would be a cell of its own.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet would take a text for a formula; a number with its sign is none."""
    try:
        float(text)
    except ValueError:
        return text.startswith(_FORMULA)
    return False
