"""What a metric is given of one item: what was asked and what the system made of it, by the names metrics use."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from podeval.analysis import Recording
from podeval.analysis.reference_voices import ReferenceVoices
from podeval.analysis.text_embeddings import EmbeddedText
from podeval.benchmarks.benchmark import Item
from podeval.metrics.generation_log import GenerationLog
from podeval.runs.run_folder import Output
from podeval.text.script import Script

GIVEN: Mapping[str, tuple[str, ...]] = {
    "voice": ("recording", "script", "reference_text", "reference_voices", "generation_log"),
    "write": ("script", "text", "passage", "request", "reference_script"),
    "respond": ("dialogue",),
}
"""What items have, by track: part of every protocol, as far as a metric uses it."""


def inputs_of(item: Item, output: Output, outputs: Path, profile: str) -> dict[str, Any]:
    """The inputs of an item by name; audio is opened when a metric asks for it, and then once.

    Args:
        item: what was asked.
        output: what came of it.
        outputs: the folder of the run's audio.
        profile: whose models recordings and passages use.
    """
    found: dict[str, Any] = {}
    if output.audio:
        path = outputs / Path(output.audio).name
        found["recording"] = _once(lambda: Recording.open(path, profile=profile))
    if output.script:
        script = Script.parse(list(output.script))
        found |= {"script": script, "reference_text": script.text, "text": script.text}
        found["passage"] = EmbeddedText(script.text, profile)
    if output.wall_seconds is not None and output.duration is not None:
        log = {"wall_seconds": output.wall_seconds, "audio_seconds": output.duration}
        found["generation_log"] = GenerationLog.parse(log)
    if item.reference_voices:
        found["reference_voices"] = _once(lambda: _voices(item, profile))
    if item.instruction:
        found["request"] = _request(item)
    if item.script is not None:
        found["reference_script"] = item.script
    if item.user and output.answers:
        found["dialogue"] = _dialogue(item, output, outputs)
    return found


def _once(opened: Callable[[], Any]) -> Callable[[], Any]:
    """What opens something when it is first asked for, and then hands out the same."""
    return cache(opened)


def _voices(item: Item, profile: str) -> ReferenceVoices:
    recordings = {speaker: str(voice.recording()) for speaker, voice in item.reference_voices.items()}
    return ReferenceVoices.read(recordings, profile=profile)


def _request(item: Item) -> Any:
    from podeval.text.podcast_request import PodcastRequest

    return PodcastRequest.parse(
        {
            "instruction": item.instruction,
            "sources": list(item.sources),
            "language": item.language,
            "speakers": item.voices,
        }
    )


def _dialogue(item: Item, output: Output, outputs: Path) -> Any:
    """The dialogue with its rubric: that of the last turn is for the whole, those before for it cut off there."""
    from podeval.metrics.spoken_dialogue import SpokenDialogue

    turns = [
        {
            "user": asked.words,
            "user_tags": list(asked.tags),
            "user_audio": asked.audio,
            "answer": answer.words,
            "answer_audio": str(outputs / Path(answer.audio).name) if answer.audio else None,
        }
        for asked, answer in zip(item.user, output.answers, strict=False)
    ]
    return SpokenDialogue.parse(
        {
            "id": item.id,
            "dimension": item.properties.get("dimension", "semantic"),
            "turns": turns,
            "criteria": {"sample": list(item.user[-1].criteria)} if item.user[-1].criteria else {},
            "turn_criteria": {
                str(number): list(turn.criteria) for number, turn in enumerate(item.user[:-1], 1) if turn.criteria
            },
            "capability": item.properties.get("capability"),
            "scenario": item.properties.get("scenario"),
        }
    )
