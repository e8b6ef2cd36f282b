"""VITS of transformers (MMS-TTS and its like) has one voice or numbered voices, and speaks one line at a time.

Its noise is drawn for a whole padded batch, so that lines are said one by one, each from a seed of its own.
"""

from importlib import util
from typing import Any

import numpy as np

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples, SpeechFailed


class Vits(SpeechModel):
    """A `SpeechModel` that says lines."""

    network = "VitsModel"
    reader = "VitsTokenizer"
    takes_references = False
    longest_line = 300  # its attention grows with the square of a line

    def open_processor(self, job: Job, device: str) -> Any:
        """Open its tokenizer.

        Raises:
            BadInput: the tokenizer reads texts through a package that is not installed.
        """
        tokenizer = super().open_processor(job, device)
        for flag, package in (("phonemize", "phonemizer"), ("is_uroman", "uroman")):
            if getattr(tokenizer, flag, False) and util.find_spec(package) is None:
                raise BadInput(f"this VITS model reads its text through {package}, which is not installed here")
        return tokenizer

    @property
    def rate(self) -> int:
        """The sampling rate that its config says, Hz."""
        return int(self._model.config.sampling_rate)

    def voices(self, language: str) -> int | None:
        """Return how many its config says; a model speaks the language it was trained on, which it does not tell."""
        return max(1, int(self._model.config.num_speakers))

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line in the voice of this number, shape (frames,).

        Raises:
            SpeechFailed: none of the line's characters is known to the model.
        """
        import torch

        inputs = self._processor(text, return_tensors="pt")
        blank = 1 if self._processor.add_blank else 0
        if inputs["input_ids"].shape[-1] <= blank:
            raise SpeechFailed(f"the model knows no character of the line {text[:80]!r}")
        speaker = {"speaker_id": voice} if int(self._model.config.num_speakers) > 1 else {}
        loading.set_seed(seed)
        with torch.inference_mode():
            wave = self._model(**inputs.to(self._model.device), **speaker).waveform
        return np.asarray(wave.float().cpu().numpy()[0], np.float32)
