"""Submitting through the site: what the gate says, what becomes of it, and who may do what; with the real client."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import socket
import sys
import threading
import time
import wave
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "space"))

from accessibility import looks, picture, serious, violations
from arena_fixture import SYSTEMS, fill, quick
from fastapi.testclient import TestClient

from podeval import benchmarks
from podeval.arena import Arena, ArenaSettings
from podeval.leaderboard.build import build
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.metrics import catalogue
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.store.database import Database
from podeval.submissions import sandbox
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.queue import Queue
from podeval.submissions.worker import Worker
from podeval.text.redaction import redact

pytestmark = pytest.mark.space

SPACE = Path(__file__).parents[2] / "space"
PART = {"x-podeval-part": "1"}
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>{{7*7}}"
CARD = b"---\nlicense: cc0-1.0\n---\n# Tones\n" + b"Ten tones of half a second each, made for a test by nobody. " * 5


def _fixtures() -> ModuleType:
    """What the tests of submissions make their repos and documents with."""
    place = Path(__file__).parents[1] / "submissions/conftest.py"
    spec = importlib.util.spec_from_file_location("fixtures_of_submissions", place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FIXTURES = _fixtures()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark `ten`."""
    module: ModuleType = FIXTURES.beside("tiny_worker")
    monkeypatch.setattr(catalogue, "NAMES", (*catalogue.NAMES, "tally"))
    monkeypatch.setitem(benchmarks.find_all(), "ten", module.BENCHMARK)
    return module


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "podeval.db") as opened:
        yield opened


People = Callable[..., TestClient]
Build = Callable[..., Any]


@pytest.fixture
def site_of(hub_client: Any, database: Database, tmp_path: Path) -> Build:
    """The site's pages of submissions; people are who a header or `everybody` says they are."""
    import gradio_app
    import site_app
    import website
    from auth import Person, SignIn
    from fastapi import FastAPI, Response
    from fastapi.staticfiles import StaticFiles
    from pages import arena as arena_page
    from pages import board as board_page
    from pages import submit as page
    from part_routes import parts_style
    from services import Services, open_desk

    def build_app(
        closed: str | None = None, everybody: str = "", tabs: bool = False, arena: Arena | None = None
    ) -> Any:
        class ByHeader(SignIn):
            def person(self, request: Any) -> Person | None:
                name = request.headers.get("x-person") or everybody
                return Person(f"hf:{name}", name, name == "root") if name else None

        desk = open_desk(database, tmp_path / "board", closed)
        services = Services(tmp_path / "board", database, arena, None, closed, desk)  # type: ignore[arg-type]
        site = website.Site(services, ByHeader("oidc"))
        app = FastAPI()
        site_app.answer_errors(app, site)
        site_app.add_guard(app, site=site)
        app.mount("/own", StaticFiles(directory=SPACE / "static"))
        app.get("/parts.css")(lambda: Response(parts_style(), media_type="text/css"))
        for routes in (page, *((arena_page, board_page) if arena else ())):
            app.include_router(routes.router(site))
        return gradio_app.mount(app, site) if tabs else app

    return build_app


@pytest.fixture
def as_person(site_of: Build) -> People:
    """A client that is signed in under a name."""

    def client(name: str = "", closed: str | None = None) -> TestClient:
        known = {"x-person": name} if name else {}
        return TestClient(site_of(closed), headers={"x-podeval": "1", **known}, raise_server_exceptions=False)

    return client


def model(hub: Any, **changes: bytes | None) -> dict[str, Any]:
    """A submission of a model that is on the Hub."""
    repo = hub.repos.publish("models", "alice/tiny-voice", FIXTURES.model_files(**changes))
    return dict(FIXTURES.document(revision=repo.refs["main"]))


def sent(client: TestClient, document: dict[str, Any], where: str = "/submit") -> Any:
    return client.post(where, json={"document": document})


def tone(number: int) -> bytes:
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(b"".join(value.to_bytes(2, "little", signed=True) for value in (900 + number, -900) * 4000))
    return content.getvalue()


