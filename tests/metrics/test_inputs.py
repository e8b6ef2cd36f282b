"""A script is read alike wherever it may be given: speakers' labels are never words."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from podeval.cli.measure import _inputs
from podeval.metrics import catalogue
from podeval.metrics.read_inputs import read_input

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
    found = _inputs(catalogue.get(metric), audio, tmp_path / "script.txt", {})
    assert found["reference_text"] == WORDS
    assert found["script"].speakers == ("1", "2")
