"""Real-Pod's scripts as tables: the scripts of the topics with their rules, other splits, and the sources of claims.

Users may supply their own scripts on the topics, so rules check each script. The other splits are pinned files of the
package.

Some sources of claims are in the script files. If a protocol pins a script file without sources, the sources are in a
separate file, which is not part of any protocol and is not sent to systems, so it can grow without changing a figure.
This module also contains the card's statements about the author and the known errors of the scripts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
from podeval.benchmarks.benchmark import Split
from podeval.benchmarks.records import PinnedFile
from podeval.datasets.data_files import read_object_lines, read_objects
from podeval.datasets.dataset_record import ResponsibleUse, Row, RowRule
from podeval.errors import BadInput
from podeval.text.characters import HAN

TURNS = (8, 44)
WORDS = (350, 580)
LONGEST_TURN = 100
"""Maximum number of words in a turn."""

_UNREADABLE = re.compile(r"[^A-Za-z ',.!?:;-]")
_HAN = re.compile(rf"[{HAN}]")


def count_words(turns: Sequence[Row]) -> int:
    """Count the space-separated words of all turns."""
    return sum(len(str(turn["text"]).split()) for turn in turns)


def _wrong_speakers(row: Row) -> str | None:
    names = [speaker["name"] for speaker in row["speakers"]]
    turn_speakers = {turn["speaker"] for turn in row["turns"]}
    if len(set(names)) < len(names) or set(names) != turn_speakers:
        return (
            f"the speakers are {', '.join(names) or 'none'}, but the turns are by "
            f"{', '.join(sorted(turn_speakers)) or 'nobody'}"
        )
    if len(names) != row["voices"]:
        return f"{len(names)} people speak, but {row['voices']} voices are stated"
    if [speaker["role"] for speaker in row["speakers"]].count("host") != 1:
        return "exactly one of the speakers must be the host"
    voices = [speaker["voice"] for speaker in row["speakers"]]
    return f"two speakers have the voice {voices[0]}" if len(set(voices)) < len(voices) else None


def _wrong_turns(row: Row) -> str | None:
    speakers = [turn["speaker"] for turn in row["turns"]]
    if not TURNS[0] <= len(speakers) <= TURNS[1]:
        return f"{len(speakers)} turns, not {TURNS[0]} to {TURNS[1]}"
    for number, (one, other) in enumerate(pairwise(speakers), 1):
        if one == other:
            return f"turns {number} and {number + 1} are both by {one}"
    quiet = [name for name in dict.fromkeys(speakers) if speakers.count(name) < 3]
    return f"{quiet[0]} speaks fewer than three times" if quiet else None


def _wrong_length(row: Row) -> str | None:
    if not WORDS[0] <= (words := count_words(row["turns"])) <= WORDS[1]:
        return f"{words} words, not {WORDS[0]} to {WORDS[1]}"
    for number, turn in enumerate(row["turns"], 1):
        if not 1 <= len(turn["text"].split()) <= LONGEST_TURN:
            return f"turn {number} has {len(turn['text'].split())} words, not 1 to {LONGEST_TURN}"
    return None


def _unreadable(row: Row) -> str | None:
    """Report digits and symbols, which can be read aloud in several ways and would therefore cause unfair word
    errors.
    """
    for number, turn in enumerate(row["turns"], 1):
        if match := _UNREADABLE.search(turn["text"]):
            return f"turn {number} has {match[0]!r}; write it out"
    return None


SCRIPT_RULES = (
    RowRule("speakers", _wrong_speakers),
    RowRule("turns", _wrong_turns),
    RowRule("length", _wrong_length),
    RowRule("readable", _unreadable),
)
"""Rules for the scripts of topics: speakers, length, and whether they can be read aloud."""


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
    turn = dict.fromkeys(_list_turn_columns(split), text)
    speaker = {"name": text, "role": text, "gender": text, "manner": text, "voice": text}
    claim = {"turn": count, "claim": text, "source": text}
    return datasets.Features(
        common
        | {"minutes": text, "speakers": datasets.List(speaker), "turns": datasets.List(turn)}
        | {"sources": datasets.List(claim), "length": count}
    )


def _list_turn_columns(split: Split) -> tuple[str, ...]:
    return ("speaker", "text", "overlap") if split.for_listening else ("speaker", "text")


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
        turns = [{name: turn.get(name, "") for name in _list_turn_columns(split)} for turn in script["turns"]]
        whole = " ".join(turn["text"] for turn in turns)
        names = ("name", "role", "gender", "manner", "voice")
        yield common | {
            "voices": len({turn["speaker"] for turn in turns}),
            "minutes": item.get("properties", {}).get("minutes"),
            "speakers": [{name: one.get(name, "") for name in names} for one in script.get("speakers", ())],
            "turns": turns,
            "sources": list(script.get("sources", ())),
            "length": len(_HAN.findall(whole)) if item["language"] == "zh" else len(whole.split()),
        }


SOURCES = PinnedFile(
    file="real_pod_sources.json", revision="sha256:9abc8fd38a0472a522914b9e55aac44ab1dcd6283d2da2fc6cc3e5bec6835c85"
)

NAMED_THROUGHOUT = ("topics", "demo")
"""Splits in which every spoken year and name has a source or is marked as invented."""

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
"""Words that occur at the beginning of a sentence, before a name, and are not part of the name."""


def list_claim_features() -> datasets.Features:
    """Return the columns of the claims table."""
    text = datasets.Value("string")
    turn = {"speaker": text, "text": text, "claims": datasets.List({"claim": text, "source": text})}
    return datasets.Features(
        {"id": text, "split": text, "topic": text, "topic_id": datasets.Value("int32")}
        | {"turns": datasets.List(turn), "note": text}
        | {"own_turns": datasets.List(datasets.Value("int32")), "own_names": datasets.List(text)}
    )


def make_claims_rows(folder: Path, splits: Sequence[Split]) -> Iterator[Row]:
    """Yield a row for each script of the splits whose files are in the folder, in order."""
    more = read_more_sources(folder)
    for split in splits:
        if not (folder / str(split.file)).is_file():
            continue
        items = {item.get("id"): item for item in read_objects(folder / str(split.file))}
        scripts: Iterable[Mapping[str, Any]] = items.values()
        if split.scripts:
            scripts = [script for _, script in read_object_lines(folder / split.scripts.file)]
        for script in scripts:
            item = items.get(script.get("id"), {})
            yield _make_row(split.name, script, item, more.get(script.get("id"), {}))


def read_more_sources(folder: Path) -> Mapping[Any, Mapping[str, Any]]:
    """Return the sources in the separate file, by script; a user's own folder does not need such a file."""
    path = folder / SOURCES.file
    return {one.get("id"): one for one in read_objects(path)} if path.is_file() else {}


