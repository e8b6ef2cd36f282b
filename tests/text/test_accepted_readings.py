"""Of all texts that count as right, the nearest to what is heard is compared; saying two readings gains nothing."""

import itertools
import random

import pytest

from podeval.errors import BadInput
from podeval.text.comparison.accepted_readings import PLAIN, AcceptedReadings
from podeval.text.comparison.word_errors import count_word_errors

COFFEE = [
    {
        "text": "It cost $3.50 on 19/6 in Leeds.",
        "readings": [
            {"text": "$3.50", "accepted": ["three dollars fifty", "three fifty"], "tags": ["money"]},
            {"text": "19/6", "accepted": ["the nineteenth of June", "June nineteenth"], "tags": ["date"]},
        ],
    },
    {"text": "Really? Who paid?", "tags": ["questions"]},
]


def read(heard: str, lines: list[dict[str, object]] = COFFEE, **options: str) -> tuple[float | None, int]:
    """The WER against the nearest accepted text, and the edits of the search."""
    nearest = AcceptedReadings.parse(lines).choose(heard, **options)
    return count_word_errors(nearest.text, heard).wer, nearest.errors


@pytest.mark.parametrize("money", ["$3.50", "three dollars fifty", "Three fifty"])
@pytest.mark.parametrize("date", ["19/6", "the nineteenth of June", "June 19th"])
def test_every_accepted_reading_is_without_an_error(money: str, date: str) -> None:
    assert read(f"It cost {money} on {date} in Leeds. Really? Who paid?") == (0, 0)


@pytest.mark.parametrize(
    ("said", "errors"),
    [
        ("It cost three fifty cents on June nineteenth in Leeds. Really? Who paid?", 1),
        ("It cost three fifty on June nineteenth the nineteenth of June in Leeds. Really? Who paid?", 2),
        ("It cost $3.50 on nineteen slash six in Leeds. Really? Who paid?", 1),
        ("It cost on June nineteenth in Leeds. Really? Who paid?", 1),
        ("It cost three fifty on June nineteenth in Leeds.", 3),
    ],
)
def test_a_wrong_reading_both_readings_and_none_count(said: str, errors: int) -> None:
    rate, edits = read(said)
    assert edits == errors
    assert rate
    assert rate > 0


def test_the_search_finds_what_trying_every_text_finds() -> None:
    draw = random.Random(5)
    words = ["a", "b", "c", "d"]

    def phrase(least: int) -> str:
        return " ".join(draw.choices(words, k=draw.randint(least, 3)))

    for _ in range(60):
        stretches = [[f"x{number}", *(phrase(1) for _ in range(draw.randint(1, 3)))] for number in range(3)]
        fixed = [phrase(1) for _ in range(4)]
        parts = [part for pair in zip(fixed, (one[0] for one in stretches), strict=False) for part in pair]
        line = {
            "text": " ".join([*parts, fixed[3]]),
            "readings": [{"text": one[0], "accepted": one[1:], "tags": ["t"]} for one in stretches],
        }
        heard = phrase(3) + " " + phrase(3) + " " + phrase(2)
        texts = [
            " ".join([fixed[0], one, fixed[1], two, fixed[2], three, fixed[3]])
            for one, two, three in itertools.product(*stretches)
        ]
        counts = [count_word_errors(text, heard, normaliser="basic") for text in texts]
        best = min(each.substitutions + each.insertions + each.deletions for each in counts)
        nearest = AcceptedReadings.parse([line]).choose(heard, normaliser="basic")
        chosen = count_word_errors(nearest.text, heard, normaliser="basic")
        assert nearest.errors == best == chosen.substitutions + chosen.insertions + chosen.deletions
        assert sum(count.errors for count in nearest.by_tag.values()) == best


def test_errors_count_for_the_tags_of_the_stretch_and_of_the_line() -> None:
    said = "It cost three fifty cents on June nineteenth in Leeds. Really? Who said?"
    nearest = AcceptedReadings.parse(COFFEE).choose(said)
    found = {tag: (count.errors, count.words) for tag, count in nearest.by_tag.items()}
    # "three fifty" is one number after normalisation; "cents" too much touches it.
    assert found == {PLAIN: (0, 5), "money": (1, 1), "date": (0, 2), "questions": (1, 3)}
    assert [(one.text, one.tags) for one in nearest.misread] == [("$3.50", ("money",))]
    assert nearest.stretches == 2


def test_a_laugh_may_be_laughed_or_left_out_but_not_read_out() -> None:
    lines = [{"text": "[laughs] It was a tuba.", "readings": [{"text": "[laughs]", "accepted": ["ha ha", "haha"]}]}]
    assert read("It was a tuba.", lines) == (0, 0)
    assert read("Haha, it was a tuba.", lines) == (0, 0)
    assert read("Laughs, it was a tuba.", lines)[1] == 1


def test_chinese_is_compared_by_characters() -> None:
    lines = [{"text": "他2024年来的", "readings": [{"text": "2024年", "accepted": ["二零二四年", "两千零二十四年"]}]}]
    for said in ("他二零二四年来的", "他两千零二十四年来的"):
        assert AcceptedReadings.parse(lines).choose(said, "zh").errors == 0
    assert AcceptedReadings.parse(lines).choose("他二十四年来的", "zh").errors == 2


def test_a_stretch_stands_for_itself_and_not_within_another_word() -> None:
    lines = [{"text": "Bus 15 and bus 5.", "readings": [{"text": "5", "accepted": ["number five"]}]}]
    assert AcceptedReadings.parse(lines).choose("bus 15 and bus number five").text == "Bus 15 and bus number five."
    with pytest.raises(BadInput, match="does not occur in"):
        AcceptedReadings.parse([{"text": "Bus 15.", "readings": [{"text": "5"}]}])


@pytest.mark.parametrize(
    "source", ["It cost", [{"words": "It"}], [{"text": "It", "readings": [{"text": "It", "accepted": "x"}]}]]
)
def test_readings_in_another_form_are_refused_with_a_sentence(source: object) -> None:
    with pytest.raises(BadInput, match="readings must be a list of lines"):
        AcceptedReadings.parse(source)


def test_a_text_that_is_too_long_to_search_is_refused() -> None:
    with pytest.raises(BadInput, match="score it in parts"):
        AcceptedReadings.parse([{"text": "one two " * 5000}]).choose("one two " * 5000, normaliser="basic")
