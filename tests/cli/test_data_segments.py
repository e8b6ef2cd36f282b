"""`podeval data segments`: transcripts and audio in, clips out, and a sentence for everything else."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import ModelMissing
from podeval.models import registry
from podeval.models.interfaces import SpeakerTurn, Transcript, Word
from podeval.systems.espeak_ng import EspeakNg
from podeval.text.script import Script

RATE = 16_000
Podeval = Callable[..., Any]

TRANSCRIPT = """\
[Speaker Ann] [0.00-4.00]: Welcome: to [the] show.
[Speaker Ann] [4.00-9.00]: Here is Ben.
[Speaker Ben] [9.00-18.00]: Thank you.

[Speaker Ann/Eve] [18.50-19.00]: So?
"""
CLIPS = [
    {
        "time_range": {"start": 0.0, "end": 18.0},
        "first_speaker": "Ann",
        "second_speaker": "Ben",
        "text": "Welcome: to [the] show. Here is Ben. Thank you.",
    },
    {
        "time_range": {"start": 9.0, "end": 19.0},
        "first_speaker": "Ben",
        "second_speaker": "Ann/Eve",
        "text": "Thank you. So?",
    },
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "show.txt").write_text(TRANSCRIPT, encoding="utf-8")
    steps = np.random.default_rng(1).integers(-9_000, 9_000, 20 * RATE)
    soundfile.write(tmp_path / "show.wav", steps.astype(np.int16), RATE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("episode", ["Arts_19", "Arts_20", "Arts_21"])
def test_the_published_clips_are_printed(podeval: Podeval, shared_data: Path, episode: str) -> None:
    source = shared_data / "podeval/real_pod/example_processed" / episode
    published = json.loads((source / "clips_info.json").read_text("utf-8"))["clips"]
    said = podeval("data", "segments", source / "diarized_transcription.txt", "--json")
    keys = ("time_range", "first_speaker", "second_speaker", "text")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out) == {"clips": [{key: clip[key] for key in keys} for clip in published]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_transcript_is_one_object_of_clips(podeval: Podeval, folder: Path, encoding: str) -> None:
    (folder / "show.wav.txt").write_text(TRANSCRIPT.replace("\n", "\r\n"), encoding=encoding)
    said = podeval("data", "segments", "show.wav.txt", "--json")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out) == {"clips": CLIPS}
    assert said.out.count("\n") == 1


def test_without_json_people_can_read_it(podeval: Podeval, folder: Path) -> None:
    said = podeval("data", "segments", "show.txt", code=0)
    assert said.out.startswith("0.00-18.00 (18.00 s)  Ann → Ben\n    Welcome: to [the] show.")


def test_the_rules_can_be_set(podeval: Podeval, folder: Path) -> None:
    said = podeval("data", "segments", "show.txt", "--back", 1, "--json")
    assert json.loads(said.out)["clips"][0]["time_range"]["start"] == 4.0
    said = podeval("data", "segments", "show.txt", "--most-seconds", 4.5, "--json")
    assert json.loads(said.out)["clips"][0]["time_range"]["start"] == 4.0


def test_clips_are_cut_from_the_recording_of_the_transcript(podeval: Podeval, folder: Path) -> None:
    said = podeval("data", "segments", "show.txt", "--audio", "show.wav", "--clips-out", "clips", "--json", code=0)
    names = ["dialog_1_Ann-Ben_0.00-18.00.wav", "dialog_2_Ben-Ann_Eve_9.00-19.00.wav"]
    assert [clip["audio_file"] for clip in json.loads(said.out)["clips"]] == names
    assert sorted(path.name for path in (folder / "clips").iterdir()) == names
    whole, _ = soundfile.read("show.wav", dtype="int16")
    for name, start, end in zip(names, (0, 9), (18, 19), strict=True):
        info = soundfile.info(folder / "clips" / name)
        assert (info.samplerate, info.channels, info.subtype, info.format) == (RATE, 1, "PCM_16", "WAV")
        found, _ = soundfile.read(folder / "clips" / name, dtype="int16")
        np.testing.assert_array_equal(found, whole[start * RATE : end * RATE])


def test_a_clip_that_ends_after_the_recording_is_cut_short_and_one_that_begins_there_refused(
    podeval: Podeval, folder: Path
) -> None:
    whole, _ = soundfile.read("show.wav", dtype="int16")
    soundfile.write("short.wav", whole[: 12 * RATE], RATE)
    said = podeval("data", "segments", "show.txt", "--audio", "short.wav", "--clips-out", "clips", code=0)
    assert "these clips are cut short at the end of short.wav: 1, 2" in said.err
    assert soundfile.info("clips/dialog_2_Ben-Ann_Eve_9.00-19.00.wav").frames == 3 * RATE
    soundfile.write("shorter.wav", whole[: 8 * RATE], RATE)
    said = podeval("data", "segments", "show.txt", "--audio", "shorter.wav", "--clips-out", "none", code=2)
    assert (
        "clip 2 begins at 9.00 s, but shorter.wav lasts 8.00 s; check that the transcript belongs to this" in said.err
    )
    assert not Path("none").exists()


def test_a_selection_says_what_it_is(podeval: Podeval, folder: Path) -> None:
    said = podeval("data", "segments", "show.txt", "--seed", 3, "--json")
    assert (said.code, said.err) == (0, "")
    found = json.loads(said.out)
    assert found["selection"] == {"asked": 2, "found": 2, "min_seconds": 10, "max_seconds": 30, "seed": 3}
    assert found["clips"] == CLIPS
    said = podeval("data", "segments", "show.txt", "--select", 1, "--min-seconds", 17, "--max-seconds", 20, "--json")
    assert json.loads(said.out)["clips"] == CLIPS[:1]


def test_a_selection_of_too_few_takes_all_and_of_none_says_why(podeval: Podeval, folder: Path) -> None:
    said = podeval(
        "data", "segments", "show.txt", "--select", 9, "--min-seconds", 12, "--max-seconds", 35, "--json", code=0
    )
    assert "only 1 of 9 requested clips of 12 to 35 s were found; all are used" in said.err
    assert json.loads(said.out)["clips"] == CLIPS[:1]
    said = podeval("data", "segments", "show.txt", "--min-seconds", 1, "--max-seconds", 2, "--json", code=1)
    assert json.loads(said.out)["reason"].startswith("no clip lasts 1 to 2 s; choose other limits")


def test_a_summary_keeps_rate_and_channels(podeval: Podeval, folder: Path) -> None:
    noise = np.random.default_rng(2).integers(-9_000, 9_000, (200 * 8_000, 2)).astype(np.int16)
    soundfile.write("long.flac", noise, 8_000)
    said = podeval("data", "segments", "show.txt", "--audio", "long.flac", "--summary-out", "new/summary.wav", "--json")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out)["summary"] == {
        "file": "new/summary.wav",
        "excerpts": [{"start": 0.0, "end": 60.0}, {"start": 70.0, "end": 130.0}, {"start": 140.0, "end": 200.0}],
    }
    found, rate = soundfile.read("new/summary.wav", dtype="int16")
    assert (rate, found.shape) == (8_000, (3 * 60 * rate + 2 * 2_400, 2))
    np.testing.assert_array_equal(found[-60 * rate :], noise[-60 * rate :])


def test_a_summary_of_less_than_three_minutes_is_the_recording(podeval: Podeval, folder: Path) -> None:
    said = podeval("data", "segments", "show.txt", "--audio", "show.wav", "--summary-out", "all.wav", "--json")
    assert "shorter than three minutes; all.wav contains all of it, without cuts" in said.err
    assert json.loads(said.out)["summary"]["excerpts"] == [{"start": 0.0, "end": 20.0}]
    np.testing.assert_array_equal(soundfile.read("all.wav")[0], soundfile.read("show.wav")[0])


BAD = [
    (["nowhere.txt"], 2, "does not exist"),
    (["."], 2, "is a directory"),
    (["empty.txt"], 2, "is empty"),
    (["blank.txt"], 2, "blank.txt is text, so it is read as a diarised transcript: the transcript is empty"),
    (["words.txt"], 2, "line 1 is not of the form [Speaker NAME] [start-end]: text (times in seconds): 'Just words'"),
    (["latin.txt"], 2, "is a transcript, but not in UTF-8"),
    (["noise.bin"], 2, "is not in a format that podeval supports"),
    (["alone.txt"], 1, "alone.txt: there is only one speaker (Ann); turn-taking needs at least two"),
    (["show.txt", "--clips-out", "c"], 2, "show.txt is a transcript; --clips-out also needs its recording"),
    (["show.txt", "--summary-out", "s.wav"], 2, "--summary-out also needs its recording"),
    (["show.txt", "--audio", "gone.wav", "--clips-out", "c"], 2, "'gone.wav' does not exist"),
    (["show.txt", "--audio", "show.txt", "--clips-out", "c"], 2, "not audio"),
    (["show.txt", "--audio", "silence.wav", "--clips-out", "c"], 1, "to export is digital silence"),
    (["show.txt", "--audio", "silence.wav", "--summary-out", "s.wav"], 1, "to export is digital silence"),
    (["show.txt", "--audio", "nan.wav", "--clips-out", "c"], 1, "samples that are not numbers"),
    (["show.txt", "--audio", "show.wav", "--clips-out", "show.txt"], 2, "Not a directory; choose a folder"),
    (["gone.wav", "--clips-out", "/proc/x"], 2, "cannot write to /proc/x: "),
    (
        ["gone.wav", "--transcript-out", "show.wav/x.txt"],
        2,
        "cannot write to show.wav: Not a directory; choose a folder",
    ),
    (["show.wav", "--audio", "show.wav"], 2, "show.wav is already audio; leave out --audio"),
    (["silence.wav"], 1, "is digital silence from beginning to end"),
    (["telephone.wav"], 1, "--allow-upsampling"),
]


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    BAD,
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else None,
)
def test_what_cannot_be_done_has_a_sentence_and_an_empty_list(
    podeval: Podeval, folder: Path, arguments: list[str], code: int, sentence: str
) -> None:
    (folder / "empty.txt").touch()
    (folder / "blank.txt").write_text(" \n\n")
    (folder / "words.txt").write_text("Just words")
    (folder / "latin.txt").write_bytes("[Speaker Jürgen] [0-1]: hallo".encode("latin-1"))
    (folder / "noise.bin").write_bytes(np.random.default_rng(0).bytes(5_000))
    (folder / "alone.txt").write_text("[Speaker Ann] [0-1]: hi\n[Speaker Ann] [1-2]: again")
    soundfile.write("silence.wav", np.zeros(20 * RATE), RATE)
    soundfile.write("telephone.wav", np.random.default_rng(0).uniform(-1, 1, 8_000), 8_000)
    broken = np.full(20 * RATE, np.nan)
    soundfile.write("nan.wav", broken, RATE, subtype="FLOAT")
    said = podeval("data", "segments", *arguments, "--json")
    found = json.loads(said.out)
    assert (said.code, found["clips"]) == (code, [])
    assert sentence in found["reason"]
    assert f"podeval: {found['reason']}\n" in said.err
    assert podeval("data", "segments", *arguments).out == ""
    assert not list(folder.glob("[cs]/*")) + list(folder.glob("s.wav"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--select", "0"], "--select"),
        (["--back", "0"], "--back"),
        (["--most-seconds", "-1"], "--most-seconds"),
        (["--min-seconds", "30"], "no clip fits --min-seconds 30 and --max-seconds 25"),
        (["--max-seconds", "nan"], "no clip fits"),
        (["--profile", "paper"], "no profile 'paper'"),
        (["--summary-out", "s.mp3"], "--summary-out writes WAV; change the name s.mp3 to one that ends in .wav"),
        (["--audio", "show.wav", "--summary-out", "show.wav"], "show.wav is an input and would be overwritten"),
        (["--transcript-out", "../{folder}/show.txt"], "show.txt is an input and would be overwritten"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_done(
    podeval: Podeval, folder: Path, arguments: list[str], sentence: str
) -> None:
    before = (folder / "show.wav").read_bytes()
    said = podeval("data", "segments", "show.txt", "--json", *(a.format(folder=folder.name) for a in arguments))
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
    assert (folder / "show.wav").read_bytes() == before
    assert (folder / "show.txt").read_text("utf-8") == TRANSCRIPT


def hears(monkeypatch: pytest.MonkeyPatch, words: tuple[Word, ...], *turns: SpeakerTurn) -> None:
    def transcribe(samples: Any, language: str | None) -> Transcript:
        return Transcript(" ".join(word.text for word in words), language or "en", words)

    model = SimpleNamespace(transcribe=transcribe, detect_language=lambda _: "en", diarize=lambda samples: turns)
    monkeypatch.setattr(registry, "load", lambda job, profile: model)


WORDS = (Word("Hello.", 0.0, 2.0), Word("Hi!", 2.2, 5.0), Word("Tick.", 9.0, 9.4))


def test_audio_is_heard_and_its_transcript_gives_the_same_clips(
    podeval: Podeval, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hears(monkeypatch, WORDS, SpeakerTurn("S1", 0.0, 2.1), SpeakerTurn("S2", 2.1, 5.0))
    said = podeval(
        "data", "segments", "show.wav", "--transcript-out", "heard.txt", "--clips-out", "clips", "--json", code=0
    )
    found = json.loads(said.out)
    assert "show.wav: 1 of 3 segments are left out, because no speaker was found in them" in said.err
    assert Path("heard.txt").read_text() == "[Speaker S1] [0.00-2.00]: Hello.\n[Speaker S2] [2.20-5.00]: Hi!\n"
    assert found["clips"][0].pop("audio_file") == "dialog_1_S1-S2_0.00-5.00.wav"
    assert soundfile.info("clips/dialog_1_S1-S2_0.00-5.00.wav").frames == 5 * RATE
    assert found["heard"] == {
        "profile": "embedded",
        "transcriber": registry.get_card("transcriber", "embedded").id,
        "diarizer": registry.get_card("diarizer", "embedded").id,
        "language": "en",
        "left_out": 1,
    }
    assert json.loads(podeval("data", "segments", "heard.txt", "--json").out) == {"clips": found["clips"]}


@pytest.mark.parametrize(
    ("words", "turns", "sentence"),
    [
        ((), [SpeakerTurn("S1", 0.0, 9.0)], "no words were recognised in show.wav"),
        (WORDS, [], "no speaker was found in show.wav"),
        (WORDS, [SpeakerTurn("S1", 0.0, 9.0)], "show.wav: there is only one speaker (S1)"),
        (WORDS, [SpeakerTurn("S1", 12.0, 13.0)], "show.wav: no speech is assigned to a speaker"),
    ],
)
def test_audio_without_turns_is_an_empty_list_with_its_reason(
    podeval: Podeval,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[Word, ...],
    turns: list[SpeakerTurn],
    sentence: str,
) -> None:
    hears(monkeypatch, words, *turns)
    said = podeval("data", "segments", "show.wav", "--json", "--summary-out", "s.wav")
    found = json.loads(said.out)
    assert (said.code, found["clips"]) == (1, [])
    assert sentence in found["reason"]
    assert found["summary"]["file"] == "s.wav"
    assert Path("s.wav").exists()


def test_a_missing_model_is_said_with_the_command_that_helps(
    podeval: Podeval, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(job: str, profile: str) -> Any:
        raise ModelMissing("Whisper is not installed; run `podeval models install --profile embedded`")

    monkeypatch.setattr(registry, "load", missing)
    said = podeval("data", "segments", "show.wav", "--json", code=1)
    assert "run `podeval models install" in json.loads(said.out)["reason"]


@pytest.mark.long
@pytest.mark.models
def test_a_real_conversation_is_cut_where_the_speakers_change(podeval: Podeval, tmp_path: Path) -> None:
    """Two espeak voices; reference: the times at which the system spoke."""
    system = EspeakNg()
    for reason in (
        system.available(),
        *(registry.get_card(job, "embedded").missing() for job in ("transcriber", "diarizer")),
    ):
        if reason:
            pytest.skip(reason)
    lines = [
        ("Ann", "Today we are talking about the history of coffee, and about the people who first made a drink of it."),
        ("Ben", "They lived in the mountains, and they wanted to stay awake during the long night."),
        ("Ann", "That is a good reason. And how did it come from the mountains to the rest of the world?"),
    ]
    speech = system.speak(Script.parse([{"speaker": speaker, "text": text} for speaker, text in lines]))
    soundfile.write(tmp_path / "talk.wav", speech.samples, speech.rate)
    said = podeval(
        "data", "segments", tmp_path / "talk.wav", "--language", "en", "--clips-out", tmp_path / "c", "--json", code=0
    )
    clips = json.loads(said.out)["clips"]
    assert len(clips) == 2
    assert clips[0]["first_speaker"] == clips[1]["second_speaker"] != clips[0]["second_speaker"]
    assert clips[0]["time_range"]["start"] == pytest.approx(speech.turns[0].start, abs=0.5)
    assert clips[1]["time_range"]["end"] == pytest.approx(speech.turns[2].end, abs=0.8)
    assert "mountains" in clips[0]["text"]
    for clip in clips:
        seconds = clip["time_range"]["end"] - clip["time_range"]["start"]
        assert soundfile.info(tmp_path / "c" / clip["audio_file"]).duration == pytest.approx(seconds, abs=1e-3)
