"""The page of a metric Space, for whoever runs one with `sdk: gradio`."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.measuring.inputs import RECORDS
from podeval.metrics import catalogue

gr = pytest.importorskip("gradio")
pytestmark = pytest.mark.space

SPACES = Path(__file__).parents[2] / "hf_metrics"


def demo_of(name: str) -> Any:
    """The page that a Space's app.py launches."""
    launched: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gr.Interface, "launch", lambda demo: launched.append(demo))
        runpy.run_path(str(SPACES / name / "app.py"))
    return launched[0]


def one_of_each_kind() -> list[Any]:
    """The names of all metrics; those that take the same as an earlier one have the same page, and are long."""
    kinds = [(catalogue.get(name).inputs, bool(catalogue.get(name).asks)) for name in catalogue.NAMES]
    return [
        pytest.param(name, marks=[pytest.mark.long] if kinds[number] in kinds[:number] else [])
        for number, name in enumerate(catalogue.NAMES)
    ]


@pytest.mark.every(3)
@pytest.mark.parametrize("name", one_of_each_kind())
def test_each_app_builds_a_page_with_what_the_metric_takes(name: str) -> None:
    demo = demo_of(name)
    assert isinstance(demo, gr.Interface)
    assert demo.title == catalogue.get(name).title
    kinds = [type(component) for component in demo.input_components]
    heard = {"recording": gr.Audio, "reference_voices": gr.Audio, "recordings": gr.File}
    metric = catalogue.get(name)
    fields = [heard.get(name, gr.Textbox) for name in metric.inputs]
    assert kinds == [*fields, *([gr.Textbox] if metric.asks else [])]


def test_a_page_scores_a_file_and_a_text(tmp_path: Path, speech_like: np.ndarray[Any, Any]) -> None:
    soundfile.write(tmp_path / "episode.wav", speech_like, 16_000)
    loudness = demo_of("loudness").fn(str(tmp_path / "episode.wav"))
    assert loudness["scored"] == 1
    assert "timeline" not in loudness["items"][0]
    assert demo_of("mattr").fn("a b a b")["mattr"] == 0.5
    assert "no judge is named" in demo_of("script_quality").fn("Host 1: Hello.", "")["items"][0]["unscored"]


def test_a_page_answers_what_it_cannot_take_with_a_sentence(tmp_path: Path, speech_like: np.ndarray[Any, Any]) -> None:
    soundfile.write(tmp_path / "episode.wav", speech_like, 16_000)
    (tmp_path / "text.wav").write_text("no audio")
    with pytest.raises(gr.Error, match="Choose a file or enter a text"):
        demo_of("loudness").fn(None)
    with pytest.raises(gr.Error, match="text\\.wav"):
        demo_of("loudness").fn(str(tmp_path / "text.wav"))
    with pytest.raises(gr.Error, match="the words that should be heard"):
        demo_of("wer").fn(str(tmp_path / "episode.wav"), "")


def test_a_visitor_of_a_space_names_no_file_and_no_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge gets the key of the Space's owner, and what cannot be read is quoted in the refusal."""
    monkeypatch.setenv("SPACE_ID", "podeval/arena")
    path = tmp_path / "environment"
    path.write_text("TOKEN=very-secret-key", encoding="utf-8")
    reading = [name for name in catalogue.NAMES if set(RECORDS).intersection(catalogue.get(name).inputs)]
    assert len(reading) >= 3
    for name in reading:
        demo = demo_of(name)
        with pytest.raises(gr.Error) as refusal:
            demo.fn(*[str(path)] * len(demo.input_components))
        assert "secret" not in str(refusal.value)
    assert len(demo_of("script_quality").input_components) == len(catalogue.get("script_quality").inputs)


def test_a_page_decodes_what_a_visitor_sent_apart(
    tmp_path: Path, speech_like: np.ndarray[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    soundfile.write(tmp_path / "episode.flac", speech_like, 16_000)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is decoded in this process")

    monkeypatch.setattr("podeval.recording.recording.decode", refuse)
    assert demo_of("loudness").fn(str(tmp_path / "episode.flac"))["scored"] == 1
