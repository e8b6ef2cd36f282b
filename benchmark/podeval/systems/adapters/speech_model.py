"""Speech models, which say a line in a voice or perform a dialogue in one go."""

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from podeval.audio.decode import DecodeLimits, decode
from podeval.audio.samples import mix_to_mono, resample
from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job, ModelClass
from podeval.systems.adapters.presets import Preset, assign_voices, list_reference_voices
from podeval.systems.adapters.snapshot import require_type
from podeval.systems.speech import Ask, Samples, SpeechFailed
from podeval.text.script import Script

LONGEST_REFERENCE = 60.0
"""Maximum length of a reference in seconds; anything longer is a mistaken upload and not a prompt."""


_LANGUAGES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True)
class VoiceClip:
    """A recording of a voice at the model's rate, shape (frames,), and its words if known."""

    samples: Samples
    text: str | None


class SpeechModel:
    """A model that says single lines (`say`), performs a dialogue in one go (`perform`), or both.

    A voice without a recording is kept consistent by prompting the model with the first speech in that voice in an
    item.

    Args:
        job: the job, which names the folders of the model and of its base.
        preset: the generation settings.
        device: device on which the model runs, such as `cpu`.

    Attributes:
        network: the transformers class of its network.
        reader: the transformers class that reads its texts and recordings.
        sampling: the preset settings that its generation uses.
        title: the usual name.
        languages: the languages that it speaks; empty if no config states them.
        takes_references: whether a recording can define a voice.
        longest_line: maximum number of characters; longer turns are split into sentences, and long sentences at
            clauses.
        laugh: mark for laughter in its scripts; if empty, `[laughs]` is removed.
        most_speakers: maximum number of speakers in a performance.
        longest: maximum length of a performance in seconds; longer scripts are cut between turns.
        prompt_seconds: maximum length of a recording that serves as a prompt for later lines.
    """

    network: ClassVar[str]
    reader: ClassVar[str]
    sampling: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str] = ""
    languages: ClassVar[tuple[str, ...]] = ()
    takes_references: ClassVar[bool] = True
    longest_line: ClassVar[int | None] = None
    laugh: ClassVar[str] = ""
    most_speakers: ClassVar[int] = 1
    longest: ClassVar[float] = 0.0
    prompt_seconds: ClassVar[float] = 0.0

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        self._first: dict[int, VoiceClip] = {}
        self._processor: Any = self.open_processor(job, device)
        self._model: Any = loading.load_model(self.network, job.model_folder, device)
        self._options = preset.sampling(*self.sampling)

    def open_processor(self, job: Job, device: str) -> Any:
        """Open the processor for its texts and recordings."""
        return loading.load_reader(self.reader, job.model_folder)

    @property
    def rate(self) -> int:
        """The sampling rate of its speech, in Hz."""
        return int(self._processor.feature_extractor.sampling_rate)

    def voices(self, language: str) -> int | None:
        """Return the number of its own voices for a language; None if it can create any number of voices.

        Raises:
            BadInput: the model does not speak the language.
        """
        if self.languages and language not in self.languages:
            names = " and ".join(_LANGUAGES[name] for name in self.languages)
            raise BadInput(f"{self.title} speaks {names} only, but the item is in {language}")
        return None

    def begin(self) -> None:
        """Begin a new item; earlier speech must not have any effect."""
        self._first = {}

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line, prompted with its speaker's voice; identical arguments give identical samples, shape
        (frames,).
        """
        prompt = self.require_words(reference) if reference else self._first.get(voice)
        samples = self.continue_voice(text, voice, prompt, seed)
        self.keep(voice, samples, text)
        return samples

    def continue_voice(self, text: str, voice: int, prompt: VoiceClip | None, seed: int) -> Samples:
        """Say a line after an earlier line, if any, in the same voice; the result has the shape (frames,)."""
        raise NotImplementedError

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Perform a piece of a script; later pieces keep the voices of the first. The result has the shape (frames,).

        Args:
            piece: consecutive turns.
            speakers: the speakers of the whole script, in order.
            clips: reference recordings by speaker; empty if there are none.
            seed: the seed of all random draws.
        """
        raise NotImplementedError

    def keep(self, voice: int, samples: Samples, text: str) -> None:
        """Keep the first line of a voice as a prompt for later lines, if it is short enough."""
        if len(samples) <= self.prompt_seconds * self.rate:
            self._first.setdefault(voice, VoiceClip(samples, text))

    def pack_recordings(self, recordings: Sequence[Samples]) -> dict[str, Any]:
        """Return a processor's arguments for recordings at the model's rate; empty if there are no recordings."""
        return {"audio": list(recordings), "sampling_rate": self.rate} if recordings else {}

    def require_words(self, reference: VoiceClip) -> VoiceClip:
        """Return a reference voice after checking that its words are given.

        Raises:
            BadInput: the words of the voice are not given.
        """
        if not reference.text:
            raise BadInput(
                f"{self.title} needs the transcript of a reference voice next to its recording; give the transcript"
            )
        return reference


def open_model(classes: Sequence[ModelClass], task: str, job: Job, preset: Preset) -> Any:
    """Open the model of a job according to its `model_type`.

    Raises:
        BadInput: the model does not belong to these classes, or cannot be loaded.
    """
    kind = require_type(job.model_folder, {model.type: model.title for model in classes}, task)
    opened_by = next(model.opened_by for model in classes if model.type == kind)
    opened = pkgutil.resolve_name(f"podeval.systems.adapters.{opened_by}")
    return opened(job, preset, loading.choose_device(job.device))


def read_mono(path: Path, rate: int, longest: float) -> Samples:
    """Read a recording of at most `longest` seconds as mono samples at this rate, shape (frames,).

    Raises:
        BadInput: the recording cannot be read, or is longer than that.
    """
    recording = decode(path, limits=DecodeLimits(seconds=longest))
    return np.asarray(resample(mix_to_mono(recording.samples), recording.rate, rate), np.float32).reshape(-1)


def read_clips(ask: Ask, script: Script, job: Job, preset: Preset, rate: int) -> dict[str, VoiceClip]:
    """Read the reference voice of each speaker who has one, from the item or from the preset.

    Raises:
        BadInput: a recording cannot be read, is silent, or is longer than a minute.
    """
    pool = list_reference_voices(ask.language, job.voices_folder) if preset.reference_voices else ()
    clips = {}
    for speaker, reference in assign_voices(script.speakers, ask.voices, pool).items():
        path = job.items_file.parent / reference.audio
        samples = read_mono(path, rate, LONGEST_REFERENCE)
        if not np.any(samples):
            raise BadInput(f"the reference voice {path.name} is silent")
        clips[speaker] = VoiceClip(samples, reference.text)
    return clips


def finish(samples: Samples, rate: int, preset: Preset) -> tuple[Samples, int]:
    """Convert samples to the preset's rate; return them with their rate.

    Raises:
        SpeechFailed: the samples are silent.
    """
    if not len(samples) or not np.any(samples):
        raise SpeechFailed("the model returned only silence")
    if preset.rate is None or preset.rate == rate:
        return samples, rate
    return resample(samples if samples.ndim == 2 else samples[:, np.newaxis], rate, preset.rate), preset.rate
