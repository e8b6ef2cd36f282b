"""Find differences in content between a recording and its script: words that are omitted, repeated or made up.

A recogniser's mistakes are not errors in content. Words that sound alike count as equal, as do up to three words in
place of the same number of others. The rest of a difference is omitted (words of the script with nothing in their
place), repeated (extra words that occur shortly before or after in the script, or directly before or after in the
transcript) or inserted. Words do not count as omitted if a recogniser writes figures and signs for them: `1980s` for
"nineteen eighties", `40%` for "forty percent".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Literal

from rapidfuzz.distance import Levenshtein

from podeval.text.characters import fold_letters
from podeval.text.comparison.alignment import Difference, ScriptAlignment, split_words
from podeval.text.comparison.matched_readings import cut_at_spaces, fold_word, write_as_in_script
from podeval.text.comparison.normalise import normalise
from podeval.text.comparison.spoken_numbers import say_alike
from podeval.text.numerals import is_number_word
from podeval.text.script import Script

ContentKind = Literal["omitted", "repeated", "inserted", "replaced"]

ALIKE = 0.5
"""Minimum similarity of letters (1 minus edits divided by the longer length) for words to count as misheard."""

MISHEARD = 3
"""Maximum number of words that may be misheard as the same number of other words, however different the words are."""

BRIDGE = 2
"""Number of equal words between two long differences that may be a coincidence: some words of babble always match."""

LONG = 4
"""Minimum number of words in a long difference."""

CLEAR_WORD = 4
"""Minimum number of letters in a word that is never swallowed."""

NEARBY = 120
"""Number of words of the script, before and after a stretch, that are searched for a repetition of it."""

SAME = 0.7
"""Minimum similarity of words, or of letters of adjacent recognised words, for a stretch to count as repeated."""

BESIDE_FIGURE = 2
"""Number of recognised words before and after a gap that may contain a figure in place of the gap's words."""

SIGNS = frozenset(
    ("percent", "per", "cent", "dollar", "dollars", "euro", "euros", "pound", "pounds", "cents", "degree", "degrees")
)
"""Words that recognisers write as a sign next to a figure instead of as words."""

EntityKind = Literal["name", "number", "amount", "code"]

_NO_NUMBER = frozenset(("one", "ones", "first", "second", "seconds", "third", "oh", "point"))
"""English words that count as numbers only next to another number word."""

_CHINESE_ENTITY = re.compile(
    "(?:[百千]分之)?(?!千万(?![零一二三四五六七八九])|万一|一一)[零一二三四五六七八九十百千万亿两][点零一二三四五六七八九十百千万亿两]*"
    "[零一二三四五六七八九十百千万亿两]|[百千]分之[一二三四五六七八九十两]|[a-z0-9]+[零一二三四五六七八九]*"
)


@dataclass(frozen=True)
class ContentDifference:
    """A stretch of words that is omitted, repeated, inserted or replaced.

    Attributes:
        kind: whether the words are omitted, repeated, inserted or replaced.
        first: the first of the script's words; for an insertion, the word after it.
        last: the word after the last of the script's words.
        start: the first of the recognised words; for an omission, the word after it.
        end: the word after the last of the recognised words.
        uncertain: whether it is a word without a counterpart that may have been misheard as a part of its neighbours.
    """

    kind: ContentKind
    first: int
    last: int
    start: int
    end: int
    uncertain: bool = False

    @property
    def words(self) -> int:
        """The number of missing or surplus words."""
        return self.last - self.first if self.kind == "omitted" else self.end - self.start


@dataclass(frozen=True)
class Entity:
    """A name, number, amount or code in the script.

    Attributes:
        kind: whether it is a name, a number, an amount or a code.
        text: the entity in the form used for comparison.
        right: whether it is transcribed correctly.
        heard: the words transcribed in its place.
        word: the index of its first word among the script's words.
    """

    kind: EntityKind
    text: str
    right: bool
    heard: str
    word: int


