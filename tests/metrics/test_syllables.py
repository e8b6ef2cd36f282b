import pytest

from podeval.metrics.speech.pace import count_syllables

WORDS = """
the:1 people:2 because:2 science:2 really:2 little:2 created:3 wanted:2 walked:1 called:1 ocean:2 radio:3 idea:3 video:3
million:2 question:2 being:2 going:2 quiet:2 variety:4 area:3 actual:3 usually:4 language:2 equal:2 social:2 podcast:2
microphone:3 houses:2 changes:2 minutes:2 makes:1 times:1 hundred:2 table:2 whole:1 rule:1 something:2 everything:3
interesting:4 beautiful:3 serious:3 curious:3 station:2 ancient:2 earlier:3 higher:2 fire:1 every:2 different:3
evening:2 don't:1 you're:1 I'm:1 business:2 saltier:3 minerals:3 acidic:3 dissolves:2 rivers:2 hydrothermal:4 vents:1
scientists:3 centuries:3 added:2 smiled:1 rhythm:2 theory:2 poem:2 create:2 museum:3 twenty-five:3 breathes:1 lists:1
"""


def test_most_english_words_are_right_and_their_sum_is_within_five_percent() -> None:
    """Counted by hand; every, evening and business as most people say them."""
    listed = {word: int(number) for word, _, number in (entry.partition(":") for entry in WORDS.split())}
    counted = {word: count_syllables(word) for word in listed}
    right = sum(counted[word] == number for word, number in listed.items())
    assert right / len(listed) > 0.9
    assert sum(counted.values()) == pytest.approx(sum(listed.values()), rel=0.05)


@pytest.mark.parametrize(
    ("text", "language", "count"),
    [
        ("我们在说话。", "zh", 5),
        ("我有25个", "zh", 6),
        ("25", "en", 3),
        ("", "en", 0),
        ("...", "en", 0),
        ("hm", "en", 1),
    ],
)
def test_characters_numbers_and_what_is_not_said(text: str, language: str, count: int) -> None:
    assert count_syllables(text, language) == count
