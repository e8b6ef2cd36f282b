"""Dimension groups: the part before the dot in a metric's dimension, such as `speech` in `speech.accuracy`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DimensionGroup:
    """A chapter of the board: its name, and the emoji of its metrics' Spaces."""

    name: str
    emoji: str


DIMENSION_GROUPS = {
    group.name: group
    for group in (
        DimensionGroup("script", "📝"),
        DimensionGroup("speech", "🗣️"),
        DimensionGroup("acoustics", "🎙️"),
        DimensionGroup("semantics", "🎼"),
        DimensionGroup("expressiveness", "🎭"),
        DimensionGroup("audio", "🎚️"),
        DimensionGroup("dialogue", "💬"),
        DimensionGroup("human", "👂"),
        DimensionGroup("efficiency", "⏱️"),
    )
}
"""All groups by name, in the order of the board."""
