"""Whisper with CTranslate2 (faster-whisper): words with times, deterministic.

Decoding is greedy at temperature 0 without fallback. The recording is cut at its quietest moments into chunks that fit
Whisper's window of 30 s, each transcribed independently, several decoded together (`models.shared_decoding`): one bad
window cannot affect the rest, memory is bounded, and a score depends neither on the run nor on the number of threads.
"""

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from podeval import progress
from podeval.models.chunking import RATE, cut_at_pauses
from podeval.models.interfaces import Samples, Transcriber, Transcript, Word
from podeval.models.shared_decoding import MOST, SharedDecoding
from podeval.models.threads import count_threads


class WhisperCT2(Transcriber):
    """A transcriber with faster-whisper; in 32 bits it uses 0.3 GB for its weights, 1 GB while two threads decode."""

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
            cpu_threads=1,
            num_workers=count_threads(),
            local_files_only=True,
        )
        self._options = {
            "beam_size": beam_size,
            "temperature": temperature,
            "condition_on_previous_text": condition_on_previous_text,
        }

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Return words with times; with `language` None it is detected once, on the first chunk that has sound."""
        sounding = _find_sounding(samples)
        if not sounding:
            return Transcript("", language or "", ())
        if language is None:
            language = self._detect(samples, sounding)
        # As many pieces at once as the cores decode together; each core has its share where there are few.
        cores = count_threads()
        together = min(MOST, -(-len(sounding) // cores))
        shared = SharedDecoding(self._model.model, together, cores)
        model = copy.copy(self._model)
        model.model = shared
        with ThreadPoolExecutor(together * cores) as pool:

            def transcribe_piece(piece: slice) -> tuple[str, list[Word]]:
                return shared.join(lambda: self._transcribe_piece(model, samples, piece, language))

            results = []
            for piece, result in zip(sounding, pool.map(transcribe_piece, sounding), strict=True):
                results.append(result)
                progress.report("transcribing", piece.stop / RATE, len(samples) / RATE)
        return Transcript(
            " ".join(text for text, _ in results if text),
            language,
            tuple(word for _, words in results for word in words),
        )

    def detect_language(self, samples: Samples) -> str:
        """Return the code of the language of the first chunk that has sound; empty where none has."""
        sounding = _find_sounding(samples)
        return self._detect(samples, sounding) if sounding else ""

    def _detect(self, samples: Samples, sounding: list[slice]) -> str:
        return str(self._model.detect_language(_make_contiguous(samples[sounding[0]]))[0])

    def _transcribe_piece(self, model: Any, samples: Samples, piece: slice, language: str) -> tuple[str, list[Word]]:
        segments, _ = model.transcribe(
            _make_contiguous(samples[piece]), language=language, word_timestamps=True, **self._options
        )
        offset = piece.start / RATE
        texts: list[str] = []
        words: list[Word] = []
        for segment in segments:
            texts.append(segment.text)
            words.extend(Word(w.word.strip(), w.start + offset, w.end + offset) for w in segment.words or ())
        return "".join(texts).strip(), words


def _find_sounding(samples: Samples) -> list[slice]:
    return [piece for piece in cut_at_pauses(samples) if np.any(samples[piece])]


def _make_contiguous(samples: Samples) -> Samples:
    return np.ascontiguousarray(samples, dtype=np.float32)
