"""Lexical diversity: distinct-n, MATTR and information density, as pure functions of tokens.

The two windowed measures slide one token at a time and cost O(N) for any window: a token (or n-gram) counts as distinct
in exactly those windows that contain it but not its previous occurrence, so each token adds one to a contiguous range
of window starts.

Sources: distinct-n, Li et al. 2016; MATTR, Covington and McFall 2010; windows and entropy as used in PodEval.
"""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podeval.errors import BadInput, CannotScore

Values = npt.NDArray[np.float64]
_Ids = npt.NDArray[np.int64]

WINDOW = 100
"""Window length, in tokens, used in the papers."""


@dataclass(frozen=True, eq=False)
class WindowedRichness:
    """The share of distinct tokens or n-grams in sliding windows.

    Attributes:
        value: mean over windows, 0..1.
        windows: the share in each window, indexed by the window's first token.
        window: tokens per window; the length of the text if it is shorter than the requested window.
        short: whether the text is shorter than the window; the value is then that of a single smaller window.
    """

    value: float
    windows: Values
    window: int
    short: bool


@dataclass(frozen=True)
class InformationDensity:
    """The entropy of a text's words.

    Attributes:
        bits: Shannon entropy of the unigram distribution, bits per token; grows with the text's length.
        normalised: `bits` divided by its upper bound, log2 of the token count, 0..1; None for a single token.
        tokens: number of tokens that are not stop words.
    """

    bits: float
    normalised: float | None
    tokens: int


def compute_distinct_n(
    tokens: Sequence[str], n: int = 2, window: int = WINDOW, *, short_is_zero: bool = False
) -> WindowedRichness:
    """Compute the ratio of distinct n-grams to all n-grams in a window, averaged over the windows that start at every
    token.

    Args:
        tokens: the text's tokens.
        n: length of an n-gram.
        window: length of the window in tokens; it contains `window - n + 1` n-grams.
        short_is_zero: whether a text shorter than the window scores 0, as in PodEval's code, rather than counting as
            one window.

    Raises:
        CannotScore: there are fewer than n tokens.
        BadInput: n is below 1, or the window is smaller than n.
    """
    if n < 1 or window < n:
        raise BadInput(
            f"distinct-n needs n of at least 1 and a window of at least n tokens, not n={n}, window={window}"
        )
    if len(tokens) < n:
        raise CannotScore(f"the text has {len(tokens)} tokens; distinct-{n} needs at least {n}")
    short = len(tokens) < window
    size = min(window, len(tokens))
    shares = _distinct_shares(_number_ngrams(tokens, n), size - n + 1)
    return WindowedRichness(0.0 if short and short_is_zero else float(shares.mean()), shares, size, short)


def compute_mattr(tokens: Sequence[str], window: int = WINDOW) -> WindowedRichness:
    """Compute the moving-average type-token ratio: types divided by tokens, averaged over windows that start at every
    token.

    Raises:
        CannotScore: there are no tokens.
        BadInput: the window is below 1.
    """
    if window < 1:
        raise BadInput(f"MATTR needs a window of at least 1 token, not {window}")
    if not tokens:
        raise CannotScore("the text has no tokens; MATTR needs at least one")
    return compute_distinct_n(tokens, 1, window)


def compute_information_density(tokens: Sequence[str], stop_words: Set[str] = frozenset()) -> InformationDensity:
    """Compute the Shannon entropy, in bits, of the tokens that are not stop words.

    Raises:
        CannotScore: no tokens are left.
    """
    counts = Counter(token for token in tokens if token not in stop_words)
    total = counts.total()
    if not total:
        raise CannotScore("the text has no words besides stop words; information density needs at least one")
    shares = np.fromiter(counts.values(), dtype=np.float64) / total
    bits = float(np.sum(shares * np.log2(1 / shares)))
    return InformationDensity(bits, bits / float(np.log2(total)) if total > 1 else None, total)


def _number_ngrams(tokens: Sequence[str], n: int) -> _Ids:
    """Return an integer for each n-gram, equal for equal n-grams."""
    vocabulary: dict[str, int] = {}
    words = np.array([vocabulary.setdefault(token, len(vocabulary)) for token in tokens], dtype=np.int64)
    grams = words
    for offset in range(1, n):
        # Renumber at every step, so that the product stays below N * vocabulary and cannot overflow.
        grams = np.unique(grams[:-1] * len(vocabulary) + words[offset:], return_inverse=True)[1].astype(np.int64)
    return grams


def _distinct_shares(items: _Ids, window: int) -> Values:
    """Return the number of distinct items divided by `window`, for every window of that many items."""
    # The previous occurrence of each item, -1 for the first.
    order = np.argsort(items, kind="stable")
    repeats = items[order[1:]] == items[order[:-1]]
    previous = np.full(items.size, -1, dtype=np.int64)
    previous[order[1:][repeats]] = order[:-1][repeats]

    # The first and last window in which each item counts as distinct.
    positions = np.arange(items.size)
    starts = items.size - window + 1
    first = np.maximum(np.maximum(previous + 1, positions - window + 1), 0)
    last = np.minimum(positions, starts - 1)
    # Sum these ranges over the windows.
    counted = first <= last
    change = np.bincount(first[counted], minlength=starts + 1) - np.bincount(last[counted] + 1, minlength=starts + 1)
    return np.asarray(np.cumsum(change)[:starts] / window, dtype=np.float64)
