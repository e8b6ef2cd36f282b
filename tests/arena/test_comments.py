import pytest
from hypothesis import given
from hypothesis import strategies as st

from podeval.arena.voting import clean_comment


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
