"""Rules for the scripts of Real-Pod: who speaks how much, that they can be read aloud, that their two versions agree.

The scripts are written for podeval by a language model; these rules check them, one by one and against each other.
Rules that compare scripts (openings, endings, pairs of voices) allow no more than a number of them to do the same.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from podeval.benchmarks.item import read_voices
from podeval.benchmarks.real_pod import VOICES
from podeval.datasets.row_rules import Row, RowRule

TURNS = (8, 44)
WORDS = (350, 580)
LONGEST_TURN = 100
"""Most words of a turn."""

LONGER = (1.01, 1.4)
"""Range of the spontaneous version's words for each word of the written."""

KEPT = 0.97
"""Share of the written words that are said in the spontaneous version, in their order."""

FILLERS = (
    *("um", "uh", "er", "erm", "you know", "i mean", "like", "well", "yeah", "okay", "hm", "oh", "ah", "mm"),
    *("sort of", "kind of", "right", "look"),
)
FILLERS_LEAST = 8
_HESITATIONS = re.compile(r"\b(?:um|uh|er|erm|hm|mm|mm-hm)\b", re.IGNORECASE)
_FILLER = re.compile(rf"\b(?:{'|'.join(FILLERS)})\b", re.IGNORECASE)
_TWICE = re.compile(r"\b([\w']+) \1(?![\w'])", re.IGNORECASE)
_UNREADABLE = re.compile(r"[^A-Za-z ',.!?:;-]")

_CONTRACTIONS = (
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\blet's\b"), "let us"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'d\b"), " would"),
    (re.compile(r"'s\b"), " is"),
)

CONTRACTED_LEAST = 0.7
"""Least share of what people contract ("it's", "don't") that is contracted as written."""

_SHORT = re.compile(
    r"\b(?:I|you|we|they|he|she|it|that|there|here|what|who|where|how)'(?:m|re|s|ll|ve|d)\b|\b\w+n't\b", re.IGNORECASE
)
_LONG = re.compile(
    r"\b(?:I am|(?:you|we|they) are|(?:he|she|it|that|there|here|what|who|where) is|cannot|(?:I|you|we|they) will"
    r"|(?:is|are|was|were|do|does|did|has|had|can|could|would|should|will) not)\b(?! *[.,?!;])",
    re.IGNORECASE,
)

OPENING = 5
"""Words with which no two scripts begin."""

ENDING = 3
"""Words with which no two last sentences begin."""

ASKED_AT_ONCE = 10
"""Most scripts whose first turn calls another speaker by name and ends with a question."""

CALLED_BACK = 12
"""Most scripts whose last two turns take up a word of the first."""
_LONG_WORD = re.compile(r"[a-z']{5,}")
_EVERYDAY = frozenset(
    "there that's there's about would could think which where their right okay what's don't didn't people you've every"  # noqa: SIM905
    " really thing things she's they're we've first after before i've isn't never".split()
)

ALIKE = {2: 13, 3: 8, 4: 5}
"""Most scripts of two women, and of two men; of three speakers; of four."""

MIXED_HOSTED = 6
"""Most scripts of a woman and a man whose host is the woman, and as many whose host is the man."""

HOSTED = 26
"""Most scripts whose hosts are of one sex."""

VOICED = 5
"""Most scripts of one voice."""

_YEAR = re.compile(
    r"\b(?:(?:fifteen|sixteen|seventeen|eighteen|nineteen|twenty)[ -](?:o |hundred|ten|eleven|twelve|thirteen|fourteen"
    r"|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
    r"|two thousand)",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][a-z]+(?: (?:de |van |von |le )?[A-Z][a-z]+)+")
_FIRST_WORDS = frozenset(
    "And As At Because But By Did Does Every For From How If In Is Not Of On Or Since So That The Then There This To"  # noqa: SIM905
    " Until Was What When Who Why With".split()
)
"""Words that begin a sentence before a name, and are no part of it."""

SHARED = 8
"""Words in a row that no two scripts share."""

JOINTS = frozenset(
    "and but or nor so yet because although though while if as when where which who whom whose that it".split()  # noqa: SIM905
)
"""Words that join what follows to what went before: a clause said after one is a fault where it is written without."""


