"""Tables as files for other programs, without cells that a spreadsheet would execute."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_CELL = r"(?:^|(?<=[;\t\r\n]))"
"""Pattern for the beginning of a text, or of a cell if a spreadsheet also splits at semicolons or tabs.

Excel splits at semicolons in countries with a decimal comma, and LibreOffice splits at all of these separators
(OWASP/www-community#443).
"""
_FORMULA = r"(?=[\"']*[=+\-@＝＋－＠])"
_TO_MARK = re.compile(rf"{_CELL}{_FORMULA}|^(?=[\"']*[\t\r\n])")
_MARKED = re.compile(rf"{_CELL}'{_FORMULA}|^'(?=[\"']*[\t\r\n])")


def make_csv_safe(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a copy with an apostrophe before text that a spreadsheet would treat as a formula (= + - @, controls).

    Carriage returns in text become line feeds.
    """
    import pandas as pd

    safe = frame.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            # Each distinct text is processed only once, because a long table repeats the same few texts.
            texts = [text for text in safe[name].unique() if isinstance(text, str)]
            if unsafe := {text: marked for text in texts if (marked := _mark(text)) != text}:
                safe[name] = safe[name].replace(unsafe)
    return safe


def mark_formulas(text: str) -> str:
    """Return a text with an apostrophe before every part that a spreadsheet may treat as a formula."""
    return _TO_MARK.sub("'", text)


def unmark_formulas(text: str) -> str:
    """Return the original of a text that `mark_formulas` marked."""
    return _MARKED.sub("", text)


def _mark(text: str) -> str:
    """Return a text with formulas marked and carriage returns replaced by line feeds; a signed number is not a formula.

    A lone carriage return is not quoted in CSV, so the text after it would be a separate cell.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        float(text)
    except ValueError:
        return mark_formulas(text)
    return text
