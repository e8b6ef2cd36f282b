"""Simulate many listeners at once: the real site runs in a separate process and receives HTTP requests like a
browser's.

    python studies/speed/load.py [--listeners 200] [--seconds 300] [--period 15] [--postgresql] [--votes 100000]

Every listener signs in with a provider on loopback (by the real code flow), takes a battle, fetches both sounds and
their peaks, listens to both in real time, votes, and requests the names of the systems and the number of their own
votes. Each listener votes once every `--period` seconds. One vote in twenty is sent twice at the same moment, as by a
page that receives no answer. Meanwhile, a reader opens the board every two seconds: its page, its rows for programs,
and the arena's ratings. With `--votes`, there are already 300 systems, 100 items and this many votes by 20,000 people.

The listeners run in another process, which reports how busy it was. Times at the server are measured around the whole
site, from the moment a request was read to the last byte of its answer; times at the listener include the delays of the
load generator. At the end, the acknowledged votes are compared with the database: no vote may be lost or duplicated.
"""

import argparse
import asyncio
import http.cookiejar
import json
import os
import random
import resource
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from sqlalchemy import insert, select, text

from podeval.store.database import Database
from podeval.store.tables import TableBase
from studies.speed.arena import make

SPACE = Path(__file__).parents[2] / "space"
RATE = 24_000
SETTLING = 10
"""Number of seconds after the start during which a vote may be late."""


def prepare(runs: Path, database: str, systems: int, items: int, seconds: float) -> None:
    """Write a board to read, and an arena of tones, all of which are different recordings."""
    import numpy as np
    import soundfile

    from podeval.arena.manifest import ItemEntry, Manifest, OutputEntry, SystemEntry, add
    from tests.space.fixture_runs import write_runs

    write_runs(runs)
    sounds = runs.parent / "sounds"
    sounds.mkdir()
    time_axis = np.arange(round(seconds * RATE)) / RATE
    outputs = []
    for system in range(systems):
        for item in range(items):
            file = sounds / f"{system}-{item}.flac"
            turns = 2 * np.pi * (150 + 11 * system + 3 * item) * time_axis
            voice = sum(np.sin(turns * part) / part for part in (1, 2, 3, 5))
            soundfile.write(file, 0.1 * voice * np.clip(np.sin(2 * np.pi * 3 * time_axis), 0.05, 1), RATE)
            outputs.append(OutputEntry(system=f"s{system}", item=f"i{item}", audio=str(file)))
    entries = [ItemEntry(id=f"i{item}", dimension=("semantic", "ambient")[item % 2]) for item in range(items)]
    with Database(database) as opened:
        listed = [SystemEntry(id=f"s{system}", title=f"System {system}") for system in range(systems)]
        add(opened, Manifest(systems=listed, items=entries, outputs=outputs))


_SHARED = """
update outputs set (audio, sha256, loudness) = (
    select had.audio, had.sha256, had.loudness from outputs had
    where had.system = 's' || (substr(outputs.system, -3) % :systems)
        and had.item = 'i' || (substr(outputs.item, -3) % :items)
), seconds = :seconds where system like 'system-%'
"""


def fill(file: str, systems: int, items: int, seconds: float, votes: int) -> None:
    """Add more systems and items with this many votes; they share the existing recordings."""
    make(file, votes)
    with Database(file) as opened, opened.writing() as session:
        session.execute(text(_SHARED), {"systems": systems, "items": items, "seconds": seconds})
        session.execute(text("update systems set active = false where id not like 'system-%'"))


def copy(file: str, address: str) -> None:
    """Copy every row of a database to another one, which is empty."""
    with Database(file) as source, Database(address) as target, source.reading() as read, target.writing() as write:
        for table in TableBase.metadata.sorted_tables:
            rows = read.execute(select(table).execution_options(yield_per=5_000)).mappings()
            for part in rows.partitions():
                write.execute(insert(table), [dict(row) for row in part])
        write.execute(text("select setval(pg_get_serial_sequence('votes', 'number'), max(number)) from votes"))


