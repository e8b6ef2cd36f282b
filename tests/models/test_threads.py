import os
from collections.abc import Iterator

import pytest

from podeval.errors import BadInput
from podeval.models.threads import SharedThreads, leave_threads, limit_threads, run_ahead, share_threads


def test_the_number_of_threads_is_what_was_asked_for_else_the_cores_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "3")
    assert limit_threads() == 3
    monkeypatch.delenv("PODEVAL_THREADS")
    assert limit_threads() == len(os.sched_getaffinity(0))
    assert limit_threads(1) == 1


@pytest.mark.parametrize("wrong", ["many", "0", "-1", "1.5"])
def test_another_number_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", wrong)
    with pytest.raises(BadInput, match="PODEVAL_THREADS must be a whole number of at least 1"):
        limit_threads()


@pytest.mark.parametrize("besides", [0, 1])
def test_as_much_is_in_progress_as_there_are_threads_at_the_time(monkeypatch: pytest.MonkeyPatch, besides: int) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "4")
    shared, ahead, taken = SharedThreads(1 + besides), [], 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield number

    with share_threads(shared):
        results = run_ahead(lambda number: -number, items())
        for number, result in enumerate(results):
            assert result == -number
            ahead.append(taken - number)
            if number == 20 and besides:
                # From here on the other one waits.
                monkeypatch.setattr(shared, "count_at_work", lambda: 1)
    assert max(ahead[:20]) == (2 if besides else 5)
    assert max(ahead[22:30]) == 5


def test_who_waits_has_left_its_threads_and_takes_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "4")
    shared = SharedThreads(1)
    with leave_threads():
        assert limit_threads() == 4, "nothing is shared here"
    with shared.work():
        assert limit_threads() == 2
        with leave_threads():
            assert limit_threads() == 4
        assert limit_threads() == 2
