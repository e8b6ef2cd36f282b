"""One way in for every text: files as editors and programs save them, and texts in memory."""

import json
import unicodedata
from pathlib import Path

import pytest

from podeval.benchmarks.item import Item
from podeval.errors import BadInput
from podeval.measuring.inputs import MetricInputs
from podeval.systems.adapters.outputs import Supplied
from podeval.systems.speech import Ask, WrittenScript
from podeval.text.characters import clean_text
from podeval.text.comparison.accepted_readings import AcceptedReadings
from podeval.text.podcast_request import PodcastRequest
from podeval.text.script import Script
from podeval.text.script_format import read_any_script
from podeval.text.text_file import read_text

TURNS = [("1", "Élan vital: it’s a naïve idea."), ("2", "Is it?"), ("1", "Yes.")]
LINES = "\n".join(f"Speaker {speaker}: {text}" for speaker, text in TURNS)
AS_JSON = json.dumps([{"speaker": speaker, "text": text} for speaker, text in TURNS], ensure_ascii=False, indent=1)
SAVED = {
    "utf-8": lambda text: text.encode(),
    "with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16, big endian": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "Windows": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    "old Macintosh": lambda text: text.replace("\n", "\r").encode(),
    "decomposed": lambda text: unicodedata.normalize("NFD", text).encode(),
    "two marks": lambda text: ("\ufeff\ufeff" + text).encode(),
    "hyphenated": lambda text: text.replace("vital", "vi\u00adtal").replace("naïve", "na\u200bïve\u2060").encode(),
}


@pytest.mark.parametrize("form", SAVED)
@pytest.mark.parametrize("name", ["script.txt", "script.json", "script.md"])
def test_a_script_is_the_same_however_its_file_is_saved(form: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(SAVED[form](AS_JSON if name.endswith("json") else LINES))
    inputs = MetricInputs({"script": path, "reference_text": path})
    assert [(turn.speaker, turn.text) for turn in inputs["script"].turns] == TURNS
    assert inputs["reference_text"] == " ".join(text for _, text in TURNS)
    # As a system's output.
    path.rename(tmp_path / f"item{path.suffix if path.suffix != '.md' else '.txt'}")
    made = Supplied(tmp_path).make([Ask(id="item", language="en", prompt="Write.")], 0)[0]
    assert isinstance(made, WrittenScript)
    assert [(turn["speaker"], turn["text"]) for turn in made.turns or ()] == TURNS


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_every_line_end_is_one(end: str) -> None:
    assert clean_text(f"one{end}two{end}") == "one\ntwo\n"
    assert len(Script.parse(f"one{end}two").text.split("\n")) == 2


@pytest.mark.parametrize(
    "sign", ["\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u200e", "\u200f", "\u2066", "\U000e0041"]
)
def test_no_invisible_character_is_in_a_word_of_any_entrance(sign: str) -> None:
    text = f"exam{sign}ple"
    assert clean_text(text) == "example" == clean_text(clean_text(text))
    assert Script.parse([[f"A{sign}nn", text]]).to_json() == [{"speaker": "Ann", "text": "example"}]
    assert read_any_script(f"{sign}Host 1: {text}").text == "example"
    assert PodcastRequest.parse({"instruction": text, "sources": [text]}).sources == ("example",)
    (line,) = AcceptedReadings.parse([{"text": text, "readings": [{"text": text, "accepted": [text]}]}]).lines
    assert (line.text, line.readings[0].forms) == ("example", ("example",))


def test_control_characters_part_words() -> None:
    assert clean_text("a\x00b\x1b[1mc\td") == "a b [1mc\td"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9 au lait", "cannot be read as UTF-8 text"),
        ("Speaker 1: hi".encode("utf-16-le"), "has NUL characters"),
        (b"\xff\xfea", "cannot be read as UTF-8 text"),
        (b"\xef\xbb\xbf \r\n", "is empty"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_text(tmp_path / "a.txt")


def test_the_notes_of_a_script_are_no_part_of_it() -> None:
    noted = Script(Script.parse([["A", "Hi."]]).turns, notes=("a note",))
    assert noted == Script.parse([["A", "Hi."]])
    item = Item.model_validate({"id": "a", "topic": "t", "language": "en", "voices": 1, "script": noted})
    assert item.script is not None
    assert item.script.notes == ("a note",)
    assert "notes" not in item.model_dump(mode="json")["script"]
