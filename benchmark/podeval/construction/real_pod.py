"""Construct your own Real-Pod dataset: categories, topics, candidate episodes and items (PodEval, section 3).

For each category, a language model names five topics, and people keep three; a search in Apple's directory finds
episodes on each topic, and people choose an episode. The folder contains `topics.jsonl`, `topics.csv`,
`candidates.jsonl`, `candidates.csv`, and `finished/`, a source of the dataset.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from podeval import progress
from podeval.benchmarks.real_pod import CATEGORIES, SCRIPTS
from podeval.construction.review import ReviewRow, apply_review, lay_out, read_decisions
from podeval.construction.workshop import Names, StagedRow, Step, Suggestions, WaitingRow, Workshop, suggest
from podeval.datasets.feeds import Read, ask_apple
from podeval.errors import BadInput, require_known
from podeval.files import append_line, read_lines, write_json, write_whole
from podeval.judges import Asked, Prompt

TOPICS, TOPIC_TABLE = "topics.jsonl", "topics.csv"
CANDIDATES, EPISODE_TABLE = "candidates.jsonl", "candidates.csv"
SUGGESTED, KEPT = 5, 3
"""Number of topics that are suggested per category, and number of topics that people keep."""

VOICES = 2
_SHOWN = 400


class Topic(StagedRow):
    """A suggested topic."""

    category: str
    topic: str


class EpisodeCandidate(StagedRow):
    """An episode that the search found for a topic; its id consists of the topic's id and its rank."""

    topic_id: str
    term: str
    episode: dict[str, Any]


def make_topics_prompt(category: str, count: int) -> Prompt:
    """Make the prompt that asks for topics of a category."""
    return Prompt(
        name="real_pod_topics",
        version="2.0",
        system="You edit a directory of podcasts and know what people listen to.",
        template=(
            f"A category of podcasts: {category.replace('_', ' ')}.\n\n"
            f"Name exactly {count} topics that podcasts of this category are about now and that listeners care for. "
            "Each is one line, specific enough that two people could talk about it for an hour, and clearly another "
            "topic than the others. No names of shows, hosts or episodes.\n\nThese topics are taken:\n{used}"
        ),
        answer=Suggestions,
        source="PodEval section 3, in our own words",
    )


def suggest_topics(
    workshop: Workshop,
    judging: Asked,
    *,
    categories: Names = tuple(CATEGORIES),
    each: Annotated[int, Field(ge=1, description="number of topics per category")] = SUGGESTED,
) -> None:
    """Ask a language model for topics in every category, and write a table for people's choices."""
    require_known("category", CATEGORIES, *categories)
    suggested = suggest(judging, dict.fromkeys(categories, each), {}, make_topics_prompt)
    workshop.waiting += suggested.waiting
    rows = [
        Topic(id=f"{category}_{number}", category=category, topic=topic)
        for category, lines in suggested.kept
        for number, topic in enumerate(lines, 1)
    ]
    workshop.write(TOPICS, rows)
    undecided = lay_out(workshop.folder / TOPIC_TABLE, [_make_topic_entry(topic) for topic in rows])
    workshop.say(f"suggested: {len(rows)} topics in {len(suggested.kept)} categories")
    workshop.say(f"review: {undecided}; the paper keeps {KEPT} of each category")


def search_candidates(
    workshop: Workshop,
    read: Read,
    accept_all: bool,
    *,
    country: Annotated[str, Field(description="country of Apple's store, as two letters")] = "us",
    most: Annotated[int, Field(ge=1, le=200, description="maximum number of episodes per topic")] = 8,
) -> None:
    """Search Apple's directory for episodes on the chosen topics, and write a table of candidates.

    Searches run one at a time, with pauses, as Apple requests. If a topic has already been searched for, the search is
    not repeated unless the wording of the topic has changed.
    """
    kept = _read_kept_topics(workshop, accept_all)
    record = workshop.folder / CANDIDATES
    searched = {(line["topic_id"], line["term"], line["country"]) for line in read_lines(record)}
    failed = set[str]()
    for number, topic in enumerate(kept):
        progress.report("searches", number, len(kept))
        if (topic.id, topic.topic, country) in searched:
            continue
        try:
            episodes = _search_episodes(topic.topic, read, country, most)
        except BadInput as trouble:
            workshop.waiting.append(WaitingRow(topic.id, f"the search failed: {trouble}"))
            failed.add(topic.id)
            continue
        line = {"topic_id": topic.id, "term": topic.topic, "country": country, "episodes": episodes}
        append_line(record, line)
    # Write the table of candidates, and report topics without candidates.
    candidates = _list_candidates(record, kept)
    table = workshop.folder / EPISODE_TABLE
    lay_out(table, [_make_candidate_entry(one) for one in candidates])
    found_for = {candidate.topic_id for candidate in candidates}
    workshop.say(f"searched: {len(kept)} topics; there are {len(candidates)} candidates for {len(found_for)} of them")
    lack = f"no episode was found; change the wording of the topic in {TOPIC_TABLE}"
    workshop.waiting += [WaitingRow(topic.id, lack) for topic in kept if topic.id not in found_for | failed]
    workshop.say(f"review: mark one episode per topic with yes in {table}")


