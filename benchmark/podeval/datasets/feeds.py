"""Find the audio of an episode by its link in Apple Podcasts: by Apple's lookup, then by the show's own feed.

Sources: Apple, iTunes Search API (`/lookup`); RSS 2.0 (`item`, `guid`, `enclosure`).
"""

import importlib
import importlib.util
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, ParseError

from podeval.datasets.downloading import Gone
from podeval.errors import BadInput

ITUNES = "https://itunes.apple.com"
"""Address at which Apple answers lookups."""

NEWEST = 200
"""Most episodes of a show in the answer to a lookup."""

Read = Callable[[str, int], bytes]
"""A function that fetches a document of at most so many bytes."""

_LINK = re.compile(
    r"https://podcasts\.apple\.com/(?P<country>[a-z]{2})/podcast/(?:[^/?#]+/)?id(?P<show>\d+)\?(?P<query>.*)"
)
_LOOKUP_BYTES, _FEED_BYTES = 16 << 20, 128 << 20


class BadFeed(BadInput):
    """The answer to a lookup, or a feed, cannot be read."""


@dataclass(frozen=True)
class EpisodeLink:
    """A link to an episode in Apple Podcasts: the ids of show and episode, and the country of the store."""

    country: str
    show: int
    episode: int

    @classmethod
    def parse(cls, link: str) -> Self:
        """Parse a link such as `https://podcasts.apple.com/us/podcast/a-title/id123?i=456`.

        Raises:
            BadInput: the link does not have this form.
        """
        match = _LINK.fullmatch(link)
        episode = re.search(r"(?:^|&)i=(\d+)(?:&|$)", match["query"]) if match else None
        if match is None or episode is None:
            raise BadInput(
                f"{link!r} is not a link to an episode; it should look like "
                "https://podcasts.apple.com/us/podcast/a-title/id123?i=456"
            )
        return cls(match["country"], int(match["show"]), int(episode[1]))


@dataclass(frozen=True)
class Enclosure:
    """The address of an episode's audio, and where it comes from: `lookup`, `feed` or `yt-dlp`."""

    url: str
    via: str
    title: str = ""
    guid: str = ""
    published: str = ""


def find_enclosures(link: str, title: str, read: Read, itunes: str = ITUNES) -> Iterator[Enclosure | BadInput]:
    """Yield the addresses at which an episode may be available, best first, and the reasons why a directory gives none.

    In this order, and only as far as the caller goes on, these are asked: Apple for the show's newest episodes and its
    feed, Apple for the episode, the feed (by the episode's guid, else by its title where only one episode has that
    title), and yt-dlp where it is installed.

    Args:
        link: link of the episode in Apple Podcasts.
        title: title of the episode.
        read: fetches a document.
        itunes: address at which lookups are answered.

    Raises:
        BadInput: the link is not a link to an episode.
    """
    target = EpisodeLink.parse(link)
    # Apple's lookup, by the show's newest episodes and by the episode.
    feed = guid = ""
    answered = is_listed = False
    for number in (target.show, target.episode):
        try:
            results = _look_up(itunes, number, target.country, read)
        except BadInput as trouble:
            yield trouble
            if isinstance(trouble, Gone | BadFeed):
                continue
            # Apple cannot be reached, or asks for patience: no more of it now.
            break
        answered = True
        feed = feed or next((str(one["feedUrl"]) for one in results if one.get("feedUrl")), "")
        episode = next((one for one in results if one.get("trackId") == target.episode), None)
        if episode:
            is_listed = True
            guid = str(episode.get("episodeGuid") or "")
            if episode.get("episodeUrl"):
                yield _read_looked_up(episode)
            break
    if answered and not is_listed:
        yield Gone(f"Apple lists no episode {target.episode} of show {target.show} in its store of {target.country}")
    # The show's own feed, then yt-dlp.
    if feed:
        try:
            yield _find_in_feed(read(feed, _FEED_BYTES), guid, title)
        except BadInput as trouble:
            yield trouble
    if importlib.util.find_spec("yt_dlp"):
        yield _ask_yt_dlp(link)


@dataclass(frozen=True)
class FoundEpisode:
    """An episode found by a search; `minutes` is None where Apple does not give the length."""

    link: str
    title: str
    show: str
    minutes: float | None
    released: str
    description: str
    explicit: bool


