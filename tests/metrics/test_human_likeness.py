"""Likeness to people: its formula on numbers that are known, planted damages; and, marked `long`, real voices."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import signal

from podeval.audio.windows import Span
from podeval.benchmarks import real_pod
from podeval.benchmarks.item import read_voices
from podeval.errors import BadInput, CannotScore
from podeval.metrics.speech import human_likeness as likeness
from podeval.recording import Recording
from podeval.recording.likeness_windows import DAMAGES, measure_bands, plant_damage
from podeval.recording.recording import read_source
from podeval.systems import registry

SIZES = {"prosody": 3, "voice": 20, "articulation": 30, "timing": 7, "sound": 16}
SHIFTS = (2.0, 4.0, 8.0)
"""How far the features move, at each strength of damage."""
RATE = 16_000


def windows_of(person: int, *, damage: str = "", shift: float = 4.0, count: int = 12) -> dict[str, Any]:
    """Features as a person's recording might have: a voice of its own, and what changes from window to window.

    Noise, the damage of sound, moves articulation too, and in one direction.
    """
    rng = np.random.default_rng(person)
    found = {}
    for factor, size in SIZES.items():
        rows = rng.normal(0, 0.7, size) + rng.normal(0, 1, (count, size))
        if damage == factor:
            rows = rows + shift
        if damage == "sound" and factor == "articulation":
            rows[:, 0] += shift
        found[factor] = rows
    return found


@pytest.fixture(scope="module")
def people() -> likeness.PeopleReference:
    return fit(range(30))


def fit(persons: Any) -> likeness.PeopleReference:
    factors = {
        factor: likeness.fit_factor(
            factor,
            [windows_of(person)[factor] for person in persons],
            {
                (damage, strength): {
                    number: windows_of(person, damage=damage, shift=shift)[factor]
                    for number, person in enumerate(persons)
                }
                for damage in SIZES
                for strength, shift in enumerate(SHIFTS)
            },
        )
        for factor in SIZES
    }
    return likeness.PeopleReference(factors, {"about": "made up", "models": likeness.describe_models("embedded")})


def test_people_held_out_are_like_people_and_the_damage_is_one_half(people: likeness.PeopleReference) -> None:
    values, intervals = likeness.score_set(people, [windows_of(person) for person in range(100, 130)])
    assert values["human_likeness"] > 0.85
    assert values["human_likeness"] == pytest.approx(np.mean([values[factor] for factor in SIZES]))
    for key, (low, high) in ((key, ends or (0, 0)) for key, ends in intervals.items()):
        assert 0 < low <= values[key] <= high <= 1
    for factor in SIZES:
        damaged, _ = likeness.score_set(people, [windows_of(person, damage=factor) for person in range(100, 130)])
        assert damaged[factor] == pytest.approx(0.5, abs=0.1), factor


@pytest.mark.parametrize("factor", SIZES)
def test_only_the_damaged_factor_falls_and_noise_is_not_taken_for_articulation(
    people: likeness.PeopleReference, factor: str
) -> None:
    held_out = range(200, 212)
    plain, _ = likeness.score_set(people, [windows_of(person) for person in held_out])
    fallen = [0.0]
    for shift in SHIFTS:
        values, _ = likeness.score_set(people, [windows_of(one, damage=factor, shift=shift) for one in held_out])
        falls = {name: plain[name] - values[name] for name in SIZES}
        assert falls.pop(factor) > max(0.05, 3 * max(falls.values()))
        fallen.append(plain[factor] - values[factor])
    assert fallen == sorted(fallen), "more damage costs more"


def test_neither_one_voice_nor_few_windows_cost_much(people: likeness.PeopleReference) -> None:
    voices = [likeness.score_set(people, [windows_of(person, count=60)])[0] for person in range(300, 340)]
    crowd = likeness.score_set(people, [windows_of(person, count=60) for person in range(300, 340)])[0]
    alone = np.median([one["human_likeness"] for one in voices])
    assert crowd["human_likeness"] - alone < 0.1
    short = [{factor: rows[:3] for factor, rows in windows_of(person, count=60).items()} for person in range(300, 340)]
    assert likeness.score_set(people, short)[0]["human_likeness"] > crowd["human_likeness"] - 0.05


def test_windows_unlike_people_s_cost_even_where_no_damage_leads(people: likeness.PeopleReference) -> None:
    odd = [windows_of(person) for person in range(700, 712)]
    for one in odd:
        one["articulation"] = one["articulation"] + np.tile([4.0, -4.0], SIZES["articulation"] // 2)
    values, _ = likeness.score_set(people, odd)
    assert values["articulation"] < 0.5 < min(values[factor] for factor in SIZES if factor != "articulation")


def test_a_longer_set_has_a_narrower_interval_and_one_recording_has_none(people: likeness.PeopleReference) -> None:
    few, many = ([windows_of(person) for person in range(400, 400 + count)] for count in (4, 40))
    widths = [
        np.subtract(*reversed(likeness.score_set(people, some)[1]["human_likeness"] or ())) for some in (few, many)
    ]
    assert 0 < widths[1] < widths[0]
    assert set(likeness.score_set(people, few[:1])[1].values()) == {None}


def test_windows_without_voice_are_left_out_and_none_at_all_is_unscored(people: likeness.PeopleReference) -> None:
    some = [windows_of(person) for person in range(500, 504)]
    some[0]["prosody"][:] = np.nan
    assert np.isfinite(likeness.score_set(people, some)[0]["prosody"])
    for one in some:
        one["prosody"][:] = np.nan
    with pytest.raises(CannotScore, match="nothing can be said about prosody: too little voiced speech is heard"):
        likeness.score_set(people, some)


def test_a_reference_is_the_same_from_its_file(people: likeness.PeopleReference, tmp_path: Path) -> None:
    people.save(tmp_path / "people.npz")
    again = likeness.PeopleReference.load(tmp_path / "people.npz")
    one = [windows_of(person) for person in range(600, 606)]
    assert again.about == people.about
    assert likeness.score_set(again, one)[0] == pytest.approx(likeness.score_set(people, one)[0], abs=1e-4)
    (tmp_path / "text.npz").write_text("no reference")
    for name in ("text.npz", "absent.npz"):
        with pytest.raises(
            BadInput, match=r"is not a reference of human_likeness .* `podeval data likeness-reference`"
        ):
            likeness.PeopleReference.load(tmp_path / name)


def test_the_shipped_reference_says_what_it_is_of() -> None:
    shipped = likeness.load_reference(likeness.SHIPPED)
    assert shipped.about["recordings"] == 34
    assert shipped.about["minutes"] == pytest.approx(4.0, abs=0.2)
    assert "read English" in shipped.about["about"]
    assert "CC BY 4.0" in shipped.about["about"]
    assert shipped.about["models"] == likeness.describe_models("embedded")
    assert likeness.SHIPPED.stat().st_size < 200_000
    assert all(np.isfinite(statistics.axis).all() for statistics in shipped.factors.values())
    # One reader is silent for half of the recording, so people differ in timing almost as much as damage changes it.
    damage = {"prosody": 8.41, "voice": 51.7, "articulation": 9.25, "timing": 1.53, "sound": 46.3}
    assert {name: one.damage for name, one in shipped.factors.items()} == pytest.approx(damage, rel=0.01)


def test_planted_damages_do_what_they_say(speech_like: Any) -> None:
    speech = [Span(0.5, 5.5)]
    recording = Recording.from_samples(speech_like, RATE)
    pitches = [plant_damage(recording, "prosody", 2).prosody().pitch, recording.prosody().pitch]
    assert np.nanstd(pitches[0]) < np.nanstd(pitches[1]) / 2
    for damage, amounts in (DAMAGES[factor] for factor in SIZES if factor != "prosody"):
        changes = [
            np.abs(damage(speech_like, speech, amount)[: 4 * RATE] - speech_like[: 4 * RATE]).mean()
            for amount in amounts
        ]
        assert min(changes) > 0
    noisy = DAMAGES["sound"][0](speech_like, speech, 20.0)
    ratio = np.mean(speech_like**2) / np.mean((noisy - speech_like) ** 2)
    assert 10 * np.log10(ratio) == pytest.approx(20, abs=0.2)
    interrupted = DAMAGES["timing"][0](speech_like, speech, 0.4)
    assert len(interrupted) == len(speech_like) + 5 * round(0.4 * RATE)
    assert not interrupted[round(1.4 * RATE) + 80 : round(1.8 * RATE) - 80].any()


def test_averaged_formants_run_into_each_other_at_the_same_level(speech_like: Any) -> None:
    formant = signal.sosfilt(signal.butter(2, (800, 1500), "bandpass", fs=RATE, output="sos"), speech_like)
    vowels = speech_like + 4 * formant * (np.arange(len(speech_like)) // (RATE // 5) % 2)
    damage, amounts = DAMAGES["articulation"]
    levels, movements = [], []
    for samples in (vowels, *(damage(vowels, [], seconds) for seconds in amounts)):
        bands = measure_bands(samples)
        whole = 10 * np.log10(np.sum(10 ** (bands / 10), axis=1))
        levels.append(whole)
        movements.append(np.std((bands[:, 2] - whole)[levels[0] > levels[0].max() - 15]))
    assert movements == sorted(movements, reverse=True)
    assert movements[-1] < movements[0] / 2, "the band of 800 to 1500 Hz hardly stands out any more"
    assert np.abs(np.subtract(levels[1:], levels[0])).max() < 3
    assert np.std(levels[1:], axis=1) == pytest.approx(np.std(levels[0]), rel=0.02)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of readers that ship, no reader in both."""
    from studies.example_outputs import VOICES as OLDER_VOICES

    folders = tuple(tmp_path_factory.mktemp(name) for name in ("reference", "held-out"))
    for number, voice in enumerate([*read_voices(real_pod.VOICES).values(), *read_voices(OLDER_VOICES).values()]):
        shutil.copy(voice.recording(), folders[number % 2])
    return folders


@pytest.mark.long
@pytest.mark.models
def test_people_held_out_come_before_the_voices_that_ship_and_espeak_comes_last(readers: tuple[Path, Path]) -> None:
    from studies import human_likeness as study

    reference = likeness.make_reference([read_source(path) for path in sorted(readers[0].iterdir())], "readers")
    people = [likeness.describe_windows(Recording.open(path)) for path in sorted(readers[1].iterdir())]
    texts = [voice.words for voice in read_voices(real_pod.VOICES).values()][:8]
    systems = {"people": likeness.score_set(reference, people)[0]["human_likeness"]}
    for name in ("kokoro", "hibari_piper", "espeak_ng"):
        if registry.get(name).available():
            continue
        said = [study.read_aloud(name, voice, texts[4 * voice : 4 * voice + 4]) for voice in range(2)]
        systems[name] = likeness.score_set(reference, [likeness.describe_windows(one) for one in said])[0][
            "human_likeness"
        ]
    order = sorted(systems, key=lambda name: -systems[name])
    assert order[0] == "people", systems
    assert order[-1] == "espeak_ng", systems
