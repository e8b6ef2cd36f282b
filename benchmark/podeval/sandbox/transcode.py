"""Transcodes untrusted audio files to FLAC, as a separate program that can run in isolation.

`python -m podeval.sandbox.transcode JOB.json` reads a `Job` and appends one line per file to `transcoded.jsonl`: the
new file, or the reason for refusing it. Samples keep 24 bits of precision; if samples exceed ±1, which FLAC cannot
store, a float WAV is written instead.

The same program, in a separate sandbox, reads the headers of feed episodes and decodes the sound from speech servers:
if untrusted bytes compromise the decoder, the damage is confined to that process.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval import sandbox
from podeval.audio.decode import DEFAULT_LIMITS, Decoded, DecodeLimits, decode, identify, open_regular
from podeval.audio.duration import read_container_and_seconds
from podeval.audio.samples import BLOCK_FRAMES, SampleBuffer
from podeval.errors import BadAudio

REPORT = "transcoded.jsonl"
HEADER_BYTES = 2 * 2**30
"""Address space, in bytes, of the process that reads a header; the libraries alone take half a GiB."""
_SAMPLES = "samples.npy"
_PLAIN_FORMAT = re.compile(rb"fmt [\x10\x12]\0\0\0[\x01\x03]\0")
_FRAMES = 2**20


@dataclass(frozen=True)
class Bounds:
    """The limits within which a recording is accepted.

    Attributes:
        seconds: maximum duration.
        least_seconds: minimum duration.
        channels: maximum number of channels.
        rates: lowest and highest sample rate in Hz.
    """

    seconds: float = 2 * 3600.0
    least_seconds: float = 0.1
    channels: int = 8
    rates: tuple[int, int] = (8_000, 192_000)


@dataclass(frozen=True)
class Transcoded:
    """The result for one file: `file` is its new name; if there is none, `refused` gives the reason.

    `seconds` is the duration of the file, or the duration stated in its header if that exceeds the limit.
    """

    item: str
    file: str | None = None
    seconds: float = 0.0
    rate: int = 0
    channels: int = 0
    refused: str | None = None


def transcode(item: str, source: Path, folder: Path, bounds: Bounds = Bounds()) -> Transcoded:
    """Transcode one file to `<item>.flac` or `<item>.wav` in a folder; refusals are returned, not raised."""
    try:
        if (stated := _read_stated_seconds(source)) > bounds.seconds:
            return Transcoded(
                item,
                seconds=stated,
                refused=f"{source.name} is longer than {bounds.seconds / 3600:g} hours: split it into shorter files.",
            )
        decoded = decode(source, limits=_make_limits(bounds))
        _check(decoded, bounds)
        name = _write(decoded, item, folder)
    except BadAudio as error:
        return Transcoded(item, refused=str(error).replace(repr(str(source)), source.name))
    except (OSError, MemoryError, ValueError) as error:
        return Transcoded(item, refused=f"{source.name} cannot be transcoded ({type(error).__name__}: {error})")
    return Transcoded(item, name, decoded.seconds, decoded.rate, decoded.channels)


def write_job(path: Path, files: Mapping[str, Path], out: Path, bounds: Bounds) -> None:
    """Write the program's input: the files by item, the output folder, and the limits."""
    job = {"files": {item: os.fspath(file) for item, file in files.items()}, "out": os.fspath(out)}
    path.write_text(json.dumps(job | {"bounds": asdict(bounds)}), encoding="utf-8")


def read_header_apart(path: Path) -> tuple[str, float]:
    """Read the container and duration of an untrusted file in a separate process.

    Raises:
        BadAudio: the header cannot be read (see `read_container_and_seconds`), or reading took too much memory or time.
    """
    with tempfile.TemporaryDirectory(prefix="podeval-header-") as folder:
        result = _run_apart(path, Path(folder), HEADER_BYTES, None)
    return str(result["container"]), float(result["seconds"])


def decode_apart(path: Path, limits: DecodeLimits = DEFAULT_LIMITS) -> Decoded:
    """Decode an untrusted file in a separate process, unless it is a WAV file of plain samples.

    For such a WAV file, the decoder sees only the samples and a header written by podeval. Large recordings stay on
    disk.

    Raises:
        BadAudio: the file cannot be decoded (see `decode`), or decoding took too much memory or time.
    """
    if is_plain_wav(path):
        return decode(path, limits=limits)
    with tempfile.TemporaryDirectory(prefix="podeval-decode-") as folder:
        result = _run_apart(path, Path(folder), limits.total_bytes + HEADER_BYTES, limits)
        samples = _load_samples(Path(folder, _SAMPLES), limits.memory_bytes)
    return Decoded(samples=samples, **result)


def main(job_file: str) -> None:
    """Transcode the files of a job, or read or decode its single file."""
    job: dict[str, Any] = json.loads(Path(job_file).read_text(encoding="utf-8"))
    out = Path(job["out"])
    if "source" in job:
        (out / REPORT).write_text(json.dumps(_read_one(Path(job["source"]), out, job["limits"])), encoding="utf-8")
        return
    bounds = Bounds(**job["bounds"])
    with (out / REPORT).open("a", encoding="utf-8") as report:
        for item, file in job["files"].items():
            report.write(json.dumps(asdict(transcode(item, Path(file), out, bounds))) + "\n")
            report.flush()


