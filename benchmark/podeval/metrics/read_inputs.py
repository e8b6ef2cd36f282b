"""How each input of a metric is read from what a person or a program hands in."""

from collections.abc import Callable, Mapping
from typing import Any

from podeval.analysis import Recording
from podeval.analysis.reference_voices import ReferenceVoices
from podeval.analysis.text_embeddings import EmbeddedText
from podeval.metrics import human_records
from podeval.metrics.generation_log import GenerationLog
from podeval.metrics.spoken_dialogue import SpokenDialogue
from podeval.text.podcast_request import PodcastRequest
from podeval.text.script_format import any_script

_READERS: Mapping[str, Callable[..., Any]] = {
    "recording": Recording.open,
    "text": lambda source, **_: any_script(source).text,
    "passage": lambda source, **options: EmbeddedText(any_script(source).text, options.get("profile", "embedded")),
    "reference_text": lambda source, **_: any_script(source).text,
    "script": lambda source, **_: any_script(source),
    "reference_script": lambda source, **_: any_script(source),
    "request": lambda source, **_: PodcastRequest.parse(source),
    "dialogue": lambda source, **_: SpokenDialogue.parse(source),
    "reference_voices": ReferenceVoices.read,
    "generation_log": lambda source, **_: GenerationLog.parse(source),
    "system": lambda source, **_: str(source),
    "reference_votes": lambda source, **_: human_records.votes(source),
    "reference_marks": lambda source, **_: human_records.marks(source),
    "reference_answers": lambda source, **_: human_records.answers(source),
}


def read_input(name: str, source: Any, **options: Any) -> Any:
    """An input by its name in a metric's signature.

    Args:
        name: one of `podeval.metrics.declaration.INPUTS`.
        source: a path, a text, or data, as the input takes it.
        options: `profile` and `allow_upsampling`, for recordings.

    Raises:
        BadInput: it cannot be read; says why.
    """
    return _READERS[name](source, **options)
