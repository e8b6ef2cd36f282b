"""Piper's voices as the built-in systems use them: loaded from pinned files, without noise, at a common rate.

Piper draws inside the ONNX graph, from a generator that runs on from call to call and cannot be set; so it speaks
without noise, and what is said depends on nothing said before it.
"""

import json
from typing import Any

import numpy as np

from podeval.audio.resample import resample
from podeval.models import weights
from podeval.systems.dialogue_reader import SpokenLine, cut_silence
from podeval.systems.speech import Samples, SpeechFailed

JOE, KRISTIN = "piper-joe", "piper-kristin"
"""Voices by the names of their weights in the lock."""

MANNER = {"noise_scale": 0.0, "length_scale": 1.0, "noise_w_scale": 0.0}
"""How a voice speaks, for `generation`."""


def load(voice: str, threads: int) -> Any:
    """Load a voice whose weights are installed.

    Raises:
        ModelMissing: they are not.
    """
    import onnxruntime
    from piper import PiperConfig, PiperVoice

    folder = weights.locate_weights(voice)
    model = next(folder / file.to for file in weights.lock()[voice].files if file.to.endswith(".onnx"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    config = PiperConfig.from_dict(json.loads(model.with_name(f"{model.name}.json").read_text("utf-8")))
    return PiperVoice(session=session, config=config)


def say(voice: Any, line: SpokenLine, rate: int) -> Samples:
    """Say a line, shape (frames,), at `rate` Hz; empty where the line holds no sound.

    Raises:
        SpeechFailed: Piper broke.
    """
    from piper import SynthesisConfig

    # Its own normalisation would lift every sentence to full scale, a whisper like a shout.
    manner = SynthesisConfig(
        noise_scale=MANNER["noise_scale"],
        length_scale=MANNER["length_scale"] / line.speed,
        noise_w_scale=MANNER["noise_w_scale"],
        normalize_audio=False,
    )
    try:
        parts = [np.asarray(part.audio_float_array, np.float32) for part in voice.synthesize(line.text, manner)]
    except Exception as broken:  # third-party G2P: any error there is the engine's, and must name its line
        what = f"{type(broken).__name__}: {broken}"
        raise SpeechFailed(
            f"Piper could not say turn {line.turn + 1} of the script ({what}): {line.text:.80}"
        ) from broken
    if not parts:
        return np.zeros(0, np.float32)
    native = voice.config.sample_rate
    return resample(cut_silence(np.concatenate(parts), native), native, rate)