def search_episodes(
    term: str, read: Read, itunes: str = ITUNES, *, country: str = "us", most: int = 10
) -> list[FoundEpisode]:
    """Search Apple's store of a country for episodes, best first.

    Source: Apple, iTunes Search API (`/search`, entity `podcastEpisode`).

    Args:
        term: words to search for.
        read: fetches a document.
        itunes: address at which searches are answered.
        country: two letters.
        most: number of episodes to ask for.

    Raises:
        BadInput: the answer cannot be fetched or read.
    """
    query = {"term": term, "media": "podcast", "entity": "podcastEpisode", "country": country, "limit": most}
    results = parse_results(
        read(f"{itunes.rstrip('/')}/search?{urlencode(query)}", _LOOKUP_BYTES), f"a search for {term!r}"
    )
    episodes = []
    for one in results:
        show, episode = one.get("collectionId"), one.get("trackId")
        if not isinstance(show, int) or not isinstance(episode, int) or not one.get("trackName"):
            continue
        length = one.get("trackTimeMillis")
        episodes.append(
            FoundEpisode(
                link=f"https://podcasts.apple.com/{country}/podcast/id{show}?i={episode}",
                title=str(one["trackName"]),
                show=str(one.get("collectionName") or ""),
                minutes=round(length / 60_000, 1) if isinstance(length, int) else None,
                released=str(one.get("releaseDate") or ""),
                description=" ".join(str(one.get("description") or one.get("shortDescription") or "").split()),
                explicit=one.get("contentAdvisoryRating") == "Explicit",
            )
        )
    return episodes


def _look_up(itunes: str, number: int, country: str, read: Read) -> list[Mapping[str, Any]]:
    """Look up a show or an episode at Apple; the answer lists the show itself, and episodes."""
    query = urlencode({"id": number, "entity": "podcastEpisode", "country": country, "limit": NEWEST})
    return parse_results(read(f"{itunes.rstrip('/')}/lookup?{query}", _LOOKUP_BYTES), str(number))


def parse_results(answer: bytes, what: str) -> list[Mapping[str, Any]]:
    """Parse the results of a lookup or search; `what` names what was looked for, for the message.

    Raises:
        BadFeed: the answer is not JSON with results.
    """
    try:
        results = json.loads(answer)["results"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadFeed(f"Apple's answer on {what} cannot be read ({type(error).__name__}: {error})") from None
    return [one for one in results if isinstance(one, Mapping)] if isinstance(results, list) else []


def _read_looked_up(episode: Mapping[str, Any]) -> Enclosure:
    title, guid, published = (str(episode.get(key) or "") for key in ("trackName", "episodeGuid", "releaseDate"))
    return Enclosure(str(episode["episodeUrl"]), "lookup", title, guid, published)


def _find_in_feed(content: bytes, guid: str, title: str) -> Enclosure | BadInput:
    """Find the episode among the items of a feed."""
    try:
        items = list(parse_feed(content))
    except BadFeed as trouble:
        return trouble
    by_guid = [item for item in items if guid and item.guid == guid]
    by_title = [item for item in items if title and _fold_title(item.title) == _fold_title(title)]
    matches = by_guid[:1] or by_title
    if len(matches) > 1:
        return Gone(f"the feed has {len(matches)} episodes with the title {title!r}, and none with the guid looked for")
    if not matches:
        return Gone(f"the feed lists {len(items)} episodes, but not {title!r}")
    if not matches[0].url:
        return Gone(f"the feed lists {title!r}, but without audio")
    return matches[0]


def parse_feed(content: bytes) -> Iterator[Enclosure]:
    """Parse the items of an RSS feed.

    Raises:
        BadFeed: it is not well-formed RSS, or uses the constructs that XML bombs are made of.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    try:
        root = None
        # Items are read and dropped one by one, as feeds may be long.
        for _, element in iterparse(io.BytesIO(content), events=("end",)):
            root = element
            if element.tag == "item":
                enclosure = element.find("enclosure")
                url = (enclosure.get("url") or "").strip() if enclosure is not None else ""
                yield Enclosure(
                    url,
                    "feed",
                    _read_text(element, "title"),
                    _read_text(element, "guid"),
                    _read_text(element, "pubDate"),
                )
                element.clear()
        if root is None or root.tag != "rss":
            raise BadFeed(f"the feed is not RSS but <{root.tag if root is not None else ''}>")
    except ParseError as error:
        raise BadFeed(f"the feed is not well-formed XML ({error})") from None
    except DefusedXmlException as error:
        raise BadFeed(f"the feed uses XML that is not read ({type(error).__name__})") from None


def _read_text(item: Element, name: str) -> str:
    element = item.find(name)
    return (element.text or "").strip() if element is not None else ""


def _fold_title(title: str) -> str:
    """Reduce a title to its letters and digits, because quotes, dashes and spaces differ between Apple and feeds."""
    return "".join(one for one in unicodedata.normalize("NFKC", title).casefold() if one.isalnum())


def _ask_yt_dlp(link: str) -> Enclosure | BadInput:
    """Ask yt-dlp for the address of the audio, which it reads from the episode's page; nothing is downloaded."""
    yt_dlp = importlib.import_module("yt_dlp")
    try:
        with yt_dlp.YoutubeDL({"quiet": True, "no_warnings": True, "noplaylist": True}) as reader:
            page = reader.extract_info(link, download=False)
    except Exception as error:  # whatever an extractor meets on a page that changed
        return BadFeed(f"yt-dlp finds nothing ({str(error)[:200]})")
    url = page.get("url") if isinstance(page, Mapping) else None
    return Enclosure(str(url), "yt-dlp", str(page.get("title") or "")) if url else BadFeed("yt-dlp finds no audio")