def test_a_submission_is_refused_corrected_worked_off_and_on_the_board(
    as_person: People, hub_client: Any, tiny: ModuleType, database: Database, tmp_path: Path
) -> None:
    alice = as_person("alice")

    def outputs(items: int) -> dict[str, Any]:
        files = {f"{item}.wav": tone(number) for number, item in enumerate(tiny.ITEMS[:items])}
        repo = hub_client.repos.publish("datasets", "alice/tones", {**files, "README.md": CARD})
        source = {"kind": "outputs", "repo": "alice/tones", "revision": repo.refs["main"]}
        return {**tiny.document("tones"), "source": source}

    first = sent(alice, outputs(9))
    assert first.status_code == 422
    (refusal,) = first.json()["refusals"]
    assert refusal["rule"] == "manifest"
    assert "item_9" in refusal["message"]

    whole = outputs(10)
    checked = sent(alice, whole, "/submit/check").json()
    assert checked["passed"] is True, checked
    (run,) = checked["preview"]["runs"]
    assert (run["benchmark"], run["items"], checked["preview"]["position"]) == ("Ten", 10, 1)
    done = sent(alice, whole)
    assert done.status_code == 201, done.text
    id_, address = done.json()["id"], done.json()["address"]
    assert alice.get(f"/api/v1/submissions/{id_}").json()["position"] == 1

    making = GenerationSettings(trusted=sandbox.explain_missing_isolation() is not None)
    Worker(Queue(database), tmp_path / "work", tmp_path / "board", build, making).once()
    told = alice.get(f"/api/v1/submissions/{id_}").json()
    assert told["state"] == "published", told["reason"]
    assert [step["state"] for step in told["history"]][-2:] == ["measured", "published"]
    assert {step["by"] for step in told["history"]} == {"alice", "gate", "worker"}, "workers' machines have no names"
    board = RunsFolder(tmp_path / "board").board()
    assert "tones" in set(board["system"])
    assert "published" in alice.get(address).text
    again = sent(alice, whole)
    assert again.status_code == 409
    assert again.json()["refusals"][0]["rule"] == "duplicate"


def test_a_check_tells_every_rule_at_once_and_queues_nothing(
    as_person: People, hub_client: Any, database: Database
) -> None:
    document = model(hub_client, **{"run.py": b"x", "README.md": b"# Nothing"})
    told = sent(as_person("alice"), document, "/submit/check").json()
    assert told["passed"] is False
    rules = {each["rule"]: each for each in told["refusals"]}
    assert {"code", "card", "licence"} <= set(rules)
    assert rules["code"]["asks"] == "the repo holds no code"
    assert Queue(database).all() == []


def test_mistakes_in_the_form_are_told_by_their_field(as_person: People, hub_client: Any) -> None:
    document = model(hub_client)
    document["system"]["id"] = "No Slug"
    document["source"]["revision"] = "main"
    told = sent(as_person("alice"), document, "/submit/check").json()["refusals"]
    assert {each["field"] for each in told} == {"system.id", "source.revision"}
    alice = as_person("alice")
    document["system"]["id"] = "tiny_voice"
    document["system"]["name"] = "\ud800"
    lone = alice.post("/submit", content=json.dumps({"document": document}))
    assert lone.status_code == 422, "half of a character is no text"
    assert sent(alice, {"schema_version": 1}).status_code == 422
    assert alice.post("/submit", json={"document": {}, "owner": "bob"}).status_code == 422


def test_a_thousand_mistakes_are_told_as_fifty(as_person: People, hub_client: Any) -> None:
    document = model(hub_client)
    document["source"] = {"kind": "reported", "results": [{}] * 10_000}
    answer = sent(as_person("alice"), document, "/submit/check")
    told = answer.json()["refusals"]
    assert len(told) == 51
    assert told[-1]["message"].startswith("there are ")
    assert len(answer.content) < 50_000


def test_who_is_not_signed_in_submits_nothing_and_is_told_how(as_person: People, hub_client: Any) -> None:
    stranger = as_person()
    for where in ("/submit", "/submit/check"):
        refused = sent(stranger, model(hub_client), where)
        assert (refused.status_code, refused.json()["reason"]) == (401, "not signed in")
    assert "/sign-in" in stranger.get("/submit", headers=PART).text
    shut = as_person("alice", closed="what is submitted here would be lost at the next restart")
    assert sent(shut, model(hub_client)).status_code == 503
    assert "/sign-in" not in shut.get("/submit", headers=PART).text


def test_only_its_owner_or_an_operator_stops_a_submission(
    as_person: People, hub_client: Any, database: Database
) -> None:
    alice, bob, root = as_person("alice"), as_person("bob"), as_person("root")
    id_ = sent(alice, model(hub_client)).json()["id"]
    assert Queue(database).get(id_).owner_proven, "the repo is alice's"
    for what in ("cancel", "retry"):
        refused = bob.post(f"/submissions/{id_}/{what}", json={})
        assert (refused.status_code, refused.json()["reason"]) == (403, "foreign")
    assert "data-post" not in bob.get(f"/submissions/{id_}").text
    assert as_person().post(f"/submissions/{id_}/cancel", json={}).status_code == 401
    assert "/cancel" in alice.get(f"/submissions/{id_}").text
    assert alice.post(f"/submissions/{id_}/cancel", json={}).json()["state"] == "cancelled"
    assert alice.post(f"/submissions/{id_}/retry", json={}).json()["state"] == "queued"
    assert root.post(f"/submissions/{id_}/cancel", json={}).json()["state"] == "cancelled"
    refused = alice.post(f"/submissions/{id_}/retry", json={})
    assert "an operator of this board cancelled it" in refused.json()["error"]
    assert alice.post("/submissions/s0/cancel", json={}).status_code == 404
    assert alice.get("/submissions/s0").status_code == 404


