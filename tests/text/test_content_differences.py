"""What differs in content between a script and what is heard, and what is only misheard."""

import pytest

from podeval.text.comparison.alignment import ScriptAlignment, align_script
from podeval.text.comparison.content_differences import (
    compare_entities,
    find_content_differences,
    find_replaced_words,
)
from podeval.text.script import Script

SCRIPT = [
    {"speaker": "Ann", "text": "The harbour was quiet that morning. Nobody had seen the ferry leave before dawn."},
    {"speaker": "Ben", "text": "Then somebody must have rowed across the bay in the dark."},
]
HEARD = " ".join(turn["text"] for turn in SCRIPT).replace(".", "").split()


def laid(heard: list[str]) -> ScriptAlignment:
    """The script beside these words, two a second."""
    return align_script(Script.parse(SCRIPT), [(word, at / 2, at / 2 + 0.4) for at, word in enumerate(heard)])


def found(heard: list[str]) -> list[tuple[str, int]]:
    return [(each.kind, each.words) for each in find_content_differences(laid(heard))]


def test_what_is_said_as_it_is_written_has_no_differences() -> None:
    assert found(HEARD) == []


def test_words_left_out_are_omitted_and_stand_where_they_are_missing() -> None:
    (difference,) = find_content_differences(laid(HEARD[:6] + HEARD[14:]))
    assert (difference.kind, difference.words, difference.start) == ("omitted", 8, 6)
    assert found(HEARD[:7] + HEARD[8:]) == [("omitted", 1)]


@pytest.mark.parametrize("at", [6, 14])
def test_a_sentence_said_twice_is_repeated(at: int) -> None:
    assert found(HEARD[:at] + HEARD[at - 6 : at] + HEARD[at:]) == [("repeated", 6)]


def test_a_sentence_said_twice_is_repeated_though_what_is_too_much_begins_in_its_middle() -> None:
    text = "We had a guess. The worst guest that far more people had noticed than really had. So nobody came."
    script = Script.parse([{"speaker": "Ann", "text": text}])
    once = "the worst guest that farmer people had noticed than really had"
    heard = f"we had a guess {once} {once} so nobody came".split()
    (difference,) = find_content_differences(
        align_script(script, [(word, at / 2, at / 2 + 0.4) for at, word in enumerate(heard)])
    )
    assert difference.kind == "repeated"
    assert (difference.start, difference.words) == (9, 10), "from the middle of the one to the middle of the other"


def test_figures_and_signs_are_read_as_the_words_that_they_stand_for() -> None:
    text = "In the nineteen eighties forty percent of it cost nine million dollars."
    script = Script.parse([{"speaker": "Ann", "text": text}])

    def find(heard: str) -> list[str]:
        alignment = align_script(script, [(word, at / 2, at / 2 + 0.4) for at, word in enumerate(heard.split())])
        return [
            " ".join(word.text for word in alignment.written[each.first : each.last])
            for each in find_content_differences(alignment)
        ]

    assert find("In the 1980s 40% of it cost $9 million.") == []
    assert find("In the forty percent of it cost nine million dollars.") == ["nineteen eighties"]
    assert find("In the 1980s 40% of it nine million dollars.") == ["cost"]
    assert find("In the nineteen eighties of it cost nine million dollars.") == ["forty percent"]


def test_cannot_is_could_not_misheard() -> None:
    script = Script.parse([{"speaker": "Ann", "text": "The store could not copy that."}])
    heard = [(word, at / 2, at / 2 + 0.4) for at, word in enumerate(["The", "store", "cannot", "copy", "that"])]
    assert find_content_differences(align_script(script, heard)) == []


def test_a_sentence_that_is_not_in_the_script_is_inserted() -> None:
    invented = ["please", "subscribe", "to", "our", "channel", "for", "more"]
    assert found(HEARD[:14] + invented + HEARD[14:]) == [("inserted", 7)]


def test_babble_in_place_of_a_sentence_is_both_omitted_and_inserted() -> None:
    babble = ["zu", "lakk", "oro", "mi", "mi", "vatt", "quu", "pell"]
    assert found(HEARD[:6] + babble + HEARD[14:]) == [("omitted", 8), ("inserted", 8)]


@pytest.mark.parametrize(
    ("written", "misheard"), [("harbour", ["harbor"]), ("rowed", ["road"]), ("ferry", ["fairy"]), ("dawn", ["on"])]
)
def test_a_word_that_is_misheard_is_none_of_these(written: str, misheard: list[str]) -> None:
    at = HEARD.index(written)
    assert found(HEARD[:at] + misheard + HEARD[at + 1 :]) == []


