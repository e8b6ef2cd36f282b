"""Compute people's turn-taking from public turn times, and the number of turns for which a distance from it is stable.

    python studies/turn_times.py people meeting=AMI/only_words/rttms broadcast=VOXCONVERSE
    python studies/turn_times.py stability meeting=AMI/only_words/rttms broadcast=VOXCONVERSE

AMI is https://github.com/pyannote/AMI-diarization-setup at 5182c80, VOXCONVERSE https://github.com/joonson/voxconverse
at 24bf60b. `people` counts the events on the floor in each kind of conversation, and prints the facts that podeval
ships (`stats/data/people_turn_taking.json`). `stability` compares stretches of one conversation with all others of its
kind. It measures their distance, how much two adjacent stretches differ, and the distance of the same number of turns
concatenated with equal gaps.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podeval.stats.turn_taking import KINDS, OFFSETS, FloorEvents, follow_the_floor, jensen_shannon_distance

EVENTS = (5, 10, 15, 20, 30, 50, 100, 200)
SOURCES = {
    "meeting": {
        "about": "170 meetings of mostly four people, by the words that annotators heard",
        "source": "AMI Meeting Corpus 1.6.2 (Carletta et al. 2005), turn times of AMI-diarization-setup at 5182c80",
        "licence": "CC BY 4.0 (annotations), Apache-2.0 (turn times)",
        "url": "https://github.com/pyannote/AMI-diarization-setup",
    },
    "broadcast": {
        "about": "debates, panels, interviews and news with two and more voices",
        "source": "VoxConverse 0.3 (Chung et al. 2020), turn times at 24bf60b",
        "licence": "CC BY 4.0",
        "url": "https://github.com/joonson/voxconverse",
    },
}
"""The source of each kind of conversation."""

EQUAL_GAP = 0.3
"""The gap, in seconds, between turns that are concatenated."""


COLUMNS = (
    "people, median",
    "people, 95 %",
    "two stretches differ, median",
    "two stretches differ, 95 %",
    "equal gaps, median",
    "equal gaps, 5 %",
)


@dataclass(frozen=True)
class Stability:
    """Distances of stretches of `events` events: their medians, and the 95 % quantile of the difference between two
    stretches.
    """

    events: int
    stretches: int
    people: float
    people_95: float
    halves_differ: float
    halves_differ_95: float
    equal_gaps: float
    equal_gaps_05: float


def read_rttm(path: Path) -> list[tuple[str, float, float]]:
    """Read who speaks when from a file in the Rich Transcription Time Marked format."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("SPEAKER")]
    return [(line[7], float(line[3]), float(line[3]) + float(line[4])) for line in lines]


def read_conversations(folder: Path) -> list[FloorEvents]:
    """Return the events in each conversation of a folder in which someone answers someone else."""
    followed = (follow_the_floor(read_rttm(path)) for path in sorted(folder.rglob("*.rttm")))
    return [floor for floor in followed if floor.kinds]


def count_people(conversations: list[FloorEvents]) -> dict[str, object]:
    """Return the facts about one kind of conversation."""
    minutes = sum(floor.duration for floor in conversations) / 60
    return {
        "conversations": len(conversations),
        "minutes": round(minutes),
        "counts": dict(zip(KINDS, sum(floor.counts for floor in conversations).tolist(), strict=True)),
        "gap_median": round(float(np.median(np.concatenate([floor.offsets for floor in conversations]))), 3),
        "overlap_share": round(
            sum(floor.overlap for floor in conversations) / sum(floor.speech for floor in conversations), 4
        ),
        "backchannels_per_minute": round(sum(floor.backchannels for floor in conversations) / minutes, 2),
    }


def cut(kinds: tuple[int, ...], events: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the counts of two adjacent stretches of this many events, from beginning to end."""
    for start in range(0, len(kinds) - 2 * events + 1, 2 * events):
        both = (kinds[start : start + events], kinds[start + events : start + 2 * events])
        first, second = (np.bincount(half, minlength=len(KINDS)) for half in both)
        yield first, second


def measure_stability(conversations: list[FloorEvents], events: int) -> Stability | None:
    """Compare stretches of every conversation with all other conversations; return None if no conversation is long
    enough.
    """
    total = sum(floor.counts for floor in conversations)
    equal = np.bincount([int(np.searchsorted(OFFSETS, EQUAL_GAP))], minlength=len(KINDS)) * events
    distances, differences, strung = [], [], []
    for floor in conversations:
        others = total - floor.counts
        for halves in cut(floor.kinds, events):
            first, second = (jensen_shannon_distance(half, others) for half in halves)
            distances += [first, second]
            differences.append(abs(first - second))
            strung.append(jensen_shannon_distance(equal, others))
    if len(differences) < 5:
        return None
    return Stability(
        events,
        len(distances),
        *(round(float(value), 3) for value in (np.median(distances), np.percentile(distances, 95))),
        *(round(float(value), 3) for value in (np.median(differences), np.percentile(differences, 95))),
        *(round(float(value), 3) for value in (np.median(strung), np.percentile(strung, 5))),
    )


def main() -> None:
    """Print the facts as JSON, or a table with a row for each kind and number of events."""
    what, *named = sys.argv[1:]
    folders = {kind: Path(folder) for kind, _, folder in (argument.partition("=") for argument in named)}
    conversations = {kind: read_conversations(folder) for kind, folder in folders.items()}
    if what == "people":
        print(json.dumps({kind: SOURCES[kind] | count_people(each) for kind, each in conversations.items()}, indent=1))
        return
    print("| kind | events | stretches | " + " | ".join(COLUMNS) + " |\n" + "|---" * (3 + len(COLUMNS)) + "|")
    for kind, each in conversations.items():
        for measured in filter(None, (measure_stability(each, events) for events in EVENTS)):
            values = asdict(measured)
            cells = [
                kind,
                values.pop("events"),
                values.pop("stretches"),
                *(f"{value:.2f}" for value in values.values()),
            ]
            print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