def test_nobody_submits_as_this_installation_or_in_place_of_what_it_measured(
    as_person: People, hub_client: Any, tmp_path: Path
) -> None:
    document = model(hub_client)
    assert sent(as_person("Operator"), document).status_code == 403
    plan = RunPlan(
        benchmark="real_pod",
        split="demo",
        dataset="",
        track="voice",
        system="piper",
        system_title="Piper",
        system_kind="baseline",
        generation={},
        seed=0,
    )
    RunFolder(tmp_path / "board", "real_pod", "demo", "piper").begin(plan)
    document["system"]["id"] = "piper"
    told = sent(as_person("alice"), document, "/submit/check").json()["refusals"]
    assert [each["rule"] for each in told] == ["duplicate"]
    assert "measured by who runs it" in told[0]["message"]
    document["source"] = {"kind": "builtin", "runner": "espeak_ng", "role": "baseline"}
    document["system"]["id"] = "best_voice"
    told = sent(as_person("alice"), document).json()["refusals"]
    assert "entered by who runs this board" in told[0]["message"]


def test_what_people_write_stays_text_on_every_page(as_person: People, hub_client: Any, database: Database) -> None:
    alice = as_person("alice")
    document = model(hub_client)
    document["system"] |= {
        "name": f"ann@example.org {HOSTILE}",
        "description": HOSTILE,
        "organisation": HOSTILE,
        "authors": [HOSTILE],
    }
    id_ = sent(alice, document).json()["id"]
    queue = Queue(database)
    claim = queue.claim("secret-machine:77")
    assert claim
    reason = f"Error: {HOSTILE} at /home/ann/models/x.py with hf_abcdefghijklmnop of ann@example.org"
    queue.advance(claim, "running", "failed", reason=reason)
    page = alice.get(f"/submissions/{id_}")
    assert page.status_code == 200
    assert "<img src=x" not in page.text
    assert "<script>window" not in page.text
    assert "&lt;img src=x onerror" in page.text
    for secret in ("hf_abcdefgh", "ann@example.org", "/home/ann", "secret-machine"):
        assert secret not in page.text
    assert "unsafe" not in page.headers["content-security-policy"]
    told = alice.get("/api/v1/submissions").text
    assert "secret-machine" not in told
    assert "hf_abcdefgh" not in told
    assert alice.post(f"/submissions/{id_}/retry", json={}).json()["state"] == "queued"
    assert alice.get("/api/v1/submissions?state=queued&owner=alice").json()["total"] == 1
    assert alice.get("/api/v1/submissions?state=nowhere").status_code == 422


def test_the_form_has_every_field_of_the_document_that_a_stranger_can_fill_in(
    as_person: People, site_of: Build
) -> None:
    from gradio_routes import GradioGate

    (gate,) = (route.app for route in site_of(tabs=True).routes if isinstance(getattr(route, "app", None), GradioGate))
    placed = [str(block.elem_id) for block in gate.apps["en"].get_blocks().blocks.values()]
    schema = as_person().get("/submit/schema.json").json()["$defs"]
    expected = {f"system.{name}" for name in schema["System"]["properties"]} - {"system.links"}
    expected |= {f"system.links.{name}" for name in schema["Links"]["properties"]}
    expected |= {f"source.{name}" for name in schema["Model"]["properties"]} - {"source.kind", "source.base"}
    expected -= {"source.publish"}
    expected |= {"source.base.repo", "source.base.revision"}
    expected |= {f"source.publish.{name}" for name in schema["Publish"]["properties"]}
    expected |= {f"source.made_by.{name}" for name in ("repo", "revision", "task", "base.repo")}
    for path in expected:
        assert any(name.endswith(f"-{path.replace('.', '-')}") for name in placed), path
    assert "提交系统" in as_person("alice").get("/submit?lang=zh", headers=PART).text


