"""Read scripts aloud: line by line in known voices, or as a whole by a model that performs dialogues.

Single lines are joined as in the built-in readers (`podeval.systems.dialogue_reader`): silence at the edges is cut, all
voices have the same level, and pauses are fixed, so the time of every turn is known. Lines are said one at a time, so
RTF has its usual meaning.

A podcast is performed: turns are not joined one by one, so the model is free to choose pauses and interruptions, and
the times of turns are unknown. A script that is too long for one performance is cut between turns into as few pieces as
possible.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Adapter, Job, ModelClass
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.snapshot import require_type
from podeval.systems.adapters.speech_model import SpeechModel, finish, open_model, read_clips
from podeval.systems.dialogue_reader import describe_chunks, estimate_seconds, join_lines, list_lines
from podeval.systems.speech import Ask, OneByOne, Speech
from podeval.text.script import Script, Turn

LINE_CLASSES = (
    ModelClass("vits", "VITS", "one voice, or numbered voices; includes MMS-TTS", "line_models:Vits"),
    ModelClass(
        "dia", "Dia", "English; voices from reference recordings, or random ones that are kept", "dialogue_models:Dia"
    ),
    ModelClass("bark", "Bark", "the voice presets of its repo, by language", "line_models:Bark"),
    ModelClass(
        "csm",
        "CSM",
        "English; voices from reference recordings, or from each speaker's first line",
        "dialogue_models:Csm",
    ),
    ModelClass(
        "pocket_tts",
        "Pocket TTS",
        "voices from reference recordings, or from each speaker's first line",
        "line_models:PocketTts",
    ),
    ModelClass(
        "gradium_phonon_tts",
        "Gradium Phonon",
        "the voices that its repo stores as latents",
        "line_models:GradiumPhonon",
    ),
    ModelClass(
        "higgs_audio_v2",
        "Higgs Audio v2",
        "voices from reference recordings, or from each speaker's first line",
        "line_models:HiggsAudio",
    ),
)
"""Model classes that say a line in a voice."""


DIALOGUE_CLASSES = (
    ModelClass("dia", "Dia", "English, one or two speakers, about 15 s at once", "dialogue_models:Dia"),
    ModelClass("csm", "CSM", "English, turn by turn, in the context of earlier turns", "dialogue_models:Csm"),
    ModelClass(
        "vibevoice",
        "VibeVoice",
        "English and Chinese, up to four speakers, about 40 minutes at once",
        "dialogue_models:VibeVoice",
    ),
)
"""Model classes that perform a dialogue."""

PAUSE = 0.4
"""Pause in seconds between two pieces."""


@dataclass
class ScriptReader(OneByOne[Speech]):
    """An output maker that reads scripts aloud with a model.

    Attributes:
        model: the model that speaks.
        job: the model's job.
        preset: the generation settings.
    """

    model: SpeechModel
    job: Job
    preset: Preset


class TurnByTurn(ScriptReader):
    """A reader of lines in known voices, with known turn times."""

    def make_one(self, ask: Ask, seed: int) -> Speech:
        """Read an item's script line by line."""
        model, script = self.model, ask.spoken()
        clips = read_clips(ask, script, self.job, self.preset, model.rate) if model.takes_references else {}
        voices = self._voices(script, ask.language, set(clips))
        lines = list_lines(script, voices, model.longest_line, model.laugh)
        begin = time.perf_counter()
        model.begin()
        sounds = [
            model.say(
                line.text,
                line.voice,
                clips.get(script.turns[line.turn].speaker),
                loading.derive_seed(seed, ask.id, number),
            )
            for number, line in enumerate(lines)
        ]
        samples, turns = join_lines(script, lines, sounds, model.rate)
        wall = time.perf_counter() - begin
        spoken = {line.turn for line in lines}
        samples, rate = finish(samples, model.rate, self.preset)
        return Speech(
            samples,
            rate,
            turns,
            wall_seconds=wall,
            details={
                **describe_chunks(model.longest_line),
                "voices": {who: "reference" if who in clips else f"own {voices[who]}" for who in script.speakers},
                "unspoken_turns": [number for number in range(len(script.turns)) if number not in spoken],
            },
        )

    def _voices(self, script: Script, language: str, referenced: set[str]) -> dict[str, int]:
        """Assign a voice number to each speaker: the n-th speaker without a recording gets the model's n-th voice."""
        count = self.model.voices(language)
        others = [who for who in script.speakers if who not in referenced]
        if count is not None and len(others) > count:
            raise BadInput(
                f"the model has {count} voice{'s' if count != 1 else ''}, but the script needs {len(others)} "
                f"({', '.join(others)[:200]}); submit it to tracks with fewer speakers, or submit a model with more "
                f"voices"
            )
        order = [*others, *(who for who in script.speakers if who in referenced)]
        return {who: number for number, who in enumerate(order)}


