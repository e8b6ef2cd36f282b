"""Pieces decoded together: who shares a batch, that nobody waits for ever, and who hears of an error."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from podeval.models import shared_decoding
from podeval.models.shared_decoding import SharedDecoding


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
    monkeypatch.setattr(shared_decoding, "stack_encodings", list)
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
