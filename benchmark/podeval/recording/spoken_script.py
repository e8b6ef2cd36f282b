"""Align a script with the transcript of its recording, and distinguish real differences from recogniser errors.

The recogniser transcribes each differing stretch again with only one second of context on either side, because its
errors depend on what surrounds the words; a second recogniser does the same if the profile has one for the language.
Words that either recogniser then finds do not count as omitted. Words that the first recogniser does not find again, or
in whose place the second finds little, count as invented by the recogniser, as do words at times when nobody speaks.
Omitted words take no time: if there is enough speech for up to three of them between their neighbours, they count as
omitted only if the second recogniser finds everything around them but none of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from podeval.audio.windows import Span, count_seconds_inside, join_spans
from podeval.errors import CannotScore
from podeval.models import registry
from podeval.models.interfaces import Aligner, Transcriber, Transcript, Word
from podeval.recording.recording import MODEL_RATE, Recording
from podeval.text.comparison.alignment import (
    TRUSTED_COVERAGE,
    HeardWord,
    ScriptAlignment,
    align_script,
    split_timed_words,
)
from podeval.text.comparison.content_differences import ContentDifference
from podeval.text.language import read_as
from podeval.text.script import Script
from podeval.text.tokens import Language, detect_language


def align_recording(recording: Recording, script: Script) -> tuple[ScriptAlignment, str]:
    """Align the script with the recording's transcript, transcribed in the same language as for `sptd` and `wer`.

    If less than half of the words are recognised in the script's language, the transcriber detects the language.

    Returns:
        The alignment, and the language that was transcribed.

    Raises:
        CannotScore: the script contains no words.
    """
    alignment, transcript = hear_script(recording, script)
    return alignment, transcript.language


def hear_script(recording: Recording, script: Script) -> tuple[ScriptAlignment, Transcript]:
    """Do the same as `align_recording`, but return the transcript instead of its language."""
    written = read_as(script.text)
    attempts = []
    for language in (None,) if written == "other" else (written or detect_language(script.text), None):
        transcript = time_transcript(recording, language)
        alignment = align_script(script, ((word.text, word.start, word.end) for word in transcript.words))
        if alignment.equal_words >= TRUSTED_COVERAGE * len(alignment.written):
            return alignment, transcript
        attempts.append((alignment, transcript))
    return max(attempts, key=lambda attempt: attempt[0].equal_words)


def time_transcript(recording: Recording, language: str | None = None) -> Transcript:
    """Return the recognised words, with times from the profile's forced aligner or, without one, the transcriber."""
    transcript = recording.transcript(language)
    if not transcript.words or not registry.list_cards(recording.profile, ("aligner",)):
        return transcript

    def ask(model: Aligner) -> NDArray[np.float64]:
        words = model.align(recording.mono(), transcript.words, transcript.language)
        return np.array([(word.start, word.end) for word in words])

    transcriber = registry.get_card("transcriber", recording.profile).identity
    times = recording.array_from("aligner", ask, transcriber=transcriber, language=language)
    words = zip(transcript.words, times.tolist(), strict=True)
    return replace(transcript, words=tuple(Word(word.text, start, end) for word, (start, end) in words))


def require_spoken(alignment: ScriptAlignment) -> None:
    """Refuse a recording of a different text.

    Raises:
        CannotScore: less than half of the script's words are recognised.
    """
    if alignment.equal_words < TRUSTED_COVERAGE * len(alignment.written):
        raise CannotScore("less than half of the script's words were recognised, so it is unknown who speaks when")


AROUND = 1.0
"""Seconds of the recording before and after a stretch that are transcribed with it."""

SPOKEN = 0.5
"""Minimum share of speech in the time span of words, and maximum share of speech in the time span of omitted words."""

SHORTEST_WORD = 3
"""Minimum number of letters in a single English word that counts; the recogniser skips or makes up shorter ones such as
"a" and "of".
"""

