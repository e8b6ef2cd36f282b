"""Scripts in the forms that systems, transcribers and people write; prose with colons stays prose."""

import json

import pytest

from podeval.errors import BadInput
from podeval.text.script_format import read_any_script

LINES = (
    ("Leo", "Picture New York in 1971: a teenager writes his name everywhere."),
    ("Ines", "That was Taki. He was famous!"),
    ("Leo", "When did that change?"),
    ("Ines", "Around 10:30 in the evening, see https://example.org for more."),
)
WORDS = tuple(text for _, text in LINES)


def write(form: str, end: str = "\n") -> str:
    """Write the four lines in a form with `{n}` (1 and 2), `{z}` (0 and 1), `{name}` and `{text}`."""
    return end.join(
        form.format(
            n=1 + at % 2, z=at % 2, a="AB"[at % 2], one=("One", "Two")[at % 2], name=name, upper=name.upper(), text=text
        )
        for at, (name, text) in enumerate(LINES)
    )


NUMBERED = [
    "Speaker {n}: {text}",
    "Host {n}: {text}",
    "HOST {n}: {text}",
    "Host{n}: {text}",
    "Host #{n}: {text}",
    "**Host {n}:** {text}",
    "**Host {n}**: {text}",
    "Host {n}\n{text}",
    "**Speaker {n}**\n{text}",
    "Host {n} - {text}",
    "Host {one}: {text}",
    "Speaker {n} (warmly): {text}",
    "Host {n} [laughs]: {text}",
    "Speaker {n} (Ann) [softly]: {text}",
    "Host {n}, smiling: {text}",
    "[Host {n}]: {text}",
    "• Host {n}: {text}",
    "{n}. Host {n}: {text}",
    '"Host {n}: {text}"',
    "> Host {n}: {text}",
    "Speaker {n} (00:0{n}):\n{text}",
    "[00:00:0{n}] Speaker {n}: {text}",
    "0:0{n} Speaker {n}: {text}",
    "[00:00.000 --> 00:03.000] [SPEAKER_0{n}]: {text}",
    "SPEAKER_0{n}: {text}",
    "S{n}: {text}",
    "[S{n}] {text}",
    "[S{n}]{text}",
    "[s{n}]: {text}",
    "(S{n}) {text}",
    "<S{n}> {text}",
    "[SPEAKER{n}] {text}",
    "[Speaker {n}] {text}",
    "<|speaker:{n}|>{text}",
    "<|spk_{n}|> {text}",
    "<Person{n}>{text}</Person{n}>",
    "<Person{n}>\n{text}\n</Person{n}>",
    "主持人{n}：{text}",
    "说话人{n}: {text}",
]


@pytest.mark.every(4)
@pytest.mark.parametrize("form", NUMBERED)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", "\u2028", "\x85", "\x0b"])
def test_numbered_labels_and_tags_of_every_form_name_the_speaker_by_the_number(form: str, end: str) -> None:
    script = read_any_script("\ufeff" + write(form.replace("\n", end), end))
    assert [turn.speaker for turn in script.turns] == ["1", "2", "1", "2"]
    assert tuple(turn.text.strip('"') for turn in script.turns) == WORDS
    assert script.notes == ()


@pytest.mark.parametrize(
    "form", ["[S{n}] {text}", "[S{n}]{text}", "<Person{n}>{text}</Person{n}>", "<|speaker:{n}|>{text}"]
)
@pytest.mark.parametrize("between", ["", " "])
def test_tags_may_be_in_one_line(form: str, between: str) -> None:
    script = read_any_script(write(form, between))
    assert [(turn.speaker, turn.text) for turn in script.turns] == list(zip("1212", WORDS, strict=True))


def test_numbered_labels_may_be_in_one_line_behind_a_sentence() -> None:
    script = read_any_script("Speaker 1: Hello there. Speaker 2: Thanks! Speaker 1: Speaker 2: that is you.")
    assert [turn.text for turn in script.turns] == ["Hello there.", "Thanks!", "Speaker 2: that is you."]


NAMED = [
    "{name}: {text}",
    "**{name}:** {text}",
    "**{name}**: {text}",
    "*{name}*: {text}",
    "__{name}__: {text}",
    "{name} : {text}",
    "{name}:\n{text}",
    "{name}:\t{text}",
    "{name}:{text}",
    "{name} (warmly): {text}",
    "{name} [laughs]: {text}",
    "**{name}** (warmly): {text}",
    "**{name} (warmly):** {text}",
    "[{name}]: {text}",
    "[{name}] {text}",
    "【{name}】{text}",
    "- **{name}:** {text}",
    "> {name}: {text}",
    "### {name}\n{text}",
    "**{name}**\n{text}",
    "{name}  0:01\n{text}",
    "[00:00:01] {name}: {text}",
    "{name} (00:01): {text}",
    "[12/05/2024, 10:15:30] {name}: {text}",
    "{name}: {text}\n\nAnd so on.",
]


