"""`podeval score` from the shell: tables, files, exit codes; and what is an error in `podeval measure` too."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile

from podeval import benchmarks
from podeval.metrics.catalogue import Metric
from podeval.metrics.score import Score

Podeval = Callable[..., Any]
RATE = 16_000
VOICE_RATE = 24_000
DATA = Path(benchmarks.__file__).parent / "data"


@pytest.fixture(autouse=True)
def _own_cache(own_cache: Path) -> None:
    """Every test of this file."""


@pytest.fixture
def recordings(tmp_path: Path, speech_like: Any) -> Path:
    folder = tmp_path / "outputs"
    folder.mkdir()
    soundfile.write(folder / "one.wav", speech_like, RATE)
    soundfile.write(folder / "two.wav", 0.5 * speech_like, RATE)
    return folder


def test_labels_that_are_empty_say_why(podeval: Podeval, recordings: Path, tmp_path: Path) -> None:
    said = podeval(
        "score", recordings / "one.wav", "--metrics", "loudness", "--labels", tmp_path / "labels.txt", code=0
    )
    assert (
        "labels.txt, which is empty: there are no turns or defects to write; run the command without --metrics"
        in said.err
    )


def test_a_folder_has_a_row_a_file_and_a_mean(podeval: Podeval, recordings: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"scores.{ending}" for ending in ("csv", "parquet", "json", "html")]
    outs = [option for file in files for option in ("--out", file)]
    assert "mean of 2" in podeval("score", recordings, "--metrics", "loudness", *outs, code=0).out
    assert list(pd.read_csv(files[0])["key"]) == list(pd.read_parquet(files[1])["key"])
    assert [Path(one["file"]).name for one in json.loads(files[2].read_text())] == ["one.wav", "two.wav"]
    assert files[3].read_text().startswith("<!doctype html>")


def test_json_is_one_object_a_file(podeval: Podeval, recordings: Path) -> None:
    said = podeval("score", recordings, "nowhere.wav", "--metrics", "loudness", "--json", code=2)
    lines = [json.loads(line) for line in said.out.splitlines()]
    scored = [
        *("file", "duration", "verdict", "scores", "unscored", "notes", "defects", "protocols", "titles", "band"),
    ]
    assert [list(line) for line in lines[:2]] == [scored] * 2
    assert sorted(lines[2]) == ["error", "file"]
    assert "does not exist: check the path" in said.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.wav"], "does not exist: check the path"),
        (["one.wav", "--metrics", "dnmos"], "did you mean 'dnsmos'"),
        (["one.wav", "--profile", "best"], "there is no profile 'best'"),
        (["one.wav", "--out", "report.doc"], "the name must end in .html, .json, .csv or .parquet"),
        (["one.wav", "--labels", "labels.srt"], "the name must end in .txt (Audacity) or .vtt (WebVTT)"),
        (["one.wav", "--metrics", "wer"], "wer needs the words: --text FILE"),
        (["one.wav", "two.wav", "--labels", "a.txt"], "--labels accepts only one recording"),
        (["one.wav", "--text", "a.txt", "--text", "b.txt"], "1 files and 2 texts"),
        (["one.wav", "--text", "nowhere.txt"], "does not exist; check the path"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_done_is_a_sentence_and_code_2(
    podeval: Podeval, recordings: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(recordings)
    assert sentence in podeval("score", *arguments, code=2).err


def test_a_recording_without_a_score_is_code_1(podeval: Podeval, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silence.wav", [0.0] * RATE, RATE)
    said = podeval("score", tmp_path / "silence.wav", "--metrics", "loudness", code=1)
    assert "Not scored: loudness: the recording is digital silence" in said.out


def test_a_script_by_itself_is_scored_by_the_metrics_of_words(podeval: Podeval, tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text("Host 1: Welcome to the show.\nHost 2: Thank you for having me here.\n")
    assert "MATTR" in podeval("score", tmp_path / "script.txt", "--metrics", "mattr", code=0).out


def test_measuring_several_files_has_units_arrows_and_means(podeval: Podeval, recordings: Path) -> None:
    said = podeval("measure", "loudness", recordings / "one.wav", recordings / "two.wav")
    lines = said.out.splitlines()
    assert lines[0].startswith("one.wav: integrated ")
    assert " LUFS ↔  " in lines[0]
    assert lines[-1].startswith("mean of 2 [95 %]: integrated ")


def test_the_number_of_speakers_is_for_metrics_that_have_use_for_it_and_said_once(
    podeval: Podeval, recordings: Path
) -> None:
    said = podeval("measure", "loudness", recordings / "one.wav", "--speakers", "2")
    assert (said.code, said.out) == (2, "")
    assert "loudness has no parameter 'speakers'" in said.err
    said = podeval("measure", "sptd", recordings / "one.wav", "--speakers", "2", "--set", "speakers=3")
    assert "--speakers says 2 and --set speakers=3" in said.err


def test_more_voices_than_speakers_are_said_in_tables_and_files(
    podeval: Podeval, recordings: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, really_score = [], Metric.score

    def score(metric: Metric, items: Any, chosen: dict[str, Any], client: Any) -> Iterator[Any]:
        if metric.name != "sptd":
            return really_score(metric, items, chosen, client)
        asked.append(chosen["speakers"])
        return iter([Score({"sptd": 0.5, "speakers": 2}, notes={"voices_heard": 7, "speakers_asked": 2})])

    sentence = "7 voices are heard and there should be 2"
    monkeypatch.setattr(Metric, "score", score)
    for command in (["score", "--metrics", "sptd"], ["measure", "sptd"]):
        assert sentence in podeval(*command, recordings / "one.wav", "--speakers", "2", code=0).out
    assert asked == [2, 2]

    files = [tmp_path / f"joined.{ending}" for ending in ("json", "csv", "parquet")]
    outs = [option for file in files for option in ("--out", file)]
    said = podeval("score", recordings, "--metrics", "sptd,loudness", "--speakers", "2", *outs)
    assert f"In 2 of 2: sptd: {sentence}" in said.out
    for one in json.loads(files[0].read_text()):
        (note,) = one["notes"]["sptd"]
        assert sentence in note
    for table in (pd.read_csv(files[1], keep_default_na=False), pd.read_parquet(files[2])):
        assert set(table[table["metric"] == "sptd"]["note"]) == {note}
        assert all(sentence not in other for other in table[table["metric"] == "loudness"]["note"])


def test_the_help_is_in_groups_with_whole_sentences_and_the_version_is_said(podeval: Podeval) -> None:
    text = podeval("--help").out
    assert [title for title in ("Score:", "Benchmark:", "Serve:", "Operate:") if f"\n{title}\n" in text] == [
        "Score:",
        "Benchmark:",
        "Serve:",
        "Operate:",
    ]
    assert "…" not in text
    assert "--show-completion" in text
    assert podeval("--version").out.startswith("podeval 0.")


def _say_in_turn(path: Path, *voices: Any) -> None:
    """Write a recording of voices one after another, as loud as each other."""
    pause = np.zeros(int(0.3 * VOICE_RATE), np.float32)
    said = [0.08 * voice / np.sqrt(np.mean(voice**2)) for voice in voices]
    soundfile.write(path, np.concatenate([part for voice in said for part in (voice, pause)]), VOICE_RATE)


@pytest.mark.models
@pytest.mark.long
def test_of_more_voices_heard_in_a_recording_than_there_are_people_the_most_alike_are_one(
    podeval: Podeval, tmp_path: Path
) -> None:
    import librosa

    from podeval import score as score_recording

    files = {path.stem.rpartition("_")[2]: path for path in DATA.glob("*/libritts_r_*.flac")}
    one, alike, other = (soundfile.read(files[reader], dtype="float32")[0] for reader in ("4010", "6364", "8193"))
    # Of one reader, two semitones higher the second time, and another one, the diariser makes four.
    higher = librosa.effects.pitch_shift(one, sr=VOICE_RATE, n_steps=2)
    recordings = {"one reader as two": (one, other, higher, other), "two readers alike": (one, alike, other) * 2}
    seconds = {}
    for name, voices in recordings.items():
        _say_in_turn(tmp_path / "talk.wav", *voices)
        heard, joined = (score_recording(tmp_path / "talk.wav", metrics="sptd", **n) for n in ({}, {"speakers": 2}))
        many = heard["sptd.speakers"]
        assert many > 2 == joined["sptd.speakers"]
        said = podeval("score", tmp_path / "talk.wav", "--metrics", "sptd", "--speakers", 2)
        assert f"{many:.0f} voices are heard and there should be 2, so the most similar are merged" in said.out
        seconds[name] = sorted(joined.results["sptd"].notes["seconds"].values())
    assert seconds["one reader as two"] == pytest.approx([7.7, 10.0], abs=0.5), "who is heard twice is one again"
    assert seconds["two readers alike"] == pytest.approx([7.7, 19.4], abs=0.5), "the third is left by himself"
