"""Speaker changes in a conversation: clips cut around them according to a diarised transcript, and a random selection
of these clips.

A diarised transcript has one line per segment, in chronological order: `[Speaker NAME] [start-end]: text`, with times
in seconds. A clip consists of the last few segments of one speaker and the first few of the next; PodEval cuts the
material for its listening tests in this way. Source: PodEval's public code, `Real_Pod/data_process.py`, whose published
examples are reproduced.
"""

import math
import random
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from podeval.errors import BadInput
from podeval.text.characters import HAN
from podeval.text.longest import MOST_WORDS, refuse_more

MOST_SECONDS, BACK, FORWARD = 10.0, 3, 2
"""A side of a clip ends when it exceeds this many seconds, or has this many segments before or after the change."""

SELECTED, MIN_SECONDS, MAX_SECONDS = 2, 15.0, 25.0
"""Number and duration of selected clips: the number is from PodEval's code, the durations are from its paper."""

PAUSE, LONGEST = 0.5, 30.0
"""The silence between words that ends a segment, and the maximum length of a segment (Whisper's window), in seconds."""

FORM = "[Speaker NAME] [start-end]: text"

_WIDEST, _NARROWEST = 35.0, 5.0
_LINE = re.compile(
    r"\s*\[Speaker\s+(?P<speaker>\S|\S.*?\S)\s*\]\s*"
    r"\[\s*(?P<start>[0-9]+(?:\.[0-9]*)?)\s*-\s*(?P<end>[0-9]+(?:\.[0-9]*)?)\s*\]\s*:(?P<text>.*)"
)
_SENTENCE_END = re.compile(r"(?<![.!?…。！？｡])[.!?…。！？｡]++[\"'”’»)\]」』）]*+$")
_ABBREVIATED = re.compile(r"(?:(?:[^\W\d_]\.)+|(?:dr|mr|mrs|ms|prof|st|vs)\.)", re.IGNORECASE)
_UNSPACED = rf"[{HAN}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\uff00-\uffef]"
_NO_SPACE = re.compile(rf"(?<={_UNSPACED}) | (?={_UNSPACED})|(?<=[^\W\d_]) (?=-[^\W\d_])")


