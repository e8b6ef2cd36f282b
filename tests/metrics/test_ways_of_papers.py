"""How papers' own code measures, where a parameter asks for it: whole segments, whole files, other windows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import place_windows
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.catalogue import make_protocol
from podeval.metrics.score import Unscored
from podeval.metrics.speech.sptd import compute_voice_distance
from podeval.models import registry
from podeval.models.interfaces import SpeakerTurn
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.recording.reference_voices import ReferenceVoices
from podeval.recording.speech_track import Span, embed_segments, join_segments, select_spoken_voices
from tests.fakes.planted_models import PlantedModels

RATE = 16_000
Vector = np.ndarray[Any, Any]


class Voices(PlantedModels):
    """A clip's embedding is its level, its length in seconds, and 1; the lengths are kept."""

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        self.lengths: list[float] = []

    def embed(self, clips: Sequence[Vector]) -> Vector:
        self.lengths += [round(len(clip) / RATE, 3) for clip in clips]
        rows = [(np.abs(clip).mean(), len(clip) / RATE, 1.0) for clip in clips]
        return np.array(rows, np.float32).reshape(-1, 3)


def sound(seconds: float, seed: int = 0) -> Vector:
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)


def turns(*spans: tuple[str, float, float]) -> list[SpeakerTurn]:
    return [SpeakerTurn(*span) for span in spans]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # One speaker's turns are one segment, with what lies between them.
        ([("A", 0, 2), ("A", 3, 5), ("B", 5, 9)], [("A", 0, 5), ("B", 5, 9)]),
        # Up to the turn with which it is longer than 10 s.
        ([("A", 0, 6), ("A", 7, 12), ("A", 13, 17)], [("A", 0, 12), ("A", 13, 17)]),
        # One turn may be longer; 3 s are too few.
        ([("A", 0, 14), ("B", 14, 17), ("A", 17, 21)], [("A", 0, 14), ("A", 17, 21)]),
        # An overlapped turn does not shorten the one around it, and order is by time.
        ([("B", 20, 24), ("A", 0, 8), ("A", 2, 4)], [("A", 0, 8), ("B", 20, 24)]),
        ([], []),
    ],
)
def test_segments_are_joined_as_the_public_code_joins_them(given: Any, expected: Any) -> None:
    assert [(one.speaker, one.start, one.end) for one in join_segments(turns(*given))] == expected


