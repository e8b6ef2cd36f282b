"""Recordings scored on their speech stem rank with none that are scored as they are, and unranked values with none."""

import pytest

from podeval.leaderboard.comparability import explain_unranked, select_comparable
from podeval.metrics.score import Score


def scores(values: list[float], stems: int = 0, refused: int = 0) -> dict[str, Score]:
    """Scores of so many items; the first ones on stems, the last ones unranked."""
    return {
        str(number): Score(
            {"ovrl": value},
            {
                **({"scored": "speech stem"} if number < stems else {}),
                **({"unranked": {"ovrl": "it is short"}} if number >= len(values) - refused else {}),
            },
        )
        for number, value in enumerate(values)
    }


CLEAN = [3.0] * 10


def test_a_system_that_adds_music_is_not_ranked_among_those_without() -> None:
    by_system = {"a": scores(CLEAN), "b": scores(CLEAN), "music": scores([3.5] * 10, stems=10)}
    (reason,) = explain_unranked(by_system, "ovrl").values()
    assert reason == (
        "not ranked: 10 of 10 recordings were scored on their speech stem, where those of most systems are scored as "
        "they are"
    )
    assert set(select_comparable(by_system, "ovrl")) == {"a", "b"}


def test_where_most_have_music_it_is_the_other_way() -> None:
    by_system = {"a": scores(CLEAN, stems=10), "b": scores(CLEAN, stems=10), "dry": scores(CLEAN)}
    (reason,) = explain_unranked(by_system, "ovrl").values()
    assert reason.endswith("scored as they are, where those of most systems are scored on their speech stem")


def test_a_system_with_a_little_music_is_ranked_by_its_other_items() -> None:
    by_system = {"a": scores(CLEAN), "b": scores(CLEAN), "c": scores([9.0, 9.0, *CLEAN[2:]], stems=2)}
    assert not explain_unranked(by_system, "ovrl")
    assert set(select_comparable(by_system, "ovrl")["c"].values()) == {3.0}


def test_of_two_systems_the_one_with_music_has_no_rank() -> None:
    assert list(explain_unranked({"a": scores(CLEAN), "b": scores(CLEAN, stems=10)}, "ovrl")) == ["b"]


@pytest.mark.parametrize(("refused", "ranked"), [(0, True), (1, False)])
def test_values_that_a_metric_calls_unranked_are_in_no_rank(refused: int, ranked: bool) -> None:
    by_system = {"a": scores(CLEAN), "b": scores(CLEAN, refused=refused)}
    assert (not explain_unranked(by_system, "ovrl")) is ranked
    assert ("b" in select_comparable(by_system, "ovrl")) is ranked


def test_pooled_values_are_ranked_by_their_weighted_mean() -> None:
    """Nine criteria of one dialogue count nine times as much as one of another."""
    weighed = {
        "1": Score({"rubric": 100.0}, weights={"rubric": 1.0}),
        "2": Score({"rubric": 0.0}, weights={"rubric": 9.0}),
    }
    values = select_comparable({"a": weighed}, "rubric")["a"]
    assert sum(values.values()) / len(values) == pytest.approx(10.0)
