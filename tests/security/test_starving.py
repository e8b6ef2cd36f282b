"""What one anonymous visitor may take of a public board: measurements, sessions, streams, connections, bytes."""

import contextlib
import inspect
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from podeval.errors import BadInput
from tests.fakes.loopback_server import serve_app
from tests.fakes.waiting import wait_until
from tests.space.submit_fixture import Asking, tab_method, tone

pytestmark = pytest.mark.space
JSON = "application/json"
SCRIPT = "Mia: Hello there, all of you.\nJon: Hello."


@pytest.fixture
def site(board_app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A public board where visitors may measure, without anything else in it."""
    from measure_apart import MeasuringTurn

    for line in MeasuringTurn._lines.values():
        line.clear()  # A server that was stopped in the middle leaves its visitors in them.
    for name, value in {"OAUTH_CLIENT_ID": "podeval", "OAUTH_CLIENT_SECRET": "very-secret", "PODEVAL_TRY": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENID_PROVIDER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return board_app.build(tmp_path / "runs", "0.0.0.0")


def visitor(site: Any, address: str = "198.51.100.1") -> TestClient:
    return TestClient(site, client=(address, 50_000), raise_server_exceptions=False)


def server_of(site: Any) -> Any:
    """The site as it is served, which need not wait for streams when it ends."""
    import server

    configuration = server.build_configuration(site, "127.0.0.1", 0)
    configuration.timeout_graceful_shutdown = 1
    return configuration


def one_of(visitor: str, address: str) -> httpx.Client:
    """A visitor who comes from an address of this machine."""
    return httpx.Client(base_url=address, transport=httpx.HTTPTransport(local_address=visitor), timeout=60)


def functions(site: Any) -> Iterator[tuple[str, int, Any]]:
    """Every function that Gradio has, with what the addresses of its app begin with and its number."""
    from gradio_addresses import PREFIXES

    for language, prefix in PREFIXES.items():
        for number, function in site.state.gate.apps[language].get_blocks().fns.items():
            yield prefix, number, function


def number_of(site: Any, name: str) -> int:
    """The number of a function of the first app."""
    return next(n for prefix, n, fn in functions(site) if not prefix and fn.fn and fn.fn.__qualname__.endswith(name))


def test_nothing_that_waits_its_turn_is_called_past_the_queue(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr("gradio.blocks.Blocks.process_api", lambda *_, **__: ran.append("ran"))
    queued = [(prefix, number, fn) for prefix, number, fn in functions(site) if fn.queue and fn.fn]
    assert len(queued) >= 5
    for turn, (prefix, number, fn) in enumerate(queued):
        body = {"fn_index": number, "data": [None] * len(fn.inputs), "session_hash": "a"}
        for name in ("predict", fn.api_name or "x"):
            answer = visitor(site, f"198.51.100.{turn}").post(f"{prefix}/gradio_api/run/{name}", json=body)
            assert 400 <= answer.status_code < 500, (fn, name)
    assert ran == []


def test_every_way_in_asked_ten_times_with_long_names_keeps_nothing(site: Any) -> None:
    """Functions, routes and streams as the app lists them, so that one of tomorrow is tried too."""
    from gradio_addresses import PREFIXES

    from tests.space.test_gradio_files import apps, route_patterns

    asked = 0
    names = [f"q{turn:05}{'y' * 80}" for turn in range(10)]
    for turn, (prefix, number, fn) in enumerate(functions(site)):
        long = {"fn_index": number, "data": [None] * len(fn.inputs), "event_data": "x" * 1_000}
        huge = {"fn_index": number, "data": [["x" * 1_000] * 5] * 100, "session_hash": "a"}
        # All ten of one language: the other's are the same.
        bodies = [{**long, "session_hash": name} for name in (names[:2] if prefix else names)]
        client = visitor(site, f"198.51.100.{turn}")
        for body in [*bodies, huge]:
            answer = client.post(f"{prefix}/gradio_api/queue/join", json=body)
            assert 400 <= answer.status_code < 500, body
            assert len(answer.content) < 1_000
            asked += 1
    patterns = {path for _, path in route_patterns(apps(site)[""]) if "{session_hash}" in path or "{event_id}" in path}
    patterns |= {"/gradio_api/queue/data?session_hash={x}", "/gradio_api/upload_progress?upload_id={x}"}
    for pattern in patterns:
        for method in ("GET", "POST"):
            for name in names[:2]:
                path = "".join(name if part.startswith("{") else part for part in re.split(r"(\{[^}]*\})", pattern))
                assert 400 <= visitor(site).request(method, path).status_code < 500, path
    assert asked > 250
    for language in PREFIXES:
        blocks = site.state.gate.apps[language].get_blocks()
        assert (len(blocks.state_holder.session_data), len(blocks._queue.pending_messages_per_session)) == (0, 0)
        assert blocks._queue.event_ids_to_events == {}


def test_gradio_keeps_the_progress_of_few_uploads(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradio.routes import file_upload_statuses as progress

    monkeypatch.setattr("gradio_events.MOST_UPLOADS", 10)
    for number in range(300):
        progress.track(f"old{number}")
        progress._signals[f"unknown{number}"].clear()
    sender = visitor(site)
    for name in ("mine", "mine-too"):
        answer = sender.post(f"/gradio_api/upload?upload_id={name}", files={"files": ("a.wav", b"x" * 100)})
        assert answer.status_code == 200
    assert "mine-too" in progress._statuses
    assert len(progress._statuses) <= 10
    assert len(progress._signals) <= 10


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_sessions_of_many_addresses_are_few_and_each_small(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradio_events.MOST_SESSIONS", 5)
    body = {"fn_index": number_of(site, "RecordingPart.choose"), "data": ["own"]}
    blocks = site.state.gate.apps["en"].get_blocks()

    def ask(turns: range) -> None:
        for turn in turns:
            address = f"203.0.113.{turn % 200}"
            answer = visitor(site, address).post("/gradio_api/run/predict", json={**body, "session_hash": f"s{turn}"})
            assert answer.status_code == 200

    ask(range(blocks.state_holder.capacity))
    before = resident()
    ask(range(1_000, 1_150))
    assert len(blocks.state_holder.session_data) <= 101
    assert resident() - before < 20 * 2**20


def test_messages_of_who_waits_for_nothing_go_first_and_their_events_with_them() -> None:
    from types import SimpleNamespace

    from gradio_events import SessionMessages

    pending: dict[str, set[str]] = {"a": {"1"}, "b": {"2"}, "c": set()}
    queue = SimpleNamespace(pending_event_ids_session=pending, event_ids_to_events={"1": 1})
    messages = SessionMessages(queue, 2)
    for name in ("a", "b", "c"):
        messages[name] = name
    assert list(messages) == ["a", "c"], "a waits"
    assert set(pending) == {"a", "c"}


def test_one_address_asks_so_often_and_waits_in_few_places_and_others_are_not_kept_waiting(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr("tabs.score.score_script_apart", lambda *_: (held.wait(60), [])[1])
    body = {"fn_index": number_of(site, "ScriptPart.measure"), "data": [SCRIPT, ["mattr"]]}
    with serve_app(server_of(site)) as address:
        try:
            with one_of("127.0.0.2", address) as greedy, one_of("127.0.0.3", address) as other:
                joined = [
                    greedy.post("/gradio_api/queue/join", json={**body, "session_hash": f"s{turn}"}).status_code
                    for turn in range(9)
                ]
                assert joined == [200] * 3 + [429] * 6
                assert other.post("/gradio_api/queue/join", json={**body, "session_hash": "o"}).status_code == 200
                for turn in range(9):
                    with one_of(f"127.0.0.{turn // 3 + 4}", address) as each:
                        last = each.post("/gradio_api/queue/join", json={**body, "session_hash": f"e{turn}"})
                assert last.status_code == 503, "nine wait for this function"
                receive = {"fn_index": number_of(site, "RecordingsUpload.receive"), "data": [None, None]}
                sent = other.post("/gradio_api/queue/join", json={**receive, "session_hash": "r"})
                assert sent.status_code == 200, "recordings for a submission wait for none of them"
                quick = {"fn_index": number_of(site, "RecordingPart.choose"), "data": ["own"], "session_hash": "s"}
                rate = [greedy.post("/gradio_api/run/predict", json=quick).status_code for _ in range(130)]
                assert (rate[0], rate[-1]) == (200, 429)
                assert other.post("/gradio_api/run/predict", json=quick).status_code == 200
        finally:
            held.set()


def test_metrics_are_named_once_and_a_script_has_an_end(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import measure_apart
    from program_api import ProgramApi
    from tabs.score import check_names

    assert check_names(["mattr", "info_dens", "mattr"], "script") == ["mattr", "info_dens"]
    with pytest.raises(BadInput, match="60000 metrics are named"):
        check_names(["mattr", "info_dens", "distinct_n"] * 20_000, "script")
    monkeypatch.setattr(measure_apart, "SCRIPTS", replace(measure_apart.SCRIPTS, wall_seconds=0.2))
    with pytest.raises(BadInput, match=r"longer than 0\.2 s"):
        measure_apart.score_script_apart(SCRIPT, ["mattr"])
    api = next(fn.fn for _, _, fn in functions(site) if fn.api_name == "score")
    assert inspect.unwrap(api).__func__ is ProgramApi.score


def test_one_address_measures_so_often_an_hour_and_the_person_of_a_local_board_as_often_as_they_like(
    board_app: ModuleType, site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("website.MEASURING_RATE", "2/hour")
    monkeypatch.delenv("OAUTH_CLIENT_ID")
    local = board_app.build(tmp_path / "runs")
    for board, refused in ((site, [False, False, True]), (local, [False] * 3)):
        measure = tab_method(board, "ScriptPart.measure")
        monkeypatch.setattr("tabs.score.score_script_apart", lambda *_: [])
        asking = Asking("")
        asking.request.scope["session"] = {}
        ends = [list(measure.measure(asking, SCRIPT, ["mattr"]))[-1] for _ in range(3)]
        assert ["too many requests" in wrong for _, wrong, _ in ends] == refused


def open_stream(address: str, visitor: str, name: str) -> socket.socket:
    """A heartbeat that is read no further."""
    place = urlsplit(address)
    stream = socket.create_connection((place.hostname, place.port), 60, (visitor, 0))
    stream.sendall(f"GET /gradio_api/heartbeat/{name} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
    return stream


def test_one_address_holds_few_streams_and_few_connections_and_shuts_nobody_out(site: Any) -> None:
    with serve_app(server_of(site)) as address, ExitStack() as held:
        streams = [held.enter_context(open_stream(address, "127.0.0.2", f"x{turn}")) for turn in range(40)]
        heads = [stream.recv(12)[-3:] for stream in streams]
        assert heads == [b"200"] * 8 + [b"429"] * 32
        with one_of("127.0.0.2", address) as same, one_of("127.0.0.3", address) as other:
            assert other.get("/gradio_api/app_id").status_code == 200
            with other.stream("GET", "/gradio_api/heartbeat/other") as answer:
                assert answer.status_code == 200
            for turn in range(1_005):
                with contextlib.suppress(OSError):
                    held.enter_context(open_stream(address, "127.0.0.2", f"y{turn}"))
            assert [other.get(path).status_code for path in ("/health", "/arena/ratings", "/")] == [200] * 3
            assert same.get("/health").status_code == 200


def test_no_address_of_programs_is_a_stream_without_end(site: Any) -> None:
    listens = {"accept": "text/event-stream"}
    with (
        serve_app(server_of(site)) as address,
        one_of("127.0.0.2", address) as program,
        program.stream("GET", "/mcp", headers=listens) as answer,
    ):
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_whatever_gradio_computes_for_a_reader_is_read_so_often(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes as the app lists them, so that one of tomorrow is tried too."""
    from tests.space.test_gradio_files import apps, route_patterns

    monkeypatch.setattr("gradio_events.READ_RATE", "1/minute")
    monkeypatch.setattr("gradio_routes.PAGE_RATE", "1/minute")
    # Streams are counted; the icon is a file of ours.
    others = re.compile("heartbeat|queue/data|upload_progress|/call/|favicon")
    patterns = {path for method, path in route_patterns(apps(site)[""]) if method == "GET" and not others.search(path)}
    paced = set()
    for turn, path in enumerate(sorted(re.sub(r"\{[^}]*\}", "x", pattern) for pattern in patterns)):
        reader = visitor(site, f"203.0.113.{turn}")
        if reader.get(path).status_code == 200:
            assert reader.get(path).status_code == 429, path
            assert visitor(site, f"198.51.100.{turn}").get(path).status_code == 200
            paced.add(path)
    assert {"/config", "/gradio_api/info", "/gradio_api/openapi.json", "/gradio_api/queue/status"} <= paced
    reader = visitor(site)
    assert [reader.get("/static/img/logo_nosize.svg").status_code for _ in range(3)] == [200] * 3


def test_health_answers_while_all_connections_are_taken(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy, where all come from one address."""
    monkeypatch.setenv("PODEVAL_TRUSTED_PROXY", "1")
    with serve_app(server_of(site)) as address, ExitStack() as held:
        for turn in range(1_005):
            held.enter_context(open_stream(address, "127.0.0.1", f"x{turn}"))
        with one_of("127.0.0.1", address) as visitor:
            assert visitor.get("/queue").status_code == 503
            assert visitor.get("/health").status_code == 200


def test_a_stream_ends_once_its_time_is_over_and_nothing_of_it_waits(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradio_events.STREAM_SECONDS", 0.5)
    held = threading.Event()
    monkeypatch.setattr("tabs.score.score_script_apart", lambda *_: (held.wait(60), [])[1])
    body = {"fn_index": number_of(site, "ScriptPart.measure"), "data": [SCRIPT, ["mattr"]], "session_hash": "s"}
    with serve_app(server_of(site)) as address, one_of("127.0.0.2", address) as client:
        assert client.get("/gradio_api/heartbeat/idle").text.startswith("data: ALIVE"), "it ended by itself, whole"
        client.post("/gradio_api/queue/join", json=body)
        threading.Timer(3.0, held.set).start()
        assert "process_completed" in client.get("/gradio_api/queue/data?session_hash=s").text, "what waits is told"
        with client.stream("GET", "/gradio_api/heartbeat/again") as again:
            assert again.status_code == 200


def send_file(client: TestClient, size: int, name: str = "a.wav") -> httpx.Response:
    return client.post("/gradio_api/upload", files={"files": (name, os.urandom(size))})


def test_one_sender_has_a_share_and_who_submits_has_room_when_visitors_filled_theirs(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradio_addresses.MOST_EACH", 3_000)
    monkeypatch.setattr("gradio_addresses.MOST_HELD", 15_000)
    clients = [visitor(site, f"198.51.100.{turn}") for turn in range(8)]
    assert [send_file(clients[0], 1_000).status_code for _ in range(4)] == [200, 200, 503, 503]
    assert "the storage limit for one sender" in send_file(clients[0], 1_000).json()["error"]
    torn = clients[1].post("/gradio_api/upload", content=b"x" * 2_000, headers={"content-type": "multipart/form-data"})
    assert torn.status_code == 400
    assert send_file(clients[1], 1_000).status_code == 503, "what broke off counts while it lies there"
    taken = [send_file(client, 2_500).status_code for client in clients[2:]]
    assert taken == [200] * 4 + [503] * 2, "three quarters are for visitors"
    monkeypatch.setattr("gradio_routes.find_recordings_sender", lambda *_: "hf:ann")
    senders = next(each for each in site.user_middleware if "senders" in each.kwargs)
    senders.kwargs["senders"] = lambda request: "hf:ann"
    site.middleware_stack = site.build_middleware_stack()
    assert send_file(clients[7], 2_500, "a.zip").status_code == 200


def test_an_upload_is_one_file_and_one_sender_has_few(site: Any, tmp_path: Path) -> None:
    """A thousand empty files in one request held up everybody for seconds, and ten such had all others forgotten."""
    from gradio_addresses import MOST_FILES, IssuedFiles

    files = [("files", (f"{number}.wav", b"%d" % number)) for number in range(2)]
    assert visitor(site).post("/gradio_api/upload", files=files).status_code == 400
    assert visitor(site).post("/gradio_api/upload", files=files[:1]).status_code == 200
    issued = IssuedFiles()
    for number in range(MOST_FILES):
        assert issued.explain_full("one", 0, False) == ""
        issued.issue("one", str(tmp_path / str(number)), "one")
    assert "reached the storage limit for one sender" in issued.explain_full("one", 0, False)
    assert issued.explain_full("another", 0, False) == ""


def test_an_upload_goes_when_nothing_is_done_with_it_and_when_it_was_measured(tmp_path: Path) -> None:
    from gradio_addresses import IssuedFiles

    now = [0.0]
    files = IssuedFiles(clock=lambda: now[0])
    paths = [tmp_path / name for name in ("idle", "waits", "measured", "shared")]
    for path in paths:
        path.write_bytes(b"sound")
        files.issue("me", str(path), "203.0.113.1", 600)
    files.issue("you", str(paths[3]), "203.0.113.2", 3_600)
    files.keep(str(paths[1]))
    files.release(str(paths[2]))
    files.release(str(paths[3]))
    assert [path.exists() for path in paths] == [True, True, False, True]
    now[0] = 601
    files.sweep()
    assert [path.exists() for path in paths] == [False, True, False, True]
    assert files.may_name(["me"], str(paths[1]))
    assert not files.may_name(["me"], str(paths[3]))
    now[0] = 3_601
    files.sweep()
    assert not any(path.exists() for path in paths)


def test_an_upload_without_a_cookie_is_read_with_the_cookie_of_its_answer_alone(site: Any) -> None:
    owner, neighbour = visitor(site), visitor(site)
    path = send_file(owner, 10).json()[0]
    assert owner.get(f"/gradio_api/file={path}").status_code == 200
    assert neighbour.get(f"/gradio_api/file={path}").status_code == 403
    neighbour.get("/")
    assert neighbour.get(f"/gradio_api/file={path}").status_code == 403


def odd_values() -> list[Any]:
    """What no page sends."""
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    plain: list[Any] = [None, True, False, 0, -1, 1.5, 1e308, 2**70, "", "x", "\x00", "\ud800", "é" * 500, [], {}, deep]
    return [*plain, [None], [[]], {"a": 1}, {"__type__": "update"}, "x" * 5_000, ["x" * 5_000], {"value": ["x"] * 50}]


def test_odd_bodies_are_refused_in_a_short_sentence_and_a_short_line(
    site: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = [(n, fn) for prefix, n, fn in functions(site) if not prefix and fn.fn and not fn.queue]
    bodies = [{"fn_index": value, "data": []} for value in odd_values() if value is not None]
    bodies += [{"fn_index": numbers[0][0], "data": value} for value in odd_values()]
    bodies += [{"fn_index": numbers[0][0], "data": [], "session_hash": value} for value in odd_values() if value]
    bodies += [{"fn_index": numbers[0][0], "data": [], "trigger_id": value} for value in odd_values()]
    # Every value to every fifth function, and every function has some of them.
    bodies += [
        {"fn_index": number, "data": [value] * len(fn.inputs)}
        for turn, (number, fn) in enumerate(numbers)
        for value in odd_values()[turn % 5 :: 5]
    ]
    bodies += [value for value in odd_values() if value != {}]
    assert len(bodies) > 150
    for turn, body in enumerate(bodies):
        client = visitor(site, f"203.0.113.{turn % 250}")
        answer = client.post("/gradio_api/run/predict", content=json.dumps(body), headers={"content-type": JSON})
        assert answer.status_code < 500, (body, answer.text[:500])
        if answer.status_code >= 400:
            assert len(answer.text) < 1_500, body
    assert max((len(record.getMessage()) for record in caplog.records), default=0) < 400
    written = capfd.readouterr()
    assert "Traceback" not in written.err + written.out


SHAPES = {"nested": "[[[[[[[[]]]]]]]],", "objects": '{"a":[]},', "numbers": "1,", "names": '"a",'}


@pytest.mark.every(2)
@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_event_of_a_million_values_holds_up_nobody(site: Any, shape: str, coding: str) -> None:
    client, most = visitor(site), 2**19 if coding == "utf-16" else 2**20
    text = SHAPES[shape] * ((most - 1_000) // len(SHAPES[shape]))
    body = f'{{"fn_index": {number_of(site, "RecordingPart.choose")}, "data": ["\\"\\\\", {text} 0]}}'.encode(coding)
    client.get("/gradio_api/app_id")
    began = time.process_time()
    answer = client.post("/gradio_api/run/predict", content=body, headers={"content-type": JSON})
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "the request contains too many values; send at most 10,000",
    )
    assert time.process_time() - began < 0.4


def test_gradios_answers_say_nothing_of_who_else_may_read_them(site: Any) -> None:
    for path in ("/config", "/gradio_api/info"):
        local = TestClient(site, base_url="http://localhost", client=("198.51.100.1", 1))
        answer = local.get(path, headers={"origin": "http://localhost:1234"})
        assert answer.status_code == 200
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("name", ["x-forwarded-host", "x-gradio-server", "forwarded", "host"])
def test_a_page_is_where_the_site_is_whatever_a_request_says(
    site: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_URL", "https://board.example")
    if name == "host":
        assert visitor(site).get("/queue", headers={"host": "evil.example"}).status_code == 421
        assert visitor(site).get("/health", headers={"host": "evil.example"}).status_code == 200
        monkeypatch.delenv("PODEVAL_URL")
        for path in ("/", "/config", "/gradio_api/info", "/gradio_api/openapi.json", "/zh/gradio_api/info"):
            assert visitor(site).get(path, headers={"host": "evil.example"}).status_code == 200
            assert "evil.example" not in visitor(site).get(path).text, f"{path} keeps the name of its first reader"
    else:
        headers = {"host": "board.example", name: "evil.example"}
        page = visitor(site).get("/", headers=headers)
        assert page.status_code == 200
        assert "evil.example" not in page.text
        assert "https://board.example" in page.text
        assert page.headers["cache-control"] == "private, no-cache"
        assert "evil.example" not in visitor(site).get("/config", headers=headers).text


def test_a_truth_is_no_number_of_seconds() -> None:
    from pages.arena import BallotSent

    sent = {"id": "a", "token": "b", "outcome": "a", "played_a": [[0, 1.5]], "seconds_a": 1}
    assert BallotSent.model_validate(sent).played_a == [(0.0, 1.5)]
    for wrong in ({"seconds_a": True}, {"played_b": [[False, 2]]}, {"seconds_b": "1"}):
        with pytest.raises(ValueError, match=r"valid (number|float)"):
            BallotSent.model_validate(sent | wrong)


@pytest.mark.parametrize("leaves", ["hangs up", "cancels"])
def test_who_leaves_while_a_recording_is_measured_leaves_the_place_to_the_next(
    site: Any, monkeypatch: pytest.MonkeyPatch, leaves: str
) -> None:
    from podeval.measuring.isolated import ScoreSession

    goes_on = threading.Event()

    def score(*_: Any, **__: Any) -> Iterator[Any]:
        while not goes_on.wait(0.2):
            yield ScoreSession()
        yield ScoreSession(problem="here is the end")

    monkeypatch.setattr("tabs.score.score_apart", score)
    data = ["reader", None, "", 0, ["loudness"], False]
    body = {"fn_index": number_of(site, "RecordingPart.measure"), "data": data}
    with serve_app(server_of(site)) as address, one_of("127.0.0.2", address) as first:
        event = first.post("/gradio_api/queue/join", json={**body, "session_hash": "s"}).json()["event_id"]
        with first.stream("GET", "/gradio_api/queue/data?session_hash=s") as told:
            assert any("process_generating" in line for line in told.iter_lines())
            if leaves == "cancels":
                sent = {"session_hash": "s", "event_id": event, "fn_index": body["fn_index"]}
                assert first.post("/gradio_api/cancel", json=sent).status_code == 200
        goes_on.set()
        with one_of("127.0.0.3", address) as second:
            second.post("/gradio_api/queue/join", json={**body, "session_hash": "t"})
            assert "here is the end" in second.get("/gradio_api/queue/data?session_hash=t").text


def is_running(argument: str) -> bool:
    """Whether a process has this argument."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes())
    return any(argument.encode() in line.split(b"\0") for line in lines)


@pytest.mark.every(2)
@pytest.mark.parametrize("leaves", ["hangs up", "cancels", "never listens"])
@pytest.mark.parametrize("kind", ["script", "recording"])
def test_who_leaves_while_a_program_waits_for_values_leaves_the_place_to_the_next(
    site: Any, monkeypatch: pytest.MonkeyPatch, leaves: str, kind: str
) -> None:
    import gradio_events
    from measure_apart import MeasuringTurn

    command = [sys.executable, "-c", f"import time; time.sleep(100)  # {leaves} {kind} {os.getpid()}"]
    monkeypatch.setattr("podeval.sandbox.build_python_command", lambda *_: command)
    line = MeasuringTurn(kind)._line
    with serve_app(server_of(site)) as address, one_of("127.0.0.2", address) as program:
        data: list[Any] = [None, SCRIPT, ["mattr"]]
        if kind == "recording":
            sent = program.post("/gradio_api/upload", files={"files": ("tone.wav", tone(1))}).json()[0]
            data = [{"path": sent, "meta": {"_type": "gradio.FileData"}}, "", ["loudness"]]
        event = program.post("/gradio_api/call/score", json={"data": data}).json()["event_id"]
        if leaves == "never listens":
            wait_until(lambda: line)
            monkeypatch.setattr(gradio_events, "UNHEARD_SECONDS", 1.0)
        else:
            with program.stream("GET", f"/gradio_api/call/score/{event}"):
                monkeypatch.setattr(gradio_events, "UNHEARD_SECONDS", 0.0)
                wait_until(lambda: line)
                time.sleep(0.5)
                assert line, "it goes on while somebody listens"
                if leaves == "cancels":
                    named = {"session_hash": event, "event_id": event, "fn_index": number_of(site, "ProgramApi.score")}
                    assert program.post("/gradio_api/cancel", json=named).status_code == 200
                    wait_until(lambda: not line)
        wait_until(lambda: not line)
        wait_until(lambda: not is_running(command[-1]))
