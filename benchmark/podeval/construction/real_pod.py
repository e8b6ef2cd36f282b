"""Construct a Real-Pod of one's own: categories, topics, candidate episodes, items (PodEval, section 3).

For each category a language model names five topics, people keep three; Apple's directory is searched for episodes on
each, people choose one. Or from recordings of one's own: people name their topics. The folder holds `topics.jsonl`,
`topics.csv`, `candidates.jsonl`, `candidates.csv`, or `own.csv`; and `finished/`, a source of the dataset.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from podeval import progress
from podeval.benchmarks.benchmark import Item
from podeval.benchmarks.real_pod import CATEGORIES, SCRIPTS
from podeval.construction.checked_source import write_source
from podeval.construction.review import ReviewRow, lay_out, read_decisions
from podeval.construction.staged_rows import (
    StagedRow,
    StepReport,
    WaitingRow,
    Workshop,
    ask_each,
    describe_validation_error,
)
from podeval.datasets.feeds import ITUNES, Read, search_episodes
from podeval.errors import BadAudio, BadInput
from podeval.judges.answer_model import JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Asked
from podeval.store.files import append_line, read_lines, write_json, write_whole

TOPICS, TOPIC_TABLE, CANDIDATES, EPISODE_TABLE, OWN_TABLE = (
    "topics.jsonl",
    "topics.csv",
    "candidates.jsonl",
    "candidates.csv",
    "own.csv",
)
FINISHED = "finished"
SUGGESTED, KEPT = 5, 3
"""Topics a category: suggested, and kept by people."""

VOICES = 2
_SHOWN = 400


class Topic(StagedRow):
    """A suggested topic."""

    category: str
    topic: str


class EpisodeCandidate(StagedRow):
    """An episode that may be on a topic; its id joins the topic's id and its rank."""

    topic_id: str
    term: str
    rank: int
    link: str
    title: str
    show: str
    minutes: float | None
    released: str
    description: str
    explicit: bool


class Suggestions(JudgeAnswer):
    """Topics."""

    topics: list[str] = Field(min_length=1)


def make_topics_prompt(count: int) -> Prompt:
    """Make the prompt that asks for topics of a category."""
    return Prompt(
        name="real_pod_topics",
        version="1.0",
        system="You edit a directory of podcasts and know what people listen to.",
        template=(
            "A category of podcasts:\n{category}\n\n"
            f"Name exactly {count} topics that podcasts of this category are about now and that listeners care for. "
            "Each is one line, specific enough that two people could talk about it for an hour, and clearly another "
            "topic than the others. No names of shows, hosts or episodes."
        ),
        answer=Suggestions,
        source="PodEval section 3, wording of our own",
    )


def suggest_topics(
    workshop: Workshop, judging: Asked, categories: Sequence[str] = CATEGORIES, each: int = SUGGESTED
) -> StepReport:
    """Have topics suggested for every category, and write the table in which people keep some.

    Raises:
        BadInput: a category is unknown.
    """
    if unknown := [name for name in categories if name not in CATEGORIES]:
        raise BadInput(f"there is no category {unknown[0]!r}; choose from {', '.join(CATEGORIES)}")
    prompt = make_topics_prompt(each)

    def request(line: StagedRow) -> JudgeRequest:
        return JudgeRequest(prompt, {"category": line.id.replace("_", " ")}, check=_check_topics(each))

    # Have topics suggested.
    report = StepReport()
    answered, report.waiting = ask_each(judging, [StagedRow(id=name) for name in categories], Suggestions, request)
    topics = [
        Topic(id=f"{line.id}_{number}", category=line.id, topic=topic.strip())
        for line, answer in answered
        for number, topic in enumerate(answer.topics[:each], 1)
    ]
    # Write them, and the table in which people keep some.
    workshop.write(TOPICS, topics)
    table = workshop.folder / TOPIC_TABLE
    undecided = lay_out(table, [_make_topic_row(topic) for topic in topics])
    report.say(f"suggested: {len(topics)} topics of {len(answered)} categories")
    report.say(f"review: {undecided} topics to decide in {table}; the paper keeps {KEPT} of each category")
    return report


