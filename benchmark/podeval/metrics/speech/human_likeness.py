"""Likeness to people: how close a set of recordings is to recordings of people, factor by factor, 0 to 1.

Speech is cut into windows of 3 s, each described by features of five factors: `prosody` (pitch, its range and
movement), `voice` (the speaker encoder), `articulation` (mean and spread of the recogniser's encoder), `timing` (pauses
and voiced stretches) and `sound` (frequency bands and the noise in them). A reference made from recordings of people
contains, for each factor, the axis on which planted damage to the factor is most visible and other damage is least
visible. z is the place of the set's mean on this axis, in standard deviations of people, and d = (z + √(z² + 1)) / 2.
For `voice` and `articulation`, t is the squared distance of the set's recordings from the mean of people, less the part
that is due to the small number of windows, also in standard deviations of people, and at least 0; elsewhere t = 0. A
factor is D² / (D² + d²) · 16 / (16 + t²), where D² is the mean d² of people's recordings with planted damage of middle
strength to that factor; `human_likeness` is the mean of the five. The interval is computed by resampling the
recordings. The formula was fixed before it was tried on the systems it is meant for (docs/decisions/human-likeness.md).
The metric is not validated: it is not known whether it orders systems as listeners do, so it is shown and never ranked.
The idea comes from TTSDS (Minixhofer, Klejch and Bell, SLT 2024, arXiv 2407.12707), which compares distributions of
features with those of speech and of noise; the features, the kinds of damage and the treatment of identity are ours.

Differs from the papers: LFS-Bench and PodEval have listeners or judges rate likeness to people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import BadInput, CannotScore, ModelMissing
from podeval.metrics import Key, Score, metric
from podeval.models import registry
from podeval.recording import speech_track
from podeval.recording.likeness_windows import METHOD, WINDOW, Features, describe_windows, plant_damage
from podeval.recording.recording import AudioSource

FACTORS = ("prosody", "voice", "articulation", "timing", "sound")
GENERAL = ("voice", "articulation")
"""Factors in which the distance from people counts in all directions, and not only on the axis of the damage."""

FEWEST, LEAST, PERSONS, ROUNDS, PLANTED, FOLDS = 10, 60, 8, 1000, 12, 10
"""Minimum numbers of windows in a set and in a reference, and of people in a reference; number of rounds of the
bootstrap; number of a reference's recordings in which damage is planted; number of parts of the reference, each
measured on axes that are fitted to the other parts.
"""

PEOPLE, OTHERS, WEAKENED = 0.1, 3.0, 15
"""Weights of people's differences and of other damage when an axis is chosen; number of weakened directions."""

PRIOR, USUAL = 4.0, 4.0
"""Number of windows for which people's error counts in a set's error; the distance t at which a factor is halved."""

MODELS = ("transcriber", "speaker_encoder", "voice_activity")
"""Jobs whose models compute the features."""

SHIPPED = Path(__file__).with_name("human_likeness_reference.npz")
"""34 readers of LibriTTS-R, four minutes (CC BY 4.0); made by `podeval data likeness-reference`."""

Array = NDArray[np.float64]
Windows = Mapping[str, Features]
"""Features of the windows of one recording, by factor."""
Damage = tuple[str, int]
"""The factor that is damaged, and the strength of the damage, from 0 to 2."""


