"""The arena's routes: what is told before a vote, how sound is sent, what is taken and what is refused."""

import io
import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from fastapi.testclient import TestClient
from sqlalchemy import select

from podeval.arena import Arena, ArenaSettings
from podeval.arena.battle_audio import BattleAudio
from podeval.arena.ranking import Rankings
from podeval.arena.voter_stats import Personals
from podeval.audio import loudness
from podeval.recording.playback import Playback, find_sound
from podeval.store.database import Database
from podeval.store.tables import ArenaOutput, Battle
from tests.fakes.loopback_server import serve_app
from tests.fakes.small_arena import SmallArena, fill_votes
from tests.fakes.waiting import wait_until
from tests.space.arena_fixture import HOSTILE, SYSTEMS, build_pages, fill, site_without_board


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arena")
    fill(folder / "podeval.db", folder / "audio", items=4)
    return folder


@pytest.fixture
def database(filled: Path, tmp_path: Path) -> Iterator[Database]:
    """A copy of the filled database."""
    for name in ("podeval.db", "podeval.db-wal"):
        if (filled / name).exists():
            (tmp_path / name).write_bytes((filled / name).read_bytes())
    with Database(tmp_path / "podeval.db") as opened:
        yield opened


Client = Callable[..., TestClient]


@pytest.fixture
def as_person(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Client:
    """A client signed in under a name; the same site for all."""
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    arena = Arena(database, ArenaSettings(excerpt_seconds=0.4, fastest_playback=1000.0))
    app = site_without_board(tmp_path, arena)

    def client(name: str = "", **headers: str) -> TestClient:
        known = {"x-person": name} if name else {}
        return TestClient(app, headers={"x-podeval": "1", **known, **headers}, raise_server_exceptions=False)

    client.arena = arena  # type: ignore[attr-defined]
    return client


def battle_of(client: TestClient, **wish: str) -> dict[str, Any]:
    battle = open_battle(client, **wish)
    for side in "ab":
        client.get(f"/audio/{battle[side]['audio']}")
    return battle


def open_battle(client: TestClient, **wish: str) -> dict[str, Any]:
    """A battle of which nothing was fetched yet."""
    answer = client.post("/arena/battles", json=wish)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ballot(battle: dict[str, Any], outcome: str = "a", **changes: Any) -> dict[str, Any]:
    return {
        "id": battle["token"][:32],
        "token": battle["token"],
        "outcome": outcome,
        "played_a": [[0, battle["a"]["seconds"]]],
        "played_b": [[0, battle["b"]["seconds"]]],
        **changes,
    }


def _votes(document: dict[str, Any]) -> list[int]:
    """Of each dimension."""
    return [
        part["votes"]
        for parts in document["protocols"].values()
        for name, part in parts["dimensions"].items()
        if name != "pooled"
    ]


def settled(client: TestClient, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The ratings once they are as expected: while rating takes long, a page shows those of some seconds ago."""
    wait_until(lambda: done(client.get("/arena/ratings.json").json()))
    return dict(client.get("/arena/ratings.json").json())


def sound(client: TestClient, name: str) -> tuple[np.ndarray, int, bytes]:
    answer = client.get(f"/audio/{name}")
    assert answer.status_code == 200, answer.text
    samples, rate = sf.read(io.BytesIO(answer.content), always_2d=True)
    return samples, rate, answer.content


@pytest.fixture
def client(as_person: Client) -> TestClient:
    return as_person("hf:ann")


def test_nothing_of_a_battle_or_its_sound_tells_whose_it_is(client: TestClient, filled: Path) -> None:
    battle = battle_of(client)
    told = json.dumps(battle)
    sides = {side: sound(client, battle[side]["audio"]) for side in "ab"}
    for system in SYSTEMS.values():
        # The items' titles are hostile too; only the system's own words give it away.
        assert system.id not in told
        assert "Loud voice" not in told
        assert "eSpeak anchor" not in told
    assert str(filled) not in told
    for samples, rate, content in sides.values():
        assert (rate, samples.shape[1]) == (48_000, 2), "systems of 16, 24 and 44.1 kHz look alike"
        assert sf.info(io.BytesIO(content)).duration == pytest.approx(battle["a"]["seconds"], abs=0.001)
        assert b"made by" not in content
    answers = [client.get(f"/audio/{battle[side]['audio']}") for side in "ab"]
    for answer in answers:
        assert not any(system in f"{answer.headers}" for system in SYSTEMS)
        assert "1970" in answer.headers["last-modified"], "when a copy was made tells which was heard before"
    assert len(answers[0].content) == len(answers[1].content), "sizes are equal, also where one has more to say"
    assert answers[0].headers == answers[1].headers, "nothing is said of one side that is not said of the other"
    again = {"range": "bytes=9-", "if-range": answers[0].headers["last-modified"]}
    assert client.get(f"/audio/{battle['a']['audio']}", headers=again).status_code == 206


def test_public_data_do_not_tell_the_sides_of_an_open_battle(
    as_person: Client, filled: Path, tmp_path: Path, database: Database
) -> None:
    from pages import api
    from services import Services

    from podeval.recording.playback import Playback, Stretch

    ann, arena = as_person("hf:ann"), as_person.arena  # type: ignore[attr-defined]
    for _ in range(3):
        ann.post("/arena/votes", json=ballot(battle_of(ann)))
    board = build_pages(Services(tmp_path, database, arena), api, mode="none")
    with TestClient(board) as public:
        rows = public.get("/api/v1/votes").json()["rows"]
    assert len(rows) == 3
    assert not any(name.startswith(("seconds", "loudness", "sha256")) for name in rows[0])
    eve = as_person("hf:eve")
    by_name = [Playback.default().copy(Stretch(file)).read_bytes() for file in sorted((filled / "audio").glob("*-i*"))]
    battle, whole = battle_of(eve), battle_of(eve, protocol="whole")
    for side in "ab":
        for shown in (battle, whole):
            samples, rate, content = sound(eve, shown[side]["audio"])
            assert (len(samples) / rate).is_integer(), "no length to the sample"
            assert content not in by_name
            assert shown[side]["seconds"].is_integer()
    assert battle["a"]["seconds"] == battle["b"]["seconds"], "how long the same words take would tell who says them"


def test_ten_votes_of_many_cost_as_much_as_ten(tmp_path: Path) -> None:
    """Measured in processor time; building the table of all took 3 s at 100,000 votes."""
    from pages import api
    from services import Services

    small = SmallArena(str(tmp_path / "podeval.db"))
    fill_votes(small.database, 30_000)
    services = Services(tmp_path, small.database, small.arena)
    client = TestClient(build_pages(services, api))

    def ask(**query: Any) -> tuple[float, dict[str, Any]]:
        began = time.process_time()
        answer = client.get("/api/v1/votes", params={"limit": 10, **query})
        return time.process_time() - began, answer.json()

    ask()
    for query in ({}, {"offset": 29_995}, {"after": 29_990}, {"dimension": "ambient", "after": 5}, {"dimension": "no"}):
        seconds, page = ask(**query)
        assert seconds < 0.3, f"{query}: the whole table takes a second"
        numbers = [row["number"] for row in page["rows"]]
        assert numbers == sorted(numbers)
        assert all(number > query.get("after", 0) for number in numbers)
        assert page["total"] == {None: 30_000, "ambient": 10_000, "no": 0}[query.get("dimension")]
    ends = {"offset": 29_995}, {"after": 29_998}, {"after": 2**53}, {"offset": api.MOST_SKIPPED}
    assert [len(ask(**query)[1]["rows"]) for query in ends] == [5, 2, 0, 0]
    assert ask(offset=api.MOST_SKIPPED + 1)[1]["reason"] == "invalid", "an offset costs more the longer it is"


def test_no_excerpt_is_answered_before_both_copies_are_there(
    as_person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long an answer takes would tell whose recording somebody has heard before."""
    from podeval.recording.playback import Playback, Stretch

    copied: list[Path] = []
    copy = Playback.copy

    def note(self: Playback, stretch: Stretch, *more: Any) -> Path:
        copied.append(stretch.source)
        return copy(self, stretch, *more)

    monkeypatch.setattr(Playback, "copy", note)
    client = as_person("hf:ann")
    battle = battle_of(client)
    sound(client, battle["b"]["audio"])
    assert len(set(copied)) == 2, "the other side is made as well"
    both = set(copied)
    copied.clear()
    sound(client, battle["a"]["audio"])
    assert set(copied) == both


def test_both_sides_are_equally_loud_and_neither_clips(client: TestClient) -> None:
    for _ in range(3):
        battle = battle_of(client)
        levels = []
        for side in "ab":
            samples, rate, _ = sound(client, battle[side]["audio"])
            measured = loudness.measure(samples.astype(np.float32), rate, "stereo")
            levels.append(measured.integrated)
            assert measured.true_peak < -0.9
        assert levels[0] == pytest.approx(levels[1], abs=0.05)
        assert levels[0] <= battle["loudness"] + 0.05


def test_an_arena_of_loudness_plays_all_as_it_was_made(database: Database, tmp_path: Path) -> None:
    arena = Arena(database, ArenaSettings(loudness=None))
    client = TestClient(site_without_board(tmp_path, arena), headers={"x-podeval": "1", "x-person": "hf:ann"})
    peaks = set()
    for number in range(8):
        client.headers["x-person"] = f"hf:{number}"
        battle = battle_of(client)
        assert battle["loudness"] is None
        peaks |= {round(float(np.abs(sound(client, battle[side]["audio"])[0]).max()), 1) for side in "ab"}
    assert {0.1, 0.7} <= peaks


def test_sound_is_sent_by_ranges_and_its_peaks_are_those_of_its_samples(client: TestClient) -> None:
    battle = battle_of(client)
    name = battle["a"]["audio"]
    samples, _, content = sound(client, name)
    part = client.get(f"/audio/{name}", headers={"range": "bytes=100-199"})
    assert part.status_code == 206
    assert part.content == content[100:200]
    assert part.headers["content-range"] == f"bytes 100-199/{len(content)}"
    assert client.get(f"/audio/{name}", headers={"range": f"bytes={len(content)}-"}).status_code == 416
    assert client.head(f"/audio/{name}").headers["content-length"] == str(len(content))
    bars = re.findall(r"v([\d.]+)h", client.get(f"/audio/{name}/peaks").text)
    bounds = np.linspace(0, len(samples), 151).round().astype(int)
    expected = np.array([np.abs(samples[a:b]).max() for a, b in pairwise(bounds)])
    assert [float(bar) / 2 for bar in bars] == pytest.approx(np.maximum(expected / expected.max(), 0.03), abs=5e-3)
    assert len(samples) / 48_000 == pytest.approx(battle["a"]["seconds"], abs=0.001)


def test_the_shared_task_is_heard_behind_an_opaque_name_too(client: TestClient) -> None:
    asked = battle_of(client)["turns"]
    assert HOSTILE in asked[0]["text"]
    samples, rate, _ = sound(client, asked[0]["audio"])
    assert rate == 48_000
    assert np.abs(samples).max() > 0.01


def test_a_name_that_this_arena_did_not_make_is_refused(client: TestClient) -> None:
    name = battle_of(client)["a"]["audio"]
    for forged in (
        name[:-1] + ("A" if name[-1] != "A" else "B"),
        name.replace(".a.", ".b."),
        "x",
        "..%2F..%2Fetc%2Fpasswd",
    ):
        answer = client.get(f"/audio/{forged}")
        assert answer.status_code in (403, 404), forged
        assert client.get(f"/audio/{forged}/peaks").status_code in (403, 404)


def test_a_recording_that_is_gone_is_refused_without_its_name(as_person: Client, database: Database) -> None:
    client = as_person("hf:ann")
    battle = open_battle(client)
    with database.writing() as session:
        for output in session.query(ArenaOutput):
            output.audio, output.sha256 = f"/gone/made-by-{output.system}.wav", ""
    for path in ("", "/peaks"):
        answer = client.get(f"/audio/{battle['a']['audio']}{path}")
        assert answer.status_code == 404
        assert "skip" in answer.json()["error"]
        assert "-one" not in answer.text, "the path would tell whose it is"


def test_a_vote_sent_again_is_one_vote_with_the_same_answer(client: TestClient) -> None:
    battle = battle_of(client)
    first = client.post("/arena/votes", json=ballot(battle))
    again = client.post("/arena/votes", json=ballot(battle, outcome="b"))
    assert first.status_code == again.status_code == 200, first.text
    assert first.json() == again.json()
    assert {first.json()["system_a"], first.json()["system_b"]} <= {system.title for system in SYSTEMS.values()}
    assert client.get("/arena/me").json()["judged"] == 1
    other = client.post("/arena/votes", json=ballot(battle, id="another-vote-id"))
    assert (other.status_code, other.json()["reason"]) == (409, "replayed")


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"played_a": []}, 409, "not heard"),
        ({"outcome": "c"}, 422, "invalid"),
        ({"id": "short"}, 422, "invalid"),
        ({"played_a": [[-9, 1e9]]}, 422, "invalid"),
        ({"seconds_a": -1}, 422, "invalid"),
        ({"token": "forged"}, 403, "forged"),
        ({"token": 5}, 422, "invalid"),
        ({"more": 1}, 422, "invalid"),
        ({"comment": "x" * 200_000}, 422, "invalid"),
    ],
)
def test_what_cannot_be_a_vote_is_refused_with_a_sentence(
    client: TestClient, change: dict[str, Any], status: int, reason: str
) -> None:
    answer = client.post("/arena/votes", json=ballot(battle_of(client), **change))
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert len(answer.json()["error"]) > 15
    assert client.get("/arena/me").json()["judged"] == 0


