"""No file of the machine leaves through Gradio, and nothing that is an address is fetched, whatever endpoint is asked.

The endpoints are found by asking the app, so that one that is added tomorrow is tried without anybody thinking of it.
Every open and every connection of the process is watched by an audit hook, which also ends it: `/dev/zero` has no end.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from starlette.routing import Mount
from starlette.testclient import TestClient

gr = pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

HOST = "files.example.org"
MARK = {"_type": "gradio.FileData"}


class Watch:
    """What the process tried to open and to reach while it was watched."""

    def __init__(self) -> None:
        self.active = False
        self.places: set[str] = set()
        self.events: list[str] = []
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open" and str(arguments[0]) in self.places:
            self._end(f"open {arguments[0]}")
        if event == "socket.getaddrinfo" or (event == "socket.connect" and isinstance(arguments[1], tuple)):
            self._end(f"{event} {arguments[:2]}")

    def _end(self, event: str) -> None:
        self.events.append(event)
        raise PermissionError(event)


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


MODES = ["measures", "shows only"]


@pytest.fixture(scope="module", params=["1", pytest.param("0", marks=pytest.mark.long)], ids=MODES)
def site(
    request: pytest.FixtureRequest, board_app: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    runs = tmp_path_factory.mktemp("walls") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PODEVAL_TRY", request.param)
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("uploads")))
        site = board_app.build(runs)
        assert (runs / "podeval.db").is_file()
        site.state.secrets = ("/etc/passwd", "/proc/self/environ", "/dev/zero", str(runs / "podeval.db"))
        yield site


def every_route(app: Any) -> Iterator[Any]:
    """The routes of an app, those of routers within it too."""
    for route in app.routes:
        router = getattr(route, "original_router", None)
        if router is None:
            yield route
        else:
            yield from every_route(router)


def apps(site: Any) -> dict[str, Any]:
    """The Gradio apps of a site by what their addresses begin with; each stands behind the gate."""
    from gradio_addresses import PREFIXES
    from gradio_routes import GradioGate

    mounted = [route.app for route in every_route(site) if isinstance(route, Mount)]
    assert not [app for app in mounted if isinstance(app, gr.routes.App)], "a Gradio app is mounted without its gate"
    (gate,) = (app for app in mounted if isinstance(app, GradioGate))
    return {prefix: gate.apps[language] for language, prefix in PREFIXES.items()}


def forms(path: str) -> list[Any]:
    """A file as data may name it: as Gradio's client does, without its mark, nested, as text, by its address."""
    plain = {"path": path, "url": None, "orig_name": "a.wav", "meta": MARK}
    return [
        plain,
        {**plain, "is_stream": True},
        {"path": path},
        [plain],
        {"value": plain, "video": plain},
        {**plain, "path": "a.wav", "url": path},
        {**plain, "path": f"file://{path}"},
        {**plain, "path": f"/own/../{path}"},
        path,
    ]


def calls(blocks: Any, probe: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to every function, with a probe in each place that it takes data in."""
    for number, function in blocks.fns.items():
        # Fields of a form are alike: the first and the last stand for all.
        for place in sorted({0, 1, 2, len(function.inputs) - 1} & set(range(max(1, len(function.inputs))))):
            data: list[Any] = [None] * max(1, len(function.inputs))
            data[place] = probe
            body = {"data": data, "fn_index": number, "session_hash": "a", "event_data": probe}
            yield "run/predict", body
            yield "queue/join", body
            if function.api_name:
                yield f"run/{function.api_name}", {"data": data, "session_hash": "a"}
                yield f"call/{function.api_name}", {"data": data}


def places(site: Any) -> list[str]:
    return [*site.state.secrets, f"http://{HOST}/a.wav", f"https://{HOST}/../../tmp/gradio/a.wav"]


def probed(blocks: Any, paths: list[str], whole: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every call with every form of every path if `whole`; else with one form of one path, by turns.

    The first two calls have every form of every path in both cases.
    """
    for turn, path in enumerate(paths):
        for form, probe in enumerate(probes := forms(path)):
            for number, call in enumerate(calls(blocks, probe)):
                if whole or number < 2 or (number % len(paths) == turn and number % len(probes) == form):
                    yield call


WHOLE = pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)], ids=["by turns", "whole"])


