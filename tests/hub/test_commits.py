"""Files added to repos on a loopback Hub by the real client: never changed, never lost, never there twice."""

import threading
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.hub.commits import AppendOnly, Conflict
from podeval.hub.retry import HubUnavailable

REPO = "podeval/requests"


@pytest.fixture
def api(hub_client: Any) -> Any:
    from huggingface_hub import HfApi

    return HfApi(token="hf_x")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses are noted, not made."""
    made: list[float] = []
    monkeypatch.setattr("time.sleep", made.append)
    return made


@pytest.fixture
def repo(api: Any) -> AppendOnly:
    return AppendOnly(REPO, api=api)


def test_files_come_in_one_commit_and_the_same_again_changes_nothing(repo: AppendOnly, hub_client: Any) -> None:
    assert repo.files() == ("", set())
    assert repo.add({"a/1.json": b"one", "a/2.json": b"two"}, "two")
    assert repo.add({"a/1.json": b"one", "a/2.json": b"two"}, "two") is None
    commit = repo.add({"a/2.json": b"two", "a/3.json": b"three"}, "one more")
    there = hub_client.repos.repos["datasets", REPO]
    assert there.messages == ["initial commit", "two", "one more"]
    assert repo.files() == (commit, {".gitattributes", "a/1.json", "a/2.json", "a/3.json"})
    assert repo.read("a/3.json", str(commit)) == b"three"


def test_files_are_listed_once_however_many_are_read(repo: AppendOnly, hub_client: Any) -> None:
    repo.add({str(number): b"%d" % number for number in range(5)}, "five")
    hub_client.requests.clear()
    commit, there = repo.files()
    assert {repo.read(path, commit) for path in there - {".gitattributes"}} == {b"0", b"1", b"2", b"3", b"4"}
    assert sum(path.startswith("/api/") for _, path, _ in hub_client.requests) == 1


@pytest.mark.parametrize("trouble", ["half", "dropped", 503])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_file_that_does_not_come_whole_is_asked_for_again(
    repo: AppendOnly, hub_client: Any, trouble: str | int, method: str
) -> None:
    commit = str(repo.add({"a": b"one"}, "first"))
    left = [trouble] * 2
    hub_client.trouble = lambda asked, path: left.pop() if left and asked == method and "/resolve/" in path else None
    assert repo.read("a", commit) == b"one"
    assert left == []


@pytest.mark.parametrize("status", [409, 412])
def test_who_met_another_waits_before_looking_again(
    repo: AppendOnly, hub_client: Any, at_once: list[float], status: int
) -> None:
    repo.add({"a": b"one"}, "first")
    hub_client.repos.faults.extend([status] * 3)
    assert repo.add({"b": b"two"}, "second")
    assert len(at_once) == 3
    assert 0 < at_once[0] < at_once[1] < at_once[2]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_told_at_once(repo: AppendOnly, hub_client: Any, at_once: list[float], status: int) -> None:
    commit = str(repo.add({"a": b"one"}, "first"))
    hub_client.trouble = lambda method, path: status
    with pytest.raises(BadInput, match="check that the token may read"):
        repo.files()
    with pytest.raises(BadInput, match="check that the token may read"):
        repo.read("a", commit)
    hub_client.trouble = lambda method, path: status if method == "POST" else None
    with pytest.raises(BadInput, match="check that the token may write"):
        repo.add({"b": b"two"}, "second")
    assert at_once == []


def test_who_has_no_token_or_no_access_is_told(api: Any, hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi

    monkeypatch.setattr("huggingface_hub.hf_api.get_token", lambda: None)
    with pytest.raises(BadInput, match="you are not signed in to the Hub"):
        AppendOnly(REPO, api=HfApi(token=True)).add({"a": b""}, "first")
    hub_client.repos.publish("datasets", REPO, {"a": b""}).private = True
    with pytest.raises(BadInput, match="check that the token may"):
        AppendOnly(REPO, api=HfApi(token=False)).add({"b": b""}, "second")


def test_what_is_there_is_never_changed(repo: AppendOnly) -> None:
    repo.add({"a": b"one"}, "first")
    with pytest.raises(Conflict, match="already contains a different a; files in it are never changed"):
        repo.add({"a": b"other", "b": b"new"}, "second")
    assert "b" not in repo.files()[1]


@pytest.mark.parametrize("faults", [[503], [429, 500, 502], [504, 503, 503]])
def test_rate_limits_and_outages_lose_and_double_nothing(repo: AppendOnly, hub_client: Any, faults: list[int]) -> None:
    repo.add({"a": b"one"}, "first")
    hub_client.repos.faults.extend(faults)
    repo.add({"b": b"two"}, "second")
    assert hub_client.repos.repos["datasets", REPO].messages == ["initial commit", "first", "second"]
    assert hub_client.repos.faults == []


def test_a_commit_whose_answer_was_lost_is_not_made_again(
    repo: AppendOnly, hub_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.add({"a": b"one"}, "first")
    real, lost = hub_client.repos._commit, [True]

    def done_but_not_said(*given: Any, **named: Any) -> Any:
        answer = real(*given, **named)
        if lost:
            lost.pop()
            return type(answer).error("Unavailable", 503)
        return answer

    monkeypatch.setattr(hub_client.repos, "_commit", done_but_not_said)
    assert repo.add({"b": b"two"}, "second") is None
    assert hub_client.repos.repos["datasets", REPO].messages == ["initial commit", "first", "second"]


def test_of_writers_that_meet_each_looks_again_and_all_files_are_there(api: Any, hub_client: Any) -> None:
    AppendOnly(REPO, api=api).add({"start": b""}, "start")
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            AppendOnly(REPO, api=api).add({f"file {number}": b"%d" % number}, f"by {number}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    there = hub_client.repos.repos["datasets", REPO]
    assert sorted(there.messages[2:]) == ["by 0", "by 1", "by 2"]
    assert {"file 0", "file 1", "file 2"} <= set(there.at("main")[1])


def test_an_outage_without_end_is_said(repo: AppendOnly, hub_client: Any) -> None:
    repo.add({"a": b"one"}, "first")
    hub_client.repos.faults.extend([503] * 50)
    with pytest.raises(HubUnavailable, match="try again later"):
        repo.add({"b": b"two"}, "second")
