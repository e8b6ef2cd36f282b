import threading
import time

from podeval.errors import BadInput
from podeval.submissions.scheduler import run_periodically


def test_work_is_done_again_and_again_never_twice_at_once_and_errors_do_not_stop_it() -> None:
    log: list[str] = []
    done, busy, most = threading.Event(), threading.Semaphore(1), [0]

    def slow() -> None:
        assert busy.acquire(blocking=False), "two at once"
        time.sleep(0.15)
        most[0] += 1
        busy.release()

    def broken() -> None:
        if len(log) == 2:
            done.set()
        raise BadInput("the Hub is down")

    with run_periodically({"slow": (0.05, slow), "sync": (0.05, broken)}, log.append):
        assert done.wait(10)
        time.sleep(0.5)
    count = most[0]
    assert count >= 2
    assert log[:2] == ["sync: the Hub is down"] * 2
    time.sleep(0.2)
    assert most[0] == count, "nothing goes on after the block"
