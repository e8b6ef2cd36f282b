"""SGLang-Omni, read from its wheel 0.1.9: OpenAI's route with reference voices in a list, `references`.

A text has at most 4,096 characters for most models, and a reference between 1 and 30 seconds. Tags of speakers other
than the first are refused by its Drama 3 so far, and so is every other field that a model does not declare: whole
dialogues are asked for by `--dialogue whole` alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from podeval.systems.servers.kinds.kind import Voice
from podeval.systems.servers.kinds.openai import MOST_TAGS, TAGS, OpenAi
from podeval.systems.servers.reference_clip import ReferenceClip


@dataclass(frozen=True)
class SglangOmni(OpenAi):
    """A server of SGLang-Omni; see `ServerKind`."""

    name: ClassVar[str] = "sglang-omni"
    hosts: ClassVar[tuple[str, ...]] = ()
    owners: ClassVar[tuple[str, ...]] = ("sglang",)
    clones: ClassVar[bool] = True

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return MOST_TAGS if self.marks is TAGS else super().count_speakers(clone)

    def longest(self, whole: bool) -> int | None:
        """See `ServerKind`."""
        return 4096

    def name_voices(self, voices: Sequence[Voice]) -> dict[str, Any]:
        """See `OpenAi`; of several references each has the mark of its speaker."""
        clips = [voice for voice in voices if isinstance(voice, ReferenceClip)]
        if not clips:
            return super().name_voices(voices)
        words = [clip.words if len(clips) == 1 else self.marks.mark(n, clip.words) for n, clip in enumerate(clips)]
        return {
            "references": [
                {"audio_path": clip.uri, **({"text": text} if clip.words else {})}
                for clip, text in zip(clips, words, strict=True)
            ]
        }
