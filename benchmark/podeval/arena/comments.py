"""Clean voters' comments."""

import re
import unicodedata

LONGEST = 2_000
"""Longest comment that is kept, in characters."""

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def clean_comment(text: str, longest: int = LONGEST) -> tuple[str, bool]:
    """Return a comment without control characters, and whether it was cut at the longest allowed length.

    Markup stays as the characters that were typed; pages show a comment as plain text.
    """
    text = text.encode("utf-8", errors="replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Co", "Cn"))
    kept = kept.strip()
    return kept[:longest], len(kept) > longest
