"""A script's words laid beside the words that are heard: each with its turn, its speaker and its partner."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from podeval.errors import NoWords
from podeval.text.alignment import HeardWord, split_timed_words, split_words
from podeval.text.script import Script
from podeval.text.tokens import detect_language


@dataclass(frozen=True)
class WrittenWord:
    """A word of the script as it is compared, and the turn it stands in, from 0."""

    text: str
    turn: int


@dataclass(frozen=True)
class Difference:
    """Written words `first` to `last` (not included) where words `start` to `end` (not included) are heard."""

    first: int
    last: int
    start: int
    end: int


@dataclass(frozen=True)
class ScriptAlignment:
    """The alignment with the fewest edits.

    Attributes:
        script: what was to be said.
        written: its words.
        heard: what was heard, in order of time.
        partners: of every heard word the written word in its place, the same or another; None where there is none.
        differences: the stretches in which the two are not equal, in order, no two of them side by side.
    """

    script: Script
    written: tuple[WrittenWord, ...]
    heard: tuple[HeardWord, ...]
    partners: tuple[int | None, ...]
    differences: tuple[Difference, ...]

    @property
    def equal_words(self) -> int:
        """How many words of the script are heard as they are written."""
        return len(self.written) - sum(each.last - each.first for each in self.differences)

    def speaker_of(self, written: int) -> str:
        """The speaker of a written word."""
        return self.script.turns[self.written[written].turn].speaker


def align_script(script: Script, words: Iterable[tuple[str, float, float]]) -> ScriptAlignment:
    """Lay a script beside what is heard.

    Args:
        script: what was to be said.
        words: text, start and end in seconds, as a transcriber gives them.

    Raises:
        NoWords: the script holds no words.
        BadInput: a word's times are not finite numbers in order.
    """
    language = detect_language(script.text)
    written = tuple(
        WrittenWord(word, number)
        for number, turn in enumerate(script.turns)
        for word in split_words(turn.text, language)
    )
    if not written:
        raise NoWords("the script holds no words to align; give at least one turn with text")
    spoken = tuple(split_timed_words(words, language))
    partners: list[int | None] = [None] * len(spoken)
    differences: list[Difference] = []
    for edit in Levenshtein.opcodes([word.text for word in written], [word.text for word in spoken]):
        if edit.tag in ("equal", "replace"):
            partners[edit.dest_start : edit.dest_end] = range(edit.src_start, edit.src_end)
        if edit.tag == "equal":
            continue
        if differences and (differences[-1].last, differences[-1].end) == (edit.src_start, edit.dest_start):
            last = differences.pop()
            differences.append(Difference(last.first, edit.src_end, last.start, edit.dest_end))
        else:
            differences.append(Difference(edit.src_start, edit.src_end, edit.dest_start, edit.dest_end))
    return ScriptAlignment(script, written, spoken, tuple(partners), tuple(differences))


def join_words(words: Sequence[str]) -> str:
    """Join words for a reader: English with spaces, Chinese characters without."""
    text = ""
    for word in words:
        text += (" " if text and (text[-1].isascii() or word[0].isascii()) else "") + word
    return text
