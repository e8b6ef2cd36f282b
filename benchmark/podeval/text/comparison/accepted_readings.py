"""Accepted readings: parts of a text that may be spoken in several ways, and the readings that were used.

`$3.50` may be read as "three dollars fifty" or "three fifty". The reference of a text with such stretches is a lattice:
fixed words and, at each stretch, a choice between the accepted forms, including the stretch as written. Of the texts in
the lattice, the one with the fewest edits to the transcript over its whole length is used; the search is exact. One
form is chosen for each stretch, so speaking two forms is an error, as is speaking none.

A line may have its own tags, which apply to all of its words (for example, because it is a long sentence), and each
stretch has tags for its difficulty (for example, that it is a date). Errors are counted by tag from the same alignment;
words without a tag are counted as `plain`. Extra words count as errors in the stretch that they touch.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput
from podeval.text.characters import clean_text
from podeval.text.comparison.matched_readings import write_as_in_script
from podeval.text.comparison.normalise import normalise

PLAIN = "plain"
"""The group of words without a tag."""

MOST_CELLS = 60_000_000
"""Maximum product of the numbers of words in the text and the transcript for the search: about 25 minutes of speech."""

Row = NDArray[np.int32]
Edit = Literal["equal", "wrong", "missing", "extra"]


@dataclass(frozen=True)
class ReadingStretch:
    """A part of a line as written, its other accepted forms, and tags for its difficulty."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - the form that pydantic reads

    text: str
    accepted: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def forms(self) -> tuple[str, ...]:
        """Every form that counts as correct, the written one first."""
        return tuple(dict.fromkeys((self.text, *self.accepted)))


@dataclass(frozen=True)
class ReadLine:
    """A line with its stretches in the order of the text, and the tags of all its words."""

    text: str
    readings: tuple[ReadingStretch, ...] = ()
    tags: tuple[str, ...] = ()

    def parts(self) -> tuple["str | ReadingStretch", ...]:
        """Return the line cut into fixed text and stretches.

        Raises:
            BadInput: a stretch does not occur in the line after the preceding stretches.
        """
        parts: list[str | ReadingStretch] = []
        end = 0
        for stretch in self.readings:
            match = re.compile(_whole(stretch.text)).search(self.text, end) if stretch.text.strip() else None
            if not match:
                raise BadInput(f"the reading {stretch.text!r} does not occur in {self.text[end:][:80]!r}")
            parts += (self.text[end : match.start()], stretch)
            end = match.end()
        return tuple(part for part in (*parts, self.text[end:]) if part)


@dataclass(frozen=True)
class TagErrors:
    """Errors in the words with a tag, and the number of these words (Chinese: characters), at least one per stretch."""

    errors: int = 0
    words: int = 0


@dataclass(frozen=True)
class Misread:
    """A stretch that has no accepted form in the transcript: its written form, the words in its place, and its tags."""

    text: str
    heard: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class ReadText:
    """The accepted text that is closest to the transcript.

    Attributes:
        text: the whole text with the chosen forms.
        errors: edits between its normalised words and the transcript.
        by_tag: errors and words by tag, including `PLAIN`.
        misread: the stretches with errors, in order.
        stretches: number of stretches in the text.
    """

    text: str
    errors: int
    by_tag: Mapping[str, TagErrors]
    misread: tuple[Misread, ...]
    stretches: int


