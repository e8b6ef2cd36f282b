"""The ranking as a picture: places by rating, intervals where there are some, names that are never markup."""

import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from podeval.plots import lines
from podeval.plots.charts import IntervalRow, draw_intervals, draw_radar
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


@pytest.mark.parametrize(("percent", "labels"), [(True, ["0 %", "10 %", "20 %", "30 %", "40 %"]), (False, ["0.1"])])
def test_shares_are_read_in_percent_on_the_axis_too(percent: bool, labels: list[str]) -> None:
    rows = [IntervalRow("a", 0.02, None, None, "", "ranked"), IntervalRow("b", 0.398, None, None, "", "ranked")]
    texts = [
        node.text for node in ET.fromstring(draw_intervals(rows, Frame("WER", percent=percent))).iter() if node.text
    ]
    assert set(labels) <= set(texts)


def test_a_name_is_text_whatever_it_says() -> None:
    hostile = "<script>alert(1)</script>\"'&"
    picture = ET.fromstring(draw_intervals([IntervalRow(hostile, 1000, None, None, "1")], Frame(hostile)))
    assert next(picture.iter(f"{SVG}title")).text == hostile
    assert not list(picture.iter(f"{SVG}script"))
    assert hostile in "".join(picture.itertext())


def test_one_system_and_none_have_a_picture_too() -> None:
    for dots in ([], [IntervalRow("only", 1000, None, None, "1")], [IntervalRow("wide", 1000, -1e6, 1e6, "1")]):
        ET.fromstring(draw_intervals(dots, Frame("Ratings")))


def test_a_density_has_its_peak_where_the_values_are_and_an_area_of_one() -> None:
    rng = np.random.default_rng(3)
    near, wide = rng.normal(-16, 0.5, 200).tolist(), rng.normal(-22, 3, 200).tolist()
    grid = np.linspace(-40, 0, 4001)
    for values in (near, wide):
        width = 0.9 * float(np.std(values)) * len(values) ** -0.2
        curve = lines.estimate_density(values, width, grid)
        assert float(np.trapezoid(curve, grid)) == pytest.approx(1, abs=1e-3)
        assert grid[curve.argmax()] == pytest.approx(np.mean(values), abs=2)
    svg = lines.draw_densities(
        [lines.Density("near", near), lines.Density("one value", [-14.0] * 5)], Frame("t", 500), "LUFS", (-18, -14)
    )
    assert svg.count('class="series s') == 2
    assert 'class="usual"' in svg
    assert "nan" not in svg.lower()
    # An open end of the best range is the end of the axis.
    peaks = [lines.Density("peaks", [-3.0, -2.0, -1.5, 0.2])]
    open_end = lines.draw_densities(peaks, Frame("t", 500), "", (-math.inf, -1))
    assert "inf" not in open_end


@pytest.mark.parametrize("name", ["播客 · 语音与音乐响度之比", "Podcast · speech over music"])
def test_the_name_of_an_axis_stays_in_the_radar(name: str) -> None:
    picture = ET.fromstring(draw_radar(["a", name, "c"], [], "Radar"))
    a, *parts, c = picture.findall(f"{SVG}text")
    letter = 12 if "播" in name else 12 * 0.56
    assert (a.text, c.text) == ("a", "c")
    assert "".join(part.text or "" for part in parts).replace(" ", "") == name.replace(" ", "")
    assert all(float(part.attrib["x"]) + letter * len(part.text or "") <= WIDTH + letter for part in parts)
