"""A book compared with its recordings: every sentence with its verdict, its time and the words recognised in its place.

Recordings are located in the book, in its order, by runs of words that occur only once in the book. The sentences
between the passages of two recordings are assigned to the recording that contains more of their words. Each recording
is then aligned with its sentences, and two recognisers check every difference again, as in `content_errors`; replaced
words (which that metric leaves to WER) are confirmed in the same way. Nothing is transcribed twice: the facts about a
recording are cached, so a stopped proof continues with the next recording.

Front matter, back matter, notes and headings may be left unread; if they are read, they are checked like the rest. Only
one recording is in memory at a time.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

from rapidfuzz.distance import Levenshtein

from podeval import progress
from podeval.audio.windows import Span
from podeval.errors import BadAudio, BadInput, CannotScore
from podeval.measuring.report import encode_sound
from podeval.metrics.score import Unscored
from podeval.metrics.speech.content_errors import SENTENCE, SHORTEST, describe_difference
from podeval.models.interfaces import Transcript
from podeval.recording.recording import Recording
from podeval.recording.spoken_script import confirm_differences, find_span, time_transcript
from podeval.text.book import Book
from podeval.text.comparison.alignment import (
    HeardWord,
    ScriptAlignment,
    align_script,
    join_words,
    split_timed_words,
    split_words,
)
from podeval.text.comparison.book_places import place_recordings
from podeval.text.comparison.content_differences import (
    ContentDifference,
    find_content_differences,
    find_replaced_words,
)
from podeval.text.language import read_as
from podeval.text.longest import LONGEST
from podeval.text.script import Script
from podeval.text.tokens import detect_language, split_sentences

Verdict = Literal["as_written", "misread", "missing", "twice", "added_before", "not_read"]
Confidence = Literal["high", "medium", "low"]

FAULTY = ("missing", "twice", "misread", "added_before")
"""Verdicts of sentences to record again, with the worst first."""

RUN = {"en": 3, "zh": 6}
"""Number of consecutive words (in Chinese, characters) by which a recording is located in the book."""
WHOLE, HALF, EQUAL = 0.7, 0.5, 0.9
"""Minimum shares of a sentence's words: `WHOLE`, omitted words for the verdict `missing`; `HALF`, repeated words for
the verdict `twice`, and recognised words for optional text to count as read; `EQUAL`, words recognised as written for
high confidence.
"""
MARGIN = 0.5
"""Length, in seconds, of the audio that an excerpt contains before and after its sentence."""
MOST_EXCERPTS = 400
"""Maximum number of excerpts in a report, so that a browser can open it."""

_NUMERAL = re.compile(r"^(\W*(?:[A-Za-z]+\s+)?)(?=[IVXLC])((?:X[CL]|L?X{0,4})(?:I[XV]|V?I{0,4}))\b")
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


@dataclass(frozen=True)
class ProofedSentence:
    """A sentence of the book.

    Attributes:
        number: its number in the book, counted from 1.
        section: the heading above it.
        kind: the kind of its passage (`podeval.text.book`); `end` for words added after the last sentence.
        text: the sentence as written.
        verdict: outcome for the sentence; `not_read` is not a fault.
        confidence: the certainty of the verdict.
        recording: the name of its recording; empty if there is none.
        start: seconds from the beginning of the recording; for a missing sentence, the time at which it should be.
        end: seconds from the beginning of the recording.
        heard: the recognised words.
        faults: each difference with its words and times, as in the defects of `content_errors`.
        sound: an excerpt, as a data URI.
    """

    number: int
    section: str
    kind: str
    text: str
    verdict: Verdict
    confidence: Confidence = "high"
    recording: str = ""
    start: float | None = None
    end: float | None = None
    heard: str = ""
    faults: tuple[Mapping[str, Any], ...] = ()
    sound: str = field(default="", repr=False)

    @property
    def is_faulty(self) -> bool:
        """Whether the sentence must be recorded again."""
        return self.verdict in FAULTY

    def to_json(self) -> dict[str, Any]:
        """Return plain data, without the excerpt."""
        return {name: value for name, value in vars(self).items() if name != "sound"}


@dataclass(frozen=True)
class BookProof:
    """The sentences of a book and the recordings with their lengths in seconds, in the order of the book.

    `unscored` contains recordings that could not be located in the book or analysed, with the reason.
    """

    book: str
    sentences: tuple[ProofedSentence, ...]
    recordings: Mapping[str, float]
    unscored: Mapping[str, Unscored]

    @property
    def faulty(self) -> list[ProofedSentence]:
        """The sentences to record again."""
        return [sentence for sentence in self.sentences if sentence.is_faulty]

    @property
    def spoken(self) -> int:
        """The number of sentences that are read, or should be read."""
        return sum(sentence.verdict != "not_read" and sentence.kind != "end" for sentence in self.sentences)

    @property
    def share(self) -> float:
        """The share of these sentences that must be recorded again."""
        return len(self.faulty) / max(1, self.spoken)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "book": self.book,
            "spoken": self.spoken,
            "verdicts": dict(Counter(sentence.verdict for sentence in self.sentences)),
            "not_as_written": self.share,
            "recordings": [{"file": name, "seconds": round(seconds, 3)} for name, seconds in self.recordings.items()],
            "unscored": {name: reason.to_json() for name, reason in self.unscored.items()},
            "sentences": [sentence.to_json() for sentence in self.sentences],
        }


def proof_book(
    book: Book, name: str, files: Sequence[Path], *, profile: str = "embedded", part: bool = False, sound: bool = False
) -> BookProof:
    """Check the recordings of a book against its text.

    Args:
        book: the text that should have been read.
        name: the name of the book in the result.
        files: the recordings, in any order.
        profile: the profile of the models.
        part: whether sections of the book may lack a recording.
        sound: whether to make excerpts of the faulty sentences.

    Raises:
        BadInput: no recording is a reading of the book.
        ModelMissing: a model is not installed.
    """
    whole_text = " ".join(passage.text for passage in book.passages)[:LONGEST]
    language, code = detect_language(whole_text), read_as(whole_text)
    sections, sentences, of_book = _list_sentences(book, language, part=part)
    transcribed = None if code == "other" else code or language
    # Find the words of each recording, and their position in the book.
    spoken: dict[str, list[str]] = {}
    unscored: dict[str, Unscored] = {}
    for number, file in enumerate(files):
        progress.report("recordings", number, len(files))
        try:
            words = time_transcript(_open(file, profile)[1], transcribed).words
            timed = split_timed_words(((word.text, word.start, word.end) for word in words), language)
            spoken[str(file)] = [word.text for word in timed]
        except (BadAudio, CannotScore) as error:
            unscored[str(file)] = Unscored(str(error), "system")
    places, reasons = place_recordings(of_book, sections, spoken, RUN[language], whole=not part)
    unscored |= {file: Unscored(reason, "system") for file, reason in reasons.items()}
    if not places:
        reason = "; ".join(f"{file}: {one.reason}" for file, one in list(unscored.items())[:3])
        raise BadInput(
            f"none of the recordings is a reading of {name} ({reason}); provide the book that is read in them, in "
            f"the same language"
        )
    # Compare each recording with its sentences.
    rows = {sentence.number: [sentence] for sentence in sentences}
    seconds: dict[str, float] = {}
    room = MOST_EXCERPTS if sound else 0
    for path, place in places.items():
        progress.report("chapters", len(seconds), len(places))
        recording, track = _open(Path(path), profile)
        seconds[path] = recording.duration
        of_place = sentences[place.start : place.stop]
        rows |= {sentence.number: [] for sentence in of_place}
        for row in _proof_recording(track, of_place, transcribed):
            is_cut = row.is_faulty and room > 0
            room -= is_cut
            excerpt = _cut_excerpt(recording, row) if is_cut else ""
            rows[row.number].append(replace(row, recording=path, sound=excerpt))
    return BookProof(name, tuple(row for of_number in rows.values() for row in of_number), seconds, unscored)


def _open(file: Path, profile: str) -> tuple[Recording, Recording]:
    """Open a recording; return it and the audio to analyse: the speech stem if there is music."""
    recording = Recording.open(file, profile=profile, allow_upsampling=True)
    recording.require_sound(SHORTEST)
    return recording, recording.speech_track()


def _cut_excerpt(recording: Recording, sentence: ProofedSentence) -> str:
    begin = max(0, round(((sentence.start or 0.0) - MARGIN) * recording.rate))
    end = round(((sentence.end or 0.0) + MARGIN) * recording.rate)
    return encode_sound(Recording.from_samples(recording.samples[begin:end], recording.rate))


def _list_sentences(
    book: Book, language: str, *, part: bool
) -> tuple[list[int], list[ProofedSentence], list[list[str]]]:
    """List the sentences that have words, each with its section, its verdict if it is not read, and the words to
    compare.
    """
    sections: list[int] = []
    sentences: list[ProofedSentence] = []
    of_book: list[list[str]] = []
    for passage in book.passages:
        texts: list[str] = []
        for text in [passage.text] if passage.kind == "heading" else split_sentences(passage.text):
            # Text that continues in lower case, such as after a quoted question, belongs to the same sentence.
            if texts and text[0].islower():
                texts[-1] += f" {text}"
            else:
                texts.append(text)
        verdict: Verdict = "missing" if passage.kind == "body" and not part else "not_read"
        for text in texts:
            title = book.titles[passage.section]
            sentence = ProofedSentence(len(sentences) + 1, title, passage.kind, text, verdict)
            if words := split_words(_say_plainly(sentence), language):
                sections.append(passage.section)
                sentences.append(sentence)
                of_book.append(words)
    return sections, sentences, of_book


def _say_plainly(sentence: ProofedSentence) -> str:
    """Write a sentence as it is spoken, including text in parentheses, with Roman numerals in headings as numbers."""
    text = sentence.text.translate(str.maketrans("()（）", ",,，，"))
    if sentence.kind == "heading" and (numeral := _NUMERAL.match(text)):
        values = [_ROMAN[letter] for letter in numeral[2]]
        value = sum(-one if one < after else one for one, after in pairwise([*values, 0]))
        return f"{numeral[1]}{value}{text[numeral.end() :]}"
    return text


def _proof_recording(
    track: Recording, sentences: Sequence[ProofedSentence], language: str | None
) -> Iterator[ProofedSentence]:
    """Align a recording with its sentences; yield them with their verdicts, and finally any words added at the end."""
    transcript = time_transcript(track, language)
    _, shares = _align(sentences, transcript)
    unread = {turn for turn, one in enumerate(sentences) if one.kind != "body" and shares.get(turn, 0.0) < HALF}
    yield from (replace(sentences[turn], verdict="not_read") for turn in unread)
    if not (sentences := [one for turn, one in enumerate(sentences) if turn not in unread]):
        return
    alignment, shares = _align(sentences, transcript)
    # Every difference belongs to a sentence.
    candidates = sorted(_split_by_sentence(alignment), key=lambda each: (each.start, each.first))
    faults: dict[int, list[ContentDifference]] = defaultdict(list)
    for each in confirm_differences(track, alignment, candidates, transcript.language, loops=True):
        turn = _find_turn(each, alignment)
        if not (turn < len(sentences) and sentences[turn].kind == "heading" and each.words < SENTENCE):
            faults[turn].append(each)
    heard_words: dict[int, list[int]] = defaultdict(list)
    as_written: set[int] = set()
    for at, partner in enumerate(alignment.partners):
        if partner is not None:
            heard_words[alignment.written[partner].turn].append(at)
            as_written |= {at} if alignment.written[partner].text == alignment.heard[at].text else set()
    words = Counter(word.turn for word in alignment.written)
    for turn, sentence in enumerate(sentences):
        # Words before the first correctly recognised word replace the beginning of the sentence.
        begin = min((at for at in heard_words[turn] if at in as_written), default=0)
        verdict = _judge(faults[turn], words[turn], begin)
        yield _describe(
            sentence, verdict, shares.get(turn, 0.0), faults[turn], heard_words[turn], alignment, track.duration
        )
    if faults[len(sentences)]:
        end = replace(sentences[-1], kind="end", text="")
        yield _describe(end, "added_before", 1.0, faults[len(sentences)], [], alignment, track.duration)


def _align(sentences: Sequence[ProofedSentence], transcript: Transcript) -> tuple[ScriptAlignment, dict[int, float]]:
    """Align sentences with the recognised words; return the share of each that is recognised as written."""
    script = Script.from_turns([("1", _say_plainly(sentence)) for sentence in sentences])
    alignment = align_script(script, ((word.text, word.start, word.end) for word in transcript.words))
    differing = {at for each in alignment.differences for at in range(each.first, each.last)}
    words = Counter(word.turn for word in alignment.written)
    equal = Counter(word.turn for at, word in enumerate(alignment.written) if at not in differing)
    return alignment, {turn: equal[turn] / words[turn] for turn in words}


def _split_by_sentence(alignment: ScriptAlignment) -> Iterator[ContentDifference]:
    """Yield the differences; an omission that spans several sentences is split at their boundaries."""
    for each in (*find_content_differences(alignment), *find_replaced_words(alignment)):
        if each.kind != "omitted":
            yield _move_to_sentence(each, alignment)
            continue
        for _, of_turn in groupby(range(each.first, each.last), key=lambda at: alignment.written[at].turn):
            part = list(of_turn)
            yield replace(each, first=part[0], last=part[-1] + 1)


def _move_to_sentence(each: ContentDifference, alignment: ScriptAlignment) -> ContentDifference:
    """Move added words to the beginning of the sentence if it begins with the same words: "the" in "the … the"."""
    moved, written, words = each, alignment.written, alignment.heard
    while each.kind == "inserted" and 0 < moved.first < len(written) and moved.start > 0:
        if written[moved.first - 1].turn != written[moved.first].turn:
            return moved
        if words[moved.start - 1].text != words[moved.end - 1].text:
            break
        places = (moved.first - 1, moved.last - 1, moved.start - 1, moved.end - 1)
        moved = ContentDifference(each.kind, *places, each.uncertain)
    return each


def _find_turn(each: ContentDifference, alignment: ScriptAlignment) -> int:
    """Return the index of the sentence to which a difference belongs; for words added at the end, the index after the
    last.
    """
    written = alignment.written
    if each.kind != "repeated":
        return written[each.first].turn if each.first < len(written) else written[-1].turn + 1
    if each.first < each.last:
        return Counter(word.turn for word in written[each.first : each.last]).most_common(1)[0][0]
    # Choose the sentence, before or after, that is more similar to the repeated words.
    texts = [word.text for word in alignment.heard[each.start : each.end]]
    sides = {written[at].turn for at in (each.first - 1, each.first) if 0 <= at < len(written)}
    of_side = {turn: [word.text for word in written if word.turn == turn] for turn in sides}
    return max(sorted(sides), key=lambda turn: Levenshtein.normalized_similarity(texts, of_side[turn]))


def _judge(faults: Sequence[ContentDifference], words: int, begin: int) -> Verdict:
    """Return the worst fault in a sentence with this many words; `begin` is the first of them recognised as written."""
    if faults and sum(each.words for each in faults if each.kind == "omitted") >= WHOLE * words:
        return "missing"
    if any(each.kind == "repeated" and each.words >= HALF * words for each in faults):
        return "twice"
    if any(each.kind != "inserted" or each.end > begin for each in faults):
        return "misread"
    return "added_before" if faults else "as_written"


def _describe(
    sentence: ProofedSentence,
    verdict: Verdict,
    share: float,
    faults: Sequence[ContentDifference],
    heard_words: Sequence[int],
    alignment: ScriptAlignment,
    duration: float,
) -> ProofedSentence:
    """Describe a sentence that has a verdict: its time, its recognised words, and the certainty of the verdict."""
    places = [*heard_words, *(at for each in faults for at in range(each.start, each.end))]
    words = alignment.heard[min(places) : max(places) + 1] if places else ()
    # A missing sentence has only the time at which it should be.
    spans: Sequence[HeardWord | Span] = words or [find_span(each, alignment, duration) for each in faults]
    size = max((each.words for each in faults), default=0)
    sure = size >= SENTENCE if faults else share >= EQUAL
    medium = size > 1 if faults else share >= HALF
    return replace(
        sentence,
        verdict=verdict,
        confidence="high" if sure or verdict == "not_read" else "medium" if medium else "low",
        start=round(float(min(span.start for span in spans)), 3) if spans else None,
        end=round(float(max(span.end for span in spans)), 3) if spans else None,
        heard=join_words([word.text for word in words]),
        faults=tuple(describe_difference(each, alignment, duration).to_json() for each in faults),
    )