def test_jobs_and_pull_requests_of_a_submission_are_facts_of_its_page(as_person: People, database: Database) -> None:
    from datetime import UTC, datetime

    from podeval.store.submission_tables import HubJob, HubProposal

    plain = FIXTURES.document(revision="a" * 40)
    row = Queue(database).receive(plain, owner="alice", quotas=False)
    now = datetime.now(UTC)
    about = {"namespace": "lab", "image": "x", "flavour": "a10g-large", "minutes": 60, "attempts": 1}
    job = {"per_minute": 0.025, "reserved": 1.5, "asked_at": now, **about}
    ended = {"spent": 0.25, "stage": "COMPLETED", "ended_at": now}
    pull = "https://huggingface.co/alice/tiny-voice/discussions/1"

    def add(session: Any) -> None:
        session.add(HubJob(submission=row.id, run="real_pod/topics", round=1, job="j1", **job, **ended))
        session.add(HubJob(submission=row.id, run="real_pod/topics", round=2, job="j2", stage="RUNNING", **job))
        session.add(HubProposal(submission=row.id, form="eval_results", state="open", url=pull, at=now))
        hostile = {"form": "model_index", "state": "refused", "url": "javascript:alert(1)", "reason": HOSTILE}
        session.add(HubProposal(submission=row.id, at=now, **hostile))

    database.write(add)
    page = as_person().get(f"/submissions/{row.id}").text
    assert "real_pod/topics, a10g-large: 0.25 USD (at most 1.50)" in page
    assert "real_pod/topics, a10g-large: at most 1.50 USD" in page
    assert "Cost so far: 0.25 USD (at most 1.75)" in page
    assert f'<a href="{pull}" rel="nofollow">' in page
    assert "javascript:" not in page
    assert "<img src=x" not in page
    told = as_person().get(f"/api/v1/submissions/{row.id}").json()
    assert [job["spent"] for job in told["jobs"]] == [0.25, None]
    assert told["proposals"][0]["url"] == pull


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key hf_AbCdEfGh12345 refused", "key [secret] refused"),
        ("Authorization: Bearer abc.def", "Authorization: [secret]"),
        ("API_KEY=abc123, next", "API_KEY=[secret], next"),
        ("https://ann:pw@host.org/x", "https://host.org/x"),
        ("FileNotFoundError: /srv/work/s1/model/config.json", "FileNotFoundError: …/config.json"),
        ("the worker host-1:4242 stopped responding", "the worker stopped responding"),
        ("see https://hub.org/a/b; open alice/tiny-voice", "see https://hub.org/a/b; open alice/tiny-voice"),
    ],
)
def test_reasons_are_shown_without_secrets_addresses_and_folders(text: str, shown: str) -> None:
    assert redact(text) == shown


@contextlib.contextmanager
def serving_app(app: Any) -> Iterator[str]:
    """The address of an app while it is served."""
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)


@pytest.fixture
def address(site_of: Build) -> Iterator[str]:
    """A running site where everybody is alice."""
    with serving_app(site_of(everybody="alice", tabs=True)) as where:
        yield where


