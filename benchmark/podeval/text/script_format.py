"""Read scripts as written by models and programs, and estimate how long they take to speak."""

from typing import Any

import regex

from podeval.errors import BadInput
from podeval.text.characters import HAN, clean_text
from podeval.text.labelled_turns import note_inner_labels, read_labels
from podeval.text.reasoning import strip_reasoning
from podeval.text.script import Script, read_source
from podeval.text.tokens import PER_MINUTE, detect_language, is_unspaced

UNITS = {"en": "words", "zh": "characters"}
NAMES = {"en": "English", "zh": "Chinese"}

_WORD = regex.compile(rf"[{HAN}]|[^\W_{HAN}]+(?:['’.,\-][^\W_{HAN}]+)*")


def read_any_script(source: Any) -> Script:
    """Read a script in any form that podeval accepts, or in the plain text that models and programs write.

    The text may follow a model's reasoning; its turns may have labels, tags or the times of subtitles
    (`podeval.text.labelled_turns`). The script's notes list the parts that were not read literally.

    Raises:
        BadInput: the script cannot be read; see `Script.parse`.
    """
    if isinstance(source, Script):
        return source
    data = read_source(source)
    if not isinstance(data, str):
        return note_inner_labels(Script.parse(data))
    text = strip_reasoning(data)
    if not text and data.strip():
        raise BadInput("the model's answer ends after its reasoning and contains no script")
    return read_labels(text)


def count_length(text: str) -> int:
    """Count English words or Chinese characters; in mixed text each counts as one, as does a number."""
    return len(_WORD.findall(clean_text(text)))


def rate_of(text: str) -> int | None:
    """Return the words, or Chinese characters, per minute of speech; the English rate applies to all spaced languages.

    Returns None for languages without spaces, such as Japanese or Thai, which have no agreed rate.
    """
    return None if is_unspaced(text) else PER_MINUTE[detect_language(text)]