def make_script_rules() -> Sequence[RowRule]:
    """Make the rules, which remember the scripts they have checked; each table needs new ones."""
    return (
        RowRule("speakers", _wrong_speakers),
        RowRule("turns", _wrong_turns),
        RowRule("length", _wrong_length),
        RowRule("readable", _unreadable),
        RowRule("said twice", _says_word_twice),
        RowRule("fillers", _wrong_fillers),
        RowRule("versions", _versions_differ),
        RowRule("stands alone", _lacks_joint),
        RowRule("contractions", _contracts_seldom),
        RowRule("opening", _forbid_repeats(lambda words: {tuple(words[:OPENING])}, "begins as")),
        RowRule("phrases", _forbid_repeats(_list_phrases, "shares words with")),
        RowRule("ending", _forbid_same_endings()),
        RowRule("asked at once", _allow(ASKED_AT_ONCE, _asks_by_name, "that begin with a name and a question")),
        RowRule("called back", _allow(CALLED_BACK, _calls_back, "whose end takes up a word of its beginning")),
        RowRule("pairs", _balance_voices({voice.id: voice.gender for voice in read_voices(VOICES).values()})),
    )


def find_unsourced_turn(row: Row) -> str | None:
    """Report a turn that says a year, or a name of two words that is no speaker's, and has no claim with a source."""
    speakers = {turn["speaker"] for turn in row["turns"]}
    for number, turn in enumerate(row["turns"], 1):
        if turn["claims"]:
            continue
        if year := _YEAR.search(turn["text"]):
            return f"turn {number} says {year[0]!r} without a source"
        for match in _NAME.finditer(turn["text"]):
            first, _, rest = match[0].partition(" ")
            name = rest if first in _FIRST_WORDS else match[0]
            if " " in name and not speakers.issuperset(name.split()):
                return f"turn {number} names {name!r} without a source"
    return None


def count_words(turns: Sequence[Row], version: str) -> int:
    """Count the space-separated words of a version, `text` or `spontaneous`."""
    return sum(len(str(turn[version]).split()) for turn in turns)


def _wrong_speakers(row: Row) -> str | None:
    names = [speaker["name"] for speaker in row["speakers"]]
    turn_speakers = {turn["speaker"] for turn in row["turns"]}
    if len(set(names)) < len(names) or set(names) != turn_speakers:
        return f"{', '.join(names) or 'nobody'} is named, {', '.join(sorted(turn_speakers)) or 'nobody'} speaks"
    if len(names) != row["voices"]:
        return f"{len(names)} speak, {row['voices']} voices are stated"
    if [speaker["role"] for speaker in row["speakers"]].count("host") != 1:
        return "one of its speakers should be the host"
    voices = [speaker["voice"] for speaker in row["speakers"]]
    return f"two speakers have the voice {voices[0]}" if len(set(voices)) < len(voices) else None


def _wrong_turns(row: Row) -> str | None:
    speakers = [turn["speaker"] for turn in row["turns"]]
    if not TURNS[0] <= len(speakers) <= TURNS[1]:
        return f"{len(speakers)} turns, not {TURNS[0]} to {TURNS[1]}"
    for number, (one, other) in enumerate(pairwise(speakers), 1):
        if one == other:
            return f"turns {number} and {number + 1} are both of {one}"
    quiet = [name for name in dict.fromkeys(speakers) if speakers.count(name) < 3]
    return f"{quiet[0]} speaks fewer than three times" if quiet else None


def _wrong_length(row: Row) -> str | None:
    if not WORDS[0] <= (words := count_words(row["turns"], "text")) <= WORDS[1]:
        return f"{words} words, not {WORDS[0]} to {WORDS[1]}"
    for number, turn in enumerate(row["turns"], 1):
        if not 1 <= len(turn["text"].split()) <= LONGEST_TURN:
            return f"turn {number} has {len(turn['text'].split())} words, not 1 to {LONGEST_TURN}"
    return None


def _unreadable(row: Row) -> str | None:
    """Report digits and signs: they can be read aloud in several ways, which would cause unfair word errors."""
    for number, turn in enumerate(row["turns"], 1):
        for version in ("text", "spontaneous"):
            if match := _UNREADABLE.search(turn[version]):
                return f"turn {number} ({version}) has {match[0]!r}; write it out"
    return None


