"""Long recordings show where they go wrong: shares by minute, and their drift."""

import pytest

from podeval.metrics.score import compute_share_by_minute


def test_each_minute_has_the_share_of_what_is_in_it() -> None:
    words = [(second, 1.0 if second > 400 else 0.0, 1.0) for second in range(0, 600)]
    timeline = compute_share_by_minute("errors", 600.0, words, 1000)
    assert (timeline.starts, timeline.window) == ([60.0 * minute for minute in range(10)], 60.0)
    assert timeline.values["errors"] == [0.0] * 6 + [pytest.approx(1000 * 19 / 60), 1000.0, 1000.0, 1000.0]
    assert timeline.drift["errors"]["slope"] > 100
    assert timeline.drift["per"] == "minute"


def test_a_minute_with_few_words_has_no_share_and_a_short_recording_no_course() -> None:
    timeline = compute_share_by_minute("errors", 310.0, [(second, 1.0, 1.0) for second in range(70, 310)])
    assert timeline.values["errors"] == [None, 1.0, 1.0, 1.0, 1.0]
    assert compute_share_by_minute("errors", 299.0, [(1.0, 1.0, 1.0)]) is None


def test_what_is_left_of_a_last_minute_counts_with_the_one_before() -> None:
    timeline = compute_share_by_minute("errors", 320.0, [(float(second), 0.5, 1.0) for second in range(320)])
    assert timeline.values["errors"] == [0.5] * 5
