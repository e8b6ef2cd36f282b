"""Decode a file into samples without reading other files, limit memory use, and report damage.

WAV, AIFF and FLAC are read by libsndfile, everything else by FFmpeg's libraries as bundled with PyAV. The reader is
chosen from a list of allowed containers by the file's own bytes, never by its name or by a decoder's probing.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.audio.container import (
    MOST_PARTS,
    NOTED_SHORTFALL,
    TIMED,
    Container,
    PartReader,
    measure_rest,
    name_container,
    read_at,
    read_riff,
    skip_id3,
)
from podeval.audio.samples import BLOCK_FRAMES, MEMORY_BYTES, SampleBuffer, is_like_noise
from podeval.errors import BadAudio, find_address

if TYPE_CHECKING:
    from av import AudioFrame, AudioStream
    from av.container import InputContainer

_AV_CODECS = frozenset(
    {"aac", "ac3", "alac", "eac3", "flac", "libopus", "mp2", "mp2float", "mp3", "mp3float", "opus", "vorbis"}
    | {"adpcm_ima_wav", "adpcm_ms", "pcm_alaw", "pcm_mulaw", "pcm_s8", "pcm_u8"}
    | {f"pcm_{sample}{order}" for sample in ("f32", "f64", "s16", "s24", "s32") for order in ("be", "le")}
)
_NOTED_GAP = 0.03
_LONG = 60.0
_READ_AHEAD = 8192
_TAG = re.compile(rb"ID3[\x02-\x04]\0|APETAGEX")
_REMEDY = "export or download the file again"
NOISE = "the samples are as random as noise: if this should be speech, the header states the wrong sample format"


@dataclass(frozen=True)
class DecodeLimits:
    """Limits that protect against files that expand to far more data than they contain.

    Attributes:
        channels: maximum number of channels.
        min_rate: minimum sample rate in Hz.
        max_rate: maximum sample rate in Hz.
        seconds: maximum duration.
        total_bytes: maximum number of bytes of decoded float32 samples.
        memory_bytes: larger recordings are stored in a temporary file instead of memory.
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
        samples: float32 `(frames, channels)`, an `np.memmap` if large; full scale is ±1, and stored values beyond it
            are preserved.
        rate: sample rate in Hz.
        layout: FFmpeg's name for the channel layout ("mono", "stereo", "5.1"), or None if the file does not name one.
        container: wav, flac, ogg, mp3, aac, aiff, mp4 (also M4A and MOV) or matroska (also WebM).
        codec: name of the codec, for example pcm_16, float, flac, vorbis, opus, mp3, aac.
        note: a sentence about the file for readers of a score, or None.
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


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading, without blocking on a pipe or accessing a device.

    Raises:
        BadAudio: the path does not exist, cannot be read, or is a directory, a pipe, a device or an empty file.
    """
    name = repr(str(path))
    try:
        _refuse_irregular(name, os.stat(path).st_mode)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags), "rb")
    except FileNotFoundError:
        if address := find_address(path):
            raise BadAudio(
                f"{address} is a web address, which podeval does not fetch: download the file first."
            ) from None
        raise BadAudio(f"{name} does not exist: check the path.") from None
    except PermissionError:
        raise BadAudio(f"the current user may not read {name}: change its permissions.") from None
    except (OSError, ValueError) as error:
        raise BadAudio(f"{name} cannot be opened ({error}): check the path.") from error
    try:
        # Check the opened file again: the file at this path may have been replaced since the first check.
        status = os.fstat(file.fileno())
        _refuse_irregular(name, status.st_mode)
        if status.st_size == 0:
            raise BadAudio(f"{name} is empty (0 bytes): export or download it again.")
    except BadAudio:
        file.close()
        raise
    return file


def identify(file: BinaryIO, path: Path) -> Container:
    """Recognise a file's container by its magic bytes, find all the audio data in it, and read the stated length.

    Args:
        file: an open, seekable file.
        path: the file's path, used only in messages.

    Raises:
        BadAudio: podeval cannot read this container, or files of different kinds are joined; the message describes the
            file.
    """
    size = file.seek(0, os.SEEK_END)
    name, start = name_container(file, 0, size)
    if name in ("wav", "aiff"):
        container = read_riff(file, size, name, path)
    else:
        from podeval.audio.compressed import describe_refused, find_parts

        if name is None:
            raise BadAudio(f"{str(path)!r} {describe_refused(read_at(file, 0, 4096))}.")
        container = find_parts(file, name, start, size, path)
    if len(container.parts) > MOST_PARTS:
        raise BadAudio(f"{str(path)!r} has more than {MOST_PARTS:,} parts: join their audio into one file.")
    return container


def _refuse_irregular(name: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
    raise BadAudio(f"{name} is {kind}, not an audio file: give the path of a file.")


def decode(path: Path, *, limits: DecodeLimits = DEFAULT_LIMITS) -> Decoded:
    """Decode an audio file, or the first audio stream of a video, at its own sample rate and with all its channels.

    Opus is decoded at its internal rate of 48 kHz. Channels are in WAV order (left, right, centre, LFE, …).

    Args:
        path: a regular file or a link to one.
        limits: limits on the decoded size, and the size above which samples are stored on disk.

    Raises:
        BadAudio: the file is missing, not audio, damaged, shorter than its header states, or too large for the limits.
        PodevalError: a large recording does not fit on the disk for temporary files.
    """
    path = Path(path)
    with open_regular(path) as file:
        container = identify(file, path)
        sink = _Sink(path, limits, container)
        for part in container.parts:
            before = sink.frames
            if container.reader == "av" or not _read_sndfile(PartReader(file, part), sink):
                _read_av(PartReader(file, part), sink)
            if before and sink.frames == before:
                sink.damage = sink.damage or f"no audio after byte {part.start}"
            if sink.damage:
                break
        size = file.seek(0, os.SEEK_END)
    return sink.finish(size)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal.

    Raises:
        BadAudio: the file is missing, not a regular file, unreadable or empty.
    """
    with open_regular(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Sink:
    """Collects decoded blocks, enforces the limits, and finally checks that the file was complete."""

    def __init__(self, path: Path, limits: DecodeLimits, container: Container) -> None:
        self.path = path
        self._limits = limits
        self._buffer: SampleBuffer | None = None
        self._span: float | None = None
        self._expected = 0.0
        self.container = container
        self.rate = self.channels = 0
        self.codec = ""
        self.layout: str | None = None
        self.notes: list[str] = [container.note] if container.note else []
        self.damage: str | None = None
        self.packets = self.packet_bytes = self.lost_packets = self.lost_bytes = 0
        self.unread = container.unread

    @property
    def frames(self) -> int:
        return self._buffer.frames if self._buffer is not None else 0

    @property
    def seconds(self) -> float:
        return self.frames / max(1, self.rate)

    def refuse(self, what: str) -> BadAudio:
        return BadAudio(f"{str(self.path)!r} {what}.")

    def open(self, rate: int, channels: int, expected: float) -> None:
        """Start a part.

        Args:
            rate: the sample rate of the part in Hz.
            channels: the number of its channels.
            expected: the duration of the part in seconds; 0 if unknown.
        """
        limits, container = self._limits, self.container
        self._expected = self.seconds + expected
        if self._buffer is not None and (rate, channels) != (self.rate, self.channels):
            joined = f"consists of {container.joined} joined {container.name} files and " * (container.joined > 1)
            raise self.refuse(
                f"{joined}changes from {self.rate} Hz, {self.channels} channels to {rate} Hz, {channels} channels "
                f"at {self.seconds:.2f} s: convert it to one rate and number of channels"
            )
        if not limits.min_rate <= rate <= limits.max_rate:
            raise self.refuse(
                f"has a sampling rate of {rate} Hz, outside the range of {limits.min_rate} to {limits.max_rate} Hz: "
                f"{_REMEDY}"
            )
        if not 1 <= channels <= limits.channels:
            raise self.refuse(f"has {channels} channels, outside the range of 1 to {limits.channels}: {_REMEDY}")
        if self._buffer is None:
            self.rate, self.channels = rate, channels
            self._buffer = SampleBuffer(channels, memory_bytes=limits.memory_bytes)

    def append(self, block: NDArray[np.float32]) -> None:
        if self._buffer is None:
            raise RuntimeError("append() before open()")
        self._buffer.append(block)
        if self._expected > _LONG:
            progress.report("decoding", min(self.seconds, self._expected), self._expected)
        if self.frames > self._limits.seconds * self.rate:
            raise self.refuse(f"is longer than {self._limits.seconds / 3600:g} hours: split it into shorter files")
        if self._buffer.nbytes > self._limits.total_bytes:
            raise self.refuse(
                f"decodes to more than {self._limits.total_bytes / 2**30:g} GiB of samples: split it into shorter files"
            )

    def span(self, seconds: float) -> None:
        """Add the time span that a part's timestamps cover, including gaps."""
        self._span = seconds + (self._span or 0.0)

    def finish(self, size: int) -> Decoded:
        container = self.container
        if self._buffer is None or not self.frames:
            raise self.refuse(f"{self._describe_no_audio(size)}: {_REMEDY}")
        self._check_whole(size)
        self._check_packets()
        if self.damage:
            raise self.refuse(f"is damaged after {self.seconds:.2f} s ({self.damage}): {_REMEDY}")
        # The parts include bytes that libsndfile did not read.
        per_byte = self.seconds / max(1, container.nbytes - self.unread + container.unread)
        surplus, left_out, lacking = (n * per_byte for n in (container.surplus, self.unread, container.lacking))
        samples = self._buffer.finish()
        remarks = {
            f"{container.joined} joined {container.name} files, all of which are read": container.joined > 1,
            f"{lacking:.3f} s less audio than the headers of the joined files state": lacking >= 0.001,
            f"{surplus:.2f} s of audio after the stated end are read as well": surplus > 0,
            f"about {left_out:.3f} s after the end of the audio were left out": left_out >= 0.001,
            NOISE: container.name in ("wav", "aiff") and is_like_noise(samples),
        }
        self.notes += [remark for remark, applies in remarks.items() if applies]
        return Decoded(
            samples=samples,
            rate=self.rate,
            layout=self.layout or container.layout or {1: "mono", 2: "stereo"}.get(self.channels),
            container=container.name,
            codec=self.codec,
            note="; ".join(dict.fromkeys(self.notes)) or None,
        )

    def _describe_no_audio(self, size: int) -> str:
        stated = self.container.stated_bytes
        if stated is not None and stated > size:
            return f"is cut off ({size} of at least {stated} bytes) and nothing in it can be decoded"
        cause = f" ({self.damage})" if self.damage else ""
        return f"has the header of {self.container.name}, but contains no readable audio{cause}"

    def _check_whole(self, size: int) -> None:
        container, seconds = self.container, self.seconds
        stated, tolerance, least = container.stated_seconds, container.tolerance or NOTED_SHORTFALL, 0.5 / self.rate
        missing, source = container.estimate_missing(seconds, size), "header states"
        if stated is None and missing:
            # Estimate the length from the number of missing bytes, unless the timestamps indicate that more is missing.
            stated = max(seconds + missing, self._span or 0.0)
        elif stated is None and self._span is not None:
            # The clocks of live recordings drift from the sample count by a few hundred ppm.
            stated, tolerance, least = self._span, 0.1 + self._span / 1000, _NOTED_GAP
            source = "timestamps span"
        short = 0.0 if stated is None else stated - seconds
        if short > tolerance:
            raise self.refuse(
                f"is cut off or damaged: only {seconds:.2f} of about {stated:.2f} s could be read: {_REMEDY}"
            )
        # No header can state a length to within half a frame.
        if short > max(container.tolerance, least):
            self.notes.append(f"{max(0.001, short):.3f} s less audio than the {source}")
        elif -short > max(tolerance, NOTED_SHORTFALL) and container.stated_seconds is not None:
            self.notes.append(f"{seconds:.2f} s of audio, although the header states {stated:.2f} s")

    def _check_packets(self) -> None:
        # One or two errors are normal if streams were joined or the end was cut inside a packet.
        if self.lost_packets > max(2, self.packets // 100):
            self.damage = self.damage or f"{self.lost_packets} of {self.packets} packets cannot be decoded"
        elif self.lost_packets:
            seconds = self.seconds * self.lost_bytes / max(1, self.packet_bytes)
            self.notes.append(
                f"{self.lost_packets} of {self.packets} packets, about {seconds:.2f} s, could not be decoded and were "
                "left out"
            )


def _read_sndfile(file: PartReader, sink: _Sink) -> bool:
    """Read a part with libsndfile; return False if libsndfile does not support the codec."""
    import soundfile

    container = sink.container.name
    try:
        sound = soundfile.SoundFile(file)
    except (soundfile.LibsndfileError, OSError, ValueError, TypeError):
        return False
    with sound:
        seconds = sound.frames / sound.samplerate
        sink.open(sound.samplerate, sound.channels, seconds)
        sink.codec = "flac" if container == "flac" else sound.subtype.lower()
        if container == "ogg":
            sink.span(seconds)
        # If a FLAC stream ends abruptly within a block, libsndfile loses the whole block.
        frames = 4_096 if container == "flac" else BLOCK_FRAMES
        try:
            while len(block := sound.read(frames, dtype="float32", always_2d=True)):
                sink.append(block)
        except (soundfile.LibsndfileError, soundfile.SoundFileRuntimeError) as error:
            sink.damage = str(error).strip() or "the decoder lost its position"
    if container == "flac":
        # libsndfile stops at the length that the header states; the bytes that it read ahead may be a tag.
        part, at, size = cast("BinaryIO", file), file.tell(), file.seek(0, os.SEEK_END)
        near = max(skip_id3(part), at - _READ_AHEAD)
        tag = _TAG.search(read_at(part, near, 2 * _READ_AHEAD))
        if tag is not None:
            sink.unread += measure_rest(part, near + tag.start(), size, "flac", sink.path)
        elif read_at(part, at, BLOCK_FRAMES).strip(b"\0"):
            sink.unread += size - at
    return True


def _read_av(file: PartReader, sink: _Sink) -> None:
    """Read a part's first audio stream with PyAV, which is prevented from opening other files or using other codecs."""
    import av

    from podeval.audio.compressed import open_with_ffmpeg

    try:
        with open_with_ffmpeg(file, sink.container, codec_whitelist=",".join(sorted(_AV_CODECS))) as source:
            stream = _choose_audio_stream(source, sink)
            if stream is not None:
                _decode_stream(source, stream, sink)
    except (av.FFmpegError, ValueError, RuntimeError, NotImplementedError, OSError) as error:
        sink.damage = getattr(error, "strerror", None) or str(error)


def _choose_audio_stream(source: "InputContainer", sink: _Sink) -> "AudioStream | None":
    # Find the first audio stream, if there is one.
    streams = source.streams.audio
    if not streams and source.streams.video:
        raise sink.refuse("contains video but no audio: give a file with an audio stream")
    if not streams:
        return None
    stream = streams[0]
    # Only allowed codecs may be used.
    codec = stream.codec_context.name if stream.codec_context is not None else "unknown"
    if codec not in _AV_CODECS:
        raise sink.refuse(f"contains audio in the codec {codec}, which podeval does not support: convert it to FLAC")
    if len(streams) > 1:
        sink.notes.append(f"the first of {len(streams)} audio streams is used")
    sink.codec = codec.removesuffix("float")
    return stream


def _decode_stream(source: "InputContainer", stream: "AudioStream", sink: _Sink) -> None:
    import av

    expected = source.duration / av.time_base if source.duration else 0.0
    packer = av.AudioResampler(format="flt")
    before, kind, begin, span = sink.seconds, (0, 0), None, 0.0
    for packet in source.demux(stream):
        sink.packets += 1
        sink.packet_bytes += packet.size
        try:
            frames = packet.decode()
        except av.FFmpegError:
            # A tag between joined files is not sound.
            if bytes(packet)[:3] != b"ID3":
                sink.lost_packets += 1
                sink.lost_bytes += packet.size
            continue
        for frame in frames:
            if kind != (frame.sample_rate, frame.layout.nb_channels):
                kind = (frame.sample_rate, frame.layout.nb_channels)
                sink.open(*kind, expected)
                sink.layout = None if frame.layout.name.endswith("channels") else frame.layout.name
            if frame.pts is not None and frame.time_base is not None:
                at = float(frame.pts * frame.time_base)
                begin = at if begin is None else begin
                span = max(span, at - begin + frame.samples / frame.sample_rate)
            # PyAV 18 crashes when it makes an array from more than seven planes; a packed frame has only one plane.
            many_planes = frame.format.is_planar and sink.channels > 7
            for readable in packer.resample(frame) if many_planes else (frame,):
                sink.append(_to_floats(readable, sink.channels))
    if sink.container.name in TIMED:
        ends, start = (float((ticks or 0) * (stream.time_base or 0)) for ticks in (stream.duration, stream.start_time))
        # Matroska states the length of its longest stream.
        stated = {"mp4": ends, "matroska": expected * (len(source.streams) == 1)}.get(sink.container.name, 0.0)
        # A fragment states its end time, which includes the time before it; an earlier part may already contain that
        # time.
        sink.span(max(span, stated - max(0.0, min(before, start))))


def _to_floats(frame: "AudioFrame", channels: int) -> NDArray[np.float32]:
    """Return the samples of a frame as float32 `(frames, channels)`; integer samples are scaled to ±1."""
    raw = frame.to_ndarray()
    rows = raw.T if frame.format.is_planar else raw.reshape(-1, channels)
    if rows.dtype.kind == "f":
        return np.asarray(rows, dtype=np.float32)
    full_scale = 2.0 ** (8 * rows.dtype.itemsize - 1)
    offset = full_scale if rows.dtype.kind == "u" else 0.0
    return np.asarray((rows.astype(np.float64) - offset) / full_scale, dtype=np.float32)
