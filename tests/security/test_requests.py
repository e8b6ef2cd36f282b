"""What strangers send to the site: files they may not have, other sites' pages, false names, too much, too slowly."""

import inspect
import re
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.fakes.loopback_server import serve_app

pytestmark = pytest.mark.space
OURS = {"x-podeval": "1"}


@pytest.fixture(scope="module")
def stranger(public_site: Any) -> Iterator[TestClient]:
    with TestClient(public_site, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def local_site(board_app: ModuleType, folder_of_runs: Path) -> Any:
    return board_app.build(folder_of_runs, "127.0.0.1")


def from_here(site: Any, address: str = "127.0.0.1") -> TestClient:
    """A browser of the machine that serves a local board."""
    return TestClient(site, client=(address, 50_000), base_url="http://localhost:7860", raise_server_exceptions=False)


def test_the_database_and_its_secret_lie_beside_the_runs_and_are_not_served(
    stranger: TestClient, folder_of_runs: Path
) -> None:
    private = [path for path in folder_of_runs.iterdir() if path.name.startswith("podeval.db")]
    assert {path.suffix for path in private} >= {".db", ".secret"}
    for path in (*private, folder_of_runs / "items.parquet", Path("/etc/passwd"), Path(__file__)):
        for form in ("file=", "file/", "file%3D", "file=/x/../.."):
            for prefix in ("/gradio_api", "", "/gradio_api/gradio_api"):
                answer = stranger.get(f"{prefix}/{form}{path}")
                assert answer.status_code in (403, 404), (form, path)
                assert b"SQLite" not in answer.content


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/try/gradio_api/process_recording",
            "/upload",
            "/gradio_api/component_server",
            "/gradio_api/process_recording",
        ),
        *("/login", "/gradio_api/vibe-edit", "/gradio_api/run-history/connect", "/anything"),
    ],
)
def test_the_board_takes_in_nothing(stranger: TestClient, path: str) -> None:
    answer = stranger.post(path, files={"files": ("x.html", b"<script>")})
    assert answer.status_code == 403
    assert "nothing can be sent to this address" in answer.json()["error"]


def test_gradio_is_sent_data_as_json_alone_and_no_file_where_nothing_is_measured(stranger: TestClient) -> None:
    file = {"files": ("x.html", b"<script>")}
    upload = stranger.post("/gradio_api/upload", files=file)
    assert (upload.status_code, upload.json()["error"]) == (403, "this board does not measure for visitors")
    assert stranger.post("/gradio_api/call/x", files=file).status_code == 415


@pytest.mark.parametrize(
    "path",
    [
        *("/gradio_api/proxy=http://169.254.169.254/latest/meta-data/", "/proxy=http://127.0.0.1:5432/"),
        *("/gradio_api/deep_link?session_hash=x", "/monitoring", "/profiling/traces", "/gradio_api/vibe-code"),
        *("/gradio_api/file=http://169.254.169.254/latest/meta-data/", "/dev/reload", "/run-history/records"),
    ],
)
def test_the_board_fetches_nothing_for_anybody_and_shows_no_inner_works(stranger: TestClient, path: str) -> None:
    assert stranger.get(path).status_code in (403, 404)