def find_unsourced_claim(row: Row) -> str | None:
    """Report a turn that contains a year, or a two-word name that is not a speaker's, without a sourced claim.

    The rule applies only to splits that promise sources for every script.
    """
    speakers = {turn["speaker"] for turn in row["turns"]}
    for number, turn in enumerate(row["turns"], 1):
        if turn["claims"] or row["split"] not in NAMED_THROUGHOUT:
            continue
        if year := _YEAR.search(turn["text"]):
            return f"turn {number} says {year[0]!r} without a source"
        for match in _NAME.finditer(turn["text"]):
            first, _, rest = match[0].partition(" ")
            name = rest if first in _FIRST_WORDS else match[0]
            if " " in name and not speakers.issuperset(name.split()):
                return f"turn {number} names {name!r} without a source"
    return None


def read_parts(values: Any, *names: str) -> list[dict[str, Any]]:
    """Return those objects in a list that have all the named values."""
    objects = (one for one in (values if isinstance(values, list) else []) if isinstance(one, Mapping))
    return [{name: one.get(name) for name in names} for one in objects]


def read_topic_id(item: Mapping[str, Any]) -> int | None:
    """Return the paper's number for a topic, which is at the end of the topic's id."""
    number = str(item.get("id")).rpartition("_")[2]
    return int(number) if number.isdecimal() else None


def _make_row(split: str, script: Mapping[str, Any], item: Mapping[str, Any], more: Mapping[str, Any]) -> Row:
    """Make the row of a script's claims: its turns, each with the claims and sources that refer to the turn by its
    number.
    """
    added = list(more.get("sources", ()))
    claims = [*(script.get("sources") or ()), *(script.get("claims") or ()), *added]
    sources = read_parts(claims, "turn", "claim", "source")
    turns = read_parts(script.get("turns", script.get("script")), "speaker", "text")
    if stray := [one["turn"] for one in added if not 1 <= one["turn"] <= len(turns)]:
        raise BadInput(f"{SOURCES.file} names turn {stray[0]} of {script.get('id')}, which has only {len(turns)} turns")
    for number, turn in enumerate(turns, 1):
        turn["claims"] = read_parts([one for one in sources if one["turn"] == number], "claim", "source")
    return {
        "id": script.get("id"),
        "split": split,
        "topic": item.get("topic"),
        "topic_id": read_topic_id(script) if split in NAMED_THROUGHOUT else None,
        "turns": turns,
        "note": more.get("note", ""),
        "own_turns": list(more.get("own_turns", ())),
        "own_names": list(more.get("own_names", ())),
    }