def uploads() -> list[Path]:
    return [path for path in Path(os.environ["GRADIO_TEMP_DIR"]).rglob("*") if path.is_file()]


@WHOLE
def test_no_endpoint_opens_a_file_that_was_not_uploaded_and_none_fetches(site: Any, watch: Watch, whole: bool) -> None:
    watch.places, watch.events[:] = set(site.state.secrets), []
    tried = 0
    with TestClient(site, base_url="http://localhost", client=("127.0.0.1", 50_000)) as client:
        watch.active = True
        try:
            for prefix, app in apps(site).items():
                for name, body in probed(app.get_blocks(), places(site), whole):
                    answer = client.post(f"{prefix}/gradio_api/{name}", json=body)
                    names_a_file = "path" in json.dumps(body)
                    assert answer.status_code >= 400 or not names_a_file, (name, body)
                    tried += 1
        finally:
            watch.active = False
    assert tried > 100
    assert watch.events == []
    assert uploads() == []


@pytest.mark.long
@WHOLE
@pytest.mark.parametrize("site", ["1", "0"], indirect=True, ids=MODES)
def test_gradios_own_check_holds_where_the_gate_is_not_asked(site: Any, watch: Watch, whole: bool) -> None:
    """The last wall by itself: what Gradio does with the same data when it arrives."""
    watch.places, watch.events[:] = set(site.state.secrets), []
    for app in apps(site).values():
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        watch.active = True
        try:
            for name, body in probed(app.get_blocks(), list(site.state.secrets), whole):
                if name.startswith("run/"):
                    client.post(f"/gradio_api/{name}", json=body)
        finally:
            watch.active = False
    assert watch.events == []
    assert uploads() == []


def sender(site: Any, address: str = "127.0.0.1") -> TestClient:
    return TestClient(site, base_url="http://localhost", client=(address, 50_000))


@pytest.mark.parametrize("site", ["1"], indirect=True)
def test_an_upload_can_be_named_and_read_by_who_sent_it_alone(site: Any) -> None:
    owner = sender(site)
    path = owner.post("/gradio_api/upload", files={"files": ("a b.svg", b"<svg onload='alert(1)'/>")}).json()[0]
    assert Path(path).is_file()
    read = owner.get(f"/gradio_api/file={path}")
    assert read.status_code == 200
    assert read.headers["content-disposition"].startswith("attachment")
    assert read.headers["content-security-policy"].startswith("default-src 'none'; sandbox")
    function = next(n for n, fn in apps(site)[""].get_blocks().fns.items() if len(fn.inputs) == 3)
    event = {"data": [{"path": path, "meta": MARK}, "", []], "fn_index": function, "session_hash": "a"}
    assert owner.post("/gradio_api/run/predict", json=event).status_code != 403
    stranger = sender(site, "127.0.0.2")
    assert stranger.get("/").cookies["podeval_files"] != owner.cookies["podeval_files"]
    for other in (stranger, sender(site, "127.0.0.3")):
        assert other.get(f"/gradio_api/file={path}").status_code == 403
        assert other.post("/gradio_api/run/predict", json=event).status_code == 403


@pytest.mark.parametrize("site", ["1"], indirect=True)
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"data": [], "fn_index": 0}', "text/plain", 415),
        (b'{"data": [', "application/json", 400),
        (b'{"data":' + b"[" * 100_000, "application/json", 400),
        (b'{"fn_index": 0, "data": [{"path": "/etc/passwd"}], "data": []}', "application/json", 400),
        (b'{"data": [], "data": [{"path": "/etc/passwd"}]}', "application/json", 403),
        ('{"data": [{"p\\u0061th": "/etc/passwd"}]}'.encode("utf-16"), "application/json; charset=utf-16", 403),
    ],
)
def test_a_body_is_read_once_and_handed_on_as_it_was_understood(
    site: Any, watch: Watch, body: bytes, kind: str, status: int
) -> None:
    watch.places, watch.events[:] = {"/etc/passwd"}, []
    # One that takes something, so that nothing at all is a wrong call.
    fns = apps(site)[""].get_blocks().fns
    body = body.replace(b'"fn_index": 0', b'"fn_index": %d' % next(n for n, fn in fns.items() if fn.inputs))
    watch.active = True
    try:
        answer = sender(site).post("/gradio_api/run/predict", content=body, headers={"content-type": kind})
    finally:
        watch.active = False
    assert answer.status_code == status
    assert watch.events == []


