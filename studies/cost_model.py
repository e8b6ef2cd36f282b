"""Estimate what a thousand systems cost: GPU hours, processor hours, storage, requests to the Hub.

    python studies/cost_model.py

Every figure in the estimate is defined here with its source. docs/scale.md shows the printed table, and a test compares
the two. `queue_simulation.py` uses the same figures to draw how long submissions take.
"""

from dataclasses import dataclass
from statistics import fmean

WORDS_PER_MINUTE = 150
"""English speech, as in the specification of podbench's length rule; the Chinese rate of 300 characters gives about the
same length.
"""

SINGLE_RTF = (1.061, 0.747, 1.351, 2.400, 1.065, 2.046, 3.801, 0.198, 0.172, 0.338)
"""Seconds of inference per second of audio for the ten systems in LFS-Bench's Table 9, on one RTX 4090."""

DIALOGUE_RTF = (4.717, 5.219, 0.219, 2.143, 4.092, 0.305)
"""The same for the six dialogue systems in Table 10."""

WRITER_SECONDS = (20.0, 40.0, 75.0, 150.0)
"""Seconds for one script of about 3,000 tokens, at 150, 75, 40 and 20 tokens per second; assumed, not measured."""

EMBEDDED_CORE_SECONDS = 258 / 600
"""Seconds of one processor core per second of audio for all embedded metrics, from docs/performance.md."""

FLAC_BYTES_PER_SECOND = 45_000
"""Mono at 22,050 Hz with 24 bits: 292 s of espeak's speech in a `podeval run` took up 13.0 MB."""

RESULT_BYTES = 11_000
"""Bytes in results.jsonl for the ten measurements of one item with their timelines, from the same run."""

COMMIT_REQUESTS = 3
"""Requests for one commit to a dataset repo: its state, the upload mode of files, and the commit itself (counted in
`hub.commits`).
"""

STATES = 6
"""Number of states (received, checked, queued, running, measured, published); each adds a file to the mirror of
requests.
"""

GATE_REQUESTS = 12
"""Requests for the facts of a repo: its card and configs, the headers of a few shards, and the licence of a base;
counted, not measured.
"""

MODEL_FILES = 12
"""Number of fetched files in a model's repo, each with a request for metadata and a transfer; assumed."""


@dataclass(frozen=True)
class Track:
    """One track of a benchmark: its number of items, and the seconds of audio that a system makes for one item."""

    name: str
    items: int
    audio_seconds: float


LFS = Track("lfs_bench", 1_059, 228.6 / WORDS_PER_MINUTE * 60)
"""1,059 texts are published, with 228.6 words on average (Table 1)."""

VOICE = Track("real_pod voice", 51, 503.2 / WORDS_PER_MINUTE * 60)
"""The mean length of the 51 scripts that ship with podeval."""

PODBENCH = Track("podbench", 800, 0.0)
WRITE = Track("real_pod write", 51, 0.0)
MTALK = Track("mtalk_bench", 270, 3 * 15.0)
"""90 dialogues with three turns for each of three dimensions (Table 4); 15 s per answer is assumed."""


@dataclass(frozen=True)
class Kind:
    """A kind of system: its share of all systems, its tracks, and its speeds."""

    name: str
    share: float
    tracks: tuple[Track, ...]
    rtf: tuple[float, ...] = ()

    @property
    def items(self) -> int:
        """Number of items in all its tracks."""
        return sum(track.items for track in self.tracks)

    @property
    def audio_hours(self) -> float:
        """Hours of audio that one system makes."""
        return sum(track.items * track.audio_seconds for track in self.tracks) / 3600

    def gpu_hours(self, speed: float) -> float:
        """Return the GPU hours of one system at one of the speeds: a real-time factor, or seconds per script."""
        return self.audio_hours * speed if self.audio_hours else self.items * speed / 3600

    @property
    def speeds(self) -> tuple[float, ...]:
        """The possible speeds of a system of this kind, all equally likely."""
        return self.rtf or WRITER_SECONDS


KINDS = (
    Kind("text-to-speech", 0.40, (LFS, VOICE), SINGLE_RTF),
    Kind("dialogue, podcast", 0.20, (LFS, VOICE), DIALOGUE_RTF),
    Kind("script-writer", 0.25, (PODBENCH, WRITE)),
    Kind("speech-to-speech", 0.15, (MTALK,), SINGLE_RTF),
)
"""The kinds of systems; their shares are assumed."""


@dataclass(frozen=True)
class Cost:
    """The cost of a number of systems."""

    systems: int
    gpu_hours: float
    core_hours: float
    audio_terabytes: float
    result_gigabytes: float
    requests: int


def cost(kind: Kind, systems: int) -> Cost:
    """Compute the cost of this many systems of a kind."""
    transfers = GATE_REQUESTS + 2 * MODEL_FILES + COMMIT_REQUESTS * (STATES + len(kind.tracks))
    return Cost(
        systems,
        systems * fmean(map(kind.gpu_hours, kind.speeds)),
        systems * kind.audio_hours * EMBEDDED_CORE_SECONDS,
        systems * kind.audio_hours * 3600 * FLAC_BYTES_PER_SECOND / 1e12,
        systems * kind.items * RESULT_BYTES / 1e9,
        systems * transfers,
    )


def table(systems: int) -> str:
    """Return the cost of this many systems as a Markdown table."""
    costs = [(kind.name, cost(kind, round(systems * kind.share))) for kind in KINDS]
    parts = [each for _, each in costs]
    whole = Cost(
        sum(part.systems for part in parts),
        sum(part.gpu_hours for part in parts),
        sum(part.core_hours for part in parts),
        sum(part.audio_terabytes for part in parts),
        sum(part.result_gigabytes for part in parts),
        sum(part.requests for part in parts),
    )
    head = "| kind | systems | GPU hours | core hours of measuring | audio, TB | results, GB | requests to the Hub |"
    rows = [head, "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, each in [*costs, ("all", whole)]:
        figures = (
            f"{each.systems:,}",
            f"{each.gpu_hours:,.0f}",
            f"{each.core_hours:,.0f}",
            f"{each.audio_terabytes:.2f}",
            f"{each.result_gigabytes:.1f}",
            f"{each.requests:,}",
        )
        rows.append(f"| {name} | {' | '.join(figures)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table(1_000))
