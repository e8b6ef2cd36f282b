"""Real-Pod's splits beyond the topics as tables: hard lines, long episodes, Chinese; their columns, rows and rules."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
from podeval.benchmarks.benchmark import Benchmark, Split
from podeval.benchmarks.real_pod_splits import TAGS
from podeval.datasets.data_files import read_object_lines, read_objects
from podeval.datasets.row_rules import Row, RowRule, require_one_of, require_present
from podeval.errors import BadInput
from podeval.text.accepted_readings import AcceptedReadings, ReadingStretch, ReadLine
from podeval.text.characters import HAN
from podeval.text.normalise import normalise

HARD_TURNS = (4, 10)
MINUTES = ("10", "30", "60")
WORDS_A_MINUTE = (130, 200)
CHARACTERS_A_MINUTE = (250, 420)
SPEAKERS = (2, 4)
FEWEST_TURNS = 5
"""Turns that each speaker of a long episode has at least."""

REPEATED = {"en": 12, "zh": 24}
"""Words (characters in Chinese) in a row that an episode has once only: what is said again was pasted."""

CHINESE_LENGTH = (500, 2000)
DEMO_LENGTH = (150, 420)
KEPT = 0.85
"""Share of the written characters that the spontaneous version says, in their order."""

_UNREADABLE = {
    "en": re.compile(r"[^A-Za-zÀ-ÿĀ-ž ',.!?:;\-]"),
    "zh": re.compile(rf"[^{HAN}，。？！、：；…—“”‘’《》·]"),
}
_HAN = re.compile(rf"[{HAN}]")


@dataclass(frozen=True)
class SplitTable:
    """A split as a table: its name, its items and scripts in the package, and what a row is."""

    split: Split
    description: str

    @property
    def name(self) -> str:
        """The name of the split, which is also the table's."""
        return self.split.name

    @property
    def files(self) -> tuple[str, ...]:
        """The data files that its rows are made of."""
        scripts = (self.split.scripts.file,) if self.split.scripts else ()
        return (str(self.split.file), *scripts)


def list_split_features(table: SplitTable, categories: Sequence[str], languages: Sequence[str]) -> datasets.Features:
    """Return the columns of a split's table."""
    text, count = datasets.Value("string"), datasets.Value("int32")
    common = {
        "id": text,
        "topic": text,
        "category": datasets.ClassLabel(names=list(categories)),
        "language": datasets.ClassLabel(names=list(languages)),
        "voices": count,
    }
    if table.split.readings:
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


def make_split_rows(table: SplitTable, folder: Path) -> Iterator[Row]:
    """Yield the rows of a split, in the order of its items."""
    scripts: dict[Any, Mapping[str, Any]] = {}
    if table.split.scripts:
        scripts = {script["id"]: script for script in read_object_lines(folder / table.split.scripts.file)}
    for item in read_objects(folder / str(table.split.file)):
        common = {name: item.get(name) for name in ("id", "topic", "category", "language", "voices")}
        if table.split.readings:
            lines = zip(item["script"], item["lines"], strict=True)
            yield common | {"turns": [turn | hard for turn, hard in lines]}
            continue
        script = scripts.get(item["id"], {"turns": item.get("script", ()), "sources": item.get("claims", ())})
        turns = [
            {"speaker": turn["speaker"], "text": turn["text"], "spontaneous": turn.get("spontaneous")}
            for turn in script["turns"]
        ]
        names = ("name", "role", "gender", "manner", "voice")
        yield common | {
            "minutes": item.get("properties", {}).get("minutes"),
            "speakers": [{name: one.get(name, "") for name in names} for one in script.get("speakers", ())],
            "turns": turns,
            "sources": list(script.get("sources", ())),
            "length": count_length([turn["text"] for turn in turns], item["language"]),
        }


def count_length(texts: Sequence[str], language: str) -> int:
    """Count the words of an English text, or the characters of a Chinese one."""
    whole = " ".join(texts)
    return len(_HAN.findall(whole)) if language == "zh" else len(whole.split())


def make_split_rules(table: SplitTable, benchmark: Benchmark, categories: Sequence[str]) -> Sequence[RowRule]:
    """Return the rules that every row of a split must keep."""
    common = [
        require_one_of("category", categories),
        require_one_of("language", benchmark.languages),
        require_present("turns", "topic"),
    ]
    if table.split.readings:
        return [*common, RowRule("turns", _wrong_hard_turns), RowRule("readings", _wrong_readings)]
    rules = [*common, RowRule("readable", _unreadable), RowRule("sources", _wrong_sources)]
    if table.split.scripts is None:
        return [*rules, RowRule("speakers", _wrong_voices), RowRule("length", _limit_length(DEMO_LENGTH))]
    rules += [RowRule("speakers", _wrong_speakers), RowRule("pasted", _repeats_itself)]
    if "long" in table.name:
        return [
            *rules,
            require_one_of("minutes", MINUTES),
            RowRule("length", _wrong_minutes),
            RowRule("turns", _too_quiet),
        ]
    return [*rules, RowRule("length", _limit_length(CHINESE_LENGTH)), RowRule("versions", _versions_differ)]


def _wrong_hard_turns(row: Row) -> str | None:
    turns = row["turns"]
    if not HARD_TURNS[0] <= len(turns) <= HARD_TURNS[1]:
        return f"{len(turns)} turns, not {HARD_TURNS[0]} to {HARD_TURNS[1]}"
    for number, turn in enumerate(turns, 1):
        tags = [*turn["tags"], *(tag for reading in turn["readings"] for tag in reading["tags"])]
        if not tags:
            return f"turn {number} has no tag, not even `plain`"
        if unknown := set(tags) - set(TAGS):
            return f"turn {number} has the tag {min(unknown)}, which is not one of {', '.join(TAGS)}"
    return _wrong_voices(row)


