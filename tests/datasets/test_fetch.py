"""Episodes are found by Apple's lookup or the feed, fetched politely, checked, recorded; what is lost is named.

Everything is served on loopback, by a server that behaves as those of podcasts do.
"""

import hashlib
import io
import ipaddress
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from typer.testing import CliRunner

from podeval.benchmarks.item import Episode
from podeval.benchmarks.real_pod import BENCHMARK
from podeval.datasets import http as web_module
from podeval.datasets.feeds import BadFeed, EpisodeLink, parse_feed
from podeval.datasets.fetch_episodes import (
    Attempt,
    fetch_episodes,
    make_web,
    read_attempts,
    select_episodes,
)
from podeval.datasets.http import AddressRefused, Web, is_loopback, strip_secrets
from podeval.errors import BadInput
from podeval.files import lock_folder
from tests.fakes.bounded_memory import bounded_memory
from tests.fakes.podcast_server import Page, PodcastServer
from tests.fakes.stated_counts import write_all

SHOW, EPISODE, OTHER = 77, 1000, 1001
LINK = f"https://podcasts.apple.com/us/podcast/a-talk/id{SHOW}?i={EPISODE}"
TITLE = "A talk – with “Ann” & Ben"
TALK = {"Arts_19": Episode(link=LINK, title=TITLE)}


