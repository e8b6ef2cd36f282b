"""vLLM-Omni, read from its wheel 0.30.0: OpenAI's route with the reference voice in `ref_audio` and `ref_text`.

MOSS-TTSD takes a second one in `ref_audio_2`, and the words of neither. Fish Speech and Audio8 read speaker tags, with
one reference voice at most. A reference has at most 30 seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from podeval.systems.servers.kinds.kind import Voice
from podeval.systems.servers.kinds.openai import TAGS, OpenAi
from podeval.systems.servers.reference_clip import ReferenceClip


@dataclass(frozen=True)
class VllmOmni(OpenAi):
    """A server of vLLM-Omni; see `ServerKind`."""

    name: ClassVar[str] = "vllm-omni"
    hosts: ClassVar[tuple[str, ...]] = ()
    owners: ClassVar[tuple[str, ...]] = ("vllm",)
    clones: ClassVar[bool] = True

    @property
    def performs(self) -> bool:
        """See `ServerKind`."""
        return self.is_bracketed or self.marks is TAGS

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return 2 if clone and self.is_bracketed else super().count_speakers(clone)

    def name_voices(self, voices: Sequence[Voice]) -> dict[str, Any]:
        """See `OpenAi`."""
        clips = [voice for voice in voices if isinstance(voice, ReferenceClip)]
        if not clips:
            return super().name_voices(voices)
        if len(clips) > 1:
            return {"ref_audio": clips[0].uri, "ref_audio_2": clips[1].uri}
        return {"ref_audio": clips[0].uri, **({"ref_text": clips[0].words} if clips[0].words else {})}
