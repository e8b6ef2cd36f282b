import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podeval.arena.comments import clean_comment, find_off_topic, find_repeated_comments, find_thin_comments


@given(st.text(st.characters(), max_size=300))
def test_no_control_character_survives_and_nothing_else_is_lost(text: str) -> None:
    kept, was_cut = clean_comment(text)
    assert not was_cut
    assert all(character in "\n\t" or ord(character) >= 32 for character in kept)
    assert not set(kept) & set("\x7f\u202e\u2066\u200b")
    assert clean_comment(kept) == (kept, False)


@pytest.mark.parametrize(
    "text", ["plain words", "好的，第二个更清楚", "l'été à 5 €", "<b>bold</b> & more", "two\nlines"]
)
def test_what_people_write_stays(text: str) -> None:
    assert clean_comment(text) == (text, False)
    assert clean_comment("x" * 2500) == ("x" * 2000, True)


def votes(*rows: tuple[str, str], dimension: str = "semantic") -> pd.DataFrame:
    return pd.DataFrame([{"voter": voter, "comment": comment, "dimension": dimension} for voter, comment in rows])


def test_a_copied_reason_is_seen_whatever_its_case_and_punctuation() -> None:
    copied = [
        ("ann", text)
        for text in ("A was more natural.", "a was more NATURAL", "A was more natural!!", "a  was more natural")
    ]
    table = votes(*copied, ("ben", "A was more natural"), ("ben", "quite another reason"))
    assert list(find_repeated_comments(table, 4, 12).index) == [0, 1, 2, 3]
    assert find_repeated_comments(table, 5, 12).empty


def test_a_long_reason_shared_by_voters_is_seen_and_a_short_one_is_not() -> None:
    long = "the second speaker explains the context of the question far better"
    assert len(find_repeated_comments(votes(*[(f"v{n}", long) for n in range(4)]), 4, 12)) == 4
    assert find_repeated_comments(votes(*[(f"v{n}", "the second is better") for n in range(9)]), 4, 12).empty


def test_a_few_letters_again_and_again_are_thin() -> None:
    table = votes(*[("ann", "good")] * 10, *[("ben", f"reason {n} is long enough") for n in range(10)], ("ben", "good"))
    assert list(find_thin_comments(table, 10, 12).index) == list(range(10))


@pytest.mark.parametrize(
    ("dimension", "comment", "strays"),
    [
        ("semantic", "B has a strange accent", True),
        ("semantic", "B's accent is odd, but its answer fits the question", False),
        ("semantic", "the answer is wrong", False),
        ("semantic", "口音很重", True),
        ("semantic", "口音很重，但是回答正确", False),
        ("semantic · coherence", "there is echo", True),
        ("semantic", "A is better", False),
        ("paralinguistic", "more emotion in the voice", False),
        ("paralinguistic", "too much background noise", True),
        ("ambient", "it noticed the noise behind", False),
        ("ambient", "poor pronunciation", True),
        ("something else", "poor pronunciation", False),
        ("semantic", "accentuated", False),
    ],
)
def test_comments_that_judge_what_was_not_asked_are_seen(dimension: str, comment: str, strays: bool) -> None:
    assert find_off_topic(votes(("ann", comment), dimension=dimension)).empty != strays


def test_no_votes_are_no_finding() -> None:
    nothing = pd.DataFrame({"voter": [], "comment": [], "dimension": []}, dtype=object)
    assert find_repeated_comments(nothing, 4, 12).empty
    assert find_thin_comments(nothing, 4, 12).empty
    assert find_off_topic(nothing).empty