@cache
def mp3(seconds: int) -> bytes:
    """A tone of 8 kbit/s, 8 kHz; no header says how long it is."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp3", options={"write_xing": "0", "id3v2_version": "0"}) as container:
        stream = container.add_stream("mp3", rate=8_000, layout="mono")
        stream.bit_rate = 8_000
        tone = (3_000 * np.sin(np.arange(8_000 * seconds) / 5)).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(tone[None], format="s16", layout="mono")
        frame.sample_rate = 8_000
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    return file.getvalue()


class Feeds(PodcastServer):
    """The server with one show."""

    def show(self, **more: Any) -> dict[str, Any]:
        return {"wrapperType": "track", "kind": "podcast", "trackId": SHOW, "feedUrl": f"{self.url}/feed"} | more

    def episode(self, path: str = "/talk.mp3", **more: Any) -> dict[str, Any]:
        plain = {"wrapperType": "podcastEpisode", "trackId": EPISODE, "trackName": TITLE, "episodeGuid": "guid-1"}
        return plain | {"episodeUrl": f"{self.url}{path}", "releaseDate": "2024-05-01T08:00:00Z"} | more


@pytest.fixture
def feeds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Feeds]:
    """A show of one talk, found by lookup, in the feed under the same address."""
    server = Feeds()
    monkeypatch.setenv("PODEVAL_ITUNES", server.url)
    server.lookups = {SHOW: [server.show(), server.episode(trackId=OTHER), server.episode()]}
    server.feed((TITLE, "guid-1", "/talk.mp3"))
    server.pages["/talk.mp3"] = Page(mp3(2))
    with server:
        yield server


def fetch(feeds: Feeds, into: Path, wanted: dict[str, Episode] = TALK, **options: Any) -> list[Attempt]:
    slow = any(page.delay for page in feeds.pages.values())
    quick = {"pause": 0.0, "timeout": 0.5 if slow else 30.0, "tries": 2, "wait": 0.01} | options
    most = quick.pop("most_bytes", 50 << 20)
    return fetch_episodes(wanted, into, make_web(**quick), most_bytes=most)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_an_episode_is_fetched_and_everything_about_it_recorded(feeds: Feeds, tmp_path: Path) -> None:
    feeds.pages["/track"] = Page(status=302, location="/talk.mp3?token=hush")
    feeds.lookups[SHOW][-1] = feeds.episode("/track?listener=me")
    (found,) = fetch(feeds, tmp_path)
    assert files(tmp_path) == ["Arts_19.mp3", "episodes.jsonl"]
    assert (tmp_path / "Arts_19.mp3").read_bytes() == mp3(2)
    assert (found.status, found.reason, found.via) == ("found", None, "lookup")
    assert (found.title, found.guid, found.published) == (TITLE, "guid-1", "2024-05-01T08:00:00Z")
    assert (found.bytes, found.sha256) == (len(mp3(2)), hashlib.sha256(mp3(2)).hexdigest())
    assert (found.file, found.container) == ("Arts_19.mp3", "mp3")
    # An encoder's delay and the last frame add up to three frames of 72 ms.
    assert found.seconds == pytest.approx(2.0, abs=0.22)
    assert found.enclosure == f"{feeds.url}/track"
    assert "hush" not in (text := (tmp_path / "episodes.jsonl").read_text("utf-8"))
    assert "listener" not in text
    assert read_attempts(tmp_path) == {"Arts_19": found}
    assert all("podeval" in headers["User-Agent"] for _, headers, _ in feeds.asked)


def test_no_header_of_an_episode_is_read_in_this_process(
    feeds: Feeds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import av

    monkeypatch.setattr(av, "open", lambda *_, **__: pytest.fail("FFmpeg reads it in this process"))
    assert [one.status for one in fetch(feeds, tmp_path / "whole")] == ["found"]
    feeds.pages["/talk.mp3"] = Page(write_all()["samples of one size"])
    with bounded_memory(64 * 2**20):
        (lost,) = fetch(feeds, tmp_path / "hostile")
    assert lost.status == "wrong type"
    assert "its index states 10,000,000" in str(lost.reason)


def test_the_body_of_a_redirect_is_not_read(feeds: Feeds, tmp_path: Path) -> None:
    feeds.pages["/track"] = Page(b"<html>", status=302, location="/talk.mp3", length=1 << 40)
    feeds.lookups[SHOW][-1] = feeds.episode("/track")
    (attempt,) = fetch(feeds, tmp_path, tries=1)
    assert attempt.status == "found"


def test_what_is_there_is_left_and_what_is_lost_is_fetched_again(feeds: Feeds, tmp_path: Path) -> None:
    (first,) = fetch(feeds, tmp_path)
    asked = len(feeds.asked)
    assert fetch(feeds, tmp_path) == [first]
    assert len(feeds.asked) == asked
    (tmp_path / "Arts_19.mp3").unlink()
    assert fetch(feeds, tmp_path)[0].sha256 == first.sha256
    assert (tmp_path / "Arts_19.mp3").is_file()


def test_an_older_episode_is_looked_up_by_its_own_number(feeds: Feeds, tmp_path: Path) -> None:
    feeds.lookups = {SHOW: [feeds.show()], EPISODE: [feeds.episode()]}
    assert fetch(feeds, tmp_path)[0].via == "lookup"


@pytest.mark.parametrize(
    ("lookup", "items", "found"),
    [
        ({"episodeUrl": None}, [("Renamed", "guid-1", "/talk.mp3"), (TITLE, "guid-2", "/other.mp3")], "guid-1"),
        (None, [("Other", "guid-2", "/other.mp3"), ('A Talk - with "Ann" & Ben ', "guid-9", "/talk.mp3")], "guid-9"),
        ({"episodeUrl": "http://127.0.0.1:1/gone"}, [(TITLE, "guid-1", "/talk.mp3")], "guid-1"),
    ],
    ids=["by guid", "by title", "where the lookup's address is dead"],
)
def test_the_feed_knows_what_the_lookup_does_not(
    feeds: Feeds, tmp_path: Path, lookup: dict[str, Any] | None, items: list[tuple[str, str, str]], found: str
) -> None:
    feeds.lookups = {SHOW: [feeds.show(), *([feeds.episode(**lookup)] if lookup else [])]}
    feeds.feed(*items)
    (made,) = fetch(feeds, tmp_path)
    assert (made.status, made.via, made.guid) == ("found", "feed", found)
    assert (tmp_path / "Arts_19.mp3").read_bytes() == mp3(2)


def no_lookup(feeds: Feeds) -> None:
    feeds.lookups = {SHOW: [feeds.show()]}


def talk(**page: Any) -> Callable[[Feeds], None]:
    return lambda feeds: feeds.pages.update({"/talk.mp3": Page(**page)})


def feed_text(text: str) -> Callable[[Feeds], None]:
    def change(feeds: Feeds) -> None:
        no_lookup(feeds)
        feeds.pages["/feed"] = Page(text.encode(), "application/xml")

    return change


def feed_items(*items: tuple[str, str, str]) -> Callable[[Feeds], None]:
    def change(feeds: Feeds) -> None:
        no_lookup(feeds)
        feeds.feed(*items)

    return change


BOMB = """<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<rss><channel><item><title>&b;</title></item></channel></rss>"""
READS_FILES = """<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<rss><channel><item><title>&a;</title></item></channel></rss>"""

LOST: dict[str, tuple[Callable[[Feeds], None], str, str]] = {
    "a 404": (talk(status=404), "gone", "/talk.mp3 answers HTTP 404"),
    "a 410": (talk(status=410), "gone", "HTTP 410"),
    "a page": (talk(body=b"<html>Sign in</html>"), "wrong type", "is not a complete audio file: it"),
    "half a file": (
        talk(body=b"RIFF\0\1\0\0WAVEfmt \x10\0\0\0" + bytes(16) + b"data\0\1\0\0"),
        "wrong type",
        "cut off",
    ),
    "a huge file": (talk(length=1 << 40), "too large", "more than the limit of 52 MB"),
    "a server that is ill": (talk(faults=["503"] * 9), "unreachable", "after 2 attempts (HTTP 503)"),
    "a slow answer": (talk(delay=0.8), "unreachable", "timed out"),
    "a redirect off the web": (
        talk(status=302, location="file:///etc/passwd"),
        "refused",
        "which is not a web address",
    ),
    "a redirect in a circle": (talk(status=302, location="/talk.mp3"), "unreachable", "infinite loop"),
    "a broken feed": (feed_text("<rss><channel><item>"), "bad feed", "the feed is not well-formed XML"),
    "a page for a feed": (feed_text("<html><body>gone</body></html>"), "bad feed", "the feed is not RSS but <html>"),
    "an XML bomb": (feed_text(BOMB), "bad feed", "the feed uses XML that is not supported (EntitiesForbidden)"),
    "a feed that reads files": (feed_text(READS_FILES), "bad feed", "EntitiesForbidden"),
    "an episode not in the feed": (feed_items(("Else", "g", "/e")), "gone", "lists 1 episodes, but not 'A talk"),
    "two of one title": (feed_items((TITLE, "a", "/a"), (TITLE, "b", "/b")), "gone", "has 2 episodes with the title"),
    "no show": (lambda feeds: feeds.lookups.clear(), "gone", "does not list episode 1000 of show 77"),
}


@pytest.mark.every(4)
@pytest.mark.parametrize(("change", "status", "reason"), LOST.values(), ids=LOST)
def test_what_is_lost_is_named_and_nothing_half_is_left(
    feeds: Feeds, tmp_path: Path, change: Callable[[Feeds], None], status: str, reason: str
) -> None:
    change(feeds)
    (made,) = fetch(feeds, tmp_path)
    assert (made.status, made.file) == (status, None)
    assert reason in str(made.reason)
    assert str(tmp_path) not in str(made.reason)
    assert [name for name in files(tmp_path) if name != ".fetching"] == ["episodes.jsonl"]
    assert read_attempts(tmp_path) == {"Arts_19": made}


ITEM = b"<item><title>Talk</title><guid>g1</guid><enclosure url='https://x.test/a.mp3'/></item>"
RSS = b"<rss version='2.0'><channel>%s</channel></rss>"
MALFORMED = {
    "an entity of HTML": RSS % ITEM.replace(b"Talk", b"Talk&nbsp;one"),
    "a bare ampersand": RSS % ITEM.replace(b"Talk", b"Ann & Ben"),
    "a blank line before the declaration": b"\n<?xml version='1.0'?>" + RSS % ITEM,
    "Latin-1 that is called UTF-8": b"<?xml version='1.0' encoding='utf-8'?>" + RSS % ITEM.replace(b"Talk", b"Caf\xe9"),
    "a control character": RSS % ITEM.replace(b"Talk", b"Ta\x0blk"),
    "a cut end": (RSS % (ITEM + ITEM))[:-60],
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_common_faults_of_feeds_are_repaired(content: bytes) -> None:
    first = parse_feed(content)[0]
    assert (first.url, first.guid) == ("https://x.test/a.mp3", "g1")


def test_what_is_repaired_opens_no_file_and_no_entity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "feed").write_bytes(RSS % ITEM)
    monkeypatch.chdir(tmp_path)
    entity = b"\n<?xml version='1.0'?><!DOCTYPE b [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + RSS % ITEM
    for content in (b"feed", str(tmp_path / "feed").encode(), b"https://x.test/feed", entity):
        with pytest.raises(BadFeed, match="not well-formed"):
            parse_feed(content)


def test_a_feed_nested_too_deep_is_refused() -> None:
    with pytest.raises(BadFeed, match="nested more than 64 levels deep"):
        parse_feed(b"<rss>" + b"<a>" * 10_000)


def test_lookups_that_are_not_answered_are_no_word_on_the_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_ITUNES", "http://127.0.0.1:1")
    (made,) = fetch_episodes(TALK, tmp_path, make_web(tries=1))
    assert made.status == "unreachable"
    assert str(made.reason).count("could not be fetched after 1 attempts") == 1
    assert files(tmp_path) == ["episodes.jsonl"]


def test_one_lost_episode_does_not_stop_the_next(feeds: Feeds, tmp_path: Path) -> None:
    feeds.lookups[78] = [feeds.episode("/nowhere.mp3", trackId=5)]
    missing = {"Arts_20": Episode(link="https://podcasts.apple.com/us/podcast/id78?i=5", title="Lost")}
    assert [one.status for one in fetch(feeds, tmp_path, missing | TALK)] == ["gone", "found"]


def test_a_broken_download_goes_on_with_the_next_run(feeds: Feeds, tmp_path: Path) -> None:
    feeds.pages["/talk.mp3"] = Page(mp3(20), faults=["cut", "503"])
    assert fetch(feeds, tmp_path)[0].status == "unreachable"
    (made,) = fetch(feeds, tmp_path)
    assert made.status == "found"
    assert (tmp_path / "Arts_19.mp3").read_bytes() == mp3(20)
    assert feeds.asked[-1][1]["Range"] == f"bytes={len(mp3(20)) // 2}-"
    assert files(tmp_path) == ["Arts_19.mp3", "episodes.jsonl"]


def test_three_hours_are_fetched_and_their_length_told_without_decoding(feeds: Feeds, tmp_path: Path) -> None:
    feeds.pages["/talk.mp3"] = Page(mp3(60) * 180)
    (made,) = fetch(feeds, tmp_path)
    assert made.bytes == 180 * len(mp3(60)) > 10_000_000
    # Each of the 180 parts has up to three frames of 72 ms more than its minute.
    assert made.seconds == pytest.approx(3 * 3600, abs=180 * 0.22)


def test_hosts_are_asked_with_pauses_and_waited_for_when_they_say_so(feeds: Feeds, tmp_path: Path) -> None:
    feeds.pages["/talk.mp3"] = Page(mp3(2), faults=["429"])
    assert fetch(feeds, tmp_path, pause=0.2)[0].status == "found"
    times = [at for _, _, at in feeds.asked]
    assert [path.partition("?")[0] for path in feeds.paths()] == ["/lookup", "/talk.mp3", "/talk.mp3"]
    assert times[1] - times[0] >= 0.2
    assert times[2] - times[1] >= 1.0


def test_a_folder_in_use_is_refused(feeds: Feeds, tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(BadInput, match="another podeval run is writing to"):
        fetch(feeds, tmp_path)
    assert not feeds.asked


PRIVATE = [
    "http://127.0.0.1/a.mp3",
    "http://localhost/a.mp3",
    "http://nas.local/a.mp3",
    "http://metadata.internal/a.mp3",
    "http://10.0.0.8/a.mp3",
    "https://192.168.1.1/a.mp3",
    "http://169.254.169.254/latest/meta-data",
    "http://[::1]/a.mp3",
    "http://[::ffff:127.0.0.1]/a.mp3",
    "http://[fd00::1]/a.mp3",
    "http://0.0.0.0/a.mp3",
]


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_are_not_gone_to(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("it was gone to"))
    with pytest.raises(AddressRefused, match="private network"):
        Web(tries=1).save(url, tmp_path / "a", 1000)
    assert not (tmp_path / "a").exists()


def only_one_is_public(address: str) -> bool:
    return ipaddress.ip_address(address) == ipaddress.ip_address("127.0.0.1")


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Names get these addresses, one a lookup; which names were looked up."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def lookup(host: str, port: Any, *args: Any, **options: Any) -> Any:
        if not host.endswith(".test"):
            return real(host, port, *args, **options)
        asked.append(host)
        return real(answers[min(len(asked), len(answers)) - 1], port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return asked


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_name_for_a_private_address_is_not_gone_to(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, "127.0.0.1")
    with pytest.raises(AddressRefused, match=r"cdn\.test is at 127\.0\.0\.1 on a private network"):
        Web(tries=1).save(f"{scheme}://cdn.test/a.mp3", tmp_path / "a", 1000)


def test_a_name_that_changes_its_meaning_is_gone_to_where_it_was_checked(
    feeds: Feeds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_module, "is_public_address", only_one_is_public)
    asked = resolving(monkeypatch, "127.0.0.1", "127.0.0.2")
    url = f"http://cdn.test:{feeds.port}/talk.mp3"
    assert Web(tries=1).save(url, tmp_path / "a", 1 << 20).read_bytes() == mp3(2)
    assert asked == ["cdn.test"]


def self_signed(name: str, folder: Path) -> tuple[Path, Path]:
    """A certificate for a name, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "certificate.pem", folder / "key.pem"


