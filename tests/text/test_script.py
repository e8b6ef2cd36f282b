import json

import pytest

from podeval.errors import BadInput
from podeval.text.script import Script, Turn

TURNS = (Turn("A", "Hello."), Turn("B", "Hi — 你好."), Turn("A", "Bye."))


@pytest.mark.parametrize(
    "source",
    [
        [{"speaker": "A", "text": "Hello."}, {"speaker": "B", "text": "Hi — 你好."}, {"speaker": "A", "text": "Bye."}],
        [["A", "Hello."], ["B", "Hi — 你好."], ["A", "Bye."]],
        {"turns": [{"role": "A", "content": "Hello."}, ["B", "Hi — 你好."], ("A", "Bye.")]},
        {
            "role_mapping": {},
            "dialogue": [
                {"role": "A", "text": "Hello."},
                {"role": "B", "text": "Hi — 你好."},
                {"role": "A", "text": "Bye."},
            ],
        },
    ],
)
def test_the_forms_of_the_field_are_read_as_data_and_as_json(source: object) -> None:
    assert Script.parse(source).turns == TURNS  # type: ignore[arg-type]
    assert Script.parse(json.dumps(source)).turns == TURNS
    assert Script.parse("\ufeff " + json.dumps(source, indent=1)).turns == TURNS


def test_json_lines_are_read_even_with_a_unicode_line_separator_in_a_text() -> None:
    lines = ['{"speaker": "A", "speaking_content": "one\u2028two"}', "", '{"speaker": 2, "speaking_content": "three"}']
    assert Script.parse("\n".join(lines)).turns == (Turn("A", "one\ntwo"), Turn("2", "three"))


def test_one_turn_alone_is_a_script() -> None:
    assert Script.parse('{"role": "host", "content": "Hello."}').turns == (Turn("host", "Hello."),)


@pytest.mark.parametrize("text", ["Just words.", "[Music] Welcome back!", "{laughs} Hello."])
def test_plain_text_is_one_turn_of_one_speaker(text: str) -> None:
    assert Script.parse(text).turns == (Turn("1", text),)


def test_text_and_speakers_are_in_order() -> None:
    script = Script(TURNS)
    assert script.text == "Hello. Hi — 你好. Bye."
    assert script.speakers == ("A", "B")
    assert Script.parse(script) is script
    assert Script.parse(script.to_json()) == script


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('[{"speaker": "A", "text": "cut o', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('[{"text": "who?"}]', "turn 1 of the script needs a speaker"),
        ('[["A", "Hello."], {"speaker": "B", "text": null}]', "turn 2 of the script has no text"),
        ([{"speaker": "A", "text": "a"}, "b"], "turn 2 of the script is not an object"),
        ("[]", "contains no words"),
        ("  ", "contains no words"),
        ('[{"speaker": "A", "text": " "}]', "contains no words"),
    ],
)
def test_what_is_no_script_is_refused_with_its_place(source: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Script.parse(source)  # type: ignore[arg-type]


def test_a_name_in_another_case_width_or_spacing_is_the_same_speaker() -> None:
    script = Script.parse([["Host", "a"], ["HOST ", "b"], ["\uff28ost", "c"], ["Ho\u200bst", "d"], ["Guest  One", "e"]])
    assert script.speakers == ("Host", "Guest One")
    assert [turn.speaker for turn in script.turns] == ["Host"] * 4 + ["Guest One"]


def test_who_has_no_words_is_no_speaker() -> None:
    assert Script.parse([["A", "Hello."], ["B", ""], ["C", " ?! "], ["D", "5"]]).speakers == ("A", "D")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_a_line_break_in_a_turn_begins_no_other_turn(end: str) -> None:
    forged = Script.parse([["Host", f"Yes.{end}GUEST: I agree."], ["Guest", "No."]])
    assert forged.lines == "Host: Yes. GUEST: I agree.\nGuest: No."
    assert Script.parse([["Host", f"Yes.{end}GUEST: I agree."]]).lines == "Yes. GUEST: I agree."
    assert Script.parse([[f"Host{end}Guest: hi", "Yes."], ["B", "No."]]).lines.count("\n") == 1


def test_paragraphs_of_a_text_of_one_speaker_stay() -> None:
    assert Script.parse("One.\n\nTwo, and\nthree.\n").lines == "One.\n\nTwo, and\nthree.\n"
