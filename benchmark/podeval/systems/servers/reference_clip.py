"""Recordings in the form that every server takes, WAV of 16 bits, and the reference voice that is sent as one."""

import base64
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from podeval.audio.decode import decode
from podeval.audio.samples import mix_to_mono
from podeval.systems.speech import Reference


def encode_wav(path: Path, *, mono: bool = False) -> tuple[bytes, float]:
    """Return a recording as WAV of 16 bits, and its length in seconds.

    Args:
        path: the recording, in any format that podeval reads.
        mono: whether its channels are mixed to one.
    """
    import soundfile

    sound, file = decode(path), io.BytesIO()
    samples = mix_to_mono(sound.samples) if mono else sound.samples
    soundfile.write(file, samples, sound.rate, format="WAV", subtype="PCM_16")
    return file.getvalue(), len(sound.samples) / sound.rate


@dataclass(frozen=True)
class ReferenceClip:
    """A reference voice as it is sent to a server.

    Attributes:
        audio: a WAV of 16 bits and one channel.
        words: the words that are said in it; empty if they are not known.
        seconds: its length.
    """

    audio: bytes
    words: str
    seconds: float

    @classmethod
    def read(cls, reference: Reference) -> Self:
        """Read the reference voice of an item."""
        audio, seconds = encode_wav(Path(reference.audio), mono=True)
        return cls(audio, (reference.text or "").strip(), seconds)

    @property
    def digest(self) -> str:
        """SHA-256 of the sound, by which two voices are told apart."""
        return hashlib.sha256(self.audio).hexdigest()

    @property
    def base64(self) -> str:
        """The sound in base64."""
        return base64.b64encode(self.audio).decode()

    @property
    def uri(self) -> str:
        """The sound as a data URI."""
        return f"data:audio/wav;base64,{self.base64}"
