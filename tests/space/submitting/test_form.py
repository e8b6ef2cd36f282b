"""The form of the tab: its fields and their mistakes, what a repo fills in, and what it would run as."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.submissions.conftest import model_files

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")


from podeval.store.database import Database
from tests.space.submit_fixture import Asking, Build, People, model, sent, tab_method


def empty_values(form: Any) -> list[Any]:
    """The fields of a form that nobody touched."""
    return ["" if field.looks not in ("choice", "flag") else field.choices[0] if field.choices else False
            for field in form._declared]  # fmt: skip


def test_what_is_missing_is_said_next_to_its_field_in_the_fields_words_and_in_the_order_of_the_form(
    site_of: Build,
) -> None:
    form = tab_method(site_of(everybody="alice", tabs=True), "SubmitTab.submit")
    answer, tracks, *fields = form.check(Asking("alice"), "model", [], *empty_values(form))
    assert answer.strip() == (
        '<p class="error">8 fields need another look: Repo, Commit, Id, Name, Description, Licence, Languages, '
        "Benchmarks and tracks.</p>"
    )
    assert (tracks["info"], tracks["elem_classes"]) == ("Choose at least one of “Benchmarks and tracks”.", ["wrong"])
    marks = zip(form._declared, fields, strict=True)
    wrong = [(field, mark["info"]) for field, mark in marks if mark["elem_classes"]]
    assert [(field.group, field.path, info) for field, info in wrong[:2]] == [
        ("model", "source.repo", "Fill in “Repo”."),
        ("model", "source.revision", "Fill in “Commit”."),
    ], "a repo of outputs is not asked for"
    assert len(wrong) == 7
    assert not any(field.folded for field, _ in wrong), "what is required is in sight"
    answer, *cleared = form.choose_kind("outputs")
    assert answer == ""
    assert not any(isinstance(mark, dict) and mark.get("elem_classes") for mark in cleared)
    answer, _, *fields = form.check(Asking("alice"), "outputs", ["real_pod.voice"], *empty_values(form))
    marked = dict(zip(((f.group, f.path) for f in form._declared), fields, strict=True))
    assert marked["outputs", "source.repo"]["info"].endswith("or upload a zip of recordings.")


def test_a_repo_that_is_not_there_is_said_at_its_field_and_the_same_repo_is_not_asked_for_twice(
    site_of: Build, hub_client: Any
) -> None:
    form = tab_method(site_of(everybody="alice", tabs=True), "SubmitTab.submit")
    values = empty_values(form)
    place = form._declared.index(next(field for field in form._declared if field.path == "source.repo"))

    def leave(repo: str, written: Any) -> list[Any]:
        values[place] = repo
        return list(form.fill_new(Asking("alice"), "model", ["real_pod.voice"], written, *values))

    missing = leave("alice/none", {})[3 + place]
    assert (missing["elem_classes"], "alice/none" in missing["info"]) == (["wrong"], True)
    assert leave("not a name", {})[3 + place]["elem_classes"] == ["wrong"]
    model(hub_client)
    answer, tracks, written, *fields = leave("https://huggingface.co/alice/tiny-voice", {})
    assert "It will be run as VITS" in answer
    assert (tracks, written["source.repo"]) == (["real_pod.voice"], "alice/tiny-voice")
    assert fields[place]["value"] == "alice/tiny-voice"
    hub_client.repos.publish("models", "alice/tiny-voice", {})
    assert all("value" not in update for update in leave("alice/tiny-voice", written)), "nothing is filled in again"
    assert all("value" not in update for update in leave("", {}))


def test_a_second_repo_replaces_what_the_first_one_filled_in_and_nothing_that_a_visitor_typed(
    site_of: Build, hub_client: Any
) -> None:
    model(hub_client)
    card = model_files()["README.md"].replace(b"apache-2.0", b"mit").replace(b"language: en", b"language: de")
    hub_client.repos.publish("models", "bob/other-voice", model_files(**{"README.md": card}))
    form = tab_method(site_of(everybody="alice", tabs=True), "SubmitTab.submit")
    paths = [f"{field.group}:{field.path}" for field in form._declared]
    values: dict[str, Any] = dict.fromkeys(paths, "") | {
        f"{field.group}:{field.path}": field.choices[0] if field.choices else False
        for field in form._declared
        if field.looks in ("choice", "flag")
    }

    def fill_in(repo: str, written: Any) -> Any:
        values["model:source.repo"] = repo
        _, _, now, *updates = form.fill(Asking("alice"), "model", [], written, *values.values())
        values.update({path: new["value"] for path, new in zip(paths, updates, strict=True) if "value" in new})
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
        ({"modeling.py": b"print(1)"}, "", "contains modeling.py"),
    ],
)
def test_a_repo_is_said_at_once_to_run_as_what_or_why_it_cannot_be_run(
    hub_client: Any, database: Database, tmp_path: Path, changes: dict[str, bytes], runs_as: str, reason: str
) -> None:
    from services import Services

    from podeval.submissions.author_kit import give_verdict

    desk = Services(tmp_path / "board", database, None).desk  # type: ignore[arg-type]
    told = give_verdict(desk, model(hub_client, **changes), None)
    assert told["runs_as"] == runs_as
    if runs_as:
        assert [run["items"] for run in told["runs"]] == [51]
        assert told["reasons"] == []
    else:
        assert any(reason in each["message"] for each in told["reasons"]), told["reasons"]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ("It will be run as VITS:", "Real-Pod · topics: 51 scripts", "at most 2 hours", "at most 3.00 USD")),
        ("zh", ("将作为 VITS 运行：", "51 份脚本", "最多运行 2小时", "最多花费 3.00 美元")),
    ],
)
def test_as_what_for_how_long_and_for_how_much_a_repo_would_run_is_said_as_it_is_filled_in(
    site_of: Build, hub_client: Any, monkeypatch: pytest.MonkeyPatch, language: str, sentences: tuple[str, ...]
) -> None:
    from huggingface_hub import HfApi

    from podeval.runs.hf_jobs import HfJobs

    form = tab_method(site_of(everybody="alice", tabs=True), "SubmitTab.submit", language)
    jobs = HfJobs(f"docker.io/lab/podeval@sha256:{'0' * 64}", "a10g-large", "lab", client=HfApi(token="hf_secret"))
    monkeypatch.setattr(form, "_jobs", lambda: jobs)
    repo = model(hub_client)["source"]["repo"]
    at = [f"{field.group}:{field.path}" for field in form._declared]
    values = [repo if path == "model:source.repo" else "" for path in at]
    asking = Asking("alice", language)
    answer = form.fill(asking, "model", [], {}, *values)[0].replace("\xa0", " ")
    assert [each for each in sentences if each not in answer] == [], answer


def test_the_form_has_every_field_of_the_document_that_a_stranger_can_fill_in(
    as_person: People, site_of: Build
) -> None:
    placed = [str(block.elem_id) for block in site_of(tabs=True).state.gate.apps["en"].get_blocks().blocks.values()]
    schema = as_person().get("/submit/schema.json").json()["$defs"]
    expected = {f"system.{name}" for name in schema["System"]["properties"]} - {"system.links"}
    expected |= {f"system.links.{name}" for name in schema["Links"]["properties"]}
    expected |= {f"source.{name}" for name in schema["Model"]["properties"]} - {"source.kind", "source.base"}
    expected -= {"source.publish", "source.consent"}
    expected |= {f"source.consent.{name}" for name in schema["Consent"]["properties"]}
    expected |= {"source.base.repo", "source.base.revision"}
    expected |= {f"source.publish.{name}" for name in schema["Publish"]["properties"]}
    expected |= {f"source.made_by.{name}" for name in ("repo", "revision", "task", "base.repo")}
    for path in expected:
        assert any(name.endswith(f"-{path.replace('.', '-')}") for name in placed), path


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