def _wrong_voices(row: Row) -> str | None:
    speakers = {turn["speaker"] for turn in row["turns"]}
    return f"{len(speakers)} speak, {row['voices']} voices are stated" if len(speakers) != row["voices"] else None


def _wrong_readings(row: Row) -> str | None:
    """Report a stretch that does not stand in its line, or whose forms join with the words around them.

    The words of a form are compared for themselves; a number that runs into its neighbour is another one in the whole.
    """
    for number, turn in enumerate(row["turns"], 1):
        try:
            (line,) = AcceptedReadings.parse([turn]).lines
        except BadInput as refusal:
            return f"turn {number}: {refusal}"
        if joined := find_joined_form(line):
            return f"turn {number}: {joined!r} is another word beside its neighbours; take them into the stretch"
    return None


def find_joined_form(line: ReadLine) -> str | None:
    """Return a form whose normalised words are others within the line than by themselves; None where there is none."""
    parts = line.parts()
    written = [part.text if isinstance(part, ReadingStretch) else part for part in parts]
    words = [normalise(piece).split() for piece in written]
    for at, part in enumerate(parts):
        for form in part.forms if isinstance(part, ReadingStretch) else (part,):
            own_words = words[at] if form == written[at] else normalise(form).split()
            alone = chain(*words[:at], own_words, *words[at + 1 :])
            if normalise("".join([*written[:at], form, *written[at + 1 :]])).split() != list(alone):
                return form
    return None


def _unreadable(row: Row) -> str | None:
    for number, turn in enumerate(row["turns"], 1):
        for version in ("text", "spontaneous"):
            if match := _UNREADABLE[row["language"]].search(turn.get(version) or ""):
                return f"turn {number} ({version}) has {match[0]!r}; write it out"
    return None


def _wrong_sources(row: Row) -> str | None:
    for claim in row["sources"]:
        if not 1 <= claim["turn"] <= len(row["turns"]):
            return f"a claim is of turn {claim['turn']}, and there are {len(row['turns'])}"
        if not claim["claim"].strip() or not claim["source"].strip():
            return f"the claim of turn {claim['turn']} lacks its words or its source"
    return None


def _wrong_speakers(row: Row) -> str | None:
    names = [speaker["name"] for speaker in row["speakers"]]
    speaking = {turn["speaker"] for turn in row["turns"]}
    if len(set(names)) < len(names) or set(names) != speaking:
        return f"{', '.join(names) or 'nobody'} is named, {', '.join(sorted(speaking)) or 'nobody'} speaks"
    if len(names) != row["voices"]:
        return f"{len(names)} speak, {row['voices']} voices are stated"
    voices = [speaker["voice"] for speaker in row["speakers"] if speaker["voice"]]
    if len(set(voices)) < len(voices):
        return f"two speakers have one voice: {', '.join(voices)}"
    silent = [speaker["name"] for speaker in row["speakers"] if not speaker["manner"].strip()]
    return f"nothing says how {silent[0]} talks" if silent else None


def _repeats_itself(row: Row) -> str | None:
    language = row["language"]
    whole = " ".join(turn["text"] for turn in row["turns"])
    words = _HAN.findall(whole) if language == "zh" else re.findall(r"[a-z']+", whole.lower())
    seen: set[tuple[str, ...]] = set()
    for start in range(len(words) - REPEATED[language] + 1):
        phrase = tuple(words[start : start + REPEATED[language]])
        if phrase in seen:
            return f"says twice: {('' if language == 'zh' else ' ').join(phrase)!r}"
        seen.add(phrase)
    return None


def _wrong_minutes(row: Row) -> str | None:
    low, high = CHARACTERS_A_MINUTE if row["language"] == "zh" else WORDS_A_MINUTE
    minutes = int(row["minutes"])
    if not low * minutes <= row["length"] <= high * minutes:
        unit = "characters" if row["language"] == "zh" else "words"
        return f"{row['length']} {unit} for {minutes} minutes, not {low * minutes} to {high * minutes}"
    return None


def _too_quiet(row: Row) -> str | None:
    if not SPEAKERS[0] <= row["voices"] <= SPEAKERS[1]:
        return f"{row['voices']} voices, not {SPEAKERS[0]} to {SPEAKERS[1]}"
    turns = [turn["speaker"] for turn in row["turns"]]
    quiet = [name for name in dict.fromkeys(turns) if turns.count(name) < FEWEST_TURNS]
    return f"{quiet[0]} speaks fewer than {FEWEST_TURNS} times" if quiet else None


def _limit_length(limits: tuple[int, int]) -> Any:
    def broken_by(row: Mapping[str, Any]) -> str | None:
        inside = limits[0] <= row["length"] <= limits[1]
        return None if inside else f"{row['length']} characters, not {limits[0]} to {limits[1]}"

    return broken_by


def _versions_differ(row: Row) -> str | None:
    """Report a spontaneous version that is missing, is the written one throughout, or says something else."""
    from difflib import SequenceMatcher

    written = kept = 0
    for number, turn in enumerate(row["turns"], 1):
        before, after = (_HAN.findall(turn[version] or "") for version in ("text", "spontaneous"))
        if not after:
            return f"turn {number} has no spontaneous version"
        written += len(before)
        kept += sum(block.size for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())
    if kept < KEPT * written:
        return f"{kept / written:.0%} of its characters are said in the spontaneous version, not {KEPT:.0%}"
    if all(turn["text"] == turn["spontaneous"] for turn in row["turns"]):
        return "both versions are the same"
    return None
