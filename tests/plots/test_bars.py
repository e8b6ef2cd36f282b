"""Plots are well-formed SVG that says every number, and bars are as long as their counts."""

import re
from xml.etree.ElementTree import Element

import pytest
from defusedxml.ElementTree import fromstring

from podeval.plots.bars import draw_bars, draw_histogram

SVG = "{http://www.w3.org/2000/svg}"


def texts(plot: Element) -> list[str]:
    return [found.text or "" for found in plot.iter(f"{SVG}text")]


def rects(plot: Element) -> list[dict[str, float]]:
    """All but the ground."""
    shapes = list(plot.iter(f"{SVG}rect"))[1:]
    return [{name: float(shape.attrib.get(name, 0)) for name in ("x", "y", "width", "height")} for shape in shapes]


def test_bars_say_counts_and_shares() -> None:
    plot = fromstring(draw_bars("A <title> & more", {"kind": {"a<b": 30, "c": 10, "none": 0}}, {"tea": 4, "茶": 1}))
    said = texts(plot)
    assert said[0] == "A <title> & more"
    assert {"30 (75.0%)", "10 (25.0%)", "0 (0.0%)", "a<b", "tea", "茶"} <= set(said)
    widths = [rect["width"] for rect in rects(plot)]
    assert widths == pytest.approx([560, 560 / 3, 0], abs=0.1)
    sizes = {t.text: float(t.attrib.get("font-size", 12)) for t in plot.iter(f"{SVG}text")}
    assert sizes["tea"] > sizes["茶"]


def test_a_histogram_counts_every_value_and_marks_the_means() -> None:
    plot = fromstring(draw_histogram("Lengths", "words", {"one": [0, 24, 25, 100], "two": [50.0]}, width=25))
    assert {"one: 4, mean 37.2", "two: 1, mean 50.0"} <= set(texts(plot))
    bar_heights = [rect["height"] for rect in rects(plot) if rect["y"] != 42]
    # The axis goes up to 4, a multiple of four that holds the highest bin.
    assert bar_heights == pytest.approx([150, 75, 0, 0, 75, 0, 0, 75, 0, 0], abs=0.1)
    dashed = [line for line in plot.iter(f"{SVG}line") if "stroke-dasharray" in line.attrib]
    step = (940 - 60) / 5
    assert [float(line.attrib["x1"]) for line in dashed] == pytest.approx(
        [60 + step * 37.25 / 25, 60 + step * 2], abs=0.1
    )
    assert len({line.attrib["stroke-dasharray"] for line in dashed}) == 2


def test_nothing_to_show_is_a_plot_too() -> None:
    for plot in (draw_bars("t", {"kind": {}}), draw_histogram("t", "x", {"one": []}, 25)):
        assert not re.search("nan|inf", plot)
        assert "t" in texts(fromstring(plot))
