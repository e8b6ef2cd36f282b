import pytest

from podeval.errors import BadInput
from podeval.text.normalise import normalise, simplified


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("twenty-five dollars", "$25"),
        ("It’s a colour, isn’t it?", "it's a color isn't it"),
        ("Um, hello (laughs) there", "Hello there."),
        ("Mr. Smith won't", "mister smith will not"),
        ("nineteen ninety nine", "1999"),
    ],
)
def test_whisper_makes_ways_of_writing_the_same_words_equal(spoken: str, written: str) -> None:
    assert normalise(spoken) == normalise(written)


def test_whisper_does_not_make_different_words_equal() -> None:
    assert normalise("fifteen dollars") != normalise("fifty dollars")


def test_whisper_for_chinese_simplifies_and_drops_punctuation_width_and_brackets() -> None:
    assert normalise("我們今天說：「ＡＩ」（笑）很好！", "zh") == "我们今天说 ai 很好"


def test_whisper_for_chinese_keeps_the_wording() -> None:
    # Taiwan's 軟體 becomes 软体, not the mainland's 软件: another word was said.
    assert normalise("軟體", "zh") == simplified("軟體") == "软体"


def test_basic_lowers_and_takes_punctuation_for_spaces_but_keeps_the_apostrophe() -> None:
    assert normalise("Well-known — it's  3.5!\n", normaliser="basic") == "well known it's 3 5"


def test_lfs_deletes_punctuation_as_f5_tts_does() -> None:
    assert normalise("Well-known café — it's 3.5!", normaliser="lfs") == "wellknown caf its 35"
    assert normalise("我們說：「軟體」，很好！", "zh", "lfs") == "我们说软件很好"


def test_none_only_unifies_whitespace() -> None:
    assert normalise(" A  b,\n\tC ", normaliser="none") == "A b, C"


def test_text_that_is_only_punctuation_is_empty_under_each_cleaning() -> None:
    assert [normalise("... — !", normaliser=name) for name in ("whisper", "basic", "lfs")] == ["", "", ""]
    assert normalise("。！——", "zh") == ""


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(BadInput, match="whisper, basic, lfs, none, not 'strict'"):
        normalise("a", normaliser="strict")
    with pytest.raises(BadInput, match="en or zh"):
        normalise("a", "de")
