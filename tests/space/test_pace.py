"""Rates of requests, by a clock of the test's own."""

import pytest
from limits import parse
from rate_limit import RateLimit


def test_so_many_are_let_through_and_then_one_as_each_leaves_the_window() -> None:
    now = [100.0]
    pace, rate = RateLimit(lambda: now[0]), parse("3/minute")
    for second in (0, 10, 20):
        now[0] = 100.0 + second
        assert pace.wait(rate, "/arena", "alice") == 0
    assert pace.wait(rate, "/arena", "alice") == 40
    assert pace.wait(rate, "/arena", "bob") == 0, "each has their own"
    assert pace.wait(rate, "/queue", "alice") == 0
    now[0] = 159.9
    assert 0 < pace.wait(rate, "/arena", "alice") < 0.2
    now[0] = 160.0
    assert pace.wait(rate, "/arena", "alice") == 0
    assert pace.wait(rate, "/arena", "alice") == 10, "what was refused is not counted"


def test_of_more_names_than_are_remembered_the_longest_unused_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rate_limit.MOST_NAMES", 50)
    now = [0.0]
    pace, rate = RateLimit(lambda: now[0]), parse("3/minute")
    for number in range(2_000):
        # Networks come once each, as of whoever has many; one visitor asks again and again.
        now[0] += 0.001
        assert pace.wait(rate, f"2001:db8:{number:x}::") == 0
        refused = pace.wait(rate, "visitor") > 0
        assert refused == (number >= 3)
    assert len(pace._seen) == 50


def test_who_is_gone_is_forgotten() -> None:
    now = [0.0]
    pace = RateLimit(lambda: now[0])
    for number in range(1000):
        pace.wait(parse("5/minute"), number)
    pace.wait(parse("5/hour"), "slow")
    now[0] = 200.0
    pace.wait(parse("5/minute"), "late")
    assert len(pace._seen) == 2
