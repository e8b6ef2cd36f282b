"""Transcodes foreign audio files to FLAC, as a separate program that can run in isolation.

`python -m podeval.audio.transcode JOB.json` reads a `Job` and appends one line per file to `transcoded.jsonl`: the
new file, or why it was refused. Samples keep their values at 24 bits; where they exceed ±1, which FLAC cannot store,
a float WAV is written.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podeval.audio.decode import Decoded, DecodeLimits, decode
from podeval.errors import BadAudio

REPORT = "transcoded.jsonl"
_FRAMES = 2**20


@dataclass(frozen=True)
class Bounds:
    """The limits within which a recording is accepted.

    Attributes:
        seconds: maximum duration.
        least_seconds: minimum duration.
        channels: maximum number of channels.
        rates: lowest and highest sample rate, Hz.
    """

    seconds: float = 2 * 3600.0
    least_seconds: float = 0.1
    channels: int = 8
    rates: tuple[int, int] = (8_000, 192_000)


@dataclass(frozen=True)
class Transcoded:
    """The result for one file: `file` is its new name; `refused` says why there is none."""

    item: str
    file: str | None = None
    seconds: float = 0.0
    rate: int = 0
    channels: int = 0
    refused: str | None = None


def transcode(item: str, source: Path, folder: Path, bounds: Bounds = Bounds()) -> Transcoded:
    """Transcode one file to `<item>.flac` or `<item>.wav` in a folder; a refusal is a result, not an error."""
    try:
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


def main(job_file: str) -> None:
    """Transcode the files of a job."""
    job: dict[str, Any] = json.loads(Path(job_file).read_text(encoding="utf-8"))
    out = Path(job["out"])
    bounds = Bounds(**job["bounds"])
    with (out / REPORT).open("a", encoding="utf-8") as report:
        for item, file in job["files"].items():
            report.write(json.dumps(asdict(transcode(item, Path(file), out, bounds))) + "\n")
            report.flush()


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
            f"it is {decoded.seconds:.3f} s long, less than {bounds.least_seconds:g} s: give the whole item."
        )
    for start in range(0, decoded.frames, _FRAMES):
        if not np.isfinite(decoded.samples[start : start + _FRAMES]).all():
            raise BadAudio("it contains NaN or infinite samples: write finite ones.")


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
