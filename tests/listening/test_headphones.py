"""The headphone check: sounds that only headphones tell apart, guessers who fail, and what becomes of them."""

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import soundfile
from scipy import stats

from podeval.errors import BadInput
from podeval.listening import Listening, results, screening, session_results
from podeval.listening.screening import INTERVALS, NEEDED, PAGE, TRIAL_NAMES, TRIALS, synthesise
from podeval.store.tables import ListeningSession
from tests.fakes.databases import SERVER_LONG

from .conftest import answer, begin, design

KINDS = pytest.mark.parametrize("kind", ["antiphase", "huggins"])


def intervals(kind: str, seed: int, trial: int) -> list[np.ndarray]:
    """The middles of the three intervals, without their ramps."""
    samples, rate = soundfile.read(io.BytesIO(synthesise(kind, seed, trial)))
    return [samples[round((1.5 * n + 0.2) * rate) : round((1.5 * n + 0.8) * rate)] for n in range(INTERVALS)]


def pitch(samples: np.ndarray) -> float:
    """How much of a sound in the band of the pitch is left where both channels meet in the air, against its sides."""
    power = np.abs(np.fft.rfft(samples)) ** 2
    hertz = np.fft.rfftfreq(len(samples), 1 / 24_000)
    inside, beside = (np.abs(hertz / 600 - 1) < 0.02), (np.abs(hertz / 600 - 1) > 0.1) & (np.abs(hertz - 600) < 200)
    return float(power[inside].mean() / power[beside].mean())


def test_by_headphones_the_right_tone_is_softest_and_over_loudspeakers_another_one() -> None:
    for seed in range(5):
        rights = screening.find_right_answers(seed)
        for trial in range(TRIALS):
            parts = intervals("antiphase", seed, trial)
            at_an_ear = [float(np.std(part[:, 0])) for part in parts]
            in_the_air = [float(np.std(part.mean(axis=1))) for part in parts]
            assert int(np.argmin(at_an_ear)) + 1 == rights[trial]
            assert sorted(at_an_ear)[1] / min(at_an_ear) == pytest.approx(2, rel=0.02), "6 dB"
            assert int(np.argmin(in_the_air)) + 1 != rights[trial], "loudspeakers lead astray"


def test_the_pitch_is_between_the_ears_alone() -> None:
    rights = screening.find_right_answers(4)
    for trial in range(TRIALS):
        parts = intervals("huggins", 4, trial)
        assert all(0.2 < pitch(part[:, ear]) < 5 for part in parts for ear in (0, 1)), "each ear hears plain noise"
        differs = [float(np.std(part[:, 0] - part[:, 1])) for part in parts]
        assert int(np.argmax(differs)) + 1 == rights[trial]
        assert sorted(differs)[1] < 1e-3, "the others are alike in both ears"


@KINDS
def test_no_file_tells_by_its_size_or_its_header_which_interval_is_right(kind: str) -> None:
    files = [synthesise(kind, seed, trial) for seed in range(4) for trial in range(TRIALS)]
    assert len({len(file) for file in files}) == 1
    assert len({file[:44] for file in files}) == 1
    assert len(set(files)) == len(files)
    assert files[0] == synthesise(kind, 0, 0), "from the seed"


def test_who_guesses_passes_in_two_of_a_hundred_at_most_and_every_interval_is_right_equally_often() -> None:
    assert stats.binom.sf(NEEDED - 1, TRIALS, 1 / INTERVALS) == pytest.approx(13 / 729)
    dice, passed, counts = random.Random(5), {"guess": 0, "first": 0}, np.zeros(INTERVALS)
    for seed in range(20_000):
        rights = screening.find_right_answers(seed)
        guesses = {name: dice.randint(1, INTERVALS) for name in TRIAL_NAMES}
        for way, answers in (("guess", guesses), ("first", dict.fromkeys(TRIAL_NAMES, 1))):
            passed[way] += (
                sum(answers[name] == right for name, right in zip(TRIAL_NAMES, rights, strict=True)) >= NEEDED
            )
        counts += np.bincount([right - 1 for right in rights], minlength=INTERVALS)
    assert max(passed.values()) / 20_000 <= 0.021
    assert counts / counts.sum() == pytest.approx(1 / 3, abs=0.005)


