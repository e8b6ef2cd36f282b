"""Find the audio of an episode from its Apple Podcasts link, through Apple's lookup and then the show's own feed.

Sources: Apple, iTunes Search API (`/lookup`); RSS 2.0 (`item`, `guid`, `enclosure`). Well-formed feeds are read with
    defusedxml, and others with feedparser.
"""

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from podeval.errors import BadInput
from podeval.models.downloading import Gone
from podeval.text.characters import keep_letters
from podeval.text.json_text import parse_json

Read = Callable[[str, int], bytes]
"""A function that fetches the document at an address; its second argument is the maximum number of bytes."""

_LINK = re.compile(
    r"https://podcasts\.apple\.com/(?P<country>[a-z]{2})/podcast/(?:[^/?#]+/)?id(?P<show>\d+)"
    r"\?(?:.*?&)?i=(?P<episode>\d+)(?:&.*)?"
)
_LOOKUP_BYTES, _LOOKUP_VALUES = 16 << 20, 1_000_000
FEED_BYTES = 16 << 20
"""Maximum size of a feed in bytes."""
_REPAIRED_BYTES, _REPAIRED_SIGNS = 4 << 20, 100_000
"""Maximum size in bytes of a feed that feedparser reads, and maximum number of `<` and `=` in the feed; each of these
characters takes up to two kilobytes of memory.
"""
_DEEPEST = 64
"""Maximum nesting depth of a feed's elements."""
_MOST_NAMES, _MOST_ITEMS, _LONGEST_TAG = 1_000, 50_000, 1 << 20
_PIECE = 1 << 16
_FACTS = ("title", "guid", "pubDate", "enclosure")


class BadFeed(BadInput):
    """The response to a lookup, or a feed, cannot be read."""


@dataclass(frozen=True)
class EpisodeLink:
    """A link to an episode in Apple Podcasts: the ids of the show and episode, and the country of the store."""

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
        if match is None:
            raise BadInput(
                f"{link!r} is not a link to an episode, such as "
                f"https://podcasts.apple.com/us/podcast/a-title/id123?i=456"
            )
        return cls(match["country"], int(match["show"]), int(match["episode"]))


@dataclass(frozen=True)
class Enclosure:
    """The address of an episode's audio, and its origin: `lookup` or `feed`."""

    url: str
    via: str
    title: str = ""
    guid: str = ""
    published: str = ""


def find_itunes() -> str:
    """Return the address for Apple's lookups and searches; PODEVAL_ITUNES sets another than Apple's."""
    return (os.environ.get("PODEVAL_ITUNES") or "https://itunes.apple.com").rstrip("/")


def find_enclosures(link: str, title: str, read: Read) -> Iterator[Enclosure | BadInput]:
    """Yield the possible addresses of an episode, best first, and the reasons why a directory does not give an address.

    The sources are queried in this order, and only as long as the caller continues: Apple for the show's 200 newest
    episodes and its feed, Apple for the episode, and the feed (by the episode's guid, or by its title if only one
    episode has that title).

    Raises:
        BadInput: the link does not lead to an episode.
    """
    target = EpisodeLink.parse(link)
    feed = guid = ""
    answered = False
    for number in (target.show, target.episode):
        query = {"id": number, "entity": "podcastEpisode", "country": target.country, "limit": 200}
        try:
            results = ask_apple("lookup", query, str(number), read)
        except BadInput as trouble:
            yield trouble
            if isinstance(trouble, Gone | BadFeed):
                continue
            # Apple cannot be reached or asks for fewer requests, so do not query it again for now.
            break
        answered = True
        feed = feed or next((str(one["feedUrl"]) for one in results if one.get("feedUrl")), "")
        if episode := next((one for one in results if one.get("trackId") == target.episode), None):
            keys = ("episodeUrl", "trackName", "episodeGuid", "releaseDate")
            url, name, guid, date = (str(episode.get(key) or "") for key in keys)
            if url:
                yield Enclosure(url, "lookup", name, guid, date)
            break
    else:
        if answered:
            yield Gone(
                f"Apple's store for {target.country} does not list episode {target.episode} of show {target.show}"
            )
    if feed:
        try:
            yield _find_in_feed(read(feed, FEED_BYTES), guid, title)
        except BadInput as trouble:
            yield trouble


