"""What declarations of metrics say in English, in other languages; apart, so that measuring imports no translations."""

from podeval.hub_sources import locate_hub_source
from podeval.text.message_catalogue import FIRST, read_messages


def translate(text: str, language: str) -> str:
    """Translate what a declaration says in English: a title, a unit, a sentence; what has no translation stays.

    The English is the message id of `metrics.po`, which only other languages have.
    """
    if language == FIRST:
        return text
    file = locate_hub_source("space") / "locale" / language / "LC_MESSAGES" / "metrics.po"
    return read_messages(file).get(text, text)
