"""Calls that fail as the Hub fails: what is tried again, after which pauses, and what is told at the end."""

from collections.abc import Callable

import pytest

from podeval.hub.retry import HubUnavailable, call_with_retries


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses are noted, not made."""
    seconds: list[float] = []
    monkeypatch.setattr("time.sleep", seconds.append)
    return seconds


class HubError(Exception):
    def __init__(self, status: int, wait: str = "") -> None:
        self.response = type("Response", (), {"status_code": status, "headers": {"Retry-After": wait} if wait else {}})


def failing(*errors: Exception) -> Callable[[], str]:
    left = list(errors)

    def call() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return call


def test_a_wait_that_the_hub_asks_for_is_made(pauses: list[float]) -> None:
    assert call_with_retries(failing(HubError(429, "17"), HubError(503))) == "done"
    assert pauses[0] == 17
    assert pauses[1] < 2
    with pytest.raises(HubUnavailable):
        call_with_retries(failing(HubError(429, "4000")))
    assert len(pauses) == 2, "so long a wait is not made"


def test_what_will_not_pass_is_raised_as_it_is(pauses: list[float]) -> None:
    with pytest.raises(HubError):
        call_with_retries(failing(HubError(403)))
    with pytest.raises(ZeroDivisionError):
        call_with_retries(failing(ZeroDivisionError()))
    assert pauses == []


def test_pauses_double_up_to_a_minute_and_are_spread(pauses: list[float]) -> None:
    calls = [HubError(503) for _ in range(20)]
    with pytest.raises(HubUnavailable, match="the Hub does not answer as expected") as failure:
        call_with_retries(failing(*calls), tries=10)
    assert isinstance(failure.value.__cause__, HubError)
    longest = [min(60.0, 0.5 * 2**number) for number in range(9)]
    assert len(pauses) == 9
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
    assert len({pause / most for pause, most in zip(pauses, longest, strict=True)}) == 9


def test_a_call_is_made_six_times_and_after_other_statuses_only_where_the_caller_says_so(pauses: list[float]) -> None:
    with pytest.raises(HubUnavailable):
        call_with_retries(failing(*[HubError(500)] * 6))
    assert len(pauses) == 5
    assert call_with_retries(failing(*[HubError(500)] * 5)) == "done"
    assert call_with_retries(failing(HubError(412)), also=(412,)) == "done"
    with pytest.raises(HubError):
        call_with_retries(failing(HubError(412)))


def test_whoever_interrupts_is_not_held_up(pauses: list[float]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_with_retries(interrupt)
    assert pauses == []
