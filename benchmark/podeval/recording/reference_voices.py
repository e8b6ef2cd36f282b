"""Reference voices: for each speaker of a dialogue, a recording of the voice that the speaker should have."""

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.errors import BadInput, CannotScore, MissingInput
from podeval.models.interfaces import SpeakerTurn
from podeval.recording.recording import Recording, read_source
from podeval.recording.source import OBJECT_KEYS
from podeval.recording.speech_track import SHORTEST_VOICE, VOICE_WINDOW, select_spoken_voices
from podeval.text.script import Script, normalise_speaker

ONLY = ""
"""The name under which an unnamed voice is stored."""


def match_names(names: Iterable[str], script: Script) -> dict[str, str]:
    """Return the script's speaker for each name, ignoring case and spaces; unknown names are left out."""
    speakers = {normalise_speaker(speaker): speaker for speaker in script.speakers}
    return {name: speakers[normalise_speaker(name)] for name in names if normalise_speaker(name) in speakers}


class ReferenceVoices(dict[str, Recording]):
    """Recordings by speaker; a single recording may be unnamed and apply to any speaker."""

    def __init__(self, recordings: Mapping[str, Recording]) -> None:
        if not recordings:
            raise BadInput("no reference voice is given; provide a recording of the voice, or one for each speaker")
        super().__init__(recordings)

    @classmethod
    def read(cls, source: Any, **options: Any) -> "ReferenceVoices":
        """Read voices from a recording, or from recordings by speaker (a mapping, JSON text, or a `.json` file).

        Args:
            source: the recordings, each in any form that `read_source` accepts; paths in a file are relative to that
                file.
            options: options of `Recording.open`.

        Raises:
            BadInput: the source has none of these forms, or a file cannot be read.
        """
        if isinstance(source, Mapping) and OBJECT_KEYS.isdisjoint(source):
            return cls({str(name): cls._open_voice(name, voice, options) for name, voice in source.items()})
        text = str(source) if isinstance(source, str | Path) else ""
        if text.lstrip().startswith("{"):
            return cls.read(_parse_paths(text, "the reference voices"), **options)
        if text.lower().endswith(".json"):
            try:
                paths = _parse_paths(Path(text).read_text(encoding="utf-8"), text)
            except (OSError, UnicodeDecodeError) as error:
                raise BadInput(f"{text} cannot be read ({error})") from None
            return cls.read({name: str(Path(text).parent / str(path)) for name, path in paths.items()}, **options)
        return cls({ONLY: cls._open_voice(ONLY, source, options)})

    @staticmethod
    def _open_voice(name: Any, voice: Any, options: Mapping[str, Any]) -> Recording:
        try:
            return read_source(voice, **options).recording
        except MissingInput:
            raise BadInput(
                f"the reference voice of {name} is missing; give a recording, or leave the speaker out"
            ) from None

    @cached_property
    def embeddings(self) -> dict[str, NDArray[np.float32]]:
        """The mean embedding of each voice over those windows of its recording that contain enough speech.

        Raises:
            CannotScore: a reference recording is silent, too short or contains no speech.
        """
        return {name: self._embed(name, recording) for name, recording in self.items()}

    @cached_property
    def whole_embeddings(self) -> dict[str, NDArray[np.float32]]:
        """The embedding of each voice's whole recording, as in PodEval's public code.

        Raises:
            CannotScore: a reference recording is silent, too short or contains no speech.
        """
        return {name: self._embed(name, recording, whole=True) for name, recording in self.items()}

    @staticmethod
    def _embed(name: str, recording: Recording, *, whole: bool = False) -> NDArray[np.float32]:
        of = f"the reference voice of {name}" if name else "the reference voice"
        # Refuse a recording from which no voice can be extracted, and name it.
        try:
            recording.require_sound()
        except CannotScore as refusal:
            raise CannotScore(f"{of} cannot be used: {refusal}") from None
        if recording.duration < SHORTEST_VOICE:
            raise CannotScore(f"{of} lasts {recording.duration:.2f} s; at least {SHORTEST_VOICE:g} s are needed")
        if not recording.speech():
            raise CannotScore(f"{of} cannot be used: it contains no speech")
        if whole:
            return np.asarray(recording.embeddings([(Span(0.0, recording.duration),)])[0])
        # Treat the whole recording as the turn of one speaker.
        voices = select_spoken_voices(recording, (SpeakerTurn("1", 0.0, recording.duration),))
        if not voices:
            raise CannotScore(
                f"{of} cannot be used: no window of {VOICE_WINDOW:g} s of it has enough speech (at least 40 %)"
            )
        return voices[0].embedding


def _parse_paths(text: str, name: str) -> dict[str, Any]:
    try:
        paths = json.loads(text)
    except ValueError as error:
        raise BadInput(f"{name} is not JSON ({error}); write it as {{speaker: path}}") from None
    if not isinstance(paths, dict):
        raise BadInput(f"{name} must map each speaker to a recording, such as {{'HOST': 'host.wav'}}")
    return paths
