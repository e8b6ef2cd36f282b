"""Dimension groups: the part before the dot in a metric's dimension, such as `speech` in `speech.accuracy`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DimensionGroup:
    """A chapter of the board: its name in English and Chinese, and the emoji of its metrics' Spaces."""

    name: str
    zh: str
    emoji: str


DIMENSION_GROUPS = {
    group.name: group
    for group in (
        DimensionGroup("script", "脚本", "📝"),
        DimensionGroup("speech", "语音", "🗣️"),
        DimensionGroup("acoustics", "声学", "🎙️"),
        DimensionGroup("semantics", "语义", "🎼"),
        DimensionGroup("expressiveness", "表现力", "🎭"),
        DimensionGroup("audio", "音频", "🎚️"),
        DimensionGroup("dialogue", "对话", "💬"),
        DimensionGroup("human", "真人", "👂"),
        DimensionGroup("efficiency", "效率", "⏱️"),
    )
}
"""All groups by name, in the order of the board."""
