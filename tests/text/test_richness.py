import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podeval.errors import BadInput, CannotScore
from podeval.text.lexical_diversity import compute_distinct_n, compute_information_density, compute_mattr
from podeval.text.tokens import stop_words

words = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=80)


def loop_distinct(tokens: list[str], n: int, window: int) -> list[float]:
    """The definition, window by window."""
    window = min(window, len(tokens))
    shares = []
    for start in range(len(tokens) - window + 1):
        part = tokens[start : start + window]
        grams = [tuple(part[at : at + n]) for at in range(len(part) - n + 1)]
        shares.append(len(set(grams)) / len(grams))
    return shares


@given(tokens=words, n=st.integers(1, 4), window=st.integers(4, 30))
@settings(deadline=None)
def test_distinct_n_equals_the_plain_loop(tokens: list[str], n: int, window: int) -> None:
    if len(tokens) < n:
        with pytest.raises(CannotScore):
            compute_distinct_n(tokens, n, window)
        return
    result = compute_distinct_n(tokens, n, window)
    expected = loop_distinct(tokens, n, window)
    np.testing.assert_allclose(result.windows, expected, rtol=1e-12)
    assert result.value == pytest.approx(np.mean(expected))
    assert result.short == (len(tokens) < window)


@given(tokens=words, window=st.integers(1, 30))
@settings(deadline=None)
def test_mattr_equals_the_plain_loop(tokens: list[str], window: int) -> None:
    np.testing.assert_allclose(compute_mattr(tokens, window).windows, loop_distinct(tokens, 1, window), rtol=1e-12)


@given(tokens=words)
def test_information_density_lies_between_zero_and_its_bound(tokens: list[str]) -> None:
    result = compute_information_density(tokens)
    assert 0 <= result.bits <= np.log2(len(set(tokens))) + 1e-9
    if len(tokens) == 1:
        assert result.normalised is None
    else:
        assert result.normalised is not None
        assert 0 <= result.normalised <= 1 + 1e-9


def test_distinct_2_by_hand() -> None:
    # "a b a b c", windows of 4: {ab, ba, ab} gives 2/3, {ba, ab, bc} gives 1.
    assert compute_distinct_n(list("ababc"), 2, 4).windows.tolist() == pytest.approx([2 / 3, 1])


def test_information_density_by_hand() -> None:
    # Shares 1/2, 1/4, 1/4 after the stop word: 1.5 bits, of at most log2(4) = 2.
    result = compute_information_density(["the", "sea", "sea", "salt", "rain", "the"], {"the"})
    assert (result.bits, result.normalised, result.tokens) == (1.5, 0.75, 4)


def test_a_text_shorter_than_the_window_is_one_window_and_flagged() -> None:
    result = compute_distinct_n(["a", "b", "a"], window=100)
    assert (result.value, result.window, result.short, result.windows.size) == (1.0, 3, True, 1)


def test_podevals_zero_for_short_texts_can_be_asked_for() -> None:
    assert compute_distinct_n([str(at) for at in range(99)], short_is_zero=True).value == 0
    assert compute_distinct_n([str(at) for at in range(100)], short_is_zero=True).value == 1


def test_texts_without_enough_words_cannot_be_scored() -> None:
    with pytest.raises(CannotScore, match="distinct-2 needs at least 2"):
        compute_distinct_n(["alone"])
    with pytest.raises(CannotScore, match="no tokens"):
        compute_mattr([])
    with pytest.raises(CannotScore, match="besides stop words"):
        compute_information_density(["the"], {"the"})


def test_impossible_windows_are_refused() -> None:
    with pytest.raises(BadInput, match="n=3, window=2"):
        compute_distinct_n(list("abcdef"), n=3, window=2)
    with pytest.raises(BadInput, match="at least 1 token"):
        compute_mattr(list("abc"), window=0)


def test_fifty_thousand_tokens_take_well_under_a_second() -> None:
    tokens = [f"w{number}" for number in np.random.default_rng(1).zipf(1.3, 50_000)]
    start = time.process_time()
    compute_distinct_n(tokens, 2)
    compute_mattr(tokens)
    compute_information_density(tokens, stop_words("en"))
    # About 0.05 s; the plain loop takes 3 s for distinct-2 alone.
    assert time.process_time() - start < 1