def looked_at(page: Any, name: str) -> None:
    """Nothing wrong with the page at three widths, one of them dark; a picture of each, if wanted."""
    for width, scheme in looks(360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 780})
        page.emulate_media(color_scheme=scheme)
        picture(page, f"{name}-{width}-{scheme}")
        # Gradio's own components keep to axe-core; our own rules are stricter, and for pages of ours.
        gradio = page.locator("gradio-app").count() > 0
        assert (serious(page) if gradio else violations(page)) == [], (name, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    page.set_viewport_size({"width": 360, "height": 780})


@pytest.mark.browser
def test_a_repo_is_filled_in_from_the_hub_corrected_and_sent_by_keys_on_a_phone(
    chromium: Any, address: str, hub_client: Any, database: Database
) -> None:
    document = model(hub_client)
    context = chromium.new_context(viewport={"width": 360, "height": 780}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(20_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{address}/submit")
    page.wait_for_selector("#model-source-repo input, #model-source-repo textarea")

    def reach(what: str) -> None:
        for _ in range(80):
            if page.evaluate("what => document.activeElement.closest(what) !== null", what):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{what} cannot be reached by keys")

    def fill(field: str, text: str) -> None:
        reach(field)
        page.keyboard.press("Control+A")
        page.keyboard.type(text)

    def value(field: str) -> str:
        return str(page.locator(f"{field} input, {field} textarea").first.input_value())

    fill("#model-source-repo", document["source"]["repo"])
    reach("#submit-fill")
    page.keyboard.press("Enter")
    revision = "#model-source-revision"
    page.wait_for_function(f"!!document.querySelector('{revision} input, {revision} textarea').value")
    assert value("#model-source-revision") == document["source"]["revision"]
    told = page.inner_text("#verdict")
    assert "It will be run as VITS" in told
    assert "51 scripts" in told
    assert page.get_by_label("Real-Pod: Voice").is_checked()
    assert value("#system-system-id") == "tiny_voice"
    assert value("#system-system-licence").casefold() == "apache-2.0"
    fill("#system-system-id", "Tiny")
    fill("#system-system-name", f"Tiny {HOSTILE}")
    fill("#system-system-licence", "MIT")
    reach("#submit-check")
    page.keyboard.press("Enter")
    page.wait_for_selector("#submit-answer li")
    assert "lower-case letters" in page.inner_text("#submit-answer")
    looked_at(page, "submit-refused")

    page.focus("#system-system-id input, #system-system-id textarea")
    fill("#system-system-id", "tiny_voice")
    page.click("#submit-check")
    page.wait_for_selector("#submit-answer li:has-text('MIT')")
    assert "make them the same" in page.inner_text("#submit-answer")
    page.focus("#system-system-licence input, #system-system-licence textarea")
    fill("#system-system-licence", "Apache-2.0")
    page.click("#submit-check")
    page.wait_for_selector("#submit-answer .card")
    assert "51 items" in page.inner_text("#submit-answer")
    looked_at(page, "submit-passes")
    page.dblclick("#submit-send")
    link = page.wait_for_selector("#submit-answer a[href^='/submissions/']")
    (row,) = [row for row in Queue(database).all() if row.state == "queued"]
    assert row.document["source"]["revision"] == document["source"]["revision"]
    page.wait_for_selector(f"#submit-own a[href='/submissions/{row.id}'] >> visible=true")
    link.click()
    page.wait_for_selector("#standing")
    looked_at(page, "submission")
    page.click("[data-post$='/cancel']")
    page.wait_for_selector("[data-state=cancelled]")
    assert Queue(database).get(row.id).state == "cancelled"
    page.goto(f"{address}/queue")
    page.wait_for_selector(f"#queue-ended a[href='/submissions/{row.id}'] >> visible=true")
    assert HOSTILE in page.inner_text("#queue-ended"), "names are text in Gradio's tables"
    looked_at(page, "queue")
    assert page.evaluate("window.hacked ?? null") is None
    assert wrong == []
    context.close()


def test_messages_stand_in_the_order_of_the_form(site_of: Build) -> None:
    form = tab_method(site_of(everybody="alice", tabs=True), "SubmitTab.submit")
    empty = ["" if field.looks not in ("choice", "flag") else field.choices[0] if field.choices else False
             for field in form._declared]  # fmt: skip
    answer = form.check(Asking("alice"), "model", ["real_pod.voice"], *empty)
    labels = [re.sub(r"<[^>]+>", "", each) for each in re.findall(r"<li><strong>(.*?)</strong>:", answer)]
    names = list(dict.fromkeys(field.name for field in form._declared))
    placed = [names.index(label) for label in labels if label in names]
    assert len(placed) > 3, answer
    assert placed == sorted(placed), labels


def test_a_second_repo_replaces_what_the_first_one_filled_in_and_nothing_that_a_visitor_typed(
    site_of: Build, hub_client: Any
) -> None:
    model(hub_client)
    card = FIXTURES.model_files()["README.md"].replace(b"apache-2.0", b"mit").replace(b"language: en", b"language: de")
    hub_client.repos.publish("models", "bob/other-voice", FIXTURES.model_files(**{"README.md": card}))
    form = tab_method(site_of(everybody="alice", tabs=True), "SubmitTab.submit")
    paths = [f"{group}:{field.path}" for group, field in zip(form._groups, form._declared, strict=True)]
    values: dict[str, Any] = dict.fromkeys(paths, "") | {
        f"{group}:{field.path}": field.choices[0] if field.choices else False
        for group, field in zip(form._groups, form._declared, strict=True)
        if field.looks in ("choice", "flag")
    }

    def fill_in(repo: str, written: Any) -> Any:
        values["model:source.repo"] = repo
        _, _, now, *updates = form.fill(Asking("alice"), "model", [], written, *values.values())
        # What an event skips is a mapping of Gradio's; every value of a field is a text or a flag.
        values.update({path: new for path, new in zip(paths, updates, strict=True) if isinstance(new, str | bool)})
        return now

    now = fill_in("alice/tiny-voice", {})
    assert (values["system:system.id"], values["system:system.open"]) == ("tiny_voice", True)
    first = {**values}
    values["system:system.name"], values["system:system.open"] = "My own name", False
    now = fill_in("bob/other-voice", now)
    assert {name: values[f"system:system.{name}"] for name in ("id", "licence", "languages", "organisation")} == {
        "id": "other_voice", "licence": "mit", "languages": "de", "organisation": "bob",
    }  # fmt: skip
    assert values["model:source.revision"] != first["model:source.revision"]
    assert (values["system:system.name"], values["system:system.open"]) == ("My own name", False), "the visitor's own"
    fill_in("alice/tiny-voice", now)
    assert (values["system:system.id"], values["system:system.name"]) == ("tiny_voice", "My own name")
    # A browser sends what it likes as the values that were written.
    assert fill_in("alice/tiny-voice", ["x"])["source.repo"] == "alice/tiny-voice"


@pytest.mark.parametrize(
    ("changes", "runs_as", "reason"),
    [
        ({}, "VITS", ""),
        ({"config.json": b'{"model_type": "styletts"}'}, "", "models for text-to-speech that run here are"),
        ({"modeling.py": b"print(1)"}, "", "holds modeling.py"),
    ],
)
def test_a_repo_is_said_at_once_to_run_as_what_or_why_it_cannot_be_run(
    hub_client: Any, database: Database, tmp_path: Path, changes: dict[str, bytes], runs_as: str, reason: str
) -> None:
    from pages.submit import verdict
    from services import open_desk

    desk = open_desk(database, tmp_path / "board", None)
    told = verdict(desk, model(hub_client, **changes), None)
    assert told["runs_as"] == runs_as
    assert told["kits"], "what to do where it cannot be run"
    if runs_as:
        assert [run["items"] for run in told["runs"]] == [51]
        assert told["reasons"] == []
    else:
        assert any(reason in each["message"] for each in told["reasons"]), told["reasons"]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ("It will be run as VITS:", "Real-Pod, topics: 51 scripts", "at most 2 hours", "at most 3.00 USD")),
        ("zh", ("将作为 VITS 运行：", "51 份脚本", "最多运行 2小时", "最多花费 3.00 美元")),
    ],
)
def test_as_what_for_how_long_and_for_how_much_a_repo_would_run_is_said_as_it_is_filled_in(
    site_of: Build, hub_client: Any, monkeypatch: pytest.MonkeyPatch, language: str, sentences: tuple[str, ...]
) -> None:
    from huggingface_hub import HfApi

    from podeval.runs.hf_jobs import HfJobs

    form = tab_method(site_of(everybody="alice", tabs=True), "SubmitTab.submit", language)
    jobs = HfJobs(f"docker.io/lab/podeval@sha256:{'0' * 64}", "a10g-large", "lab", api=HfApi(token="hf_secret"))
    monkeypatch.setattr(form, "_jobs", lambda: jobs)
    repo = model(hub_client)["source"]["repo"]
    at = [f"{group}:{field.path}" for group, field in zip(form._groups, form._declared, strict=True)]
    values = [repo if path == "model:source.repo" else "" for path in at]
    asking = Asking("alice", language)
    answer = form.fill(asking, "model", [], {}, *values)[0]
    assert [each for each in sentences if each not in answer] == [], answer


