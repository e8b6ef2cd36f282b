"""Fetch published episodes for your own evaluation, and record which were found and which were not.

A folder of episodes contains complete, checked audio files, and `episodes.jsonl` with a line for every attempt; for
each id, only the last line is valid. Episodes belong to their producers and are not redistributed.
"""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from podeval import progress
from podeval.audio.decode import hash_file
from podeval.benchmarks import real_pod
from podeval.benchmarks.item import Episode
from podeval.datasets.feeds import BadFeed, find_enclosures, find_itunes
from podeval.datasets.http import AddressRefused, Web, is_loopback, strip_secrets
from podeval.errors import BadAudio, BadInput
from podeval.files import append_line, explain_write_errors, lock_folder, read_lines
from podeval.models.downloading import Gone, TooLarge
from podeval.sandbox.transcode import read_header_apart

RECORD = "episodes.jsonl"

Status = Literal["found", "gone", "wrong type", "too large", "refused", "bad feed", "unreachable"]

_ENDINGS = {"mp4": "m4a", "matroska": "mka"}
_STATUS: dict[type[BadInput], Status] = {
    Gone: "gone",
    TooLarge: "too large",
    AddressRefused: "refused",
    BadFeed: "bad feed",
    BadAudio: "wrong type",
}


@dataclass(frozen=True)
class Attempt:
    """The outcome of one attempt to fetch an episode, which is one line of the record.

    Attributes:
        checked: time of the attempt, UTC.
        status: `found`, or the kind of failure, which `reason` explains.
        via: the directory that gave the address of the audio, `lookup` or `feed`.
        title: the title in that directory, from which `guid` and `published` also come.
        enclosure: address of the audio without user, query and fragment, because these may contain secrets.
        seconds: length of the audio according to the file's header or packets.
        container: name of the container, as in `podeval.audio.container`.
    """

    id: str
    link: str
    checked: str
    status: Status
    reason: str | None = None
    via: str | None = None
    title: str | None = None
    guid: str | None = None
    published: str | None = None
    enclosure: str | None = None
    file: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    seconds: float | None = None
    container: str | None = None


def select_episodes(name: str, topics: Sequence[str] = ()) -> dict[str, Episode]:
    """Select the episodes that a benchmark names, by topic: for all topics, or for some ids or their numbers.

    Raises:
        BadInput: the benchmark does not have published episodes, or lacks one of the topics.
    """
    if name != real_pod.BENCHMARK.name:
        raise BadInput(f"{name} has no published episodes; fetch those of real_pod with `podeval data fetch real_pod`")
    items = real_pod.BENCHMARK.items("topics")
    keys = {key: item.id for item in items for key in (item.id, item.id.rpartition("_")[2])}
    if unknown := [topic for topic in topics if topic not in keys]:
        raise BadInput(
            f"{name} has no topic {unknown[0]!r}; give an id such as {items[0].id}, or a number from 1 to {len(items)}"
        )
    chosen = {keys[topic] for topic in topics} or set(keys.values())
    return {item.id: item.episode for item in items if item.episode and item.id in chosen}


def make_web(**options: Any) -> Web:
    """Make a web client; private addresses are allowed only if lookups go to this machine."""
    return Web(allow_private=is_loopback(find_itunes()), **options)


def fetch_episodes(
    episodes: Mapping[str, Episode], into: Path, web: Web, *, most_bytes: int = 1 << 30
) -> list[Attempt]:
    """Fetch episodes, given by topic, one after the other into a folder; return the attempt at each, in order.

    Existing files are not changed. Episodes above `most_bytes` are refused; three hours at 320 kbit/s take 432 MB.

    Raises:
        BadInput: the folder is not writable or is in use.
    """
    attempts = []
    with lock_folder(into):
        before = read_attempts(into)
        for number, (topic, episode) in enumerate(episodes.items()):
            progress.report("episodes", number, len(episodes))
            attempt = before.get(topic)
            # Fetch the episode again if its file is missing or no longer has its recorded size.
            path = into / Path(attempt.file).name if attempt and attempt.file else None
            if attempt is None or path is None or not path.is_file() or path.stat().st_size != attempt.bytes:
                attempt = _fetch(topic, episode, into, web, most_bytes)
                append_line(into / RECORD, asdict(attempt))
            attempts.append(attempt)
        progress.report("episodes", len(episodes), len(episodes))
    return attempts


