"""A script's form is checked by counting: turns, speakers, language, minutes."""

import pytest

from podeval.errors import BadInput
from podeval.text.reasoning import strip_reasoning
from podeval.text.script_format import (
    Minutes,
    count_length,
    find_script_problems,
    read_script,
)

ENGLISH = "Host 1: Welcome back to the show.\n\nHost 2:\nThank you, it is good to be here.\nHost 1: Let us begin.\n"
CHINESE = "主持人1：欢迎回来。\n主持人2：很高兴来到这里，我们开始吧。\n"


def script(words: int, word: str = "word ") -> str:
    return f"Host 1: {word * (words // 2)}\nHost 2: {word * (words - words // 2)}"


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_a_script_as_asked_has_no_problem(text: str, language: str) -> None:
    assert find_script_problems(text, language, 2) == []
    assert find_script_problems(text, language, (2, 3)) == []
    assert find_script_problems(text, language) == []


def test_turns_are_read_with_their_continuations() -> None:
    found = read_script("Speaker 1: One.\nand more\n\nspeaker 2：Two.\n**Host 1:** Three.")
    assert [(turn.speaker, turn.text) for turn in found.turns] == [
        ("1", "One. and more"),
        ("2", "Two."),
        ("1", "Three."),
    ]


def test_what_has_no_turns_is_no_script() -> None:
    with pytest.raises(BadInput, match="no line of the script begins a turn"):
        read_script("Once upon a time.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" \n", "The script is empty."),
        ("Welcome to the show.", "No line begins a turn with its speaker"),
        ('[{"speaker": "1", "text": "Hello"}]', "No line begins a turn with its speaker"),
        ("Here is your script:\n" + ENGLISH, "Words stand before the first turn: “Here is your script:”."),
        (ENGLISH + "Host 2:\n", "Turn 4 (speaker 2) has no words."),
        ("# Title\nHost 1: Hi.\n## Part\nHost 2: Hello.", "Line 3 has markup; a script is plain text."),
        ("**Host 1:** Hi.\nHost 2: Hello.", "Line 1 has markup; a script is plain text."),
        ("Host 1: Hi there.\n[music]\nHost 2: Hello.", "Line 2 is a direction in brackets, not speech."),
        ("Host 1: (laughs)\nHost 2: Hello there.", "Line 1 is a direction in brackets, not speech."),
        ("Host 1 (smiling): Hi.\nHost 1: Hi.\nHost 2: Hello.", "Words stand before the first turn"),
        ("Host 1: Hi.\nHost 2 (smiling): Oh.\nHost 2: Hello.", "Line 2 names a speaker by more than the number"),
        (
            "Host 1: Hi.\nAlex: Yes.\nHost 2: No.\nAlex: Maybe.",
            "2 lines begin with “Alex:”, which is not a numbered speaker",
        ),
        ("Host 1: Hi.\nHost 3: Hello.", "Speakers are numbered 1, 3, not from 1 on without a gap."),
        ("Host 1: Hi. Hello to all.", "2 speakers asked for, 1 in the script."),
        ("主持人1：大家好。\n主持人2：你好。", "The script is in Chinese; English was asked for."),
    ],
)
def test_each_problem_is_a_sentence(text: str, sentence: str) -> None:
    found = find_script_problems(text, "en", 2)
    assert any(problem.startswith(sentence) for problem in found), found


def test_a_colon_in_speech_is_no_speaker() -> None:
    text = "Host 1: Hi.\nRemember this: it is fine.\nHost 2: See https://example.org now.\nhttps://example.org"
    assert find_script_problems(text, "en", 2) == []


@pytest.mark.parametrize(("words", "fits"), [(239, False), (240, True), (360, True), (361, False)])
def test_two_minutes_of_english_are_300_words_and_a_fifth(words: int, fits: bool) -> None:
    found = find_script_problems(script(words), "en", 2, minutes=2)
    said = f"The script has {words} words, {words / 150:.1f} minutes at 150 a minute; 240 to 360 are accepted."
    assert found == ([] if fits else [said])


@pytest.mark.parametrize(("characters", "fits"), [(479, False), (480, True), (720, True), (721, False)])
def test_two_minutes_of_chinese_are_600_characters_and_a_fifth(characters: int, fits: bool) -> None:
    assert (find_script_problems(script(characters, "话"), "zh", 2, minutes=2) == []) == fits


def test_the_tolerance_and_the_bounds_can_be_others() -> None:
    assert find_script_problems(script(300), "en", 2, minutes=2, tolerance=0) == []
    assert len(find_script_problems(script(316), "en", 2, minutes=2, tolerance=0.05)) == 1
    assert find_script_problems(script(10), "en", 2, minutes=Minutes(0, 5)) == []
    (found,) = find_script_problems(script(10), "en", 2, minutes=Minutes(5, float("inf")))
    assert found.endswith("600 or more are accepted.")


def test_length_counts_words_and_characters_not_punctuation_or_labels() -> None:
    assert count_length("It's 3.5 well-known, isn't it? — yes!") == 6
    assert count_length("我用 Python 写了100行，很快。") == 9


@pytest.mark.parametrize(
    ("answer", "script"),
    [
        ("<think>Host 1: draft</think>\nHost 1: Hi.", "Host 1: Hi."),
        ("<think>a</think><answer>Host 1: Hi.</answer>", "Host 1: Hi."),
        ("thoughts without a beginning</think>Host 1: Hi.", "Host 1: Hi."),
        ("Host 1: Hi.", "Host 1: Hi."),
    ],
)
def test_only_the_script_of_an_answer_is_kept(answer: str, script: str) -> None:
    assert strip_reasoning(answer) == script


def test_another_language_is_refused() -> None:
    with pytest.raises(BadInput, match="language must be en or zh"):
        find_script_problems(ENGLISH, "fr")


def test_french_and_gibberish_are_not_english_and_a_speaker_needs_words() -> None:
    french = "Bonsoir à tous et bienvenue dans notre émission sur la mer et le sel qu'elle contient depuis toujours."
    assert find_script_problems(f"Host 1: {french}", "en") == ["The script is in French; English was asked for."]
    letters = " ".join(a + b + "q" for a in "xzkvj" for b in "xzkvj")
    assert find_script_problems(f"Host 1: {letters}", "en") == [
        "The language of the script cannot be detected; English was asked for."
    ]
    assert find_script_problems("Host 1: Yes.", "en") == []
    problems = find_script_problems("Host 1: Good evening to all of you, and welcome.\nHost 2: ...", "en", 2)
    assert problems == ["2 speakers asked for, 1 in the script."]
