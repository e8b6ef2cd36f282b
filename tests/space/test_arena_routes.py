"""The arena's routes: what is told before a vote, how sound is sent, what is taken and what is refused."""

import io
import json
import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from fastapi.testclient import TestClient

from podeval.arena import Arena, ArenaSettings
from podeval.arena.voter_stats import Personals
from podeval.audio import loudness
from podeval.store.database import Database
from podeval.store.tables import ArenaOutput, Battle
from tests.space.arena_fixture import HOSTILE, SYSTEMS, fill, site_without_board

pytestmark = pytest.mark.space
PART = {"x-podeval-part": "1"}


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
    deadline = time.monotonic() + 60
    while not done(document := client.get("/arena/ratings.json").json()):
        assert time.monotonic() < deadline, document
        time.sleep(0.05)
    return dict(document)


def sound(client: TestClient, name: str) -> tuple[np.ndarray, int, bytes]:
    answer = client.get(f"/audio/{name}")
    assert answer.status_code == 200, answer.text
    samples, rate = sf.read(io.BytesIO(answer.content), always_2d=True)
    return samples, rate, answer.content


def test_nothing_of_a_battle_or_its_sound_tells_whose_it_is(as_person: Client, filled: Path) -> None:
    client = as_person("hf:ann")
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
    import auth
    import website
    from fastapi import FastAPI
    from pages import api
    from services import Services

    from podeval.recording.playback import Playback, Stretch

    ann, arena = as_person("hf:ann"), as_person.arena  # type: ignore[attr-defined]
    for _ in range(3):
        ann.post("/arena/votes", json=ballot(battle_of(ann)))
    board = FastAPI()
    services = Services(tmp_path, database, arena, None)  # type: ignore[arg-type]
    board.include_router(api.build_router(website.Site(services, auth.SignIn("none"))))
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


def test_both_sides_are_equally_loud_and_neither_clips(as_person: Client) -> None:
    client = as_person("hf:ann")
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
    for _ in range(4):
        battle = battle_of(client)
        assert battle["loudness"] is None
        peaks |= {round(float(np.abs(sound(client, battle[side]["audio"])[0]).max()), 1) for side in "ab"}
    assert {0.1, 0.7} <= peaks


def test_sound_is_sent_by_ranges_and_its_peaks_are_those_of_its_samples(as_person: Client) -> None:
    client = as_person("hf:ann")
    battle = battle_of(client)
    name = battle["a"]["audio"]
    samples, _, content = sound(client, name)
    part = client.get(f"/audio/{name}", headers={"range": "bytes=100-199"})
    assert part.status_code == 206
    assert part.content == content[100:200]
    assert part.headers["content-range"] == f"bytes 100-199/{len(content)}"
    assert client.get(f"/audio/{name}", headers={"range": f"bytes={len(content)}-"}).status_code == 416
    assert client.head(f"/audio/{name}").headers["content-length"] == str(len(content))
    peaks = client.get(f"/audio/{name}/peaks").json()["peaks"]
    bounds = np.linspace(0, len(samples), 601).round().astype(int)
    expected = [np.abs(samples[a:b]).max() for a, b in pairwise(bounds)]
    assert peaks == pytest.approx(expected, abs=2e-3)
    assert len(samples) / 48_000 == pytest.approx(battle["a"]["seconds"], abs=0.001)


def test_the_shared_task_is_heard_behind_an_opaque_name_too(as_person: Client) -> None:
    client = as_person("hf:ann")
    asked = battle_of(client)["turns"]
    assert HOSTILE in asked[0]["text"]
    samples, rate, _ = sound(client, asked[0]["audio"])
    assert rate == 48_000
    assert np.abs(samples).max() > 0.01


def test_a_name_that_this_arena_did_not_make_is_refused(as_person: Client) -> None:
    client = as_person("hf:ann")
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
    battle = battle_of(client)
    with database.writing() as session:
        for output in session.query(ArenaOutput):
            output.audio, output.sha256 = f"/gone/made-by-{output.system}.wav", ""
    for path in ("", "/peaks"):
        answer = client.get(f"/audio/{battle['a']['audio']}{path}")
        assert answer.status_code == 404
        assert "skip" in answer.json()["error"]
        assert "-one" not in answer.text, "the path would tell whose it is"


def test_a_vote_sent_again_is_one_vote_with_the_same_answer(as_person: Client) -> None:
    client = as_person("hf:ann")
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
    as_person: Client, change: dict[str, Any], status: int, reason: str
) -> None:
    client = as_person("hf:ann")
    answer = client.post("/arena/votes", json=ballot(battle_of(client), **change))
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert len(answer.json()["error"]) > 15
    assert client.get("/arena/me").json()["judged"] == 0


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
    assert told["a"]["rating"]["rating"] > told["b"]["rating"]["rating"]


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
    against = Personals(arena).of(arena.voter("hf:dan"))
    assert (against.compared, against.agreed) == (8, 0)
    document = as_person().get("/arena/ratings.json").json()
    (dimensions,) = (parts["dimensions"] for parts in document["protocols"].values())
    for part in dimensions.values():
        assert part["systems"][-1]["system"] == "anchor-one"
        assert part["systems"][-1]["kind"] == "control"
        assert part["systems"][0]["low"] < part["systems"][0]["rating"] < part["systems"][0]["high"]
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
    assert first["systems"][0]["low"] is None, "one voter gives no interval"
    table = ann.get("/arena/ratings.csv")
    assert table.headers["content-type"].startswith("text/csv")
    assert "'=Loud voice & co" in table.text
    page = ann.get("/arena/ratings").text
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert 'class="ladder"' in page
    excluded = ann.get("/arena/ratings?dimension=%3Cscript%3Ealert(1)%3C/script%3E")
    assert excluded.status_code == 200
    assert "<script>alert" not in excluded.text


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
        arena.exclude(vote, "a test", by="tester")
    document = settled(people[0], lambda found: found["excluded"] == 8)
    # Now and then a battle is a repetition, whose vote is in no rating and in no share.
    assert document["excluded_share"] == pytest.approx(8 / (sum(_votes(document)) + 8))
    assert document["alarms"]
    page = people[0].get("/arena/ratings").text
    assert "Alarm:" in page
    assert f"{document['excluded_share']:.1%}".replace("%", " %") in page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_have_all_their_texts_and_no_code_in_them(as_person: Client, language: str) -> None:
    ann = as_person("hf:ann")
    ann.post("/arena/votes", json=ballot(battle_of(ann)))
    for path, part in (("/arena", PART), ("/arena/ratings", {})):
        answer = ann.get(f"{path}?lang={language}", headers=part)
        assert answer.status_code == 200
        assert part or f'<html lang="{language}">' in answer.text
        assert "style=" not in answer.text
        assert "onclick=" not in answer.text
        assert "'unsafe-inline'" not in answer.headers["content-security-policy"]


def test_too_many_battles_at_once_are_held_back(as_person: Client) -> None:
    client = as_person("hf:ann")
    answers = [client.post("/arena/battles", json={"dimension": "nowhere"}) for _ in range(32)]
    assert {answer.json()["reason"] for answer in answers[:30]} == {"nothing left"}
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_a_new_board_says_how_its_arena_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    with Database(tmp_path / "new.db") as empty:
        client = TestClient(site_without_board(tmp_path, Arena(empty)), base_url="http://localhost")
        page = client.get("/arena", headers=PART).text
        assert "There is nothing to compare yet" in page
        assert "podeval arena add" in page
        assert 'id="battle"' not in page
        assert "目前还没有可比较的内容" in client.get("/arena?lang=zh", headers=PART).text
