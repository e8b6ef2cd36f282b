"""Windows and how much of them lies inside other stretches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podeval.audio.windows import Clip, Span, count_seconds_inside, place_windows

gaps = st.lists(st.tuples(st.floats(0, 2), st.floats(0.01, 3)), max_size=8)
times = st.lists(st.tuples(st.floats(0, 20), st.floats(0.01, 4)), max_size=4)


def in_order(pairs: list[tuple[float, float]]) -> list[Span]:
    spans: list[Span] = []
    for gap, length in pairs:
        start = (spans[-1].end if spans else 0.0) + gap
        spans.append(Span(start, start + length))
    return spans


def plainly(clip: Clip, spans: list[Span]) -> float:
    return sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in clip for b in spans)


@given(pairs=gaps, clips=st.lists(times, max_size=5))
def test_seconds_inside_equal_the_plain_double_loop(
    pairs: list[tuple[float, float]], clips: list[list[tuple[float, float]]]
) -> None:
    spans = in_order(pairs)
    made = [tuple(Span(start, start + length) for start, length in clip) for clip in clips]
    assert count_seconds_inside(made, spans) == pytest.approx([plainly(clip, spans) for clip in made], abs=1e-9)


def test_windows_go_on_across_the_joints_of_what_they_slide_over() -> None:
    found = place_windows([Span(0, 2), Span(10, 12)], 3.0, 1.0)
    assert found == [(Span(0, 2), Span(10, 11)), (Span(1, 2), Span(10, 12))]


def test_what_is_shorter_than_a_window_gives_none() -> None:
    assert place_windows([Span(0, 1), Span(5, 6)], 3.0, 2.0) == []
