"""PAM against its formula on the msclap package's own forward pass; chunks, channels, prompts and refusals."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.samples import resample
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.score import Score, Unscored
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache
from tests.fakes import scoring

Load = Callable[[str, dict[str, Path]], Any]

RATE = 44_100
CHUNK = 7 * RATE
KEYS = ("pam", "pam_avg", "pam_avgsim")


def measure(recording: Recording, **parameters: Any) -> Score:
    return scoring.score("pam", {"recording": recording}, **parameters)


def unscored(recording: Recording, **parameters: Any) -> Unscored:
    return scoring.unscored("pam", {"recording": recording}, **parameters)


# The formula, on a tiny CLAP


@pytest.fixture
def tiny(tiny_msclap: Path, load_reference: Load) -> Path:
    hub = tiny_msclap / "hub"
    load_reference("audio_text", {"microsoft/msclap": hub / "msclap", "openai-community/gpt2": hub / "gpt2"})
    return tiny_msclap


def test_every_variant_is_the_formula_on_the_package_s_forward_pass(tiny: Path, cache: Cache) -> None:
    """Reference: tests/fakes/tiny_msclap.py, a direct evaluation with msclap 1.3.4; 1e-4."""
    expected = json.loads((tiny / "pam.json").read_text())
    sound = np.load(tiny / "sound.npy")
    recording = Recording.from_samples(sound, RATE, profile="reference", cache=cache)
    for variant in ("default", "paper", "repro", "msclap", "pcc"):
        values = measure(recording, variant=variant).values
        assert [values[key] for key in KEYS] == pytest.approx(expected[variant], abs=1e-4), variant
    naive = measure(recording, variant="naive").values
    assert naive == {"pam": pytest.approx(expected["naive"][0], abs=1e-4), "pam_avg": None, "pam_avgsim": None}
    short = Recording.from_samples(sound[:100_000, 0], RATE, profile="reference", cache=cache)
    assert [measure(short).values[key] for key in KEYS] == pytest.approx(expected["short"], abs=1e-4)
    # The variants differ by more than the tolerance, so that none can stand for another.
    assert len({tuple(round(value, 3) for value in row) for row in expected.values()}) == len(expected)


def test_own_prompts_give_the_score_of_their_pair(tiny: Path, cache: Cache) -> None:
    recording = Recording.from_samples(np.load(tiny / "sound.npy"), RATE, profile="reference", cache=cache)
    own = measure(recording, prompts="the sound is clear and clean.|the sound is noisy and with artifacts.")
    expected = pytest.approx(measure(recording).values["pam"], abs=1e-6)  # texts read together are padded: float32
    assert own.values == {"pam": expected, "pam_avg": None, "pam_avgsim": None}
    assert own.notes["prompts"] == ["the sound is clear and clean.", "the sound is noisy and with artifacts."]
    turned = measure(recording, prompts="the sound is noisy and with artifacts. | the sound is clear and clean.")
    assert turned.values["pam"] == pytest.approx(1 - (own.values["pam"] or 0), abs=1e-6)


def test_a_second_look_asks_no_model(tiny: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = np.load(tiny / "sound.npy")
    first = measure(Recording.from_samples(sound, RATE, profile="reference", cache=cache))
    monkeypatch.setattr(registry, "load", None)
    again = Recording.from_samples(sound, RATE, profile="reference", cache=cache)
    assert measure(again).values == first.values
    # Another way of scoring the same chunks needs no other embeddings.
    assert measure(again, variant="paper").values["pam"]


# Chunks, on a stand-in that says what it heard


class Listener:
    """Hears the level of a clip, in one direction for the good prompts and in another for the bad ones."""

    scale = 10.0

    def __init__(self) -> None:
        self.heard: list[np.ndarray[Any, Any]] = []

    def audio(self, clips: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        self.heard += [np.array(clip) for clip in clips]
        angles = np.array([clip.std() for clip in clips])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def text(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        return np.array([[1, 0] if ("clear" in t or "good" in t) else [0, 1] for t in texts], np.float32)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    model = Listener()
    monkeypatch.setattr(registry, "load", lambda job, profile: model)
    return model


def swell(frames: int, first: float = 0.1) -> np.ndarray[Any, Any]:
    """A sound without an offset that grows louder, so that each of its chunks is another."""
    sound = np.linspace(first, 1, frames, dtype=np.float32)
    sound[::2] *= -1
    return sound


def recorded(samples: np.ndarray[Any, Any], cache: Cache, rate: int = RATE, **options: Any) -> Recording:
    return Recording.from_samples(samples, rate, profile="reference", cache=cache, **options)


def test_all_is_heard_in_chunks_the_last_of_which_ends_with_the_recording(listener: Listener, cache: Cache) -> None:
    sound = swell(2 * CHUNK + 1000)
    found = measure(recorded(sound, cache))
    assert [len(clip) for clip in listener.heard] == [CHUNK] * 3
    for clip, start in zip(listener.heard, (0, CHUNK, CHUNK + 1000), strict=True):
        np.testing.assert_array_equal(clip, sound[start : start + CHUNK])
    assert found.notes["windows"] == 3
    assert found.timeline.starts == [0, 7, round(7 + 1000 / RATE, 3)]
    assert found.timeline.window == 7
    levels = np.array([clip.std() for clip in listener.heard], np.float64)
    expected = 1 / (1 + np.exp(-10 * (np.cos(levels) - np.sin(levels))))
    assert found.timeline.values["pam"] == pytest.approx(expected, abs=1e-4)
    assert found.values["pam"] == pytest.approx(expected.mean(), abs=1e-6)


def test_whole_chunks_have_no_extra_one_and_a_short_recording_is_looped(listener: Listener, cache: Cache) -> None:
    measure(recorded(swell(2 * CHUNK), cache))
    assert len(listener.heard) == 2
    listener.heard.clear()
    short = swell(CHUNK // 3 + 5)
    measure(recorded(short, cache))
    np.testing.assert_array_equal(listener.heard[0], np.tile(short, 3)[:CHUNK])


def test_channels_are_mixed_or_joined_and_then_have_no_timeline(listener: Listener, cache: Cache) -> None:
    left = swell(CHUNK + 100)
    stereo = recorded(np.stack([left, -left], axis=1), cache)
    mixed = catalogue.get("pam")({"recording": stereo}, {})
    assert "cancel each other" in mixed.reason
    measure(recorded(np.stack([left, -left / 2], axis=1), cache))
    np.testing.assert_allclose(listener.heard[0], left[:CHUNK] / 4, atol=1e-6)
    listener.heard.clear()
    joined = measure(stereo, variant="msclap")
    whole = np.concatenate([left, -left])
    for clip, start in zip(listener.heard, (0, CHUNK, len(whole) - CHUNK), strict=True):
        np.testing.assert_array_equal(clip, whole[start : start + CHUNK])
    assert joined.timeline is None
    mono = recorded(left, cache)
    assert measure(mono, variant="msclap").values == measure(mono).values
    assert measure(mono, variant="msclap").timeline


def test_silent_ends_and_an_offset_are_not_heard_unless_a_variant_reproduces_code(
    listener: Listener, cache: Cache
) -> None:
    sound = swell(CHUNK)
    padded = np.concatenate([np.zeros(3 * RATE, np.float32), sound, np.zeros(3 * RATE, np.float32)])
    found = measure(recorded(padded + np.float32(0.05), cache))
    assert found.notes["windows"] == 1
    assert found.timeline.starts == [3.0]
    np.testing.assert_allclose(listener.heard[0], sound, atol=1e-4)
    assert measure(recorded(padded, cache), variant="paper").notes["windows"] == 2


def test_a_channel_shorter_than_a_chunk_is_joined_with_the_next(listener: Listener, cache: Cache) -> None:
    left = np.linspace(0.1, 1, CHUNK // 3, dtype=np.float32)
    measure(recorded(np.stack([left, -left, 2 * left], axis=1), cache), variant="msclap")
    np.testing.assert_array_equal(listener.heard[0], np.resize(np.concatenate([left, -left, 2 * left]), CHUNK))


def test_the_script_that_correlates_with_listeners_hears_the_first_seconds_of_the_joined_channels(
    listener: Listener, cache: Cache
) -> None:
    left, right = swell(CHUNK + RATE), swell(CHUNK + RATE)[::-1].copy()
    score = measure(recorded(np.stack([left, right], axis=1), cache), variant="pcc")
    assert score.notes["windows"] == 1
    np.testing.assert_allclose(listener.heard[0], left[:CHUNK], atol=1e-6)


# Refusals


@pytest.mark.parametrize("prompts", ["good", "|", "good|", "a|b|c", " | b"])
def test_prompts_that_are_not_two_are_wrong_usage(prompts: str, listener: Listener, cache: Cache) -> None:
    with pytest.raises(BadInput, match=r"prompts must be two texts separated by \|"):
        catalogue.get("pam")({"recording": recorded(np.ones(CHUNK), cache)}, {"prompts": prompts})


@pytest.mark.parametrize("variant", ["default", "repro", "msclap"])
@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_a_lower_rate_is_upsampled_as_in_the_paper_and_noted(
    rate: int, variant: str, listener: Listener, cache: Cache
) -> None:
    sound = (0.1 * np.random.default_rng(1).standard_normal((8 * rate, 2))).astype(np.float32)
    sound -= sound.mean(axis=0)  # a constant offset is no sound
    score = measure(recorded(sound, cache, rate), variant=variant)
    assert score.notes["upsampled_from"] == rate
    whole = resample(sound[:, 0] if variant == "msclap" else sound.mean(axis=1), rate, RATE)
    # By default the median of the samples is taken off, too.
    np.testing.assert_allclose(listener.heard[0], whole[:CHUNK], atol=3e-3 if variant == "default" else 1e-5)


def test_without_the_model_the_reason_names_what_helps(cache: Cache, hub_client: Any) -> None:
    sound = np.ones(CHUNK, np.float32)
    embedded = unscored(Recording.from_samples(sound, RATE, cache=cache))
    assert embedded.cause == "ours"
    assert embedded.reason.endswith("--profile reference has MS-CLAP 2023")
    absent = unscored(recorded(sound, cache))
    assert absent.cause == "ours"
    assert absent.reason.endswith("run `podeval models install --profile reference`")