def test_a_vote_rests_on_sounds_that_were_fetched(as_person: Client) -> None:
    ann = as_person("hf:ann")
    battle = open_battle(ann)
    a, b = (f"/audio/{battle[side]['audio']}" for side in "ab")

    def refused() -> str:
        answer = ann.post("/arena/votes", json=ballot(battle))
        assert (answer.status_code, answer.json()["reason"]) == (409, "not fetched")
        return str(answer.json()["error"])

    assert "side A" in refused()
    file = BattleAudio(as_person.arena, Playback.default()).file(battle["a"]["audio"])  # type: ignore[attr-defined]
    size, begins = int(ann.head(a).headers["content-length"]), find_sound(file)
    assert begins > size / 2, "most of a short excerpt is padding"
    for only in ("bytes=0-99", f"bytes=0-{begins - 1}", f"bytes=0-9,{begins}-{size - 1}"):
        assert ann.get(a, headers={"range": only}).status_code == 206
    assert ann.get(f"{a}/peaks").status_code == 200
    assert "side A" in refused()
    assert len(ann.get(a).content) == size
    assert "side B" in refused(), "both sides are fetched"
    skipped = ann.post("/arena/votes", json=ballot(battle, "skip"))
    assert skipped.json()["reason"] == "not fetched", "a skip names the systems to who listened"
    # As a browser fetches what is long: piece by piece.
    for start in range(0, size, size // 4):
        piece = ann.get(b, headers={"range": f"bytes={start}-{start + size // 4 - 1}"})
        assert piece.status_code == 206
    assert ann.post("/arena/votes", json=ballot(battle)).status_code == 200


def test_another_process_on_the_database_knows_what_was_fetched(
    as_person: Client, database: Database, tmp_path: Path
) -> None:
    """Fetched from a real server by clients that hang up at the last byte."""
    ann = as_person("hf:ann")
    battles = [open_battle(ann) for _ in range(3)]
    with serve_app(ann.app) as url:
        for battle in battles:
            for side in "ab":
                with urllib.request.urlopen(f"{url}/audio/{battle[side]['audio']}") as answer:
                    answer.read()

    def kept() -> list[tuple[float | None, float | None]]:
        with database.reading() as session:
            return [tuple(row) for row in session.execute(select(Battle.fetched_a, Battle.fetched_b))]

    deadline = time.monotonic() + 60
    while kept() != [(1.0, 1.0)] * 3:
        assert time.monotonic() < deadline, kept()
        time.sleep(0.05)
    arena = Arena(database, ArenaSettings(fastest_playback=1000.0))
    restarted = TestClient(site_without_board(tmp_path, arena), headers={"x-podeval": "1", "x-person": "hf:ann"})
    assert restarted.post("/arena/votes", json=ballot(battles[0])).status_code == 200
    # Whoever had sounds of a version that did not count loses no vote.
    for battle, fetched in ((battles[1], None), (battles[2], 0.0)):
        with database.writing() as session:
            row = session.get_one(Battle, battle["token"].partition(".")[0])
            row.fetched_a = row.fetched_b = fetched
    assert restarted.post("/arena/votes", json=ballot(battles[1])).status_code == 200
    assert restarted.post("/arena/votes", json=ballot(battles[2])).json()["reason"] == "not fetched"


def test_a_vote_too_large_or_not_from_a_page_of_ours_is_not_read(as_person: Client) -> None:
    client = as_person("hf:ann")
    battle = battle_of(client)
    large = client.post("/arena/votes", json=ballot(battle, comment="x" * 300_000))
    assert large.status_code == 413
    elsewhere = as_person("hf:ann", **{"x-podeval": "0"}).post("/arena/votes", json=ballot(battle))
    assert elsewhere.status_code == 403
    assert client.get("/arena/me").json()["judged"] == 0


def test_a_battle_is_shown_and_judged_by_its_own_voter_only(as_person: Client) -> None:
    ann, ben, nobody = as_person("hf:ann"), as_person("hf:ben"), as_person()
    battle = battle_of(ann)
    assert ann.get(f"/arena/battles/{battle['token']}").json()["a"] == battle["a"]
    assert ben.get(f"/arena/battles/{battle['token']}").json()["reason"] == "foreign"
    assert ben.post("/arena/votes", json=ballot(battle)).json()["reason"] == "foreign"
    for answer in (
        nobody.post("/arena/battles", json={}),
        nobody.get(f"/arena/battles/{battle['token']}"),
        nobody.post("/arena/votes", json=ballot(battle)),
        nobody.get("/arena/me"),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (401, "not signed in")
    done = ann.post("/arena/votes", json=ballot(battle)).json()
    assert ben.get(f"/arena/votes/{done['vote']}/reveal").json() is None
    told = ann.get(f"/arena/votes/{done['vote']}/reveal").json()
    assert (told["a"]["title"], told["b"]["title"]) == (done["system_a"], done["system_b"])
    # Nobody waits for ratings that take long, as on a busy machine.
    wait_until(lambda: ann.get(f"/arena/votes/{done['vote']}/reveal").json()["a"]["rating"])
    told = ann.get(f"/arena/votes/{done['vote']}/reveal").json()
    assert told["a"]["rating"]["rating"] > told["b"]["rating"]["rating"]
    shown = ann.get(f"/arena/votes/{done['vote']}/revealed").json()
    assert (shown["a"]["title"], shown["b"]["title"]) == (done["system_a"], done["system_b"])
    tally = f"{done['system_a']} 1, {done['system_b']} 0, neither 0."
    assert shown["standing"].startswith(f"Votes on these two, yours included: {tally}")
    assert shown["standing"].endswith("more votes, from more people."), "one vote is no rating"
    assert shown["mine"].startswith("Pairs you judged: 1.")
    foreign = ben.get(f"/arena/votes/{done['vote']}/revealed").json()
    assert foreign.keys() == {"standing", "mine", "board"}


def test_agreement_is_with_what_most_others_prefer(as_person: Client) -> None:
    """Three prefer whoever is not the anchor, one prefers the anchor."""
    arena: Arena = as_person.arena  # type: ignore[attr-defined]
    for name, likes in (("hf:ann", False), ("hf:ben", False), ("hf:cat", False), ("hf:dan", True)):
        client = as_person(name)
        for _ in range(12):
            battle = battle_of(client)
            with arena.database.reading() as session:
                row = session.get_one(Battle, battle["token"].partition(".")[0])
                a, b = (session.get_one(ArenaOutput, output).system for output in (row.output_a, row.output_b))
            outcome = "skip" if "anchor-one" not in (a, b) else "a" if (a == "anchor-one") == likes else "b"
            assert client.post("/arena/votes", json=ballot(battle, outcome)).status_code == 200
    mine = as_person("hf:ann").get("/arena/me").json()
    assert (mine["judged"], mine["skipped"]) == (8, 4)
    assert (mine["compared"], mine["agreed"]) == (8, 8)
    assert mine["low"] == pytest.approx(8 / (8 + 1.959964**2)), "Wilson's bound of 8 in 8"
    against = Personals(arena.database).of(arena.voter("hf:dan"))
    assert (against.compared, against.agreed) == (8, 0)
    document = as_person().get("/arena/ratings.json").json()
    (dimensions,) = (parts["dimensions"] for parts in document["protocols"].values())
    for part in dimensions.values():
        assert part["systems"][-1]["system"] == "anchor-one"
        assert part["systems"][-1]["kind"] == "control"
        assert part["systems"][0]["provisional"]["voters"] == {"missing": 1, "needed": 5}
        assert part["lowered"] == []
        assert np.asarray(part["battles"]).sum() == 2 * part["votes"]
    assert next(iter(dimensions)) == "pooled"


def test_ratings_follow_the_votes_and_no_spreadsheet_runs_their_names(as_person: Client) -> None:
    ann = as_person("hf:ann")
    assert ann.get("/arena/ratings.json").json()["protocols"] == {}
    assert "There are no votes yet" in ann.get("/arena/ratings").text
    for _ in range(6):
        assert ann.post("/arena/votes", json=ballot(battle_of(ann))).status_code == 200
    document = settled(ann, lambda found: sum(_votes(found)) == 6)
    first = next(iter(document["protocols"]["excerpts"]["dimensions"].values()))
    assert first["systems"][0]["low"] is first["systems"][0]["best"] is None
    assert first["systems"][0]["provisional"]["voters"] == {"missing": 4, "needed": 5}
    table = ann.get("/arena/ratings.csv")
    assert table.headers["content-type"].startswith("text/csv")
    assert "'=Loud voice & co" in table.text
    assert "4 of 5 voters missing" in table.text
    page = ann.get("/arena/ratings").text
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert 'class="ladder"' in page
    assert "4 of 5 voters still needed" in page
    assert "还差 4 位投票者（需 5 位）" in ann.get("/arena/ratings?lang=zh").text
    excluded = ann.get("/arena/ratings?dimension=%3Cscript%3Ealert(1)%3C/script%3E")
    assert excluded.status_code == 200
    assert "<script>alert" not in excluded.text


def test_a_judges_battles_stand_beside_peoples_votes_on_the_page_and_newcomers_are_provisional(
    as_person: Client, tmp_path: Path
) -> None:
    from auth import SignIn
    from services import Services
    from website import Site

    ann = as_person("hf:ann")
    assert ann.post("/arena/votes", json=ballot(battle_of(ann))).status_code == 200
    lines = [
        {
            "system_a": "lark",
            "system_b": "wren",
            "outcome": "a",
            "judge": "j@1",
            "dialogue": f"d{n}",
            "dimension": "sem",
        }
        for n in range(12)
    ]
    log = tmp_path / "judges" / "gemini & co" / "battles.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    document = settled(ann, lambda found: "judge gemini & co" in found["protocols"])
    judged = document["protocols"]["judge gemini & co"]["dimensions"]["sem"]
    assert [(row["system"], row["best"], row["worst"]) for row in judged["systems"]] == [("lark", 1, 1), ("wren", 2, 2)]
    (people,) = document["protocols"]["excerpts"]["dimensions"].values()
    assert people["votes"] == 1
    page = ann.get("/arena/ratings").text
    assert 'href="?protocol=judge%20gemini%20%26%20co"' in page
    beside = ann.get("/arena/ratings?protocol=judge%20gemini%20%26%20co").text
    assert "Battles decided by a judge" in beside
    assert '<th scope="row">lark' in beside
    assert "excluded" not in beside.partition('id="footing"')[2].partition("</p>")[0]
    assert "judge gemini & co,sem,lark" in ann.get("/arena/ratings.csv").text
    # By how much was heard before a vote, on the page of methods: a system with one vote is called provisional there.
    site = Site(Services(tmp_path, as_person.arena.database, as_person.arena), SignIn("local"))
    heard = site._templates.get_template("arena_heard.html")
    text = heard.render(t=site.texts["en"], heard=Rankings(as_person.arena).current().heard, titles={})
    assert text.count("provisional: ") == 2


def test_ratings_link_to_systems_and_their_samples(as_person: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    from podeval.board.runs_folder import RunsFolder

    ann = as_person("hf:ann")
    for _ in range(6):
        assert ann.post("/arena/votes", json=ballot(battle_of(ann))).status_code == 200
    document = settled(ann, lambda found: sum(_votes(found)) == 6)
    first = next(iter(document["protocols"]["excerpts"]["dimensions"].values()))
    system = str(first["systems"][0]["system"])
    assert "#listen" not in ann.get("/arena/ratings").text, "what is on no board has no page"
    monkeypatch.setattr(RunsFolder, "board", lambda self: pd.DataFrame({"system": [system]}))
    page = ann.get("/arena/ratings").text
    assert page.count("#listen") == 1
    link = re.search(r'<a class="small" href="([^"]+)#listen" aria-label="samples: ', page)
    assert link
    assert f'<a href="{link[1]}">' in page


def test_an_arena_that_excludes_much_says_so_where_its_ratings_stand(as_person: Client) -> None:
    arena: Arena = as_person.arena  # type: ignore[attr-defined]
    people = [as_person(f"hf:{name}") for name in ("ann", "ben")]
    votes = [
        person.post("/arena/votes", json=ballot(battle_of(person))).json()["vote"]
        for person in people
        for _ in range(12)
    ]
    assert 'role="alert"' not in people[0].get("/arena/ratings").text
    for vote in votes[:8]:
        arena.decide(vote, "excluded", "a test", by="tester")
    document = settled(people[0], lambda found: found["excluded"] == 8)
    # Now and then a battle is a repetition, whose vote is in no rating and in no share.
    assert document["excluded_share"] == pytest.approx(8 / (sum(_votes(document)) + 8))
    assert document["alarms"]
    page = people[0].get("/arena/ratings").text
    assert "Alarm:" in page
    assert f"{document['excluded_share']:.1%}".replace("%", "\xa0%") in page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_have_all_their_texts_and_no_code_in_them(as_person: Client, language: str) -> None:
    ann = as_person("hf:ann")
    ann.post("/arena/votes", json=ballot(battle_of(ann)))
    answer = ann.get(f"/arena/ratings?lang={language}")
    assert answer.status_code == 200
    assert f'<html lang="{language}">' in answer.text
    assert "style=" not in answer.text
    assert "onclick=" not in answer.text
    assert "'unsafe-inline'" not in answer.headers["content-security-policy"]


def test_too_many_battles_at_once_are_held_back(client: TestClient) -> None:
    answers = [client.post("/arena/battles", json={"dimension": "nowhere"}) for _ in range(32)]
    assert {answer.json()["reason"] for answer in answers[:30]} == {"nothing left"}
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_a_new_board_says_how_its_arena_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    with Database(tmp_path / "new.db") as empty:
        client = TestClient(site_without_board(tmp_path, Arena(empty)), base_url="http://localhost")
        offer = client.get("/arena/offer").json()
        assert (offer["state"], offer["offered"]) == ("nothing yet", [])
        assert "podeval arena add" in offer["sentence"]
        assert offer["texts"]["ended"]["nothing yet"] == "There is nothing to compare yet"
        assert client.get("/arena/offer?lang=zh").json()["texts"]["ended"]["nothing yet"] == "目前还没有可比较的内容"


def test_what_is_offered_says_to_a_stranger_how_to_begin_and_on_a_closed_board_why_nothing_is(
    as_person: Client, database: Database, tmp_path: Path
) -> None:
    stranger, ann = (as_person(name).get("/arena/offer").json() for name in ("", "hf:ann"))
    assert (stranger["state"], ann["state"]) == ("not signed in", "open")
    assert "sign in first" in stranger["sentence"]
    assert [each["choices"][0][1] for each in ann["offered"]] == [{"protocol": "excerpts"}, {"protocol": "whole"}]
    shut = TestClient(site_without_board(tmp_path, Arena(database), closed="it moves house"))
    assert shut.get("/arena/offer").json()["sentence"] == "it moves house"
