"""Scripts, transcripts and tables that other programs write, and what is read of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from podeval.errors import BadInput
from podeval.measuring.inputs import convert_to_text, read_input
from podeval.text.script import Script
from podeval.text.script_format import read_any_script

LINES = (
    ("Anna", "Welcome back to the show about rivers."),
    ("Ben", "Thank you, it is good to be here."),
    ("Anna", "Let us begin with the Nile."),
    ("Ben", "It is the longest one, I think."),
)
TURNS = [{"speaker": who, "text": text} for who, text in LINES[:2]]
PAIR = list(LINES[:2])


def write(form: str, end: str = "\n") -> str:
    """Write the lines in a form with `{name}`, `{upper}`, `{number}`, `{letter}`, `{seconds}` and `{text}`."""
    return end.join(
        form.format(
            name=name, upper=name.upper(), text=text, number=at + 1, letter="AB"[at % 2], seconds=f"{5 * at:02d}"
        )
        for at, (name, text) in enumerate(LINES)
    )


def turns_of(source: Any) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in read_any_script(source).turns]


@pytest.mark.parametrize(
    "text",
    [
        write("{name}\n{text}", "\n\n"),
        write("@{name}\n{text}", "\n\n"),
        write("{name}  0:{seconds}  \n{text}", "\n\n"),
        write("{name} [00:00:{seconds}]\n{text}", "\n\n"),
        write("[{name}] 00:00:{seconds}\n{text}", "\n\n"),
        write("00;00;{seconds};00 - 00;00;{seconds};24\n{name}\n{text}", "\n\n"),
        write("{name}  10:{seconds} AM\n{text}"),
        write("{name} - 00:{seconds}\n{text}", "\n\n"),
        write("{name} • 00:{seconds}\n{text}", "\n\n"),
        write("{name} — Today at 10:{seconds} AM\n{text}", "\n\n"),
        write("{name}, [12.05.24 10:{seconds}]\n{text}", "\n\n"),
        write("{name}: 10:{seconds}\n{text}", "\n\n"),
        write("{name} [00:00:{seconds}.000 --> 00:00:{seconds}.900]\n{text}"),
        write("{name} 00:00:{seconds}: {text}"),
        write("**{name}:** [00:00:{seconds}] {text}"),
        write("[Turn {number}] {name}: {text}"),
        write("#{number} {name}: {text}"),
        write("Host ({name}): {text}"),
        write("{name}﹕{text}"),
        write("{name}: {text}", " "),
        write("**{name}:** {text}", " "),
        write("<{name}>{text}</{name}>"),
        write('<utt who="{name}">{text}</utt>'),
        '<?xml version="1.0"?>\n<speak><!-- a note -->'
        + write('<voice name="{name}"><prosody rate="+5%">{text}</prosody><break time="1s"/></voice>', "")
        + "</speak>",
        "---\ntitle: Rivers\nhosts: [Anna, Ben]\n---\n\n" + write("{name}: {text}"),
        "Here it is:\n\n```text\n" + write("{name}: {text}") + "\n```\n\nLet me know!",
        "start\tend\ttext\n" + write("{number}000\t{number}900\t{name}: {text}"),
        write("00:00:{seconds}.000,00:00:{seconds}.900\n{name}: {text}", "\n\n"),
        write("[{number}.00s -> {number}.90s] {name}: {text}"),
        write("({number}.0 - {number}.9) {name}: {text}"),
        write("[ 00:00:{seconds}.497 -->  00:00:{seconds}.871] {name}: {text}"),
        write("{name}៖ {text}"),
        "Title: Rivers\nCredit: by\nAuthor: Me\n\n" + write("@{name}\n{text}", "\n\n"),
    ],
)
def test_names_are_speakers_in_the_forms_of_people_and_programs(text: str) -> None:
    assert [(speaker, words.strip()) for speaker, words in turns_of(text)] == list(LINES)


@pytest.mark.parametrize("names", [("Speaker 1", "Speaker 2"), ("说话人1", "说话人2"), ("Anna", "Ben", "Anna")])
def test_a_few_names_with_times_are_speakers(names: tuple[str, ...]) -> None:
    text = "\n\n".join(f"{name}  0:{at:02d}\nWe begin at {at}." for at, name in enumerate(names))
    assert turns_of(text) == [
        (name[-1] if name[-1].isdigit() else name, f"We begin at {at}.") for at, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    "form",
    ["{}  0:1{}\n{}", "{} (00:1{}):\n{}", "{}: 00:1{}\n{}", "{} 2024-05-12 10:1{}:00\n{}", "{} - 0:1{}\n{}\n..."],
)
@pytest.mark.parametrize("name", ["Anna", "Unknown Speaker"])
def test_one_name_with_times_is_one_speaker_and_no_words(form: str, name: str) -> None:
    script = read_any_script("\n\n".join(form.format(name, at, text) for at, (_, text) in enumerate(LINES)))
    assert script.speakers == (name,)
    assert any(f"“{name}” is read as the only speaker" in note for note in script.notes)
    assert [turn.text.removesuffix(" ...") for turn in script.turns] == [text for _, text in LINES]


def test_one_name_above_every_line_is_noted() -> None:
    script = read_any_script("\n".join(f"Anna\n{text}" for _, text in LINES))
    assert script.notes[0].startswith("8 of 8 lines look like turns with a label")


def test_a_clock_is_an_answer_where_others_have_words() -> None:
    assert turns_of("Ann: When?\nBen: 10:30\nAnn: Good.\nBen: Yes.")[1] == ("Ben", "10:30")


def test_georgian_names_have_no_capitals() -> None:
    text = "ნინო:\nგამარჯობა.\n\nგიორგი:\nმადლობა.\n\nნინო:\nდავიწყოთ."
    assert read_any_script(text).speakers == ("ნინო", "გიორგი")


def test_screenplays_are_read_without_scenes() -> None:
    text = f"INT. STUDIO - DAY\n\n{write('{upper} ^' + chr(10) + '{text}', chr(10) * 2)}\n\nCUT TO:\n\nFADE OUT."
    script = read_any_script(text)
    assert script.speakers == ("ANNA", "BEN")
    assert "line 1 (“INT. STUDIO - DAY”)" in script.notes[0]


@pytest.mark.parametrize(
    ("form", "speakers"),
    [
        ("Host {letter}: {text}", ("A", "B")),
        ("**Guest {letter}:** {text}", ("Guest A", "Guest B")),
        ("SPEAKER_{letter}: {text}", ("A", "B")),
    ],
)
def test_numbered_and_lettered_labels_may_be_in_one_line(form: str, speakers: tuple[str, str]) -> None:
    script = read_any_script(write(form, " "))
    assert script.speakers == speakers
    assert [turn.text for turn in script.turns] == [text for _, text in LINES]


@pytest.mark.parametrize(
    "text",
    [
        write("[00:00.000 --> 00:{seconds}.000]  {text}"),
        write("[00:{seconds}.00] {text}"),
        write("00:00:{seconds}.000,00:00:{seconds}.900\n{text}", "\n\n"),
        write("0:{seconds}\n{text}"),
        write("{number}.5\t{number}.9\t{text}"),
        write("[{number}.00s -> {number}.90s] {text}"),
        write("[{number}.031 --> {number}.943]  {text}"),
        write("0:{seconds} {text}"),
    ],
)
def test_times_of_lines_are_no_words(text: str) -> None:
    script = read_any_script(text)
    assert " ".join(script.text.split()) == " ".join(words for _, words in LINES)
    assert script.notes[0].startswith("the times at the beginning of 4 lines")


@pytest.mark.parametrize(
    "form",
    [
        *(
            "{name}| {text}",
            "{name}> {text}",
            "<{name}> {text}",
            "({name}) {text}",
            "{name}; {text}",
            "{name} — {text}",
        ),
        *("**{name}** {text}", "SPEAKER_0{number} {text}", '{name},"{text}"', "—{text}"),
    ],
)
def test_other_forms_of_turns_are_noted(form: str) -> None:
    assert read_any_script(write(form)).notes[0].startswith("4 of 4 lines look like turns")
    alone = "主持人\n你好\n嘉宾\n谢谢\n主持人\n开始吧\n嘉宾\n好的"
    assert read_any_script(alone).notes[0].startswith("8 of 8 lines look like turns")


def test_a_title_before_a_name_ends_no_sentence() -> None:
    text = "Dr. Smith: Hello.\nMr. Jones: Hi, J. Brown. Bye.\nDr. Smith: Good.\nMr. Jones: Well."
    assert turns_of(text)[1:3] == [("Mr. Jones", "Hi, J. Brown. Bye."), ("Dr. Smith", "Good.")]


@pytest.mark.parametrize("colon", [":", "："])
def test_words_behind_a_known_name_may_begin_with_a_digit_and_without_a_space(colon: str) -> None:
    lines = [
        ("小明", "你好"),
        ("小红", "2024年很好"),
        ("小明", "是的"),
        ("小红", "对"),
        ("小明", "ok吧"),
        ("小红", "好"),
    ]
    assert turns_of("\n".join(f"{name}{colon}{text}" for name, text in lines)) == lines
    assert turns_of("10：30 开会\n11：00 吃饭\n12：00 休息")[0][0] == "1"


@pytest.mark.parametrize("form", ["{}\n{}", "{}:\n{}", "### {}\n{}", "**{}**\n{}", "### {} (Host)\n{}"])
def test_a_colon_in_the_words_below_a_name_makes_no_speaker(form: str) -> None:
    lines = [("Anna", "Note: this is odd."), ("Ben", "One. Two. Three: go."), ("Anna", "Yes: always."), ("Ben", "No.")]
    assert turns_of("\n\n".join(form.format(*line) for line in lines)) == lines


def test_words_of_a_novel_between_its_quotations_are_said() -> None:
    text = write('{name} said: "{text}"')
    assert turns_of(text) == [("1", text)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Dialogue: 0,0:00:01.00,0:00:02.00,Default,Anna,0,0,0,,Hello.", "ASS or SSA"),
        ("[V4+ Styles]\nFormat: Name", "ASS or SSA"),
        ('<?xml version="1.0"?>\n<tt:tt xmlns:tt="http://www.w3.org/ns/ttml"><tt:p>Hello.</tt:p></tt:tt>', "TTML"),
        ('<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">\n<html><body>Hello.</body></html>', "a web page"),
        ('<?xml version="1.0"?><transcript><text start="0" dur="4">Hello.</text></transcript>', "XML"),
        ("<d><turn><speaker>Anna</speaker><text>Hello.</text></turn></d>", "XML"),
    ],
)
def test_formats_that_are_not_read_are_refused_by_name(text: str, what: str) -> None:
    with pytest.raises(BadInput, match=f"the text is {what}"):
        read_any_script(text)


def test_what_all_say_is_a_turn_of_its_own() -> None:
    assert turns_of("Anna: One.\nBen: Two.\nAnna & Ben: Both.\nAnna: Good.")[2] == ("Anna & Ben", "Both.")
    assert turns_of("Narrator: Night.\nAnna: Who is there?\nBen: Me.")[1:] == [
        ("Anna", "Who is there?"),
        ("Ben", "Me."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The Raven\n\nOnce upon a midnight dreary,\n\nNevermore\n\nEagerly I wished the morrow\n\nNevermore\n\nAnd on.",
        "Chorus\nLa la la la\nVerse\nWe walk alone\nChorus\nLa la la la\nVerse\nWe run again",
        "Anna Karenina\n\nHappy families are alike.\n\nAnna Karenina\n\nUnhappy ones are not.",
        "1 Kings: peace.\n2 Kings: war.\n3 Kings: peace.",
        "In short: yes. And so: no. In short: maybe.",
        "---\nThis is a story about a dash.\n---\nAnd it goes on.",
        "彼は「はい」と言った。\n彼女は「いいえ」と言った。\n彼は「はい」と言った。",
        'Use `[{"a": 1}]` in your code, and go on with other words.',
        '"To be, or not to be" is the question.',
    ],
)
def test_prose_stays_prose(text: str) -> None:
    script = read_any_script(text)
    assert (script.speakers, script.text) == (("1",), text)


WITH_SPEAKERS: list[Any] = [
    {"results": {"channels": [], "utterances": [{"speaker": at, "transcript": t} for at, (_, t) in enumerate(PAIR)]}},
    {
        "results": {
            "audio_segments": [{"transcript": t, "speaker_label": f"spk_{at}"} for at, (_, t) in enumerate(PAIR)]
        }
    },
    {"recognizedPhrases": [{"speaker": at, "nBest": [{"display": t}]} for at, (_, t) in enumerate(PAIR)]},
    {"combinedPhrases": [{"text": "all"}], "phrases": [{"speaker": at, "text": t} for at, (_, t) in enumerate(PAIR)]},
    {"monologues": [{"speaker": at, "elements": [{"type": "text", "value": t}]} for at, (_, t) in enumerate(PAIR)]},
    {"result": {"transcription": {"utterances": [{"speaker": at, "text": t} for at, (_, t) in enumerate(PAIR)]}}},
    {"sentences": [{"speaker_name": who, "text": t} for who, t in PAIR]},
    {"segments": [{"speaker": who, "startTime": 0, "body": t} for who, t in PAIR]},
    {"segments": [{"name": "Intro", "turns": TURNS[:1]}, {"name": "Main", "turns": TURNS[1:]}]},
    [{"name": "Intro", "host": "Anna", "dialogue": TURNS[:1]}, {"name": "Main", "dialogue": TURNS[1:]}],
    {"utterances": [{"speaker": who, "text": t, "words": [{"word": "a", "speaker": who}]} for who, t in PAIR]},
    {"episode": {"title": "Rivers", "chapters": [{"dialogue": [turn]} for turn in TURNS]}},
    {"speaker": [who for who, _ in PAIR], "text": [t for _, t in PAIR]},
    [{"Speaker": who, "Text": t} for who, t in PAIR],
    [{who: t} for who, t in PAIR],
    [{"from": who, "value": t} for who, t in PAIR],
    [{"role": "host", "name": who, "content": t} for who, t in PAIR],
    [{"type": "music", "seconds": 3}, *TURNS],
]


@pytest.mark.parametrize("data", WITH_SPEAKERS)
def test_the_turns_of_json_are_found_wherever_they_are(data: Any) -> None:
    for source in (data, json.dumps(data), f"Here it is:\n{json.dumps(data)}\nEnjoy!", json.dumps(json.dumps(data))):
        script = read_any_script(source)
        assert [turn.text for turn in script.turns] == [text for _, text in PAIR]
        assert len(script.speakers) == 2


@pytest.mark.parametrize(
    "data",
    [
        {
            "results": {
                "channels": [{"alternatives": [{"transcript": "Hello there. Hi.", "words": [{"word": "hello"}]}]}]
            }
        },
        {
            "results": {
                "transcripts": [{"transcript": "Hello there. Hi."}],
                "items": [{"alternatives": [{"content": "x"}]}],
            }
        },
        {"results": [{"alternatives": [{"transcript": "Hello there."}]}, {"alternatives": [{"transcript": "Hi."}]}]},
        {"events": [{"id": 1, "wpWinPosId": 1}, {"segs": [{"utf8": "Hello there."}]}, {"segs": [{"utf8": "Hi."}]}]},
        {"transcription": [{"offsets": {}, "text": " Hello there."}, {"text": " Hi."}]},
        [{"text": "Hello there.", "start": 0.0, "duration": 1.0}, {"text": "Hi.", "start": 1.0, "duration": 1.0}],
    ],
)
def test_transcripts_without_speakers_are_one_text(data: Any) -> None:
    for source in (data, json.dumps(data)):
        assert turns_of(source) == [("1", "Hello there. Hi.")]


def test_captions_that_roll_say_each_line_once() -> None:
    cues = [LINES[0][1], LINES[0][1], f"{LINES[0][1]}\n{LINES[1][1]}", LINES[1][1], f"{LINES[1][1]}\n{LINES[2][1]}"]
    text = "\n\n".join(f"{at}\n00:00:0{at},000 --> 00:00:0{at},900\n{cue}" for at, cue in enumerate(cues))
    assert read_any_script(text).text == " ".join(text for _, text in LINES[:3])
    once = "\n\n".join(
        f"{at}\n00:00:0{at},000 --> 00:00:0{at},900\n{cue}" for at, cue in enumerate(["No.", "No.", "Go.", "So."])
    )
    assert read_any_script(once).text == "No. No. Go. So."


def test_no_json_behind_the_first_is_lost() -> None:
    lines = "\n".join(json.dumps({"text": text, "duration": 3}) for text in ("Hello there.", "Hi."))
    assert turns_of(lines) == [("1", "Hello there. Hi.")]
    with pytest.raises(BadInput, match="looks like JSON, but is not valid JSON"):
        read_any_script(f"Part 1:\n{json.dumps(TURNS)}\nPart 2:\n{json.dumps(TURNS)}")
    with pytest.raises(BadInput, match="looks like JSON, but is not valid JSON"):
        read_any_script(f"Part 1:\n{json.dumps(TURNS)}\n{'I hope that it helps. ' * 20}")


def test_what_is_said_beside_the_turns_is_noted() -> None:
    script = read_any_script({"intro": "Welcome.", "turns": TURNS, "title": "Rivers"})
    assert [turn.text for turn in script.turns] == [text for _, text in PAIR]
    assert script.notes == ("entries with neither a speaker nor words are left out: 3 (intro, beside the turns)",)


def test_words_behind_a_rule_are_noted() -> None:
    script = read_any_script(write("**{name}:** {text}", "\n\n") + "\n\n---\n\nLet me know what to change!")
    assert any("the previous turn" in note and "Let me know what to change!" in note for note in script.notes)


def test_the_first_of_two_texts_in_a_list_is_no_name() -> None:
    with pytest.raises(BadInput, match=r"turn 1 .* is not an object .*'It was dark\.'"):
        read_any_script('["It was dark.", "It was light."]')


def test_json_lines_of_pairs_and_texts_are_no_words_with_quotes() -> None:
    assert turns_of('["Anna","Hello."]\n["Ben","Hi."]') == [("Anna", "Hello."), ("Ben", "Hi.")]
    assert turns_of(json.dumps(write("{name}: {text}"))) == list(LINES)


@pytest.mark.parametrize("speaker", [None, "", float("nan"), "nan", np.float32("nan"), pd.NA])
def test_who_is_not_named_is_unknown_and_noted(speaker: Any) -> None:
    script = read_input("script", convert_to_text([{"speaker": speaker, "text": "Hello."}, TURNS[1]]))
    assert script.speakers == ("unknown speaker", "Ben")
    assert script.notes == ("1 of the turns name no speaker and are read as turns of “unknown speaker”",)


@pytest.mark.parametrize("text", [None, float("nan"), "nan", "NULL", pd.NA])
def test_a_turn_without_its_text_is_refused_by_its_number(text: Any) -> None:
    with pytest.raises(BadInput, match="turn 2 of the script has no text: 'Ben' is followed by"):
        read_input("script", convert_to_text([TURNS[0], {"speaker": "Ben", "text": text}]))


def test_numbers_of_tables_are_the_same_speaker_as_whole_numbers() -> None:
    data = [{"speaker": speaker, "text": "a"} for speaker in (np.float64(1.0), np.int64(1), "1")]
    assert Script.parse(json.loads(convert_to_text(data))).speakers == ("1",)


def test_labels_inside_the_text_of_a_turn_are_noted() -> None:
    script = read_any_script(
        [{"role": "user", "content": "Write."}, {"role": "assistant", "content": write("Host {number}: {text}")}]
    )
    assert script.notes == ("the text of turn 2 contains labels of speakers, which are read as words",)
    for form, who in (("{}: {}", "Ann"), ("Speaker {}: {}", "1")):
        own = read_any_script([{"speaker": who, "text": form.format(who, "Hello.")}, TURNS[1]])
        assert own.notes == ("the text of turn 1 contains labels of speakers, which are read as words",)
    with_system = read_any_script([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi."}])
    assert (with_system.text, with_system.notes) == ("Hi.", ("the text of the role “system” is left out",))


def test_markup_is_no_word_in_json_either() -> None:
    script = Script.parse(
        [["A", "One<break time='1s'/> <emphasis level=\"strong\">two</emphasis> a<b &lt;i&gt;three&lt;/i&gt;"]]
    )
    assert script.text.split() == ["One", "two", "a<b", "three"]
    assert Script.parse([["A", "<sub alias='World Wide Web'>WWW</sub>"]]).text == "World Wide Web"


def test_a_file_in_utf_32_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(write("{name}: {text}").encode("utf-32"))
    assert [(turn.speaker, turn.text) for turn in read_input("script", tmp_path / "a.txt").turns] == list(LINES)
