"""The directions that matter most, on two synthetic voices; docs/distortion-study.md has them on a whole corpus."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from podeval.audio.samples import mix_to_mono, resample
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.systems.dialogue_reader import SpokenLine
from podeval.systems.espeak_ng import EspeakNg
from podeval.text.script import Script

Samples = NDArray[np.float32]
RATE = 16_000

WORDS = (
    "Tonight we follow the old salt route from the coast to the mountains. It was never a single path, but a bundle of "
    "tracks that moved with the weather. In spring the carts kept to the ridge."
)
ONE_VOICE = Script.parse([{"speaker": "Guide", "text": WORDS}])


@pytest.fixture(scope="module")
def voices(distortions: ModuleType) -> tuple[Samples, Samples]:
    """The same words in two voices of espeak-ng, at 16 kHz and −23 LUFS, about 11 s each."""
    engine = EspeakNg()
    if missing := engine.available():
        pytest.skip(missing)
    spoken = [engine.read(ONE_VOICE, [SpokenLine(0, voice, WORDS)]) for voice in (0, 1)]
    low, high = (
        distortions.match_loudness(resample(mix_to_mono(found.samples), found.rate, RATE), -23.0, RATE)
        for found in spoken
    )
    return low, high


@pytest.fixture
def score(tmp_path: Path) -> Any:
    """Values of a metric of samples, computed here and not read from an earlier run."""

    def values(name: str, samples: Samples, **inputs: Any) -> dict[str, Any]:
        for job in catalogue.get(name).needs:
            if job in ("speech_quality", "voice_activity", "speaker_encoder") and (
                missing := registry.get_card(job, "embedded").missing()
            ):
                pytest.skip(missing)
        recording = Recording.from_samples(samples, RATE, cache=Cache(tmp_path))
        result = catalogue.get(name)({"recording": recording, **inputs})
        assert isinstance(result, Score), result
        return dict(result.values)

    return values


@pytest.mark.models
def test_noise_lowers_the_background_quality_more_the_louder_it_is(
    distortions: ModuleType, voices: tuple[Samples, Samples], score: Any
) -> None:
    clean = voices[0][: round(9.5 * RATE)]
    found = [clean, *(distortions.gaussian_noise(clean, snr, seed=1) for snr in (20, 5))]
    bak = [score("dnsmos", samples)["bak"] for samples in found]
    assert bak[0] - bak[1] > 0.2
    assert bak[1] - bak[2] > 0.2


@pytest.mark.models
def test_another_voice_lowers_timbre_consistency_three_times_as_far_as_another_room(
    distortions: ModuleType, voices: tuple[Samples, Samples], score: Any
) -> None:
    clean, other = voices
    middle = len(clean) // 2
    swapped = distortions.join(clean[:middle], other[-middle:], RATE)
    moved = distortions.change_room(clean, RATE, middle / RATE, 0.5, seed=1)
    found = [
        score("timbre_consistency", samples, script=ONE_VOICE)["timbre_consistency"]
        for samples in (clean, swapped, moved)
    ]
    assert found[0] - found[1] > 0.15
    assert found[0] - found[1] > 3 * (found[0] - found[2])


@pytest.mark.models
def test_a_room_lowers_srmr_and_one_entered_in_the_middle_raises_its_spread(
    distortions: ModuleType, voices: tuple[Samples, Samples], score: Any
) -> None:
    clean = voices[1]
    ringing = [distortions.reverberate(clean, RATE, rt60, seed=1) for rt60 in (0.3, 0.8)]
    srmr = [score("reverb_consistency", samples)["srmr"] for samples in (clean, *ringing)]
    assert srmr[0] > srmr[1] > srmr[2]
    entered = distortions.change_room(clean, RATE, len(clean) / RATE / 2, 0.8, seed=1)
    spread = [score("reverb_consistency", samples)["reverb_consistency"] for samples in (clean, entered)]
    assert spread[1] > 1.5 * spread[0]


@pytest.mark.parametrize("db", [-12.0, 6.0])
def test_gain_shifts_loudness_and_peak_by_itself_and_nothing_else(
    distortions: ModuleType, db: float, voices: tuple[Samples, Samples], score: Any
) -> None:
    clean, louder = score("loudness", voices[0]), score("loudness", distortions.gain(voices[0], db))
    assert louder["integrated"] - clean["integrated"] == pytest.approx(db, abs=1e-4)
    assert louder["true_peak"] - clean["true_peak"] == pytest.approx(db, abs=1e-4)
    assert louder["range"] == pytest.approx(clean["range"], abs=1e-4)
