"""The voice of each word of a dialogue, determined only from the sound of the voices.

The recognised words are divided into stretches of about 2 s that contain no turn change of the script and no long
pause; each has an embedding. The stretches are grouped into as many voices as the script has speakers, by spherical
k-means, started once from the script's division and once from the least similar stretches; the better fit is used.
Voices with nearly equal centres are merged, so a system with one voice for all speakers does not seem to have two.
Voices are assigned to speakers by their reference recordings if there are any, otherwise so that as many words as
possible are spoken by the speaker that the script names.

A stretch is assigned to a voice other than the intended one only if that voice is closer by a margin; a stretch shorter
than 0.6 s is too short to identify a voice.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.recording.recording import Recording
from podeval.text.comparison.alignment import ScriptAlignment

STRETCH = 2.0
"""Seconds of speech after which a stretch ends at the next word."""

LISTENED = 1.6
"""Maximum length, in seconds, of the middle of a stretch that is analysed: more would take longer and add hardly any
information."""

PAUSE = 0.35
"""Minimum length, in seconds, of a pause that ends a stretch that is already long enough."""

SHORTEST, SURE = 0.6, 1.0
"""Minimum length of a stretch, in seconds, for it to have a voice, and for it to be used to find the voices."""

MARGIN, MARGIN_OF_SHORT = 0.10, 0.20
"""Margin by which a voice other than the intended one must be closer, for stretches of at least `SURE` seconds and for
shorter stretches."""

SAME_VOICE = 0.75
"""Minimum cosine at which two centres count as the same voice."""

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class VoicedStretch:
    """Consecutive words of one turn.

    Attributes:
        first: the first of its recognised words.
        last: the recognised word after its last word.
        start: time of its beginning in the recording, in seconds.
        end: time of its end in the recording, in seconds.
        turn: turn of the script with most of the words.
        meant: the speaker who should say them.
        heard: the speaker with the voice of these words; None if no speaker has it, or the stretch is too short.
    """

    first: int
    last: int
    start: float
    end: float
    turn: int
    meant: str
    heard: str | None = None
    decided: bool = False


@dataclass(frozen=True)
class VoicedWords:
    """The stretches of a recording with their voices.

    Attributes:
        stretches: all stretches of words in chronological order.
        voices: number of different voices, at most one per speaker.
        likeness: cosine between the voice and the reference of each speaker with a reference.
    """

    stretches: tuple[VoicedStretch, ...]
    voices: int
    likeness: Mapping[str, float]


def find_voices(
    recording: Recording, alignment: ScriptAlignment, references: Mapping[str, NDArray[np.float32]]
) -> VoicedWords:
    """Find the speaker of each word.

    Args:
        recording: speech, 16 kHz.
        alignment: the recording's script aligned with its transcript.
        references: embeddings of the voices that speakers should have, by the script's names; may be empty.
    """
    stretches = cut_stretches(alignment)
    long_enough = [each for each in stretches if each.end - each.start >= SHORTEST]
    if not long_enough:
        return VoicedWords(tuple(stretches), 0, {})
    clips = [(_middle_of(each, recording.duration),) for each in long_enough]
    vectors = _normalise(recording.embeddings(clips).astype(np.float64))
    speakers = list(dict.fromkeys(each.meant for each in long_enough))
    weights = np.array([min(each.end - each.start, STRETCH) for each in long_enough])
    meant = np.array([speakers.index(each.meant) for each in long_enough])
    sure = weights >= min(SURE, float(weights.max()))
    centres = _merge_alike(_find_centres(vectors[sure], weights[sure], meant[sure], len(speakers)))
    nearest = (vectors @ centres.T).argmax(axis=1)
    names, likeness = _name_voices(centres, nearest, weights, meant, speakers, references)
    decided = iter(
        _decide(each, cosines, names) for each, cosines in zip(long_enough, vectors @ centres.T, strict=True)
    )
    placed = tuple(next(decided) if each.end - each.start >= SHORTEST else each for each in stretches)
    return VoicedWords(placed, len(centres), likeness)


def cut_stretches(alignment: ScriptAlignment) -> list[VoicedStretch]:
    """Cut the recognised words into stretches within turns; words outside the script belong to the preceding
    stretch.
    """
    spoken, turns = alignment.heard, _turns_of_words(alignment)
    stretches: list[VoicedStretch] = []
    first = 0
    for at in range(1, len(spoken) + 1):
        if at < len(spoken) and turns[at] == turns[first]:
            length = spoken[at - 1].end - spoken[first].start
            paused = spoken[at].start - spoken[at - 1].end >= PAUSE and length >= SURE
            if length < STRETCH and not paused:
                continue
        turn = turns[first]
        speaker = alignment.script.turns[turn].speaker
        stretches.append(VoicedStretch(first, at, float(spoken[first].start), float(spoken[at - 1].end), turn, speaker))
        first = at
    return stretches


def _turns_of_words(alignment: ScriptAlignment) -> list[int]:
    """Return the turn of every recognised word; a word without a turn gets the turn of the previous word."""
    turns: list[int] = []
    for partner in alignment.partners:
        turns.append(alignment.written[partner].turn if partner is not None else turns[-1] if turns else 0)
    return turns


def _middle_of(stretch: VoicedStretch, duration: float) -> Span:
    end = min(stretch.end, duration)
    spare = max(0.0, end - stretch.start - LISTENED) / 2
    return Span(stretch.start + spare, end - spare)


def _normalise(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def _find_centres(vectors: Vectors, weights: Vectors, meant: NDArray[np.int64], count: int) -> Vectors:
    """Find the centres of `count` voices, or of fewer if there are fewer stretches; shape (voices, dimensions)."""
    count = min(count, len(vectors))
    by_script = [_mean_of(vectors, weights, meant == number) for number in range(meant.max() + 1)]
    starts = [np.stack([centre for centre in by_script if centre is not None])]
    apart = [int((vectors @ _normalise(weights @ vectors)).argmin())]
    while len(apart) < count:
        apart.append(int((vectors @ vectors[apart].T).max(axis=1).argmin()))
    starts.append(vectors[apart])
    fitted = [_fit_centres(vectors, weights, start) for start in starts]
    return max(fitted, key=lambda centres: float(weights @ (vectors @ centres.T).max(axis=1)))


def _fit_centres(vectors: Vectors, weights: Vectors, centres: Vectors) -> Vectors:
    for _ in range(30):
        nearest = (vectors @ centres.T).argmax(axis=1)
        means = [_mean_of(vectors, weights, nearest == number) for number in range(len(centres))]
        moved = np.stack([old if new is None else new for old, new in zip(centres, means, strict=True)])
        if np.allclose(moved, centres):
            break
        centres = moved
    return centres


def _mean_of(vectors: Vectors, weights: Vectors, among: NDArray[np.bool_]) -> Vectors | None:
    return _normalise(weights[among] @ vectors[among]) if among.any() else None


def _merge_alike(centres: Vectors) -> Vectors:
    """Repeatedly merge the two most similar voices while they count as the same voice."""
    while len(centres) > 1:
        likeness = centres @ centres.T - 2 * np.eye(len(centres))
        one, other = np.unravel_index(int(likeness.argmax()), likeness.shape)
        if likeness[one, other] < SAME_VOICE:
            break
        joined = _normalise(centres[one] + centres[other])
        centres = np.vstack([np.delete(centres, [one, other], axis=0), joined])
    return centres


def _name_voices(
    centres: Vectors,
    nearest: NDArray[np.int64],
    weights: Vectors,
    meant: NDArray[np.int64],
    speakers: Sequence[str],
    references: Mapping[str, NDArray[np.float32]],
) -> tuple[dict[int, str], dict[str, float]]:
    """Return the speaker of every voice, and, for every speaker with a reference, the similarity of the voice to it."""
    from scipy.optimize import linear_sum_assignment

    shared = np.zeros((len(centres), len(speakers)))
    np.add.at(shared, (nearest, meant), weights)
    cosines = np.zeros_like(shared)
    for column, speaker in enumerate(speakers):
        if speaker in references:
            cosines[:, column] = centres @ _normalise(references[speaker].astype(np.float64))
    complete = all(speaker in references for speaker in speakers)
    rows, columns = linear_sum_assignment(cosines if complete else shared, maximize=True)
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    likeness = {
        speakers[column]: float(cosines[row, column]) for row, column in pairs if speakers[column] in references
    }
    return {row: speakers[column] for row, column in pairs}, likeness


def _decide(stretch: VoicedStretch, cosines: Vectors, names: Mapping[int, str]) -> VoicedStretch:
    """Return a stretch's voice: that of the speaker in the script, unless another voice is closer by the margin."""
    margin = MARGIN if stretch.end - stretch.start >= SURE else MARGIN_OF_SHORT
    own = next((voice for voice, speaker in names.items() if speaker == stretch.meant), None)
    best = int(cosines.argmax())
    voice = own if own is not None and cosines[best] - cosines[own] < margin else best
    return VoicedStretch(
        *(stretch.first, stretch.last, stretch.start, stretch.end, stretch.turn, stretch.meant),
        heard=names.get(voice),
        decided=True,
    )


def count_words_by(stretches: Sequence[VoicedStretch], alignment: ScriptAlignment) -> Counter[tuple[str, str | None]]:
    """Count the recognised words of the script by intended speaker and voice."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for stretch in stretches:
        if stretch.decided:
            partners = alignment.partners[stretch.first : stretch.last]
            counts.update((alignment.speaker_of(at), stretch.heard) for at in partners if at is not None)
    return counts