def _says_word_twice(row: Row) -> str | None:
    """Report a word that stands twice in a row as written, as a restart does that lost its comma."""
    for number, turn in enumerate(row["turns"], 1):
        if (match := _TWICE.search(turn["text"])) and match[1] not in ("had", "that", "twenty"):
            return f"turn {number} says {match[1]!r} twice in a row as written"
    return None


def _wrong_fillers(row: Row) -> str | None:
    for number, turn in enumerate(row["turns"], 1):
        if match := _HESITATIONS.search(turn["text"]):
            return f"turn {number} hesitates as written: {match[0]!r}"
    fillers = sum(len(_FILLER.findall(turn["spontaneous"])) for turn in row["turns"])
    return (
        f"{fillers} fillers in the spontaneous version, not {FILLERS_LEAST} or more"
        if fillers < FILLERS_LEAST
        else None
    )


def _versions_differ(row: Row) -> str | None:
    written = kept = 0
    for number, turn in enumerate(row["turns"], 1):
        before, after = (_split_words(turn[version]) for version in ("text", "spontaneous"))
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        same = sum(block.size for block in blocks)
        if same < 0.7 * len(before):
            return f"turn {number} says something else in the spontaneous version"
        written, kept = written + len(before), kept + same
    if kept < KEPT * written:
        return f"{kept / written:.0%} of its words are said in the spontaneous version, not {KEPT:.0%}"
    ratio = count_words(row["turns"], "spontaneous") / count_words(row["turns"], "text")
    if not LONGER[0] <= ratio <= LONGER[1]:
        return f"the spontaneous version is {ratio:.2f} times as long, not {LONGER[0]} to {LONGER[1]} times"
    return None


def _split_words(text: str) -> list[str]:
    """Split text into words for comparing versions: "it's" becomes "it is", and hesitations are dropped."""
    return re.findall(r"[a-z']+", _write_out(text))


def _write_out(text: str) -> str:
    text = _HESITATIONS.sub("", text.lower())
    for short, long in _CONTRACTIONS:
        text = short.sub(long, text)
    return text


def _lacks_joint(row: Row) -> str | None:
    """Report a written clause that is incorrect English without a joint of the spontaneous version."""
    for number, turn in enumerate(row["turns"], 1):
        if missing := find_missing_joint(turn["text"], turn["spontaneous"]):
            joint, rest = missing
            return f"turn {number} has no {joint!r} before {rest!r} as written, only in the spontaneous version"
    return None


def find_missing_joint(written: str, spontaneous: str) -> tuple[str, str] | None:
    """Return the first joint within a sentence that only the spontaneous version has, and the written words after it.

    It is missing where the written version has a comma or nothing. Restarts ("and, um, and") are not joints, nor is a
    list whose last item has the same joint ("he was there, and, and she was there, and they sang").
    """
    before, stops = _split_words_and_stops(written)
    after = _split_words(spontaneous)
    for change, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if change not in ("insert", "replace") or not 0 < start < len(before) or stops[start] not in ("", ","):
            continue
        added = _FILLER.sub("", " ".join(after[first:last])).split()
        restarts = added in (before[max(0, start - len(added)) : start], before[end : end + len(added)])
        if added and added[0] in JOINTS and not restarts and not _is_joined_later(added[0], before, stops, start):
            return " ".join(added), " ".join(before[start : start + 4])
    return None


def _split_words_and_stops(text: str) -> tuple[list[str], list[str]]:
    """Split text into words for comparing, and the punctuation before each word, empty where there is none."""
    words, stops, stop = [], [], ""
    for part in re.findall(r"[a-z']+|[,.!?:;]", _write_out(text)):
        if part[0].isalpha() or part[0] == "'":
            words.append(part)
            stops.append(stop)
            stop = ""
        else:
            stop = part
    return words, stops


def _is_joined_later(joint: str, words: Sequence[str], stops: Sequence[str], start: int) -> bool:
    """Tell whether the same sentence has the joint after a later comma, as a list has before its last item."""
    for word, stop in zip(words[start + 1 :], stops[start + 1 :], strict=True):
        if stop not in ("", ","):
            return False
        if (word, stop) == (joint, ","):
            return True
    return False


