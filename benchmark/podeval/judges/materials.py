"""Material for a judge: texts, and clips of audio in a format and size that endpoints accept."""

import base64
import functools
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput, CannotScore

Text = str

FORMATS = ("wav", "flac", "mp3")

SECONDS = 1800.0
"""Maximum duration of a clip: half an hour, the limit of the most capable public models."""
BYTES = 20_000_000
"""Maximum bytes of an encoded clip: endpoints accept requests of 20 to 30 MB, base64 included."""


@dataclass(frozen=True)
class AudioLimits:
    """Limits on the audio that a judge accepts.

    Args:
        format: `wav` (16 bits, accepted by every endpoint), `flac` (the same samples, smaller) or `mp3`.
        seconds: maximum duration of a clip.
        bytes: maximum size of an encoded clip, before base64.
    """

    format: str = "wav"
    seconds: float = SECONDS
    bytes: int = BYTES


@dataclass(frozen=True, eq=False)
class AudioClip:
    """An audio clip for a judge.

    Args:
        samples: mono float32, shape (frames,).
        rate: sample rate, Hz.

    Raises:
        CannotScore: the clip is empty or holds samples that are not finite numbers.
    """

    samples: NDArray[np.float32]
    rate: int

    def __post_init__(self) -> None:
        if self.samples.ndim != 1:
            raise ValueError(f"a clip for a judge is mono, shape (frames,), not {self.samples.shape}")
        if not self.samples.size:
            raise CannotScore("an empty clip cannot be judged")
        if not np.isfinite(self.samples).all():
            raise CannotScore("the clip contains NaN or infinite samples")

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate

    @functools.cached_property
    def sha256(self) -> str:
        """Digest of rate and samples, which identifies the clip in records and cache keys."""
        digest = hashlib.sha256(f"{self.rate}:".encode())
        digest.update(np.ascontiguousarray(self.samples, dtype="<f4").tobytes())
        return digest.hexdigest()

    def part(self, limits: AudioLimits) -> dict[str, Any]:
        """Return the clip as the `input_audio` part of a message.

        Raises:
            BadInput: the clip is longer or larger than the judge accepts.
        """
        if self.seconds > limits.seconds:
            raise BadInput(
                f"the clip lasts {self.seconds:.0f} s and the judge is sent at most {limits.seconds:.0f} s; "
                "judge an excerpt, or raise audio.seconds in the judge's YAML file if it hears longer ones"
            )
        data = self.encoded(limits.format)
        if len(data) > limits.bytes:
            smaller = " (audio.format: flac or mp3 makes it smaller)" if limits.format == "wav" else ""
            raise BadInput(
                f"the clip takes {len(data) / 1e6:.1f} MB as {limits.format} and the judge is sent at most "
                f"{limits.bytes / 1e6:.1f} MB; judge an excerpt or a lower sampling rate{smaller}"
            )
        return {
            "type": "input_audio",
            "input_audio": {"data": base64.b64encode(data).decode("ascii"), "format": limits.format},
        }

    def encoded(self, kind: str) -> bytes:
        """Encode the clip as a file.

        A clip that exceeds full scale is attenuated as a whole, because clipping would be an audible fault.
        """
        import soundfile

        # Attenuate rather than clip.
        peak = float(np.abs(self.samples).max())
        samples = self.samples / peak if peak > 1 else self.samples
        subtype = "MPEG_LAYER_III" if kind == "mp3" else "PCM_16"
        file = io.BytesIO()
        try:
            soundfile.write(file, samples, self.rate, format=kind.upper(), subtype=subtype)
        except (soundfile.LibsndfileError, ValueError) as error:
            raise BadInput(
                f"audio at {self.rate} Hz cannot be written as {kind} ({error}); "
                f"choose audio.format {' or '.join(f for f in FORMATS if f != kind)} in the judge's YAML file"
            ) from None
        return file.getvalue()


def strip_audio(message: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each clip of a message by the SHA-256 of the bytes that were sent."""
    content = message["content"]
    if isinstance(content, str):
        return dict(message)
    kept = []
    for part in content:
        if part["type"] == "input_audio":
            data = base64.b64decode(part["input_audio"]["data"])
            digest = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            part = {"type": "input_audio", "input_audio": digest | {"format": part["input_audio"]["format"]}}
        kept.append(part)
    return {"role": message["role"], "content": kept}