def read_attempts(folder: Path) -> dict[str, Attempt]:
    """Read the last attempt to fetch each episode; the result is empty if the folder has no record.

    Raises:
        BadInput: the record is damaged; the message names the line.
    """
    attempts: dict[str, Attempt] = {}
    for line in read_lines(folder / RECORD):
        try:
            attempts[str(line["id"])] = Attempt(**line)
        except (TypeError, KeyError) as error:
            raise BadInput(
                f"{folder / RECORD} has a line that does not describe an attempt ({error!r}); remove that line"
            ) from None
    return attempts


def render_table(attempts: Sequence[Attempt]) -> Iterator[str]:
    """Render the attempts as lines, one for each episode; the last line states how many episodes were found and how
    many are no longer available.
    """
    width = max((len(one.id) for one in attempts), default=0)
    for one in attempts:
        audio = f"{one.seconds / 60:.1f} min, {(one.bytes or 0) / 1e6:.1f} MB" if one.seconds else ""
        yield f"{one.id:{width}}  {one.status:11}  {audio or one.reason or ''}".rstrip()
    counts = Counter(one.status for one in attempts)
    successes = counts.pop("found", 0)
    yield f"{successes} of {len(attempts)} found" + "".join(f", {number} {name}" for name, number in counts.items())


def _fetch(topic: str, episode: Episode, into: Path, web: Web, most_bytes: int) -> Attempt:
    """Try the possible addresses of the episode until one works."""
    scratch = into / ".fetching" / topic
    with explain_write_errors(scratch):
        scratch.mkdir(parents=True, exist_ok=True)
    attempt = Attempt(topic, episode.link, datetime.now(UTC).isoformat(timespec="seconds"), "unreachable")
    failures: list[tuple[Attempt, BadInput]] = []
    tried: set[str] = set()
    for enclosure in find_enclosures(episode.link, episode.title, web.read):
        if isinstance(enclosure, BadInput):
            failures.append((attempt, enclosure))
        elif enclosure.url not in tried:
            tried.add(enclosure.url)
            facts = {name: getattr(enclosure, name) for name in ("via", "title", "guid", "published")}
            at_address = replace(attempt, enclosure=strip_secrets(enclosure.url), **facts)
            try:
                facts = _download(topic, enclosure.url, scratch, into, web, most_bytes)
                result = replace(at_address, status="found", **facts)
                break
            except BadInput as failure:
                failures.append((at_address, failure))
    else:
        # The failure of a download is more informative than the failure of a lookup.
        last, trouble = next((one for one in failures if one[0].enclosure), failures[-1])
        status: Status = next((name for kind, name in _STATUS.items() if isinstance(trouble, kind)), "unreachable")
        result = replace(last, status=status, reason="; ".join(dict.fromkeys(str(error) for _, error in failures)))
    # Keep an unfinished download only if the next call can resume the download.
    if result.status != "unreachable":
        for leftover in scratch.iterdir():
            leftover.unlink()
    with contextlib.suppress(OSError):
        os.removedirs(scratch)
    return result


def _download(name: str, url: str, scratch: Path, into: Path, web: Web, most_bytes: int) -> dict[str, Any]:
    """Download one audio file, check it, move it into place, and return its facts."""
    # The address determines the name of a partial download, so a download is never resumed from part of another file.
    address = strip_secrets(url)
    part = scratch / hashlib.sha256(address.encode()).hexdigest()[:16]
    part.unlink(missing_ok=True)
    web.save(url, part, most_bytes, partial(_report, name))
    # Keep only complete audio files.
    try:
        container, seconds = read_header_apart(part)
    except BadAudio as refusal:
        part.unlink()
        what = str(refusal).removeprefix(f"{str(part)!r} ")
        raise BadAudio(f"the download from {address} is not a complete audio file: it {what}") from None
    # Record the facts, and put the file in place.
    path = into / f"{name}.{_ENDINGS.get(container, container)}"
    facts = {"file": path.name, "bytes": part.stat().st_size, "sha256": hash_file(part), "container": container}
    with explain_write_errors(path):
        part.replace(path)
    return {**facts, "seconds": round(seconds, 3)}


def _report(name: str, done: int, total: int | None) -> None:
    if total:
        progress.report(f"{name}, MB", done / 1e6, total / 1e6)