class FactorReference(NamedTuple):
    """The distribution of people's recordings in one factor.

    Attributes:
        mean, scale: mean and standard deviation of each feature over the windows.
        axis: direction of the standardised features on which damage to this factor is most visible.
        weak: directions that damage changes, shape (features, directions), which count less for the distance; no
            directions if the factor has no such distance.
        centre, deviation: mean and standard deviation of people's places on the axis.
        error: variance of the windows of one recording, as a mean over the features.
        spread, usual: squared distance of people's recordings from the mean, and its standard deviation over people.
        damage: D², the mean d² of people's recordings with damage of middle strength.
    """

    mean: Array
    scale: Array
    axis: Array
    weak: Array
    centre: Array
    deviation: Array
    error: Array
    spread: Array
    usual: Array
    damage: Array

    def add_up(self, recordings: Sequence[Features]) -> Array:
        """Return a row for each recording: the number of windows; the sum of their places on the axis; the parts of
        the number that the mean's error takes and leaves; sum of squares within the recording; squared mean, times the
        number of windows.
        """
        rows = []
        for features in recordings:
            windows = ((features - self.mean) / self.scale)[np.isfinite(features).all(axis=1)]
            rest = windows - windows @ self.weak @ self.weak.T
            count = len(windows)
            middle = rest.sum(axis=0) / max(1, count)
            # n windows, one per second, contain n + 2 seconds: as much as (n + 2) / 3 windows without overlap.
            few = count * WINDOW / (count + WINDOW - 1)
            squares = np.square(rest - middle).sum(axis=0).mean(), count * np.square(middle).mean()
            rows.append([count, np.sum(windows @ self.axis), few, count - few, *squares])
        return np.array(rows, dtype=np.float64).reshape(-1, 6)

    def find_place(self, sums: Array) -> tuple[Array, Array]:
        """Return the places of sets (sums of rows from `add_up`) on the axis, and their squared distances from the mean
        of people without the error of few windows; NaN without windows.
        """
        count, along, few, left, within, squares = sums.T
        error = (within + PRIOR * self.error) / (left + PRIOR)
        with np.errstate(invalid="ignore"):
            return along / count, (squares - few * error) / count

    def score(self, sums: Array) -> Array:
        """Return the likeness of sets: close to 1 for people, one half for recordings with damage of strength 1."""
        along, spread = self.find_place(sums)
        beyond = np.maximum((spread - self.spread) / self.usual, 0)
        damage = _measure_damage((along - self.centre) / self.deviation)
        return np.asarray(self.damage / (self.damage + damage) * USUAL**2 / (USUAL**2 + beyond**2))


def _measure_damage(place: Array) -> Array:
    """Return d² for places on the axis of damage, in standard deviations of people."""
    return np.asarray(np.square((place + np.hypot(place, 1)) / 2))


@dataclass(frozen=True)
class PeopleReference:
    """The recordings of people: the statistics of each factor, and facts about the recordings."""

    factors: Mapping[str, FactorReference]
    about: Mapping[str, Any]

    @classmethod
    def load(cls, path: Path) -> PeopleReference:
        """Read a reference.

        Raises:
            BadInput: the file is missing, or is not a reference that this version can read.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                names = FactorReference._fields
                factors = {one: FactorReference(*(stored[f"{one}.{name}"] for name in names)) for one in FACTORS}
        except (OSError, ValueError, KeyError) as error:
            raise BadInput(
                f"{path} is not a reference of human_likeness ({error}); `podeval data likeness-reference` makes one"
            ) from None
        return cls(factors, about)

    def save(self, path: Path) -> None:
        """Write the reference to a file."""
        arrays = {
            f"{one}.{name}": np.asarray(value, np.float32)
            for one, statistics in self.factors.items()
            for name, value in statistics._asdict().items()
        }
        np.savez_compressed(path, about=json.dumps(dict(self.about)), **arrays)  # type: ignore[arg-type]


def fit_factor(
    factor: str, people: Sequence[Features], damaged: Mapping[Damage, Mapping[int, Features]]
) -> FactorReference:
    """Return the statistics of a factor.

    Args:
        factor: name of the factor.
        people: features of each recording of people.
        damaged: features of some of the recordings after each damage, by index of the recording.
    """
    # A person is measured on axes that were fitted to other people.
    rows, rows_of_damage = [], []
    after = damaged[factor, 1]
    for fold in range(min(FOLDS, len(people))):
        part = range(fold, len(people), FOLDS)
        draft = _find_axes(factor, {number: one for number, one in enumerate(people) if number not in part}, damaged)
        rows += list(draft.add_up([people[number] for number in part]))
        rows_of_damage += list(draft.add_up([after[number] for number in part if number in after]))
    sums = np.array([row for row in rows if row[0]])
    whole = sums.sum(axis=0, keepdims=True)
    draft = _find_axes(factor, dict(enumerate(people)), damaged)._replace(error=whole[0, 4] / whole[0, 3])
    places, spreads = draft.find_place(sums)
    usual = np.asarray(np.std(spreads) if factor in GENERAL else np.inf)
    damage = (draft.find_place(np.array(rows_of_damage))[0] - places.mean()) / places.std()
    return draft._replace(
        centre=places.mean(),
        deviation=places.std(),
        spread=draft.find_place(whole)[1][0],
        usual=usual,
        damage=np.asarray(np.nanmean(_measure_damage(damage))),
    )


def _find_axes(
    factor: str, people: Mapping[int, Features], damaged: Mapping[Damage, Mapping[int, Features]]
) -> FactorReference:
    """Return the axis and the weakened directions that these people determine, without people's places on the axis."""
    windows = np.concatenate(list(people.values()))
    mean, scale = np.nanmean(windows, axis=0), np.nanstd(windows, axis=0) + 1e-6
    means, *after = (
        {number: np.nanmean((one - mean) / scale, axis=0) for number, one in some.items() if np.isfinite(one).any()}
        for some in (people, *damaged.values())
    )
    changes = {
        damage: np.array([some[number] - means[number] for number in some if number in means])
        for damage, some in zip(damaged, after, strict=True)
    }
    unlike = np.array(list(means.values())) - np.mean(list(means.values()), axis=0)
    noise = {damage: one * np.sqrt(OTHERS / len(changes) / len(one)) for damage, one in changes.items()}
    # The axis is (R'R + vI)⁻¹δ, where R'R is the sum of the outer products of all that should not count.
    rows = np.concatenate(
        [unlike * np.sqrt(PEOPLE / len(unlike)), *(one for damage, one in noise.items() if damage[0] != factor)]
    )
    shifts = [changes[factor, strength].mean(axis=0) for strength in range(3)]
    delta = np.sum([shift / np.linalg.norm(shift) for shift in shifts], axis=0)
    inner = rows @ rows.T + np.square(unlike).mean() * np.eye(len(rows))
    axis = delta - rows.T @ np.linalg.solve(inner, rows @ delta)
    _, sizes, directions = np.linalg.svd(np.concatenate(list(noise.values())), full_matrices=False)
    weak = (directions.T * np.sqrt(1 - 1 / np.sqrt(1 + sizes**2)))[:, : WEAKENED if factor in GENERAL else 0]
    return FactorReference(mean, scale, axis / np.linalg.norm(axis), weak, *np.zeros((6, 1))[:, 0])


