"""Built-in systems, by name."""

from collections.abc import Callable

from podeval.errors import require_known
from podeval.systems.controls import (
    ContentFaults,
    DrawnGaps,
    RepeatedSentence,
    ShuffledVoices,
    SignalFaults,
    Silence,
    UnevenPace,
)
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper, Piper
from podeval.systems.kokoro import Kokoro
from podeval.systems.pico import Pico
from podeval.systems.speech import SpeakingSystem

SYSTEMS: dict[str, Callable[[], SpeakingSystem]] = {
    HibariPiper.name: HibariPiper,
    EspeakNg.name: EspeakNg,
    Kokoro.name: Kokoro,
    Pico.name: Pico,
    Piper.name: Piper,
    Silence.name: Silence,
    RepeatedSentence.name: lambda: RepeatedSentence(HibariPiper()),
    ShuffledVoices.name: lambda: ShuffledVoices(HibariPiper()),
    DrawnGaps.name: lambda: DrawnGaps(HibariPiper()),
    UnevenPace.name: lambda: UnevenPace(HibariPiper()),
    ContentFaults.name: lambda: ContentFaults(HibariPiper()),
    SignalFaults.name: lambda: SignalFaults(HibariPiper()),
}

NAMES = tuple(SYSTEMS)
"""Every built-in system: the baselines, then the controls."""


def get(name: str) -> SpeakingSystem:
    """Return a new instance of the system of this name; nothing is loaded before it speaks.

    Raises:
        BadInput: there is none; the message names the closest.
    """
    require_known("built-in system", SYSTEMS, name)
    return SYSTEMS[name]()


def list_systems() -> tuple[SpeakingSystem, ...]:
    """Return one instance of every built-in system."""
    return tuple(get(name) for name in NAMES)
