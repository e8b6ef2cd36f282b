"""A model of speech is asked for a line in a voice, or for a dialogue in one go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from podeval.audio.decode import DecodeLimits, decode
from podeval.audio.resample import mix_to_mono, resample
from podeval.errors import BadInput
from podeval.systems.adapters.adapter import ModelClass
from podeval.systems.adapters.job import Job
from podeval.systems.adapters.presets import Preset, assign_voices, list_reference_voices
from podeval.systems.speech import Ask, Reference, Samples, SpeechFailed
from podeval.text.script import Script

LONGEST_REFERENCE = 60.0
"""Seconds; what is longer is no prompt but an upload by mistake."""


@dataclass(frozen=True)
class VoiceClip:
    """A recording of a voice at the model's rate, shape (frames,), and its words where they are known."""

    samples: Samples
    text: str | None


class LineModel(Protocol):
    """A model that says a line by itself.

    Attributes:
        rate: Hz.
        takes_references: whether a voice can be given by a recording of it.
        longest_line: characters; longer turns are split into sentences, and those at clauses.
    """

    rate: int
    takes_references: bool
    longest_line: int | None

    def voices(self, language: str) -> int | None:
        """Return how many voices of its own it has for a language; None where it can make any number.

        Raises:
            BadInput: it does not speak the language.
        """

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line, shape (frames,); equal arguments give equal samples."""

    def begin(self) -> None:
        """Begin a new item: nothing said before may matter."""


class DialogueModel(Protocol):
    """A model that performs a dialogue in one go.

    Attributes:
        rate: Hz.
        most_speakers: that it can tell apart.
        longest: seconds it performs at once; longer scripts are cut between turns.

    A model whose scripts can mark a laugh has `laugh`, the mark; for others `[laughs]` is taken out.
    """

    rate: int
    most_speakers: int
    longest: float

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Perform a piece of a script, shape (frames,) or (frames, channels); later pieces in the voices of the first.

        Args:
            piece: consecutive turns.
            speakers: the speakers of the whole script, in order.
            clips: reference recordings by speaker, where there are any.
            seed: the seed of what is drawn.
        """

    def begin(self) -> None:
        """Begin a new item: nothing performed before may matter."""


@dataclass(frozen=True)
class SpeechClass:
    """A class of speech models: its facts, and the name of the class here that opens it, as `module:name`."""

    facts: ModelClass
    opened_by: str


def open_model(classes: Sequence[SpeechClass], kind: str, job: Job, preset: Preset, device: str) -> LineModel:
    """Open the model of a job, by its `model_type`."""
    from importlib import import_module

    module, _, name = next(
        speech_class.opened_by for speech_class in classes if speech_class.facts.type == kind
    ).partition(":")
    opened: LineModel = getattr(import_module(f"podeval.systems.adapters.{module}"), name)(job, preset, device)
    return opened


def clip(reference: Reference, folder: Path, rate: int) -> VoiceClip:
    """Read a reference recording, mono and at the model's rate.

    Raises:
        BadInput: it cannot be read, is silent, or longer than a minute.
    """
    path = folder / reference.audio
    recording = decode(path, limits=DecodeLimits(seconds=LONGEST_REFERENCE))
    samples = resample(mix_to_mono(recording.samples), recording.rate, rate)
    if not np.any(samples):
        raise BadInput(f"the reference voice {path.name} is silent")
    return VoiceClip(np.asarray(samples, np.float32).reshape(-1), reference.text)


def read_clips(ask: Ask, script: Script, job: Job, preset: Preset, rate: int) -> dict[str, VoiceClip]:
    """Read the reference voice of each speaker of a script that has one, by the item or by the preset."""
    pool = list_reference_voices(ask.language, job.voices_folder) if preset.reference_voices else ()
    folder = job.items_file.parent
    return {
        speaker: clip(reference, folder, rate)
        for speaker, reference in assign_voices(script.speakers, ask.voices, pool).items()
    }


def finish(samples: Samples, rate: int, preset: Preset, maker: str) -> tuple[Samples, int]:
    """Bring samples to the preset's rate; returns them with their rate.

    Raises:
        SpeechFailed: they are silent, or not finite.
    """
    if not len(samples) or not np.any(samples):
        raise SpeechFailed(f"{maker} returned only silence")
    if not np.all(np.isfinite(samples)):
        raise SpeechFailed(f"{maker} returned NaN or infinite samples")
    if preset.rate is None or preset.rate == rate:
        return samples, rate
    return resample(samples if samples.ndim == 2 else samples[:, np.newaxis], rate, preset.rate), preset.rate