def make_reference(recordings: Sequence[AudioSource], about: str) -> PeopleReference:
    """Make a reference from recordings of people.

    Args:
        recordings: recordings of as many people as possible; recordings that cannot be measured are left out.
        about: phrase that describes the speakers and the speech; stored with the reference.

    Raises:
        BadInput: there is too little speech.
        ModelMissing: a model is not installed.
    """
    people: list[Windows] = []
    damaged: dict[Damage, dict[int, Windows]] = {(factor, strength): {} for factor in FACTORS for strength in range(3)}
    chosen = set(np.linspace(0, len(recordings) - 1, PLANTED).round().astype(int))
    seconds, left_out = 0.0, {}
    for number, one in enumerate(recordings):
        progress.report("people", number, len(recordings))
        try:
            recording = replace(one).recording
            people.append(describe_windows(recording))
        except (BadInput, CannotScore) as reason:
            left_out[one.name] = str(reason)
            continue
        seconds += recording.duration
        for damage in damaged if number in chosen else ():
            with suppress(CannotScore):
                damaged[damage][len(people) - 1] = describe_windows(plant_damage(recording, *damage))
    windows = sum(len(one["voice"]) for one in people)
    if len(people) < PERSONS or windows < LEAST or not all(damaged.values()):
        raise BadInput(
            f"{len(people)} recordings with {windows} windows of 3 s of speech are not enough for a reference; give at "
            f"least {PERSONS} people and a minute of speech, one recording each"
        )
    factors = {}
    for factor in FACTORS:
        after = {damage: {number: one[factor] for number, one in some.items()} for damage, some in damaged.items()}
        factors[factor] = fit_factor(factor, [one[factor] for one in people], after)
    facts = {"recordings": len(people), "minutes": round(seconds / 60, 1), "windows": windows, "left_out": left_out}
    return PeopleReference(factors, {"about": about, **facts, "models": describe_models("embedded")})


def describe_models(profile: str) -> Any:
    """Return the identities of the models that compute the features, and the version of the features, as JSON data."""
    return json.loads(json.dumps({**registry.describe_identities(MODELS, profile), "windows": METHOD}))


load_reference = cache(PeopleReference.load)


