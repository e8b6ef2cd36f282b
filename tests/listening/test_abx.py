"""ABX: X is drawn by lot and balanced, its sound gives nothing away, and answers become shares, d' and a verdict."""

from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput
from podeval.listening import Listening, results, session_results
from podeval.listening.listener_pages import make_pages
from podeval.listening.results import Trial, d_prime, discrimination, share_right
from podeval.listening.stimuli import StimulusAudio
from podeval.recording.playback import Playback
from podeval.store.tables import ListeningSession
from tests.fakes.databases import SERVER_LONG

from .conftest import begin, design


def test_sides_and_x_are_balanced_for_each_listener_and_follow_no_pattern() -> None:
    test = design("abx", items=8, systems=2, trials=2)
    orders = set()
    for place in range(6):
        pages = make_pages(test, place, seed=place)
        assert Counter(page.item for page in pages) == dict.fromkeys((item.id for item in test.items), 2)
        turns = [(page.stimuli[0], page.stimuli[2] == page.stimuli[0]) for page in pages]
        assert set(Counter(turns).values()) == {4}, "each system is A, and X is each side, equally often"
        assert all(page.letters == ["A", "B", "X"] for page in pages)
        orders.add(tuple(x_is_a for _, x_is_a in turns))
    assert len(orders) == 6
    three = [make_pages(design("abx", items=3, systems=3), place, seed=1) for place in range(9)]
    met = Counter((page.item, frozenset(page.stimuli)) for pages in three for page in pages)
    assert set(met.values()) == {3}, "every pair of every item equally often"


def heard_by(ear: Callable[[str, str], bool], listening: Listening, test: Any, who: str) -> None:
    """A listener who says of each page whether it is told apart; who cannot tell is right every second time.

    One who guessed would be told from chance on 1.4 % of the seeds, which are drawn anew each time.
    """
    lucky = cycle((True, False))
    begun = listening.start(test.id, who)
    with listening.database.reading() as opened:
        pages = opened.get_one(ListeningSession, begun.session).pages
    for number, page in enumerate(pages):
        first, second, x = page["stimuli"]
        side = 1 if (x == second) == (ear(first, second) or next(lucky)) else -1
        listening.save(begun.session, number, {"abx": side})
        answered = listening.answered(begun.session, number)
        assert answered.answer == {"abx": side}
    listening.finish(begun.session)


@SERVER_LONG
def test_what_listeners_can_tell_apart_is_told_apart_and_the_rest_is_chance(listening: Listening) -> None:
    test = design("abx", items=8, systems=3, trials=3, minutes=None)
    listening.create(test)
    for who in range(3):
        heard_by(lambda a, b: "s2" in (a, b), listening, test, f"pid {who}")
    rows = {row["stimulus"]: row for row in results.summarise(listening.database, test.id).rows}
    assert set(rows) == {"s0 | s1", "s0 | s2", "s1 | s2"}
    for pair in ("s0 | s2", "s1 | s2"):
        assert (rows[pair]["mean"], rows[pair]["marks"], rows[pair]["listeners"]) == (1, 24, 3)
        assert rows[pair]["told_apart"]
        assert rows[pair]["d_prime"] > 3
    same = rows["s0 | s1"]
    assert not same["told_apart"]
    assert same["low"] < 0.5 < same["high"]
    assert abs(same["d_prime"]) < 2
    mark = session_results.read_session_marks(listening.database, test.id)[0]
    assert mark.stimulus in mark.page.rpartition(": ")[2].split(" | ")
    assert session_results.read_marks_by_test(listening.database) == {}, "pairs are no marks of a system"


@SERVER_LONG
def test_an_answer_is_one_of_two(listening: Listening) -> None:
    test = design("abx", items=1, systems=2)
    begun = begin(listening, test, "one")
    for wrong in ({"abx": 0}, {"abx": 2}, {"abx": 0.5}, {}, {"preference": 1}):
        with pytest.raises(BadInput):
            listening.save(begun.session, 0, wrong)
    with pytest.raises(BadInput, match="trials are for abx tests"):
        design("mos", trials=2)


@SERVER_LONG
def test_x_is_as_long_as_the_others_and_has_no_picture(listening: Listening, tmp_path: Path) -> None:
    paths = {f"s{n}": tmp_path / f"{n}.wav" for n in range(2)}
    for seconds, path in zip((1.0, 1.25), paths.values(), strict=True):
        soundfile.write(path, 0.1 * np.sin(np.arange(round(16_000 * seconds)) / 5), 16_000)
    clips = {name: {"audio": str(path), "seconds": 1.0 + 0.25 * n} for n, (name, path) in enumerate(paths.items())}
    test = design("abx", systems=2, items=[{"id": "i0", "stimuli": clips}])
    begun = begin(listening, test, "one")
    sounds = StimulusAudio(listening, Playback(tmp_path / "copies"), tmp_path)
    for letter in "ABX":
        copy = sounds.file(begun.session, 0, letter)
        assert soundfile.info(copy).duration == pytest.approx(1.25)
        assert sounds.peaks(begun.session, 0, letter) == [], "a picture would show which one it is"
    assert {shown["seconds"] for shown in listening.show(begun.session, 0).stimuli.values()} == {1.25}


@pytest.mark.parametrize("d", [0.5, 1.0, 2.0, 3.0])
def test_d_prime_is_that_of_listeners_who_name_what_differs_less(d: float) -> None:
    dice = np.random.default_rng(2)
    a, b, is_second = dice.normal(0, 1, 60_000), dice.normal(d, 1, 60_000), dice.random(60_000) < 0.5
    x = np.where(is_second, dice.normal(d, 1, 60_000), dice.normal(0, 1, 60_000))
    right = np.mean((np.abs(x - b) < np.abs(x - a)) == is_second)
    assert right == pytest.approx(share_right(d), abs=0.006)
    assert d_prime(share_right(d)) == pytest.approx(d, abs=1e-6)
    assert d_prime(1 - share_right(d)) == pytest.approx(-d, abs=1e-6)


def test_a_preference_for_one_side_is_no_sensitivity() -> None:
    always = discrimination([Trial(rater, bool(n % 2), True) for rater in range(4) for n in range(10)])
    assert always.share.mean == 0.5
    assert always.d_prime == pytest.approx(0, abs=1e-9)
    assert always.p > 0.4
    alone = discrimination([Trial("one", bool(n % 2), bool(n % 2)) for n in range(10)])
    assert alone.share.low == pytest.approx(0.6915, abs=1e-4), "exact: 0.025 ** (1 / 10)"
    assert alone.p == pytest.approx(2**-10)
    with pytest.raises(BadInput, match="no answers"):
        discrimination([])


def test_listeners_of_one_mind_are_no_more_evidence_than_they_are() -> None:
    """The interval of the share covers the truth although half of the listeners hear everything and half nothing."""
    dice = np.random.default_rng(8)
    covered = 0
    for _ in range(200):
        hears = dice.random(12) < 0.5
        trials = [
            Trial(n, x, x if hears[n] else bool(dice.random() < 0.5)) for n in range(12) for x in dice.random(16) < 0.5
        ]
        share = discrimination(trials).share
        covered += share.low <= 0.75 <= share.high
    assert covered / 200 >= 0.92


def test_equal_recordings_are_called_different_as_rarely_as_promised() -> None:
    dice = np.random.default_rng(4)
    values = [
        discrimination([Trial(n // 8, bool(x), bool(s)) for n, (x, s) in enumerate(dice.random((64, 2)) < 0.5)]).p
        for _ in range(300)
    ]
    assert np.mean(np.array(values) < 0.05) <= 0.08
