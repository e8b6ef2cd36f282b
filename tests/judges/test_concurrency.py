import threading
from datetime import UTC, datetime, timedelta

import pytest

from podeval.judges.budget import AdaptiveConcurrency, Patience

# The endpoint reads it from errors of a library, which are made by hand here.
from podeval.models.http_errors import read_http_error


def test_a_crowded_round_halves_the_calls_once() -> None:
    pace, stop = AdaptiveConcurrency(16), threading.Event()
    with pace.call(stop) as first, pace.call(stop) as second:
        pace.crowded(first, None)
        pace.crowded(second, None)
    assert pace.limit == 8
    with pace.call(stop) as third:
        pace.crowded(third, None)
    assert pace.limit == 4


def test_the_calls_never_fall_below_one() -> None:
    pace, stop = AdaptiveConcurrency(2), threading.Event()
    for _ in range(5):
        with pace.call(stop) as begun:
            pace.crowded(begun, None)
    assert pace.limit == 1


def test_a_round_of_answers_allows_one_call_more() -> None:
    pace = AdaptiveConcurrency(16)
    pace.limit = 4.0
    for _ in range(4):
        pace.answered()
    # Additive increase of 1/limit an answer: 4 + 1/4 + 1/4.25 + 1/4.485 + 1/4.708.
    assert pace.limit == pytest.approx(4.92, abs=0.01)
    for _ in range(1000):
        pace.answered()
    assert pace.limit == 16


def test_who_is_stopped_does_not_wait() -> None:
    pace, stop = AdaptiveConcurrency(1), threading.Event()
    with pace.call(stop) as begun:
        pace.crowded(begun, 60)
    stop.set()
    with pace.call(stop):
        pass


def test_waits_double_up_to_the_longest_and_half_of_each_is_chance() -> None:
    patience = Patience(first_wait=1, longest_wait=10)
    assert [patience.wait(failed, 1.0) for failed in (1, 2, 3, 4, 5, 6)] == [1, 2, 4, 8, 10, 10]
    assert patience.wait(3, 0.0) == 2


@pytest.mark.parametrize(("value", "seconds"), [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("soon", None), (None, None)])
def test_a_wait_is_read_from_the_header(value: str | None, seconds: float | None) -> None:
    assert read_http_error(429, b"", {"retry-after": value} if value else {}).retry_after == seconds


def test_a_wait_may_be_a_date() -> None:
    later = datetime.now(UTC) + timedelta(seconds=30)
    waited = read_http_error(429, b"", {"retry-after": later.strftime("%a, %d %b %Y %H:%M:%S GMT")}).retry_after
    assert waited is not None
    # A date has no parts of a second, and some time has passed since.
    assert (later - datetime.now(UTC)).total_seconds() - 1 <= waited <= 30
