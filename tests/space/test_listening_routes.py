"""What a listener's requests may do: by invitation, with consent; nothing tells the systems; results for operators."""

import re
from pathlib import Path
from typing import Any

import pytest

from podeval.listening import Listening
from podeval.listening.designs import read_design
from podeval.listening.screening import TRIAL_NAMES, find_right_answers
from podeval.store.database import Database
from podeval.store.tables import ListeningSession
from tests.space.listening_fixture import SYSTEMS, fill

SENT = {"X-Podeval": "1"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    fill(folder / "podeval.db", folder)
    return folder


def visitor(runs: Path, closed: str | None = None) -> Any:
    """A site with sign-in, at which nobody has signed in."""
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    from auth import SignIn
    from fastapi.testclient import TestClient
    from services import open_services
    from site_app import build_site
    from website import Site

    site = Site(open_services(runs, str(runs / "podeval.db"), closed=closed), SignIn("oidc"))
    return TestClient(build_site(site))


@pytest.fixture(scope="module")
def client(runs: Path) -> Any:
    return visitor(runs)


def begun(client: Any, test: str, who: str) -> str:
    answer = client.post(f"/listen/{test}/sessions", json={"prolific": who, "consent": True}, headers=SENT)
    assert answer.status_code == 200
    return str(answer.json()["session"])


def test_a_session_begins_by_invitation_and_consent_and_is_found_again(client: Any) -> None:
    assert client.get("/listen/none?pid=a").status_code == 404
    assert "sign in" in client.get("/listen/mos").text
    page = client.get("/listen/mos?pid=a").text
    assert "<nav" not in page, "a listener sees the test alone"
    assert re.findall(r'<a [^>]*href="([^"]*)"', page) == ["?pid=a&amp;lang=zh"]
    assert client.post("/listen/mos/sessions", json={"consent": True}, headers=SENT).status_code == 401
    assert client.post("/listen/mos/sessions", json={"pid": "a", "consent": True}).status_code == 403
    unfilled = {"prolific": "{{%PROLIFIC_PID%}}", "consent": True}
    assert client.post("/listen/mos/sessions", json=unfilled, headers=SENT).status_code == 422
    assert client.post("/listen/mos/sessions", json={"prolific": "a"}, headers=SENT).json() is None
    session = begun(client, "mos", "a")
    assert client.post("/listen/mos/sessions", json={"prolific": "a"}, headers=SENT).json()["session"] == session
    assert client.post("/listen/mos/sessions", json={"pid": "a"}, headers=SENT).json() is None, "another panel"


def test_a_page_and_its_sounds_tell_nothing_of_systems(client: Any, runs: Path) -> None:
    session = begun(client, "mushra", "b")
    page = client.get("/listen/mushra?PROLIFIC_PID=b&page=0")
    # One of the systems is called as attributes for screen readers begin; a session's random name may hold two letters.
    told = page.text.replace(session, "").replace("aria-", "")
    assert not any(name in told for name in (*SYSTEMS, "HQ", "LQ", ".wav", "clips"))
    place = f"/listen/sessions/{session}/pages/0"
    part = client.get(f"{place}/audio/A", headers={"Range": "bytes=0-99"})
    assert (part.status_code, len(part.content), part.headers["content-type"]) == (206, 100, "audio/flac")
    assert client.get(f"{place}/peaks/A").text.count("M") == 150
    assert client.get("/listen/sessions/level", headers={"Range": "bytes=0-9"}).status_code == 206
    assert client.get(f"{place}/audio/Z").status_code == 422
    assert client.get("/listen/sessions/forged/pages/0/audio/A").status_code == 422
    gone = runs / "clips" / "2.wav"
    gone.rename(gone.with_suffix(".away"))
    told = client.get(f"{place}/audio/reference")
    gone.with_suffix(".away").rename(gone)
    assert told.status_code == 422
    assert "clips" not in told.text
    assert "2.wav" not in told.text


def test_what_a_page_does_not_ask_for_is_refused(client: Any) -> None:
    session = begun(client, "mushra", "c")
    place = f"/listen/sessions/{session}/pages/0"
    whole = {"answer": dict.fromkeys("ABCD", 10), "heard": dict.fromkeys("ABCD", 1.0), "seconds": 9}
    wrong = [
        {**whole, "heard": {}},
        {**whole, "heard": dict.fromkeys("ABCD", 0.5)},
        {**whole, "answer": dict.fromkeys("ABC", 10)},
        {**whole, "answer": dict.fromkeys("ABCD", 101)},
        {**whole, "answer": {**whole["answer"], "E": 1}},
        {**whole, "system": "aria"},
    ]
    for sent in wrong:
        assert client.post(place, json=sent, headers=SENT).status_code == 422, sent
    assert client.post(f"/listen/sessions/{session}/finish", json={}, headers=SENT).status_code == 422
    for number in (0, 1):
        done = client.post(f"/listen/sessions/{session}/pages/{number}", json=whole, headers=SENT)
    assert done.json()["next"] is None
    code = client.post(f"/listen/sessions/{session}/finish", json={}, headers=SENT).json()["code"]
    assert client.post(f"/listen/sessions/{session}/finish", json={}, headers=SENT).json()["code"] == code
    assert client.post(place, json=whole, headers=SENT).status_code == 422, "a finished session stands as it is"


def answer_check(client: Any, runs: Path, session: str, right: int) -> Any:
    """Answer so many sounds of the headphone check rightly, as who knows the session's seed can."""
    with Database(runs / "podeval.db") as database, database.reading() as opened:
        rights = find_right_answers(opened.get_one(ListeningSession, session).seed)
    answers = {name: r if n < right else r % 3 + 1 for n, (name, r) in enumerate(zip(TRIAL_NAMES, rights, strict=True))}
    sent = {"answer": answers, "heard": dict.fromkeys("ABCDEF", 1.0), "seconds": 60}
    return client.post(f"/listen/sessions/{session}/pages/0", json=sent, headers=SENT).json()


def test_the_headphone_check_is_a_page_whose_sounds_and_pictures_tell_nothing(client: Any, runs: Path) -> None:
    session = begun(client, "abx", "ears")
    place = f"/listen/sessions/{session}/pages/0"
    page = client.get("/listen/abx?PROLIFIC_PID=ears&page=0", headers={"Accept-Language": "zh"}).text
    assert "耳机" in page
    assert page.count("哪一个音最轻？") == 6
    sounds = [client.get(f"{place}/audio/{letter}") for letter in "ABCDEF"]
    assert {(s.status_code, s.headers["content-type"], len(s.content)) for s in sounds} == {
        (200, "audio/wav", len(sounds[0].content))
    }
    assert len({tuple(sorted(s.headers.items())) for s in sounds}) == 1
    part = client.get(f"{place}/audio/B", headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, sounds[1].content[100:200])
    assert client.get(f"{place}/audio/B", headers={"Range": "bytes=99999999-"}).status_code == 416
    assert client.get(f"{place}/peaks/A").text.endswith('<path d=""/></svg>')
    assert client.get(f"{place}/audio/G").status_code == 422


def test_the_way_back_to_the_panel_comes_with_the_code_and_is_the_designs_alone(client: Any, runs: Path) -> None:
    sent = {"prolific": "good", "consent": True}
    session = client.post("/listen/abx/sessions?cc=EVIL&return_to=https://evil.example", json=sent, headers=SENT)
    session = session.json()["session"]
    stands = answer_check(client, runs, session, 6)
    assert (stands["code"], stands["back"], stands["next"]) == (None, None, 1)
    page = {"answer": {"abx": 1}, "heard": dict.fromkeys("ABX", 1.0), "seconds": 5}
    shown = client.get("/listen/abx?PROLIFIC_PID=good").text
    assert re.findall(r'<article[^>]* data-key="(\w+)"', shown) == ["A", "B", "X"]
    assert "X is A" in shown
    assert client.get(f"/listen/sessions/{session}/pages/1/peaks/X").text.endswith('<path d=""/></svg>')
    stands = client.post(f"/listen/sessions/{session}/pages/1", json=page, headers=SENT).json()
    assert (stands["code"], stands["back"]) == (None, None)
    done = client.post(f"/listen/sessions/{session}/finish", json={}, headers=SENT).json()
    address = "https://app.prolific.com/submissions/complete?cc=C1A2B3C4"
    assert (done["code"], done["back"]) == ("C1A2B3C4", {"address": address, "seconds": 5})
    poor = answer_check(client, runs, begun(client, "abx", "poor"), 4)
    assert (poor["code"], poor["back"]["address"]) == ("C9Z8Y7X6", address.replace("C1A2B3C4", "C9Z8Y7X6"))
    assert len(poor["saved"]) < poor["pages"]


def test_results_are_for_operators_and_a_closed_board_takes_nothing(client: Any, runs: Path) -> None:
    for address in ("/listening", "/listening/mushra", "/listening/mushra/marks.csv", "/listening/mushra/results.csv"):
        assert client.get(address).status_code == 401
    for address in ("/listening/mushra/close", "/listening/mushra/standing"):
        sent = {"listener": "x", "counted": False, "reason": "y"} if address.endswith("standing") else {}
        assert client.post(address, json=sent, headers=SENT).status_code == 401
    shut = visitor(runs, closed="nobody is known here")
    refused = shut.post("/listen/mos/sessions", json={"pid": "late", "consent": True}, headers=SENT)
    assert (refused.status_code, refused.json()["error"]) == (503, "nobody is known here")
    assert "nobody is known here" in shut.get("/listen/mos?pid=late").text


def test_the_last_page_asks_about_the_listener_without_a_sound(client: Any, runs: Path) -> None:
    with Database(runs / "podeval.db") as database:
        service = Listening(database)
        content = service.design("mos").model_dump(mode="json")
        age = {"name": "age", "text": "How old are you?", "labels": ["under 40", "40 or more"]}
        service.create(read_design(content | {"id": "asked", "demographics": [age]}))
    started = client.post("/listen/asked/sessions", json={"pid": "z", "consent": True}, headers=SENT).json()
    place = f"/listen/sessions/{started['session']}/pages/{started['pages'] - 1}"
    address = f"/listen/asked?pid=z&page={started['pages'] - 1}"
    page = client.get(address).text
    assert "About you" in page
    assert "<article" not in page
    assert re.findall(r"<span>\d · (.*?)</span>", page) == ["under 40", "40 or more"]
    assert client.post(place, json={"answer": {"age": 3}}, headers=SENT).status_code == 422
    assert client.post(place, json={"answer": {"age": {"mark": 2}}, "seconds": 4}, headers=SENT).status_code == 200
    assert '"age": {"mark": 2' in client.get(address).text, "what was saved comes back with the page"
    assert "关于您" in client.get(f"{address}&lang=zh").text


def test_the_server_shows_a_listener_where_they_stand(client: Any) -> None:
    def view(address: str) -> str:
        return re.findall(r'data-state="(\w+)"', client.get(address).text)[0]

    link = "/listen/text_preference?pid=stands"
    assert view(link) == "consent"
    sent = {"pid": "stands", "consent": True}
    session = client.post("/listen/text_preference/sessions", json=sent, headers=SENT).json()["session"]
    assert view(link) == "intro"
    assert view(f"{link}&page=0") == view(f"{link}&page=99") == "page"
    for number in (0, 1):
        place = f"/listen/sessions/{session}/pages/{number}"
        assert client.post(place, json={"answer": {"preference": 0}, "seconds": 3}, headers=SENT).status_code == 200
        assert view(link) == ("complete" if number else "page")
    code = client.post(f"/listen/sessions/{session}/finish", json={}, headers=SENT).json()["code"]
    assert f'<output id="code">{code}</output>' in client.get(f"{link}&page=0").text, (
        "what is over is not answered again"
    )
    assert client.get("/listen/mos?pid=%7B%7Bunfilled%7D%7D").status_code == 422