def compare_entities(script: Script, transcript: str, language: str) -> list[Entity]:
    """Compare the names, numbers, amounts and codes of a script with the transcript, in order.

    Args:
        script: the written script.
        transcript: the transcribed text.
        language: `en` or `zh`. Chinese names have no capitals, so they are not detected.
    """
    if language == "zh":
        written, spoken = ("".join(normalise(text, "zh").split()) for text in say_alike(script.text, transcript))
        spans = [(_kind_of_chinese(match[0]), *match.span()) for match in _CHINESE_ENTITY.finditer(written)]
        return list(_judge_entities(spans, list(written), list(spoken), language))
    text = " ".join(turn.text for turn in script.turns)
    tokens, heard_tokens = cut_at_spaces(text), cut_at_spaces(write_as_in_script(text, transcript))
    turns = [cut_at_spaces(turn.text) for turn in script.turns]
    kinds = [kind for words in turns for kind in _classify_words(words)]
    spans, at = [], 0
    for kind, run in groupby(kinds):
        end = at + len(list(run))
        # A single number word such as "one" is usually an article.
        if kind and not (kind == "number" and end - at == 1 and fold_word(tokens[at]) in _NO_NUMBER):
            spans.append((kind, at, end))
        at = end
    return list(_judge_entities(spans, tokens, heard_tokens, language))


def _kind_of_chinese(text: str) -> EntityKind:
    return "code" if text[0].isascii() else "amount" if "分之" in text else "number"


def _classify_words(words: Sequence[str]) -> Iterator[EntityKind | None]:
    """Yield the kind of entity to which each word of a turn belongs; None if it does not belong to any."""
    begins = True
    for word, following in zip(words, [*words[1:], ""], strict=True):
        plain = fold_word(word)
        letters = re.sub(r"(?<=\d)(?:st|nd|rd|th|s|[ap]\.?m\.?)\b", "", plain)
        kind: EntityKind | None = None
        if any(map(str.isdigit, word)) or all(map(is_number_word, plain.split("-"))):
            code = any(map(str.isdigit, word)) and any(map(str.isalpha, letters))
            amount = re.search(r"[$€£¥₹¢%°]", word) or fold_word(following) in SIGNS
            kind = "amount" if amount else "code" if code else "number"
        elif re.search(r"[A-Z]{2}|\b[A-Z]\.[A-Z]", word):
            kind = "code"
        elif word.strip("\"'“‘([")[:1].isupper() and not begins and plain.partition("'")[0].partition("’")[0] != "i":
            kind = "name"
        begins = word.rstrip("\"'”’)]")[-1:] in (".", "!", "?", ":", "…", "—") and not re.search(
            r"\b[A-Z]\.[A-Z]", word
        )
        yield kind


def _judge_entities(
    spans: Sequence[tuple[EntityKind, int, int]], written: Sequence[str], spoken: Sequence[str], language: str
) -> Iterator[Entity]:
    """Yield each entity with the words transcribed in its place; units are tokens, or characters in Chinese."""
    join = "" if language == "zh" else " "
    folded = {unit: fold_letters(fold_word(unit)) for unit in {*written, *spoken}}
    one, other = ([folded[unit] for unit in units] for units in (written, spoken))
    partners: dict[int, int] = {}
    for block in Levenshtein.opcodes(one, other).as_matching_blocks():
        partners.update((block.a + offset, block.b + offset) for offset in range(block.size))
    # A unit without a counterpart begins after the preceding unit and ends before the next one.
    begins = list(accumulate(range(len(one)), lambda last, at: partners.get(at - 1, last - 1) + 1, initial=0))[1:]
    ends = list(accumulate(reversed(range(len(one))), lambda last, at: partners.get(at + 1, last), initial=len(other)))
    ends = ends[:0:-1]
    counted = words = 0
    for kind, first, last in spans:
        start, stop = partners.get(first, begins[first]), partners.get(last - 1, ends[last - 1] - 1) + 1
        text, spelling = (join.join(units).strip(",.;:!?") for units in (written[first:last], spoken[start:stop]))
        right = all(each in partners for each in range(first, last)) and stop - start == last - first
        right = right or text == spelling or normalise(text, language) == normalise(spelling, language)
        if not right:
            words, counted = words + len(split_words(join.join(written[counted:first]), language)), first
        yield Entity(kind, text, right, spelling, 0 if right else words)


