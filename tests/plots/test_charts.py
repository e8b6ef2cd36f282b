"""The ranking as a picture: places by rating, intervals where there are some, names that are never markup."""

import xml.etree.ElementTree as ET

import pytest

from podeval.plots.charts import IntervalRow, draw_intervals
from podeval.plots.svg import WIDTH, Frame

SVG = "{http://www.w3.org/2000/svg}"


def test_dots_stand_where_the_axis_says_and_intervals_around_them() -> None:
    anchor = IntervalRow("anchor", 900, 880, 920, "2–3", "control")
    dots = [IntervalRow("best", 1100, 1050, 1150, "1"), IntervalRow("mean", 1000, None, None, "2–3"), anchor]
    picture = ET.fromstring(draw_intervals(dots, Frame("Ratings")))
    marks = {float(t.text or ""): float(t.attrib["x"]) for t in picture.findall(f"{SVG}g[@class='axis']/{SVG}text")}
    (low, low_x), (high, high_x) = min(marks.items()), max(marks.items())
    assert low <= 880
    assert high >= 1150

    def place(value: float) -> float:
        return low_x + (value - low) / (high - low) * (high_x - low_x)

    circles = [float(c.attrib["cx"]) for c in picture.iter(f"{SVG}circle")]
    assert circles == [round(place(1100), 1), round(place(1000), 1)]
    square = next(path for path in picture.iter(f"{SVG}path") if path.attrib["class"] == "control")
    assert float(square.attrib["d"].split()[0][1:]) + 5 == pytest.approx(place(900), abs=0.1), "a control is a square"
    rules = [path.attrib["d"] for path in picture.iter(f"{SVG}path") if path.attrib["class"] == "rule"]
    assert len(rules) == 2, "no interval is drawn where there is none"
    assert rules[0].startswith(f"M{place(1050):g} ")
    assert all(0 <= float(t.attrib["x"]) <= WIDTH for t in picture.iter(f"{SVG}text"))


def test_a_name_is_text_whatever_it_says() -> None:
    hostile = "<script>alert(1)</script>\"'&"
    picture = ET.fromstring(draw_intervals([IntervalRow(hostile, 1000, None, None, "1")], Frame(hostile)))
    assert next(picture.iter(f"{SVG}title")).text == hostile
    assert not list(picture.iter(f"{SVG}script"))
    assert hostile in "".join(picture.itertext())


def test_one_system_and_none_have_a_picture_too() -> None:
    for dots in ([], [IntervalRow("only", 1000, None, None, "1")], [IntervalRow("wide", 1000, -1e6, 1e6, "1")]):
        ET.fromstring(draw_intervals(dots, Frame("Ratings")))
