"""Naturalness of dialogue: how close the rhythm and melody of a short dialogue are to those of human dialogue.

The mean of four parts from 0 to 1, where 1 is the level published for people; higher is better. The parts are `gaps` (1
− |median floor-transfer offset − 0.12 s| / 1 s), `overlaps` (share of turn-taking events that overlap, relative to
0.58), `pauses` (standard deviation of the silences of at least 0.25 s divided by their mean, relative to 0.48) and
`melody` (a speaker's pitch range, relative to 8.5 semitones). The combination and the reasons for it were fixed before
it was computed on any clip from the systems it is meant for (docs/decisions/dialogue-naturalness.md). If only one voice
is heard, `gaps` and `overlaps` are 0. `pauses` is left out if there are fewer than four silences, and `melody` if no
speaker has 2 s of voiced speech. The speakers are identified by diarisation even if there is a script, as for
`turn_taking`. Recordings with less than 8 s of speech are unscored, and so are recordings of two voices that never
alternate. The metric is not in the papers, and it is shown but never ranked: on 118 public clips it orders the means of
six systems nearly as listeners do (SRCC .94), but its order of clips within a category agrees only weakly with
listeners (.34), and six systems are too few to prove anything (docs/studies/dialogue-naturalness.md). The value
does not depend on words, meaning or sound quality, and random overlaps and irregular pauses raise it.

Differs from the papers, in which naturalness is rated directly: in PodEval by listeners (MUSHRA), in LFS-Bench by a
judge.
"""

from typing import Literal

import numpy as np

from podeval.errors import CannotScore
from podeval.metrics import Key, Score, metric
from podeval.metrics.speech.pace import PAUSE, describe_speakers, join_speech
from podeval.recording import Recording, speech_track
from podeval.recording.speaker_turns import NEEDS, find_overlapping_turns
from podeval.stats.turn_taking import FloorEvents, follow_the_floor

SHORTEST = 8.0
"""Minimum seconds of speech."""

GAP, GAP_SCALE = 0.12, 1.0
OVERLAPS = 0.58
UNEVENNESS = 0.48
MELODY = 8.5
"""Values that people reach; for the sources, see docs/decisions/dialogue-naturalness.md."""

FEWEST_SILENCES = 4


@metric(
    name="dialogue_naturalness",
    title="Dialogue naturalness",
    version="1.0",
    dimension="speech.rhythm",
    keys=(
        # The key has no direction, because six systems are too few to prove that it orders systems as listeners do, and
        # it is easily gamed.
        Key(
            "dialogue_naturalness",
            "informative",
            "",
            (0, 1),
            about="closeness of rhythm and melody to those of people",
            timing=True,
        ),
        Key(
            "gaps",
            "informative",
            "",
            (0, 1),
            title="Gaps, closeness to people",
            about="how close the median gap is to that of people",
            timing=True,
        ),
        Key(
            "overlaps",
            "informative",
            "",
            (0, 1),
            title="Overlap relative to people's",
            about="amount of overlap, as a share of that of people",
            timing=True,
        ),
        Key(
            "pauses",
            "informative",
            "",
            (0, 1),
            title="Variation of pauses relative to people's",
            only_for="a dialogue with enough silences to compare",
            about="variation of silences, as a share of that of people",
            timing=True,
        ),
        Key(
            "melody",
            "informative",
            "",
            (0, 1),
            title="Pitch range relative to people's",
            about="speakers' pitch ranges, as a share of those of people",
        ),
    ),
    needs=(*speech_track.NEEDS, *NEEDS),
    paper="ours",
    only_for="two speakers or more",
    intended_use="Inspecting short dialogues in addition to listening; it is never ranked.",
    limitations=(
        "It is not known whether it orders systems as listeners do: for the means of six systems it nearly does (SRCC "
        ".94, which the best of the 24 compared keys reaches by chance in 12 % of orders), for clips of a category "
        "only weakly (.34); see docs/studies/dialogue-naturalness.md. It was developed and checked on English podcasts."
    ),
    no_benchmark="It is shown and not ranked until it has been compared with listeners' ratings.",
)
def dialogue_naturalness(recording: Recording, *, source: Literal["auto", "mix"] = "auto") -> Score:
    """Score one recording.

    Args:
        recording: a dialogue between two or more people, 16 kHz.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
    """
    recording.require_sound(SHORTEST)
    track = recording.speech_track(source)
    speech_track.require_speech(track, SHORTEST)
    turns = find_overlapping_turns(track)
    floor = follow_the_floor((turn.speaker, turn.start, turn.end) for turn in turns)
    if len(floor.talk) > 1 and not floor.offsets:
        raise CannotScore("two voices are heard, but no turn change between them")
    semitones, _, _ = describe_speakers(track.prosody(), turns, join_speech(track.speech()))
    shares = {
        "gaps": _rate_gaps(floor),
        "overlaps": _rate_overlaps(floor),
        "pauses": _rate_pauses(floor),
        "melody": None if semitones is None else min(1.0, semitones / MELODY),
    }
    rated = [share for share in shares.values() if share is not None]
    return Score(
        values={"dialogue_naturalness": float(np.mean(rated)), **shares},
        notes={"speakers_found": len(floor.talk), "turns": floor.turns, "events": len(floor.kinds), **track.notes},
    )


def _rate_gaps(floor: FloorEvents) -> float:
    if not floor.offsets:
        return 0.0
    return max(0.0, 1 - abs(float(np.median(floor.offsets)) - GAP) / GAP_SCALE)


def _rate_overlaps(floor: FloorEvents) -> float:
    if not floor.kinds:
        return 0.0
    return min(1.0, floor.overlapping / len(floor.kinds) / OVERLAPS)


def _rate_pauses(floor: FloorEvents) -> float | None:
    silences = np.array([length for length in (*floor.pauses, *floor.offsets) if length >= PAUSE])
    if len(silences) < FEWEST_SILENCES:
        return None
    return min(1.0, float(silences.std() / silences.mean()) / UNEVENNESS)
