"""Real-Pod as a dataset: 51 podcast topics, each with a published episode and a script, and voices to speak them.

Other configs contain the sources of the scripts' claims, and transcripts of episodes. Topics, scripts and voices are
the package's own data files, which the benchmark also reads. Episode rows are created on the user's machine from the
user's own audio; they never contain the audio itself, because it belongs to its makers.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import datasets
from podeval import progress
from podeval.benchmarks.item import read_voices
from podeval.benchmarks.real_pod import BENCHMARK, CATEGORIES, SCRIPTS
from podeval.benchmarks.real_pod_splits import SPLITS, VOICES
from podeval.datasets.builder import Builder, DatasetTable
from podeval.datasets.data_files import read_object_lines, read_objects
from podeval.datasets.dataset_record import (
    Config,
    DatasetRecord,
    Row,
    RowRule,
    Source,
    require_at_least,
    require_one_of,
    require_present,
    require_readable_audio,
    require_text,
)
from podeval.datasets.episodes import EPISODE_RULES, list_episode_features, make_episode_rows
from podeval.datasets.feeds import EpisodeLink
from podeval.datasets.real_pod_scripts import (
    KNOWN_ERRORS,
    PROVENANCE,
    RESPONSIBLE_USE,
    SCRIPT_RULES,
    SOURCES,
    count_words,
    find_unsourced_claim,
    list_claim_features,
    list_split_features,
    make_claims_rows,
    make_split_rows,
    read_parts,
    read_topic_id,
)
from podeval.errors import BadInput

TOPICS, SPEECHES, CLAIMS, READERS, DEMO, EPISODES = "topics", "scripts", "sources", "voices", "demo", "episodes"

_TABLES = {split.name: split for split in (BENCHMARK.split("spontaneous"), *SPLITS)}
_FILES = {
    TOPICS: BENCHMARK.split(TOPICS).file,
    SPEECHES: SCRIPTS.file,
    READERS: VOICES.file,
    DEMO: BENCHMARK.split(DEMO).file,
}
_HASHES = {
    file: str(revision).removeprefix("sha256:")
    for file, revision in (
        *((BENCHMARK.split(name).file, BENCHMARK.split(name).revision) for name in (TOPICS, DEMO)),
        (SCRIPTS.file, SCRIPTS.revision),
        (VOICES.file, VOICES.revision),
        (SOURCES.file, SOURCES.revision),
        *((split.file, split.revision) for split in _TABLES.values()),
        *((split.scripts.file, split.scripts.revision) for split in _TABLES.values() if split.scripts),
    )
} | {voice.file: voice.sha256 for voice in read_voices(VOICES).values()}
_OWN = tuple(_FILES[name] for name in (TOPICS, SPEECHES, DEMO))
_TEXTS = ("paper", "own", "sample")
_SOURCED = (
    BENCHMARK.split(TOPICS),
    BENCHMARK.split(DEMO),
    *(split for split in _TABLES.values() if not split.for_listening),
)
"""The splits whose scripts each have a row in the table of claims."""

GENDERS = ("female", "male")

_TEXT, _COUNT = datasets.Value("string"), datasets.Value("int32")
_COMMON = {
    "id": _TEXT,
    "topic": _TEXT,
    "category": datasets.ClassLabel(names=list(CATEGORIES)),
    "language": datasets.ClassLabel(names=list(BENCHMARK.languages)),
    "voices": _COUNT,
}
"""The columns of every table with rows for topics."""

_COMMON_RULES = (
    require_one_of("category", CATEGORIES),
    require_one_of("language", BENCHMARK.languages),
    require_at_least("voices", 1),
)


class RealPod(Builder):
    """The builder of Real-Pod."""

    RECORD = DatasetRecord(
        name="real_pod",
        title="Real-Pod",
        summary=(
            "Scripted conversation, written by a language model: 51 podcast topics in 17 categories, each with a "
            "published episode, a script to be spoken and a show in spontaneous speech, and voices to speak them with."
        ),
        version="3.0.0",
        paper=BENCHMARK.paper,
        citation=BENCHMARK.citation,
        licence="other",
        licence_details=(
            "Topics, categories, episode titles and links are facts from Real-Pod, MIT, Copyright (c) 2025 yujxx. The "
            "scripts of `scripts` and `demo` are podeval's own, CC BY 4.0. The recordings of `voices` are from "
            "LibriTTS-R (Koizumi et al., 2023), CC BY 4.0. The episodes belong to their makers: no config contains "
            "their audio, and rows of `episodes` contain their words, so they are for your own use and are not "
            "published."
        ),
        languages=BENCHMARK.languages,
        tasks=("text-to-speech", "text-generation"),
        tags=("modality:audio", "podcast", "long-form", "dialogue"),
        size="n<1K",
        configs=(
            Config(
                name=TOPICS,
                rows=len(BENCHMARK.items(TOPICS)),
                description="One topic per row, with the title and link of a published episode on it.",
                splits=("test",),
                sources=_TEXTS,
            ),
            Config(
                name=SPEECHES,
                rows=len(BENCHMARK.items(TOPICS)),
                description=(
                    "One script per row and topic, for two to four speakers and about three minutes, with the voice of "
                    "each speaker."
                ),
                splits=("test",),
                sources=_TEXTS,
            ),
            Config(
                name=CLAIMS,
                description=(
                    "One script per row, from every table that has scripts, for reviewers and not for systems. Every "
                    "turn has its claims with their sources, or a mark that they are invented; `note` says what is "
                    "invented in a script, and `own_turns` and `own_names` list its invented figures and names."
                ),
                splits=("test",),
                sources=_TEXTS,
            ),
            Config(
                name=READERS,
                rows=len(read_voices(VOICES)),
                description="One reference voice per row, to speak the scripts with: a short recording with its words.",
                splits=("test",),
                sources=("paper",),
            ),
            Config(
                name=DEMO,
                rows=len(BENCHMARK.items(DEMO)),
                description="One script for two voices per row, about 50 seconds when spoken.",
                splits=("test",),
                sources=_TEXTS,
            ),
            *(
                Config(
                    name=split.name,
                    description=split.description,
                    splits=("test",),
                    sources=("paper",),
                    rows=len(BENCHMARK.items(split.name)),
                )
                for split in _TABLES.values()
            ),
            Config(
                name=EPISODES,
                description=(
                    "The words of a recording with their speakers and times, and the clips around changes of speaker; "
                    "only texts and times, no audio. Created on your machine from a folder of audio, fetched or your "
                    "own; not in the published repo."
                ),
                splits=("test",),
                sources=(EPISODES,),
            ),
        ),
        sources=(
            Source(
                name="paper",
                kind="package",
                location="podeval.benchmarks:data",
                revision="7d37230",
                files=_HASHES,
                licence="MIT (topics), CC BY 4.0 (scripts, voices)",
                redistributable=True,
                about=(
                    "the paper's topics, from https://github.com/yujxx/PodEval, podeval's scripts, and voices of "
                    "LibriTTS-R (https://www.openslr.org/141/)"
                ),
            ),
            Source(
                name="own",
                kind="folder",
                location="--source FOLDER",
                files=dict.fromkeys(_OWN, ""),
                licence="your own",
                redistributable=False,
                about="your own topics and scripts, as `podeval data construct real_pod` writes them",
            ),
            Source(
                name=EPISODES,
                kind="folder",
                location="--source FOLDER",
                files={"*": ""},
                licence="each maker's own",
                redistributable=False,
                about="a folder of audio, from `podeval data fetch real_pod` or your own",
            ),
            Source(
                name="sample",
                kind="package",
                location="sample",
                revision="4",
                files=dict.fromkeys(_OWN, ""),
                licence="MIT (topics), CC BY 4.0 (scripts)",
                redistributable=True,
                about="two of the topics with their scripts, and one script from the demo",
            ),
        ),
        provenance=PROVENANCE,
        responsible_use=RESPONSIBLE_USE,
        known_errors=KNOWN_ERRORS,
    )

    TABLES: ClassVar[Mapping[str, DatasetTable]] = {
        TOPICS: DatasetTable(
            datasets.Features(
                {**_COMMON, "topic_id": _COUNT, "episode_title": _TEXT, "episode_link": _TEXT}
                | {"show": datasets.Value("int64"), "episode": datasets.Value("int64"), "country": _TEXT}
            ),
            lambda: (
                require_text("id", "topic", "episode_title"),
                *_COMMON_RULES,
                require_at_least("topic_id", 1),
                RowRule("episode_link.form", _wrong_link),
            ),
            lambda split, folder: _read_items(folder, TOPICS, _make_topic),
        ),
        SPEECHES: DatasetTable(
            datasets.Features(
                {
                    **_COMMON,
                    "topic_id": _COUNT,
                    "speakers": datasets.List({"name": _TEXT, "role": _TEXT, "voice": _TEXT}),
                    "turns": datasets.List({"speaker": _TEXT, "text": _TEXT}),
                    "words": _COUNT,
                }
            ),
            lambda: (
                require_text("id", "topic"),
                *_COMMON_RULES,
                require_at_least("topic_id", 1),
                require_present("speakers", "turns"),
                RowRule("turns.words", _wrong_turns),
                *SCRIPT_RULES,
            ),
            lambda split, folder: _read_speeches(folder),
        ),
        CLAIMS: DatasetTable(
            list_claim_features(),
            lambda: (require_text("id", "topic"), require_present("turns"), RowRule("sources", find_unsourced_claim)),
            lambda split, folder: make_claims_rows(folder, _SOURCED),
        ),
        READERS: DatasetTable(
            datasets.Features(
                {
                    "id": _TEXT,
                    "gender": datasets.ClassLabel(names=list(GENDERS)),
                    "seconds": datasets.Value("float64"),
                    "words": _TEXT,
                    "utterances": datasets.List(_TEXT),
                    "audio": datasets.Audio(sampling_rate=24_000),
                }
            ),
            lambda: (
                require_text("id", "words"),
                require_one_of("gender", GENDERS),
                require_at_least("seconds", 1),
                require_present("audio", "utterances"),
                require_readable_audio("audio"),
            ),
            lambda split, folder: (
                _make_voice(one, folder) for one in read_objects(folder / _FILES[READERS], "voices")
            ),
        ),
        DEMO: DatasetTable(
            datasets.Features({**_COMMON, "turns": datasets.List({"speaker": _TEXT, "text": _TEXT})}),
            lambda: (
                require_text("id", "topic"),
                *_COMMON_RULES,
                require_present("turns"),
                RowRule("turns.words", _wrong_turns),
            ),
            lambda split, folder: _read_items(folder, DEMO, _make_script),
        ),
        **{
            table.name: DatasetTable(
                list_split_features(table, CATEGORIES, BENCHMARK.languages),
                lambda: (require_text("id", "topic"), *_COMMON_RULES, require_present("turns")),
                lambda split, folder, table=table: make_split_rows(table, folder),
            )
            for table in _TABLES.values()
        },
        EPISODES: DatasetTable(
            list_episode_features(),
            lambda: EPISODE_RULES,
            lambda split, folder: make_episode_rows(folder, {item.id: item for item in BENCHMARK.items(TOPICS)}),
        ),
    }


def _read_items(folder: Path, config: str, make_row: Callable[[Mapping[str, Any]], Row]) -> Iterator[Row]:
    items = read_objects(folder / _FILES[config])
    for number, item in enumerate(items):
        progress.report(config, number, len(items))
        yield make_row(item)


def _read_speeches(folder: Path) -> Iterator[Row]:
    topics = {item.get("id"): item for item in read_objects(folder / _FILES[TOPICS])}
    for _, script in read_object_lines(folder / _FILES[SPEECHES]):
        yield _make_speech(script, topics)


def _copy_common(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item.get(name) for name in ("id", "topic", "category", "language", "voices")}


def _make_topic(item: Mapping[str, Any]) -> Row:
    """Create the row of a topic, with the facts in its link; the rules report any fact that cannot be read."""
    episode = item.get("episode")
    episode = episode if isinstance(episode, Mapping) else {}
    row = _copy_common(item) | {
        "topic_id": read_topic_id(item),
        "episode_title": episode.get("title"),
        "episode_link": episode.get("link"),
    }
    try:
        link = EpisodeLink.parse(str(episode.get("link")))
    except BadInput:
        return row | {"show": None, "episode": None, "country": None}
    return row | {"show": link.show, "episode": link.episode, "country": link.country}


def _make_script(item: Mapping[str, Any]) -> Row:
    return _copy_common(item) | {"turns": read_parts(item.get("script"), "speaker", "text")}


def _make_speech(script: Mapping[str, Any], topics: Mapping[Any, Mapping[str, Any]]) -> Row:
    """Create the row of a script with the facts of its topic; the rules report anything that does not match."""
    turns = read_parts(script.get("turns"), "speaker", "text")
    whole = all(isinstance(value, str) for turn in turns for value in turn.values())
    return _copy_common({**topics.get(script.get("id"), {}), "id": script.get("id")}) | {
        "topic_id": read_topic_id(script),
        "speakers": read_parts(script.get("speakers"), "name", "role", "voice"),
        "turns": turns,
        "words": count_words(turns) if whole else None,
    }


def _make_voice(voice: Mapping[str, Any], folder: Path) -> Row:
    """Create the row of a voice with its recording, which is None if the file is missing."""
    path = folder / str(voice.get("file"))
    audio = {"bytes": path.read_bytes(), "path": path.name} if path.is_file() else None
    return {name: voice.get(name) for name in ("id", "gender", "seconds", "words", "utterances")} | {"audio": audio}


def _wrong_link(row: Row) -> str | None:
    try:
        EpisodeLink.parse(str(row["episode_link"]))
    except BadInput as refusal:
        return str(refusal)
    return None


def _wrong_turns(row: Row) -> str | None:
    for number, turn in enumerate(row["turns"], 1):
        if not all(isinstance(value, str) and value.strip() for value in turn.values()):
            return f"turn {number} lacks its speaker or its words"
    speakers = {turn["speaker"] for turn in row["turns"]}
    return (
        f"{len(speakers)} people speak, but {row['voices']} voices are stated"
        if len(speakers) != row["voices"]
        else None
    )
