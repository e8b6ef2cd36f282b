"""Pieces of speech that Whisper in CTranslate2 decodes together, each with the tokens that it has by itself.

A step of decoding reads all the decoder's weights to make one token; for eight pieces at once it reads them once. That
halves the time of decoding. The encoder gains nothing from it and runs piece by piece.

faster-whisper decides for each piece what is decoded next, so it runs for several pieces in threads; what they ask
the network for is gathered here. What shares a batch moves a log probability by a millionth in 32 bits, and by nothing
in 8: the tokens are the same. Times are found piece by piece.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Semaphore
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

MOST = 8
"""Pieces that are decoded together at most; more gain little."""


@dataclass(eq=False)
class _Request:
    """What one piece waits for: its encoding, the prompt that begins its text, and how to decode."""

    encoded: Any
    prompt: list[int]
    options: dict[str, Any]
    result: "Future[Any]" = field(default_factory=Future)

    def is_like(self, other: "_Request") -> bool:
        """Whether both can share a batch: they differ in nothing but the piece."""
        return self.prompt == other.prompt and self.options == other.options


class SharedDecoding:
    """CTranslate2's Whisper for threads that each transcribe one piece, in the place of the network itself.

    Args:
        network: CTranslate2's.
        together: pieces that are decoded together at most.
        cores: calls of the network that may run at once.
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
        """Do the work of one piece, for whose requests others wait until it ends."""
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
        """Decode one piece, together with others that wait for the same."""
        (prompt,) = prompts
        request = _Request(encoded, prompt, options)
        with self._lock:
            self._waiting.append(request)
        self._decode_if_ready()
        return [request.result.result()]

    def _decode_if_ready(self) -> None:
        """Decode what waits, if it fills a batch or if nobody is left who could add to it."""
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
    """Return the encoder's outputs of several pieces as those of one batch."""
    if len(encoded) == 1:
        return encoded[0]
    from ctranslate2 import StorageView

    return StorageView.from_array(np.concatenate([np.asarray(one) for one in encoded]))