PROVENANCE = (
    "The categories are those of podcast directories. A language model suggested topics for each, which were "
    "reviewed, and episodes were chosen by hand (paper, section 3). podeval added ids, language, voices, the show and "
    "episode numbers, and the store's country; it also gives each topic as many voices as its script has speakers, two "
    "to four. Claude, a language model by Anthropic, wrote the scripts of this revision with their sources for podeval "
    "in November 2026, in one session (the model does not know its exact version), script by script after an editor's "
    "review of the scripts of revision 1.2.0, which were also written by a language model; no person wrote or edited "
    "them. Rules check lengths and turns, that everything can be read aloud, and that every year or name has a source. "
    "When the scripts were written, rules also checked contractions, repeated openings and endings, that the written "
    "version makes sense on its own, that voices are used equally, and that no phrase of eight words occurs in two "
    "scripts. Claude wrote the shows of `spontaneous` and `zh_spontaneous` in the same month, each as a whole: they "
    "cover the topics, speakers and claims of `scripts` and `zh` in other words, and a turn that begins early names "
    "the words that it is spoken over (`overlap`). No episode was read for them. Hosts and guests are invented. The "
    "paper's systems read scripts made by PodAgent, and MoonCast's spontaneous version of them. The voices are 12 "
    "women and 12 men from PodAgent's presets, one utterance of 6.6 to 9.9 seconds each, stored as FLAC; each speaks "
    "in five of `scripts`. Claude also wrote the tables `hard`, `long`, `long_zh`, `demo_zh` and `zh` in November "
    "2026, each long episode as a whole; rules checked them then. The six scripts of `demo` are by podeval's founders, "
    "which are also sessions of Claude. The table `sources` has one row for every script, with sources for its claims "
    "from the model's knowledge, or a note that it claims nothing; no protocol includes it, and sources, tags and "
    "accepted readings are not shown to systems. The models of the embedded profile produce the rows of `episodes`, "
    "each of which names them, and clips are grouped as in PodEval."
)
"""Provenance of the rows, for the card."""

RESPONSIBLE_USE = ResponsibleUse(
    use_cases=(
        "Comparing systems that produce podcasts with each other and with published episodes; finding out where they "
        "fail and whether they stay good over an hour."
    ),
    out_of_scope=(
        "Training; learning facts from scripts; using the voices, or those of the episodes' makers, for anything else."
    ),
    biases=(
        "Only English and Chinese; 17 categories, three topics each. Chinese scripts have no voices, because no "
        "recordings with a suitable licence were available. The voices are those of audiobook readers, most of them "
        "American, whatever the speaker's region. In `long` they match the speakers' sex and, by PodAgent's labels, "
        "roughly their age; in other tables they do not match their age. Of the 51 scripts, 13 have two women, 13 two "
        "men, 12 a woman and a man (each is the host in six), eight three speakers and five four speakers; 25 hosts "
        "are women and 26 men. Most of the English is British; ten of the spontaneous shows are American. Scripts by "
        "one language model share its habits, and may suit a writer or judge of the same model family better than "
        "others. The accepted readings of `hard` are those of podeval's grammar and those that we thought of, and "
        "names are spelt as a transcriber might spell them; a correct reading that is in neither is scored as wrong."
    ),
    personal_information=(
        "Titles and links of published episodes name their makers. The voices are recordings published by volunteers; "
        "they must not be cloned for anything but this test. Scripts name deceased and public people in connection "
        "with what they did or published. Victims of crimes and people who were wrongly accused are not named; scripts "
        "that mention suicide say that helplines exist."
    ),
    sensitive_content=(
        "Some scripts are about crimes, illness, grief and fear. They treat victims and living people as a "
        "public broadcaster would; scripts on medical topics refer listeners to a doctor."
    ),
    synthetic=True,
)

KNOWN_ERRORS = (
    "Links break: `podeval data fetch real_pod` shows which episodes are still available.",
    "Links of topics 28 to 51 go to the Hong Kong store (/hk/), some with a language; the others go to /us/.",
    "The authors do not state the length, language, licence or number of speakers of an episode.",
    "The language model that wrote the scripts stated the sources from its knowledge; nobody has checked each "
    "source against its claim. A program lists every sentence with a figure or, in English, a name that has neither a "
    "source nor a reader's mark that the story invented it (`own_turns`, `own_names`); there are none. It cannot find "
    "names in Chinese, and a language model set the marks.",
    "Names and words from other languages are written in plain letters, without accents.",
    "Interruptions, repairs and fillers of the spontaneous shows were written, not transcribed from conversations.",
)
