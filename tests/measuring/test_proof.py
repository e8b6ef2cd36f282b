"""A book beside its recordings, with a recogniser that hears what a test lets it hear."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from podeval.errors import BadInput
from podeval.measuring.export import format_proof_csv, write_proof
from podeval.measuring.proof import BookProof, proof_book
from podeval.models import registry
from podeval.recording import recording
from podeval.recording.cache import Cache
from podeval.text.book import read_book
from podeval.text.comparison.book_places import place_recordings
from tests.fakes.bounded_memory import bounded_memory
from tests.fakes.spelt_speech import SpeltSpeech

BOOK = """# Chapter I. The Harbour

The morning was grey when the ferry left the harbour of Lunden. Nobody on the deck had slept. Margaret counted her coins
twice (she had eleven of them), then gave three to the boy. “Will you keep a secret?” she asked. Seven gulls followed
the wooden ship across the bay.[^1]

[^1]: A town that nobody has visited since the second flood.

# Chapter II. The Lamp

In the evening the lighthouse keeper climbed his tower. He carried a lamp, bread and some book about storms. At the top
he found every window open. Somebody had been there before him. Then he waited for moonlight.

# Index

Gulls, seven
"""
ONE = (
    "chapter one the harbour the morning was grey when the ferry left the harbour of lunden nobody on the deck had "
    "slept margaret counted her coins twice she had eleven of them then gave three to the boy will you keep a secret "
    "she asked seven gulls followed the wooden ship across the bay"
)
TWO = (
    "chapter two the lamp in the evening the lighthouse keeper climbed his tower he carried a lamp bread and some book "
    "about storms at the top he found every window open somebody had been there before him then he waited for moonlight"
)

Hear = Callable[..., BookProof]


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SpeltSpeech:
    speech = SpeltSpeech()
    monkeypatch.setattr(registry, "load", speech.load)
    monkeypatch.setattr(recording, "open_default_cache", lambda: Cache(tmp_path / "cache"))
    (tmp_path / "book.md").write_text(BOOK, encoding="utf-8")
    return speech


@pytest.fixture
def proof(speech: SpeltSpeech, tmp_path: Path) -> Hear:
    def hear(*spoken: str, **options: bool) -> BookProof:
        files = [speech.write(tmp_path / f"{len(spoken) - at}.wav", text.split()) for at, text in enumerate(spoken)]
        return proof_book(read_book(tmp_path / "book.md"), "book.md", files, **options)

    return hear


def faults(proof: BookProof) -> list[tuple[str, str]]:
    return [(sentence.verdict, sentence.text.split()[0] if sentence.text else "") for sentence in proof.faulty]


def test_a_book_that_is_read_as_it_is_written_has_no_faults_and_its_notes_are_not_missed(proof: Hear) -> None:
    result = proof(ONE, TWO)
    assert faults(result) == []
    verdicts = {sentence.text: sentence.verdict for sentence in result.sentences}
    assert verdicts["Chapter I. The Harbour"] == "as_written", "a Roman numeral is read as a number"
    assert verdicts["A town that nobody has visited since the second flood."] == "not_read"
    assert verdicts["Gulls, seven"] == "not_read"
    assert (result.spoken, result.share) == (12, 0)
    first = next(sentence for sentence in result.sentences if sentence.text.startswith("The morning"))
    assert (first.start, first.confidence) == (pytest.approx(5 * 0.3, abs=0.01), "high")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("nobody on the deck had slept ", "", ("missing", "Nobody")),
        ("she asked", "she asked seven gulls followed the wooden ship across the bay", ("twice", "Seven")),
        ("wooden ship", "invisible ship", ("misread", "Seven")),
        ("followed the wooden ship ", "", ("misread", "Seven")),
        ("nobody on the", "please remember the blue umbrellas nobody on the", ("added_before", "Nobody")),
        ("across the bay", "across the bay this is the end of side one", ("added_before", "")),
    ],
)
def test_each_fault_has_its_verdict_at_its_sentence(proof: Hear, old: str, new: str, fault: tuple[str, str]) -> None:
    result = proof(ONE.replace(old, new), TWO)
    assert faults(result) == [fault]
    (sentence,) = result.faulty
    assert sentence.recording.endswith("2.wav")
    assert sentence.start is not None
    assert sentence.end is not None
    assert 0 < sentence.start <= sentence.end
    assert sentence.faults


def test_a_word_that_is_heard_as_written_the_second_time_is_no_fault(proof: Hear, speech: SpeltSpeech) -> None:
    speech.misheard = {"wooden": "gigantic"}
    assert faults(proof(ONE, TWO)) == []
    speech.doubted = {"wooden": "gigantic"}
    assert faults(proof(f"{ONE} again", TWO))[0] == ("misread", "Seven")


def test_recordings_are_placed_by_their_words_in_any_order_and_a_chapter_may_be_in_two(proof: Hear) -> None:
    at = ONE.index("margaret")
    result = proof(TWO, ONE[at:], ONE[:at])
    assert [Path(file).name for file in result.recordings] == ["1.wav", "2.wav", "3.wav"]
    assert faults(result) == []
    starts = {sentence.text.split()[0]: Path(sentence.recording).name for sentence in result.sentences}
    assert (starts["Nobody"], starts["Margaret"], starts["Then"]) == ("1.wav", "2.wav", "3.wav")


def test_a_chapter_without_a_recording_is_missing_unless_only_a_part_is_read(proof: Hear) -> None:
    missing = proof(TWO).faulty
    assert len(missing) == 5
    assert {(sentence.verdict, sentence.recording, sentence.section) for sentence in missing} == {
        ("missing", "", "Chapter I. The Harbour")
    }
    assert faults(proof(TWO, part=True)) == []


def test_what_is_not_of_the_book_or_cannot_be_heard_is_unscored_with_its_reason(
    proof: Hear, speech: SpeltSpeech, tmp_path: Path
) -> None:
    other = "an entirely different text about tax law for farmers in mountain regions with many cows"
    result = proof(ONE, TWO, ONE, other)
    reasons = {Path(file).name: reason.reason for file, reason in result.unscored.items()}
    assert reasons["1.wav"] == "the words of this recording are not in the book"
    assert re.search(r"reads the same passage as .*\d\.wav", reasons["2.wav"])
    (tmp_path / "noise.wav").write_bytes(b"no sound")
    with pytest.raises(BadInput, match=r"none of the recordings is a reading of book.md .*noise.wav"):
        proof_book(read_book(tmp_path / "book.md"), "book.md", [tmp_path / "noise.wav"])


def test_a_proof_that_was_stopped_goes_on_with_the_next_recording(
    proof: Hear, speech: SpeltSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(samples: object, language: str | None) -> None:
        if speech.transcribed:
            raise KeyboardInterrupt
        return hear(samples, language)

    hear = speech.transcribe
    monkeypatch.setattr(speech, "transcribe", stop)
    with pytest.raises(KeyboardInterrupt):
        proof(ONE, TWO)
    assert len(speech.transcribed) == 1
    monkeypatch.setattr(speech, "transcribe", hear)
    assert faults(proof(ONE, TWO)) == []
    assert len(speech.transcribed) == 2, "the first recording is not heard anew"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_report_plays_what_is_to_be_recorded_again(proof: Hear, tmp_path: Path, language: str) -> None:
    result = proof(ONE.replace("nobody on the deck had slept ", ""), TWO, sound=True)
    page = write_proof(result, tmp_path / "report.html", language).read_text(encoding="utf-8")
    assert page.count('<audio controls preload="none" src="data:audio/mpeg;base64,') == 1
    assert {"en": "To record again", "zh": "需要重录"}[language] in page
    assert "Nobody on the deck had slept." in page
    assert "media-src data:" in page
    changed = write_proof(proof(ONE.replace("wooden ship", "invisible ship"), TWO), tmp_path / "a.html", language)
    assert "<code>wooden → invisible</code>" in changed.read_text(encoding="utf-8")


def test_json_and_csv_have_every_sentence(proof: Hear, tmp_path: Path) -> None:
    result = proof(ONE.replace("wooden ship", "invisible ship"), TWO)
    content = json.loads(write_proof(result, tmp_path / "a.json").read_text(encoding="utf-8"))
    assert len(content["sentences"]) == len(result.sentences)
    (row,) = [row for row in content["sentences"] if row["verdict"] == "misread"]
    assert (row["faults"][0]["kind"], row["faults"][0]["script"], row["faults"][0]["heard"]) == (
        *("replaced", "wooden", "invisible"),
    )
    head, *lines = format_proof_csv(result).splitlines()
    assert head.startswith("number,section,kind,text,verdict,confidence,recording,start,end,heard,faults")
    assert len(lines) == len(result.sentences)
    assert any("replaced: invisible; script: wooden" in line for line in lines)


def test_a_chinese_book_is_proofed_by_its_characters(proof: Hear, tmp_path: Path) -> None:
    book = "第一章 港口\n\n清晨渡船离开了旧港口。甲板上没有一个人睡着。七只海鸥跟着木船飞过海湾。\n"
    (tmp_path / "book.md").write_text(book, encoding="utf-8")
    spoken = " ".join(character for character in book if character.isalpha())
    assert faults(proof(spoken)) == []
    missing = proof(spoken.replace(" ".join("甲板上没有一个人睡着"), "")).faulty
    assert [(sentence.verdict, sentence.text) for sentence in missing] == [("missing", "甲板上没有一个人睡着。")]


def sentences(*texts: str) -> Sequence[list[str]]:
    return [text.split() for text in texts]


def test_a_run_of_words_far_away_is_chance() -> None:
    book = sentences(*(" ".join(f"w{number}x{at}" for at in range(10)) for number in range(40)))
    chapter = [word for sentence in book[5:15] for word in sentence] + book[35][:3]
    places, reasons = place_recordings(book, [number // 5 for number in range(40)], {"a": chapter}, 3)
    assert (places, reasons) == ({"a": range(5, 15)}, {})


@pytest.mark.long
def test_ten_hours_of_words_are_proofed_in_a_quarter_of_a_gigabyte(speech: SpeltSpeech, tmp_path: Path) -> None:
    chance, speech.frames = random.Random(4), 320
    words = ["".join(chance.choice("bdfglmnprst") + chance.choice("aeiou") for _ in range(3)) for _ in range(6_000)]
    weights = [1 / (at + 10) for at in range(len(words))]
    chapters, files, left_out = list[str](), list[Path](), 0
    for number in range(10):
        texts = [chance.choices(words, weights, k=15) for _ in range(600)]
        chapters.append(f"# Chapter {number + 1}\n\n" + " ".join(f"{' '.join(text)}.".capitalize() for text in texts))
        spoken = [text for text in texts if chance.random() > 0.02]
        left_out += len(texts) - len(spoken)
        files.append(speech.write(tmp_path / f"{number}.wav", [word for text in spoken for word in text]))
    (tmp_path / "book.md").write_text("\n\n".join(chapters), encoding="utf-8")
    with bounded_memory(256 * 2**20):
        result = proof_book(read_book(tmp_path / "book.md"), "book.md", files)
    missing = [sentence for sentence in result.faulty if sentence.verdict == "missing"]
    assert (len(result.sentences), len(missing)) == (6_010, left_out)
    assert len(result.faulty) <= left_out + 6, "a thousandth"
