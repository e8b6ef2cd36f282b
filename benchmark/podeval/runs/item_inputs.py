"""An item's request to a system, and the inputs of metrics: the request and the system's output."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.measuring.inputs import MetricInputs
from podeval.metrics.spoken_dialogue import SpokenDialogue
from podeval.runs.run_folder import Output, RunFolder
from podeval.systems.speech import SOURCES, Ask, RecordedUserTurn, Reference
from podeval.text.script import Script

GIVEN: Mapping[str, tuple[str, ...]] = {
    "voice": ("recording", "script", "reference_text", "reference_voices", "generation_log"),
    "write": ("script", "text", "passage", "request", "reference_script"),
    "respond": ("dialogue",),
    "podcast": ("recording", "request"),
}
"""Inputs of items by track; the ones that a metric uses are part of its protocol."""


def ask_of(track: str, item: Item) -> Ask:
    """Return the request for an item, for use within our own processes: recordings are specified by their paths on this
    machine.
    """
    match track:
        case "voice" if item.script is not None:
            voices = {
                speaker: Reference(audio=str(voice.recording()), text=voice.words)
                for speaker, voice in item.reference_voices.items()
            }
            return Ask(id=item.id, language=item.language, script=item.script.turns, voices=voices)
        case "write":
            return Ask(id=item.id, language=item.language, prompt=write_prompt(item))
        case "podcast":
            return Ask(id=item.id, language=item.language, topic=item.topic)
    turns = tuple(RecordedUserTurn(id=turn.id, words=turn.words, audio=turn.audio) for turn in item.user)
    return Ask(id=item.id, language=item.language, user=turns)


def write_prompt(item: Item) -> str:
    """Return the prompt of a script writer: the item's instruction with its sources, or a request on its topic."""
    if item.instruction:
        return "\n\n".join([item.instruction, *item.sources])
    if item.language == "zh":
        request = f"请为{item.voices}位说话人写一期完整的播客脚本，主题是：{item.topic}"
        return f"{request}\n每个话轮单独一行，以说话人的名字和冒号开头。"
    request = f"Write the whole script of a podcast episode for {item.voices} speakers on this topic: {item.topic}"
    return f"{request}\nGive each turn a line of its own that starts with the speaker's name and a colon."


def gather_inputs(
    item: Item, output: Output, outputs: Path, profile: str, allow_upsampling: bool = False
) -> MetricInputs:
    """Return the inputs of an item; audio is opened only once, when a metric asks for it.

    Args:
        item: the item of the benchmark's split.
        output: the system's output for this item.
        outputs: the folder of the run's audio.
        profile: the profile of the models that recordings and passages use.
        allow_upsampling: whether recordings below a model's sampling rate are read anyway.
    """
    sources: dict[str, Any] = {}
    if output.audio:
        sources["recording"] = outputs / Path(output.audio).name
    if output.script:
        sources |= dict.fromkeys(("script", "reference_text", "text", "passage"), _read_script(output))
    if output.wall_seconds and output.duration is not None:
        sources["generation_log"] = _read_log(output, output.wall_seconds, output.duration)
    if voices := item.reference_voices:
        sources["reference_voices"] = lambda: {speaker: str(voice.recording()) for speaker, voice in voices.items()}
    if item.instruction:
        sources["request"] = {
            "instruction": item.instruction,
            # Only the maker of a podcast knows its sources.
            "sources": list(item.sources or output.details.get(SOURCES, ())),
            "language": item.language,
            "speakers": item.voices,
        }
    if item.script is not None:
        sources["reference_script"] = item.script
        if output.audio and (readings := item.readings):
            sources["readings"] = readings
    if item.user and output.answers:
        sources["dialogue"] = _dialogue(item, output, outputs)
    inputs = MetricInputs(sources, profile=profile, allow_upsampling=allow_upsampling, keep=True)
    for name in inputs:
        if name not in ("recording", "reference_voices"):
            inputs[name]  # Read now, so that an unreadable input counts as a failure of the item and not of a metric.
    return inputs


def read_dialogues(run: RunFolder, items: Iterable[Item]) -> Iterator[SpokenDialogue]:
    """Read the dialogues of a run's system, each with the system's name; items without answers have no dialogue.

    Args:
        run: the folder of the run.
        items: the items of its split.

    Raises:
        BadInput: the system was not asked for answers.
    """
    plan = run.plan()
    if plan.track != "respond":
        raise BadInput(
            f"{run.path} has no dialogues, because its track is {plan.track}; choose a run of the track respond"
        )
    for item in items:
        output = run.output(item.id)
        if output is not None and output.answers:
            yield SpokenDialogue.parse(_dialogue(item, output, run.outputs) | {"system": plan.system})


def _read_script(output: Output) -> Script:
    """Read the script of an output, with the notes about how it was read."""
    return replace(Script.parse(list(output.script)), notes=tuple(output.details.get("script_notes", ())))


def _read_log(output: Output, wall_seconds: float, audio_seconds: float) -> dict[str, Any]:
    """Return the generation log of an item: its timing, with speech if the times of its turns are known."""
    log: dict[str, Any] = {"wall_seconds": wall_seconds, "audio_seconds": audio_seconds}
    if output.turns:
        log["speech_seconds"] = sum(turn.end - turn.start for turn in output.turns)
    playback = output.details.get("playback")
    if isinstance(playback, dict):
        log |= {name: playback.get(name) for name in ("time_to_first_audio", "underrun")}
        log["parts"] = playback.get("pieces")
    return log


def _dialogue(item: Item, output: Output, outputs: Path) -> dict[str, Any]:
    """Return the dialogue with its rubrics; each covers the part up to its turn, so the last one covers the whole."""
    turns = [
        {
            "user": user_turn.words,
            "user_tags": list(user_turn.tags),
            "user_audio": user_turn.audio,
            "answer": answer.words,
            "answer_audio": str(outputs / Path(answer.audio).name) if answer.audio else None,
        }
        for user_turn, answer in zip(item.user, output.answers, strict=False)
    ]
    return {
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