def search_candidates(
    workshop: Workshop,
    read: Read,
    *,
    itunes: str = ITUNES,
    country: str = "us",
    most: int = 8,
    accept_all: bool = False,
) -> StepReport:
    """Search for episodes on every kept topic, and write the table in which people choose one for each.

    A topic that was searched for before is not searched for again, unless its words changed.

    Args:
        workshop: the folder.
        read: fetches a document.
        itunes: address at which searches are answered.
        country: country of Apple's store.
        most: episodes for each topic.
        accept_all: search also for topics that nobody decided on.

    Raises:
        BadInput: there are no topics, or a table cannot be used.
    """
    report = StepReport()
    topics, undecided = _read_kept_topics(workshop, accept_all)
    report.waiting += undecided
    # Search for topics that were not searched for in these words.
    record = workshop.folder / CANDIDATES
    searched = {(line["topic_id"], line["term"], line["country"]) for line in read_lines(record)}
    for number, topic in enumerate(topics):
        progress.report("searches", number, len(topics))
        if (topic.id, topic.topic, country) in searched:
            continue
        try:
            results = search_episodes(topic.topic, read, itunes, country=country, most=most)
        except BadInput as trouble:
            report.waiting.append(WaitingRow(topic.id, f"the search failed: {trouble}"))
            continue
        episodes = [vars(one) for one in results]
        line = {"topic_id": topic.id, "term": topic.topic, "country": country, "episodes": episodes}
        append_line(record, line)
    # Write the table of candidates, and report topics without any.
    candidates = _list_candidates(record, topics)
    table = workshop.folder / EPISODE_TABLE
    lay_out(table, [_make_candidate_row(one) for one in candidates])
    found_for = {candidate.topic_id for candidate in candidates}
    report.say(f"searched: {len(topics)} topics, {len(candidates)} candidates for {len(found_for)} of them")
    for topic in topics:
        if topic.id not in found_for and topic.id not in {waiting.id for waiting in report.waiting}:
            report.waiting.append(WaitingRow(topic.id, f"no episode was found; change its words in {TOPIC_TABLE}"))
    report.say(f"review: say yes to one episode a topic in {table}")
    return report


def finish(workshop: Workshop, *, accept_all: bool = False) -> StepReport:
    """Make items from the topics and the episode chosen for each, as a source of the dataset.

    Args:
        workshop: the folder.
        accept_all: where nobody chose among a topic's candidates, take the first.

    Raises:
        BadInput: there are no candidates, a table cannot be used, or nothing was chosen.
        BrokenRules: the dataset would refuse an item.
    """
    report = StepReport()
    topics, undecided = _read_kept_topics(workshop, accept_all)
    report.waiting += undecided
    candidates = _list_candidates(workshop.folder / CANDIDATES, topics)
    if not candidates:
        raise BadInput(f"{workshop.folder} contains no candidates; `podeval data construct real_pod search` finds them")
    read = read_decisions(
        workshop.folder / EPISODE_TABLE, [_make_candidate_row(c) for c in candidates], "choice of episodes"
    )
    refused = {left.id for left in read.left_out}
    # One episode a topic.
    items = list[dict[str, object]]()
    for topic in topics:
        its = [candidate for candidate in candidates if candidate.topic_id == topic.id]
        chosen = [candidate for candidate in its if candidate.id in read.kept]
        open_to = [candidate for candidate in its if candidate.id not in refused]
        if not chosen and accept_all:
            chosen = open_to[:1]
        if len(chosen) != 1:
            why = f"{len(chosen)} episodes have yes in {EPISODE_TABLE}; leave one"
            report.waiting.append(WaitingRow(topic.id, why))
            continue
        items.append(_make_item(topic, chosen[0], len(items) + 1))
    if not items:
        raise BadInput(f"no episode is chosen yet; write yes under keep in {workshop.folder / EPISODE_TABLE}")
    # Write the source, which its builder checks.
    into = workshop.folder / FINISHED
    with write_source("real_pod", into, ["topics"]) as folder:
        licence = (
            "Topics are yours; titles and links are facts of Apple Podcasts, and the episodes belong to their makers."
        )
        write_json(folder / "real_pod_topics.json", {"licence": "other", "attribution": licence, "items": items})
        # A source has all files; of scripts there are none.
        write_json(folder / "real_pod_demo.json", {"licence": "other", "attribution": licence, "items": []})
        write_whole(folder / SCRIPTS.file, b"")
    counts = Counter(str(item["category"]) for item in items)
    report.say(f"finished: {len(items)} items of {len(counts)} categories in {into}")
    return report


