"""What is told of the time that is left: nothing at first, then a range that holds it."""

from podeval.progress import PREPARING
from podeval.scoring.estimate import ScoreProgress
from podeval.scoring.time_left import TimeLeft


def test_nothing_is_told_before_a_fifth_is_done_and_while_a_model_is_prepared() -> None:
    left = TimeLeft()
    assert left.tell(1.0) is None
    left.hear(ScoreProgress("DNSMOS", 0.1, 90.0), 10.0)
    assert left.tell(10.0) is None
    left.hear(ScoreProgress(PREPARING, 0.4, 60.0), 40.0)
    assert left.tell(40.0) is None
    left.hear(ScoreProgress("DNSMOS", 0.5, 50.0), 50.0)
    assert left.tell(50.0) is not None
    # Nothing more is heard: a model is being loaded.
    assert left.tell(90.0) is None


def test_a_range_holds_what_is_left_when_the_machine_becomes_three_times_slower() -> None:
    left, at, done = TimeLeft(), 0.0, 0.0
    ends = 40 + 60 * 3
    ranges = []
    while done < 0.97:
        at += 1
        done += 0.01 if done < 0.4 else 0.01 / 3
        # The expectation knows nothing of what became slower.
        left.hear(ScoreProgress("DNSMOS", done, 100 * (1 - done)), at)
        if at > 60 and (between := left.tell(at)):
            ranges.append((at, between))
    assert len(ranges) > 100
    assert all(low <= ends - at <= high for at, (low, high) in ranges)
