import os

import pytest

from podeval.errors import BadInput
from podeval.models.threads import limit_threads


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