@dataclass(frozen=True)
class Utterance:
    """A continuous piece of speech, not yet attributed to a speaker, with times in seconds."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Segment:
    """One line of a diarised transcript, with times in seconds."""

    speaker: str
    start: float
    end: float
    text: str

    def to_line(self) -> str:
        """Return the segment as a line of a diarised transcript, without a line ending."""
        return f"[Speaker {self.speaker}] [{self.start:.2f}-{self.end:.2f}]: {' '.join(self.text.split())}".rstrip()


@dataclass(frozen=True)
class DialogueClip:
    """A passage of a conversation in which the speaker changes.

    Attributes:
        number: position among all clips of the transcript in chronological order, from 1.
        start: beginning of the clip in the recording, in seconds.
        end: end of the clip in the recording, in seconds.
        first_speaker: the speaker before the change.
        second_speaker: the speaker after the change.
        text: the words of both, joined by one space.
    """

    number: int
    start: float
    end: float
    first_speaker: str
    second_speaker: str
    text: str

    @property
    def duration(self) -> float:
        """Duration in seconds, without the rounding error of the subtraction."""
        return round(self.end - self.start, 6)

    @property
    def file_name(self) -> str:
        """PodEval's name for the clip's audio file; characters that are unsafe in file names are replaced."""
        speakers = f"{_make_file_safe(self.first_speaker)}-{_make_file_safe(self.second_speaker)}"
        return f"dialog_{self.number}_{speakers}_{self.start:.2f}-{self.end:.2f}.wav"

    def to_json(self) -> dict[str, object]:
        """Return the clip in the form that PodEval publishes, without its number and file name."""
        return {
            "time_range": {"start": self.start, "end": self.end},
            "first_speaker": self.first_speaker,
            "second_speaker": self.second_speaker,
            "text": self.text,
        }


@dataclass(frozen=True)
class Selection:
    """Clips selected by duration.

    Attributes:
        clips: the selected clips, in chronological order.
        requested: number of clips requested.
        eligible: number of clips with a duration within the limits; the selection is drawn from these.
        min_seconds: the lower limit after any widening.
        max_seconds: the upper limit after any widening.
        seed: seed of the draw.
    """

    clips: tuple[DialogueClip, ...]
    requested: int
    eligible: int
    min_seconds: float
    max_seconds: float
    seed: int

    def to_json(self) -> dict[str, object]:
        """Return everything except the clips as plain data."""
        return {
            "asked": self.requested,
            "found": self.eligible,
            "min_seconds": self.min_seconds,
            "max_seconds": self.max_seconds,
            "seed": self.seed,
        }


def parse_diarised(text: str) -> list[Segment]:
    """Parse the segments of a diarised transcript; blank lines, a byte order mark and any line endings are accepted.

    Raises:
        BadInput: there are no lines, or a line is malformed, ends before it starts, or is out of order; the message
            names the line.
    """
    segments: list[Segment] = []
    # splitlines() is not used, because some of the line endings that it recognises may occur within a text.
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")), start=1):
        if not line.strip():
            continue
        segment = _parse_line(line, number)
        if segments and segment.start < segments[-1].start:
            raise BadInput(
                f"line {number} begins at {segment.start:.2f} s, before the line above it at {segments[-1].start:.2f} "
                "s; put the lines in chronological order"
            )
        segments.append(segment)
    if not segments:
        raise BadInput(f"the transcript is empty; it should contain lines of the form {FORM}")
    return segments


def _parse_line(line: str, number: int) -> Segment:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadInput(f"line {number} is not of the form {FORM} (times in seconds): {line.strip()[:60]!r}")
    start, end = float(match["start"]), float(match["end"])
    if not math.isfinite(end) or end < start:
        raise BadInput(
            f"line {number} ends ({match['end']} s) before it starts ({match['start']} s); correct its times"
        )
    return Segment(match["speaker"], start, end, match["text"].strip())


def join_utterances(words: Iterable[tuple[str, float, float]]) -> list[Utterance]:
    """Join words into utterances as Whisper does: they end with a sentence, before a pause, or after 30 s.

    Args:
        words: (text, start, end) in seconds, with punctuation attached to its word.

    Raises:
        BadInput: there are more words than podeval reads (`podeval.text.longest`).
    """
    segments: list[Utterance] = []
    pending: list[str] = []
    start = end = 0.0
    # A word that is transcribed beyond the end of its chunk may precede words of the next chunk.
    ordered = sorted(words, key=lambda word: word[1])
    refuse_more(len(ordered), MOST_WORDS, "words")
    for text, begins, ends in ordered:
        if pending and (begins - end > PAUSE or ends - start > LONGEST or _ends_sentence(pending[-1])):
            segments.append(_join_words(pending, start, end))
            pending = []
        if not pending:
            start = begins
        pending.append(text)
        end = ends
    return [*segments, *([_join_words(pending, start, end)] if pending else [])]


def attribute_to_speakers(
    spoken: Iterable[Utterance], turns: Iterable[tuple[str, float, float]]
) -> tuple[list[Segment], list[Utterance]]:
    """Attribute each utterance to the speaker whose turns overlap it longest.

    Args:
        spoken: the utterances, in chronological order.
        turns: (speaker, start, end) in seconds; turns of several speakers may overlap.

    Returns:
        The segments with their speakers, and the utterances that do not overlap any turn. If several speakers overlap
        an utterance equally, it belongs to the speaker who began first.
    """
    # Sorted starts and the length of the longest turn limit the search for overlapping turns.
    ordered = sorted(turns, key=lambda turn: turn[1])
    starts = [start for _, start, _ in ordered]
    longest = max((end - start for _, start, end in ordered), default=0.0)
    segments, nobody = [], []
    for utterance in spoken:
        # Seconds of overlap by speaker.
        shares: dict[str, float] = {}
        near = slice(bisect_left(starts, utterance.start - longest), bisect_left(starts, utterance.end))
        for speaker, start, end in ordered[near]:
            if (share := min(end, utterance.end) - max(start, utterance.start)) > 0:
                shares[speaker] = shares.get(speaker, 0.0) + share
        if shares:
            speaker = max(shares, key=shares.__getitem__)
            segments.append(Segment(speaker, utterance.start, utterance.end, utterance.text))
        else:
            nobody.append(utterance)
    return segments, nobody


def cut_dialogue_clips(
    segments: Sequence[Segment], *, most_seconds: float = MOST_SECONDS, back: int = BACK, forward: int = FORWARD
) -> list[DialogueClip]:
    """Cut a clip around every speaker change.

    A clip contains the speaker's last segments before the change, which are added backwards from the nearest until
    together they are longer than `most_seconds` or there are `back` of them, and then the next speaker's first
    segments, by the same rule and at most `forward`. Both sides have at least one segment. Empty texts do not change
    the clip's text.

    Args:
        segments: the lines of the transcript, in chronological order.
        most_seconds: limit for one side; the segment that exceeds it is included.
        back: maximum number of segments before the change. PodEval's comment says 2, but its code uses 3.
        forward: maximum number of segments after the change.

    Raises:
        BadInput: a limit does not allow any segment.
    """
    if back < 1 or forward < 1 or not most_seconds >= 0:
        raise BadInput(f"a clip needs at least one segment per side, not {back} and {forward} in {most_seconds:g} s")
    clips: list[DialogueClip] = []
    for index, (last, first) in enumerate(pairwise(segments)):
        if last.speaker == first.speaker:
            continue
        before, after = [last], [first]
        # Plain floats, as in PodEval: a side of 10.00 s may exceed 10 through rounding, and the clips depend on it.
        for segment in reversed(segments[max(index - back + 1, 0) : index]):
            if segment.speaker != last.speaker or last.end - before[0].start > most_seconds:
                break
            before.insert(0, segment)
        for segment in segments[index + 2 : index + 1 + forward]:
            if segment.speaker != first.speaker or after[-1].end - first.start > most_seconds:
                break
            after.append(segment)
        text = " ".join(segment.text for segment in (*before, *after) if segment.text)
        clips.append(DialogueClip(len(clips) + 1, before[0].start, after[-1].end, last.speaker, first.speaker, text))
    return clips


def explain_no_clips(segments: Sequence[Segment]) -> str | None:
    """Return a sentence that explains why a transcript has no speaker change; None if there is a speaker change."""
    speakers = sorted({segment.speaker for segment in segments})
    if not speakers:
        return "no speech is assigned to a speaker; turn-taking needs at least two speakers"
    if len(speakers) == 1:
        return f"there is only one speaker ({speakers[0]}); turn-taking needs at least two"
    return None


def select_clips(
    clips: Sequence[DialogueClip],
    count: int = SELECTED,
    *,
    min_seconds: float = MIN_SECONDS,
    max_seconds: float = MAX_SECONDS,
    seed: int = 0,
) -> Selection:
    """Draw clips whose duration is within limits; if there are no more of them than requested, use them all.

    While too few clips fit, the limits are widened by 1 s each, as long as the lower one is above 5 s and the upper one
    below 35 s. The draw is without replacement; the same clips, limits and seed give the same selection. PodEval draws
    without a seed and fails if too few clips remain; its code starts from 10 to 30 s, while its paper states 15 to 25
    s.

    Raises:
        BadInput: fewer than one clip is requested, or no duration can meet the limits.
    """
    if count < 1:
        raise BadInput(f"at least one clip must be selected, not {count}")
    if not 0 <= min_seconds <= max_seconds < math.inf:
        raise BadInput(f"no clip can last {min_seconds:g} to {max_seconds:g} s; choose different limits")

    def find_fitting() -> list[DialogueClip]:
        return [clip for clip in clips if min_seconds <= clip.duration <= max_seconds]

    candidates = find_fitting()
    while len(candidates) < min(count, len(clips)) and min_seconds > _NARROWEST and max_seconds < _WIDEST:
        min_seconds, max_seconds = min_seconds - 1, max_seconds + 1
        candidates = find_fitting()
    drawn = random.Random(seed).sample(candidates, min(count, len(candidates)))  # noqa: S311 - the draw must be repeatable
    chosen = tuple(sorted(drawn, key=lambda clip: clip.number))
    return Selection(chosen, count, len(candidates), min_seconds, max_seconds, seed)


def _ends_sentence(word: str) -> bool:
    return bool(_SENTENCE_END.search(word)) and not _ABBREVIATED.fullmatch(word)


def _join_words(words: Sequence[str], start: float, end: float) -> Utterance:
    """Join words into one utterance, with times rounded to two decimals as in a transcript."""
    text = words[0] if len(words) == 1 and " " not in words[0] else _NO_SPACE.sub("", " ".join(words))
    return Utterance(text, round(float(start), 2), round(float(max(start, end)), 2))


def _make_file_safe(name: str) -> str:
    """Reduce a name to at most 60 bytes of letters, digits, `_`, `.` and `-`, without a leading `.` or `-`."""
    plain = re.sub(r"[^\w.-]+", "_", name).lstrip(".-")
    return plain.encode()[:60].decode("utf-8", "ignore") or "_"