@metric(
    name="human_likeness",
    title="Human likeness",
    version="0.2",
    dimension="speech.likeness_to_people",
    keys=(
        Key("human_likeness", "informative", "", (0, 1), about="mean of the five factors; not validated"),
        Key("prosody", "informative", "", (0, 1), about="likeness of pitch, its movement and level"),
        Key("voice", "informative", "", (0, 1), about="likeness of voices"),
        Key("articulation", "informative", "", (0, 1), about="likeness of speech sounds, as the recogniser sees them"),
        Key("timing", "informative", "", (0, 1), about="likeness of pauses and rhythm"),
        Key("sound", "informative", "", (0, 1), about="likeness of the spectrum and of the noise floor"),
        Key(
            "human_likeness_low",
            "informative",
            "",
            (0, 1),
            only_for="a set of two recordings or more",
            about="lower end of the 95 % interval, by recordings",
        ),
        Key(
            "human_likeness_high",
            "informative",
            "",
            (0, 1),
            only_for="a set of two recordings or more",
            about="upper end of the 95 % interval, by recordings",
        ),
    ),
    needs=(*speech_track.NEEDS, *MODELS),
    paper="ours",
    only_for="a set with 10 windows of 3 s of speech or more",
    caution="Not validated: whether it orders systems as listeners do has not been measured.",
    intended_use="Seeing in what respect a system's recordings differ from those of people; it is never ranked.",
    limitations=(
        "The shipped reference is four minutes of read English from LibriTTS-R, which a network has restored: "
        "conversation, other languages, other rooms and other microphones differ from it through no fault of a system. "
        "Compare systems on the same texts, or make a reference from recordings like yours. The words, and whether the "
        "voice suits them, are not considered. Damage planted in five voices lowers its factor in 88 % of the cases "
        "and the others by less than a third as much in 77 % (73 % with the shipped reference), fewer than the 90 % "
        "that are wanted; if formants are moved, the voice factor can rise (docs/studies/human-likeness.md)."
    ),
    no_benchmark="It is not validated; `podeval run --metrics human_likeness` measures it, to be shown and not ranked.",
)
def human_likeness(
    recordings: Sequence[AudioSource], *, source: Literal["auto", "mix"] = "auto", reference: str = ""
) -> Score:
    """Score a set of recordings.

    Args:
        recordings: the recordings of one system, 16 kHz.
        source: `auto` scores the speech stem if there is music; `mix` scores recordings as they are.
        reference: path of a different reference file, made by `podeval data likeness-reference`; by default the
            reference that podeval ships.
    """
    people = load_reference(Path(reference) if reference else SHIPPED)
    described: list[Windows] = []
    left_out: dict[str, str] = {}
    for number, one in enumerate(recordings):
        progress.report("recordings", number, len(recordings))
        try:
            # Use a copy, so only one recording at a time is in memory.
            recording = replace(one).recording
            if describe_models(recording.profile) != people.about["models"]:
                raise ModelMissing("the reference was made with models other than this profile's; see docs/metrics.md")
            described.append(describe_windows(recording.speech_track(source)))
        except (BadInput, CannotScore) as reason:
            left_out[one.name] = str(reason)
    windows = sum(len(one["voice"]) for one in described)
    if windows < FEWEST:
        why = next((f"; {name}: {reason}" for name, reason in left_out.items()), "")
        raise CannotScore(f"the set has {windows} windows of 3 s of speech; at least {FEWEST} are needed{why}")
    values, intervals = score_set(people, described)
    low, high = intervals["human_likeness"] or (None, None)
    return Score(
        values={**values, "human_likeness_low": low, "human_likeness_high": high},
        notes={
            "recordings": len(described),
            "windows": windows,
            "left_out": left_out,
            "file": [f"{name} is left out: {reason}" for name, reason in left_out.items()],
            "ci95": intervals,
            "reference": {name: fact for name, fact in people.about.items() if name != "models"},
        },
    )


def score_set(
    people: PeopleReference, described: Sequence[Windows]
) -> tuple[dict[str, float], dict[str, tuple[float, float] | None]]:
    """Return the values of a set by key, each with a 95 % interval from resampling recordings; a single recording has
    none.

    Raises:
        CannotScore: a factor has no windows, such as prosody if nobody speaks.
    """
    draws = np.random.default_rng(0).multinomial(len(described), [1 / len(described)] * len(described), size=ROUNDS)
    weights = np.vstack([np.ones(len(described)), draws])
    scores = {
        factor: statistics.score(weights @ statistics.add_up([one[factor] for one in described]))
        for factor, statistics in people.factors.items()
    }
    if missing := [factor for factor, column in scores.items() if np.isnan(column[0])]:
        raise CannotScore(f"nothing can be said about {' and '.join(missing)}: too little voiced speech is heard")
    scores = {"human_likeness": np.mean(list(scores.values()), axis=0), **scores}
    values = {key: float(column[0]) for key, column in scores.items()}
    if len(described) < 2:
        return values, dict.fromkeys(values)
    ends = {key: np.nanpercentile(column[1:], [2.5, 97.5]) for key, column in scores.items()}
    return values, {
        key: (min(float(low), values[key]), max(float(high), values[key])) for key, (low, high) in ends.items()
    }