def test_sptd_of_segments_embeds_each_whole(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Voices(turns=[("A", 0.0, 8.0), ("B", 8.0, 12.0), ("A", 12.0, 19.0), ("B", 19.0, 21.0)])
    monkeypatch.setattr(registry, "load", planted.load)
    samples = np.concatenate([sound(8), 3 * sound(4, 1), sound(7, 2), 3 * sound(2, 3)])
    recording = Recording.from_samples(samples, RATE, cache=cache)
    score = catalogue.get("sptd")({"recording": recording}, {"embeddings": "segments"})
    assert planted.lengths == [8.0, 7.0, 4.0], "no segment of B's last 2 s"
    levels = [np.abs(samples[round(a * RATE) : round(b * RATE)]).mean() for a, b in ((0, 8), (12, 19), (8, 12))]
    one, other = np.array([(levels[0] + levels[1]) / 2, 7.5, 1]), np.array([levels[2], 4, 1])
    expected = 1 - one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert score.values["sptd"] == pytest.approx(expected, abs=1e-6)
    halved = catalogue.get("sptd")({"recording": recording}, {"embeddings": "segments", "variant": "podeval"})
    assert halved.values["sptd"] == pytest.approx(expected / 2, abs=1e-6)


def test_sim_of_segments_compares_with_the_whole_reference(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Voices(spoken=(Span(0, 4), Span(5, 12)))
    monkeypatch.setattr(registry, "load", planted.load)
    recording = Recording.from_samples(sound(12), RATE, cache=cache)
    references = ReferenceVoices({"": Recording.from_samples(sound(5, 1), RATE, cache=cache)})
    inputs = {"recording": recording, "reference_voices": references}
    score = catalogue.get("sim")(inputs, {"embeddings": "segments"})
    # The one voice's stretches of speech are its turns: together 12 s, one segment.
    assert planted.lengths == [5.0, 12.0]
    assert score.timeline is None
    assert score.notes["windows"] == 1
    one, other = (np.array([np.abs(one).mean(), len(one) / RATE, 1]) for one in (sound(12), sound(5, 1)))
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert score.values["sim"] == pytest.approx(cosine, abs=1e-6)
    weighted = catalogue.get("wsim")(inputs, {"embeddings": "segments", "variant": "podeval"})
    assert weighted.values["wsim"] == pytest.approx((1 + cosine) / 2, abs=1e-6)


@pytest.mark.parametrize(("window", "stride"), [(3.0, 2.0), (2.0, 0.5), (5.0, 5.0)])
def test_windows_of_timbre_are_as_long_as_is_asked(
    window: float, stride: float, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Voices()
    monkeypatch.setattr(registry, "load", planted.load)
    recording = Recording.from_samples(sound(21), RATE, cache=cache)
    parameters = {"speakers": 1, "window": window, "stride": stride}
    score = catalogue.get("timbre_consistency")({"recording": recording}, parameters)
    expected = place_windows([Span(0, 21)], window, stride)
    assert planted.lengths == [window] * len(expected)
    assert list(score.timeline.starts) == [clip[0].start for clip in expected]
    assert score.timeline.window == window


def test_windows_of_reverberation_are_as_long_as_is_asked(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", Voices().load)
    recording = Recording.from_samples(sound(21), RATE, cache=cache)
    metric = catalogue.get("reverb_consistency")
    usual = metric({"recording": recording}, {})
    assert usual == metric({"recording": recording}, {"window": 3, "stride": 2.0})
    other = metric({"recording": recording}, {"window": 5, "stride": 4})
    assert (usual.notes["windows"], other.notes["windows"]) == (10, 5)
    assert list(other.timeline.starts) == [0, 4, 8, 12, 16]
    with pytest.raises(BadInput, match=r"window must be 0\.5 or more"):
        metric({"recording": recording}, {"window": 0})


@pytest.mark.parametrize(
    ("name", "usual", "other"),
    [
        ("sptd", {"embeddings": "windows"}, {"embeddings": "segments"}),
        ("timbre_consistency", {"window": 3, "stride": "2"}, {"stride": 1}),
        ("expressive_richness", {"variant": "default"}, {"variant": "lfs"}),
    ],
)
def test_a_parameter_that_came_later_is_in_no_protocol_at_its_default(name: str, usual: Any, other: Any) -> None:
    metric = catalogue.get(name)
    plain, same, changed = (make_protocol(metric, chosen, (), {}) for chosen in ({}, usual, other))
    assert plain.id == same.id != changed.id
    assert not set(usual) & set(plain.parameters)
    assert set(other) <= set(changed.parameters)


def test_missing_weights_are_told_before_properties_of_the_audio(cache: Cache) -> None:
    """PAM's weights are on no machine of these tests; the sound has 16 of the 44.1 kHz that it asks for."""
    if registry.get_card("audio_text", "reference").missing() is None:
        pytest.skip("the weights of MS-CLAP are here")
    recording = Recording.from_samples(sound(8), RATE, profile="reference", cache=cache)
    result = catalogue.get("pam")({"recording": recording}, {})
    assert isinstance(result, Unscored)
    assert result.cause == "ours"
    assert "run `" in result.reason
    assert "44100" not in result.reason


@pytest.mark.every(2)
@pytest.mark.models
@pytest.mark.parametrize(("name", "segments", "windows"), [("kokoro", 0.622, 0.573), ("espeak", 0.046, 0.033)])
def test_sptd_of_a_real_dialogue_by_its_true_turns(
    name: str, segments: float, windows: float, shared_data: Path, tmp_path: Path
) -> None:
    """The figures of an independent computation with the same encoder (CAM++)."""
    if missing := registry.get_card("speaker_encoder", "embedded").missing():
        pytest.skip(missing)
    path = shared_data / "samples" / f"dialogue_{name}"
    recording = Recording.open(path.with_suffix(".flac"), cache=Cache(tmp_path))
    spoken = [
        SpeakerTurn(turn["speaker"], turn["start"], turn["end"])
        for turn in json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    ]
    for voices, expected in (
        (embed_segments(recording, spoken), segments),
        (select_spoken_voices(recording, spoken), windows),
    ):
        distance = compute_voice_distance([voice.embedding for voice in voices])
        assert distance == pytest.approx(expected, abs=0.001)