def take_own(workshop: Workshop, folder: Path, *, accept_all: bool = False) -> StepReport:
    """Make items from one's own recordings, once people have named topic and category of each.

    The first call writes the table; a later one reads it. Ids are the names of the files, as they are in the rows that
    `podeval data build real_pod --config episodes --source FOLDER` makes of the same recordings.

    Raises:
        BadInput: there are no recordings, or a table cannot be used.
    """
    from podeval.construction.lfs import list_recordings

    entries = [_make_recording_row(path) for path in list_recordings(folder)]
    if len({entry.id for entry in entries}) < len(entries):
        raise BadInput(f"two recordings in {folder} have one name but for the ending or odd characters; rename one")
    # Read the table, which the first call writes.
    table, report = workshop.folder / OWN_TABLE, StepReport()
    if not table.is_file():
        lay_out(table, entries)
    review = read_decisions(table, entries, "own recordings", accept_all=accept_all)
    report.waiting += review.waiting
    # Make items of valid rows; the others wait.
    items = list[dict[str, object]]()
    for name, edited in review.kept.items():
        try:
            facts = {"topic": edited["topic"].strip(), "category": edited["category"].strip()}
            if facts["category"] not in CATEGORIES or not facts["topic"]:
                report.waiting.append(WaitingRow(name, f"name its topic, and a category of {', '.join(CATEGORIES)}"))
                continue
            language = edited["language"].strip() or "en"
            item = Item.model_validate({"id": name, "language": language, "voices": int(edited["voices"]), **facts})
        except (ValueError, ValidationError) as error:
            message = describe_validation_error(error) if isinstance(error, ValidationError) else "voices is no number"
            report.waiting.append(WaitingRow(name, f"its row in {table.name} cannot be used: {message}"))
            continue
        items.append(item.model_dump(mode="json", exclude_defaults=True) | {"category": item.category})
    # Write the table again, and the items beside it.
    lay_out(table, entries)
    if items:
        write_json(
            workshop.folder / "own_topics.json", {"licence": "other", "attribution": "Your own.", "items": items}
        )
    report.say(f"own recordings: {len(items)} of {len(entries)} with topic and category in {table}")
    return report


def _read_kept_topics(workshop: Workshop, accept_all: bool) -> tuple[list[Topic], list[WaitingRow]]:
    """Read the topics that people kept, as they worded them."""
    topics = workshop.read(TOPICS, Topic, made_by="podeval data construct real_pod topics")
    table = workshop.folder / TOPIC_TABLE
    read = read_decisions(
        table, [_make_topic_row(topic) for topic in topics], "review of topics", accept_all=accept_all
    )
    kept = [
        topic.model_copy(update={"topic": " ".join(read.kept[topic.id]["topic"].split())})
        for topic in topics
        if topic.id in read.kept
    ]
    return kept, read.waiting


def _list_candidates(record: Path, topics: Sequence[Topic]) -> list[EpisodeCandidate]:
    """List the episodes of the last search for each topic as now worded, each under its first topic."""
    last = {(line["topic_id"], line["term"]): line["episodes"] for line in read_lines(record)}
    candidates, seen = list[EpisodeCandidate](), set[str]()
    for topic in topics:
        for rank, episode in enumerate(last.get((topic.id, topic.topic), ()), 1):
            if episode["link"] not in seen:
                seen.add(episode["link"])
                name = f"{topic.id}/{rank}"
                candidates.append(EpisodeCandidate(id=name, topic_id=topic.id, term=topic.topic, rank=rank, **episode))
    return candidates


def _make_item(topic: Topic, episode: EpisodeCandidate, number: int) -> dict[str, object]:
    return {
        "id": f"{topic.category}_{number}",
        "category": topic.category,
        "language": "en",
        "voices": VOICES,
        "topic": topic.topic,
        "episode": {"title": episode.title, "link": episode.link},
    }


def _make_topic_row(topic: Topic) -> ReviewRow:
    return ReviewRow(topic.id, {"category": topic.category}, {"topic": topic.topic})


def _make_candidate_row(one: EpisodeCandidate) -> ReviewRow:
    context = {
        "topic": one.term,
        "title": one.title,
        "show": one.show,
        "minutes": "" if one.minutes is None else f"{one.minutes:g}",
        "released": one.released[:10],
        "explicit": "yes" if one.explicit else "",
        "description": one.description[:_SHOWN],
        "link": one.link,
    }
    return ReviewRow(one.id, context)


def _make_recording_row(path: Path) -> ReviewRow:
    from podeval.audio.formats.duration import read_container_and_seconds

    try:
        _, seconds = read_container_and_seconds(path)
        length = f"{seconds / 60:.1f}"
    except BadAudio as refusal:
        length = str(refusal)
    words = " ".join(re.split(r"[\s_-]+", path.stem)).strip()
    name = re.sub(r"[^A-Za-z0-9_-]", "_", path.stem)
    editable = {"topic": words, "category": "", "language": "en", "voices": str(VOICES)}
    return ReviewRow(name, {"file": path.name, "minutes": length}, editable)


def _check_topics(count: int) -> Callable[[Suggestions], None]:
    def check(answer: Suggestions) -> None:
        topics = [topic.strip().casefold() for topic in answer.topics]
        if len(topics) < count or not all(topics) or len(set(topics)) < len(topics):
            raise ValueError(f"{count} topics are needed, each another; {len(set(topics))} came")

    return check
