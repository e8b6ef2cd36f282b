"""Whisper with CTranslate2 (faster-whisper): words with times, deterministic.

Decoding is greedy, at temperature 0 without fallback. The recording is cut at its quietest moments into chunks that fit
Whisper's window of 30 s. Chunks are transcribed independently, but several are decoded together: one bad window cannot
affect the others, memory use is bounded, and a score is the same in every run and with any number of threads.

A decoding step reads all weights of the decoder to generate one token; for eight chunks at once, it reads them only
once, which halves the time. faster-whisper determines the next step for each piece separately, so it runs in one thread
per piece, and the threads' requests to the network are collected here. A batch changes log probabilities by a millionth
at 32-bit precision, and not at all at 8-bit precision: the tokens are the same. Neither the encoder nor the search for
times benefits from batches, so both run piece by piece.
"""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Semaphore
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.models.chunking import cut_sounding
from podeval.models.device import count_threads
from podeval.models.interfaces import RATE, Samples, Transcriber, Transcript, Word

T = TypeVar("T")

MOST = 8
"""Maximum number of pieces that are decoded together; more would gain little."""


@dataclass(eq=False)
class _Request:
    """The inputs of one piece: its encoding, the prompt at the beginning of its text, and the decoding options."""

    encoded: Any
    prompt: list[int]
    options: dict[str, Any]
    result: "Future[Any]" = field(default_factory=Future)

    def is_like(self, other: "_Request") -> bool:
        """Return whether the two requests can share a batch, that is, whether they differ only in the piece."""
        return self.prompt == other.prompt and self.options == other.options


class SharedDecoding:
    """A replacement for CTranslate2's Whisper, for threads that each transcribe one piece.

    Args:
        network: CTranslate2's network.
        together: maximum number of pieces that are decoded together.
        cores: number of concurrent calls to the network.
    """

    def __init__(self, network: Any, together: int, cores: int) -> None:
        self._network, self._together = network, together
        self._cores = Semaphore(cores)
        self._lock = Lock()
        self._members = 0
        self._waiting: list[_Request] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def join(self, work: Callable[[], T]) -> T:
        """Do the work on one piece; until the work ends, batches of other pieces wait for its requests."""
        with self._lock:
            self._members += 1
        try:
            return work()
        finally:
            with self._lock:
                self._members -= 1
            self._decode_if_ready()

    def encode(self, *arguments: Any, **options: Any) -> Any:
        """Encode one piece."""
        with self._cores:
            return self._network.encode(*arguments, **options)

    def align(self, *arguments: Any, **options: Any) -> Any:
        """Find the times of one piece's tokens."""
        with self._cores:
            return self._network.align(*arguments, **options)

    def generate(self, encoded: Any, prompts: list[list[int]], **options: Any) -> list[Any]:
        """Decode one piece, together with others that are waiting to be decoded."""
        (prompt,) = prompts
        request = _Request(encoded, prompt, options)
        with self._lock:
            self._waiting.append(request)
        self._decode_if_ready()
        return [request.result.result()]

    def _decode_if_ready(self) -> None:
        """Decode the waiting requests if they fill a batch, or if no other piece could add to it."""
        with self._lock:
            if not self._waiting or len(self._waiting) < min(self._together, self._members):
                return
            batch = [one for one in self._waiting if one.is_like(self._waiting[0])][: self._together]
            self._waiting = [one for one in self._waiting if one not in batch]
        try:
            with self._cores:
                encoded, prompts = stack_encodings([one.encoded for one in batch]), [one.prompt for one in batch]
                results = self._network.generate(encoded, prompts, **batch[0].options)
            for one, result in zip(batch, results, strict=True):
                one.result.set_result(result)
        except Exception as error:
            for one in batch:
                one.result.set_exception(error)


def stack_encodings(encoded: list[Any]) -> Any:
    """Join the encoder's outputs of several pieces into one batch."""
    if len(encoded) == 1:
        return encoded[0]
    from ctranslate2 import StorageView

    return StorageView.from_array(np.concatenate([np.asarray(one) for one in encoded]))


class WhisperCT2(Transcriber):
    """A faster-whisper transcriber; at 32 bits, its weights need 0.3 GB, and decoding in two threads needs 1 GB."""

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
        """Return words with times; if `language` is None, it is detected once, on the first chunk that has sound."""
        sounding = cut_sounding(samples)
        if not sounding:
            return Transcript("", language or "", ())
        if language is None:
            language = self._detect(samples, sounding)
        # Process as many pieces at once as the cores can decode together; if there are few pieces, they share the
        # cores.
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
        """Return the code of the language spoken in the first chunk with sound; empty without sound."""
        sounding = cut_sounding(samples)
        return self._detect(samples, sounding) if sounding else ""

    def encode(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the mean and the spread over time of the encoder's output for each clip, shape (clips, 2 dimensions).

        Each clip is encoded separately, without the silence that pads Whisper's window, so its neighbours and its
        position in the recording have no effect.
        """
        rows = []
        for clip in clips:
            features = self._model.feature_extractor(_make_contiguous(clip), padding=0)
            frames = np.asarray(self._model.encode(features), dtype=np.float32)[0]
            rows.append(np.concatenate([frames.mean(axis=0), frames.std(axis=0)]))
        return np.stack(rows)

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


def _make_contiguous(samples: Samples) -> Samples:
    return np.ascontiguousarray(samples, dtype=np.float32)