def route_patterns(app: Any) -> list[tuple[str, str]]:
    # The router within Gradio's app is included under a prefix, which its routes do not have themselves.
    prefixed = [
        ("" if route in app.routes else "/gradio_api", route) for route in every_route(app) if hasattr(route, "path")
    ]
    return [
        (method, route.path if route.path.startswith("/gradio_api") else prefix + route.path)
        for prefix, route in prefixed
        for method in sorted(getattr(route, "methods", None) or {"GET"})
    ]


@pytest.mark.parametrize("site", ["1"], indirect=True)
def test_only_named_routes_of_gradio_answer(site: Any) -> None:
    """Of all routes that this release of Gradio has, these answer; one that a later release adds is shut by itself."""
    app = apps(site)[""]
    client = TestClient(site, base_url="http://localhost", client=("127.0.0.1", 50_000), raise_server_exceptions=False)
    open_routes = set()
    number = next(number for number, fn in app.get_blocks().fns.items() if fn.api_name == "metrics")
    body = {"fn_index": number, "data": [], "session_hash": "a", "event_id": "a"}
    for method, pattern in route_patterns(app):
        names = {"{api_name}": "metrics"}
        path = "".join(names.get(part, "x") if part.startswith("{") else part for part in _split(pattern))
        if not _ends(path):
            open_routes.add((method, pattern))
            continue
        answer = client.request(method, path, json=body if method == "POST" else None)
        shut = ("this address cannot be read here", "nothing can be sent to this address", "PUT is not supported here")
        page = "text/html" in answer.headers.get("content-type", "")
        is_shut = answer.status_code in (403, 404, 405) and (method == "HEAD" or not page)
        if not is_shut or (answer.status_code == 403 and method != "HEAD" and answer.json().get("error") not in shut):
            open_routes.add((method, pattern))
    takes = sorted({pattern.rstrip("/") for method, pattern in open_routes if method == "POST"})
    api = "/gradio_api"
    assert takes == [
        f"{api}/call/{{api_name}}",
        f"{api}/cancel",
        f"{api}/queue/join",
        f"{api}/reset",
        f"{api}/run/{{api_name}}",
        f"{api}/upload",
    ]
    reads = {pattern for _, pattern in open_routes}
    for shut in ("proxy", "stream", "component_server", "monitoring", "login", "vibe", "run-history", "deep_link"):
        assert not [pattern for pattern in reads if shut in pattern and "login_check" not in pattern], shut


def _split(pattern: str) -> list[str]:
    import re

    return re.split(r"(\{[^}]*\})", pattern)


def _ends(path: str) -> bool:
    """Whether the answer comes at once: a heartbeat goes on."""
    return "/heartbeat/" not in path and "/queue/data" not in path


def test_a_path_is_forgotten_after_its_time_and_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    import gradio_addresses

    now = [0.0]
    issued = gradio_addresses.IssuedFiles(10, lambda: now[0])
    issued.issue("a", "/x")
    now[0] = 9
    assert issued.may_name(("b", "a"), "/x")
    assert not issued.may_name(("b",), "/x")
    now[0] = 11
    assert not issued.may_name(("a",), "/x")
    monkeypatch.setattr(gradio_addresses, "MOST_ISSUED", 2)
    issued = gradio_addresses.IssuedFiles(10, lambda: now[0])
    for name in ("1", "2", "3"):
        issued.issue("a", name)
    assert [issued.may_name(("a",), name) for name in ("1", "2", "3")] == [False, True, True]
