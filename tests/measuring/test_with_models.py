"""The engine with real models on a real voice; what is slow is in the tests' cache after the first time."""

from pathlib import Path

import pytest

import podeval
from podeval.measuring import export
from podeval.metrics import catalogue
from podeval.recording import Recording


@pytest.mark.models
def test_every_metric_of_a_recording_is_what_the_metric_says_by_itself(shared_data: Path) -> None:
    path = shared_data / "samples" / "sense_and_sensibility_01_austen_64kb-0870.wav"
    words = "She was much affected by it, and as she thought it over, more so."
    scores = podeval.score(path, text=words, speakers=1)
    recording = Recording.open(path)
    alone = catalogue.get("dnsmos")({"recording": recording}, {})
    assert {name: scores[f"dnsmos.{name}"] for name in alone.values} == alone.values
    assert {"wer", "dnsmos", "timbre_consistency", "reverb_consistency", "loudness", "distillmos", "mattr"} <= set(
        scores.results
    )
    assert not {name for name in scores.failed if name != "semantic_div"}


@pytest.mark.models
def test_a_report_has_the_words_that_were_heard_with_their_times(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "samples" / "sense_and_sensibility_01_austen_64kb-0880.wav"
    scores = podeval.score(path, text="She was much affected by it.", metrics="wer")
    page = scores.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<span data-t=") > 3
    listed = export.write_labels(export.list_labels(scores), tmp_path / "labels.txt").read_text(encoding="utf-8")
    assert listed.count("\t") >= 2