def ask_apple(what: str, query: Mapping[str, object], subject: str, read: Read) -> list[Mapping[str, Any]]:
    """Return the results of a question to Apple's directory, a `lookup` or a `search`; messages name the subject.

    Raises:
        BadInput: the response cannot be fetched; `BadFeed` if it is not JSON with results.
    """
    answer = read(f"{find_itunes()}/{what}?{urlencode(query)}", _LOOKUP_BYTES)
    try:
        results = parse_json(answer, _LOOKUP_VALUES)["results"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadFeed(f"Apple's answer about {subject} cannot be read ({type(error).__name__}: {error})") from None
    return [one for one in results if isinstance(one, Mapping)] if isinstance(results, list) else []


def _find_in_feed(content: bytes, guid: str, title: str) -> Enclosure:
    """Find the episode among the items of a feed."""
    items = parse_feed(content)
    by_title = [item for item in items if title and keep_letters(item.title) == keep_letters(title)]
    matches = [item for item in items if guid and item.guid == guid][:1] or by_title
    if len(matches) > 1:
        raise Gone(f"the feed has {len(matches)} episodes with the title {title!r}, and none with the requested guid")
    if not matches:
        raise Gone(f"the feed lists {len(items)} episodes, but not {title!r}")
    if not matches[0].url:
        raise Gone(f"the feed lists {title!r}, but without audio")
    return matches[0]


def parse_feed(content: bytes) -> list[Enclosure]:
    """Parse the items of an RSS feed; feeds that are not well-formed are read with feedparser.

    Raises:
        BadFeed: the document is not RSS, is larger or more deeply nested than any real feed, states an unsupported
            encoding, or uses constructs found in XML bombs.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    if len(content) > FEED_BYTES:
        raise BadFeed(f"the feed is {len(content) / 1e6:.0f} MB, but at most {FEED_BYTES / 1e6:.0f} MB are read")
    builder = _ItemBuilder()
    try:
        parser = DefusedXMLParser(target=builder)
        for start in range(0, len(content), _PIECE):
            parser.feed(content[start : start + _PIECE])
            # The parser buffers an incomplete tag until it ends.
            if start - parser.parser.CurrentByteIndex > _LONGEST_TAG:
                raise BadFeed(f"the feed has a tag of more than {_LONGEST_TAG} bytes")
        root = parser.close()
    except ParseError as error:
        # If no item has audio, the items may be fragments of a page that is not a feed.
        items = _repair(content)
        if not any(item.url for item in items):
            raise BadFeed(f"the feed is not well-formed XML ({error})") from None
        return items
    except DefusedXmlException as error:
        raise BadFeed(f"the feed uses XML that is not supported ({type(error).__name__})") from None
    except (ValueError, LookupError) as error:
        raise BadFeed(f"the feed states an encoding that is not supported ({error})") from None
    if root.tag != "rss":
        raise BadFeed(f"the feed is not RSS but <{root.tag}>")
    return builder.items


class _ItemBuilder(TreeBuilder):
    """An XML tree builder that removes each element when it ends, and keeps only the facts about the RSS items."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[Enclosure] = []
        self._open: list[Element] = []
        self._names: set[str] = set()

    def start(self, tag: str, attributes: dict[str, str]) -> Element:
        self._names.update((tag, *attributes))
        if len(self._open) >= _DEEPEST:
            raise BadFeed(f"the feed has elements that are nested more than {_DEEPEST} levels deep")
        if len(self._names) > _MOST_NAMES or len(self.items) > _MOST_ITEMS:
            raise BadFeed(f"the feed has more than {_MOST_ITEMS} items, or more than {_MOST_NAMES} element names")
        element = super().start(tag, attributes)
        self._open.append(element)
        return element

    def end(self, tag: str) -> Element:
        element = super().end(tag)
        self._open.pop()
        if tag == "item" and all(one.tag != "item" for one in self._open):
            enclosure = element.find("enclosure")
            texts = (element.findtext(name, "").strip() for name in _FACTS[:3])
            self.items.append(Enclosure("" if enclosure is None else enclosure.get("url", "").strip(), "feed", *texts))
        # Keep the first occurrence of each fact until its item ends; drop everything else.
        for parent in self._open[-1:]:
            if not (parent.tag == "item" and tag in _FACTS and parent.find(tag) is element):
                parent.remove(element)
        return element


def _repair(content: bytes) -> list[Enclosure]:
    """Read the items of a feed that is not well-formed; empty if the feed is large or declares entities."""
    import feedparser

    signs = content.count(b"<") + content.count(b"=")
    if len(content) > _REPAIRED_BYTES or signs > _REPAIRED_SIGNS or b"<!ENTITY" in content:
        return []
    # Pass a stream, because text that looks like an address or a file name would be opened.
    feed = feedparser.parse(io.BytesIO(content), sanitize_html=False, resolve_relative_uris=False)
    items = []
    for entry in feed.entries:
        urls = [str(one.get("href") or "").strip() for one in entry.get("enclosures", ())]
        names = (str(entry.get(name) or "").strip() for name in ("title", "id", "published"))
        items.append(Enclosure(urls[0] if urls else "", "feed", *names))
    return items
