"""What a thousand systems cost on paper: GPU hours, processor hours, storage, requests to the Hub.

    python studies/cost_model.py

Every figure that goes in is here with where it comes from; docs/scale.md shows what this prints, and a test compares
them. `queue_simulation.py` draws how long submissions take from the same figures.
"""

from dataclasses import dataclass
from statistics import fmean

WORDS_PER_MINUTE = 150
"""English speech: spec of podbench's length rule; Chinese is 300 characters, about as long."""

SINGLE_RTF = (1.061, 0.747, 1.351, 2.400, 1.065, 2.046, 3.801, 0.198, 0.172, 0.338)
"""Seconds of inference for a second of audio: the ten systems of LFS-Bench, Table 9, on one RTX 4090."""

DIALOGUE_RTF = (4.717, 5.219, 0.219, 2.143, 4.092, 0.305)
"""The same for the six dialogue systems of Table 10."""

WRITER_SECONDS = (20.0, 40.0, 75.0, 150.0)
"""For one script of about 3,000 tokens at 150, 75, 40 and 20 tokens a second: assumed, not measured."""

EMBEDDED_CORE_SECONDS = 258 / 600
"""Of one processor core for a second of audio, all embedded metrics: docs/performance.md."""

FLAC_BYTES_PER_SECOND = 45_000
"""Mono at 22,050 Hz and 24 bits: 292 s of espeak's speech by `podeval run` took 13.0 MB."""

RESULT_BYTES = 11_000
"""Of one item's ten measurements with their timelines, in results.jsonl: the same run."""

COMMIT_REQUESTS = 3
"""One addition to a dataset repo: where it stands, how files are sent, the commit (`hub.commits`, read)."""

STATES = 6
"""received, checked, queued, running, measured, published: as many files in the mirror of requests."""

GATE_REQUESTS = 12
"""Facts of the repo, its card and configs, headers of a few shards, licence of a base: `hub.facts`, read."""

MODEL_FILES = 12
"""Files of a model's repo that are fetched, each with a look and a transfer; assumed."""


@dataclass(frozen=True)
class Track:
    """One track of a benchmark: how many items, and how much a system makes for one."""

    name: str
    items: int
    audio_seconds: float


LFS = Track("lfs_bench", 1_059, 228.6 / WORDS_PER_MINUTE * 60)
"""1,059 texts are published; 228.6 words on average: Table 1."""

VOICE = Track("real_pod voice", 51, 503.2 / WORDS_PER_MINUTE * 60)
"""The mean of the 51 scripts that ship with podeval."""

PODBENCH = Track("podbench", 800, 0.0)
WRITE = Track("real_pod write", 51, 0.0)
MTALK = Track("mtalk_bench", 270, 3 * 15.0)
"""90 dialogues for each of three dimensions, three turns (Table 4); 15 s for an answer, assumed."""


@dataclass(frozen=True)
class Kind:
    """A kind of system: its share of all, what it takes part in, and how fast its kind is."""

    name: str
    share: float
    tracks: tuple[Track, ...]
    rtf: tuple[float, ...] = ()

    @property
    def items(self) -> int:
        """Of all its tracks."""
        return sum(track.items for track in self.tracks)

    @property
    def audio_hours(self) -> float:
        """That one system makes."""
        return sum(track.items * track.audio_seconds for track in self.tracks) / 3600

    def gpu_hours(self, speed: float) -> float:
        """Of one system whose speed is one of its kind's: a real-time factor, or seconds for a script."""
        return self.audio_hours * speed if self.audio_hours else self.items * speed / 3600

    @property
    def speeds(self) -> tuple[float, ...]:
        """What a system of the kind may be like, each as likely."""
        return self.rtf or WRITER_SECONDS


KINDS = (
    Kind("text-to-speech", 0.40, (LFS, VOICE), SINGLE_RTF),
    Kind("dialogue, podcast", 0.20, (LFS, VOICE), DIALOGUE_RTF),
    Kind("script-writer", 0.25, (PODBENCH, WRITE)),
    Kind("speech-to-speech", 0.15, (MTALK,), SINGLE_RTF),
)
"""The shares are assumed."""


@dataclass(frozen=True)
class Cost:
    """Of a number of systems."""

    systems: int
    gpu_hours: float
    core_hours: float
    audio_terabytes: float
    result_gigabytes: float
    requests: int


def cost(kind: Kind, systems: int) -> Cost:
    """What so many systems of a kind cost."""
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
    """The cost of so many systems, as a table of Markdown."""
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
