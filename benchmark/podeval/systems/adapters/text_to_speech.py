"""Text to speech, turn by turn: each line is said by itself in its speaker's voice, and the lines are joined.

Joining is that of the built-in readers (`podeval.systems.dialogue_reader`): silence at the edges cut, voices at one
level, fixed pauses, so that the time of every turn is known. Lines are said one at a time, so that RTF
means what it says.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Adapter, ModelClass
from podeval.systems.adapters.job import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.snapshot import require_type
from podeval.systems.adapters.speech_model import SpeechModel, finish, open_model, read_clips
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, join_lines
from podeval.systems.speech import Ask, Speech
from podeval.systems.text_cleaning import make_speakable, split_into_short_lines
from podeval.text.script import Script

CLASSES = (
    ModelClass("vits", "VITS", "one voice, or numbered voices; MMS-TTS is of this class", "vits:Vits"),
    ModelClass("dia", "Dia", "English; voices by reference recording, else drawn and kept", "dia:Dia"),
    ModelClass("bark", "Bark", "the voice presets of its repo, by language", "bark:Bark"),
    ModelClass("csm", "CSM", "English; voices by reference recording, else its first line's", "csm:Csm"),
    ModelClass(
        "pocket_tts", "Pocket TTS", "voices by reference recording, else its first line's", "pocket_tts:PocketTts"
    ),
    ModelClass(
        "gradium_phonon_tts", "Gradium Phonon", "the voices that its repo ships as latents", "pocket_tts:GradiumPhonon"
    ),
    ModelClass(
        "higgs_audio_v2", "Higgs Audio v2", "voices by reference recording, else its first line's", "higgs:HiggsAudio"
    ),
)
"""Classes of models that say a line in a voice."""


class TurnByTurn:
    """An `OutputMaker` of speech with known turn times."""

    at_once = 1

    def __init__(self, model: SpeechModel, job: Job, preset: Preset) -> None:
        self._model = model
        self._job = job
        self._preset = preset

    def make(self, asks: Sequence[Ask], seed: int) -> list[Speech]:
        """Read each script aloud."""
        return [self.speak(ask.spoken(), ask, seed) for ask in asks]

    def speak(self, script: Script, ask: Ask, seed: int) -> Speech:
        """Read a script of an item aloud."""
        model = self._model
        clips = read_clips(ask, script, self._job, self._preset, model.rate) if model.takes_references else {}
        voices = self._voices(script, ask.language, set(clips))
        lines = _lines(script, voices, model.longest_line, model.laugh)
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
        samples, rate = finish(samples, model.rate, self._preset)
        return Speech(
            samples,
            rate,
            turns,
            wall_seconds=wall,
            details={
                "strategy": "chunked",
                "chunk": "turn" if model.longest_line is None else f"sentence, at most {model.longest_line} characters",
                **DialogueReader.assembly(),
                "voices": {who: "reference" if who in clips else f"own {voices[who]}" for who in script.speakers},
                "unspoken_turns": [number for number in range(len(script.turns)) if number not in spoken],
            },
        )

    def _voices(self, script: Script, language: str, referenced: set[str]) -> dict[str, int]:
        """Number each speaker's voice: the n-th of those without a recording has the model's n-th."""
        had = self._model.voices(language)
        others = [who for who in script.speakers if who not in referenced]
        if had is not None and len(others) > had:
            raise BadInput(
                f"the model has {had} voice{'s' if had != 1 else ''}, the script asks for {len(others)} "
                f"({', '.join(others)[:200]}); submit it to tracks with fewer speakers, or submit one with more voices"
            )
        order = [*others, *(who for who in script.speakers if who in referenced)]
        return {who: number for number, who in enumerate(order)}


def check(folder: Path, base: Path | None = None) -> None:
    """See `Adapter`."""
    require_type(folder, {model.type: model.title for model in CLASSES}, "text-to-speech")


def open_reader(job: Job, preset: Preset) -> TurnByTurn:
    """See `Adapter`."""
    return TurnByTurn(open_model(CLASSES, "text-to-speech", job, preset), job, preset)


def _lines(script: Script, voices: dict[str, int], longest: int | None, laugh: str) -> list[SpokenLine]:
    lines = [
        SpokenLine(number, voices[turn.speaker], text)
        for number, turn in enumerate(script.turns)
        if (words := make_speakable(turn.text, laugh))
        for text in ([words] if longest is None else split_into_short_lines(words, longest))
    ]
    if not lines:
        raise BadInput("nothing in the script can be spoken: it has no letters or digits")
    return lines


ADAPTER = Adapter(
    task="text-to-speech",
    title="Text to speech",
    models=CLASSES,
    check=check,
    open=open_reader,
)