def find_content_differences(alignment: ScriptAlignment) -> list[ContentDifference]:
    """Find the stretches whose content differs, in the order of the script."""
    differing: list[ContentDifference] = []
    for difference in _bridge(alignment.differences):
        differing += [each for each in _classify(difference, alignment) if not _is_written_as_figure(each, alignment)]
    return differing


def find_replaced_words(alignment: ScriptAlignment) -> list[ContentDifference]:
    """Find stretches of up to three words of the script that are replaced by words that do not sound like them.

    A recogniser may have misheard them, so `find_content_differences` does not list them. Figures are ignored, because
    they are written in many ways.
    """
    replaced = []
    for each in map(lambda difference: _strip_alike(difference, alignment), alignment.differences):
        first, last, start, end = each
        written = [word.text for word in alignment.written[first:last]]
        spoken = [word.text for word in alignment.heard[start:end]]
        letters = min(len("".join(written)), len("".join(spoken)))
        is_clear = letters >= CLEAR_WORD - 1 if "".join(written).isascii() else letters > 0
        figures = any(is_number_word(text) or any(map(str.isdigit, text)) for text in (*written, *spoken))
        is_short = max(len(written), len(spoken)) <= MISHEARD
        if is_clear and is_short and not figures and not _is_misheard(*each, alignment):
            replaced.append(ContentDifference("replaced", *each))
    return replaced


def _is_written_as_figure(difference: ContentDifference, alignment: ScriptAlignment) -> bool:
    """Return whether the missing words are the reading of a figure or a sign next to the gap."""
    if difference.kind != "omitted":
        return False
    missing = [word.text for word in alignment.written[difference.first : difference.last]]
    start = difference.start
    beside = [word.text for word in alignment.heard[max(0, start - BESIDE_FIGURE) : start + BESIDE_FIGURE]]
    figures = any(any(map(str.isdigit, text)) for text in beside)
    if all(text in SIGNS for text in missing):
        return figures or any(map(is_number_word, beside))
    return figures and all(text in SIGNS or is_number_word(text) for text in missing)


def _bridge(differences: Sequence[Difference]) -> list[Difference]:
    """Join long differences that only a few equal words separate."""
    joined: list[Difference] = []
    for each in differences:
        before = joined[-1] if joined else None
        if before and each.first - before.last <= BRIDGE and min(_length(before), _length(each)) >= LONG:
            joined[-1] = Difference(before.first, each.last, before.start, each.end)
        else:
            joined.append(each)
    return joined


def _length(difference: Difference) -> int:
    return max(difference.last - difference.first, difference.end - difference.start)


def _classify(difference: Difference, alignment: ScriptAlignment) -> list[ContentDifference]:
    """Return the stretches of a difference that concern content: none, one, or two if other words are said instead."""
    if _is_misheard(difference.first, difference.last, difference.start, difference.end, alignment):
        return _find_lost_words(difference.first, difference.last, difference.start, difference.end, alignment)
    first, last, start, end = _strip_alike(difference, alignment)
    missing, extra = last - first, end - start
    if missing and extra:
        if max(missing, extra) <= MISHEARD or _is_misheard(first, last, start, end, alignment):
            return _find_lost_words(first, last, start, end, alignment)
        if missing - extra > MISHEARD and extra <= MISHEARD:
            return [ContentDifference("omitted", first, last - extra, start, start)]
        if extra - missing > MISHEARD and missing <= MISHEARD:
            return [_name_extra(alignment, last, start, end - missing)]
        return [ContentDifference("omitted", first, last, start, start), _name_extra(alignment, last, start, end)]
    if missing:
        return [ContentDifference("omitted", first, last, start, start)]
    return [_name_extra(alignment, last, start, end)] if extra else []