def serve(runs: Path, port: int, database: str, told: Path) -> None:
    """Run the site of `space/app.py` with a monitor around it, which writes its measurements when it is stopped."""
    sys.path.insert(0, str(SPACE))
    import app as site
    from server import SiteServer, build_configuration

    times: dict[str, list[float]] = defaultdict(list)
    statuses: Counter[int] = Counter()
    inner = site.build(runs, "127.0.0.1", database)

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await inner(scope, receive, send)
        began, kind = time.perf_counter(), route(scope["method"], scope["path"])

        async def noted(message: Any) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                statuses[message["status"]] += 1
            elif not message.get("more_body"):
                times[kind].append(time.perf_counter() - began)

        await inner(scope, receive, noted)
        return None

    server = SiteServer(build_configuration(watched, "127.0.0.1", port))
    # After shutting down, uvicorn sends the signal to itself again; it is ignored, because the measurements must still
    # be written.
    signal.signal(signal.SIGTERM, lambda *_: None)
    server.run()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told.write_text(json.dumps({"times": times, "statuses": statuses, "memory_mb": used}), encoding="utf-8")


def route(method: str, path: str) -> str:
    """Return the kind of a request, without the parts of its address that identify a battle."""
    parts = path.strip("/").split("/")
    match parts:
        case ["arena", "votes", _, "revealed"]:
            return "GET revealed"
        case ["audio", _, "peaks"]:
            return "GET peaks"
        case ["audio", _]:
            return "GET audio"
    return f"{method} /{'/'.join(parts[:3])}"


def signed_in(address: str, provider: Any, count: int) -> list[str]:
    """Sign in every listener with the provider; return their session cookies."""
    cookies = []
    for number in range(count):
        provider.person = {"sub": f"listener-{number:05}", "preferred_username": f"listener{number}"}
        jar = http.cookiejar.CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        # Every listener has a separate address, because the site limits how often an address signs in.
        opener.addheaders = [("X-Forwarded-For", f"10.0.{number // 250}.{number % 250 + 1}")]
        opener.open(f"{address}/sign-in?next=/health", timeout=60).close()
        cookies.append(next(cookie.value for cookie in jar if cookie.name == "podeval"))
    return cookies


def rehearse(address: str, cookies: list[str]) -> None:
    """Have every listener play a pair once, four at a time, so that copies of the sounds exist, as on a site in use."""

    def play(cookie: str) -> None:
        headers = {"Cookie": f"podeval={cookie}", "X-Podeval": "1", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{address}/arena/battles", b"{}", headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            battle = json.load(answer)
        for side in "ab":
            sound = urllib.request.Request(f"{address}/audio/{battle[side]['audio']}", headers=headers)
            urllib.request.urlopen(sound, timeout=60).close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(play, cookies))