@pytest.mark.parametrize("form", NAMED)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_names_that_come_again_are_speakers(form: str, end: str) -> None:
    script = read_any_script(write(form, end))
    assert [turn.speaker for turn in script.turns] == ["Leo", "Ines", "Leo", "Ines"]
    assert tuple(turn.text.removesuffix(" And so on.") for turn in script.turns) == WORDS
    assert script.notes == ()


@pytest.mark.parametrize(
    "names",
    [
        ("Leo", "Ines"),
        ("LEO", "INES"),
        ("leo", "ines"),
        ("Dr. Leo van Dyke-O’Neill", "María José"),
        ("Host", "Guest"),
        ("Host", "Guest Expert"),
        ("Interviewer", "Dr. Chen"),
        ("Narrator", "Old Man"),
        ("Speaker A", "Speaker B"),
        ("A", "B"),
        ("Q", "A"),
        ("1", "2"),
        ("主持人", "嘉宾"),
        ("嘉宾1", "嘉宾2"),
        ("小明", "王教授"),
        ("男", "女"),
        ("角色A", "角色B"),
        ("司会", "田中"),
        ("진행자", "게스트"),
        ("Ведущий", "Гость"),
        ("المذيع", "الضيف"),
        ("मेज़बान", "अतिथि"),
        ("Sprecher 1", "Sprecher 2"),
    ],
)
@pytest.mark.parametrize("form", ["{}: {}", "**{}：**{}", "{} (…): {}", "{}（笑）：{}"])
def test_names_and_roles_of_many_languages_are_speakers(names: tuple[str, str], form: str) -> None:
    script = read_any_script("\n".join(form.format(names[at % 2], text) for at, text in enumerate(WORDS)))
    assert len(script.speakers) == 2
    assert tuple(turn.text for turn in script.turns) == WORDS


SRT = (
    "1\n00:00:00,000 --> 00:00:02,000\n{0}\n\n2\n00:00:02,000 --> 00:00:04,500 X1:40 X2:600\n<i>{1}</i>\n\n"
    "3\n00:00:05,000 --> 00:00:06,000\n{{\\an8}}{2}\n\n4\n00:01:05,000 --> 00:01:06,000\n{3}\n"
)
VTT = (
    "WEBVTT - A show\nKind: captions\n\nSTYLE\n::cue {{ color: red }}\n\nNOTE not to be\nsaid\n\n"
    "00:00.000 --> 00:02.000\n{0}\n\nintro\n00:02.000 --> 00:04.000 align:start position:0%\n{1}\n\n"
    "00:00:05.000 --> 00:00:06.000\n<c.loud>{2}</c>\n\nNOTE 10\n\n"
    "7\n00:07.000 --> 00:08.000\n{3}"
)


@pytest.mark.parametrize("form", [SRT, VTT, SRT.replace("\n\n", "\n"), SRT.replace("\n", "\r\n"), "\ufeff" + VTT])
def test_subtitles_are_words_without_numbers_times_settings_styles_and_comments(form: str) -> None:
    script = read_any_script(form.format(*WORDS))
    assert script.text == " ".join(WORDS)
    assert script.speakers == ("1",)
    assert len(script.notes) == 1
    assert "subtitles" in script.notes[0]
    labelled = read_any_script(form.format(*(f"{name}: {text}" for name, text in LINES)))
    assert [(turn.speaker, turn.text) for turn in labelled.turns] == list(LINES)


