"""Limits on the length of texts: anything far beyond ten hours of speech is refused before it takes up time.

The tokenisers NLTK and jieba and OpenAI's normaliser take time per word, punctuation mark and sentence rather than per
character, so each of these counts has its own limit.
"""

import re

import regex

from podeval.errors import BadInput

LONGEST = 600_000
"""Maximum number of characters in a script: ten hours of English, more than thirty of Chinese."""
MOST_BYTES = 4 * LONGEST
"""Maximum size, in bytes, of a UTF-8 file that contains such a script, with room for JSON syntax."""
MOST_WORDS = 100_000
"""Maximum number of words: eleven hours of speech."""
MOST_MARKS = 60_000
"""Maximum number of punctuation marks and symbols."""
MOST_SENTENCES = 15_000
"""Maximum number of sentences: eleven hours of seven-word sentences."""
MOST_NUMBERS = 40_000
"""Maximum number of numbers written in digits."""
MOST_CHINESE = 200_000
"""Maximum number of characters, without spaces, of a Chinese text to be cut into words: eleven hours of speech."""

_WORD = regex.compile(r"[\w'\u2019]+")
_MARK = regex.compile(r"[^\w\s]")
_NUMBER = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"[.!?\u2026]+")

COUNTED = {
    "sentences": (_SENTENCE_END, MOST_SENTENCES),
    "numbers": (_NUMBER, MOST_NUMBERS),
    "punctuation marks": (_MARK, MOST_MARKS),
    "words": (_WORD, MOST_WORDS),
}
"""Units that are counted before a text is cut into words, and the limit for each."""


def refuse_longer(characters: int) -> None:
    """Refuse a script of more than `LONGEST` characters; all code that reads scripts uses this limit.

    Raises:
        BadInput: the script is longer.
    """
    if characters > LONGEST:
        raise BadInput(
            f"the script has {characters:,} characters, but at most {LONGEST:,} (ten hours of speech) are read; "
            "split it into parts"
        )


def refuse_endless(text: str) -> None:
    """Refuse a text with too many words, numbers, punctuation marks or sentences, or more characters than `LONGEST`.

    Raises:
        BadInput: a limit is exceeded; the message names it.
    """
    refuse_longer(len(text))
    # A text cannot, for example, contain more than half as many words as characters, so the units of short texts need
    # not be counted.
    if len(text) <= MOST_SENTENCES:
        return
    for counted, (pattern, most) in COUNTED.items():
        refuse_more(len(pattern.findall(text)), most, counted)


def refuse_endless_chinese(text: str) -> None:
    """Refuse a text that has too many characters, not counting spaces, to be cut into Chinese words.

    Raises:
        BadInput: there are more than `MOST_CHINESE` characters.
    """
    if len(text) > MOST_CHINESE:
        refuse_more(sum(map(len, text.split())), MOST_CHINESE, "characters without spaces")


def refuse_more(count: int, most: int, counted: str) -> None:
    """Refuse a text if `count` exceeds the limit `most`; `counted` says in the message what was counted.

    Raises:
        BadInput: the limit is exceeded.
    """
    if count > most:
        raise BadInput(
            f"the text has {count:,} {counted}, but at most {most:,} (over ten hours of speech) are read; "
            "split it into parts"
        )