def test_two_words_heard_as_one_are_not_omitted() -> None:
    at = HEARD.index("Nobody")
    assert found([*HEARD[:at], "No", "body", *HEARD[at + 1 :]]) == []
    at = HEARD.index("before")
    assert found([*HEARD[:at], "beforedawn", *HEARD[at + 2 :]]) == []


def test_a_word_that_is_in_nothing_heard_may_have_been_left_out_though_its_neighbour_is_misheard() -> None:
    at = HEARD.index("across")
    (difference,) = find_content_differences(laid([*HEARD[:at], "zip", *HEARD[at + 2 :]]))
    assert (difference.kind, difference.words, difference.uncertain) == ("omitted", 1, True)
    assert difference.first == at


def test_chinese_is_compared_by_characters() -> None:
    script = Script.parse([{"speaker": "甲", "text": "今天我们来谈谈海水为什么是咸的"}])
    heard = [(each, at / 4, at / 4 + 0.2) for at, each in enumerate("今天我们海水为什么是咸的")]
    (difference,) = find_content_differences(align_script(script, heard))
    assert (difference.kind, difference.words, difference.first) == ("omitted", 3, 4)


ENTITIES = Script.parse(
    [
        {"speaker": "Ann", "text": "Yesterday Ravi Menon paid $3.50 at 10:30 for file B12. It cost forty-two pounds."},
        {"speaker": "Ben", "text": "Then one of them gave 5 % to Kofi."},
    ]
)


def test_names_numbers_amounts_and_codes_are_right_in_any_reading() -> None:
    heard = "Yesterday Ravi Menon paid three fifty at half past ten for file B twelve. It cost £42."
    heard += " Then one of them gave five percent to Kofi."
    entities = compare_entities(ENTITIES, heard, "en")
    assert [(each.kind, each.text) for each in entities] == [
        ("name", "Ravi Menon"), ("amount", "$3.50"), ("number", "10:30"), ("code", "B12"), ("amount", "forty-two"),
        ("number", "5"), ("name", "Kofi"),
    ]  # fmt: skip
    assert all(each.right for each in entities)


def test_each_wrong_entity_is_listed_with_its_place_and_what_is_heard_there() -> None:
    heard = "Yesterday Ravi Lemon paid three sixty at half past ten for file B twenty. It cost £40."
    heard += " Then one of them gave five percent to."
    wrong = [(each.text, each.heard, each.word) for each in compare_entities(ENTITIES, heard, "en") if not each.right]
    assert wrong == [
        ("Ravi Menon", "Ravi Lemon", 1), ("$3.50", "three sixty", 4), ("B12", "B twenty", 12),
        ("forty-two", "£40", 15),
        ("Kofi", "", 25),
    ]  # fmt: skip


def test_a_wrong_neighbour_is_no_fault_of_an_entity() -> None:
    script = Script.parse("We met in wet Leeds and paid fifty pounds there.")
    entities = compare_entities(script, "We met in what was Leeds. Warning! And paid about fifty pound there.", "en")
    assert [(each.text, each.right) for each in entities] == [("Leeds", True), ("fifty", True)]


def test_chinese_numbers_amounts_and_codes_are_entities() -> None:
    script = Script.parse("他2024年涨了5%，买了A4纸三十五张，千万别走。")
    right = compare_entities(script, "他二零二四年涨了百分之五买了A4纸35张千万别走", "zh")
    assert [(each.kind, each.right) for each in right] == [
        ("number", True), ("amount", True), ("code", True), ("number", True),
    ]  # fmt: skip
    wrong = compare_entities(script, "他二零二三年涨了百分之六买了A5纸三十五张千万别走", "zh")
    assert [each.heard for each in wrong if not each.right] == ["二零二三", "百分之六", "a五"]


def test_other_words_in_the_place_of_some_are_replaced_unless_they_sound_alike_or_are_figures() -> None:
    def replaced(old: str, new: str) -> list[tuple[int, int, int, int]]:
        alignment = laid([new if word == old else word for word in HEARD])
        return [(each.first, each.last, each.start, each.end) for each in find_replaced_words(alignment)]

    assert replaced("quiet", "purple") == [(3, 4, 3, 4)]
    assert replaced("quiet", "quite") == [], "misheard"
    assert replaced("the", "an") == [], "too short to be sure"
    assert replaced("quiet", "1980s") == [], "a figure is read in many ways"
    assert [each.kind for each in find_content_differences(laid([*HEARD[:3], "purple", *HEARD[4:]]))] == []