@dataclass(frozen=True)
class AcceptedReadings:
    """The lines of a text with their readings."""

    lines: tuple[ReadLine, ...]

    @property
    def text(self) -> str:
        """The text as written, with lines joined by one space."""
        return " ".join(line.text for line in self.lines)

    @classmethod
    def parse(cls, source: Any) -> "AcceptedReadings":
        """Read lines from data: a list of objects with `text`, `readings` (each `text`, `accepted`, `tags`) and `tags`.

        Raises:
            BadInput: the data has a different form, or a reading is not in its line.
        """
        if isinstance(source, AcceptedReadings):
            return source
        try:
            lines = tuple(
                ReadLine(
                    clean_text(str(line["text"])),
                    tuple(
                        ReadingStretch(
                            clean_text(str(one["text"])), _texts(one.get("accepted")), _texts(one.get("tags"))
                        )
                        for one in line.get("readings", ())
                    ),
                    _texts(line.get("tags")),
                )
                for line in source
            )
        except (TypeError, KeyError, AttributeError) as error:
            raise BadInput(
                f"readings must be a list of lines, each with `text` and `readings` ({type(error).__name__}: {error})"
            ) from None
        for line in lines:
            line.parts()
        return cls(lines)

    def choose(self, heard: str, language: str = "en", normaliser: str = "whisper", read: bool = True) -> ReadText:
        """Choose the forms that are closest to the transcript.

        Args:
            heard: the transcript.
            language: `en` or `zh`, for normalising both texts; Chinese is compared by characters.
            normaliser: see `podeval.text.comparison.normalise`.
            read: whether every reading of a figure, sign or abbreviation is accepted, in addition to the listed forms;
                this applies only to English with the normaliser `whisper`.

        Raises:
            BadInput: the text is too long for the search.
        """
        separator = "" if language == "zh" else " "
        if read and (language, normaliser) == ("en", "whisper"):
            # A listed form may read part of a figure in its own way, so try both.
            ways = (heard, write_as_in_script(self.text, heard))
            return min((self.choose(way, language, normaliser, False) for way in ways), key=lambda text: text.errors)
        segments = _cut(self.lines)
        forms = [tuple(_units(form, language, normaliser) for form in segment.forms) for segment in segments]
        transcript = _units(heard, language, normaliser)
        most = sum(len(words) for choices in forms for words in choices)
        if most * len(transcript) > MOST_CELLS:
            raise BadInput(f"a text of {most} words is too long for accepted readings; score it in parts")
        chosen, edits = _align(forms, transcript)
        texts = [segment.forms[choice] for segment, choice in zip(segments, chosen, strict=True)]
        return ReadText(
            text=_join(texts, segments),
            errors=sum(edit != "equal" for edit, _, _ in edits),
            by_tag=_count_by_tag(segments, edits),
            misread=_list_misread(segments, edits, separator),
            stretches=sum(segment.stretch is not None for segment in segments),
        )


@dataclass(frozen=True)
class _Segment:
    """Fixed text or a stretch, the number of its line, and the tags of its words."""

    forms: tuple[str, ...]
    line: int
    tags: tuple[str, ...]
    stretch: ReadingStretch | None = None


AlignedEdit = tuple[Edit, int, str]
"""The edit, its segment, and the recognised word."""


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError("accepted forms and tags must be lists of texts")
    return tuple(clean_text(str(each)) for each in value or ())


def _whole(text: str) -> str:
    """Return a pattern that matches a text only where it is not part of a longer word or number."""
    before = r"(?<![A-Za-z0-9])" if text[0].isascii() and text[0].isalnum() else ""
    after = r"(?![A-Za-z0-9])" if text[-1].isascii() and text[-1].isalnum() else ""
    return before + re.escape(text) + after


def _cut(lines: Sequence[ReadLine]) -> list[_Segment]:
    segments = []
    for number, line in enumerate(lines):
        for part in line.parts():
            if isinstance(part, ReadingStretch):
                tags = tuple(dict.fromkeys((*line.tags, *part.tags)))
                segments.append(_Segment(part.forms, number, tags or (PLAIN,), part))
            else:
                segments.append(_Segment((part,), number, line.tags or (PLAIN,)))
    return segments


def _join(texts: Sequence[str], segments: Sequence[_Segment]) -> str:
    lines: defaultdict[int, str] = defaultdict(str)
    for text, segment in zip(texts, segments, strict=True):
        lines[segment.line] += text
    return " ".join(lines.values())


def _units(text: str, language: str, normaliser: str) -> tuple[str, ...]:
    plain = normalise(text, language, normaliser)
    return tuple("".join(plain.split())) if language == "zh" else tuple(plain.split())


def _align(forms: Sequence[Sequence[Sequence[str]]], said: Sequence[str]) -> tuple[list[int], list[AlignedEdit]]:
    """Find the path through the lattice with the fewest edits; among equal paths, the forms listed first win.

    Returns:
        The chosen form of each segment, and the edits in order.
    """
    ids: dict[str, int] = {}
    spoken = np.array([ids.setdefault(word, len(ids)) for word in said], dtype=np.int64)
    # Rows of the usual edit distance table: one for each word of each form and, at a segment's end, the forms' minimum.
    row: Row = np.arange(len(said) + 1, dtype=np.int32)
    tables: list[list[list[Row]]] = []
    choices: list[NDArray[np.int64]] = []
    for options in forms:
        table = [_extend(row, [ids.get(word, -1) for word in words], spoken) for words in options]
        last = np.stack([rows[-1] for rows in table])
        tables.append(table)
        choices.append(last.argmin(axis=0))
        row = last.min(axis=0)
    return _trace(forms, said, tables, choices)


