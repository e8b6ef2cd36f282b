"""Floor events by hand, the effect of editing turn times on each figure, and the facts about people."""

import numpy as np
import pytest

from podeval.stats.turn_taking import (
    KINDS,
    OFFSETS,
    bootstrap_distance,
    count_people,
    follow_the_floor,
    jensen_shannon_distance,
    join_units,
    read_people,
)

Turns = list[tuple[str, float, float]]


def strung_together(gap: float, turns: int = 30, seconds: float = 4.0) -> Turns:
    """Two people in turn, each turn after the same gap."""
    return [("AB"[n % 2], n * (seconds + gap), n * (seconds + gap) + seconds) for n in range(turns)]


def like_people(kind: str, turns: int = 400) -> Turns:
    """Two people whose floor events are drawn from people's counts."""
    random = np.random.default_rng(4)
    counts = count_people(kind)
    middles = [-0.8, -0.2, 0.1, 0.35, 0.75, 1.5]
    said, now, holder = [("A", 0.0, 6.0)], 6.0, "A"
    for event in random.choice(len(KINDS), size=turns, p=counts / counts.sum()):
        other = "B" if holder == "A" else "A"
        if KINDS[event] == "backchannel":
            said.append((other, now - 3.0, now - 2.5))
        elif KINDS[event] == "talking over":
            said.append((other, now - 4.0, now - 2.0))
        else:
            start = now + middles[event]
            said.append((other, start, start + 6.0))
            now, holder = start + 6.0, other
            continue
        # The holder goes on, so that events do not fall on each other.
        said.append((holder, now, now + 6.0))
        now += 6.0
    return said


def test_gaps_and_overlaps_are_offsets_between_turns() -> None:
    floor = follow_the_floor([("A", 0, 3), ("B", 3.4, 6), ("A", 5.5, 8), ("B", 9.5, 12)])
    assert floor.offsets == pytest.approx((0.4, -0.5, 1.5))
    assert floor.turns == 4
    assert floor.overlap == pytest.approx(0.5)
    assert floor.speech == pytest.approx(3 + 4.6 + 2.5)
    assert floor.talk == pytest.approx({"A": 5.5, "B": 5.1})


def test_a_short_sound_under_or_between_another_s_speech_is_a_backchannel_and_takes_no_floor() -> None:
    floor = follow_the_floor([("A", 0, 5), ("B", 2, 2.5), ("B", 5.1, 5.6), ("A", 5.8, 9), ("B", 9.2, 9.7)])
    assert floor.backchannels == 2
    assert floor.offsets == pytest.approx((0.2,)), "what nobody goes on after is a turn, however short"
    assert floor.pauses == pytest.approx((0.8,))


def test_a_long_unit_that_ends_under_another_s_speech_is_talking_over() -> None:
    floor = follow_the_floor([("A", 0, 9), ("B", 3, 6), ("A", 9.5, 12)])
    assert floor.counts.tolist() == [0] * (len(KINDS) - 1) + [1]
    assert floor.overlap == pytest.approx(3)


def test_units_are_joined_over_short_pauses_of_one_person_only() -> None:
    assert join_units([("A", 1.2, 2), ("A", 0, 1), ("B", 0.9, 1.1), ("A", 2.3, 3)]) == [
        ("A", 0, 2),
        ("B", 0.9, 1.1),
        ("A", 2.3, 3),
    ]


def test_silence_has_no_turns() -> None:
    floor = follow_the_floor([])
    assert (floor.turns, floor.speech, floor.duration, floor.counts.sum()) == (0, 0.0, 0.0, 0)


def test_each_bound_belongs_to_the_kind_below_it() -> None:
    for number, bound in enumerate(OFFSETS):
        floor = follow_the_floor([("A", 0, 4), ("B", 4 + bound, 9)])
        assert np.argmax(floor.counts) == number


@pytest.mark.parametrize("kind", ["broadcast", "meeting"])
def test_people_are_near_to_people_and_turns_strung_together_are_far(kind: str) -> None:
    people = count_people(kind)
    near = jensen_shannon_distance(follow_the_floor(like_people(kind)).counts, people)
    far = jensen_shannon_distance(follow_the_floor(strung_together(0.3)).counts, people)
    assert near < 0.2
    assert far > 0.8


def test_the_interval_of_a_distance_narrows_with_the_conversation() -> None:
    people = count_people("broadcast")
    short, long = follow_the_floor(like_people("broadcast", 20)), follow_the_floor(like_people("broadcast", 600))
    widths = []
    for floor in (short, long):
        low, high = bootstrap_distance(floor.kinds, people)
        assert 0 <= low < high <= 1
        assert bootstrap_distance(floor.kinds, people) == (low, high)
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_each_kind_of_conversation_names_its_source_and_licence() -> None:
    for kind, facts in read_people().items():
        assert facts["url"].startswith("https://"), kind
        assert "CC BY 4.0" in facts["licence"]
        assert facts["conversations"] > 100
        assert count_people(kind).sum() > 10_000
