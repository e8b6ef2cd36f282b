"""Decodes a file into samples: reads no other file, bounds the memory used, and reports damage.

WAV, AIFF and FLAC are read by libsndfile, everything else by FFmpeg's libraries as bundled with PyAV. The choice
depends on the file's own bytes (`podeval.audio.formats.container`), never on its name or on probing.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.audio.formats.container import Container, identify, open_regular
from podeval.audio.sample_buffer import BLOCK_FRAMES, MEMORY_BYTES, SampleBuffer
from podeval.errors import BadAudio

if TYPE_CHECKING:
    from av import AudioFrame, AudioStream
    from av.container import InputContainer

_SNDFILE_FORMATS = {"wav": ("WAV", "WAVEX", "RF64"), "aiff": ("AIFF",), "flac": ("FLAC",), "ogg": ("OGG",)}
_AV_CODECS = frozenset(
    {"aac", "ac3", "alac", "eac3", "flac", "libopus", "mp2", "mp2float", "mp3", "mp3float", "opus", "vorbis"}
    | {"adpcm_ima_wav", "adpcm_ms", "pcm_alaw", "pcm_mulaw", "pcm_s8", "pcm_u8"}
    | {f"pcm_{sample}{order}" for sample in ("f32", "f64", "s16", "s24", "s32") for order in ("be", "le")}
)
_TIMED = ("ogg", "matroska", "mp4")
_NOTED_GAP = 0.03
_LONG = 60.0
_UNKNOWN = 2**50
_REMEDY = "export or download the file again"


@dataclass(frozen=True)
class DecodeLimits:
    """Limits that protect against files which decode to far more data than they hold.

    Attributes:
        channels: maximum number of channels.
        min_rate: minimum sample rate, Hz.
        max_rate: maximum sample rate, Hz.
        seconds: maximum duration.
        total_bytes: maximum number of bytes of decoded float32 samples.
        memory_bytes: larger recordings are held in a temporary file instead of memory.
    """

    channels: int = 64
    min_rate: int = 1_000
    max_rate: int = 768_000
    seconds: float = 24 * 3600.0
    total_bytes: int = 64 * 2**30
    memory_bytes: int = MEMORY_BYTES


DEFAULT_LIMITS = DecodeLimits()


@dataclass(frozen=True, eq=False)
class Decoded:
    """The samples of one audio file.

    Attributes:
        samples: float32 `(frames, channels)`; full scale is ±1, and stored values beyond it are kept; an `np.memmap` if
            large.
        rate: sample rate, Hz.
        layout: channel layout by FFmpeg's name ("mono", "stereo", "5.1"), or None if the file does not name one.
        container: wav, flac, ogg, mp3, aac, aiff, mp4 (also M4A and MOV) or matroska (also WebM).
        codec: for example pcm_16, float, flac, vorbis, opus, mp3, aac.
        note: what a reader of a score should know about the file, or None.
    """

    samples: NDArray[np.float32]
    rate: int
    layout: str | None
    container: str
    codec: str
    note: str | None

    @property
    def frames(self) -> int:
        """Number of samples per channel."""
        return int(self.samples.shape[0])

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self.samples.shape[1])

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.frames / self.rate


def decode(path: Path, *, limits: DecodeLimits = DEFAULT_LIMITS) -> Decoded:
    """Decode an audio file, or the first audio stream of a video, at its own sample rate and with all its channels.

    Opus is decoded at its internal rate of 48 kHz. Channels are in WAV order (left, right, centre, LFE, …).

    Args:
        path: a regular file or a link to one.
        limits: limits on the decoded size, and the size from which samples are held on disk.

    Raises:
        BadAudio: the file is missing, not audio, damaged, shorter than its header states, or beyond the limits.
        PodevalError: a large recording does not fit on the disk that holds temporary files.
    """
    path = Path(path)
    with open_regular(path) as file:
        container = identify(file, path)
        file.seek(0)
        sink = _Sink(path, limits)
        if container.reader == "av" or not _read_sndfile(file, container, sink):
            file.seek(0)
            _read_av(file, container, sink)
        size = file.seek(0, os.SEEK_END)
    return sink.finish(container, size)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal.

    Raises:
        BadAudio: the file is missing, not a regular file, unreadable, or empty.
    """
    with open_regular(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Sink:
    """Collects decoded blocks, enforces the limits, and finally checks that the file was complete."""

    def __init__(self, path: Path, limits: DecodeLimits) -> None:
        self._name = repr(str(path))
        self._limits = limits
        self._buffer: SampleBuffer | None = None
        self.rate = 0
        self.channels = 0
        self.codec = ""
        self.layout: str | None = None
        self.notes: list[str] = []
        self.damage: str | None = None
        self.expected = 0.0
        """Expected duration in seconds, 0 if unknown."""
        self._span: float | None = None

    @property
    def frames(self) -> int:
        return self._buffer.frames if self._buffer is not None else 0

    def refuse(self, what: str) -> BadAudio:
        return BadAudio(f"{self._name} {what}.")

    def open(self, rate: int, channels: int) -> None:
        limits = self._limits
        if not limits.min_rate <= rate <= limits.max_rate:
            raise self.refuse(
                f"has a sampling rate of {rate} Hz, outside {limits.min_rate} to {limits.max_rate} Hz: {_REMEDY}"
            )
        if not 1 <= channels <= limits.channels:
            raise self.refuse(f"has {channels} channels, outside 1 to {limits.channels}: {_REMEDY}")
        self.rate, self.channels = rate, channels
        self._buffer = SampleBuffer(channels, memory_bytes=limits.memory_bytes)

    def append(self, block: NDArray[np.float32]) -> None:
        if self._buffer is None:
            raise RuntimeError("append() before open()")
        self._buffer.append(block)
        if self.expected > _LONG:
            progress.report("decoding", min(self.frames / self.rate, self.expected), self.expected)
        if self.frames > self._limits.seconds * self.rate:
            raise self.refuse(f"is longer than {self._limits.seconds / 3600:g} hours: split it")
        if self._buffer.nbytes > self._limits.total_bytes:
            raise self.refuse(f"decodes to more than {self._limits.total_bytes / 2**30:g} GiB: split it")

    def span(self, seconds: float) -> None:
        """Record the time that the stream's timestamps cover, gaps included."""
        self._span = seconds

    def finish(self, container: Container, size: int) -> Decoded:
        if self._buffer is None or not self.frames:
            raise self.refuse(f"{self._describe_no_audio(container, size)}: {_REMEDY}")
        seconds = self.frames / self.rate
        self._check_whole(container, seconds, size)
        if self.damage:
            raise self.refuse(f"is damaged after {seconds:.2f} s ({self.damage}): {_REMEDY}")
        notes = [*([container.note] if container.note else []), *self.notes]
        return Decoded(
            samples=self._buffer.finish(),
            rate=self.rate,
            layout=self.layout or container.layout or {1: "mono", 2: "stereo"}.get(self.channels),
            container=container.name,
            codec=self.codec,
            note="; ".join(notes) or None,
        )

    def _describe_no_audio(self, container: Container, size: int) -> str:
        if container.stated_bytes is not None and container.stated_bytes > size:
            return f"is cut off ({size} of at least {container.stated_bytes} bytes) and nothing in it can be decoded"
        cause = f" ({self.damage})" if self.damage else ""
        return f"is {container.name} by its header, but holds no readable audio{cause}"

    def _check_whole(self, container: Container, seconds: float, size: int) -> None:
        end = container.stated_bytes
        stated, tolerance = container.stated_seconds, container.tolerance
        if stated is None and end is not None and end > size:
            # Estimated from the share of bytes that exist, unless the timestamps say more.
            stated = max(seconds * end / size, self._span or 0.0)
        elif stated is None and self._span is not None:
            # Clocks of live recordings drift from their sample count by some hundred ppm.
            stated, tolerance = self._span, 0.1 + self._span / 1000
            if tolerance >= stated - seconds > _NOTED_GAP:
                self.notes.append(f"{stated - seconds:.2f} s less audio than the timestamps span")
        # Half a frame is below what any header can state.
        if stated is not None and stated - seconds > max(tolerance, 0.5 / self.rate):
            raise self.refuse(
                f"is cut off or damaged: only {seconds:.2f} of about {stated:.2f} s could be read: {_REMEDY}"
            )


def _read_sndfile(file: BinaryIO, container: Container, sink: _Sink) -> bool:
    """Read the file with libsndfile; return False if libsndfile does not support the codec."""
    import soundfile

    try:
        sound = soundfile.SoundFile(_SeekingSafely(file))
    except (soundfile.LibsndfileError, OSError, ValueError, TypeError):
        return False
    with sound:
        if sound.format not in _SNDFILE_FORMATS[container.name]:
            raise sink.refuse(f"looks like {container.name}, but is {sound.format}: {_REMEDY}")
        sink.open(sound.samplerate, sound.channels)
        sink.codec = "flac" if container.name == "flac" else sound.subtype.lower()
        # If a FLAC file does not state its length, libsndfile returns an impossible number.
        sink.expected = sound.frames / sound.samplerate if sound.frames < _UNKNOWN else 0.0
        if container.name == "ogg":
            sink.span(sound.frames / sound.samplerate)
        # libsndfile loses the whole block in which a FLAC stream breaks off.
        frames = 4_096 if container.name == "flac" else BLOCK_FRAMES
        try:
            while len(block := sound.read(frames, dtype="float32", always_2d=True)):
                sink.append(block)
        except (soundfile.LibsndfileError, soundfile.SoundFileRuntimeError) as error:
            sink.damage = str(error).strip() or "the decoder lost track"
    return True


class _SeekingSafely:
    """An unnamed file that ignores the impossible seeks of a damaged header instead of raising inside libsndfile."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.read = file.read
        self.tell = file.tell

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        try:
            return self._file.seek(offset, whence)
        except (OSError, ValueError, OverflowError):
            return self._file.tell()


def _read_av(file: BinaryIO, container: Container, sink: _Sink) -> None:
    """Read the first audio stream with PyAV, which is kept from opening other files or using other codecs."""
    import av

    options = {"protocol_whitelist": "none", "codec_whitelist": ",".join(sorted(_AV_CODECS))}
    if container.demuxer == "mov":
        options |= {"enable_drefs": "0", "use_absolute_path": "0"}
    try:
        with av.open(
            file,
            mode="r",
            format=container.demuxer,
            container_options=options,
            metadata_errors="replace",
            io_open=_refuse_to_open,
        ) as source:
            stream = _choose_audio_stream(source, sink)
            if stream is not None:
                _decode_stream(source, stream, container, sink)
    except (av.FFmpegError, ValueError, RuntimeError, NotImplementedError, OSError) as error:
        sink.damage = getattr(error, "strerror", None) or str(error)


def _refuse_to_open(url: str, flags: int, options: dict[str, str]) -> BinaryIO:
    raise PermissionError(f"an audio file tried to open {url!r}")


def _choose_audio_stream(source: "InputContainer", sink: _Sink) -> "AudioStream | None":
    # The first audio stream, if there is one.
    streams = source.streams.audio
    if not streams and source.streams.video:
        raise sink.refuse("holds video but no audio: give a file with an audio stream")
    if not streams:
        return None
    stream = streams[0]
    # Its codec has to be one of those that are allowed.
    codec = stream.codec_context.name if stream.codec_context is not None else "unknown"
    if codec not in _AV_CODECS:
        raise sink.refuse(f"holds audio in the codec {codec}, which podeval does not read: convert it to FLAC")
    if len(streams) > 1:
        sink.notes.append(f"the first of {len(streams)} audio streams is used")
    sink.codec = codec.removesuffix("float")
    return stream


def _decode_stream(source: "InputContainer", stream: "AudioStream", container: Container, sink: _Sink) -> None:
    import av

    sink.expected = source.duration / av.time_base if source.duration else 0.0
    packer = av.AudioResampler(format="flt")
    packets = damaged = 0
    clock = _Clock()
    for packet in source.demux(stream):
        packets += 1
        try:
            frames = packet.decode()
        except av.FFmpegError:
            damaged += 1
            continue
        for frame in frames:
            if not sink.rate:
                sink.open(frame.sample_rate, frame.layout.nb_channels)
                sink.layout = None if frame.layout.name.endswith("channels") else frame.layout.name
            elif (frame.sample_rate, frame.layout.nb_channels) != (sink.rate, sink.channels):
                raise sink.refuse(
                    f"changes from {sink.rate} Hz, {sink.channels} channels to {frame.sample_rate} Hz, "
                    f"{frame.layout.nb_channels} channels at {sink.frames / sink.rate:.2f} s: make it uniform"
                )
            clock.tick(frame)
            # PyAV 18 crashes when it makes an array of more than seven planes; a packed frame has one.
            many_planes = frame.format.is_planar and sink.channels > 7
            for readable in packer.resample(frame) if many_planes else (frame,):
                sink.append(_to_floats(readable, sink.channels))
    # One or two are normal if streams were joined or the end was cut inside a packet.
    if damaged > max(2, packets // 100):
        sink.damage = f"{damaged} of {packets} packets cannot be decoded"
    elif damaged:
        sink.notes.append(f"{damaged} of {packets} packets could not be decoded and were left out")
    if container.name in _TIMED:
        stated = stream.duration * stream.time_base if stream.duration and stream.time_base else 0
        sink.span(max(clock.seconds, float(stated) if container.name == "mp4" else 0.0))


class _Clock:
    """Measures the time that the timestamps of the decoded frames span."""

    def __init__(self) -> None:
        self._start: float | None = None
        self.seconds = 0.0

    def tick(self, frame: "AudioFrame") -> None:
        if frame.pts is None or frame.time_base is None:
            return
        at = float(frame.pts * frame.time_base)
        if self._start is None:
            self._start = at
        self.seconds = max(self.seconds, at - self._start + frame.samples / frame.sample_rate)


def _to_floats(frame: "AudioFrame", channels: int) -> NDArray[np.float32]:
    """Return the samples of a frame as float32 `(frames, channels)`; integer samples are scaled to ±1."""
    raw = frame.to_ndarray()
    rows = raw.T if frame.format.is_planar else raw.reshape(-1, channels)
    if rows.dtype.kind == "f":
        return np.asarray(rows, dtype=np.float32)
    full_scale = 2.0 ** (8 * rows.dtype.itemsize - 1)
    offset = full_scale if rows.dtype.kind == "u" else 0.0
    return np.asarray((rows.astype(np.float64) - offset) / full_scale, dtype=np.float32)
