"""Which differences between a script and a transcript are the recogniser's: a second look at each.

The recogniser is asked once more, for the stretch and a second on both sides alone, since its errors hang on what
surrounds the words. Words that are heard then were not left out; words that are not heard again were its invention.
So are words where nobody speaks. Left out words leave no time: where voice enough for up to three of them lies
between their neighbours, the recogniser skipped them.
"""

from collections.abc import Sequence
from statistics import median

from rapidfuzz.distance import Levenshtein

from podeval.analysis.recording import Recording
from podeval.audio.windows import Span, seconds_inside
from podeval.text.alignment import HeardWord, split_timed_words
from podeval.text.content_differences import ContentDifference
from podeval.text.script_alignment import ScriptAlignment
from podeval.text.tokens import detect_language

AROUND = 1.0
"""Seconds before and after a stretch that are listened to with it."""

SPOKEN = 0.5
"""Of the time of words that has to be speech, and of that of words left out that may be."""

SHORTEST_WORD = 3
"""Letters of a single English word below which it is the recogniser's: it skips and makes up "a" and "of" by itself."""

SKIPPED = 3
"""Words that the recogniser may have skipped where there is voice enough for them; more it would hear again."""

HEARD_AGAIN = 0.5
"""Share of a stretch's words that are heard again."""


def confirm_differences(
    recording: Recording, alignment: ScriptAlignment, differences: Sequence[ContentDifference], language: str
) -> list[ContentDifference]:
    """Keep the differences that a second look confirms, in their order.

    Args:
        recording: what was transcribed.
        alignment: its script beside the transcript.
        differences: of the alignment.
        language: that was transcribed.
    """
    pace = median(
        [(word.end - word.start) / len(word.text) for word in alignment.heard if word.end > word.start] or [0.07]
    )
    speech = recording.speech()
    likely = [each for each in differences if _is_plausible(each, alignment, speech, pace)]
    spans = [find_span(each, alignment, recording.duration) for each in likely]
    looked = [Span(max(0.0, s.start - AROUND), min(recording.duration, s.end + AROUND)) for s in spans]
    merged = _merge(looked)
    written = detect_language(alignment.script.text)
    again = split_timed_words(
        [(word.text, word.start, max(word.start, word.end)) for word in recording.listen_again(merged, language)],
        written,
    )
    return [
        each
        for each, span in zip(likely, looked, strict=True)
        if _stands(each, alignment, [word for word in again if span.start <= (word.start + word.end) / 2 <= span.end])
    ]


def find_span(difference: ContentDifference, alignment: ScriptAlignment, duration: float) -> Span:
    """Where a difference is heard; of words left out, from the end of the word before to the beginning of the next."""
    heard = alignment.heard
    if difference.kind != "omitted":
        return Span(float(heard[difference.start].start), float(heard[difference.end - 1].end))
    before = heard[difference.start - 1].end if difference.start > 0 else 0.0
    after = heard[difference.start].start if difference.start < len(heard) else duration
    return Span(float(min(before, after)), float(max(before, after)))


def _is_plausible(
    difference: ContentDifference, alignment: ScriptAlignment, speech: Sequence[Span], pace: float
) -> bool:
    """Whether the time that a difference takes allows it."""
    duration = max(speech[-1].end if speech else 0.0, alignment.heard[-1].end if alignment.heard else 0.0)
    span = find_span(difference, alignment, duration)
    voiced = float(seconds_inside([(span,)], speech)[0])
    omitted = difference.kind == "omitted"
    first, last = (difference.first, difference.last) if omitted else (difference.start, difference.end)
    words = [word.text for word in (alignment.written if omitted else alignment.heard)[first:last]]
    letters = sum(map(len, words))
    if len(words) == 1 and words[0].isascii() and letters < SHORTEST_WORD:
        return False
    if omitted:
        return len(words) > SKIPPED or voiced < SPOKEN * letters * pace
    return voiced >= SPOKEN * span.duration


def _merge(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda each: each.start):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _stands(difference: ContentDifference, alignment: ScriptAlignment, again: Sequence[HeardWord]) -> bool:
    """Whether a difference is there when the stretch is heard by itself."""
    heard_again = [word.text for word in again]
    if difference.kind == "omitted":
        words = [word.text for word in alignment.written[difference.first : difference.last]]
        around = [word.text for word in alignment.heard[max(0, difference.start - 8) : difference.start + 8]]
        return _share_heard(words, _without(heard_again, around)) < HEARD_AGAIN
    words = [word.text for word in alignment.heard[difference.start : difference.end]]
    return _share_heard(words, heard_again) >= HEARD_AGAIN


def _without(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words that are not among the others, each of which takes one away."""
    left = list(others)
    remaining = []
    for word in words:
        if word in left:
            left.remove(word)
        else:
            remaining.append(word)
    return remaining


def _share_heard(words: Sequence[str], heard: Sequence[str]) -> float:
    """Which share of words stands in the other list, in order, letters that differ a little allowed."""
    if not words:
        return 0.0
    equal = sum(
        edit.src_end - edit.src_start
        for edit in Levenshtein.opcodes(words, heard)
        if edit.tag == "equal"
        or (
            edit.tag == "replace"
            and Levenshtein.normalized_similarity(
                "".join(words[edit.src_start : edit.src_end]), "".join(heard[edit.dest_start : edit.dest_end])
            )
            >= 0.6
        )
    )
    return equal / len(words)