@pytest.mark.parametrize(
    "form",
    [
        '<turn speaker="{name}">{text}</turn>',
        "<voice name='{name}'>{text}</voice>",
        "<p><b>{name}:</b> {text}</p>",
        "<strong>{name}</strong>: {text}<br/>",
    ],
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_tags_of_ssml_and_html_are_no_words(form: str, end: str) -> None:
    script = read_any_script(f"<speak>{end}{write(form, end)}{end}</speak>")
    assert [(turn.speaker, turn.text) for turn in script.turns] == list(LINES)


def test_json_in_a_block_of_code_is_read_without_what_is_around_it() -> None:
    data = json.dumps([{"speaker": name, "text": text} for name, text in LINES])
    assert len(read_any_script(f"Here it is:\n\n```json\n{data}\n```\nEnjoy!").turns) == 4
    page = f"Once upon a time. {'And on. ' * 50}\n```json\n{data}\n```\nThe end."
    assert read_any_script(page).text == page


def test_captions_that_roll_are_read_once() -> None:
    cue = "00:0{0}.000 --> 00:0{1}.000 align:start position:0%\n"
    text = f"WEBVTT\n\n{cue.format(0, 1)} \nhello<00:00:00.200><c> and</c><00:00:00.500><c> welcome</c>\n\n"
    text += f"{cue.format(1, 2)}hello and welcome\n \n\n"
    text += f"{cue.format(2, 3)}hello and welcome\nto<00:00:02.300><c> the show</c>\n"
    assert read_any_script(text).text == "hello and welcome to the show"


@pytest.mark.parametrize("voice", ["<v {}>{}", "<v {}>{}</v>", "<v.loud {}>{}</v>", "<v  {}>{}"])
def test_voice_tags_are_speakers(voice: str) -> None:
    text = "WEBVTT\n\n" + "\n\n".join(
        f"{at}\n00:0{at}.000 --> 00:0{at}.900\n{voice.format(name, words)}" for at, (name, words) in enumerate(LINES)
    )
    assert [(turn.speaker, turn.text) for turn in read_any_script(text).turns] == list(LINES)
    two = "WEBVTT\n\n00:00.000 --> 00:02.000\n<v Ann>Hello &amp; welcome.\n<v Bob>Hi.\nAnd so on."
    assert [(turn.speaker, turn.text) for turn in read_any_script(two).turns] == [
        ("Ann", "Hello & welcome."),
        ("Bob", "Hi. And so on."),
    ]
    assert read_any_script(two).notes[-1] == "1 of them name no voice and keep the previous one"


@pytest.mark.parametrize(
    "form",
    [
        lambda turns: {"transcript": [{"speaker": who, "dialogue": text} for who, text in turns]},
        lambda turns: {"title": "A show", "script": [{"name": who, "line": text} for who, text in turns]},
        lambda turns: {"utterances": [{"speaker": who, "text": text, "start": 0} for who, text in turns]},
        lambda turns: {
            "language": "en",
            "segments": [{"start": 0, "speaker": who, "text": f" {text}"} for who, text in turns],
        },
        lambda turns: [{"role": who, "content": [{"type": "text", "text": text}]} for who, text in turns],
        lambda turns: {"dialogue": "\n".join(f"**{who}:** {text}" for who, text in turns)},
        lambda turns: {"transcript": "".join(f"[{who}]: {text}\n" for who, text in turns), "id": 3},
    ],
)
def test_the_json_of_other_programs_is_read(form: object) -> None:
    data = form(LINES)  # type: ignore[operator]
    for source in (data, json.dumps(data), f"```json\n{json.dumps(data, indent=1)}\n```"):
        assert [(turn.speaker, turn.text) for turn in read_any_script(source).turns] == list(LINES)


def test_numbers_in_brackets_are_speakers_where_they_come_again() -> None:
    assert read_any_script(write("[{z}]{text}")).speakers == ("0", "1")


def test_segments_without_speakers_are_one_text_and_some_without_are_noted() -> None:
    segments = [{"start": 0, "text": " Hello."}, {"start": 1, "text": " Thanks."}]
    assert read_any_script({"text": "Hello. Thanks.", "segments": segments}).text == "Hello. Thanks."
    script = read_any_script({"segments": [segments[0] | {"speaker": "SPEAKER_00"}, segments[1]]})
    assert script.speakers == ("SPEAKER_00", "unknown speaker")
    assert script.notes == ("1 of the turns name no speaker and are read as turns of “unknown speaker”",)


@pytest.mark.parametrize(
    ("text", "turns", "note"),
    [
        ("Leo: Hello.\nSpeaker 2: Hi.\nSpeaker 1: Yes.", ["Hello.", "Hi.", "Yes."], "“Leo:” is read as a speaker"),
        ("Narrator: Once upon a time.\nSpeaker 1: Hi.", ["Once upon a time.", "Hi."], None),
        (
            "# Notes\nWelcome to the cold open.\n\nHost 1: hello\nHost 2: hi",
            ["Welcome to the cold open.", "hello", "hi"],
            "words before the first label are read as a turn of “Narrator”; label them if others say them: line 2",
        ),
        (
            "A cold open. [S1] Hello. [S2] Hi.\n[S1] Yes.\n[S2] No.",
            ["A cold open.", "Hello.", "Hi.", "Yes.", "No."],
            "line 1",
        ),
        ("Here is the script:\nHost 1: hello\nHost 2: hi", ["hello", "hi"], "left out because they are not spoken"),
        (
            "**Title: The sea**\n[music]\nHost 1: hello\n## Part two\nSFX: waves\nHost 2: hi\n(laughs)",
            ["hello", "hi (laughs)"],
            "line 1 (“**Title: The sea**”), 2 (“[music]”), 4 (“## Part two”) and 1 more",
        ),
        (
            "Host 1: Hi.\nRemember this: it is fine.\nHost 2: Yes.",
            ["Hi. Remember this: it is fine.", "Yes."],
            "read as words of the previous turn, not as the label of a speaker: line 2",
        ),
        ("Host 1: Hi.\nAlex: Me too.\nHost 2: Yes.\nAlex: No.", ["Hi.", "Me too.", "Yes.", "No."], None),
        (
            "Alice: Hello there.\nBob: Thanks.",
            ["Hello there.", "Thanks."],
            "two lines are read as turns of two speakers",
        ),
        ("A: hello\nB: hi", ["hello", "hi"], "(“A:”, “B:”)"),
        ("Hello \ufffd there.", ["Hello \ufffd there."], "1 characters of the text are \ufffd"),
    ],
)
def test_no_word_is_lost_or_put_under_another_label_without_a_note(
    text: str, turns: list[str], note: str | None
) -> None:
    script = read_any_script(text)
    assert [turn.text for turn in script.turns] == turns
    assert note in script.notes[0] if note else script.notes == ()


PROSE = [
    "Today we look at light bulbs.\nSpeaker 2: 10 watts is what the small one takes.\nAnd the story goes on.\nAnd on.",
    "Note: this is fine.\nWarning: hot.\nNote: still fine.\nWarning: still hot.",
    "Chapter 1: The sea\n\nThe sea is salty. Why: rivers.\n\nChapter 2: The land\n\nThe land is dry.",
    "Genesis 1:1 In the beginning.\nGenesis 1:2 And the earth was without form.\nGenesis 1:3 And God said.",
    "1:1 In the beginning.\n1:2 And the earth.\n1:3 And God said: Let there be light.",
    "10:30 Breakfast.\n11:00: Walk.\n12:15 Lunch at the sea.\n10:30 again.",
    "Pancakes\nIngredients: flour, eggs.\nDirections: mix: well.\nServings: 4\nPrep time: 10 min",
    "https://example.org\nhttp://example.com: a site\nhttps://example.org/b",
    "Monday: rest.\nTuesday: run.\nWednesday: rest.\nThursday: run.",
    "Breakfast: eggs.\nLunch: soup.\nDinner: bread.",
    "INFO: start\nERROR: no file\nINFO: end\nERROR: again",
    "He said: it rains. She said: it does not.\nThey asked: does it?\nNobody knew.",
    "There are three kinds of people: those who count.\nAnd those who do not: me.",
    "Dear Ann,\nPS: bring milk.\nYours: Bob",
    "注意：这是散文。\n今天我们来聊一个话题：天气。\n例如：下雨。",
    "Once upon a time there was [a pause] and (laughter).",
    "[Music] Welcome back!",
    "ACT I\n\nA room: dark. A man sits.\n\nHe rises: slowly.",
    "他说：“今天下雨。”\n她问：“真的吗？”\n他说：“真的。”\n她答道：“好。”",
    "1: In the beginning.\n2: And the earth was without form.\n3: And God said.",
    "Verse 1:\nLa la la.\nChorus:\nOh oh.\nVerse 2:\nLa la.\nChorus:\nOh.",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_with_colons_is_no_dialogue(text: str) -> None:
    script = read_any_script(text)
    assert script.speakers == ("1",)
    assert script.text == text


@pytest.mark.parametrize("form", ["{name} - {text}", "{upper}. {text}", "{name}\t{text}"])
def test_lines_that_look_like_turns_and_are_not_read_as_such_are_noted(form: str) -> None:
    script = read_any_script(write(form))
    assert script.speakers == ("1",)
    assert script.notes[0].startswith(
        "4 of 4 lines look like turns with a label, but are read as the words of one speaker"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[Script Info]\nDialogue: 0,0:00:01.00,0:00:02.00,,Hi", "ASS"),
        ('<?xml version="1.0"?>\n<tt xmlns="x"><p begin="0s">Hi</p></tt>', "TTML"),
        ("<!DOCTYPE html><p>Hi", "web page"),
        ("{\\rtf1 Hi}", "rich text"),
        ("speaker,text\nAnn,Hi", "table"),
        ("| Speaker | Text |\n|---|---|\n| Ann | Hi |", "table"),
        ("- speaker: Ann\n  text: Hi", "YAML"),
        ("start,end,speaker,text\n0,4,Anna,Hi", "a table"),
        ("name\tline\nAnna\tHi", "a table"),
        ("turns:\n  - speaker: Anna\n    text: Hi", "YAML"),
        ("SPEAKER a 1 0.0 4.0 <NA> <NA> Anna <NA> <NA>", "RTTM"),
        ("a 1 Anna 0.00 4.00 <o,f0> hi there", "STM"),
        ('Here it is:\n```python\n[("Anna", "Hi"), ("Ben", "Hello")]\n```', "Python"),
        ("%PDF-1.4\n1 0 obj", "a PDF"),
    ],
)
def test_other_formats_are_refused_by_name(text: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        read_any_script(text)