def answers_of(listening: Listening, session: str, right: int) -> dict[str, int]:
    """So many right answers to the check of a session, the others wrong."""
    with listening.database.reading() as opened:
        seed = opened.get_one(ListeningSession, session).seed
    rights = screening.find_right_answers(seed)
    return {
        name: r if n < right else r % INTERVALS + 1 for n, (name, r) in enumerate(zip(TRIAL_NAMES, rights, strict=True))
    }


@pytest.fixture
def checked(listening: Listening) -> Callable[..., str]:
    """Take a listener through a test that begins with the check; the session's name."""

    def go(test: Any, who: str, right: int) -> str:
        begun = listening.start(test.id, who)
        done = listening.save(begun.session, 0, answers_of(listening, begun.session, right))
        for number in range(1, begun.pages) if done.completion_code is None else ():
            listening.save(begun.session, number, answer(test.kind, listening.show(begun.session, number)))
        if done.completion_code is None:
            listening.finish(begun.session)
        return begun.session

    return go


@SERVER_LONG
@pytest.mark.parametrize("failed", ["exclude", "flag", "end"])
def test_who_fails_is_left_out_or_named_or_turned_away(
    failed: str, listening: Listening, checked: Callable[..., str]
) -> None:
    completion = {"code": "DONE", "screened_out": "NOT", "panel": "prolific"}
    test = design("mos", headphone_check={"failed": failed}, completion=completion)
    listening.create(test)
    checked(test, "good", NEEDED)
    checked(test, "bad", NEEDED - 1)
    good, bad = session_results.read_sessions(listening.database, test.id)
    assert (good.headphones, bad.headphones) == (NEEDED, NEEDED - 1)
    assert good.counted
    assert bad.counted == (failed == "flag")
    assert (good.code, bad.code) == ("DONE", "NOT" if failed == "end" else "DONE")
    assert (bad.saved == bad.pages) == (failed != "end"), "who is turned away does no work for nothing"
    summary = results.summarise(listening.database, test.id)
    assert {row["listeners"] for row in summary.rows} == {2 if failed == "flag" else 1}
    said = " ".join(summary.remarks)
    assert "1 of 2 listeners passed" in said
    assert f"{bad.listener}: 4 of 6 right" in said
    marks = session_results.read_session_marks(listening.database, test.id)
    assert {mark.scale for mark in marks} == {"timbre", "fidelity"}, "answers to the check are no marks"


@SERVER_LONG
def test_the_first_answers_stand_and_nothing_on_the_page_tells_them(listening: Listening) -> None:
    test = design("mos", headphone_check={"kind": "huggins"})
    begun = begin(listening, test, "one")
    page = listening.show(begun.session, 0)
    assert (page.kind, page.check, page.page, len(page.stimuli)) == (PAGE, "huggins", PAGE, TRIALS)
    assert len({str(sorted(shown.items() - {("audio", key)})) for key, shown in page.stimuli.items()}) == 1
    for wrong in ({}, dict.fromkeys(TRIAL_NAMES, 0), dict.fromkeys(TRIAL_NAMES, 4), dict.fromkeys(TRIAL_NAMES, True)):
        with pytest.raises(BadInput, match="headphone check"):
            listening.save(begun.session, 0, wrong)
    first = answers_of(listening, begun.session, 2)
    listening.save(begun.session, 0, first)
    after = listening.save(begun.session, 0, answers_of(listening, begun.session, 6))
    assert after.saved == (0,)
    answered = listening.answered(begun.session, 0)
    assert answered.answer == first
    assert session_results.read_sessions(listening.database, test.id)[0].headphones == 2
    assert listening.source(begun.session, 0, "A").audio is None


def test_the_check_takes_its_time_and_texts_have_none() -> None:
    with_check = design("mos", headphone_check={})
    assert with_check.estimate(1) - design("mos").estimate(1) == pytest.approx((5 + 6 * 8) / 60)
    assert with_check.digest != design("mos").digest
    with pytest.raises(BadInput, match="no headphones"):
        design("text_preference", headphone_check={})
