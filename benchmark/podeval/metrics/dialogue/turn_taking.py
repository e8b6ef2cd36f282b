"""Turn-taking: how much the gaps, overlaps and backchannels of a dialogue differ from those of people.

Whenever someone other than the current speaker speaks, one of eight events occurs: a turn change, classified by its
floor-transfer offset (the time from the end of one turn to the start of the next: up to −0.5, 0, 0.2, 0.5, 1 s or
longer; negative offsets are overlaps), a backchannel of at most 1 s, or talking over someone. `human_distance` is the
square root of the Jensen-Shannon divergence (in bits) between the frequencies of these events and those of people: 0 to
1, lower is better. People's counts come from public turn times, by kind of conversation: `broadcast` contains debates,
panels, interviews and news (VoxConverse, 411 recordings), and `meeting` contains meetings, mostly of four people (AMI,
170 meetings). Podcasts are neither; `broadcast` is the closer kind. Diarisation determines who speaks, and pyannote's
segmentation determines when, even if two people speak at once. Diarisation is used even if there is a script, because
turns obtained by aligning its words cannot overlap, and because only the voices that are heard matter. Only times are
considered, so a short answer during another person's turn counts as a backchannel. Recordings with fewer than 15 events
are unscored. With few events, distances are larger by chance: people have a median distance of 0.43 with 15 events,
0.29 with 50 and 0.25 with 100 (docs/studies/turn-taking.md), so compare systems on the same scripts. Detected speech
starts too late and ends about 0.1 s too early, whereas the times for people were corrected by hand. A low distance can
be obtained by cutting and overlapping speech at random: read it together with WER.

Source: floor-transfer offsets as defined by Heldner and Edlund (2010); VoxConverse, Interspeech 2020; AMI, 2005.

Differs from the papers, none of which measures turn-taking, and from Full-Duplex-Bench, which uses the same divergence
to compare the timing of an agent's backchannels with the timing of people's backchannels.
"""

from typing import Literal

import numpy as np

from podeval.errors import CannotScore
from podeval.metrics import Key, Reach, Score, facts, metric
from podeval.recording import Recording, speech_track
from podeval.recording.speaker_turns import NEEDS, find_overlapping_turns
from podeval.stats.turn_taking import (
    KINDS,
    bootstrap_distance,
    count_people,
    follow_the_floor,
    jensen_shannon_distance,
)

FEWEST_EVENTS = 15
"""Minimum number of events for which a distance is reported.

It is the smallest number in the study at which, in both kinds of conversation, 95 % of people's stretches are at least
0.25 closer to other people than the same number of turns concatenated with equal gaps are
(docs/studies/turn-taking.md).
"""


@metric(
    name="turn_taking",
    title="Turn-taking",
    version="1.0",
    dimension="speech.rhythm",
    keys=(
        Key(
            "human_distance",
            "lower",
            "root of bits",
            (0, 1),
            title="Turn-taking, distance from people",
            about="distance of gaps, overlaps and backchannels from people's",
            reach=Reach(facts.PEOPLE_STRETCHES, people=(0.20, 0.43)),
            timing=True,
        ),
        Key(
            "gap_median",
            "informative",
            "s",
            title="Median gap between turns",
            only_for="a dialogue in which the turn passes from one speaker to another",
            about="median from the end of a turn to the next; overlaps are negative",
            reach=Reach(facts.PEOPLE_TURNS, people=(-0.02, 0.12)),
            timing=True,
        ),
        Key(
            "overlap_share",
            "informative",
            "",
            (0, 1),
            title="Share of overlap",
            about="share of speech in which two or more speak at once",
            reach=Reach(facts.PEOPLE_TURNS, people=(0.03, 0.14)),
            timing=True,
        ),
        Key(
            "backchannels_per_minute",
            "informative",
            "per minute",
            (0, None),
            title="Backchannels",
            about='short responses of a listener, such as "mm-hm"',
            timing=True,
        ),
    ),
    needs=(*speech_track.NEEDS, *NEEDS),
    paper="ours",
    only_for="two speakers or more who take turns for minutes",
    intended_use=(
        "Checking whether the rhythm of a dialogue is close to that of people talking. How a live system reacts to "
        "barge-in is measured in conversations with a server (docs/running.md)."
    ),
    limitations=(
        "The reference consists of English broadcasts and meetings; other languages, phone calls and scripted shows "
        "have other rhythms. It depends on diarisation, which makes large errors near overlaps."
    ),
)
def turn_taking(
    recording: Recording,
    *,
    source: Literal["auto", "mix"] = "auto",
    people: Literal["broadcast", "meeting"] = "broadcast",
) -> Score:
    """Score one recording.

    Args:
        recording: a dialogue between two or more people, 16 kHz.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        people: the kind of human conversation to compare with.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    floor = follow_the_floor((turn.speaker, turn.start, turn.end) for turn in find_overlapping_turns(track))
    if len(floor.talk) < 2:
        raise CannotScore(f"needs at least two speakers, found {'one speaker' if floor.talk else 'no speaker'}")
    if len(floor.kinds) < FEWEST_EVENTS:
        raise CannotScore(
            f"the speaker changes {len(floor.kinds)} times; "
            f"below {FEWEST_EVENTS} changes the distance from people is mostly chance"
        )
    counts = count_people(people)
    low, high = bootstrap_distance(floor.kinds, counts)
    return Score(
        values={
            "human_distance": jensen_shannon_distance(floor.counts, counts),
            "gap_median": float(np.median(floor.offsets)) if floor.offsets else None,
            "overlap_share": floor.overlap / floor.speech,
            "backchannels_per_minute": 60 * floor.backchannels / floor.duration,
        },
        notes={
            "human_distance_ci95": [round(low, 4), round(high, 4)],
            "turns": floor.turns,
            "events": dict(zip(KINDS, floor.counts.tolist(), strict=True)),
            "share_of_talk": {
                speaker: round(seconds / sum(floor.talk.values()), 3) for speaker, seconds in floor.talk.items()
            },
            **track.notes,
        },
    )