def test_a_certificate_is_checked_for_the_name_and_not_for_the_address(
    feeds: Feeds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = self_signed("cdn.test", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    feeds._server.socket = context.wrap_socket(feeds._server.socket, server_side=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(web_module, "is_public_address", only_one_is_public)
    resolving(monkeypatch, "127.0.0.1")
    web = Web(tries=1)
    assert web.save(f"https://cdn.test:{feeds.port}/talk.mp3", tmp_path / "a", 1 << 20).read_bytes() == mp3(2)
    assert feeds.asked[-1][1]["Host"] == f"cdn.test:{feeds.port}"
    with pytest.raises(BadInput, match=r"not valid for 'other\.test'"):
        web.save(f"https://other.test:{feeds.port}/talk.mp3", tmp_path / "b", 1 << 20)


def test_a_redirect_into_a_private_network_is_not_followed(
    feeds: Feeds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_module, "is_public_address", only_one_is_public)
    feeds.pages["/talk.mp3"] = Page(status=302, location=f"http://127.0.0.2:{feeds.port}/secret")
    with pytest.raises(AddressRefused, match="private network"):
        Web(tries=1).save(f"{feeds.url}/talk.mp3", tmp_path / "a", 1000)
    assert feeds.paths() == ["/talk.mp3"]


def test_only_a_lookup_on_this_machine_opens_its_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AddressRefused):
        make_web(tries=1).save("http://127.0.0.1:9/a", tmp_path / "a", 1000)
    monkeypatch.setenv("PODEVAL_ITUNES", "http://localhost:8000")
    with pytest.raises(BadInput, match="after 1 attempts"):
        make_web(tries=1).save("http://127.0.0.1:9/a", tmp_path / "a", 1000)
    assert not is_loopback("https://itunes.apple.com")


def test_secrets_of_an_address_are_not_shown() -> None:
    assert strip_secrets("https://me:pw@cdn.test:8443/a/b.mp3?sig=1#t") == "https://cdn.test:8443/a/b.mp3"


def test_every_link_of_the_benchmark_is_understood() -> None:
    links = [EpisodeLink.parse(one.link) for one in select_episodes("real_pod").values()]
    assert len({(link.show, link.episode) for link in links}) == 51
    assert {link.country for link in links} == {"us", "hk"}
    assert links[0] == EpisodeLink("us", 1332504968, 1000698848884)
    for link in ("https://podcasts.apple.com/us/podcast/id5", "https://example.org/id5?i=6", "", "id5?i=6"):
        with pytest.raises(BadInput, match="is not a link to an episode"):
            EpisodeLink.parse(link)


def run(feeds: Feeds, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Any:
    from podeval.cli import app

    return CliRunner().invoke(app, ["data", "fetch", *map(str, arguments)])


def test_the_command_shows_what_is_lost_as_a_table(
    feeds: Feeds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        web_module.Web.__init__, "__kwdefaults__", web_module.Web.__init__.__kwdefaults__ | {"pause": 0}
    )
    for number in (4, 20):
        item = next(item for item in BENCHMARK.items("topics") if item.id.endswith(f"_{number}"))
        assert item.episode
        link = EpisodeLink.parse(item.episode.link)
        path = "/talk.mp3" if number == 4 else "/nowhere.mp3"
        feeds.lookups[link.show] = [feeds.episode(path, trackId=link.episode)]
    done = run(feeds, monkeypatch, "real_pod", "--topic", "4", "--topic", "Arts_20", "--into", tmp_path / "e")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["Comedy_4", "found"]
    assert lines[1].split()[:2] == ["Arts_20", "gone"]
    assert lines[2] == "1 of 2 found, 1 gone"
    assert files(tmp_path / "e") == ["Comedy_4.mp3", "episodes.jsonl"]
    done = run(feeds, monkeypatch, "real_pod", "--topic", "Comedy_4", "--into", tmp_path / "e", "--json")
    assert (done.exit_code, json.loads(done.stdout)["file"]) == (0, "Comedy_4.mp3")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["real_pod", "--topic", "52"],
            "real_pod has no topic '52'; give an id such as Society_and_Culture_1, or a number from 1 to",
        ),
        (["lfs_bench"], "lfs_bench has no published episodes"),
    ],
)
def test_what_cannot_be_fetched_is_a_sentence(
    feeds: Feeds, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    done = run(feeds, monkeypatch, *arguments)
    assert isinstance(done.exception, BadInput)
    assert sentence in str(done.exception)
    assert not feeds.asked