SWALLOWED = frozenset(
    ("and", "but", "the", "for", "are", "was", "had", "has", "her", "him", "his", "its", "can", "you", "our", "who")
)
"""English three-letter words that people barely pronounce and recognisers skip."""

SKIPPED = 3
"""Maximum number of words that the recogniser may have skipped if there is enough speech for them; the recogniser finds
more of these words on a second attempt."""

FEWEST_WORDS, STUCK = 0.5, 6
"""Words per second below which a recogniser is considered to have given up, and minimum number of words for a
recogniser to count as stuck if more than half of them are the same word.
"""

LOOP, NEAR = 4, 6
"""Minimum number of times that each word of a looping phrase occurs, and number of stretches on either side that a loop
may affect."""

CERTAIN = 6
"""Minimum number of added words that count as spoken if the first recogniser finds nearly the same ones twice,
regardless of the second recogniser's result.
"""

PAUSE = 0.8
"""Seconds of silence between stretches that are joined to be transcribed again."""

HEARD_AGAIN, HEARD_ALIKE, HEARD_BY_BOTH = 0.5, 0.8, 0.4
"""Minimum shares of a stretch's words that are found again, that are found nearly unchanged, and on which two
recognisers agree."""


def confirm_differences(
    recording: Recording,
    alignment: ScriptAlignment,
    differences: Sequence[ContentDifference],
    language: str,
    *,
    loops: bool = False,
) -> list[ContentDifference]:
    """Keep the differences that are confirmed when they are checked again, in their original order.

    Args:
        recording: the transcribed recording.
        alignment: its script aligned with the transcript.
        differences: the differences found in the alignment.
        language: the transcribed language.
        loops: whether a recogniser that keeps repeating a phrase counts as having given up at that point and nearby, in
            which case its additions count only if the second recogniser agrees; not used by `content_errors`, because
            it would change the values.
    """
    pace = median(
        [(word.end - word.start) / len(word.text) for word in alignment.heard if word.end > word.start] or [0.07]
    )
    speech = recording.speech()
    second = _has_second(recording.profile, language)
    looks = ["doubtful" if d.uncertain else _judge_by_time(d, alignment, speech, pace) for d in differences]
    likely = [
        each
        for each, look in zip(differences, looks, strict=True)
        if look == "likely" or (second and look == "doubtful")
    ]
    doubtful = [each for each, look in zip(differences, looks, strict=True) if look == "doubtful"]
    spans = [find_span(each, alignment, recording.duration) for each in likely]
    looked = [Span(max(0.0, s.start - AROUND), min(recording.duration, s.end + AROUND)) for s in spans]
    written = detect_language(alignment.script.text)

    again = _hear_alone(recording, looked, language, written, "transcriber", loops=loops)
    kept = [
        (each, span, look)
        for each, span, look in zip(likely, spans, looked, strict=True)
        if _stands(each, alignment, _inside(again, look))
    ]
    if not second or not kept:
        return [each for each, _, _ in kept]
    looked = [look for _, _, look in kept]
    other = _hear_alone(recording, looked, language, written, "second_transcriber", loops=loops)
    return [
        each
        for each, span, look in kept
        if _is_certain(each, alignment, _inside(again, look), loops=loops)
        or _agrees(each, alignment, _inside(other, look), _inside(other, span), doubtful=each in doubtful)
    ]


