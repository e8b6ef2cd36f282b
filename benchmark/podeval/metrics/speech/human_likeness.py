"""Likeness to people: how close a set of recordings is to recordings of people, factor by factor, 0 to 1.

Speech is cut into windows of 3 s, each described by numbers for five factors: `prosody` (pitch, its movement, level),
`voice` (the speaker encoder), `articulation` (mean and spread of the recogniser's encoder), `timing` (pauses and voiced
stretches) and `sound` (bands, their variation, the floor). The reference, recordings of people, standardises them and
reduces them to at most 8 axes. On each axis the distance d from people is the 2-Wasserstein distance of two normal
distributions, of the windows' places and of their change within 2 s; a place as far off as one person's recording is
from all of them costs nothing, so that the identity of a system's few voices is taken out. A factor is D / (D + d),
with D the distance of people's recordings with a planted damage of that factor; `human_likeness` is the mean of the
five. The interval resamples recordings. The formula was fixed before it was tried on the systems it is meant for
(docs/decisions/human-likeness.md). It is not validated: whether it orders systems as listeners do is not known, so it
is shown and never ranked. Its idea is that of TTSDS (Minixhofer, Klejch and Bell, SLT 2024, arXiv 2407.12707), which
compares distributions of features with those of speech and of noise; features, damages and identity are ours.

Differs from the papers: LFS-Bench and PodEval have listeners or judges rate likeness to people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import BadInput, CannotScore, ModelMissing
from podeval.metrics.declaration import Key, metric
from podeval.metrics.score import Score
from podeval.models import registry
from podeval.recording import Recording, speech_track
from podeval.recording.likeness_windows import METHOD, Features, describe_windows
from podeval.recording.recording import MODEL_RATE
from podeval.recording.source import AudioSource

FACTORS = ("prosody", "voice", "articulation", "timing", "sound")
MELODY = 0.25
"""What is left of the melody where it is damaged."""
LAG = 2
"""Distance of the windows whose change is looked at, in windows of which one begins each second."""

AXES = 8
FEWEST, LEAST, ROUNDS, PLANTED = 10, 60, 1000, 12
"""Fewest windows of a set and of a reference; rounds of the bootstrap; most recordings that damages are planted in."""

MODELS = ("transcriber", "speaker_encoder", "voice_activity")
"""Jobs whose models make the features."""

ENCODED = ("voice", "articulation")
"""Factors of many dimensions, out of which the directions of the other factors' damages are taken."""

SHIPPED = Path(__file__).with_name("human_likeness_reference.npz")
"""34 readers of LibriTTS-R, four minutes (CC BY 4.0); made by `podeval data likeness-reference`."""

Array = NDArray[np.float64]
Windows = Mapping[str, Features]
"""Features of the windows of one recording, by factor."""


class FactorReference(NamedTuple):
    """What people's recordings are like in one factor.

    Attributes:
        mean, scale: mean and standard deviation of each feature over the windows.
        axes: what leads from standardised features to the axes, shape (features, axes).
        persons: squared distance of one person's recording from all, on each axis.
        change: root mean square of half the change within 2 s, on each axis.
        damage: distance of people's recordings with the planted damage.
    """

    mean: Array
    scale: Array
    axes: Array
    persons: Array
    change: Array
    damage: Array

    def add_up(self, recordings: Sequence[Features]) -> Array:
        """Return of each recording the number of windows and of pairs, and the sums of places and squared changes."""
        rows = []
        for features in recordings:
            places = ((features - self.mean) / self.scale) @ self.axes
            changes = places[LAG:] - places[:-LAG]
            places, changes = (some[np.isfinite(some).all(axis=1)] for some in (places, changes))
            sums = (places.sum(axis=0), np.square(changes).sum(axis=0))
            rows.append(np.concatenate([[len(places), len(changes)], *sums]))
        return np.array(rows)

    def measure_distance(self, sums: Array) -> Array:
        """Return the distance from people of sets, of which each row of `sums` adds up one; NaN without windows."""
        count = len(self.change)
        with np.errstate(invalid="ignore", divide="ignore"):
            places = sums[:, 2 : 2 + count] / sums[:, :1]
            changes = np.sqrt(sums[:, 2 + count :] / sums[:, 1:2] / 2)
        beyond = np.maximum(np.mean(np.square(places) - self.persons, axis=1), 0)
        return np.asarray(np.sqrt(beyond + np.mean(np.square(changes - self.change), axis=1)))

    def score(self, sums: Array) -> Array:
        """Return the likeness of sets: 1 without distance, one half as far from people as the damage."""
        return np.asarray(self.damage / (self.damage + self.measure_distance(sums)))


