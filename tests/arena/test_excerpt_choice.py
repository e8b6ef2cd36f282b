from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podeval.arena.excerpt_choice import RecordingLength, choose, choose_whole, count_heard_seconds


def even_turns(count: int, seconds: float) -> RecordingLength:
    return RecordingLength(count * seconds, [(k * seconds, (k + 1) * seconds) for k in range(count)])


def test_short_outputs_are_heard_whole() -> None:
    found = choose(RecordingLength(60.0), RecordingLength(12.0), seed=1, seconds=60.0)
    assert (found.a, found.b, found.rule) == ((0.0, 60.0), (0.0, 12.0), "whole")


def test_equally_many_turns_are_compared_over_the_same_turns() -> None:
    """Ten turns of 12 s against ten of 18 s: three of the longer fit into 60 s."""
    for seed in range(30):
        found = choose(even_turns(10, 12.0), even_turns(10, 18.0), seed=seed, seconds=60.0)
        assert found.rule == "same turns"
        assert found.turns[1] - found.turns[0] == 2
        assert found.a == (12.0 * found.turns[0], 12.0 * (found.turns[0] + 3))
        assert found.b == (18.0 * found.turns[0], 18.0 * (found.turns[0] + 3))


def test_every_part_is_heard_the_end_as_well() -> None:
    heard = Counter()
    for seed in range(400):
        found = choose(even_turns(10, 12.0), even_turns(10, 18.0), seed=seed, seconds=60.0)
        heard.update(range(found.turns[0], found.turns[1] + 1))
    assert set(heard) >= set(range(9))
    assert heard[0] > 30


def test_a_turn_longer_than_an_excerpt_is_cut_on_both_sides() -> None:
    """At the same share of it, so that both say the same."""
    found = choose(even_turns(2, 300.0), even_turns(2, 200.0), seed=3)
    assert found.turns[0] == found.turns[1]
    assert found.a[1] - found.a[0] == pytest.approx(30.0)
    assert found.b[1] - found.b[0] == pytest.approx(20.0)


def test_short_turns_are_followed_by_part_of_the_next_one() -> None:
    """8 s and 25 s: the first alone is no excerpt of 20 s; 22 s of the second fit beside it."""
    turns = [(0.0, 8.0), (8.0, 33.0), (33.0, 58.0)]
    slower = [(0.0, 9.0), (9.0, 34.0), (34.0, 70.0)]
    found = choose(RecordingLength(58.0, turns), RecordingLength(70.0, slower), seed=2)
    assert found.turns == (0, 1)
    assert found.b == (0.0, 30.0)
    assert found.a == pytest.approx((0.0, 8.0 + 25.0 * 21.0 / 25.0))


def test_whole_recordings_are_played_from_beginning_to_end() -> None:
    found = choose_whole(RecordingLength(3000.0), RecordingLength(600.0))
    assert (found.a, found.b, found.rule) == ((0.0, 3000.0), (0.0, 600.0), "whole")


def test_otherwise_the_same_position_is_compared() -> None:
    for seed in range(30):
        found = choose(RecordingLength(660.0), RecordingLength(3060.0), seed=seed, seconds=60.0)
        assert found.rule == "same position"
        assert found.a[0] / 600.0 == pytest.approx(found.b[0] / 3000.0)
        assert found.a[1] - found.a[0] == pytest.approx(60.0)


def test_an_excerpt_begins_with_a_turn_that_begins_just_before() -> None:
    turns = [(0.0, 100.0), (100.0, 110.0), (110.0, 300.0)]
    starts = {
        choose(RecordingLength(300.0, turns), RecordingLength(300.0), seed=seed, seconds=60.0).a[0]
        for seed in range(200)
    }
    assert {0.0, 110.0} <= starts
    assert not any(110.0 < start <= 125.0 for start in starts)


lengths = st.builds(
    lambda cuts, end: RecordingLength(end, list(zip([0.0, *sorted(cuts)], [*sorted(cuts), end], strict=True))),
    st.lists(st.floats(0.0, 100.0), max_size=8),
    st.floats(100.0, 4000.0),
)


@settings(max_examples=200, deadline=None)
@given(lengths, lengths, st.integers(0, 2**53), st.floats(1.0, 120.0))
def test_excerpts_lie_inside_and_are_not_too_long_and_sides_do_not_matter(
    a: RecordingLength, b: RecordingLength, seed: int, seconds: float
) -> None:
    found, other = choose(a, b, seed=seed, seconds=seconds), choose(b, a, seed=seed, seconds=seconds)
    assert (found.a, found.b) == (other.b, other.a)
    for span, length in ((found.a, a), (found.b, b)):
        assert 0.0 <= span[0] <= span[1] <= length.seconds
        assert span[1] - span[0] <= max(seconds, 0.0) + 1e-6 or found.rule == "whole"


@pytest.mark.parametrize(
    ("played", "share"),
    [
        ([], 0.0),
        ([(0, 10)], 1.0),
        ([(0, 5), (0, 5), (4, 5)], 0.5),
        ([(8, 10), (0, 2)], 0.4),
        ([(-5, 3), (9, 99)], 0.4),
        ([(3, 3)], 0.0),
    ],
)
def test_what_was_played_counts_once(played: list[tuple[float, float]], share: float) -> None:
    assert count_heard_seconds(played, 10.0) == pytest.approx(10 * share)