def _hear_alone(
    recording: Recording, spans: Sequence[Span], language: str, written: Language, job: str, *, loops: bool
) -> list[HeardWord]:
    """Transcribe stretches separately, twice if the recogniser gave up; return words in the script's spelling."""
    merged = join_spans(sorted(spans, key=lambda each: each.start), 0.0)
    words = list(listen_again(recording, merged, language, job=job))
    of_span = [[word for word in words if span.start <= (word.start + word.end) / 2 <= span.end] for span in merged]
    looped = [loops and _goes_round(inside) for inside in of_span]
    for at, span in enumerate(merged):
        inside = [word for word in words if span.start <= (word.start + word.end) / 2 <= span.end]
        if _gave_up(inside, span) or any(looped[max(0, at - NEAR) : at + NEAR + 1]):
            # A recogniser may fail because of a stretch's surroundings, although it recognises the stretch on its own.
            words = [word for word in words if word not in inside]
            words += listen_again(recording, [span], language, job=job)
    timed = [(word.text, word.start, max(word.start, word.end)) for word in words]
    return sorted(split_timed_words(timed, written), key=lambda word: word.start)


def _goes_round(words: Sequence[Word] | Sequence[HeardWord]) -> bool:
    """Return whether a recogniser repeated a phrase many times."""
    return len(words) > LOOP * len({word.text.lower() for word in words})


def _gave_up(words: Sequence[Word], span: Span) -> bool:
    """Return whether a recogniser wrote almost nothing, or kept repeating one word."""
    texts = [word.text.lower() for word in words]
    if len(texts) < FEWEST_WORDS * span.duration:
        return True
    return len(texts) >= STUCK and max(map(texts.count, set(texts))) > len(texts) / 2


def _has_second(profile: str, language: str) -> bool:
    """Return whether a profile has a second recogniser for a language."""
    first = registry.get_card("transcriber", profile)
    return any(
        card.id != first.id and (not card.languages or language in card.languages)
        for card in registry.list_cards(profile, ("second_transcriber",))
    )


def _inside(words: Sequence[HeardWord], span: Span) -> list[HeardWord]:
    return [word for word in words if span.start <= (word.start + word.end) / 2 <= span.end]


def find_span(difference: ContentDifference, alignment: ScriptAlignment, duration: float) -> Span:
    """Return the time of a difference; for omitted words, the gap between the previous and the next word."""
    heard = alignment.heard
    if difference.kind != "omitted":
        return Span(float(heard[difference.start].start), float(heard[difference.end - 1].end))
    before = heard[difference.start - 1].end if difference.start > 0 else 0.0
    after = heard[difference.start].start if difference.start < len(heard) else duration
    return Span(float(min(before, after)), float(max(before, after)))


def _judge_by_time(
    difference: ContentDifference, alignment: ScriptAlignment, speech: Sequence[Span], pace: float
) -> Literal["likely", "doubtful", "no"]:
    """Return whether a difference is plausible given the speech during it."""
    duration = max(speech[-1].end if speech else 0.0, alignment.heard[-1].end if alignment.heard else 0.0)
    span = find_span(difference, alignment, duration)
    voiced = float(count_seconds_inside([(span,)], speech)[0])
    omitted = difference.kind == "omitted"
    first, last = (difference.first, difference.last) if omitted else (difference.start, difference.end)
    words = [word.text for word in (alignment.written if omitted else alignment.heard)[first:last]]
    letters = sum(map(len, words))
    if len(words) == 1 and words[0].isascii() and (letters < SHORTEST_WORD or (omitted and words[0] in SWALLOWED)):
        return "no"
    if omitted:
        return "likely" if len(words) > SKIPPED or voiced < SPOKEN * letters * pace else "doubtful"
    return "likely" if voiced >= SPOKEN * span.duration else "no"


def _stands(difference: ContentDifference, alignment: ScriptAlignment, again: Sequence[HeardWord]) -> bool:
    """Return whether a difference persists when the stretch is transcribed separately."""
    heard_again = [word.text for word in again]
    if difference.kind == "omitted":
        words = [word.text for word in alignment.written[difference.first : difference.last]]
        around = [word.text for word in alignment.heard[max(0, difference.start - 8) : difference.start + 8]]
        return _share_heard(words, _without(heard_again, around)) < HEARD_AGAIN
    words = [word.text for word in alignment.heard[difference.start : difference.end]]
    return _share_heard(words, heard_again) >= HEARD_AGAIN and not _is_heard_as_written(
        difference, alignment, heard_again
    )


