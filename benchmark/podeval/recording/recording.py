"""`Recording`: an audio file as decoded samples, with all facts that measurements derive from it, each computed once.

A caller may pass a recording in any form; `read_source` identifies it by its content before it is decoded.

Facts come from the models of one profile. They are computed on first use, then kept in memory for the lifetime of the
object, and on disk by content hash, model identity and parameters. Channels and rate are preserved; the input for
models (mono, 16 kHz) is derived from them once per rate. Models are imported when their facts are used, so metrics that
need only the samples do not load any model.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from podeval.audio.decode import decode, hash_file
from podeval.audio.samples import (
    describe_silent_ends,
    find_defect,
    measure_cancelled,
    mix_channels,
    mix_to_mono,
    remove_offset,
    resample,
)
from podeval.errors import BadAudio, BadInput, CannotScore, MissingInput
from podeval.recording.cache import Cache, derive_content, dump_array, find_version, load_array, open_default_cache
from podeval.recording.source import list_collection, read_audio, read_name, read_samples

if TYPE_CHECKING:
    from podeval.audio.loudness import Loudness
    from podeval.audio.prosody import VoiceContour
    from podeval.audio.windows import Clip, Span
    from podeval.models.interfaces import Samples, SpeakerTurn, Transcript
    from podeval.recording.speech_track import SpeakerVoice, Stems

T = TypeVar("T")

MODEL_RATE = 16_000
"""Sample rate of every speech model of the embedded profile, in Hz."""

_PROSODY_METHOD = "1"
"""Version of the method; it changes whenever the results of `measure_prosody` do."""

AUDIO_SUFFIXES = frozenset(
    {".aac", ".aif", ".aiff", ".flac", ".m4a", ".mka", ".mov", ".mp3", ".mp4", ".oga", ".ogg", ".opus", ".wav", ".webm"}
)
"""Suffixes of files in a folder that count as recordings."""


class Recording:
    """One audio file; create it with `open`, `from_bytes` or `from_samples`."""

    def __init__(
        self,
        samples: Samples,
        rate: int,
        content: str,
        *,
        name: str = "recording",
        layout: str | None = None,
        profile: str = "embedded",
        cache: Cache | None = None,
        allow_upsampling: bool = False,
        notes: dict[str, Any] | None = None,
    ) -> None:
        self.samples = samples
        self.rate = rate
        self.content = content
        self.name = name
        self.layout = layout
        self.profile = profile
        self.allow_upsampling = allow_upsampling
        # Notes that this recording's scores must mention; empty for an unchanged file.
        self.notes = notes or {}
        self.decoder_note = ""
        self.cache = cache or open_default_cache()
        self._facts: dict[str, Any] = {}
        self._locks: dict[str, Any] = {}
        self._transcripts: dict[str | None, Transcript] = {}

    @classmethod
    def open(cls, path: str | Path, *, apart: bool = False, **options: Any) -> Recording:
        """Decode a file once; with `apart`, decode it in a sandbox or restricted process, as for an untrusted file.

        Raises:
            BadAudio: the file cannot be read as audio; the message gives the reason and the remedy.
        """
        decoded = (resolve_name("podeval.sandbox.transcode:decode_apart") if apart else decode)(Path(path))
        content = hash_file(Path(path))
        opened = cls(decoded.samples, decoded.rate, content, name=str(path), layout=decoded.layout, **options)
        opened.decoder_note = decoded.note or ""
        return opened

    @classmethod
    def from_bytes(cls, data: bytes, **options: Any) -> Recording:
        """Decode the bytes of an audio file; errors name the recording instead of the file that stores it."""
        with tempfile.NamedTemporaryFile(prefix="podeval-") as file:
            file.write(data)
            file.flush()
            try:
                return cls.open(file.name, **options)
            except BadAudio as error:
                raise BadAudio(str(error).replace(f"'{file.name}'", "the recording")) from error

    @classmethod
    def from_samples(cls, samples: NDArray[Any], rate: float, **options: Any) -> Recording:
        """Create a recording from samples of shape (frames,) or (frames, channels).

        For floats, full scale is ±1, and values beyond it are preserved. Integers are scaled from the full range of
        their type; unsigned integers are centred on its middle, as in 8-bit WAV.

        Raises:
            BadAudio: there are no samples, more than two axes, swapped axes, or values that are not numbers.
            BadInput: the rate is not positive.
        """
        array, rate, content = read_samples(samples, rate)
        return cls(array, rate, content, **options)

    @property
    def channels(self) -> int:
        """Number of channels, as in the file."""
        return int(self.samples.shape[1])

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate

    @cached_property
    def defect(self) -> str | None:
        """The reason why nothing can be measured (digital silence or samples that are not finite), or None."""
        return find_defect(self.samples)

    @cached_property
    def file_notes(self) -> tuple[str, ...]:
        """Facts about the file that a reader of any score needs to know: unread parts, and silence at the ends."""
        silence = "" if self.defect else describe_silent_ends(mix_to_mono(self.samples), self.rate)
        return tuple(filter(None, (*self.decoder_note.split("; "), silence)))

    @cached_property
    def cancelled(self) -> float:
        """Share of the recording in which the channels contain sound that cancels out in their mean."""
        return measure_cancelled(self.samples, self.rate)

    def require_sound(self, shortest: float = 0.0) -> None:
        """Refuse a recording that no metric can score.

        Raises:
            CannotScore: the recording is defective, or shorter than `shortest` seconds.
        """
        if self.defect:
            raise CannotScore(f"the recording {self.defect}")
        if self.duration < shortest:
            raise CannotScore(f"the recording lasts {self.duration:.2f} s; at least {shortest:g} s are needed")

    def mono(self, rate: int = MODEL_RATE, *, offset: bool = False, upsample: bool = False) -> Samples:
        """Return the mean of the channels at `rate`, shape (frames,); mixed once, and resampled once per rate.

        A constant offset is removed at the recording's own rate, so silence is really silent; with `offset`, it is
        kept, as in public code. With `upsample`, a lower rate is accepted.

        Raises:
            CannotScore: the rate is below `rate` and upsampling is not allowed, or its channels cancel each other out.
        """
        self.require_rate(self.rate if upsample else rate)
        mix = self._compute_once("mix", lambda: mix_channels(self.samples))
        channels = mix if offset else self._compute_once("centred", lambda: remove_offset(mix, self.rate))
        return self._compute_once(f"mono {rate} {channels is mix}", lambda: resample(channels, self.rate, rate))

    def require_rate(self, rate: int) -> None:
        """Refuse a recording that lacks frequencies that a model at `rate` relies on.

        Raises:
            CannotScore: the recording's rate is lower, and upsampling is not allowed.
        """
        if self.rate < rate and not self.allow_upsampling:
            raise CannotScore(
                f"the recording's sampling rate is {self.rate} Hz, below the {rate} Hz required; the missing "
                "frequencies cannot be measured (--allow-upsampling, in Python allow_upsampling=True, scores it "
                "anyway)"
            )

    def speech(self) -> tuple[Span, ...]:
        """Return the spans of speech."""
        from podeval.audio.windows import Span

        return self.fact_from("voice_activity", tuple[Span, ...], lambda model: model.speech(self.mono()))

    def music(self) -> tuple[Span, ...]:
        """Return the spans of music, under speech or on its own."""
        from podeval.audio.windows import Span

        return self.fact_from("music_detector", tuple[Span, ...], lambda model: model.music(self.mono()))

    def derive(self, samples: Samples, rate: int, step: str, by: Any, notes: dict[str, Any]) -> Recording:
        """Create a recording that is derived from this one.

        Args:
            samples: shape (frames, channels).
            rate: sample rate in Hz.
            step: name of the processing step, which is part of the new content key.
            by: identity of the tool, which is also part of the key.
            notes: notes that its scores must mention.
        """
        return type(self)(
            samples,
            rate,
            derive_content(self.content, step, by),
            name=self.name,
            layout=self.layout,
            profile=self.profile,
            cache=self.cache,
            allow_upsampling=self.allow_upsampling,
            notes=notes,
        )

    def speech_track(self, source: Literal["auto", "mix"] = "auto") -> Recording:
        """Return the sound for speech metrics: this recording or, with `auto`, its speech stem if it has music.

        Raises:
            CannotScore: there is music but no speech, or the rate or the number of channels is not supported.
            ModelMissing: the music detector is not installed or, if there is music, the separator.
        """
        from podeval.recording.speech_track import has_music

        return self if source == "mix" or not has_music(self) else self.speech_stem()

    def through(self, rate: int) -> Recording:
        """Return this recording as if it had been stored at `rate` Hz; computed once.

        Raises:
            CannotScore: its rate is below that of the speech models, as for `mono`.
        """
        self.require_rate(MODEL_RATE)
        if rate == self.rate:
            return self
        return self._compute_once(
            f"through {rate}",
            lambda: self.derive(
                resample(self.samples, self.rate, rate), rate, "through", rate, {**self.notes, "through_rate": rate}
            ),
        )

    def speech_stem(self) -> Recording:
        """Return the speech without music as a separate recording; raises the same errors as `speech_track`."""
        from podeval.recording.speech_track import separate_speech_stem

        return self._compute_once("speech stem", lambda: separate_speech_stem(self))

    def stems(self) -> Stems:
        """Return the speech and everything else as stems, which are computed on first use and not stored on disk.

        A rate below the separator's is upsampled even if `allow_upsampling` is off, because a band that is empty in the
        mix stays empty in both stems. Code that measures the stems themselves checks the rate first.

        Raises:
            CannotScore: the recording has more than two channels.
            ModelMissing: the profile has no separator, or it is not installed.
        """
        from podeval.recording.speech_track import separate_stems

        return self._compute_once("stems", lambda: separate_stems(self))

    def transcript(self, language: str | None = None) -> Transcript:
        """Return the transcript with word times; if `language` is None, in the language that the transcriber detects.

        If the detected language is requested later, the existing transcription is returned.
        """
        from podeval.models.interfaces import Transcript

        # One thread transcribes at a time, because two requests may turn out to be for the same language.
        with self._locks.setdefault("transcripts", RLock()):
            same = self._find_transcript(language)
            if same is None:
                same = self.fact_from(
                    "transcriber", Transcript, lambda m: m.transcribe(self.mono(), language), language=language
                )
                self._transcripts[language] = same
            return same

    def _find_transcript(self, language: str | None) -> Transcript | None:
        """Return the existing transcript in a language, whether it was requested or detected."""
        if language in self._transcripts or not self._transcripts:
            return self._transcripts.get(language)
        if language is not None:
            detected = self._transcripts.get(None)
            return detected if detected and detected.language == language else None
        detected_language = self.fact_from(
            "transcriber", str, lambda model: model.detect_language(self.mono()), question="language"
        )
        return self._transcripts.get(detected_language)

    def loudness(self) -> Loudness:
        """Return the loudness, overall and over time; raises the same errors as `podeval.audio.loudness.measure`."""
        from podeval.audio.loudness import measure

        return self._compute_once("loudness", lambda: measure(self.samples, self.rate, self.layout))

    def prosody(self) -> VoiceContour:
        """Return pitch and level over time, cached in memory and on disk; raises `ModelMissing` without librosa."""
        from podeval.audio.prosody import VoiceContour, measure_prosody

        librosa = find_version("librosa")
        upsampled = self.rate < MODEL_RATE
        key = Cache.key(self.content, "prosody", method=_PROSODY_METHOD, librosa=librosa, upsampled=upsampled)

        def read(payload: bytes) -> VoiceContour:
            pitch, level = load_array(payload)
            return VoiceContour(pitch, level)

        def write(contour: VoiceContour) -> bytes:
            return dump_array(np.stack([contour.pitch, contour.level]))

        return self._load_or_make(key, read, write, lambda: measure_prosody(self.mono()))

    def diarization(self) -> tuple[SpeakerTurn, ...]:
        """Return the speakers with their times, based only on the similarity of voices."""
        from podeval.models.interfaces import SpeakerTurn

        return self.fact_from("diarizer", tuple[SpeakerTurn, ...], lambda model: model.diarize(self.mono()))

    def embeddings(self, clips: Sequence[Clip]) -> NDArray[np.float32]:
        """Return speaker embeddings of clips, which are spans joined end to end; shape (clips, dimensions)."""
        from podeval.recording.speech_track import JoinedClips

        samples = self.mono()
        bounds = [[(round(span.start * MODEL_RATE), round(span.end * MODEL_RATE)) for span in clip] for clip in clips]
        digest = hashlib.sha256(repr(bounds).encode()).hexdigest()
        return self.array_from("speaker_encoder", lambda model: model.embed(JoinedClips(samples, bounds)), clips=digest)

    def voices(self, turns: Sequence[SpeakerTurn], *windows: float) -> tuple[SpeakerVoice, ...]:
        """Return the speakers of these turns in order of appearance; those with less than 0.5 s of speech are left out.

        Speech is joined and divided into windows, by default of 3 s every 2 s, or used whole if it is shorter.
        """
        from podeval.recording.speech_track import find_voices

        return find_voices(turns, self.duration, self.embeddings, *windows)

    def _compute_once(self, name: str, make: Callable[[], T]) -> T:
        """Return a fact; on first use, it is computed while other threads wait for it."""
        # `setdefault` is atomic.
        with self._locks.setdefault(name, RLock()):
            if name not in self._facts:
                self._facts[name] = make()
            return cast("T", self._facts[name])

    def fact_from(self, job: str, form: type[T], ask: Callable[[Any], T], **parameters: Any) -> T:
        """Return a fact about this recording from a job's model, stored as JSON; for arrays, see `array_from`."""
        from pydantic import TypeAdapter

        stored: TypeAdapter[T] = TypeAdapter(form)
        return self._ask(job, ask, stored.validate_json, stored.dump_json, parameters)

    def array_from(self, job: str, ask: Callable[[Any], NDArray[Any]], **parameters: Any) -> NDArray[Any]:
        """Return the output of a job's model for this recording as an array, cached in memory and on disk.

        Args:
            job: the job whose model is loaded if the result is not cached.
            ask: function that takes the model and returns the array.
            parameters: everything except the recording and the model that can change the result.
        """
        return self._ask(job, ask, load_array, dump_array, parameters)

    def _ask(
        self,
        job: str,
        ask: Callable[[Any], T],
        read: Callable[[bytes], T],
        write: Callable[[T], bytes],
        parameters: dict[str, Any],
    ) -> T:
        """Return the result of a job's model for this recording, from the cache if possible."""
        from podeval.models.registry import get_card, use

        def make() -> T:
            with use(job, self.profile) as model:
                return ask(model)

        identity = get_card(job, self.profile).identity
        upsampled = self.allow_upsampling and self.rate < MODEL_RATE
        key = Cache.key(self.content, job, model=identity, upsampled=upsampled, **parameters)
        return self._load_or_make(key, read, write, make)

    def _load_or_make(
        self, key: str, read: Callable[[bytes], T], write: Callable[[T], bytes], make: Callable[[], T]
    ) -> T:
        """Return a fact from memory or from disk, or compute it and store it in both."""

        def compute() -> T:
            if (payload := self.cache.get(key)) is not None:
                # The entry is intact, but in the format of a different version, so it is computed again.
                with contextlib.suppress(ValueError, EOFError):
                    return read(payload)
            fact = make()
            self.cache.put(key, write(fact))
            return fact

        return self._compute_once(key, compute)