def _extend(row: Row, words: Iterable[int], heard: NDArray[np.int64]) -> list[Row]:
    """Return the table's row before the first word, and its row after each word."""
    rows = [row]
    steps = np.arange(len(row), dtype=np.int32)
    for word in words:
        before = rows[-1]
        best = np.concatenate(([before[0] + 1], np.minimum(before[1:] + 1, before[:-1] + (heard != word))))
        # An extra word costs one per step, so the row is the running minimum after subtracting the steps.
        rows.append((np.minimum.accumulate(best - steps) + steps).astype(np.int32))
    return rows


def _trace(
    forms: Sequence[Sequence[Sequence[str]]],
    said: Sequence[str],
    tables: Sequence[Sequence[Sequence[Row]]],
    choices: Sequence[NDArray[np.int64]],
) -> tuple[list[int], list[AlignedEdit]]:
    """Walk back from the end; an extra word has no segment yet (-1)."""
    chosen: list[int] = []
    edits: list[AlignedEdit] = []
    at = len(said)
    for segment in range(len(forms) - 1, -1, -1):
        choice = int(choices[segment][at])
        chosen.append(choice)
        words, rows = forms[segment][choice], tables[segment][choice]
        position = len(words)
        while position:
            here, before = rows[position], rows[position - 1]
            equal = at > 0 and words[position - 1] == said[at - 1]
            if at > 0 and here[at] == before[at - 1] + (not equal):
                edits.append(("equal" if equal else "wrong", segment, said[at - 1]))
                position, at = position - 1, at - 1
            elif here[at] == before[at] + 1:
                edits.append(("missing", segment, ""))
                position -= 1
            else:
                edits.append(("extra", -1, said[at - 1]))
                at -= 1
    edits += [("extra", -1, word) for word in reversed(said[:at])]
    return chosen[::-1], edits[::-1]


def _owner(segments: Sequence[_Segment], before: int, after: int) -> int:
    """Return the segment to which an extra word between two segments belongs: a stretch that it touches, if any."""
    touched = range(max(before, 0), min(after, len(segments) - 1) + 1)
    return next((number for number in touched if segments[number].stretch), touched[0])


def _own_extras(segments: Sequence[_Segment], edits: Sequence[AlignedEdit]) -> list[AlignedEdit]:
    """Assign each extra word to a segment."""
    following: list[int] = []
    after = len(segments) - 1
    for _, segment, _ in reversed(edits):
        after = after if segment < 0 else segment
        following.append(after)
    owned: list[AlignedEdit] = []
    before = 0
    for (edit, segment, word), after in zip(edits, reversed(following), strict=True):
        before = before if segment < 0 else segment
        owned.append((edit, _owner(segments, before, after) if segment < 0 else segment, word))
    return owned


def _count_by_tag(segments: Sequence[_Segment], edits: Sequence[AlignedEdit]) -> dict[str, TagErrors]:
    errors, words = [0] * len(segments), [0] * len(segments)
    for edit, number, _ in _own_extras(segments, edits):
        errors[number] += edit != "equal"
        words[number] += edit != "extra"
    counts: defaultdict[str, TagErrors] = defaultdict(TagErrors)
    for segment, wrong, length in zip(segments, errors, words, strict=True):
        # A stretch that need not be spoken at all, such as a laugh, counts as one word.
        weight = max(1, length) if segment.stretch else length
        for tag in segment.tags:
            counts[tag] = TagErrors(counts[tag].errors + wrong, counts[tag].words + weight)
    return dict(counts)


def _list_misread(segments: Sequence[_Segment], edits: Sequence[AlignedEdit], separator: str) -> tuple[Misread, ...]:
    words: defaultdict[int, list[str]] = defaultdict(list)
    wrong: set[int] = set()
    for edit, number, word in _own_extras(segments, edits):
        words[number] += [word] if word else []
        wrong |= {number} if edit != "equal" else set()
    return tuple(
        Misread(stretch.text, separator.join(words[number]), stretch.tags)
        for number in sorted(wrong)
        if (stretch := segments[number].stretch)
    )
