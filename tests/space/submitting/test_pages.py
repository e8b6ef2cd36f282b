"""Submitting through the site: what the gate says, what becomes of it, and who may do what; with the real client."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.submissions.conftest import document

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")


from podeval import sandbox
from podeval.board.build import build
from podeval.board.runs_folder import RunsFolder
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.store.database import Database
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.queue import Queue
from podeval.submissions.worker import Worker
from podeval.text.redaction import redact
from tests.space.submit_fixture import CARD, HOSTILE, Asking, Build, People, model, sent, tab_method, tone


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
    assert rules["code"]["asks"] == "the repo contains no code"
    assert Queue(database).all() == []


def test_who_is_not_signed_in_submits_nothing_and_is_told_how(as_person: People, hub_client: Any) -> None:
    stranger = as_person()
    for where in ("/submit", "/submit/check"):
        refused = sent(stranger, model(hub_client), where)
        assert (refused.status_code, refused.json()["reason"]) == (401, "not signed in")
    shut = as_person("alice", closed="what is submitted here would be lost at the next restart")
    assert sent(shut, model(hub_client)).status_code == 503


def test_a_stranger_is_told_where_to_sign_in_and_no_visitor_how_to_set_the_site_up(site_of: Build) -> None:
    form = tab_method(site_of(tabs=True), "SubmitTab.submit")
    assert "/sign-in" in form.show_queue(Asking(""))[0]
    assert form.show_queue(Asking("alice"))[0] == ""
    shut = tab_method(site_of(tabs=True, closed="it would be lost"), "SubmitTab.submit")
    assert shut.show_queue(Asking(""))[0] == ""


def test_only_its_owner_or_an_operator_stops_a_submission(
    as_person: People, hub_client: Any, database: Database
) -> None:
    alice, bob, root = as_person("alice"), as_person("bob"), as_person("root")
    id_ = sent(alice, model(hub_client)).json()["id"]
    assert Queue(database).get(id_).owner_proven, "the repo is alice's"
    for what in ("cancel", "retry"):
        refused = bob.post(f"/submissions/{id_}/{what}", json={})
        assert (refused.status_code, refused.json()["reason"]) == (403, "foreign")
    assert "data-address" not in bob.get(f"/submissions/{id_}").text
    assert as_person().post(f"/submissions/{id_}/cancel", json={}).status_code == 401
    assert "/cancel" in alice.get(f"/submissions/{id_}").text
    assert alice.post(f"/submissions/{id_}/cancel", json={}).json()["state"] == "cancelled"
    assert alice.post(f"/submissions/{id_}/retry", json={}).json()["state"] == "queued"
    assert root.post(f"/submissions/{id_}/cancel", json={}).json()["state"] == "cancelled"
    refused = alice.post(f"/submissions/{id_}/retry", json={})
    assert "an operator of this board cancelled the submission" in refused.json()["error"]
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
    assert "measured by its operators" in told[0]["message"]
    document["source"] = {"kind": "builtin", "runner": "espeak_ng", "role": "baseline"}
    document["system"]["id"] = "best_voice"
    told = sent(as_person("alice"), document).json()["refusals"]
    assert "entered by the operators of this board" in told[0]["message"]


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


def test_jobs_and_pull_requests_of_a_submission_are_facts_of_its_page(as_person: People, database: Database) -> None:
    from datetime import UTC, datetime

    from podeval.store.submission_tables import HubJob, HubProposal

    plain = document(revision="a" * 40)
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
    page = as_person().get(f"/submissions/{row.id}").text.replace("\xa0", " ")
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


def test_scripts_and_notebook_are_had_by_their_addresses_and_no_others(as_person: People) -> None:
    client = as_person()
    kit = client.get("/submit/scripts/real_pod/topics.zip")
    assert kit.headers["content-type"] == "application/zip"
    assert kit.content[:2] == b"PK"
    notebook = client.get("/submit/outputs/real_pod/topics.ipynb").json()
    assert "http://testserver/submit/scripts/real_pod/topics.zip" in json.dumps(notebook)
    for address in ("/submit/scripts/real_pod/hard%2F..%2Ftopics.zip", "/submit/scripts/x/y.zip"):
        assert client.get(address).status_code == 404
