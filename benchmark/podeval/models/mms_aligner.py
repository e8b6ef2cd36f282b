"""Word times from the forced aligner of Massively Multilingual Speech (MMS), as published by torchaudio (`MMS_FA`).

A wav2vec 2.0 network that was trained to spell 1,130 languages in Latin letters estimates the probability of each
letter in each frame of 20 ms; CTC forced alignment assigns the letters of the known words to the frames. The network
and the code that reads the weights are torchaudio's. The alignment is ours: the Viterbi algorithm, over the tokens with
a blank before, between and after them, finds the path with the highest sum of log probabilities (Graves et al., ICML
2006). `torchaudio.functional.forced_align` does the same in C++ code that cannot be loaded with every build of torch.

The recording is cut at its quietest moments into chunks of at most 29 s, and each chunk gets the words whose midpoint,
according to their previous times, lies in it. English is spelled without accents, with numbers as spoken; uroman spells
text in other scripts, including Chinese, as it did for the network's training data. A word without letters is aligned
with any sound (the label `*`). If the words in a chunk have too many letters for it, the words keep their times.

Source: Pratap et al., "Scaling speech technology to 1,000+ languages", JMLR 2024; MOSS-TTSD's evaluation uses the same
aligner.
"""

import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from podeval import progress
from podeval.models.chunking import cut_at_pauses
from podeval.models.device import choose_device
from podeval.models.interfaces import RATE, Aligner, Samples, Word
from podeval.text.comparison.alignment import split_words


def count_frames(tokens: Sequence[int]) -> int:
    """Return the minimum number of frames for tokens: one for each, and one for a blank between equal neighbours."""
    return len(tokens) + sum(before == after for before, after in pairwise(tokens))


_BLANK = 0
"""Label of the blank."""


def align_tokens(log_probabilities: NDArray[Any], tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first frame of each token and the frame after its last.

    Args:
        log_probabilities: log probability of every label in every frame, shape (frames, labels).
        tokens: labels that were spoken, without blanks.

    Returns:
        The first frame of each token and the frame after its last; nothing if there are too few frames for the tokens.
    """
    frames = len(log_probabilities)
    if not tokens or frames < count_frames(tokens):
        return []
    # The states of the path are a blank, the first token, a blank, the second token, … a blank.
    labels = np.full(2 * len(tokens) + 1, _BLANK)
    labels[1::2] = tokens
    may_skip = np.zeros(len(labels), dtype=bool)
    may_skip[3::2] = labels[3::2] != labels[1:-2:2]
    scores = np.full(len(labels), -np.inf)
    scores[:2] = log_probabilities[0, labels[:2]]
    steps = np.zeros((frames, len(labels)), dtype=np.int8)
    for frame in range(1, frames):
        # A path arrives from the same state, from the previous one, or from the previous token past the blank.
        candidates = np.full((3, len(labels)), -np.inf)
        candidates[0] = scores
        candidates[1, 1:] = scores[:-1]
        candidates[2, 2:] = np.where(may_skip[2:], scores[:-2], -np.inf)
        steps[frame] = np.argmax(candidates, axis=0)
        scores = np.take_along_axis(candidates, steps[frame][np.newaxis], axis=0)[0] + log_probabilities[frame, labels]
    # Trace the path back from the better of the last two states.
    state = len(labels) - 1 if scores[-1] > scores[-2] else len(labels) - 2
    spans = [(0, 0)] * len(tokens)
    for frame in range(frames - 1, -1, -1):
        if state % 2:
            first = frame
            past = spans[state // 2][1] or frame + 1
            spans[state // 2] = (first, past)
        state -= int(steps[frame, state])
    return spans


WEIGHTS = "mms_fa.pt"
_STAR = "*"
_SHORTEST = 400
"""Minimum number of samples for one frame of the network."""

_UROMAN = {"zh": "zho", "yue": "yue", "ja": "jpn"}
"""Language codes for uroman, for languages with their own romanisation rules."""


class MmsAligner(Aligner):
    """Times words with MMS_FA.

    Args:
        files: `mms_fa.pt`.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        from torchaudio.pipelines import MMS_FA

        path = files[WEIGHTS]
        # The pinned file already exists, so torch's loader fetches nothing; it reads only tensors.
        place = {"model_dir": str(path.parent), "file_name": path.name, "map_location": "cpu", "weights_only": True}
        self._network = MMS_FA.get_model(with_star=True, dl_kwargs=place).eval().to(choose_device())
        self._labels: dict[str, int] = MMS_FA.get_dict(star=_STAR)

    def align(self, samples: Samples, words: Sequence[Word], language: str) -> tuple[Word, ...]:
        """Return the words with the times of their letters."""
        spelt = [spell(word.text, language) for word in words]
        timed = list(words)
        for piece in cut_at_pauses(samples):
            start, end = piece.start / RATE, piece.stop / RATE
            inside = [
                at
                for at, word in enumerate(words)
                if start <= (word.start + word.end) / 2 < end or (end >= len(samples) / RATE and word.start >= end)
            ]
            if inside and piece.stop - piece.start >= _SHORTEST:
                for at, (begins, ends) in zip(
                    inside, self._time(samples[piece], [spelt[at] for at in inside]), strict=False
                ):
                    timed[at] = replace(words[at], start=start + begins, end=start + ends)
            progress.report("timing words", end, len(samples) / RATE)
        return tuple(timed)

    def _time(self, samples: Samples, spelt: Sequence[str]) -> list[tuple[float, float]]:
        """Return the times of each word in seconds from the beginning; nothing if the words do not fit."""
        with torch.inference_mode():
            chunk = torch.from_numpy(np.ascontiguousarray(samples, dtype=np.float32))[None].to(choose_device())
            log_probabilities = self._network(chunk)[0][0].cpu().numpy()
        tokens = [self._labels[letter] for word in spelt for letter in word]
        spans = align_tokens(log_probabilities, tokens)
        if not spans:
            return []
        second = len(log_probabilities) * RATE / len(samples)
        times, done = [], 0
        for word in spelt:
            first, last = spans[done], spans[done + len(word) - 1]
            times.append((first[0] / second, last[1] / second))
            done += len(word)
        return times


def spell(word: str, language: str) -> str:
    """Spell a word in the aligner's letters; `*` for a word that has none."""
    plain = "".join(split_words(word, "zh" if language == "zh" else "en"))
    letters = unicodedata.normalize("NFKD", plain)
    if any(letter.isalpha() and not unicodedata.name(letter, "").startswith("LATIN") for letter in letters):
        letters = unicodedata.normalize("NFKD", _load_uroman().romanize_string(plain, lcode=_UROMAN.get(language)))
    return re.sub("[^a-z]", "", letters.lower()) or _STAR


@functools.cache
def _load_uroman() -> Any:
    from uroman import Uroman

    return Uroman()
