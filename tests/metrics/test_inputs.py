"""A script is read alike wherever it may be given: speakers' labels are never words."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from podeval.cli.measure import gather_sources
from podeval.measuring.inputs import MetricInputs, read_input
from podeval.metrics import catalogue
from podeval.metrics.facts import INPUTS

LABELLED = "Host 1: Why is the sea salty?\nHost 2: Rivers carry salt.\nThey never stop."
WORDS = "Why is the sea salty? Rivers carry salt. They never stop."


def read_as_words(name: str, source: str) -> str:
    found = read_input(name, source)
    return found if isinstance(found, str) else str(found.text)


@pytest.mark.parametrize("name", ["text", "passage", "reference_text"])
def test_labels_of_speakers_are_no_words(name: str) -> None:
    assert read_as_words(name, LABELLED) == WORDS
    assert read_as_words(name, "主持人1：你好。\n主持人2：你也好。") == "你好。 你也好。"


@pytest.mark.parametrize("name", ["text", "passage", "reference_text"])
@pytest.mark.parametrize(
    "prose", ["Note: this is prose.\nHosts: 1 and 2.", "It is ten: time to go.", "Ask Host 1: she knows."]
)
def test_prose_with_colons_stays_as_it_is(name: str, prose: str) -> None:
    assert read_as_words(name, prose) == prose


@pytest.mark.parametrize("metric", ["wer", "sptd"])
def test_the_command_line_reads_the_speakers_of_a_text(tmp_path: Path, metric: str) -> None:
    (tmp_path / "script.txt").write_text(LABELLED, encoding="utf-8")
    audio = tmp_path / "a.wav"
    soundfile.write(audio, np.zeros(16_000), 16_000)
    ((file, sources),) = gather_sources(catalogue.get(metric), [audio], [], [tmp_path / "script.txt"], [], {})
    inputs = MetricInputs(sources)
    assert file == audio
    if metric == "wer":
        assert inputs["reference_text"] == WORDS
    else:
        assert inputs["script"].speakers == ("1", "2")


def test_inputs_are_read_when_a_metric_asks_and_kept_where_several_do(tmp_path: Path) -> None:
    audio = tmp_path / "a.wav"
    soundfile.write(audio, np.zeros(16_000), 16_000)
    opened = []

    def path() -> Path:
        opened.append(audio)
        return audio

    for keep, times in ((False, 2), (True, 1)):
        opened.clear()
        inputs = MetricInputs({"recording": path, "reference_text": WORDS, "script": LABELLED}, keep=keep)
        assert "recording" in inputs
        assert not opened
        for name, names in (("loudness", ["recording"]), ("wer", ["recording", "reference_text"])):
            selected = inputs.select(catalogue.get(name))
            assert list(selected) == names
            assert selected["recording"].duration == 1.0
        assert len(opened) == times


def test_every_input_a_metric_may_ask_for_has_a_reader() -> None:
    sources = {
        "generation_log": {"wall_seconds": 1.0, "audio_seconds": 2.0},
        "dialogue": {"turns": [{"user": "Why?", "answer": "So."}]},
        "readings": [{"text": "It cost $3.", "readings": [{"text": "$3", "accepted": ["three dollars"]}]}],
        "reference_votes": [{"first": "a", "second": "b", "outcome": "a", "voter": "p"}],
        "reference_marks": [{"rater": "p", "page": "Arts", "stimulus": "a", "value": 7}],
        "reference_answers": [{"rater": "p", "item": "Arts", "system": "a", "question": "quality", "mark": 4}],
    }
    for name in INPUTS:
        if name not in ("recording", "recordings", "reference_voices"):
            assert read_input(name, sources.get(name, LABELLED)) is not None
