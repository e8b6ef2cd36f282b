"""The radar of a view of the board: which systems and figures it has, and the table beside it."""

from __future__ import annotations

from collections.abc import Sequence

from podeval.leaderboard import radar
from podeval.leaderboard.query import Key
from podeval.leaderboard.scene import Drawn, Picture, Scene
from podeval.leaderboard.table import MISSING, to_number
from podeval.leaderboard.view import ResolvedView

MOST_SERIES = 6


def draw_radar(scene: Scene) -> Drawn:
    """Draw the radar of the pinned systems, or of the first three; says why not where too few figures can be drawn."""
    words = scene.words
    axes = radar.choose_radar_axes(scene.settled.columns)
    keys = _radar_keys(scene)
    axes = [axis for axis in axes if any(_on_axis(scene, axis, key) is not None for key in keys)]
    if len(axes) < radar.FEWEST:
        return Drawn(None, words["none_radar"])
    systems = [
        (
            scene.name(key),
            tuple(_on_axis(scene, axis, key) for axis in axes),
            tuple(_span_on_axis(scene, axis, key) for axis in axes),
        )
        for key in keys
    ]
    titles = [scene.title(axis.column) for axis in axes]
    rows = [
        (name, *(MISSING if value is None else _share_text(value, span) for value, span in zip(of, spans, strict=True)))
        for name, of, spans in systems
    ]
    svg = radar.draw(titles, radar.Series.of_systems(systems), words["radar"], scene.size.radar)
    return Drawn(Picture(svg, words["radar"], _radar_notes(scene, axes), (words["system"], *titles), tuple(rows)))


def _radar_keys(scene: Scene) -> list[Key]:
    """Return the rows on the radar: pinned ones, else the first three that are not controls."""
    systems = scene.settled.board.systems
    first = [key for key in scene.order if systems[key[0]]["system_kind"] != "control"][:3]
    return ([key for key in scene.order if scene.pinned(key)] or first)[:MOST_SERIES]


def _on_axis(scene: Scene, axis: radar.RadarAxis, key: Key) -> float | None:
    """Return the position of a row on an axis, from 0 to 1; None where it has no value."""
    row = scene.settled.sheet.rows(axis.column.id).get(key)
    value = to_number(row["value"]) if row else None
    return None if value is None else axis.at(value)


def _span_on_axis(scene: Scene, axis: radar.RadarAxis, key: Key) -> radar.Span | None:
    row = scene.settled.sheet.rows(axis.column.id).get(key)
    return axis.span(to_number(row["low"]), to_number(row["high"])) if row else None


def _share_text(value: float, span: radar.Span | None) -> str:
    """Format `62 %` of an axis, with its interval."""
    return f"{value:.0%}" if span is None else f"{value:.0%} [{min(span):.0%}, {max(span):.0%}]"


def _radar_notes(scene: Scene, axes: Sequence[radar.RadarAxis]) -> tuple[str, ...]:
    """Say which figures have no fixed ends and are not drawn, and how systems are chosen."""
    drawn = {axis.column.id for axis in axes}
    without = [
        scene.title(column)
        for column in scene.settled.columns
        if column.better != "informative" and column.id not in drawn
    ]
    words = scene.words
    left_out = (words["radar_without"].format(", ".join(without)),) if without else ()
    return (*left_out, words["radar_pinned"])


def has_radar(settled: ResolvedView) -> bool:
    """Tell whether there are enough figures for a radar."""
    systems = settled.board.systems
    pins = [key for key in settled.keys if key[0] in settled.view.pins]
    keys = pins or [key for key in settled.keys if systems[key[0]]["system_kind"] != "control"]
    axes = radar.choose_radar_axes(settled.columns)
    valued = sum(
        any(to_number(rows[key]["value"]) is not None for key in keys if key in rows)
        for rows in (settled.sheet.rows(axis.column.id) for axis in axes)
    )
    return valued >= radar.FEWEST
