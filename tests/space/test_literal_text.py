"""Text written by others cannot become Markdown."""

from __future__ import annotations

import html

import pytest
from written_by_others import as_markdown


@pytest.mark.parametrize(
    "text",
    ["<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "![a](http://x.y/z.png)", "www.x.y", "a*b_c`d`$e$"],
)
def test_no_character_of_markup_survives_and_the_reader_sees_the_text(text: str) -> None:
    escaped = as_markdown(text)
    assert not set(escaped) & set("<>[]()!*_`$:/.\"'=")
    assert html.unescape(escaped) == text
