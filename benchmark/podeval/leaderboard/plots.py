"""Plots as Vega-Lite documents: plain data that a face hands to its renderer.

Colours are Okabe and Ito's, which people of all colour vision tell apart; shape and text always say the same.
Text is drawn as text: no field of a document is read as markup.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from podeval.leaderboard.columns import Column
from podeval.leaderboard.table import Row, cell_text, decimals, names, present, standing
from podeval.leaderboard.view import Settled
from podeval.metrics.score import Timeline

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
KINDS = ("ranked", "incomplete", "control", "reported")

Document = dict[str, Any]


def whiskers(settled: Settled, column: Column) -> Document:
    """Every system's value of one column as a dot, its 95 % interval as a whisker, best on top."""
    rows = [
        row
        for row in settled.rows.to_dict("records")
        if (row["metric"], row["key"]) == (column.metric, column.key) and present(row["value"]) is not None
    ]
    rows.sort(key=lambda row: column.badness(row["value"]))
    called = names(settled.rows)
    systems = Counter(row["system"] for row in rows)
    places = decimals(row["value"] for row in rows)
    points = []
    for row in rows:
        low, high = present(row["low"]), present(row["high"])
        twice = f" · {row['provenance']}" if systems[row["system"]] > 1 else ""
        points.append(
            {
                "system": called[row["system"]] + twice,
                "value": row["value"],
                "low": row["value"] if low is None else low,
                "high": row["value"] if high is None else high,
                "kind": _kind(row),
                "shown": cell_text(row, places),
            }
        )
    y = {"field": "system", "type": "nominal", "title": None, "sort": None}
    x = {"type": "quantitative", "title": column.header, "scale": {"zero": False, "nice": True}}
    shapes = {"domain": list(KINDS), "range": ["circle", "triangle-up", "square", "diamond"]}
    colours = {"domain": list(KINDS), "range": [OKABE_ITO[0], OKABE_ITO[1], OKABE_ITO[6], OKABE_ITO[2]]}
    kind = {"field": "kind", "type": "nominal", "title": None}
    legend = {"orient": "top", "values": [name for name in KINDS if any(p["kind"] == name for p in points)]}
    told = [
        {"field": name, "title": title}
        for name, title in (("system", "system"), ("shown", column.title), ("kind", "kind"))
    ]
    colour = {**kind, "scale": colours, "legend": legend}
    return {
        **_frame(f"{column.title} by system with 95 % intervals"),
        "height": {"step": 30},
        "data": {"values": points},
        "encoding": {"y": y, "color": colour, "tooltip": told},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            *(
                {"mark": {"type": "tick", "thickness": 2, "size": 10}, "encoding": {"x": {**x, "field": end}}}
                for end in ("low", "high")
            ),
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": {**x, "field": "value"}, "shape": {**kind, "scale": shapes, "legend": legend}},
            },
        ],
    }


def timeline(title: str, values: Timeline) -> Document:
    """A windowed metric over time: a line a key, a point a window, seconds to the right."""
    keys = list(values.values)
    points = [
        {"second": start, "to": start + values.window, "value": value, "key": key}
        for key in keys
        for start, value in zip(values.starts, values.values[key], strict=False)
    ]
    palette = {"domain": keys, "range": [OKABE_ITO[i % len(OKABE_ITO)] for i in range(len(keys))]}
    shapes = {"domain": keys, "range": [SHAPES[i % len(SHAPES)] for i in range(len(keys))]}
    legend = {"orient": "top"} if len(keys) > 1 else None
    key = {"field": "key", "type": "nominal", "title": None, "legend": legend}
    return {
        **_frame(f"{title} over time, in windows of {values.window:g} s"),
        "height": 240,
        "data": {"values": points},
        "mark": {"type": "line", "point": {"filled": True, "size": 50}, "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "second", "type": "quantitative", "title": "start of the window (s)"},
            "y": {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": False}},
            "color": {**key, "scale": palette},
            "shape": {**key, "scale": shapes},
            "tooltip": [
                {"field": "key", "title": "key"},
                {"field": "second", "title": "from (s)"},
                {"field": "to", "title": "to (s)"},
                {"field": "value", "title": "value", "format": ".3f"},
            ],
        },
    }


def _frame(description: str) -> Document:
    return {
        "$schema": SCHEMA,
        "description": description,
        "width": "container",
        "background": "transparent",
        "usermeta": {"embedOptions": {"renderer": "svg", "actions": False}},
        "config": {
            "view": {"stroke": None},
            "axis": {"labelFontSize": 13, "titleFontSize": 13, "labelLimit": 170, "titleFontWeight": "normal"},
            "axisX": {"tickCount": 6},
            "legend": {"labelFontSize": 13},
            "font": "system-ui, sans-serif",
        },
    }


def _kind(row: Row) -> str:
    if row["provenance"] == "reported":
        return "reported"
    if row["system_kind"] == "control":
        return "control"
    return "incomplete" if standing(row) in ("incomplete", "unscored") else "ranked"
