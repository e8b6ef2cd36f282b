"""Whisper through CTranslate2 (faster-whisper): words with times, deterministic.

Greedy at temperature 0 without fallback, each window on its own, so that a score does not change between runs and
one bad window cannot infect the rest. Recordings of any length are read in pieces cut at silences.
"""

import os
from pathlib import Path

import numpy as np

from podeval.models.jobs import Samples, Transcript, Word

_RATE = 16_000
_PIECE = 15 * 60 * _RATE
_SEARCH = 30 * _RATE


class WhisperCT2:
    """A transcriber; holds about 300 MB."""

    def __init__(
        self,
        files: dict[str, Path],
        *,
        compute: str,
        beam_size: int,
        temperature: float,
        condition_on_previous_text: bool,
    ) -> None:
        from faster_whisper import WhisperModel

        self._model = WhisperModel(
            str(files["model.bin"].parent),
            device="cpu",
            compute_type=compute,
            cpu_threads=threads(),
            local_files_only=True,
        )
        self._options = {
            "beam_size": beam_size,
            "temperature": temperature,
            "condition_on_previous_text": condition_on_previous_text,
        }

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Words with times; language `None` is detected once, on the first piece."""
        words: list[Word] = []
        texts: list[str] = []
        for start, stop in _pieces(samples):
            piece = np.ascontiguousarray(samples[start:stop], dtype=np.float32)
            segments, info = self._model.transcribe(
                piece, language=language, word_timestamps=True, **self._options
            )
            language = info.language
            offset = start / _RATE
            for segment in segments:
                texts.append(segment.text)
                words.extend(
                    Word(w.word.strip(), w.start + offset, w.end + offset) for w in segment.words or ()
                )
        return Transcript("".join(texts).strip(), language or "", tuple(words))


def threads() -> int:
    """Cores to use: `PODEVAL_THREADS`, else all this process may run on."""
    return int(os.environ.get("PODEVAL_THREADS") or len(os.sched_getaffinity(0)))


def _pieces(samples: Samples) -> list[tuple[int, int]]:
    """Cuts of at most 15 minutes, each at the quietest 100 ms of the 30 s before."""
    cuts = [0]
    while len(samples) - cuts[-1] > _PIECE:
        end = cuts[-1] + _PIECE
        frames = np.square(samples[end - _SEARCH : end]).reshape(-1, _RATE // 10).sum(axis=1)
        cuts.append(end - _SEARCH + int(np.argmin(frames)) * (_RATE // 10) + _RATE // 20)
    return list(zip(cuts, [*cuts[1:], len(samples)], strict=True))
