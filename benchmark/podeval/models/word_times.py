"""Finds when each word was spoken, from Whisper's attention to the audio while it wrote the words.

For the attention heads that follow the audio, the weights of every token over time are standardised, smoothed (median
of 7 steps) and averaged; the monotonic path with the highest sum through them (dynamic time warping) gives the step
at which each token begins. Punctuation has no part in a word's time. A word that begins a sentence and is more than
twice as long as the median gets a later start, because the excess is the pause before it.

Source: openai-whisper, `timing.py`; faster-whisper does the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.models.interfaces import Word

STEP = 0.02
"""Length of one step of Whisper's encoder, seconds."""

_SMOOTHED = 7
_UNSPACED = ("zh", "ja", "th", "lo", "my", "yue")
_SENTENCE_ENDS = ".。!！?？"
_OPENING = "\"'“¿([{-"
_CLOSING = "\"'.。,，!！?？:：”)]}、"
_HIGHEST_MEDIAN = 35
_BROKEN = "\ufffd"


def time_words(
    tokens: Sequence[int], tokenizer: Any, language: str, attention: NDArray[np.float32]
) -> tuple[Word, ...]:
    """Join tokens to words with their times, in steps of `STEP`.

    Args:
        tokens: tokens of the text alone.
        tokenizer: decodes tokens to text with its `decode`.
        language: code; in languages written without spaces, every character is a word.
        attention: probabilities over the audio's steps while each token and then the end was predicted, shape
            (heads, tokens + 1, steps).
    """
    starts = find_token_starts(attention)
    parts = [
        Word(text, float(starts[first]), float(starts[past]))
        for text, first, past in _split_parts(tokens, tokenizer, spaced=language not in _UNSPACED)
    ]
    return tuple(_attach_punctuation(_cut_pauses(parts)))


def find_token_starts(attention: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the step at which each token begins, the last entry being the end; `attention` is as in `time_words`."""
    least = np.finfo(np.float32).tiny
    weights = attention / np.maximum(attention.sum(axis=-1, keepdims=True), least)
    spread = weights.std(axis=-2, keepdims=True)
    weights = (weights - weights.mean(axis=-2, keepdims=True)) / np.maximum(spread, least)
    return _find_first_steps(_smooth(weights).mean(axis=0))


def _smooth(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute a running median over time, mirrored at both ends."""
    reach = min(_SMOOTHED // 2, weights.shape[-1] - 1)
    padded = np.pad(weights, [(0, 0), (0, 0), (reach, reach)], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=-1)
    # An odd number of values: the median is one of them. Parting takes a third of the time of `np.median`.
    smoothed: NDArray[np.float32] = np.partition(windows, reach, axis=-1)[..., reach]
    return smoothed


def _find_first_steps(gains: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return where the best forward path enters each row, by dynamic time warping over (tokens, steps).

    The table is filled one diagonal at a time, because the cells of a diagonal do not depend on each other.
    """
    rows, columns = gains.shape
    best = np.full((rows + 1, columns + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((rows + 1, columns + 1), dtype=np.int8)
    for diagonal in range(2, rows + columns + 1):
        row = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
        column = diagonal - row
        both, down, along = best[row - 1, column - 1], best[row - 1, column], best[row, column - 1]
        # Ties are resolved as in the original.
        choice = np.where((both < down) & (both < along), 0, np.where((down < both) & (down < along), 1, 2))
        best[row, column] = np.choose(choice, [both, down, along]) - gains[row - 1, column - 1]
        came[row, column] = choice
    starts = np.zeros(rows, dtype=np.int64)
    at, step = rows, columns
    while at > 0:
        starts[at - 1] = max(step - 1, 0)
        move = came[at, step] if step > 0 else 1
        at, step = at - (move != 2), step - (move != 1)
    return starts


def _split_parts(tokens: Sequence[int], tokenizer: Any, *, spaced: bool) -> list[tuple[str, int, int]]:
    """Return words and the punctuation between them, each with its first token and the token after its last."""
    parts: list[tuple[str, int, int]] = []
    first = 0
    for past in range(1, len(tokens) + 1):
        text = tokenizer.decode(tokens[first:past], clean_up_tokenization_spaces=False)
        if text.endswith(_BROKEN) and past < len(tokens):
            continue
        if parts and spaced and not text[:1].isspace() and not _consists_of(text, _OPENING + _CLOSING):
            before, start, _ = parts.pop()
            parts.append((before + text, start, past))
        else:
            parts.append((text, first, past))
        first = past
    return [(text.strip(), start, past) for text, start, past in parts if text.strip()]


def _cut_pauses(parts: list[Word]) -> list[Word]:
    """Return the parts, shortening those that begin a sentence to at most twice the median."""
    lengths = [part.end - part.start for part in parts if part.end > part.start]
    longest = 2 * min(_HIGHEST_MEDIAN, float(np.median(lengths))) if lengths else 0.0
    shortened = []
    for number, part in enumerate(parts):
        begins = number == 0 or _consists_of(parts[number - 1].text, _SENTENCE_ENDS)
        cut = begins and part.end - part.start > longest and not _consists_of(part.text, _OPENING + _CLOSING)
        shortened.append(replace(part, start=part.end - longest) if cut else part)
    return shortened


def _attach_punctuation(parts: Sequence[Word]) -> Iterator[Word]:
    """Yield words with the punctuation that belongs to them; their times are those of the word alone."""
    opening = ""
    word: Word | None = None
    for part in parts:
        if word and _consists_of(part.text, _CLOSING):
            word = replace(word, text=word.text + part.text)
        elif _consists_of(part.text, _OPENING):
            opening += part.text
        else:
            if word:
                yield word
            word = replace(part, text=opening + part.text)
            opening = ""
    if word:
        yield replace(word, text=word.text + opening)


def _consists_of(text: str, signs: str) -> bool:
    return all(sign in signs for sign in text.strip())
