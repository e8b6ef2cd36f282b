import threading
import time

from podeval.errors import BadInput
from podeval.submissions.scheduler import run_periodically


def test_work_is_done_again_and_again_never_twice_at_once_and_errors_do_not_stop_it() -> None:
    log: list[str] = []
    failed_twice, worked_twice, busy, worked = threading.Event(), threading.Event(), threading.Semaphore(1), [0]

    def slow() -> None:
        assert busy.acquire(blocking=False), "two at once"
        time.sleep(0.15)
        worked[0] += 1
        busy.release()
        if worked[0] == 2:
            worked_twice.set()

    def broken() -> None:
        if len(log) == 2:
            failed_twice.set()
        raise BadInput("the Hub is down")

    with run_periodically({"slow": (0.05, slow), "sync": (0.05, broken)}, log.append):
        assert failed_twice.wait(60)
        assert worked_twice.wait(60)
    count = worked[0]
    assert set(log) == {"sync: the Hub is down"}, "nor are two at once"
    time.sleep(0.2)
    assert worked[0] == count, "nothing goes on after the block"