class Crowd:
    """All listeners and the reader of the board, in one process."""

    def __init__(self, address: str, cookies: list[str], seconds: float, period: float) -> None:
        self.addresses, self.cookies, self.seconds, self.period = address.split(","), cookies, seconds, period
        self.times: dict[str, list[float]] = defaultdict(list)
        self.acknowledged: dict[str, str] = {}
        self.battles = self.sent_twice = self.late = 0
        """`late` is the number of votes, after the first ten seconds, that were skipped because the previous one took
        longer than a period.
        """
        self.trouble: Counter[str] = Counter()

    async def go(self) -> None:
        """Listen and vote until the time is over."""
        import aiohttp

        # The site closes connections that were idle for 10 s, and a request on a closing connection gets no answer.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=4)
        self.unanswered = (aiohttp.ClientError, OSError, TimeoutError)
        async with aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=60), cookie_jar=aiohttp.DummyCookieJar()
        ) as web:
            self.web = web
            self.end = time.monotonic() + self.seconds
            listeners = [self._listener(number, cookie) for number, cookie in enumerate(self.cookies)]
            await asyncio.gather(self._reader(), *listeners)

    async def _ask(self, kind: str, method: str, path: str, cookie: str = "", body: Any = None) -> tuple[int, Any]:
        headers = {"Cookie": f"podeval={cookie}"} if cookie else {}
        if body is not None:
            headers |= {"X-Podeval": "1", "Content-Type": "application/json"}
        began = time.perf_counter()
        data = json.dumps(body).encode() if body is not None else None
        address = self.addresses[hash(cookie) % len(self.addresses)]
        try:
            async with self.web.request(method, address + path, headers=headers, data=data) as answer:
                content = await answer.read()
        except self.unanswered as error:
            self.trouble[f"{kind}: {type(error).__name__}"] += 1
            return 0, b""
        self.times[kind].append(time.perf_counter() - began)
        if answer.status >= 400:
            self.trouble[f"{kind} {answer.status}: {content[:120].decode(errors='replace')}"] += 1
        return answer.status, content

    async def _listener(self, number: int, cookie: str) -> None:
        chance = random.Random(f"9:{number}")
        # Every listener starts at a random moment, so that a wait that affects all of them does not synchronise them.
        start = time.monotonic() + self.period * chance.random()
        while start < self.end - self.period:
            await asyncio.sleep(max(0.0, start - time.monotonic()))
            await self._judge(cookie, chance)
            missed = (time.monotonic() - start) // self.period
            self.late += int(missed) if start > self.end - self.seconds + SETTLING else 0
            start += self.period * (1 + missed)

    async def _judge(self, cookie: str, chance: random.Random) -> None:
        status, content = await self._ask("battle", "POST", "/arena/battles", cookie, {})
        if status != 200:
            return
        battle = json.loads(content)
        self.battles += 1
        for side in "ab":
            await self._ask("audio", "GET", f"/audio/{battle[side]['audio']}", cookie)
            await self._ask("peaks", "GET", f"/audio/{battle[side]['audio']}/peaks", cookie)
        lengths = [battle[side]["seconds"] for side in "ab"]
        await asyncio.sleep(sum(lengths))
        ballot = {
            "id": secrets.token_hex(16), "token": battle["token"], "outcome": chance.choice(("a", "b", "tie")),
            "comment": "", "played_a": [[0.0, lengths[0]]], "played_b": [[0.0, lengths[1]]],
            "seconds_a": lengths[0], "seconds_b": lengths[1],
        }  # fmt: skip
        twice = chance.random() < 0.05
        self.sent_twice += twice
        answers = await asyncio.gather(*(self._vote(cookie, ballot) for _ in range(1 + twice)))
        told = {json.dumps(answer, sort_keys=True) for answer in answers if answer}
        if len(told) > 1:
            self.trouble["one vote, two acknowledgements"] += 1
        if told:
            self.acknowledged[ballot["id"]] = ballot["outcome"]
            await self._ask("revealed", "GET", f"/arena/votes/{ballot['id']}/revealed", cookie)

    async def _vote(self, cookie: str, ballot: dict[str, Any]) -> Any:
        """Send a ballot until it is answered, as the page does."""
        for attempt in range(10):
            status, content = await self._ask("vote", "POST", "/arena/votes", cookie, ballot)
            if status == 200:
                return json.loads(content)
            if 400 <= status < 500 and status != 429:
                return None
            await asyncio.sleep(0.5 * 2**attempt)
        return None

    async def _reader(self) -> None:
        while (began := time.monotonic()) < self.end - self.period:
            await self._ask("page of the board", "GET", "/")
            await self._ask("ratings", "GET", "/arena/ratings.json")
            await self._ask("api", "GET", "/api/v1/board?limit=1000")
            await asyncio.sleep(max(0.0, began + 2 - time.monotonic()))