def _load_samples(file: Path, memory_bytes: int) -> NDArray[np.float32]:
    """Load samples; if there are many, as an `np.memmap` of an unnamed file."""
    if file.stat().st_size <= memory_bytes:
        return np.asarray(np.load(file, allow_pickle=False))
    stored = np.load(file, mmap_mode="r", allow_pickle=False)
    buffer = SampleBuffer(stored.shape[1], memory_bytes=memory_bytes)
    for start in range(0, len(stored), BLOCK_FRAMES):
        buffer.append(stored[start : start + BLOCK_FRAMES])
    return buffer.finish()


def _run_apart(path: Path, out: Path, memory_bytes: int, limits: DecodeLimits | None) -> dict[str, Any]:
    """Run the program on a file and return the result; the program may take one minute plus one second per MB.

    Raises:
        BadAudio: the program refused the file, or ended without output.
    """
    job = {"source": os.path.abspath(path), "out": os.fspath(out)}
    (out / "job.json").write_text(json.dumps(job | {"limits": limits and asdict(limits)}), encoding="utf-8")
    seconds = 60 + (path.stat().st_size if path.exists() else 0) / 1e6
    bounds = sandbox.SandboxLimits(seconds, memory_bytes, processes=64, output_bytes=memory_bytes, output_files=20)
    command = sandbox.build_python_command("podeval.sandbox.transcode", os.fspath(out / "job.json"))
    ended = sandbox.run(sandbox.SandboxSpec(command, out, [path], bounds, sandbox.ONE_THREAD, own=True))
    try:
        result: dict[str, Any] = json.loads((out / REPORT).read_bytes())
    except (OSError, ValueError):
        why = ended.stopped or "reading it took more memory than is available, or crashed the decoder"
        raise BadAudio(f"{str(path)!r} cannot be read, because {why}: export it again.") from None
    if refused := result.pop("refused", None):
        raise BadAudio(str(refused).replace(repr(job["source"]), repr(str(path))))
    return result


def _read_one(source: Path, out: Path, limits: dict[str, Any] | None) -> dict[str, Any]:
    """Read the header of a file, or decode it; a refusal is returned as a result."""
    try:
        if limits is None:
            container, seconds = read_container_and_seconds(source)
            return {"container": container, "seconds": seconds}
        decoded = decode(source, limits=DecodeLimits(**limits))
        np.save(out / _SAMPLES, decoded.samples, allow_pickle=False)
        return {field: getattr(decoded, field) for field in ("rate", "layout", "container", "codec", "note")}
    except BadAudio as error:
        return {"refused": str(error)}


def is_plain_wav(path: Path) -> bool:
    """Return whether a file is a WAV of integers or floats in which only the format chunk precedes the samples."""
    with open_regular(path) as file:
        container = identify(file, path)
    heads = [part.head[12:22] for part in container.parts]
    return container.name == "wav" and all(_PLAIN_FORMAT.fullmatch(head) for head in heads)


def _read_stated_seconds(source: Path) -> float:
    """Return the seconds stated in a header; 0 if only decoding reveals the duration."""
    try:
        return read_container_and_seconds(source)[1]
    except BadAudio:
        return 0.0


def _make_limits(bounds: Bounds) -> DecodeLimits:
    frames = int(bounds.seconds * bounds.rates[1])
    return DecodeLimits(
        channels=bounds.channels,
        min_rate=bounds.rates[0],
        max_rate=bounds.rates[1],
        seconds=bounds.seconds,
        total_bytes=min(8 * 2**30, frames * bounds.channels * 4),
    )


def _check(decoded: Decoded, bounds: Bounds) -> None:
    if decoded.seconds < bounds.least_seconds:
        raise BadAudio(
            f"the recording is {decoded.seconds:.3f} s long, less than {bounds.least_seconds:g} s: give the whole item."
        )
    for start in range(0, decoded.frames, _FRAMES):
        if not np.isfinite(decoded.samples[start : start + _FRAMES]).all():
            raise BadAudio("the recording contains samples that are not numbers (NaN or infinity): export it again.")


def _write(decoded: Decoded, item: str, folder: Path) -> str:
    import soundfile

    peak = max(float(np.abs(decoded.samples[at : at + _FRAMES]).max()) for at in range(0, decoded.frames, _FRAMES))
    kind, subtype = ("FLAC", "PCM_24") if peak <= 1.0 else ("WAV", "FLOAT")
    name = f"{item}.{kind.lower()}"
    with soundfile.SoundFile(folder / name, "w", decoded.rate, decoded.channels, subtype, format=kind) as file:
        for start in range(0, decoded.frames, _FRAMES):
            file.write(decoded.samples[start : start + _FRAMES])
    return name


if __name__ == "__main__":
    main(sys.argv[1])
