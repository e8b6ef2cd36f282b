"""A live conversation on two channels: the person's speech and the system's speech as a listener hears it, with times.

Times are seconds since the conversation began, according to this machine's clock. The system's audio plays in order as
it arrives, and stops when the server says that the person is speaking: unplayed audio is dropped. Speech is audio
within 30 dB of its channel's level, divided by pauses as in `podeval.stats.turn_taking`; noise after the words counts
as speech.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np

from podeval.audio.samples import SILENT_SAMPLE, measure_level, resample
from podeval.stats.turn_taking import KINDS, SAME_UNIT, follow_the_floor, join_units
from podeval.systems.speech import Samples

QUIET, SHORTEST = 1e-3, 0.02
"""Magnitude up to which a sample always counts as silence, and length in seconds up to which a sound counts as a click.
"""

Stretch = tuple[float, float]
"""Start and end in seconds."""


@dataclass(frozen=True)
class PlacedSound:
    """Audio with its position in a conversation: one of the person's turns, or system audio that arrived at one time.

    Attributes:
        turn: number of the person's turn, or of the turn that is answered.
        start: the time of its first sample.
        samples: the samples, shape (frames,).
        rate: sampling rate in Hz.
        response: id of the server response that it belongs to.
        arrival: the time at which it arrived.
    """

    turn: int
    start: float
    samples: Samples
    rate: int
    response: str = ""
    arrival: float = 0.0

    @property
    def end(self) -> float:
        """Time of the end of its last sample."""
        return self.start + len(self.samples) / self.rate


@dataclass
class SystemChannel:
    """The system's audio as a listener hears it.

    Attributes:
        pieces: audio that was played or is waiting to be played, in order, at one rate.
        interrupted: times at which the system's speech was interrupted.
        stalls: whether playback stalls if a response arrives too late to continue without a gap.
    """

    stalls: bool = True
    pieces: list[PlacedSound] = field(default_factory=list)
    interrupted: list[float] = field(default_factory=list)

    @property
    def end(self) -> float:
        """Time at which all received audio has been played; 0 if no audio was received."""
        return self.pieces[-1].end if self.pieces else 0.0

    def play(self, piece: PlacedSound) -> None:
        """Play received audio after the audio that is waiting."""
        last = self.pieces[-1] if self.pieces else piece
        follows = last.response == piece.response and last is not piece
        start = last.end if follows and not self.stalls else max(piece.arrival, self.end)
        samples = resample(piece.samples, piece.rate, last.rate)
        self.pieces.append(replace(piece, start=start, samples=samples, rate=last.rate))

    def stop(self, at: float) -> str | None:
        """Drop the audio that has not been played by a given time; return the id of the response that was playing, if
        any.
        """
        playing = next((piece.response for piece in self.pieces if piece.end > at), None)
        begun = (piece for piece in self.pieces if piece.start < at)
        parts = [replace(each, samples=each.samples[: round((at - each.start) * each.rate)]) for each in begun]
        self.pieces = [piece for piece in parts if len(piece.samples)]
        return playing

    def measure_played(self, response: str) -> int:
        """Return the length in whole milliseconds of a response's audio that has been or will be played."""
        return int(sum(1000 * (piece.end - piece.start) for piece in self.pieces if piece.response == response))

    def list_answer(self, turn: PlacedSound) -> list[PlacedSound]:
        """List the pieces that answer a turn, excluding those that ended before the turn did, unless there are no
        others.
        """
        pieces = [piece for piece in self.pieces if piece.turn == turn.turn]
        return [piece for piece in pieces if piece.end > turn.end] or pieces


def render(pieces: Sequence[PlacedSound], begin: float) -> PlacedSound:
    """Return the audio of one or more pieces as a single array that starts at a given time, with silence between
    them.
    """
    rate = pieces[0].rate
    samples = np.zeros(round((pieces[-1].end - begin) * rate), np.float32)
    for piece in pieces:
        first = round((piece.start - begin) * rate)
        room = samples[first : first + len(piece.samples)]
        room[:] = piece.samples[: len(room)]
    return PlacedSound(pieces[0].turn, begin, samples, rate)


