"""Diarisation by pyannote.audio's community-1 pipeline: segmentation every second, embeddings of local speakers, VBx.

Source: Bredin, "pyannote.audio 2.1 speaker diarization pipeline", Interspeech 2023, and pyannote.audio 4.
"""

from pathlib import Path
from typing import Any

import numpy as np

from podeval import progress
from podeval.models.device import choose_device
from podeval.models.interfaces import Diarizer, Samples, SpeakerTurn
from podeval.models.pyannote_library import import_pyannote_audio

RATE = 16_000


class PyannoteDiarizer(Diarizer):
    """A diarizer that estimates the number of speakers.

    Args:
        files: the folder of the pipeline, by its repo on the Hub.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        import torch

        (folder,) = files.values()
        self._pipeline = import_pyannote_audio().Pipeline.from_pretrained(folder)
        self._pipeline.to(torch.device(choose_device()))

    def diarize(self, samples: Samples) -> tuple[SpeakerTurn, ...]:
        """Return turns in order of time, numbered by first appearance; empty if no speaker is found.

        Turns overlap where speakers do.
        """
        import torch

        waveform = torch.from_numpy(np.array(samples, dtype=np.float32))[np.newaxis]
        annotation = self._pipeline({"waveform": waveform, "sample_rate": RATE}, hook=_report).speaker_diarization
        turns = sorted((turn.start, turn.end, label) for turn, _, label in annotation.itertracks(yield_label=True))
        names: dict[str, str] = {}
        for _, _, label in turns:
            names.setdefault(label, f"SPEAKER_{len(names) + 1:02d}")
        return tuple(SpeakerTurn(names[label], float(start), float(end)) for start, end, label in turns)


def _report(step: str, _: Any, *, completed: int | None = None, total: int | None = None, **__: Any) -> None:
    """Pass on the progress that the pipeline reports."""
    if completed is not None and total:
        progress.report(f"telling speakers apart ({step})", completed, total)
