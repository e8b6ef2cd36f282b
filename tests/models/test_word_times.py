"""Word times: the way through the attention as transformers' own routine finds it, and words as people write them."""

from typing import Any

import numpy as np
import pytest
import torch

from podeval.models.interfaces import Word
from podeval.models.whisper_transformers import find_token_starts, time_words


class Tokenizer:
    """Tokens are positions in a list of texts; a lone half of a character is broken."""

    def __init__(self, *parts: str) -> None:
        self.parts = parts

    def decode(self, tokens: list[int], **_: Any) -> str:
        return b"".join(self.parts[t].encode("latin-1") for t in tokens).decode("utf-8", errors="replace")


def bytes_of(text: str) -> str:
    return text.encode().decode("latin-1")


def attention(*starts: int, steps: int = 200, heads: int = 2) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Of tokens that each look at the audio from their own start to that of the next."""
    weights = np.full((heads, len(starts), steps), 1e-4, dtype=np.float32)
    for row, (start, end) in enumerate(zip(starts, [*starts[1:], steps], strict=True)):
        weights[:, row, start:end] = 1.0
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(("rows", "steps"), [(1, 1), (1, 40), (2, 7), (30, 200), (90, 60)])
def test_tokens_begin_where_transformers_own_routine_says(rows: int, steps: int) -> None:
    """Exactly; on post-softmax weights, as there."""
    from transformers.models.whisper.generation_whisper import _dynamic_time_warping, _median_filter

    generator = np.random.default_rng(rows)
    weights = generator.random((3, rows, steps)).astype(np.float32)
    weights /= weights.sum(axis=-1, keepdims=True)
    tensor = torch.from_numpy(weights)
    spread = tensor.std(dim=-2, keepdim=True, unbiased=False).clamp_min(np.finfo(np.float32).tiny)
    standardised = (tensor - tensor.mean(dim=-2, keepdim=True)) / spread
    width = 7 if steps > 3 else 1
    matrix = _median_filter(standardised[None], width)[0].mean(dim=0)
    rows_of, steps_of = _dynamic_time_warping(-matrix.double().numpy())
    jumps = np.pad(np.diff(rows_of), (1, 0), constant_values=1).astype(bool)
    assert find_token_starts(weights).tolist() == steps_of[jumps].tolist()


def test_english_words_keep_their_signs_and_lose_the_pause() -> None:
    parts = [" Well", "-", "known", ",", " she", " said", ".", ' "', "No", '"', "!"]
    starts = (0, 10, 12, 20, 30, 40, 50, 52, 54, 160, 165, 170)
    heard = time_words(range(len(parts)), Tokenizer(*parts), "en", attention(*starts))
    assert [word.text for word in heard] == ["Well", "-known,", "she", "said.", '"No"!']
    assert [(word.start, word.end) for word in heard[:4]] == [(0, 10), (10, 20), (30, 40), (40, 50)]
    # A hundred steps for "No", after the end of a sentence: twice the median of ten is left of them.
    assert heard[4].end == 160
    assert 160 - heard[4].start == pytest.approx(2 * np.median([10, 10, 10, 10, 10, 2, 2, 106, 5, 5]))


def test_chinese_characters_are_words_and_halves_of_them_wait() -> None:
    first, second = bytes_of("咸")[:1], bytes_of("咸")[1:]
    parts = [bytes_of("海是"), first, second, bytes_of("的"), bytes_of("。")]
    heard = time_words(range(5), Tokenizer(*parts), "zh", attention(0, 10, 20, 30, 40, 50))
    assert [word.text for word in heard] == ["海是", "咸", "的。"]
    assert heard[1:] == (Word("咸", 10, 30), Word("的。", 30, 40))


def test_a_character_cut_off_at_the_end_is_kept() -> None:
    heard = time_words([0, 1], Tokenizer(" sea", bytes_of("咸")[:1]), "en", attention(0, 10, 20))
    assert [word.text for word in heard] == ["sea\ufffd"]