class Performed(ScriptReader):
    """A reader that performs podcasts."""

    def make_one(self, ask: Ask, seed: int) -> Speech:
        """Perform an item's script, in pieces that the model can perform in one go."""
        model, script = self.model, ask.spoken()
        lines = list_lines(script, laugh=model.laugh)
        script = Script(tuple(Turn(script.turns[line.turn].speaker, line.text) for line in lines))
        if len(script.speakers) > model.most_speakers:
            raise BadInput(
                f"the model can perform {model.most_speakers} speakers, but the script has {len(script.speakers)}; "
                "enter it in tracks with fewer speakers"
            )
        model.voices(ask.language)
        clips = read_clips(ask, script, self.job, self.preset, model.rate)
        begin = time.perf_counter()
        pieces = cut_script(script, model.longest)
        model.begin()
        sounds = [
            model.perform(piece, script.speakers, clips, loading.derive_seed(seed, ask.id, number))
            for number, piece in enumerate(pieces)
        ]
        pause = np.zeros((round(PAUSE * model.rate), *sounds[0].shape[1:]), np.float32)
        whole = np.concatenate([part for sound in sounds for part in (pause, sound)][1:])
        wall = time.perf_counter() - begin
        samples, rate = finish(whole, model.rate, self.preset)
        return Speech(
            samples,
            rate,
            turns=(),
            wall_seconds=wall,
            details={
                "strategy": "whole" if len(pieces) == 1 else "chunked",
                "pieces": len(pieces),
                **({"chunk": f"turns, about {model.longest:g} s", "pause": PAUSE} if len(pieces) > 1 else {}),
                "voices": {who: "reference" if who in clips else "own" for who in script.speakers},
            },
        )


def check(
    folder: Path,
    base: Path | None = None,
    classes: Sequence[ModelClass] = LINE_CLASSES,
    task: str = "text-to-speech",
) -> None:
    """See `Adapter`."""
    require_type(folder, {model.type: model.title for model in classes}, task)


def open_performer(job: Job, preset: Preset) -> Performed:
    """See `Adapter`."""
    return Performed(open_model(DIALOGUE_CLASSES, "podcast", job, preset), job, preset)


def open_reader(job: Job, preset: Preset) -> TurnByTurn:
    """See `Adapter`."""
    return TurnByTurn(open_model(LINE_CLASSES, "text-to-speech", job, preset), job, preset)


def cut_script(script: Script, longest: float) -> list[Script]:
    """Cut the script between turns into pieces of about `longest` seconds at most; a turn is never cut."""
    pieces: list[list[Turn]] = []
    length = 0.0
    for turn in script.turns:
        seconds = estimate_seconds(turn.text)
        if not pieces or length + seconds > longest:
            pieces.append([])
            length = 0.0
        pieces[-1].append(turn)
        length += seconds
    return [Script(tuple(piece)) for piece in pieces]


ADAPTER = Adapter(
    task="text-to-speech",
    models=LINE_CLASSES,
    check=check,
    open=open_reader,
)

PODCAST = Adapter(
    task="podcast",
    models=DIALOGUE_CLASSES,
    check=partial(check, classes=DIALOGUE_CLASSES, task="podcast"),
    open=open_performer,
)