@dataclass
class AudioSource:
    """A recording that can be opened; it is decoded only when necessary.

    Attributes:
        name: name of the recording in results.
        content: identity of the content, under which its facts are stored; for a file, the SHA-256 of its bytes.
        audio: the path or bytes of a file, or the recording itself.
        options: the options of `Recording.open`.
    """

    name: str
    content: str
    audio: Path | bytes | Recording
    options: Mapping[str, Any]

    @cached_property
    def recording(self) -> Recording:
        """The recording, decoded on first use.

        Raises:
            BadAudio: it cannot be read as audio.
        """
        if isinstance(self.audio, Recording):
            return self.audio
        if isinstance(self.audio, bytes):
            return Recording.from_bytes(self.audio, **self.options)
        return Recording.open(self.audio, **self.options)


def read_source(source: Any, *, name: str = "", **options: Any) -> AudioSource:
    """Identify a recording by its content, without decoding a file.

    Args:
        source: audio in any form that `read_audio` accepts, a `Recording`, or a result of this function.
        name: name of the recording; for a path, the default is the path.
        options: the options of `Recording.open`.

    Raises:
        BadInput: the source has none of these forms, or is a file that does not exist, is empty or is a directory.
        MissingInput: there is no recording.
    """
    if isinstance(source, AudioSource):
        return source
    if isinstance(source, Recording):
        return AudioSource(name or source.name, source.content, source, options)
    # A text such as `NA` is a path if there is a file with that name, and a missing value otherwise.
    is_path = isinstance(source, os.PathLike) or (isinstance(source, str) and os.path.isfile(source))
    audio = Path(source) if is_path else read_audio(source)
    if audio is None:
        raise MissingInput("recording")
    if isinstance(audio, Path):
        # Identify the file by its content; if it cannot be read, opening it later raises the error.
        return AudioSource(name or str(source if isinstance(source, str) else audio), hash_file(audio), audio, options)
    name = name or read_name(source) or "recording"
    if isinstance(audio, bytes):
        return AudioSource(name, hashlib.sha256(audio).hexdigest(), audio, options)
    recording = Recording.from_samples(*audio, name=name, **options)
    return AudioSource(name, recording.content, recording, options)


def list_recordings(source: Any) -> list[Any] | None:
    """List the recordings in a folder or a collection; return None for a single recording.

    Raises:
        BadInput: the folder or collection contains no recordings, or samples lack their rate.
    """
    if not isinstance(source, str | Path):
        return list_collection(source)
    # Unlike `Path.is_dir`, this accepts names that are too long.
    if not os.path.isdir(source):
        return None
    folder = Path(source)
    files = sorted(path for path in folder.rglob("*") if is_audio_name(path))
    if not files:
        suffixes = ", ".join(sorted(suffix.removeprefix(".") for suffix in AUDIO_SUFFIXES))
        raise BadInput(f"{folder} contains no recordings, that is, no files with these extensions: {suffixes}")
    return list(files)


def is_audio_name(path: Path) -> bool:
    """Return whether a file's name has the suffix of a recording and is not hidden."""
    return path.suffix.lower() in AUDIO_SUFFIXES and not path.name.startswith(".") and path.is_file()
