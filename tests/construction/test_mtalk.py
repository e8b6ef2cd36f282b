"""MTalk-Bench constructed: tagged by two and a third, recorded, checked in three rounds, mixed, built."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

pytest.importorskip("datasets")

from podeval.construction.mtalk_recordings import add_sounds, find_faults, locate_tags, read_sounds
from podeval.construction.mtalk_tagging import find_tagging_fault
from podeval.datasets import catalogue
from podeval.datasets.build import build, read_stored_rows, verify
from podeval.errors import BadInput
from tests.fakes.stated_counts import write_all

RATE = 24_000
TURNS = ["My parcel should have come on Monday. Where is it?", "Oh, the neighbour has it, thank you."]


def speech(path: Path, seed: int = 0, seconds: float = 1.5) -> None:
    """A file of noise in syllables: what matters here is that there is something."""
    time = np.arange(int(seconds * 16_000)) / 16_000
    noise = np.random.default_rng(seed).normal(0, 0.1, time.size) * (np.sin(2 * np.pi * 3 * time) > -0.5)
    soundfile.write(path, noise, 16_000)


@pytest.fixture
def dialogues(tmp_path: Path) -> Path:
    path = tmp_path / "dialogues.json"
    variants = {"amb": {"arena_prompt": "Which answer deals better with the sounds?"}}
    path.write_text(json.dumps([{"number": "9-1", "turns": TURNS, "variants": variants}]), encoding="utf-8")
    return path


@pytest.fixture
def into(tmp_path: Path, dialogues: Path, podeval: Any) -> Path:
    """A folder in which the dialogues are taken and their turns to be recorded."""
    podeval("mtalk_bench", "take", dialogues, "--into", tmp_path / "mine")
    podeval("mtalk_bench", "script", "--into", tmp_path / "mine")
    return tmp_path / "mine"


def test_from_dialogues_to_a_built_dataset(
    tmp_path: Path, dialogues: Path, model: Any, podeval: Any, edit: Any
) -> None:
    into, judge = tmp_path / "mine", ("--judge", model.name)
    asked = list[str]()

    def annotator(question: str) -> Any:
        asked.append(question)
        tag = "phone ringing" if len(asked) == 1 else "dog barking"
        return {"turns": [TURNS[0], f"Oh, ({tag}) {TURNS[1][4:]}"]}

    model.answers.append(annotator)
    podeval("mtalk_bench", "take", dialogues, "--into", into)
    done = podeval("mtalk_bench", "tag", "--into", into, *judge)
    assert "tagged: 1 dialogues; both annotators agree on 0 of them" in done.output
    # A third annotator may change tags, not words.
    wrong = "\n".join([TURNS[0], "(phone ringing) No, thank you."])
    edit(into / "tags-amb.csv", {}, {"keep": "yes", "tagged (edit)": wrong})
    done = podeval("mtalk_bench", "script", "--into", into, code=1)
    assert "the words of turn 2 are not those of the dialogue" in done.output
    right = "\n".join([f"(cafe chatter) {TURNS[0]}", "Oh, the neighbour has it, (phone ringing) thank you."])
    edit(into / "tags-amb.csv", {}, {"keep": "yes", "tagged (edit)": right})
    done = podeval("mtalk_bench", "script", "--into", into)
    assert "to record: 4 turns of 2 dialogues" in done.output
    assert "sounds: 2 tags need a line in" in done.output

    done = podeval("mtalk_bench", "check", "--into", into, code=1)
    assert "recordings contains no recording of this turn" in done.output
    recordings = into / "recordings"
    for number, name in enumerate(("sem-9-1-1", "sem-9-1-2", "amb-9-1-1", "amb-9-1-2")):
        speech(recordings / f"{name}.wav", number)
    podeval("mtalk_bench", "check", "--into", into, code=1)
    edit(into / "checks.csv", {"sem-9-1-2": {"keep": "no", "fault (edit)": "words"}}, {"keep": "yes"})
    done = podeval("mtalk_bench", "check", "--into", into, code=1)
    assert "round 1: 4 recordings checked, 1 refused (1 words)" in done.output
    assert "sem-9-1-2 is waiting: refused in round 1 (words); record it again" in done.output
    speech(recordings / "sem-9-1-2.wav", 77)
    podeval("mtalk_bench", "check", "--into", into, code=1)
    edit(into / "checks.csv", {}, {"keep": "yes"})
    done = podeval("mtalk_bench", "check", "--into", into)
    assert "round 2: 1 recordings checked, 0 refused" in done.output
    assert "checked: 4 of 4 turns accepted" in done.output

    done = podeval("mtalk_bench", "finish", "--into", into, code=1)
    assert "sounds.csv states no kind for the tag 'cafe chatter'" in done.output
    speech(into / "cafe.wav", 5, 0.4)
    speech(into / "phone.wav", 6, 0.3)
    edit(
        into / "sounds.csv",
        {
            "cafe chatter": {"kind": "background", "file": "cafe.wav", "snr_db": "12"},
            "phone ringing": {"kind": "event", "file": "phone.wav", "snr_db": "3"},
        },
    )
    podeval("mtalk_bench", "finish", "--into", into)

    build("mtalk_bench", tmp_path / "built", source=str(into / "finished"), cache=tmp_path / "cache")
    assert list(verify(tmp_path / "built")) == []
    (file,) = (tmp_path / "built" / "turns").glob("*.parquet")
    found = {row["id"]: dict(row) for row in read_stored_rows(catalogue.get("mtalk_bench"), "turns", [file])}
    assert list(found) == ["semantic-9-1-1", "semantic-9-1-2", "ambient-9-1-1", "ambient-9-1-2"]
    last = found["ambient-9-1-2"]
    assert (last["words"], last["tags"]) == (TURNS[1], ["phone ringing"])
    assert last["arena_prompt"] == "Which answer deals better with the sounds?"
    assert found["semantic-9-1-1"]["arena_prompt"] == ""
    samples, rate = soundfile.read(io.BytesIO(last["audio"]["bytes"]))
    assert (rate, samples.ndim, len(samples)) == (RATE, 1, int(1.5 * RATE))


def test_a_turn_refused_three_times_leaves_with_its_dialogue(into: Path, podeval: Any, rows: Any, edit: Any) -> None:
    speech(into / "recordings" / "sem-9-1-1.wav", 0)
    for number in (1, 2, 3):
        speech(into / "recordings" / "sem-9-1-2.wav", number)
        podeval("mtalk_bench", "check", "--into", into, code=1)
        refused = {"keep": "no", "fault (edit)": "expression"}
        # It may be recorded anew before anybody reads the verdict.
        edit(into / "checks.csv", {"sem-9-1-2": refused}, {"keep": "yes"})
    done = podeval("mtalk_bench", "check", "--into", into)
    assert "round 3: 1 recordings checked, 1 refused (1 expression)" in done.output
    (left,) = rows(into / "left_out.jsonl")
    assert left["id"] == "sem-9-1"
    assert left["reason"] == "sem-9-1-2 was refused in 3 rounds: expression, expression, expression"
    with pytest.raises(BadInput, match="no dialogue is complete yet"):
        raise podeval("mtalk_bench", "finish", "--into", into, code=None).exception


def test_a_verdict_does_not_hold_for_another_recording(into: Path, podeval: Any, edit: Any) -> None:
    for number in (1, 2):
        speech(into / "recordings" / f"sem-9-1-{number}.wav", number)
    podeval("mtalk_bench", "check", "--into", into, code=1)
    edit(into / "checks.csv", {}, {"keep": "yes"})
    podeval("mtalk_bench", "check", "--into", into)
    speech(into / "recordings" / "sem-9-1-1.wav", 9)
    done = podeval("mtalk_bench", "check", "--into", into, code=1)
    assert "checked: 1 of 2 turns accepted" in done.output
    assert "sem-9-1-1 is waiting: its recording must be checked in round 1" in done.output


def test_a_machine_says_what_it_hears_to_be_wrong(into: Path, podeval: Any, table: Any) -> None:
    soundfile.write(into / "recordings" / "sem-9-1-1.wav", np.zeros(16_000), 16_000)
    speech(into / "recordings" / "sem-9-1-2.wav")
    podeval("mtalk_bench", "check", "--into", into, code=1)
    found = {name: line["heard by machine"] for name, line in table(into / "checks.csv").items()}
    assert "silen" in found["sem-9-1-1"]
    assert found["sem-9-1-2"] == ""


@pytest.mark.parametrize(
    ("tagged", "wrong"),
    [
        (["(calm) One two.", "Three."], None),
        (["One (sighs) two.", "(softly) Three."], None),
        (["One two.", "Three."], "no turn has a tag"),
        (["(calm) One two."], "the dialogue has 2 turns, but the answer has 1"),
        (["(calm) One too.", "Three."], "the words of turn 1 are not those of the dialogue"),
        (["(so very calm that it is hard to say) One two.", "Three."], "longer than five words"),
    ],
)
def test_tags_may_not_change_words(tagged: list[str], wrong: str | None) -> None:
    found = find_tagging_fault(["One two.", "Three."], tagged)
    assert (found is None) if wrong is None else wrong in str(found)


def test_an_event_sounds_where_its_tag_stands() -> None:
    assert locate_tags("(a) one two") == [("a", 0.0)]
    (tag, share) = locate_tags("one two three (bang) four")[0]
    assert (tag, share) == ("bang", pytest.approx(13 / 18))
    assert [tag for tag, _ in locate_tags("one (a) two (b) three (a)")] == ["a", "b", "a"]
    assert locate_tags("one (a) two (b) three (a)")[2][1] == 1.0


def test_a_mix_beyond_full_scale_is_turned_down_as_a_whole(tmp_path: Path) -> None:
    speech(tmp_path / "said.wav")
    speech(tmp_path / "loud.wav", 3)
    (tmp_path / "sounds.csv").write_text("tag,kind,file,snr_db\nstorm,background,loud.wav,-20\n", encoding="utf-8")
    made = add_sounds("(storm) words", tmp_path / "said.wav", read_sounds(tmp_path / "sounds.csv"))
    assert np.abs(made).max() == pytest.approx(0.99, abs=1e-3)
    # The noise is 20 dB above the speech and would clip; the words are turned down with it.
    speech_alone = add_sounds("words", tmp_path / "said.wav", {})
    assert np.corrcoef(made, speech_alone)[0, 1] < 0.3


def test_recordings_that_others_made_are_decoded_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Voice actors and archives of sounds send files of any kind."""
    speech(tmp_path / "said.flac")
    speech(tmp_path / "rain.flac", 3)
    (tmp_path / "counts.m4a").write_bytes(write_all()["samples of one size"])
    (tmp_path / "sounds.csv").write_text("tag,kind,file,snr_db\nrain,background,rain.flac,10\n", encoding="utf-8")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it is decoded in this process")

    monkeypatch.setattr(soundfile, "SoundFile", refuse)
    monkeypatch.setattr("podeval.audio.compressed.open_with_ffmpeg", refuse)
    assert find_faults(tmp_path / "said.flac") == ""
    assert "its index states 10,000,000" in find_faults(tmp_path / "counts.m4a")
    assert len(add_sounds("(rain) words", tmp_path / "said.flac", read_sounds(tmp_path / "sounds.csv")))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("storm,thunder,x.wav,10", "kind is 'thunder'; it must be one of background, event, none"),
        ("storm,event,x.wav,10", "there is no sound"),
        ("storm,none,,loud", "snr_db is 'loud'"),
        ("storm,none,,99", "a ratio of 99 dB is not plausible"),
    ],
)
def test_a_table_of_sounds_that_cannot_be_used_is_a_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "sounds.csv").write_text(f"tag,kind,file,snr_db\n{line}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=sentence):
        read_sounds(tmp_path / "sounds.csv")