def test_scripts_and_notebook_are_had_by_their_addresses_and_no_others(as_person: People) -> None:
    client = as_person()
    kit = client.get("/submit/scripts/real_pod/topics.zip")
    assert kit.headers["content-type"] == "application/zip"
    assert kit.content[:2] == b"PK"
    notebook = client.get("/submit/outputs/real_pod/topics.ipynb").json()
    assert "http://testserver/submit/scripts/real_pod/topics.zip" in json.dumps(notebook)
    for address in ("/submit/scripts/real_pod/hard%2F..%2Ftopics.zip", "/submit/scripts/x/y.zip"):
        assert client.get(address).status_code == 404


def zipped(names: list[str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number, name in enumerate(names):
            archive.writestr(name, tone(number))
    return content.getvalue()


def test_only_who_may_submit_uploads_as_much_as_recordings_take(
    site_of: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import gradio_addresses

    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "held"))
    monkeypatch.setenv("PODEVAL_TRY", "0")
    monkeypatch.setattr(gradio_addresses, "LARGEST_UPLOAD", 1_000)
    client = TestClient(site_of(tabs=True))

    def send(name: str, size: int) -> Any:
        known = {"x-person": name} if name else {}
        return client.post("/gradio_api/upload", headers=known, files={"files": ("a.zip", b"x" * size)})

    assert send("", 10).json()["error"] == "this board does not measure for visitors"
    assert send("alice", 5_000).status_code == 200
    monkeypatch.setenv("PODEVAL_TRY", "1")
    client = TestClient(site_of(tabs=True))
    assert send("", 10).status_code == 200
    assert send("", 5_000).status_code == 413
    assert [send("bob", 5_000).status_code for _ in range(11)] == [*[200] * 10, 429]
    shut = TestClient(site_of(closed="what is submitted here would be lost at the next restart", tabs=True))
    assert (
        shut.post("/gradio_api/upload", headers={"x-person": "bob"}, files={"files": b"x" * 5_000}).status_code == 413
    )
    monkeypatch.setattr(gradio_addresses, "LEAST_FREE", 2**60)
    assert send("carol", 5_000).status_code == 503, "the disk keeps room for the database"


def tab_method(app: Any, name: str, language: str = "en") -> Any:
    """The part of a tab that has an event's method of this name."""
    from gradio_routes import GradioGate

    (gate,) = (route.app for route in app.routes if isinstance(getattr(route, "app", None), GradioGate))
    functions = gate.apps[language].get_blocks().fns.values()
    return next(one.fn.__self__ for one in functions if getattr(one.fn, "__qualname__", "") == name)


class Asking:
    """What Gradio hands an event: the browser's request, which says who somebody is."""

    def __init__(self, name: str, language: str = "en") -> None:
        from starlette.requests import Request

        headers = [(b"accept-language", language.encode()), *([(b"x-person", name.encode())] if name else [])]
        address = {"path": "/", "query_string": b"", "client": ("127.0.0.1", 1), "server": ("localhost", 80)}
        self.request = Request({"type": "http", "method": "POST", "scheme": "http", "headers": headers, **address})


def test_uploaded_recordings_are_looked_over_at_once_submitted_by_who_sent_them_and_put_on_the_board(
    site_of: Build, tiny: ModuleType, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "held"))
    site = site_of(tabs=True)
    form, part = tab_method(site, "SubmitTab.submit"), tab_method(site, "RecordingsUpload.receive")

    def upload(who: str, files: list[str]) -> str:
        path = tmp_path / "held" / "x" / "tones.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zipped(files))
        answer, _ = part.receive(Asking(who), {"path": str(path)}, ["ten.voice"])
        assert not path.exists(), "the zip itself is deleted in any case"
        return str(answer)

    values = {"system.id": "tones", "system.name": "Tones", "system.description": "Ten tones.", "system.open": True}
    values |= {"system.licence": "CC0-1.0", "system.languages": "en"}
    given = [values.get(field.path, "") for field in form._declared]  # no other way to a form without a browser

    def hand_in(who: str, step: str) -> str:
        answer = getattr(form, step)(Asking(who), "outputs", ["ten.voice"], *given)
        return str(answer if isinstance(answer, str) else answer[0])

    assert "sign in" in upload("", ["a.wav"])
    assert "leads out of the zip" in upload("alice", ["../a.wav"])
    told = upload("alice", [f"my tones/{item}.wav" for item in tiny.ITEMS[:9]] + ["my tones/other.wav"])
    assert "ten/demo: 9 of 10 are there" in told
    assert tiny.ITEMS[9] in told
    assert "other.wav" in told
    assert "1 of 10 outputs" in hand_in("alice", "check")
    assert "are missing" in hand_in("alice", "submit")
    assert Queue(database).all() == [], "what is incomplete is not queued, and its upload stays"
    assert "needs either repo" in hand_in("bob", "submit"), "nobody submits what another uploaded"
    assert "10 of 10 are there" in upload("alice", [f"{item}.wav" for item in tiny.ITEMS])
    assert "All checks passed" in hand_in("alice", "check")
    assert "/submissions/" in hand_in("alice", "submit")
    (row,) = Queue(database).all()
    assert (row.state, row.owner) == ("queued", "alice")
    making = GenerationSettings(trusted=sandbox.explain_missing_isolation() is not None)
    Worker(Queue(database), tmp_path / "work", tmp_path / "board", build, making).once()
    assert Queue(database).get(row.id).state == "published", Queue(database).get(row.id).reason
    board = RunsFolder(tmp_path / "board").board()
    assert "tones" in set(board["system"])
    run = RunFolder(tmp_path / "board", "ten", "demo", "tones")
    assert run.plan().generation["revision"] == row.pinned["content"]
    page = TestClient(site_of()).get(f"/submissions/{row.id}").text
    assert "Items that are there: 10 of 10" in page
    assert "ten/demo/item_3" in page
    assert "all 10 items are made and measured" in page
    assert "Cost so far: 0.00 USD" in page
    (mine,) = form.own(Asking("alice"))
    assert mine[-2:] == ["0.00 USD", "ten/demo: all 10 items are made and measured"]


