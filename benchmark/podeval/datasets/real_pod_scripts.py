"""Real-Pod's scripts as tables: the scripts of the topics with their rules, and the splits beyond the topics.

Scripts of the topics may be a user's own, so rules check them one by one. The other splits are the package's own files,
which are pinned.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
from podeval.benchmarks.benchmark import Split
from podeval.datasets.data_files import read_object_lines, read_objects
from podeval.datasets.row_rules import Row, RowRule
from podeval.text.characters import HAN

TURNS = (8, 44)
WORDS = (350, 580)
LONGEST_TURN = 100
"""Most words of a turn."""

KEPT, KEPT_IN_TURN = 0.97, 0.7
"""Shares of the written words that are said in the spontaneous version, in their order: of a script, of each turn."""

_UNREADABLE = re.compile(r"[^A-Za-z ',.!?:;-]")
_HAN = re.compile(rf"[{HAN}]")


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


def _versions_differ(row: Row) -> str | None:
    written = kept = 0
    for number, turn in enumerate(row["turns"], 1):
        before, after = (re.findall(r"[a-z']+", turn[version].lower()) for version in ("text", "spontaneous"))
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        same = sum(block.size for block in blocks)
        if same < KEPT_IN_TURN * len(before):
            return f"turn {number} says something else in the spontaneous version"
        written, kept = written + len(before), kept + same
    if kept < KEPT * written:
        return f"{kept / written:.0%} of its words are said in the spontaneous version, not {KEPT:.0%}"
    return None


SCRIPT_RULES = (
    RowRule("speakers", _wrong_speakers),
    RowRule("turns", _wrong_turns),
    RowRule("length", _wrong_length),
    RowRule("readable", _unreadable),
    RowRule("versions", _versions_differ),
)
"""Rules for the scripts of topics: who speaks, how much, that it can be read aloud, that both versions agree."""


def list_split_features(split: Split, categories: Sequence[str], languages: Sequence[str]) -> datasets.Features:
    """Return the columns of a split's table."""
    text, count = datasets.Value("string"), datasets.Value("int32")
    common = {
        "id": text,
        "topic": text,
        "category": datasets.ClassLabel(names=list(categories)),
        "language": datasets.ClassLabel(names=list(languages)),
        "voices": count,
    }
    if split.readings:
        reading = {"text": text, "accepted": datasets.List(text), "tags": datasets.List(text)}
        turn = {"speaker": text, "text": text, "tags": datasets.List(text), "readings": datasets.List(reading)}
        return datasets.Features(common | {"turns": datasets.List(turn)})
    turn = {"speaker": text, "text": text, "spontaneous": text}
    speaker = {"name": text, "role": text, "gender": text, "manner": text, "voice": text}
    claim = {"turn": count, "claim": text, "source": text}
    return datasets.Features(
        common
        | {"minutes": text, "speakers": datasets.List(speaker), "turns": datasets.List(turn)}
        | {"sources": datasets.List(claim), "length": count}
    )


def make_split_rows(split: Split, folder: Path) -> Iterator[Row]:
    """Yield the rows of a split, in the order of its items."""
    scripts: dict[Any, Mapping[str, Any]] = {}
    if split.scripts:
        scripts = {script["id"]: script for _, script in read_object_lines(folder / split.scripts.file)}
    for item in read_objects(folder / str(split.file)):
        common = {name: item.get(name) for name in ("id", "topic", "category", "language", "voices")}
        if split.readings:
            lines = zip(item["script"], item["lines"], strict=True)
            yield common | {"turns": [turn | hard for turn, hard in lines]}
            continue
        script = scripts.get(item["id"], {"turns": item.get("script", ()), "sources": item.get("claims", ())})
        turns = [
            {"speaker": turn["speaker"], "text": turn["text"], "spontaneous": turn.get("spontaneous")}
            for turn in script["turns"]
        ]
        whole = " ".join(turn["text"] for turn in turns)
        names = ("name", "role", "gender", "manner", "voice")
        yield common | {
            "minutes": item.get("properties", {}).get("minutes"),
            "speakers": [{name: one.get(name, "") for name in names} for one in script.get("speakers", ())],
            "turns": turns,
            "sources": list(script.get("sources", ())),
            "length": len(_HAN.findall(whole)) if item["language"] == "zh" else len(whole.split()),
        }
