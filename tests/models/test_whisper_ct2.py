"""The transcriber: the same words however many threads there are, and none in silence."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.audio.samples import mix_to_mono, resample
from podeval.models import registry, whisper_ct2
from podeval.models.whisper_ct2 import SharedDecoding, WhisperCT2

RATE = 16_000


@pytest.mark.models
def test_silence_has_no_words() -> None:
    heard = registry.load("transcriber", "embedded").transcribe(np.zeros(RATE, np.float32), None)
    assert (heard.text, heard.words) == ("", ())


@pytest.mark.long
@pytest.mark.models
@pytest.mark.parametrize(("seconds", "words"), [(10, 12), (40, 60)])
def test_the_words_do_not_depend_on_the_threads(
    shared_data: Path,
    weights_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    seconds: int,
    words: int,
) -> None:
    weights_folder("whisper-base")
    samples, rate = soundfile.read(shared_data / "samples" / "dialogue_espeak.flac", dtype="float32", always_2d=True)
    speech = resample(mix_to_mono(samples), rate, RATE)[: seconds * RATE]
    card = registry.get_card("transcriber", "embedded")
    heard = []
    for threads in ("1", "2"):
        monkeypatch.setenv("PODEVAL_THREADS", threads)
        heard.append(WhisperCT2(card.verify_files(), **card.options).transcribe(speech, "en"))
    assert heard[0] == heard[1]
    assert len(heard[0].words) > words
    assert all(a.start <= b.start for a, b in zip(heard[0].words, heard[0].words[1:], strict=False))


@pytest.mark.long
@pytest.mark.models
@pytest.mark.parametrize(
    ("name", "seconds", "length"),
    [
        ("dialogue_kokoro.flac", 6, 3),
        *((f"ami_trn0{number}.flac", 30, 10) for number in range(3)),
    ],
)
def test_pieces_decoded_together_have_the_words_and_times_they_have_alone(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, name: str, seconds: int, length: int
) -> None:
    samples, rate = soundfile.read(shared_data / "samples" / name, dtype="float32", always_2d=True)
    speech = resample(mix_to_mono(samples), rate, RATE)[: seconds * RATE]
    pieces = [slice(start, start + length * RATE) for start in range(0, len(speech) - length * RATE + 1, length * RATE)]
    monkeypatch.setattr(whisper_ct2, "cut_sounding", lambda samples: pieces)
    sizes: list[int] = []
    stack = whisper_ct2.stack_encodings
    monkeypatch.setattr(whisper_ct2, "stack_encodings", lambda encoded: sizes.append(len(encoded)) or stack(encoded))
    card = registry.get_card("transcriber", "embedded")
    model = WhisperCT2(card.verify_files(), **card.options)
    together = model.transcribe(speech, "en")
    assert max(sizes) == len(pieces) > 1
    monkeypatch.setattr(whisper_ct2, "MOST", 1)
    sizes.clear()
    assert model.transcribe(speech, "en") == together
    assert set(sizes) == {1}
    assert together.words


class Network:
    """Answers each piece with its prompt and itself, and keeps what came together."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def encode(self, piece: int) -> int:
        return piece

    def generate(self, pieces: list[int], prompts: list[list[int]], *, longest: int) -> list[tuple[int, list[int]]]:
        self.batches.append(pieces)
        if 13 in pieces:
            raise RuntimeError("out of memory")
        return list(zip(pieces, prompts, strict=True))


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.setattr(whisper_ct2, "stack_encodings", list)
    return Network()


def decode(network: Network, pieces: dict[int, tuple[list[int], int]], together: int) -> list[Any]:
    """What each piece, with its prompt and as often as it says, is answered, or its error."""
    shared = SharedDecoding(network, together, cores=1)

    def transcribe(piece: int) -> Any:
        prompt, times = pieces[piece]
        answers = [shared.generate(shared.encode(piece), [prompt], longest=5) for _ in range(times)]
        return answers[-1] if answers else None

    with ThreadPoolExecutor(together) as pool:
        futures = [pool.submit(shared.join, lambda piece=piece: transcribe(piece)) for piece in pieces]  # type: ignore[misc]
        return [future.exception() or future.result() for future in futures]


def test_everyone_gets_its_own_answer_however_often_it_asks(network: Network) -> None:
    pieces = {piece: ([1, 2], piece % 4) for piece in range(1, 12)}
    answers = decode(network, pieces, together=4)
    assert answers == [[(piece, [1, 2])] if times else None for piece, (_, times) in pieces.items()]
    asked = [piece for piece, (_, times) in pieces.items() for _ in range(times)]
    assert sorted(piece for batch in network.batches for piece in batch) == sorted(asked)
    assert max(map(len, network.batches)) <= 4


def test_other_prompts_are_another_batch(network: Network) -> None:
    answers = decode(network, {1: ([1], 1), 2: ([2], 1), 3: ([1], 2)}, together=3)
    assert answers == [[(1, [1])], [(2, [2])], [(3, [1])]]
    assert all(len({piece == 2 for piece in batch}) == 1 for batch in network.batches)


def test_an_error_reaches_all_of_its_batch_and_nobody_else(network: Network) -> None:
    answers = decode(network, {13: ([1], 1), 2: ([2], 1)}, together=2)
    assert str(answers[0]) == "out of memory"
    assert answers[1] == [(2, [2])]