def generate(address: str, cookies: Path, told: Path, seconds: float, period: float) -> None:
    """Run the process of the load generator."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    crowd = Crowd(address, json.loads(cookies.read_text()), seconds, period)
    began = time.monotonic()
    asyncio.run(crowd.go())
    used = resource.getrusage(resource.RUSAGE_SELF)
    seen = {
        "times": crowd.times, "acknowledged": crowd.acknowledged, "battles": crowd.battles, "trouble": crowd.trouble,
        "sent_twice": crowd.sent_twice, "late": crowd.late,
        "cpu_share": (used.ru_utime + used.ru_stime) / (time.monotonic() - began),
    }  # fmt: skip
    told.write_text(json.dumps(seen), encoding="utf-8")


@contextmanager
def site(folder: Path, own: Path, database: str, provider: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Run a site; yield its address and its process, which writes its measurements to its own folder when it is
    stopped.
    """
    own.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "OAUTH_CLIENT_ID": "podeval",
        "OAUTH_CLIENT_SECRET": "of the load test",
        "OPENID_PROVIDER_URL": provider,
        "PODEVAL_SECRET": "a secret of the load test and of none else",
        "PODEVAL_COOKIE_SECRET": "another secret of the load test and of none else",
        "PODEVAL_CACHE": str(folder / "cache"),
        "PODEVAL_TRUSTED_PROXY": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
    command = [
        sys.executable,
        __file__,
        "--serve",
        str(folder / "runs"),
        str(port),
        database,
        str(own / "site.json"),
    ]
    with (own / "site.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, (own / "site.log").read_text()
                assert time.monotonic() < deadline, (own / "site.log").read_text()
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def votes_in(database: str) -> list[tuple[str, str, str]]:
    """Read the id, battle and outcome of every vote by a listener directly from the database."""
    query = "SELECT id, battle, outcome FROM votes WHERE id NOT LIKE 'vote-%'"
    if database.startswith("postgresql"):
        import psycopg

        with psycopg.connect(database) as opened:
            return [tuple(map(str, row)) for row in opened.execute(query).fetchall()]  # type: ignore[misc]
    with sqlite3.connect(database) as opened:
        return opened.execute(query).fetchall()


def compare(there: list[tuple[str, str, str]], acknowledged: dict[str, str]) -> dict[str, Any]:
    """Return the acknowledged votes that are missing or different, and the numbers of second votes on a battle and of
    unacknowledged votes.
    """
    known = {id: outcome for id, _, outcome in there}
    return {
        "lost": [id for id, outcome in acknowledged.items() if known.get(id) != outcome],
        "doubled": len(there) - len({battle for _, battle, _ in there}),
        "not_told": len(known.keys() - acknowledged.keys()),
    }


def load(
    folder: Path,
    database: str,
    *,
    listeners: int,
    seconds: float,
    period: float,
    sound: float,
    votes: int = 0,
    sites: int = 1,
    rehearsed: bool = False,
    systems: int = 12,
    items: int = 10,
) -> dict[str, Any]:
    """Let listeners vote, and compare their answers with the database; return the figures by name."""
    from tests.fakes import loopback_provider

    on_server = database.startswith("postgresql")
    file = str(folder / "votes.db") if on_server else database
    prepare(folder / "runs", file, systems, items, sound)
    if votes:
        fill(file, systems, items, sound, votes)
    if on_server:
        copy(file, database)
    with ExitStack() as open_:
        provider = open_.enter_context(loopback_provider.LoopbackProvider())
        told = [folder / f"site{number}" for number in range(sites)]
        with ExitStack() as served:
            started = [served.enter_context(site(folder, place, database, provider.url)) for place in told]
            addresses = ",".join(address for address, _ in started)
            cookies = signed_in(started[0][0], provider, listeners)
            (folder / "cookies.json").write_text(json.dumps(cookies))
            if rehearsed:
                rehearse(started[0][0], cookies)
            before = [_cpu_of(process.pid) for _, process in started]
            began = time.monotonic()
            command = [sys.executable, __file__, "--generate", addresses, str(folder / "cookies.json")]
            command += [str(folder / "crowd.json"), str(seconds), str(period)]
            subprocess.run(command, check=True)
            wall = time.monotonic() - began
            cpu = sum(_cpu_of(process.pid) for _, process in started) - sum(before)
    crowd = json.loads((folder / "crowd.json").read_text())
    seen: dict[str, Any] = {"times": defaultdict(list), "statuses": Counter(), "memory_mb": 0.0}
    for place in told:
        one = json.loads((place / "site.json").read_text())
        for kind, values in one["times"].items():
            seen["times"][kind] += values
        seen["statuses"].update(one["statuses"])
        seen["memory_mb"] += one["memory_mb"]
    acknowledged = crowd["acknowledged"]
    return {
        **compare(votes_in(database), acknowledged),
        "listeners": listeners,
        "battles": crowd["battles"],
        "acknowledged": len(acknowledged),
        "sent_twice": crowd["sent_twice"],
        "late": crowd["late"],
        "trouble": crowd["trouble"],
        "statuses": seen["statuses"],
        "at_server": {kind: _spread(values) for kind, values in sorted(seen["times"].items())},
        "at_listener": {kind: _spread(values) for kind, values in sorted(crowd["times"].items())},
        "server_cpu_share": cpu / wall,
        "generator_cpu_share": crowd["cpu_share"],
        "server_memory_mb": seen["memory_mb"],
    }


def _cpu_of(process: int) -> float:
    """Return the processor seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {share: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.99)}
    return {"count": len(ordered), "p50_ms": 1e3 * at[0.5], "p99_ms": 1e3 * at[0.99], "most_ms": 1e3 * ordered[-1]}


def main() -> None:
    """Prepare the site, apply the load, and print the figures."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--listeners", type=int, default=200)
    asked.add_argument("--seconds", type=float, default=300)
    asked.add_argument("--period", type=float, default=15)
    asked.add_argument("--sound", type=float, default=5.5, help="seconds of each side")
    asked.add_argument("--postgresql", action="store_true")
    asked.add_argument("--sites", type=int, default=1, help="processes of the site on one database")
    asked.add_argument("--rehearsed", action="store_true", help="let everybody play a pair before the time begins")
    asked.add_argument("--votes", type=int, default=0, help="votes that there are before, on 300 systems")
    given = asked.parse_args()
    busy_before = os.getloadavg()[0]
    with ExitStack() as open_:
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="podeval-load-")))
        database = str(folder / "podeval.db")
        if given.postgresql:
            from tests.fakes import postgresql_server as server

            binaries = server.programs()
            assert binaries, "no PostgreSQL here; apt-get install postgresql"
            database = open_.enter_context(server.running(binaries)) + "/postgres"
        found = load(
            folder, database, listeners=given.listeners, seconds=given.seconds, period=given.period, sound=given.sound,
            votes=given.votes, sites=given.sites, rehearsed=given.rehearsed,
        )  # fmt: skip
    print(
        f"{'PostgreSQL' if given.postgresql else 'SQLite'}, {given.listeners} listeners, "
        f"a vote per {given.period:g} s, {given.seconds:g} s; the machine's load "
        f"before {busy_before:.1f}, after {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n"
        f"{found['battles']} battles, {found['acknowledged']} votes acknowledged ({found['sent_twice']} sent twice, "
        f"{found['late']} not given for lateness), "
        f"{len(found['lost'])} lost, {found['doubled']} doubled, {found['not_told']} there without an acknowledgement\n"
        f"processor: site {found['server_cpu_share']:.0%} of a core, listeners {found['generator_cpu_share']:.0%}; "
        f"memory of the site {found['server_memory_mb']:.0f} MB; statuses {found['statuses']}"
    )
    for where in ("at_server", "at_listener"):
        print(where.replace("_", " "))
        for name, spread in found[where].items():
            print(
                f"  {name:34} {spread['count']:6} p50 {spread['p50_ms']:7.1f} p99 {spread['p99_ms']:7.1f} "
                f"most {spread['most_ms']:7.1f} ms"
            )
    for told, count in found["trouble"].items():
        print(f"  {count} times: {told}")


if __name__ == "__main__":
    match sys.argv[1:2]:
        case ["--serve"]:
            serve(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
        case ["--generate"]:
            generate(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6]))
        case _:
            main()
