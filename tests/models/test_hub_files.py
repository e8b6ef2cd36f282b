"""Model files come from the Hub at one commit, are opened from the cache only, and every refusal says what to do."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput, ModelMissing
from podeval.models.card import HubRepo

COMMIT = "a" * 40
REPO = HubRepo("someone/voices", COMMIT, ("config.json", "plda/xvec.npz"))


@pytest.fixture
def published(hub_client: Any, tmp_path: Path) -> Any:
    folder = tmp_path / "repo"
    (folder / "plda").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "plda/xvec.npz").write_bytes(b"weights")
    hub_client.publish("someone/voices", COMMIT, folder)
    return hub_client


def install(repo: HubRepo) -> list[str]:
    said: list[str] = []
    repo.install(said.append)
    return said


def test_what_was_installed_is_found_in_one_folder_and_not_asked_for_again(published: Any) -> None:
    assert REPO.missing() == REPO.files
    said = install(REPO)
    assert [line.split()[-1] for line in said] == list(REPO.files)
    folder = REPO.folder("podeval models install")
    assert (folder / "plda/xvec.npz").read_bytes() == b"weights"
    asked = len(published.requests)
    assert install(REPO) == []
    assert len(published.requests) == asked


def test_a_file_that_is_absent_names_the_command(published: Any) -> None:
    with pytest.raises(ModelMissing, match=r"someone/voices is not on this machine \(config.json, .*run `the command`"):
        REPO.folder("the command")


def test_pinned_content_is_checked_before_it_is_opened(published: Any) -> None:
    good = HubRepo(REPO.id, COMMIT, REPO.files, sha256={"plda/xvec.npz": hashlib.sha256(b"weights").hexdigest()})
    bad = HubRepo(REPO.id, COMMIT, REPO.files, sha256={"plda/xvec.npz": "0" * 64})
    install(good)
    assert good.folder("x")
    with pytest.raises(ModelMissing, match="not the pinned file"):
        bad.folder("x")


@pytest.mark.parametrize(
    ("repo", "reason"),
    [
        (HubRepo("someone/voices", "b" * 40, ("config.json",)), "does not contain config.json at revision bbbb"),
        (HubRepo("someone/voices", COMMIT, ("other.json",)), "does not contain other.json at "),
        (HubRepo("nobody/nothing", COMMIT, ("config.json",)), "https://huggingface.co/nobody/nothing does not exist"),
    ],
)
def test_what_the_hub_does_not_have_is_a_sentence(published: Any, repo: HubRepo, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        install(repo)


def test_a_gated_repo_says_where_to_accept_its_terms(published: Any) -> None:
    published.repos.repos["models", "someone/voices"].gated = True
    with pytest.raises(BadInput, match=r"accept its terms at https://huggingface.co/someone/voices"):
        install(REPO)


def test_a_hub_out_of_reach_is_a_sentence(hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants, file_download

    for place in (constants, file_download):
        monkeypatch.setattr(
            place,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}",
            raising=False,
        )
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(BadInput, match="cannot be reached"):
        install(REPO)
