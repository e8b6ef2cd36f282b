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
from podeval.systems.adapters.adapter import ModelClass, describe_missing
from podeval.systems.adapters.job import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.seeding import derive_seed
from podeval.systems.adapters.snapshot import require_type
from podeval.systems.adapters.speech_model import LineModel, SpeechClass, finish, open_model, read_clips
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, join_lines
from podeval.systems.speech import Ask, OutputMaker, Speech
from podeval.systems.text_cleaning import make_speakable, split_into_short_lines
from podeval.text.script import Script

CLASSES = (
    SpeechClass(ModelClass("vits", "VITS", "one voice, or numbered voices; MMS-TTS is of this class"), "vits:Vits"),
    SpeechClass(ModelClass("dia", "Dia", "English; voices by reference recording, else drawn and kept"), "dia:Dia"),
    SpeechClass(ModelClass("bark", "Bark", "the voice presets of its repo, by language"), "bark:Bark"),
    SpeechClass(ModelClass("csm", "CSM", "English; voices by reference recording, else its first line's"), "csm:Csm"),
    SpeechClass(
        ModelClass("pocket_tts", "Pocket TTS", "voices by reference recording, else its first line's"),
        "pocket_tts:PocketTts",
    ),
    SpeechClass(
        ModelClass("gradium_phonon_tts", "Gradium Phonon", "the voices that its repo ships as latents"),
        "pocket_tts:GradiumPhonon",
    ),
    SpeechClass(
        ModelClass("higgs_audio_v2", "Higgs Audio v2", "voices by reference recording, else its first line's"),
        "higgs:HiggsAudio",
    ),
)
"""Classes of models that say a line in a voice."""


class TurnByTurn:
    """An `OutputMaker` of speech with known turn times."""

    at_once = 1

    def __init__(self, model: LineModel, job: Job, preset: Preset) -> None:
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
        lines = _lines(script, voices, model.longest_line, getattr(model, "laugh", ""))
        begin = time.perf_counter()
        model.begin()
        sounds = [
            model.say(
                line.text, line.voice, clips.get(script.turns[line.turn].speaker), derive_seed(seed, ask.id, number)
            )
            for number, line in enumerate(lines)
        ]
        samples, turns = join_lines(script, lines, sounds, model.rate)
        wall = time.perf_counter() - begin
        spoken = {line.turn for line in lines}
        samples, rate = finish(samples, model.rate, self._preset, "the model")
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


class TextToSpeechAdapter:
    """The adapter of the task `text-to-speech`."""

    task = "text-to-speech"
    title = "Text to speech"
    makes = "audio"
    about = (
        "Speaks a script turn by turn, each speaker in one voice; turns are joined, and when each is spoken is known."
    )
    needs = ("config.json of one of the classes below, and its tokenizer", "weights as .safetensors")
    models = tuple(speech_class.facts for speech_class in CLASSES)

    def available(self) -> str | None:
        """Return None where torch, transformers and accelerate are installed."""
        return describe_missing(("torch", "transformers", "accelerate"), "the adapter for text-to-speech")

    def check(self, folder: Path, base: Path | None = None) -> None:
        """See `Adapter.check`."""
        require_type(folder, {model.type: model.title for model in self.models}, self.task)

    def open(self, job: Job, preset: Preset) -> OutputMaker:
        """See `Adapter.open`."""
        return open_reader(job, preset)


def open_reader(job: Job, preset: Preset) -> TurnByTurn:
    """Open the reader of a job's model.

    Raises:
        BadInput: it is of no class that is read here, or cannot be loaded.
    """
    kind = require_type(
        job.model_folder,
        {speech_class.facts.type: speech_class.facts.title for speech_class in CLASSES},
        "text-to-speech",
    )
    return TurnByTurn(open_model(CLASSES, kind, job, preset, loading.choose_device(job.device)), job, preset)


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


ADAPTER = TextToSpeechAdapter()
