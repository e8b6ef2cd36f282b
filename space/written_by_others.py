"""Names, topics, transcripts and reasons are written by others: shown as they stand, never read as markup."""

from __future__ import annotations


def as_markdown(text: str) -> str:
    """Text that Markdown shows literally.

    Every character that is neither a letter nor a digit becomes an entity: entities are never structure, so no tag,
    link, image, automatic address or formula can begin.
    """
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in " ".join(text.split()))
