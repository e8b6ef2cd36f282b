"""What a metric or the decoder notes is in every form of the result: table, JSON, CSV, report and notebook."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import podeval
from podeval.measuring.export import write_scores
from podeval.metrics.score import Score, describe_notes

RATE = 16_000


@pytest.fixture
def joined(tmp_path: Path, speech_like: Any, own_cache: Path) -> Path:
    """Two whole WAV files one after the other, with 5 s of silence at the end of the second."""
    path = tmp_path / "joined.wav"
    for name, samples in (("a.wav", speech_like), ("b.wav", np.append(speech_like, np.zeros(5 * RATE)))):
        soundfile.write(tmp_path / name, samples, RATE, subtype="PCM_16")
    path.write_bytes((tmp_path / "a.wav").read_bytes() + (tmp_path / "b.wav").read_bytes())
    return path


def test_what_the_file_is_noted_for_is_in_every_form(joined: Path, tmp_path: Path) -> None:
    scores = podeval.score(joined, metrics="loudness")
    for _ in range(2):  # the second time from the cache
        data = podeval.score(joined, metrics="loudness").to_json()
        assert data["duration"] == pytest.approx(17.0)
        joined_note, silence = data["notes"]["file"]
        assert joined_note == "2 joined wav files, all of which are read"
        # The last syllable fades.
        assert 5.0 <= float(silence.removesuffix(" s of silence at the end")) < 5.5
    (unranked,) = data["notes"]["loudness"]
    assert unranked.startswith("not ranked (range, range_score): the loudness range of less than a minute")
    wanted = [*data["notes"]["file"], unranked]
    assert all(sentence in str(scores) for sentence in wanted)
    for ending in ("csv", "html", "json"):
        text = write_scores(scores, tmp_path / f"out.{ending}").read_text("utf-8").replace("\xa0", " ")
        # A report is for people, who know values by their titles.
        in_titles = unranked.replace("range, range_score", "Loudness range, Loudness-range score")
        of_form = [*wanted[:-1], in_titles] if ending == "html" else wanted
        assert all(sentence in text for sentence in of_form), ending
    assert all(sentence in scores._repr_html_().replace("\xa0", " ") for sentence in wanted)
    (measured,) = podeval.score([joined], metrics="loudness").scores
    assert measured.notes == scores.notes
    assert f"In 1 of 1: file: {silence}" in str(podeval.score([joined], metrics="loudness"))


def test_a_value_that_is_not_ranked_is_called_neither_good_nor_poor(
    voice: Path, own_cache: Path, tmp_path: Path
) -> None:
    scores = podeval.score(voice, metrics="loudness")
    words = {row.key.name: row.word for row in scores.rows}
    assert words["range"] == words["range_score"] == ""
    assert words["integrated"]
    with write_scores(scores, tmp_path / "out.csv").open(newline="") as file:
        assert {row["word"] for row in csv.DictReader(file) if row["key"].startswith("range")} == {""}


def test_how_a_text_was_read_is_noted(own_cache: Path) -> None:
    scores = podeval.measure("mattr", "A cold open.\nHost 1: Hello there.\nHost 2: Well, hello to you too.")
    assert "words before the first label" in scores.to_json()["notes"]["text"][0]
    assert any(sentence.startswith("not ranked (mattr)") for sentence in scores.to_json()["notes"]["mattr"])


def test_measure_and_evaluate_have_the_notes_of_file_and_text(joined: Path, own_cache: Path) -> None:
    from podeval.measuring.compute import compute
    from podeval.measuring.evaluate_module import read_inputs_from_lists
    from podeval.metrics import catalogue

    items = read_inputs_from_lists(catalogue.get("loudness"), [str(joined)])
    (item,) = compute(catalogue.get("loudness"), items, input_names=("recording",))["items"]
    assert item["notes"]["file"][0] == "2 joined wav files, all of which are read"
    metric = catalogue.get("mattr")
    items = read_inputs_from_lists(metric, ["A cold open.\nHost 1: Hello there.\nHost 2: Hello to you."])
    (item,) = compute(metric, items, input_names=metric.inputs)["items"]
    assert "words before the first label" in item["notes"]["text"][0]


def test_channels_that_cancel_are_noted(tmp_path: Path, speech_like: Any, own_cache: Path) -> None:
    path = tmp_path / "almost.wav"
    soundfile.write(path, np.stack([speech_like, -0.97 * speech_like], axis=1), RATE, subtype="FLOAT")
    scores = podeval.score(path, metrics="integrity")
    assert json.loads(json.dumps(scores.to_json()))["notes"] == scores.notes


@pytest.mark.parametrize(
    ("notes", "sentence"),
    [
        ({"dropped": 0.33}, "33% of the reference is in brackets and was not compared"),
        ({"dropped": 0.0}, None),
        ({"text_language": "unknown"}, "the language of the text is unknown"),
        ({"text_languages": {"en": 0.6, "fr": 0.4}}, "the text is in several languages: en 60%, fr 40%"),
        ({"upsampled_from": 8000}, "the recording was resampled, because its 8000 Hz are less than the models need"),
        ({"plcmos_unscored": {"unscored": "no weights", "cause": "ours"}}, "plcmos has no value: no weights"),
        ({"unranked": {"a": "short", "b": "short"}}, "not ranked (a, b): short"),
        ({"windows": 3}, None),
    ],
)
def test_each_note_is_a_sentence(notes: dict[str, Any], sentence: str | None) -> None:
    assert describe_notes(Score({"a": 1.0}, notes)) == ([sentence] if sentence else [])
