"""What podeval gives for the inputs of the recorded pairs in `data/`, peer by peer; `studies/peers.py` records them."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from podeval.audio.samples import mix_to_mono, resample
from podeval.audio.srmr import compute_srmr_windows
from podeval.models import registry
from podeval.recording import Recording
from podeval.stats import davidson
from podeval.stats.battles import Battles, elo
from podeval.text.comparison.word_errors import count_cp_errors, count_word_errors
from tests.fakes.sounds import whispered

DATA = Path(__file__).parent / "data"
SAMPLES = Path(__file__).parents[2] / "../shared/data/samples"
RATE = 16_000
Case = dict[str, Any]


def read_cases(peer: str) -> list[Case]:
    """Return the recorded cases of a peer: the `input`, what the peer gives (`theirs`), and `ours` if it differs."""
    return list(json.loads((DATA / f"{peer}.json").read_text(encoding="utf-8")))


@cache
def load_sound(sound: str, seconds: float, rate: int = RATE) -> Any:
    """Return a sound in single precision: noise or whispering of a seed, or the beginning of one of the shared samples.

    Raises:
        FileNotFoundError: the shared samples are not here.
    """
    kind, _, seed = sound.partition(" ")
    if kind == "noise":
        return np.random.default_rng(int(seed)).normal(0, 0.1, int(seconds * rate)).astype(np.float32)
    if kind == "whispered":
        return resample(whispered(seconds, seed=int(seed)), RATE, rate)[: int(seconds * rate)].astype(np.float32)
    recording = Recording.open(SAMPLES / sound)
    return resample(mix_to_mono(recording.samples), recording.rate, rate)[: int(seconds * rate)].astype(np.float32)


def _count_speaker_errors(reference: dict[str, str], heard: dict[str, str]) -> list[float]:
    plain = ({who: words.split() for who, words in talk.items()} for talk in (reference, heard))
    cp = count_cp_errors(*plain)
    return [cp.errors, cp.length]


def _count_errors(reference: str, heard: str) -> list[float]:
    errors = count_word_errors(reference, heard, normaliser="none")
    return [errors.wer or 0.0, errors.cer]


def _compute_srmr(sound: str, seconds: float, rate: int, fast: bool, norm: bool) -> list[float]:
    samples = load_sound(sound, seconds, rate)
    window = len(samples) / rate
    return [float(compute_srmr_windows(samples, rate, window, window, fast, norm)[1][0])]


def _score_dnsmos(sound: str, seconds: float) -> list[float]:
    rows = registry.load("speech_quality", "embedded").score(load_sound(sound, seconds), windows="upstream")
    return [float(mean) for mean in rows[:, 1:].mean(axis=0)]


def _score_by(job: str, sound: str, seconds: float) -> list[float]:
    return [float(registry.load(job, "embedded").score([load_sound(sound, seconds)])[0])]


def _read_battles(battles: list[tuple[str, str, str]]) -> Battles:
    first, second, outcome = zip(*battles, strict=True)
    return Battles.of(first, second, outcome)


def _fit(battles: list[tuple[str, str, str]]) -> list[float]:
    """Strengths as odds whose geometric mean is 1, by name, of battles alone: with next to no prior."""
    *strengths, _ = davidson.fit(davidson.group_into_rows(_read_battles(battles), position=False), 1e-9)
    return [float(odds) for odds in np.exp(np.array(strengths) - np.mean(strengths))]


def _rate_by_elo(battles: list[tuple[str, str, str]]) -> list[float]:
    return [one.rating for _, one in sorted(elo(_read_battles(battles)).items())]


OURS: dict[str, Callable[..., list[float]]] = {
    "meeteval": _count_speaker_errors,
    "torchmetrics_text": _count_errors,
    "torchmetrics_srmr": _compute_srmr,
    "srmrpy": _compute_srmr,
    "speechmos_dnsmos": _score_dnsmos,
    "speechmos_plcmos": lambda **case: _score_by("loss_quality", **case),
    "distillmos": lambda **case: _score_by("naturalness", **case),
    "evalica_elo": _rate_by_elo,
    "evalica_newman": _fit,
    "arena_rank": _fit,
}
TOLERANCES = {
    "torchmetrics_text": 1e-6,
    "speechmos_dnsmos": 1e-3,
    # The package draws its listeners by chance.
    "speechmos_plcmos": 0.1,
    "distillmos": 1e-3,
    "evalica_newman": 1e-4,
    "arena_rank": 1e-4,
}
"""Largest absolute difference that counts as equal, where it is not 1e-9."""
RELATIVE = {"srmrpy": 1e-5, "torchmetrics_srmr": 2e-4}
"""Largest relative difference, instead; torchmetrics has its filters in single precision."""


def is_equal(peer: str, ours: list[float], theirs: list[float]) -> bool:
    """Whether two results are equal within the tolerance of the peer."""
    relative = RELATIVE.get(peer, 0.0)
    return np.allclose(ours, theirs, rtol=relative, atol=0.0 if relative else TOLERANCES.get(peer, 1e-9))
