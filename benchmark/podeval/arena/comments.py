"""Clean voters' comments, and find those that are copied, thin or off topic."""

import re
import unicodedata

import pandas as pd

from podeval.arena.rule_sentences import format_details

LONGEST = 2_000
"""Longest comment that is kept, in characters."""

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_NOT_SAID = re.compile(r"[\W_]+")
_WIDE = "[\u2e80-\uffff]"

_DELIVERY = (
    r"accents?|pronunciation|pronounc\w+|intonation|prosody|tone of voice|voice|robotic|monoton\w+|timbre|"
    r"口音|发音|音色|语调|声音好听|机械"
)
_SOUND = (
    r"audio quality|sound quality|volume|loudness|noise|noisy|echo|reverb\w*|background|microphone|"
    r"音质|噪音|音量|回声|背景"
)
_CONTENT = (
    r"answer\w*|content|context|question\w*|relevan\w+|understand\w*|understood|logic\w*|correct\w*|wrong|facts?|"
    r"information|inform\w+|coheren\w+|explain\w*|explanation|memory|remember\w*|reason\w*|topic|回答|内容|理解|逻辑|正确|错误|问题"
)
_FEELING = r"emotion\w*|feeling\w*|empath\w+|sad|happy|angry|tone|laugh\w*|sigh\w*|hesita\w+|stress|情绪|情感|语气"

_ASKED = {
    "semantic": (_CONTENT, f"{_DELIVERY}|{_SOUND}"),
    "script": (_CONTENT, f"{_DELIVERY}|{_SOUND}"),
    "paralinguistic": (f"{_DELIVERY}|{_FEELING}", f"{_SOUND}|facts?|grammar"),
    "ambient": (f"{_SOUND}|speakers?|interrupt\\w*|turn|{_CONTENT}", r"accents?|pronunciation|timbre|口音|发音|音色"),
}
"""By the first word of a dimension: patterns of comments on it, and of comments on something else."""


def clean_comment(text: str, longest: int = LONGEST) -> tuple[str, bool]:
    """Return a comment without control characters, and whether it was cut at the longest allowed length.

    Markup stays as the characters that were typed; pages show a comment as plain text.
    """
    text = text.encode("utf-8", errors="replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Co", "Cn"))
    kept = kept.strip()
    return kept[:longest], len(kept) > longest


def find_repeated_comments(votes: pd.DataFrame, times: int, letters: int) -> "pd.Series[str]":
    """Find the votes whose comment is copied: by one voter again and again, or by voters from each other.

    Args:
        votes: with the columns `voter` and `comment`.
        times: fewest votes with one comment.
        letters: shorter comments ("A is better") are common and not counted as copies, see `find_thin_comments`; a
            Chinese character counts as three letters, and comments shared by voters must be three times as long.

    Returns:
        A sentence on each such vote, by the index of the vote.
    """
    texts, size = _normalise_comments(votes)
    texts, size = texts[size >= letters], size[size >= letters]
    voter = votes.loc[texts.index, "voter"]
    by_voter = texts.groupby([voter, texts]).transform("size")
    others = voter.groupby(texts).transform("nunique")
    by_one = by_voter >= times
    by_many = (others >= times) & (size >= 3 * letters) & ~by_one
    return pd.concat([
        format_details("the same comment in {} votes", by_voter[by_one]),
        format_details("the same comment by {} voters", others[by_many]),
    ])  # fmt: skip


def find_thin_comments(votes: pd.DataFrame, times: int, letters: int) -> "pd.Series[str]":
    """Find the votes with a short comment that is most of what its voter ever writes.

    Args:
        votes: with the columns `voter` and `comment`.
        times: fewest votes with it.
        letters: a comment below this is short.

    Returns:
        A sentence on each such vote, by the index of the vote.
    """
    texts, size = _normalise_comments(votes)
    voter = votes.loc[texts.index, "voter"]
    by_voter = texts.groupby([voter, texts]).transform("size")
    of_voter = texts.groupby(voter).transform("size")
    thin = (size < letters) & (by_voter >= times) & (by_voter > 0.5 * of_voter)
    return format_details("“{}” in {} votes", texts[thin], by_voter[thin])


def _normalise_comments(votes: pd.DataFrame) -> "tuple[pd.Series[str], pd.Series[int]]":
    """Return comments without case and punctuation, and the length of each; votes without a comment are left out."""
    texts = votes["comment"].fillna("").astype(str).str.casefold().str.replace(_NOT_SAID, " ", regex=True).str.strip()
    texts = texts[texts != ""]
    return texts, (texts.str.len() + 2 * texts.str.count(_WIDE)).astype(int)


def find_off_topic(votes: pd.DataFrame) -> "pd.Series[str]":
    """Find the votes whose comment judges something other than the battle's dimension, and nothing of the dimension.

    Args:
        votes: with the columns `dimension` and `comment`.

    Returns:
        A sentence on each such vote, by the index of the vote.
    """
    signals = []
    first = votes["dimension"].fillna("").str.casefold().str.extract(r"^(\w+?)(?:[\W_]|$)", expand=False)
    for dimension, (about, not_asked) in _ASKED.items():
        comments = votes.loc[first == dimension, "comment"].fillna("").str.casefold()
        wrong = comments.str.extract(_words(not_asked), expand=False)
        strays = wrong[wrong.notna() & ~comments.str.contains(_words(about).replace("(", "(?:", 1))]
        signals.append(format_details(f"speaks of “{{}}”, asked was the {dimension} dimension", strays))
    return pd.concat(signals)


def _words(pattern: str) -> str:
    """Return a pattern that matches whole words, for languages that separate words by spaces."""
    return rf"((?<![a-z])(?:{pattern})(?![a-z]))"
