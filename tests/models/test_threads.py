import os
from collections.abc import Iterator

import pytest

from podeval.errors import BadInput
from podeval.models.device import count_threads, run_ahead


def test_the_number_of_threads_is_what_was_asked_for_else_the_cores_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "3")
    assert count_threads() == 3
    monkeypatch.delenv("PODEVAL_THREADS")
    assert count_threads() == len(os.sched_getaffinity(0))
    assert count_threads(1) == 1


@pytest.mark.parametrize("wrong", ["many", "0", "-1", "1.5"])
def test_another_number_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", wrong)
    with pytest.raises(BadInput, match="PODEVAL_THREADS must be a whole number of at least 1"):
        count_threads()


def test_one_more_piece_is_in_progress_than_there_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "4")
    ahead, taken = [], 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield number

    for number, result in enumerate(run_ahead(lambda number: -number, items())):
        assert result == -number
        ahead.append(taken - number)
    assert max(ahead) == 5
