"""Likeness to people: how close a set of recordings is to recordings of people, factor by factor, 0 to 1.

Speech is cut into windows of 3 s, each described by features of five factors: `prosody` (pitch, its range and
movement), `voice` (the speaker encoder), `articulation` (mean and spread of the recogniser's encoder), `timing` (pauses
and voiced stretches) and `sound` (frequency bands, their variation, the noise floor). Using a reference made from
recordings of people, the features are standardised and reduced to at most 12 axes, scaled so that one person's
recording is at a distance of 1 from the mean of people. d² is the sum of two squared 2-Wasserstein distances from
people, each between normal distributions: the first is (s − 1)², where s is the distance of the set's recordings from
the mean; the second is that of the change from a window to the one 2 s later. One voice is as far from the mean as one
person is, so the identity of a system's few voices has no effect. A factor is D² / (D² + d²), where D is the distance
of people's recordings with planted damage to that factor; `human_likeness` is the mean of the five. The interval is
computed by resampling the recordings. The formula was fixed before it was tried on the systems it is meant for
(docs/decisions/human-likeness.md). The metric is not validated: it is not known whether it orders systems as listeners
do, so it is shown and never ranked. The idea comes from TTSDS (Minixhofer, Klejch and Bell, SLT 2024, arXiv
2407.12707), which compares distributions of features with those of speech and of noise; the features, the kinds of
damage and the treatment of identity are ours.

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
from podeval.recording import MODEL_RATE, Recording, speech_track
from podeval.recording.likeness_windows import DAMAGES, METHOD, Features, describe_windows
from podeval.recording.recording import AudioSource

FACTORS = ("prosody", "voice", "articulation", "timing", "sound")
MELODY = 0.25
"""Share of the melody that remains after damage."""
LAG = 2
"""Distance, in windows, between the two windows of a change; a window begins every second."""

AXES = 12
FEWEST, LEAST, ROUNDS, PLANTED, FOLDS = 10, 60, 1000, 8, 10
"""Minimum numbers of windows in a set and in a reference; number of rounds of the bootstrap; number of a reference's
recordings in which damage is planted; number of parts of the reference, each measured on axes that are fitted to the
other parts.
"""

NEAREST = 0.25
"""Minimum squared distance of damaged recordings: a distance one and a half times that of a person."""

MODELS = ("transcriber", "speaker_encoder", "voice_activity")
"""Jobs whose models compute the features."""

SHIPPED = Path(__file__).with_name("human_likeness_reference.npz")
"""34 readers of LibriTTS-R, four minutes (CC BY 4.0); made by `podeval data likeness-reference`."""

Array = NDArray[np.float64]
Windows = Mapping[str, Features]
"""Features of the windows of one recording, by factor."""


class FactorReference(NamedTuple):
    """The distribution of people's recordings in one factor.

    Attributes:
        mean, scale: mean and standard deviation of each feature over the windows.
        axes: the map from standardised features to the axes, shape (features, axes); on each axis, the root mean square
            of the means of people's recordings is 1, over people to whom the axes were not fitted.
        change: root mean square of half the change within 2 s, on each axis.
        damage: squared distance of people's recordings with planted damage; at least `NEAREST`.
    """

    mean: Array
    scale: Array
    axes: Array
    change: Array
    damage: Array

    def add_up(self, recordings: Sequence[Features]) -> Array:
        """Return a row for each recording: the numbers of windows and of pairs 2 s apart, then for each axis the square
        of the windows' mean times the number of windows, then the sum of the squared changes within pairs.
        """
        rows = []
        for features in recordings:
            places = ((features - self.mean) / self.scale) @ self.axes
            changes = places[LAG:] - places[:-LAG]
            places, changes = (some[np.isfinite(some).all(axis=1)] for some in (places, changes))
            squares = np.square(places.sum(axis=0)) / max(1, len(places))
            rows.append([len(places), len(changes), *squares, *np.square(changes).sum(axis=0)])
        return np.array(rows, dtype=np.float64)

    def measure_distance(self, sums: Array) -> Array:
        """Return the squared distance of sets (sums of rows from `add_up`) from people; NaN without windows."""
        count = len(self.change)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt(np.mean(sums[:, 2 : 2 + count] / sums[:, :1], axis=1))
            changes = np.sqrt(sums[:, 2 + count :] / sums[:, 1:2] / 2)
            # Subtract the part that is due to the small number of changes; neighbours share a third of their speech.
            few = np.square(changes) * LAG / (2 * sums[:, 1:2])
        unsteady = np.mean(np.square(changes - self.change) - few, axis=1)
        return np.asarray(np.square(spread - 1) + np.maximum(unsteady, 0))

    def score(self, sums: Array) -> Array:
        """Return the likeness of sets: 1 at distance 0, one half at the distance of damaged recordings."""
        return np.asarray(self.damage / (self.damage + self.measure_distance(sums)))


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


def fit_factor(people: Sequence[Features], damaged: Mapping[int, Features]) -> FactorReference:
    """Return the statistics of a factor.

    Args:
        people: features of each recording of people.
        damaged: features of some of the recordings with damage to the factor, by index of the recording.
    """
    windows = np.concatenate(people)
    mean, scale = np.nanmean(windows, axis=0), np.nanstd(windows, axis=0) + 1e-6
    # A person's deviation is measured on axes that were fitted to other people.
    rows, rows_of_damage = [], []
    for fold in range(min(FOLDS, len(people))):
        part = range(fold, len(people), FOLDS)
        axes = _find_axes([(one - mean) / scale for number, one in enumerate(people) if number not in part])
        draft = FactorReference(mean, scale, axes, np.zeros(axes.shape[1]), np.zeros(()))
        rows.append(draft.add_up([people[number] for number in part]))
        rows_of_damage += list(draft.add_up([damaged[number] for number in part if number in damaged]))
    sums, count = np.concatenate(rows).sum(axis=0), axes.shape[1]
    person = np.sqrt(sums[2 : 2 + count] / sums[0])
    change = np.sqrt(sums[2 + count :] / sums[1] / 2) / person
    axes = _find_axes([(one - mean) / scale for one in people]) / person
    fitted = FactorReference(mean, scale, axes, change, np.zeros(()))
    after = np.sum(rows_of_damage, axis=0, keepdims=True)
    after[:, 2:] /= np.tile(np.square(person), 2)
    return fitted._replace(damage=np.maximum(fitted.measure_distance(after)[0], NEAREST))


def _find_axes(standard: Sequence[Features]) -> Array:
    """Return the first principal axes of standardised windows, each scaled to a standard deviation of 1."""
    windows = np.concatenate(standard)
    windows = windows[np.isfinite(windows).all(axis=1)]
    _, sizes, directions = np.linalg.svd(windows, full_matrices=False)
    return np.asarray(directions[:AXES].T * (np.sqrt(len(windows)) / sizes[:AXES]))


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
    damaged: dict[str, dict[int, Features]] = {factor: {} for factor in FACTORS}
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
        for factor in FACTORS if number in chosen else ():
            with suppress(CannotScore):
                damaged[factor][len(people) - 1] = _damage(recording, factor)[factor]
    windows = sum(len(one["voice"]) for one in people)
    if len(people) < PLANTED or windows < LEAST or not all(damaged.values()):
        raise BadInput(
            f"{len(people)} recordings with {windows} windows of 3 s of speech are not enough for a reference; give at "
            f"least {PLANTED} people and a minute of speech, one recording each"
        )
    factors = {factor: fit_factor([one[factor] for one in people], damaged[factor]) for factor in FACTORS}
    facts = {"recordings": len(people), "minutes": round(seconds / 60, 1), "windows": windows, "left_out": left_out}
    return PeopleReference(factors, {"about": about, **facts, "models": describe_models("embedded")})


def _damage(recording: Recording, factor: str) -> Windows:
    """Return the features of a recording with the worst damage to a factor."""
    if factor not in DAMAGES:
        return describe_windows(recording, MELODY)
    damage, amounts = DAMAGES[factor]
    samples = damage(recording.mono(), recording.speech(), amounts[-1])
    return describe_windows(Recording.from_samples(samples, MODEL_RATE))


def describe_models(profile: str) -> Any:
    """Return the identities of the models that compute the features, and the version of the features, as JSON data."""
    return json.loads(json.dumps({**registry.describe_identities(MODELS, profile), "windows": METHOD}))


load_reference = cache(PeopleReference.load)


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
    intended_use="Seeing in what respect a system's recordings differ from those of people; it is never ranked.",
    limitations=(
        "The shipped reference is four minutes of read English from LibriTTS-R, which a network has restored: "
        "conversation, other languages, other rooms and other microphones differ from it through no fault of a system. "
        "Compare systems on the same texts, or make a reference from recordings like yours. The words, and whether the "
        "voice suits them, are not considered. Planted changes of the voice are hardly detected "
        "(docs/studies/human-likeness.md)."
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