@pytest.mark.parametrize("path", ["/arena/votes", "/submit", "/listen/x/sessions", "/gradio_api/queue/join", "/"])
def test_no_other_site_is_told_that_it_may_send_or_read(stranger: TestClient, path: str) -> None:
    """The question a browser asks before it sends our header for another site's page."""
    origin = {"origin": "https://evil.example"}
    requests = {"access-control-request-method": "POST", "access-control-request-headers": "x-podeval,content-type"}
    before = stranger.options(path, headers=origin | requests)
    assert before.status_code == 405
    read = stranger.get(path, headers=origin)
    for answer in (before, read):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_request_that_a_browser_says_is_another_sites_is_refused(stranger: TestClient) -> None:
    for path in ("/arena/votes", "/submit", "/gradio_api/queue/join"):
        answer = stranger.post(path, json={}, headers=OURS | {"sec-fetch-site": "cross-site"})
        assert answer.status_code == 403, path
    assert stranger.post("/submit", json={}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7860", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_a_foreign_name_for_this_machine_reaches_no_board_of_its_one_person(local_site: Any, host: str) -> None:
    """DNS rebinding: a page of elsewhere whose name was turned to 127.0.0.1 is of the same origin as the board."""
    client = from_here(local_site)
    for path in ("/", "/queue", "/config"):
        assert client.get(path, headers={"host": host}).status_code in (400, 421)
    assert client.post("/submit", json={}, headers=OURS | {"host": host}).status_code in (400, 421)
    assert "localhost" in client.get("/queue", headers={"host": "evil.example"}).json()["error"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:7860", "[::1]:7860", "localhost:80"])
def test_this_machines_own_names_do(local_site: Any, host: str) -> None:
    assert from_here(local_site).get("/queue", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "header", ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-host", "x-forwarded-proto", "via", "cf-ray"]
)
def test_a_proxy_before_a_board_of_one_person_is_noticed(local_site: Any, header: str) -> None:
    """Else everybody behind the proxy would be its operator."""
    answer = from_here(local_site).get("/queue", headers={header: "203.0.113.7"})
    assert answer.status_code == 421
    assert "proxy" in answer.json()["error"]


def test_a_proxy_that_adds_nothing_is_noticed_by_what_browsers_say_of_their_page(local_site: Any) -> None:
    client = from_here(local_site)
    for says in ({"origin": "https://board.example"}, {"referer": "http://board.example/queue"}):
        answer = client.post("/admin/frozen", json={"what": "votes", "frozen": True}, headers=OURS | says)
        assert answer.status_code == 421, says
        assert client.get("/queue", headers=says).status_code == 421
    link = {"referer": "https://github.com/", "sec-fetch-site": "cross-site"}
    assert client.get("/queue", headers=link).status_code == 200, "somebody's link to this machine's own board"
    page_headers = {
        "referer": "http://localhost:7860/",
        "origin": "http://127.0.0.1:7860",
        "sec-fetch-site": "same-origin",
    }
    assert client.get("/queue", headers=page_headers).status_code == 200


def test_no_other_site_shows_our_pages_within_its_own(stranger: TestClient, local_site: Any) -> None:
    for page in (stranger.get("/queue"), from_here(local_site).get("/admin"), stranger.get("/")):
        assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
        assert "hf.space" not in page.headers["content-security-policy"]


def test_strangers_are_not_told_where_things_lie(
    board_app: ModuleType, folder_of_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder_of_runs, tmp_path / "runs")
    monkeypatch.setenv("OAUTH_CLIENT_ID", "podeval")
    monkeypatch.setenv("OAUTH_CLIENT_SECRET", "very-secret")
    client = TestClient(board_app.build(tmp_path / "runs", "0.0.0.0"), raise_server_exceptions=False)
    assert str(tmp_path) not in client.get("/").text
    (tmp_path / "runs" / "board.parquet").write_bytes(b"no table")
    for path in ("/board.json", "/api/v1/board", "/method"):
        answer = client.get(path)
        assert answer.status_code in (422, 503), path
        assert str(tmp_path) not in answer.text, path
    monkeypatch.delenv("OAUTH_CLIENT_ID")
    assert str(tmp_path) in from_here(board_app.build(tmp_path / "runs")).get("/board.json").text, "the operator is"


UNPACED = {
    "/health": "watchers ask while the site is full too",
    "/favicon.ico": "a file",
    "/parts.css": "put together once",
    "/api/openapi.json": "put together once",
    "/cards": "leads elsewhere",
    "/report/{name:path}": "leads elsewhere",
    "/sign-out": "forgets a cookie",
}
"""Addresses that may be asked as often as somebody likes, with the reason."""
PACE = re.compile(r"\blimit\(|\brequire_operator\b|\b(OperatorName|OperatorsTest|Operator)\b")


def test_whatever_a_stranger_asks_for_has_a_pace(public_site: Any) -> None:
    """Routes as the site lists them, so that one of tomorrow is looked at too; those of Gradio are behind its gate."""
    from tests.space.test_gradio_files import every_route

    routes = [route for route in every_route(public_site) if hasattr(route, "endpoint")]
    assert len(routes) > 60
    unpaced = {one.path for one in routes if not PACE.search(inspect.getsource(inspect.unwrap(one.endpoint)))}
    assert unpaced == set(UNPACED)


def test_nobody_has_the_site_ask_who_signs_people_in_without_end(
    public_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auth.RATE", "3/minute")
    with TestClient(public_site, client=("198.51.100.10", 1), raise_server_exceptions=False) as client:
        for path in ("/sign-in", "/sign-in/done?code=x&state=y"):
            answers = [client.get(path, follow_redirects=False).status_code for _ in range(5)]
            assert answers[3:] == [429, 429], path
            assert 429 not in answers[:3], path


def test_who_signs_people_in_may_be_away(stranger: TestClient) -> None:
    answer = stranger.get("/sign-in", follow_redirects=False)
    assert (answer.status_code, answer.json()["reason"]) == (503, "sign-in")
    assert "Nobody can sign in at present" in answer.json()["error"]


def test_a_name_of_ones_own_can_be_allowed(
    board_app: ModuleType, folder_of_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_HOSTS", "desk.example, other.example")
    client = from_here(board_app.build(folder_of_runs, "127.0.0.1"))
    assert client.get("/queue", headers={"host": "desk.example", "x-forwarded-for": "10.0.0.1"}).status_code == 200
    assert client.get("/queue", headers={"host": "evil.example"}).status_code == 421


def test_the_name_in_a_request_does_not_lead_around_the_rules(stranger: TestClient) -> None:
    for host in ("evil.example/own?", "x/..", "a@b", "x#", "x?y"):
        answer = stranger.post("/arena/votes", json={}, headers={"host": host})
        assert answer.status_code in (400, 403), host


@pytest.mark.parametrize("path", ["/arena/votes", "/submit/check"])
def test_a_body_too_large_or_of_untold_length_is_not_read(stranger: TestClient, path: str) -> None:
    def endless() -> Iterator[bytes]:
        yield from (b"x" * 65_536 for _ in range(1_000))

    assert stranger.post(path, content=b"x" * (5 * 2**20), headers=OURS).status_code == 413
    assert stranger.post(path, content=endless(), headers=OURS).status_code == 413
    for length in (b"-1", b"1e3", "٣".encode(), b"9" * 5_000):
        message = {**OURS, b"content-length": length}
        assert stranger.post(path, content=b"x", headers=message).status_code in (400, 413)


def test_methods_that_nothing_here_understands_are_refused(stranger: TestClient) -> None:
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND"):
        assert stranger.request(method, "/arena/votes", headers=OURS).status_code == 405


def test_who_asks_for_another_thing_each_time_asks_as_often(stranger: TestClient) -> None:
    late = [stranger.get(f"/audio/{number:032x}/peaks").status_code for number in range(70)]
    assert late[0] == 403  # a name that was not given out
    assert late[-1] == 429


def test_a_sender_cannot_choose_its_address_and_one_customer_is_one_sender(board_app: ModuleType) -> None:
    from request_guard import find_address_block, read_forwarded_for
    from starlette.datastructures import Headers

    def chain(*lines: str) -> Headers:
        return Headers(raw=[(b"x-forwarded-for", line.encode()) for line in lines])

    assert read_forwarded_for(chain("1.1.1.1, 203.0.113.7"), "1") == "203.0.113.7"
    # A proxy may add a line of its own below the one its sender made up.
    assert read_forwarded_for(chain("1.1.1.1", "203.0.113.7"), "yes") == "203.0.113.7"
    assert read_forwarded_for(chain("1.1.1.1, 203.0.113.7, 10.0.0.2"), "2") == "203.0.113.7"
    assert read_forwarded_for(chain("1.1.1.1"), "2") == ""
    assert find_address_block("2001:db8:1:2:3:4:5:6") == find_address_block("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert find_address_block("::ffff:203.0.113.7") == "203.0.113.7"
    assert len(find_address_block("x" * 10_000)) == 64


def test_what_a_proxy_is_said_to_have_said_counts_only_where_one_is_trusted(
    public_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tries(**trusted: str) -> list[int]:
        for name, value in trusted.items():
            monkeypatch.setenv(name, value)
        with TestClient(public_site, client=("198.51.100.9", 1), raise_server_exceptions=False) as client:
            return [
                client.get("/arena/ratings.csv", headers={"x-forwarded-for": f"203.0.113.{n}"}).status_code
                for n in range(70)
            ]

    assert tries()[-1] == 429
    assert 429 not in tries(PODEVAL_TRUSTED_PROXY="1")


@pytest.fixture(scope="module")
def slow_server(board_app: ModuleType) -> Iterator[tuple[str, int]]:
    """The real server with small patience, before an application that answers what it read."""
    import server

    async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    from request_guard import Guard

    patch = pytest.MonkeyPatch()
    patch.setattr("server.HEAD_SECONDS", 0.3)
    patch.setattr("request_guard.BODY_SECONDS", 0.3)
    with serve_app(server.build_configuration(Guard(echo, ("/",)), "127.0.0.1", 0)) as address:
        yield "127.0.0.1", int(address.rpartition(":")[2])
    patch.undo()


def until_closed(sent: socket.socket, drip: bytes = b"", seconds: float = 60.0) -> tuple[bytes, float]:
    """What comes back until the other side hangs up, while a byte is sent every tenth of a second; and when."""
    began, got = time.monotonic(), b""
    sent.settimeout(0.1)
    while time.monotonic() - began < seconds:
        try:
            if drip:
                sent.sendall(drip)
            got += (part := sent.recv(65_536))
            if not part:
                return got, time.monotonic() - began
        except TimeoutError:
            continue
        except OSError:
            return got, time.monotonic() - began
    raise AssertionError("the connection was held open")


def test_a_head_sent_byte_by_byte_does_not_hold_a_connection(slow_server: tuple[str, int]) -> None:
    with socket.create_connection(slow_server) as sent:
        sent.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert until_closed(sent, b"a")[1] < 30
    with socket.create_connection(slow_server) as silent:
        assert until_closed(silent)[1] < 30


def test_the_second_head_of_a_connection_is_waited_for_no_longer(slow_server: tuple[str, int]) -> None:
    with socket.create_connection(slow_server) as sent:
        sent.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.1)
        sent.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        answer, seconds = until_closed(sent, b"a")
    assert answer.startswith(b"HTTP/1.1 200")
    assert seconds < 30


def test_a_body_sent_byte_by_byte_ends(slow_server: tuple[str, int]) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nX-Podeval: 1\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n"
    with socket.create_connection(slow_server) as sent:
        sent.sendall(head)
        assert until_closed(sent, b"a")[1] < 30


def test_a_length_and_chunks_together_are_refused_before_the_body_is_read(slow_server: tuple[str, int]) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nX-Podeval: 1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(slow_server) as sent:
        sent.sendall(head + b"10000000\r\n")
        sent.settimeout(60)
        assert sent.recv(65_536).split(b" ", 2)[1] in (b"400", b"413")


def test_a_head_larger_than_any_browser_sends_is_refused(slow_server: tuple[str, int]) -> None:
    with socket.create_connection(slow_server) as sent:
        sent.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Large: " + b"a" * 60_000)
        sent.settimeout(60)
        assert sent.recv(65_536).split(b" ", 2)[1] == b"400"


def test_a_session_begins_anew_at_sign_in_and_its_cookie_is_not_for_scripts(
    board_app: ModuleType, folder_of_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Session fixation: what a stranger put into the cookie before is gone afterwards."""
    from tests.fakes.loopback_provider import LoopbackProvider

    shutil.copytree(folder_of_runs, tmp_path / "runs")
    with LoopbackProvider() as provider:
        monkeypatch.setenv("OAUTH_CLIENT_ID", "podeval")
        monkeypatch.setenv("OAUTH_CLIENT_SECRET", "very-secret")
        monkeypatch.setenv("OPENID_PROVIDER_URL", provider.url)
        monkeypatch.setenv("PODEVAL_URL", "https://board.example")
        with TestClient(board_app.build(tmp_path / "runs", "0.0.0.0"), base_url="https://board.example") as client:
            import httpx

            elsewhere = client.get("/sign-in", follow_redirects=False, headers={"host": "evil.example"})
            assert elsewhere.status_code == 421
            out = client.get("/sign-in?next=/arena", follow_redirects=False)
            assert "redirect_uri=https%3A%2F%2Fboard.example%2Fsign-in%2Fdone" in out.headers["location"]
            before = client.cookies["podeval"]
            back = httpx.get(out.headers["location"], follow_redirects=False).headers["location"]
            done = client.get(back, follow_redirects=False)
            cookie = done.headers["set-cookie"].lower()
            assert client.cookies["podeval"] != before
            assert "httponly" in cookie
            assert "secure" in cookie
            # The state was used up: the same answer of the provider signs nobody in again.
            again = client.get(back, follow_redirects=False)
            assert again.headers["location"] == "/?signed-in=no"


@pytest.mark.parametrize(
    "target", ["/\t/evil.example", "/\r/evil.example", "/\x00", "/\u2028/evil.example", "//e", "x"]
)
def test_addresses_that_browsers_read_otherwise_are_not_gone_to_after_signing_in(
    board_app: ModuleType, target: str
) -> None:
    from auth import _own_path

    assert _own_path(target) == "/"


def test_what_begins_like_the_address_of_programs_is_none_of_theirs() -> None:
    from request_guard import Guard
    from starlette.responses import PlainTextResponse
    from starlette.testclient import TestClient

    client = TestClient(Guard(PlainTextResponse("taken")))
    for method in ("POST", "DELETE"):
        assert client.request(method, "/mcp", json={}).text == "taken"
        assert client.request(method, "/mcp/below", json={}).text == "taken"
        assert client.request(method, "/mcpanything", json={}).status_code in (403, 405)


def test_names_that_anybody_can_take_make_no_operator() -> None:
    from auth import SESSION, SignIn
    from starlette.requests import Request

    def person(admins: str, identity: str) -> bool:
        how = SignIn("oidc", admins=frozenset({admins}))
        session = {"identity": identity, "name": "root"}
        result = how.person(Request({"type": "http", "session": {SESSION: session}}))
        assert result
        return result.admin

    assert person("https://login.example:1", "https://login.example:1")
    assert not person("https://login.example:1", "https://login.example:2")
    assert person("root", "hf:1"), "the Hub gives a name to one person"
    assert person("hf:1", "hf:1")
    assert not person("root", "https://login.example:1"), "elsewhere anybody may take it"