def wait_for_value(page: Any, field: str, value: str) -> None:
    """Wait until a field of the system has a value."""
    place = f"#system-system-{field} input, #system-system-{field} textarea"
    page.wait_for_function("([place, value]) => document.querySelector(place)?.value === value", arg=[place, value])


def hear_and_vote(page: Any, number: int) -> None:
    """Play A, after which B follows by itself, and vote by keys and by the button in turn."""
    page.wait_for_selector("#arena[data-state=battle]")
    page.click("#side-a .play")
    page.wait_for_selector(".vote-a:enabled")
    page.keyboard.press("1") if number % 2 else page.click(".vote-b")
    page.wait_for_selector("#arena[data-state=revealed]")
    page.wait_for_selector("#told audio")


@pytest.mark.long
@pytest.mark.browser
def test_somebody_hears_votes_replays_and_submits_what_runs_what_does_not_and_recordings_until_a_row_is_there(
    chromium: Any, site_of: Build, hub_client: Any, tiny: ModuleType, database: Database, tmp_path: Path
) -> None:
    fill(tmp_path / "podeval.db", tmp_path / "audio")
    document = model(hub_client)
    refused = {"config.json": b'{"model_type": "styletts"}', "modeling.py": b"print(1)"}
    hub_client.repos.publish("models", "alice/own-code", FIXTURES.model_files(**refused))
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.add_init_script(quick(ArenaSettings().fastest_playback))
    page = context.new_page()
    page.set_default_timeout(30_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    arena = Arena(database, ArenaSettings())
    with serving_app(site_of(everybody="alice", tabs=True, arena=arena)) as where:
        # Hear, vote, reveal, replay; a board of one's own from five votes on.
        page.goto(f"{where}/arena")
        for number in range(5):
            hear_and_vote(page, number)
            if number < 4:
                assert sum(system.title in page.inner_text("#told") for system in SYSTEMS.values()) == 2
                assert page.locator("#told table").count() == 0
                page.keyboard.press("n")
        page.locator("#told audio").first.evaluate("(sound) => sound.play()")
        page.wait_for_function("document.querySelector('#told audio').currentTime > 0.1")
        page.wait_for_selector("#told table")
        looked_at(page, "story-revealed")

        # A repo that runs, and one that does not.
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{where}/submit")
        repo = page.locator("#model-source-repo").locator("input, textarea")
        repo.fill(document["source"]["repo"])
        page.click("#submit-fill")
        page.wait_for_selector("#verdict:has-text('It will be run as VITS')")
        assert "51 scripts" in page.inner_text("#verdict")
        wait_for_value(page, "id", "tiny_voice")
        page.locator("#system-system-name").locator("input, textarea").fill("Typed by hand")
        looked_at(page, "story-runs")
        page.set_viewport_size({"width": 1280, "height": 900})
        repo.fill("https://huggingface.co/alice/own-code")
        page.click("#submit-fill")
        page.wait_for_selector("#verdict:has-text('cannot be run as a model')")
        wait_for_value(page, "id", "own_code")
        wait_for_value(page, "name", "Typed by hand")
        assert page.locator("#verdict a[href='/submit/scripts/real_pod/topics.zip']").count() == 1
        assert page.locator("#verdict a[href='/submit/outputs/real_pod/topics.ipynb']").count() == 1
        looked_at(page, "story-runs-not")

        # So its recordings, of which one is missing at first.
        page.set_viewport_size({"width": 1280, "height": 900})
        page.get_by_label("Outputs made by you").check()
        page.get_by_label("Real-Pod: Voice").uncheck()
        page.get_by_label("Ten: Voice").check()
        for field, text in (("id", "tones"), ("name", "Tones"), ("licence", "CC0-1.0"), ("languages", "en")):
            page.locator(f"#system-system-{field}").locator("input, textarea").fill(text)

        def upload(names: list[str]) -> None:
            file = {"name": "tones.zip", "mimeType": "application/zip", "buffer": zipped(names)}
            page.set_input_files("#submit-zip input[type=file]", file)

        upload(["../item_0.wav"])
        page.wait_for_selector("#submit-recordings .error:has-text('leads out of the zip')")
        upload([f"tones/{item}.wav" for item in tiny.ITEMS[:9]])
        page.wait_for_selector("#recordings:has-text('ten/demo: 9 of 10 are there')")
        page.click("#submit-send")
        page.wait_for_selector("#submit-answer p:has-text('Not accepted yet')")
        assert "are missing" in page.inner_text("#submit-answer")
        looked_at(page, "story-refused")
        page.set_viewport_size({"width": 1280, "height": 900})
        assert Queue(database).all() == []
        upload([f"tones/{item}.wav" for item in tiny.ITEMS])
        page.wait_for_selector("#recordings:has-text('10 of 10 are there')")
        page.click("#submit-send")
        page.click("#submit-answer a[href^='/submissions/']")
        page.wait_for_selector("#standing[data-state=queued]")
        making = GenerationSettings(trusted=sandbox.explain_missing_isolation() is not None)
        Worker(Queue(database), tmp_path / "work", tmp_path / "board", build, making).once()
        page.wait_for_selector("#standing[data-state=published]")
        assert "10 of 10" in page.inner_text("#live")
        assert "all 10 items are made and measured" in page.inner_text("#log")
        looked_at(page, "story-published")

        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{where}/leaderboard")
        page.wait_for_selector("#table th:has-text('Tones')")
        picture(page, "story-row")
    assert wrong == []
    context.close()
