"""Copies of recordings for playback, and their peaks, within a size limit; a copy reveals nothing but its sound.

Whatever its source, a copy is FLAC at 48 kHz with two channels, 16 bits and no tags: a listener who inspects the bytes
finds no name, no trace of the system's encoder, no revealing sample rate or number of channels, and no duration except
that of the passage. Two copies that are compared can be brought to the same loudness: the target, or less if either
would exceed -1 dBTP, so neither is clipped.
"""

import contextlib
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from podeval.audio.decode import decode, hash_file
from podeval.audio.samples import Samples, resample
from podeval.errors import BadInput, CannotScore, PodevalError
from podeval.recording.cache import Cache, open_default_cache

RATE = 48_000
"""Sample rate of every copy in Hz."""

PEAKS = 600
"""Number of peaks computed for a copy, for a waveform display."""

CEILING = -1.0
"""Maximum true peak after a gain, in dBTP (EBU R 128)."""

ROOM = 8 * 2**30
"""Maximum total size of the copies on disk, in bytes; the least recently used copies are deleted first."""

_STEP = 0.5
"""Step, in LU, between the levels of pairs that cannot be as loud as the target."""

_BLOCK = 2**18
_SEEKABLE = ("WAV", "WAVEX", "FLAC", "AIFF", "RF64")
_PRUNE_EVERY = 20
_LOCKS = 64
_SHORT = 600.0
"""Maximum length in seconds of a passage that is read without decoding the part before it."""

_OPUS_BITS = 128_000
"""Constant bit rate of Opus, in bits per second, at which listeners cannot distinguish speech and music from the
original."""

_BLOCK_HEADER = 4
_LARGEST_BLOCK = 2**24 - 1
_PADDING, _LAST = 1, 0x80


@dataclass(frozen=True)
class Stretch:
    """A passage of a recording, in seconds; an end of None means the recording's end.

    `content` is the SHA-256 of the file, if known.
    """

    source: Path
    start: float = 0.0
    end: float | None = None
    content: str = ""


@dataclass(frozen=True)
class Level:
    """Integrated loudness (LUFS, None if it cannot be measured) and true peak (dBTP) of a copy."""

    loudness: float | None
    true_peak: float


class Changed(BadInput):
    """The recording's file no longer has the expected hash."""

    def __init__(self, source: Path) -> None:
        super().__init__(f"{source} is no longer the recording that was added")
        self.source = source