def _forbid_repeats(parts_of: Callable[[list[str]], set[tuple[str, ...]]], what: str) -> Callable[[Row], str | None]:
    """Make the rule that no part of a script occurs in an earlier script."""
    seen: dict[tuple[str, ...], Any] = {}

    def broken_by(row: Row) -> str | None:
        words = re.findall(r"[a-z']+", " ".join(turn["text"] for turn in row["turns"]).lower())
        parts = parts_of(words)
        shared = [part for part in parts if seen.get(part, row["id"]) != row["id"]]
        seen.update(dict.fromkeys(parts - seen.keys(), row["id"]))
        return f"{what} {seen[shared[0]]}: {' '.join(shared[0])!r}" if shared else None

    return broken_by


def _contracts_seldom(row: Row) -> str | None:
    text = " ".join(turn["text"] for turn in row["turns"])
    short, long = len(_SHORT.findall(text)), _LONG.findall(text)
    if short >= CONTRACTED_LEAST * (short + len(long)):
        return None
    rate = short / (short + len(long))
    return f"{rate:.0%} of what can be contracted is, not {CONTRACTED_LEAST:.0%}, such as {long[0]!r}"


def _forbid_same_endings() -> Callable[[Row], str | None]:
    """Make the rule that no two scripts have last sentences that begin with the same words."""
    seen: dict[tuple[str, ...], Any] = {}

    def broken_by(row: Row) -> str | None:
        sentences = re.split(r"[.!?]+", row["turns"][-1]["text"].rstrip(".!? "))
        words = tuple(_split_words(sentences[-1])[:ENDING])
        earlier = seen.setdefault(words, row["id"])
        repeated = len(words) == ENDING and earlier != row["id"]
        return f"ends as {earlier}: {' '.join(words)!r}" if repeated else None

    return broken_by


def _allow(most: int, has_it: Callable[[Row], bool], what: str) -> Callable[[Row], str | None]:
    """Make the rule that at most so many scripts have a property."""
    having: set[Any] = set()

    def broken_by(row: Row) -> str | None:
        if has_it(row):
            having.add(row["id"])
            return f"is one more script {what}, beyond {most}" if len(having) > most else None
        return None

    return broken_by


def _asks_by_name(row: Row) -> bool:
    """Tell whether the first turn names another speaker and ends with a question."""
    first = row["turns"][0]
    others = {speaker["name"] for speaker in row["speakers"]} - {first["speaker"]}
    return first["text"].endswith("?") and not others.isdisjoint(re.findall(r"\w+", first["text"]))


def _calls_back(row: Row) -> bool:
    """Tell whether the last two turns repeat a longer word of the first that is neither everyday nor a name."""
    texts = [turn["text"].lower() for turn in row["turns"]]
    first, last = (set(_LONG_WORD.findall(text)) for text in (texts[0], " ".join(texts[1:][-2:])))
    return bool((first & last) - _EVERYDAY - {speaker["name"].lower() for speaker in row["speakers"]})


def _balance_voices(genders: Mapping[str, str]) -> Callable[[Row], str | None]:
    """Make the rule that pairs and hosts of either sex, numbers of speakers, and voices occur equally often.

    Scripts with a voice that is not among these are left alone.
    """
    counts: Counter[str] = Counter()

    def broken_by(row: Row) -> str | None:
        voices = [speaker["voice"] for speaker in row["speakers"]]
        if not genders.keys() >= set(voices):
            return None
        host = next((genders[one["voice"]] for one in row["speakers"] if one["role"] == "host"), "no")
        sexes = {genders[voice] for voice in voices}
        if len(voices) == 2 and len(sexes) == 2:
            company, most = f"of a woman and a man with a {host} host", MIXED_HOSTED
        elif len(voices) == 2:
            company, most = f"of two {sexes.pop()} voices", ALIKE[2]
        else:
            company, most = f"of {len(voices)} speakers", ALIKE.get(len(voices), 0)
        kinds = {f"with a {host} host": HOSTED, company: most} | {f"with the voice {v}": VOICED for v in voices}
        counts.update(kinds.keys())
        over = next((kind for kind, most in kinds.items() if counts[kind] > most), None)
        return f"is one more script {over}, beyond {kinds[over]}" if over else None

    return broken_by


def _list_phrases(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + SHARED]) for start in range(len(words) - SHARED + 1)}