def finish(workshop: Workshop, accept_all: bool) -> None:
    """Turn the topics and their chosen episodes into items, as a source of the dataset.

    If no candidate was chosen for a topic, `--accept-all` takes the first candidate.
    """
    kept = _read_kept_topics(workshop, accept_all)
    candidates = _list_candidates(workshop.folder / CANDIDATES, kept)
    if not candidates:
        raise BadInput(f"{workshop.folder} contains no candidates; run the step `search` first")
    table = workshop.folder / EPISODE_TABLE
    choice = read_decisions(table, [_make_candidate_entry(c) for c in candidates], "choice of episodes")
    refused = {left.id for left in choice.left_out}
    # Allow only one episode per topic.
    items = list[dict[str, object]]()
    for topic in kept:
        open_to = [one for one in candidates if one.topic_id == topic.id and one.id not in refused]
        chosen = [one for one in open_to if one.id in choice.kept] or (open_to[:1] if accept_all else [])
        if len(chosen) != 1:
            why = f"{len(chosen)} episodes are marked `yes` in {EPISODE_TABLE}; keep only one of them"
            workshop.waiting.append(WaitingRow(topic.id, why))
            continue
        episode = {name: chosen[0].episode[name] for name in ("title", "link")}
        facts = {"category": topic.category, "language": "en", "voices": VOICES, "topic": topic.topic}
        items.append({"id": f"{topic.category}_{len(items) + 1}", **facts, "episode": episode})
    if not items:
        raise BadInput(f"no episode has been chosen yet; write `yes` in the column `keep` of {table}")
    # Write the source, which its builder checks. A source must have all files, even if there are no scripts.
    with workshop.finish("real_pod", "topics") as folder:
        licence = (
            "Topics are yours; titles and links are facts of Apple Podcasts, and the episodes belong to their makers."
        )
        for name, its in (("topics", items), ("demo", [])):
            content = {"licence": "other", "attribution": licence, "items": its}
            write_json(folder / f"real_pod_{name}.json", content)
        write_whole(folder / SCRIPTS.file, b"")
    counts = Counter(str(item["category"]) for item in items)
    workshop.say(f"finished: {len(items)} items in {len(counts)} categories in {workshop.folder / 'finished'}")


STEPS: Mapping[str, Step] = {"topics": suggest_topics, "search": search_candidates, "finish": finish}


def _read_kept_topics(workshop: Workshop, accept_all: bool) -> list[Topic]:
    """Read the topics that people kept, in the wording that they chose."""

    def revise(topic: Topic, edited: dict[str, str]) -> Topic:
        return topic.model_copy(update={"topic": " ".join(edited["topic"].split())})

    rows = workshop.read(TOPICS, Topic, made_by="topics")
    table = workshop.folder / TOPIC_TABLE
    review = apply_review(table, rows, _make_topic_entry, revise, "review of topics", accept_all)
    return workshop.settle("topics", review)


def _search_episodes(term: str, read: Read, country: str, most: int) -> list[dict[str, Any]]:
    """Search a country's Apple store for episodes, best match first; `minutes` is None if Apple does not state a
    length.

    Source: Apple, iTunes Search API (`/search`, entity `podcastEpisode`).
    """
    query = {"term": term, "media": "podcast", "entity": "podcastEpisode", "country": country, "limit": most}
    episodes = []
    for one in ask_apple("search", query, f"a search for {term!r}", read):
        show, episode, length = one.get("collectionId"), one.get("trackId"), one.get("trackTimeMillis")
        if isinstance(show, int) and isinstance(episode, int) and one.get("trackName"):
            description = str(one.get("description") or one.get("shortDescription") or "")
            episodes.append(
                {
                    "link": f"https://podcasts.apple.com/{country}/podcast/id{show}?i={episode}",
                    "title": str(one["trackName"]),
                    "show": str(one.get("collectionName") or ""),
                    "minutes": round(length / 60_000, 1) if isinstance(length, int) else None,
                    "released": str(one.get("releaseDate") or ""),
                    "description": " ".join(description.split()),
                    "explicit": one.get("contentAdvisoryRating") == "Explicit",
                }
            )
    return episodes


def _list_candidates(record: Path, kept: Sequence[Topic]) -> list[EpisodeCandidate]:
    """List the episodes found by the last search for each topic in its current wording; an episode found for several
    topics is listed under the first.
    """
    last = {(line["topic_id"], line["term"]): line["episodes"] for line in read_lines(record)}
    candidates: dict[str, EpisodeCandidate] = {}
    for topic in kept:
        for rank, episode in enumerate(last.get((topic.id, topic.topic), ()), 1):
            name = f"{topic.id}/{rank}"
            candidate = EpisodeCandidate(id=name, topic_id=topic.id, term=topic.topic, episode=episode)
            candidates.setdefault(episode["link"], candidate)
    return list(candidates.values())


def _make_topic_entry(topic: Topic) -> ReviewRow:
    return ReviewRow(topic.id, {"category": topic.category}, {"topic": topic.topic})


def _make_candidate_entry(one: EpisodeCandidate) -> ReviewRow:
    episode = one.episode
    context = {
        "topic": one.term,
        "title": episode["title"],
        "show": episode["show"],
        "minutes": "" if episode["minutes"] is None else f"{episode['minutes']:g}",
        "released": episode["released"][:10],
        "explicit": "yes" if episode["explicit"] else "",
        "description": episode["description"][:_SHOWN],
        "link": episode["link"],
    }
    return ReviewRow(one.id, context)