def _find_lost_words(
    first: int, last: int, start: int, end: int, alignment: ScriptAlignment
) -> list[ContentDifference]:
    """Return words of the script that are lost where several words became one: "here is what" and "heres"."""
    if last - first <= end - start:
        return []
    spoken = [word.text for word in alignment.heard[start:end]]
    written = [word.text for word in alignment.written[first:last]]
    letters = "".join(spoken)

    def is_better_without(at: int) -> bool:
        """Return whether the transcript is closer to the script without a word: "cannot" is not closer to "not"."""
        likeness = _likeness(written, spoken)
        without = written[: at - first] + written[at - first + 1 :]
        return likeness < ALIKE or _likeness(without, spoken) > likeness

    lost = [
        at
        for at in range(first, last)
        if len(alignment.written[at].text) >= CLEAR_WORD
        and alignment.written[at].text not in letters
        and not any(_is_alike(alignment.written[at].text, text) for text in spoken)
        and is_better_without(at)
    ]
    return [ContentDifference("omitted", at, at + 1, start, start, uncertain=True) for at in lost]


def _is_misheard(first: int, last: int, start: int, end: int, alignment: ScriptAlignment) -> bool:
    """Return whether the joined letters of the words on both sides are alike: "sea floor" and "seafloor"."""
    written = "".join(word.text for word in alignment.written[first:last])
    spoken = "".join(word.text for word in alignment.heard[start:end])
    return bool(written and spoken) and _is_alike(written, spoken)


def _strip_alike(difference: Difference, alignment: ScriptAlignment) -> tuple[int, int, int, int]:
    """Return the difference without the words at its edges that are merely misheard."""
    first, last, start, end = difference.first, difference.last, difference.start, difference.end
    written, heard = alignment.written, alignment.heard
    while first < last and start < end and _is_alike(written[first].text, heard[start].text):
        first, start = first + 1, start + 1
    while first < last and start < end and _is_alike(written[last - 1].text, heard[end - 1].text):
        last, end = last - 1, end - 1
    return first, last, start, end


def _likeness(one: Sequence[str], other: Sequence[str]) -> float:
    return Levenshtein.normalized_similarity("".join(one), "".join(other))


def _is_alike(one: str, other: str) -> bool:
    return Levenshtein.normalized_similarity(one, other) >= ALIKE


def _is_heard_twice(heard: Sequence[str], start: int, end: int) -> bool:
    """Return whether words are also recognised directly before or after, or partly before and partly after."""
    extra, size = heard[start:end], end - start
    parts = range(size + 1) if size <= NEARBY else (0, size)
    for period in range(size, size + BRIDGE + 1):
        for part in parts:
            if part < size and start + part < period:
                continue
            before = heard[start + part - period : end - period] if part < size else ()
            if _likeness(extra, (*heard[start + period : start + period + part], *before)) >= SAME:
                return True
    return False


def _name_extra(alignment: ScriptAlignment, place: int, start: int, end: int) -> ContentDifference:
    """Classify extra words: repeated if the script has them nearby or they are recognised twice, otherwise inserted.

    If a sentence is said twice, the surplus words may be the end of one copy and the beginning of the other.
    """
    extra = [word.text for word in alignment.heard[start:end]]
    size = len(extra)
    if _is_heard_twice([word.text for word in alignment.heard], start, end):
        return ContentDifference("repeated", place, place, start, end)
    low, high = max(0, place - NEARBY), min(len(alignment.written), place + NEARBY)
    near = [word.text for word in alignment.written[low:high]]
    best, at = 0.0, 0
    for offset in range(max(1, len(near) - size + 1)):
        similarity = Levenshtein.normalized_similarity(extra, near[offset : offset + size])
        if similarity > best:
            best, at = similarity, offset
    if best >= SAME:
        return ContentDifference("repeated", low + at, min(high, low + at + size), start, end)
    return ContentDifference("inserted", place, place, start, end)
