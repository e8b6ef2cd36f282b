"""What the original code gave for real files, kept beside the repository (golden_values.json)."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podeval.models import registry
from podeval.models.interfaces import Transcript
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.text.script import Script
from tests.fakes.scoring import score

# tests/models has every file; here the way through `Recording`, on a clip longer than 17 s, where the window modes
# differ, and on a short one of another rate.
SPEECH = [
    ("podeval/subjective/audio_local_only/podagent/Arts.wav", "upstream"),
    ("podeval/subjective/audio_local_only/podagent/Arts.wav", "exact"),
    ("podagent/ref_wav_libritts_r/1283_129808_000050_000000.wav", "exact"),
]
LOUD = [
    "podeval/subjective/audio_local_only/LQ/Arts.wav",
    "podeval/subjective/audio_local_only/podagent/Arts.wav",
    "podeval/subjective/audio_local_only/mooncast/Arts.wav",
    "podeval/subjective/audio_webmushra/mono_ref.wav",
    "podagent/ref_wav_libritts_r/1283_129808_000050_000000.wav",
    "mtalk/audio/1-1-turn1_amb.wav",
]
DNSMOS_KEYS = {"sig": "SIG", "bak": "BAK", "ovrl": "OVRL", "p808": "P808_MOS"}
LOUDNESS_KEYS = {"integrated": "LOUD_IT", "true_peak": "LOUD_TP_x4_soxr", "range": "LOUD_LRA_podeval"}


@pytest.mark.models
@pytest.mark.parametrize(("name", "windows"), SPEECH)
def test_dnsmos_meets_the_original_in_both_window_modes(
    golden: dict[str, Any], shared_data: Path, tmp_path: Path, name: str, windows: str
) -> None:
    if missing := registry.get_card("speech_quality", "embedded").missing():
        pytest.skip(missing)
    # A cache of its own: the values are computed here, not read from an earlier run.
    recording = Recording.open(shared_data / name, cache=Cache(tmp_path))
    expected = golden[name] if windows == "upstream" else golden["_dnsmos_exact_windows"]["values"][name]
    found = score("dnsmos", {"recording": recording}, windows=windows, source="mix")
    for key, original in DNSMOS_KEYS.items():
        assert found.values[key] == pytest.approx(expected[original], abs=1e-3), key
    assert found.notes["windows"] == expected["n_windows"]


@pytest.mark.parametrize("name", LOUD)
def test_loudness_of_the_podeval_variant_meets_the_original(
    golden: dict[str, Any], shared_data: Path, name: str
) -> None:
    found = score("loudness", {"recording": Recording.open(shared_data / name)}, variant="podeval")
    for key, original in LOUDNESS_KEYS.items():
        assert found.values[key] == pytest.approx(golden[name][original], abs=1e-3), key


def test_wer_meets_the_original_on_podeval_s_own_transcript(golden: dict[str, Any], shared_data: Path) -> None:
    podeval = shared_data / "podeval"
    dialogue = json.loads((podeval / "ref_info/Arts_19.json").read_text(encoding="utf-8"))["dialogue"]
    lines = (podeval / "real_pod/example_processed/Arts_19/transcription.txt").read_text(encoding="utf-8").splitlines()
    heard = " ".join(re.sub(r"^\[[\d.]+-[\d.]+\]:", "", line).strip() for line in lines)
    recording = SimpleNamespace(
        rate=16_000, notes={}, require_sound=lambda: None, transcript=lambda language: Transcript(heard, language, ())
    )
    recording.speech_track = lambda source: recording
    inputs = {"recording": recording, "reference_text": Script.parse(dialogue).text}
    found = score("wer", inputs, normaliser="basic")
    assert found.values["wer_raw"] == pytest.approx(golden["_wer_Arts_19"]["wer_raw"], abs=1e-9)
    # Below the 0.1074 of lower-cased words without punctuation: a curly apostrophe is straight, quotes are no words.
    assert found.values["wer"] == pytest.approx(70 / 715, abs=1e-9)
