"""Batches of equal length hold every input once, and no more than they may."""

from podeval.models.batches import batch_equal_lengths


def test_every_input_once_with_others_of_its_length() -> None:
    lengths = [3, 1, 3, 3, 2, 3, 1]
    found = list(batch_equal_lengths(lengths, 2))
    assert sorted(position for batch in found for position in batch) == list(range(7))
    assert all(len({lengths[position] for position in batch}) == 1 for batch in found)
    assert [len(batch) for batch in found] == [2, 1, 2, 2]
    assert list(batch_equal_lengths([], 4)) == []