def _is_heard_as_written(difference: ContentDifference, alignment: ScriptAlignment, again: Sequence[str]) -> bool:
    """Return whether replaced words of the script are recognised on the second attempt."""
    words = [word.text for word in alignment.written[difference.first : difference.last]]
    around = alignment.heard[max(0, difference.start - 8) : difference.start + 8]
    left = _without(again, [word.text for word in around])
    return difference.kind == "replaced" and _share_heard(words, left) >= HEARD_AGAIN


def _is_certain(
    difference: ContentDifference, alignment: ScriptAlignment, again: Sequence[HeardWord], *, loops: bool
) -> bool:
    """Return whether many added words, which are not a looping phrase, are found again in a separate transcription."""
    added = alignment.heard[difference.start : difference.end]
    alike = _share_heard([word.text for word in added], [word.text for word in again]) >= HEARD_ALIKE
    return len(added) >= CERTAIN and alike and not (loops and _goes_round(added))


def _agrees(
    difference: ContentDifference,
    alignment: ScriptAlignment,
    around: Sequence[HeardWord],
    inside: Sequence[HeardWord],
    *,
    doubtful: bool,
) -> bool:
    """Return whether the second recogniser finds none of the omitted words, or some of the added words."""
    if difference.kind != "omitted":
        words = [word.text for word in alignment.heard[difference.start : difference.end]]
        enough = difference.kind == "replaced" or len(inside) >= HEARD_AGAIN * difference.words
        again = [word.text for word in around]
        as_written = _is_heard_as_written(difference, alignment, again)
        return enough and not as_written and _share_heard(words, again) >= HEARD_BY_BOTH
    if not _stands(difference, alignment, around):
        return False
    nearby = [word.text for word in around]
    start = difference.start
    sides = (alignment.heard[max(0, start - 2) : start], alignment.heard[start : start + 2])
    return not doubtful or all(
        any(_share_heard([word.text], [other]) for word in side for other in nearby) for side in sides if side
    )


def _without(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the words that are left after each of the other words has cancelled one equal word."""
    left = list(others)
    remaining = []
    for word in words:
        if word in left:
            left.remove(word)
        else:
            remaining.append(word)
    return remaining


def _share_heard(words: Sequence[str], heard: Sequence[str]) -> float:
    """Return the share of words that are also in the other list, in the same order, allowing for small misspellings."""
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


def listen_again(
    recording: Recording, spans: Sequence[Span], language: str | None = None, *, job: str = "transcriber"
) -> tuple[Word, ...]:
    """Transcribe stretches again, joined by pauses, or with the second transcriber; return times in the recording."""
    bounds = [(round(span.start * MODEL_RATE), round(span.end * MODEL_RATE)) for span in spans]
    if not bounds:
        return ()

    def ask(model: Transcriber) -> tuple[Word, ...]:
        # Join the stretches with pauses.
        samples, pause = recording.mono(), np.zeros(round(PAUSE * MODEL_RATE), np.float32)
        parts = [part for start, end in bounds for part in (samples[start:end], pause)]
        begins = np.cumsum([0, *(end - start + len(pause) for start, end in bounds)])[:-1]
        placed = []
        # Map each word to its stretch of the recording.
        for word in model.transcribe(np.concatenate(parts), language).words:
            at = max(0, int(np.searchsorted(begins / MODEL_RATE, (word.start + word.end) / 2, "right")) - 1)
            shift = (bounds[at][0] - begins[at]) / MODEL_RATE
            placed.append(Word(word.text, float(word.start + shift), float(word.end + shift)))
        return tuple(placed)

    spans_digest = hashlib.sha256(repr(bounds).encode()).hexdigest()
    return recording.fact_from(job, tuple[Word, ...], ask, language=language, again=spans_digest)
