"""Whisper through CTranslate2 (faster-whisper): words with times, deterministic.

Greedy at temperature 0 without fallback. The recording is cut at its quietest moments into pieces that fit Whisper's
window of 30 s, each transcribed on its own by one thread, several at once: so one bad window cannot infect the rest,
memory is bounded, and a score depends neither on the run nor on the number of threads.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from podeval.models.jobs import Samples, Transcript, Word
from podeval.models.threads import threads

_RATE = 16_000
_LONGEST = 29 * _RATE
_USUAL = 27 * _RATE
_STEP = _RATE // 20
_PAUSE = 8


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

        self._workers = threads()
        self._model = WhisperModel(
            str(files["model.bin"].parent),
            device="cpu",
            compute_type=compute,
            cpu_threads=1,
            num_workers=self._workers,
            local_files_only=True,
        )
        self._options = {
            "beam_size": beam_size,
            "temperature": temperature,
            "condition_on_previous_text": condition_on_previous_text,
        }

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Words with times; language `None` is detected once, on the first piece that has sound."""
        pieces = [piece for piece in _pieces(samples) if np.any(samples[piece])]
        if not pieces:
            return Transcript("", language or "", ())
        if language is None:
            language = self._model.detect_language(_contiguous(samples[pieces[0]]))[0]
        with ThreadPoolExecutor(self._workers) as pool:
            found = list(pool.map(lambda piece: self._piece(samples, piece, language), pieces))
        return Transcript(
            " ".join(text for text, _ in found if text), language, tuple(word for _, words in found for word in words)
        )

    def _piece(self, samples: Samples, piece: slice, language: str) -> tuple[str, list[Word]]:
        segments, _ = self._model.transcribe(
            _contiguous(samples[piece]), language=language, word_timestamps=True, **self._options
        )
        offset = piece.start / _RATE
        texts: list[str] = []
        words: list[Word] = []
        for segment in segments:
            texts.append(segment.text)
            words.extend(Word(w.word.strip(), w.start + offset, w.end + offset) for w in segment.words or ())
        return "".join(texts).strip(), words


def _contiguous(samples: Samples) -> Samples:
    return np.ascontiguousarray(samples, dtype=np.float32)


def _pieces(samples: Samples) -> Iterator[slice]:
    """Few pieces of at most 29 s, each cut in the middle of the quietest 0.4 s of a stretch of 2 s and more."""
    start = 0
    while (left := len(samples) - start) > _LONGEST:
        count = -(-left // _USUAL)
        earliest = start + max(left - (count - 1) * _LONGEST, left // count * 3 // 5)
        levels = np.square(samples[earliest : start + _LONGEST], dtype=np.float64)
        steps = levels[: len(levels) // _STEP * _STEP].reshape(-1, _STEP).sum(axis=1)
        quietest = int(np.argmin(np.convolve(steps, np.ones(_PAUSE), "valid")))
        end = earliest + (quietest + _PAUSE // 2) * _STEP
        yield slice(start, end)
        start = end
    yield slice(start, len(samples))