class Playback:
    """Copies in a folder; usable by any number of threads and processes.

    Args:
        folder: the folder of the copies; safe to delete at any time.
        room: maximum size in bytes.
    """

    def __init__(self, folder: Path, room: int = ROOM) -> None:
        self._cache = Cache(folder, room)
        self._written = 0
        self._hashes: dict[tuple[int, ...], str] = {}
        """SHA-256 of files by their file system metadata, which change when a file is written or replaced."""
        # Creating a copy occupies a core; requests for existing copies do not wait for it.
        self._making = threading.BoundedSemaphore(max(1, (os.cpu_count() or 2) // 2))
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    @classmethod
    def default(cls) -> "Playback":
        """Return the copies in this user's cache."""
        return cls(open_default_cache().folder.parent / "playback")

    def copy(self, stretch: Stretch, gain: float = 0.0, seconds: float | None = None) -> Path:
        """Return the file with a copy of a passage; the file is created if necessary.

        Args:
            stretch: the passage of a recording.
            gain: gain that is applied, in dB.
            seconds: length of a copy for listeners who must not identify its source: silence is appended up to this
                length, and dither is added throughout, so neither the length nor the bytes are the same as in a copy
                that is played under its system's name.

        Raises:
            BadInput: there is no such recording or passage.
            Changed: the recording's file has changed; existing copies remain playable.
            PodevalError: there is no space for the copy.
        """
        hidden = {} if seconds is None else {"seconds": round(seconds, 3)}
        key = self._make_key(stretch, "copy", gain=round(gain, 2), **hidden)
        path = self._path(key, "flac")
        with self._lock_for(key):
            if not (path.is_file() and self._path(key, "json").is_file()):
                with self._making:
                    self._require_unchanged(stretch)
                    samples, chance = decode_standard(stretch), None
                    if seconds is not None:
                        # Pad the copy with silence to exactly that length, or cut off its end.
                        frames, chance = round(seconds * RATE), np.random.default_rng(int(key[-16:], 16))
                        padded = np.pad(_distinct(samples)[:frames], ((0, max(0, frames - len(samples))), (0, 0)))
                        samples = np.broadcast_to(padded, (frames, 2))
                    self._write(path, self._path(key, "json"), samples, gain, chance)
        return _mark_used(path)

    def pad(self, copy: Path, size: int) -> Path:
        """Return a file of this size with the same sound as a copy; the file is created if necessary.

        Args:
            copy: a file that `copy` returned.
            size: size in bytes, at least 4 bytes more than the copy has.
        """
        return self._derive(copy, f"{size}.flac", lambda path: path.write_bytes(pad_flac(copy.read_bytes(), size)))

    def compress(self, copy: Path) -> Path:
        """Return a copy as an Opus file, created if necessary; the file's size depends only on the copy's length."""
        return self._derive(copy, "opus", lambda path: write_opus(copy, path))

    def _derive(self, copy: Path, ending: str, write: Callable[[Path], object]) -> Path:
        """Return a file made from a copy and stored next to it; it is deleted with the copies of its recording."""
        path = copy.with_suffix(f".{ending}")
        with self._lock_for((copy.parent.name + copy.stem).rpartition("-")[2]):
            if not path.is_file():
                with self._making, _replacing(path) as partial:
                    write(partial)
        return _mark_used(path)

    def peaks(self, stretch: Stretch, gain: float = 0.0, seconds: float | None = None) -> list[float]:
        """Return the peak magnitudes of `PEAKS` equal parts of a copy, 0 to 1; fewer if the copy has fewer samples."""
        path = self.copy(stretch, gain, seconds).with_suffix(".json")
        return list(json.loads(path.read_text(encoding="utf-8")))

    def level(self, stretch: Stretch) -> Level:
        """Measure the level of a passage's copy without gain.

        Raises:
            BadInput: there is no such recording or passage.
            Changed: the recording's file has changed.
        """
        key = self._make_key(stretch, "level")
        path = self._path(key, "json")
        with self._lock_for(key):
            try:
                level = Level(*json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                with self._making:
                    self._require_unchanged(stretch)
                    level = measure_level(decode_standard(stretch))
                with contextlib.suppress(PodevalError), _replacing(path) as partial:
                    partial.write_text(json.dumps([level.loudness, level.true_peak]), encoding="utf-8")
        return level

    def delete_copies(self, contents: Iterable[str]) -> int:
        """Delete all copies of the files with these SHA-256 hashes; return the number of deleted files."""
        return self._cache.delete_about(contents)

    def _make_key(self, stretch: Stretch, fact: str, **more: float) -> str:
        content = stretch.content or hash_file(stretch.source)
        end = None if stretch.end is None else round(stretch.end, 4)
        return Cache.key(content, f"playback {fact}", start=round(stretch.start, 4), end=end, rate=RATE, **more)

    def _require_unchanged(self, stretch: Stretch) -> None:
        """Refuse to store changed audio under the hash of the original file."""
        if not stretch.content:
            return
        file_state: tuple[int, ...] = ()
        with contextlib.suppress(OSError):
            is_now = stretch.source.stat()
            file_state = (is_now.st_dev, is_now.st_ino, is_now.st_size, is_now.st_mtime_ns, is_now.st_ctime_ns)
        content = self._hashes.get(file_state)
        if content is None:
            content = self._hashes[file_state] = hash_file(stretch.source)
        if content != stretch.content:
            raise Changed(stretch.source)

    def _path(self, key: str, ending: str) -> Path:
        return self._cache.folder / key[:2] / f"{key[2:]}.{ending}"

    def _lock_for(self, key: str) -> threading.Lock:
        """Return a lock: one thread makes a copy while others wait for that copy (or, rarely, for a different one)."""
        return self._locks[int(key[:8], 16) % _LOCKS]

    def _write(
        self, path: Path, peaks: Path, samples: Samples, gain: float, chance: np.random.Generator | None
    ) -> None:
        heights = measure_peaks(samples)
        # The gain was chosen for a different passage (an excerpt of this passage); it must not clip this passage
        # either.
        factor = np.float32(min(10 ** (gain / 20), max(1.0, 1 / max(*heights, 1e-9))))
        with _replacing(path) as partial:
            with soundfile.SoundFile(partial, "w", RATE, 2, "PCM_16", format="FLAC") as file:
                distinct = _distinct(samples)
                for start in range(0, len(samples), _BLOCK):
                    block = np.asarray(distinct[start : start + _BLOCK]) * factor * np.float32(2**15)
                    if chance is not None:
                        # Add triangular dither of one 16-bit step, the same in both channels, so equal channels stay
                        # equal.
                        block = block + (chance.random((2, len(block), 1), dtype=np.float32) - 0.5).sum(axis=0)
                    steps = np.clip(np.rint(block), -(2**15), 2**15 - 1).astype(np.int16)
                    file.write(np.broadcast_to(steps, (len(steps), 2)))
            with _replacing(peaks) as partial_peaks:
                lower = [round(min(1.0, height * float(factor)), 4) for height in heights]
                partial_peaks.write_text(json.dumps(lower), encoding="utf-8")
        self._written += 1
        if self._written % _PRUNE_EVERY == 1:
            self._cache.prune()


def decode_standard(stretch: Stretch) -> Samples:
    """Decode a passage to 48 kHz and two channels, `(frames, 2)` float32; if there are more channels, each of the two
    contains the mean of all.

    Raises:
        BadInput: there is no such recording, or the passage is outside it.
    """
    samples, rate = _read(stretch)
    if not len(samples):
        raise BadInput(f"{stretch.source} has no sound after {stretch.start:.2f} s")
    if samples.shape[1] > 2:
        samples = samples.mean(axis=1, keepdims=True, dtype=np.float32)
    resampled = resample(samples, rate, RATE)
    return np.broadcast_to(resampled, (len(resampled), 2)) if resampled.shape[1] == 1 else resampled


def _distinct(samples: Samples) -> Samples:
    """Return the samples without channels that are views of the first one."""
    return samples if samples.strides[1] else samples[:, :1]


def measure_peaks(samples: Samples, count: int = PEAKS) -> list[float]:
    """Return the peak magnitude of each of `count` equal parts of `(frames, channels)` samples."""
    samples = _distinct(samples)
    bounds = np.linspace(0, len(samples), min(count, len(samples)) + 1).round().astype(int)
    up, down = (extreme.reduceat(samples, bounds[:-1], axis=0) for extreme in (np.maximum, np.minimum))
    return list(np.maximum(up, -down).max(axis=1).tolist())


def measure_level(samples: Samples) -> Level:
    """Measure the level of `(frames, 2)` samples at 48 kHz."""
    from podeval.audio import loudness

    try:
        measured = loudness.measure(samples, RATE, "stereo")
    except CannotScore:
        return Level(None, 0.0)
    return Level(measured.integrated, measured.true_peak)


def match_gains(a: Level, b: Level, target: float) -> tuple[float, float]:
    """Return the gains in dB that bring two passages to the same loudness; zero if the loudness of either cannot be
    measured.

    Args:
        a: level of the first passage.
        b: level of the second passage.
        target: target loudness in LUFS; lowered if either of them would exceed `CEILING`.
    """
    if a.loudness is None or b.loudness is None:
        return 0.0, 0.0
    most = min(side.loudness + CEILING - side.true_peak for side in (a, b) if side.loudness is not None)
    # Use steps if a peak sets the limit, because otherwise every pair would need its own copies.
    common = target if target <= most else math.floor(most / _STEP) * _STEP
    return common - a.loudness, common - b.loudness


def _read(stretch: Stretch) -> tuple[Samples, int]:
    if stretch.end is not None and stretch.end - stretch.start <= _SHORT:
        with contextlib.suppress(soundfile.SoundFileError), soundfile.SoundFile(stretch.source) as file:
            if file.format in _SEEKABLE:
                first, last = round(stretch.start * file.samplerate), round(stretch.end * file.samplerate)
                file.seek(min(first, file.frames))
                samples = file.read(max(0, last - first), dtype="float32", always_2d=True)
                return np.nan_to_num(samples, posinf=1.0, neginf=-1.0), int(file.samplerate)
    decoded = decode(stretch.source)
    last = decoded.frames if stretch.end is None else round(stretch.end * decoded.rate)
    return decoded.samples[round(stretch.start * decoded.rate) : last], decoded.rate


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file that replaces `path` when the block ends without an error.

    Raises:
        PodevalError: the file cannot be written.
    """
    partial = path.with_name(f".partial-{os.getpid()}-{threading.get_ident()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except (OSError, soundfile.SoundFileError) as error:
        raise PodevalError(
            f"the copy of a recording cannot be written to {path.parent.parent} ({error}); check whether the disk "
            f"is full"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _mark_used(path: Path) -> Path:
    """Mark a file as recently used, and return its path."""
    with contextlib.suppress(OSError):
        os.utime(path)
    return path


def pad_flac(content: bytes, size: int) -> bytes:
    """Return a FLAC file of exactly this size, with the same sound and a block of padding in its header.

    Args:
        content: a FLAC file.
        size: size in bytes, which must be larger than the file by at least 4 bytes and less than 16 MiB.

    Raises:
        BadInput: the file is not FLAC, or the size cannot be reached.
    """
    more = size - len(content) - _BLOCK_HEADER
    if content[:4] != b"fLaC" or not 0 <= more <= _LARGEST_BLOCK:
        raise BadInput(f"a FLAC file of {len(content)} bytes cannot be padded to {size} bytes")
    # Find the last block of the header; the padding follows it.
    at = 4
    while not content[at] & _LAST:
        at += _BLOCK_HEADER + int.from_bytes(content[at + 1 : at + 4], "big")
    end = at + _BLOCK_HEADER + int.from_bytes(content[at + 1 : at + 4], "big")
    head = bytearray(content[:end])
    head[at] &= ~_LAST & 0xFF
    padding = bytes([_PADDING | _LAST]) + more.to_bytes(3, "big") + bytes(more)
    return bytes(head) + padding + content[end:]


def find_sound(file: Path) -> int:
    """Return the offset at which a FLAC file's audio data begins, after the header and padding; 0 if it is not FLAC."""
    with file.open("rb") as flac:
        if flac.read(4) != b"fLaC":
            return 0
        head = b"\0"
        while not head[0] & _LAST:
            head = flac.read(_BLOCK_HEADER)
            flac.seek(int.from_bytes(head[1:], "big"), os.SEEK_CUR)
        return flac.tell()


def write_opus(source: Path, target: Path) -> None:
    """Write a FLAC file at 48 kHz as Ogg Opus at a constant bit rate, a second at a time.

    Args:
        source: the FLAC file with one or two channels.
        target: the Ogg Opus file, which is overwritten.
    """
    import av

    with soundfile.SoundFile(source) as sound, av.open(str(target), "w", format="ogg") as container:
        layout = "mono" if sound.channels == 1 else "stereo"
        options = {"vbr": "off", "application": "audio"}
        stream = container.add_stream("libopus", rate=RATE, layout=layout, options=options)
        stream.bit_rate = _OPUS_BITS
        at = 0
        for block in sound.blocks(RATE, dtype="float32", always_2d=True):
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block.reshape(1, -1)), "flt", layout)
            frame.sample_rate, frame.pts = RATE, at
            at += len(block)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