@dataclass(frozen=True)
class Reference:
    """People's recordings: of each factor its statistics, and facts about the recordings."""

    factors: Mapping[str, FactorReference]
    about: Mapping[str, Any]

    @classmethod
    def load(cls, path: Path) -> Reference:
        """Read a reference.

        Raises:
            BadInput: the file is missing, or no reference that this version reads.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                names = FactorReference._fields
                factors = {one: FactorReference(*(stored[f"{one}.{name}"] for name in names)) for one in FACTORS}
        except (OSError, ValueError, KeyError) as error:
            raise BadInput(
                f"{path} is no reference of human_likeness ({error}); `podeval data likeness-reference` makes one"
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


Pairs = Sequence[tuple[Features, Features]]
"""Features of recordings of people, and of the same with a planted damage."""


def fit_factor(factor: str, people: Sequence[Features], damaged: Mapping[str, Pairs]) -> FactorReference:
    """Return the statistics of a factor.

    Args:
        factor: one of `FACTORS`.
        people: features of each recording of people.
        damaged: features of some of them without and with the damage of each factor.
    """
    windows = np.concatenate(people)
    mean, scale = np.nanmean(windows, axis=0), np.nanstd(windows, axis=0) + 1e-6
    standard = ((windows - mean) / scale)[np.isfinite(windows).all(axis=1)]
    if factor in ENCODED:
        shifts = [
            np.mean([np.nanmean(after, axis=0) - np.nanmean(before, axis=0) for before, after in pairs], axis=0) / scale
            for name, pairs in damaged.items()
            if name not in (factor, "prosody")
        ]
        basis = np.linalg.qr(np.array(shifts).T)[0]
        standard = standard - standard @ basis @ basis.T
    _, sizes, directions = np.linalg.svd(standard, full_matrices=False)
    count = min(AXES, len(directions))
    axes = directions[:count].T * (np.sqrt(len(standard)) / sizes[:count])
    fitted = FactorReference(mean, scale, axes, np.zeros(count), np.zeros(count), np.zeros(()))
    sums = fitted.add_up(people)
    sums = sums[sums[:, 0] > 0]
    fitted = fitted._replace(
        persons=np.mean(np.square(sums[:, 2 : 2 + count] / sums[:, :1]), axis=0),
        change=np.sqrt(sums[:, 2 + count :].sum(axis=0) / sums[:, 1].sum() / 2),
    )
    after = fitted.add_up([after for _, after in damaged[factor]]).sum(axis=0, keepdims=True)
    return fitted._replace(damage=fitted.measure_distance(after)[0])


def make_reference(recordings: Sequence[AudioSource], about: str) -> Reference:
    """Return the reference that recordings of people are.

    Args:
        recordings: the recordings, of as many people as possible; those that cannot be measured are left out.
        about: phrase on who says what, kept with the reference.

    Raises:
        BadInput: there is too little speech.
        ModelMissing: a model is not installed.
    """
    people: list[Windows] = []
    damaged: dict[str, list[tuple[Windows, Windows]]] = {factor: [] for factor in FACTORS}
    chosen = set(np.linspace(0, len(recordings) - 1, min(PLANTED, len(recordings))).round().astype(int))
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
        for factor in FACTORS if number in chosen else ():
            damaged[factor].append((people[-1], _damage(recording, factor)))
    windows = sum(len(one["voice"]) for one in people)
    if windows < LEAST or not all(damaged.values()):
        raise BadInput(f"{windows} windows of 3 s of speech are no reference; give people's speech of a minute or more")
    factors = {
        factor: fit_factor(
            factor,
            [windows[factor] for windows in people],
            {name: [(one[factor], other[factor]) for one, other in pairs] for name, pairs in damaged.items()},
        )
        for factor in FACTORS
    }
    facts = {"recordings": len(people), "minutes": round(seconds / 60, 1), "windows": windows, "left_out": left_out}
    return Reference(factors, {"about": about, **facts, "models": describe_models("embedded")})


def _damage(recording: Recording, factor: str) -> Windows:
    """Return the features of a recording with the worst damage of a factor."""
    from podeval.audio.planted_damages import DAMAGES

    if factor not in DAMAGES:
        return describe_windows(recording, MELODY)
    damage, amounts = DAMAGES[factor]
    samples = damage(recording.mono(), recording.speech(), amounts[-1])
    return describe_windows(recording.derive(samples[:, None], MODEL_RATE, "planted", [factor, METHOD], {}))


def describe_models(profile: str) -> Any:
    """Return the identities of the models that features are made by, and the version of the features, as JSON has
    them.
    """
    return json.loads(json.dumps({**registry.describe_identities(MODELS, profile), "windows": METHOD}))


load_reference = cache(Reference.load)


@metric(
    name="human_likeness",
    title="Human likeness",
    version="0.1",
    dimension="speech.likeness_to_people",
    keys=(
        Key("human_likeness", "informative", "", (0, 1), about="mean of the five factors; not validated"),
        Key("prosody", "informative", "", (0, 1), about="likeness of pitch, its movement and level"),
        Key("voice", "informative", "", (0, 1), about="likeness of voices and of their steadiness"),
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
    intended_use="Seeing in which respect a system's recordings are unlike those of people; it is never ranked.",
    limitations=(
        "The shipped reference is four minutes of read English from LibriTTS-R, which a network has restored: talk, "
        "other languages, other rooms and microphones are unlike it for no fault of a system. Compare systems on the "
        "same texts, or make a reference of recordings like yours. What people say, and whether it fits the words, is "
        "not looked at."
    ),
    no_benchmark="It is not validated; `podeval run --metrics human_likeness` measures it, to be shown and not ranked.",
)
def human_likeness(
    recordings: Sequence[AudioSource], *, source: Literal["auto", "mix"] = "auto", reference: str = ""
) -> Score:
    """Score a set of recordings.

    Args:
        recordings: what one system said, 16 kHz.
        source: `auto` scores the speech stem where there is music; `mix` scores recordings as they are.
        reference: file of another reference, made by `podeval data likeness-reference`; the shipped one by default.
    """
    people = load_reference(Path(reference) if reference else SHIPPED)
    described: list[Windows] = []
    left_out: dict[str, str] = {}
    for number, one in enumerate(recordings):
        progress.report("recordings", number, len(recordings))
        try:
            # A copy, so that one recording at a time is in memory.
            recording = replace(one).recording
            if describe_models(recording.profile) != people.about["models"]:
                raise ModelMissing("the reference was made by other models than this profile's; see docs/metrics.md")
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
    people: Reference, described: Sequence[Windows]
) -> tuple[dict[str, float], dict[str, tuple[float, float] | None]]:
    """Return the values of a set by key, and the 95 % interval of each by resampling recordings; None for one alone.

    Raises:
        CannotScore: a factor has no windows, such as prosody where no voice is heard.
    """
    draws = np.random.default_rng(0).multinomial(len(described), [1 / len(described)] * len(described), size=ROUNDS)
    weights = np.vstack([np.ones(len(described)), draws])
    scores = {
        factor: statistics.score(weights @ statistics.add_up([one[factor] for one in described]))
        for factor, statistics in people.factors.items()
    }
    if missing := [factor for factor, column in scores.items() if np.isnan(column[0])]:
        raise CannotScore(f"nothing can be said of {' and '.join(missing)}: too little voiced speech is heard")
    scores = {"human_likeness": np.mean(list(scores.values()), axis=0), **scores}
    values = {key: float(column[0]) for key, column in scores.items()}
    if len(described) < 2:
        return values, dict.fromkeys(values)
    ends = {key: np.nanpercentile(column[1:], [2.5, 97.5]) for key, column in scores.items()}
    return values, {
        key: (min(float(low), values[key]), max(float(high), values[key])) for key, (low, high) in ends.items()
    }