def render_both(turns: Sequence[PlacedSound], channel: SystemChannel) -> tuple[Samples, int]:
    """Return both channels, (frames, 2), with the person's first, and their rate in Hz, which is the system's rate."""
    rate = channel.pieces[0].rate
    spoken = [replace(turn, samples=resample(turn.samples, turn.rate, rate), rate=rate) for turn in turns]
    channels = [render(pieces, 0.0).samples for pieces in (spoken, channel.pieces)]
    frames = max(map(len, channels))
    return np.stack([np.pad(samples, (0, frames - len(samples))) for samples in channels], axis=1), rate


def find_stretches(sound: PlacedSound) -> list[Stretch]:
    """Find the start and end of each stretch of speech in a piece of audio."""
    limit = max(QUIET, SILENT_SAMPLE * measure_level(sound.samples, sound.rate))
    loud = np.flatnonzero(np.abs(sound.samples) > limit)
    if not len(loud):
        return []
    pauses = np.flatnonzero(np.diff(loud) >= SAME_UNIT * sound.rate)
    starts, ends = loud[[0, *(pauses + 1)]] / sound.rate, (loud[[*pauses, -1]] + 1) / sound.rate
    stretches = zip((sound.start + starts).tolist(), (sound.start + ends).tolist(), strict=True)
    return [(start, end) for start, end in stretches if end - start >= SHORTEST]


def measure_live_turns(
    turns: Mapping[str, PlacedSound],
    channel: SystemChannel,
    leave: Callable[[float], float],
    full_duplex: bool = False,
) -> dict[str, Any]:
    """Measure the system's turn-taking with `podeval.stats.turn_taking`, applied to both channels.

    Args:
        turns: the person's turns (at least one) by id, in order.
        channel: the system's channel, which must contain audio.
        leave: function that returns the time at which the person's audio for a given moment was sent.
        full_duplex: whether the server never reports a stop, so a system that falls silent before the person does
            counts as stopped.

    Returns:
        Plain data. `replies` contains the `reply_delay` of each turn: the time from the end of the person's speech to
        the beginning of the system's next speech (negative if they overlap; None if there is no such speech).
        `interruptions` contains the cases in which a person begins while the system is speaking, with `stopping_time`,
        the seconds until the system is silent, and `stopped`, whether the system was stopped rather than having
        finished. The data also contain the medians of the delays and of the stopping times (the latter only over the
        cases in which the system was stopped), and `overlap_share`, `backchannels_per_minute` and `events`, as in the
        metric `turn_taking`.
    """
    # A silent recording counts as speech over its full length.
    speech = {name: find_stretches(turn) or [(turn.start, turn.end)] for name, turn in turns.items()}
    pieces = [[piece for piece in channel.pieces if piece.turn == turn.turn] for turn in turns.values()]
    answers = [find_stretches(render(each, each[0].start)) if each else [] for each in pieces]
    replies, interruptions = [], []
    for number, (name, stretches) in enumerate(speech.items()):
        begin, end = leave(stretches[0][0]), leave(stretches[-1][1] - 1e-6)
        delay = next((start - end for start, stop in answers[number] if stop > end), None)
        replies.append({"turn": name, "reply_delay": None if delay is None else round(delay, 3)})
        before = join_units(("system", *stretch) for answer in answers[:number] for stretch in answer)
        for stop in (stop for _, start, stop in before if start < begin < stop):
            stopped = any(begin <= at <= stop + SAME_UNIT for at in channel.interrupted) or (
                full_duplex and stop <= end
            )
            interruptions.append({"turn": name, "stopping_time": round(stop - begin, 3), "stopped": stopped})
    system = [("system", *stretch) for answer in answers for stretch in answer]
    person = [("person", *stretch) for stretches in speech.values() for stretch in stretches]
    floor = follow_the_floor([*system, *person])
    return {
        "replies": replies,
        "interruptions": interruptions,
        "reply_delay": _take_median([each["reply_delay"] for each in replies]),
        "stopping_time": _take_median([each["stopping_time"] for each in interruptions if each["stopped"]]),
        "overlap_share": round(floor.overlap / floor.speech, 4),
        "backchannels_per_minute": round(60 * floor.backchannels / floor.duration, 3),
        "events": dict(zip(KINDS, floor.counts.tolist(), strict=True)),
    }


def _take_median(values: Sequence[Any]) -> float | None:
    numbers = [value for value in values if value is not None]
    return median(numbers) if numbers else None
