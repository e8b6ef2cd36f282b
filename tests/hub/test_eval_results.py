"""Results in the Hub's own forms, as the real client writes and reads them on a loopback Hub."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from podeval.errors import BadInput
from podeval.hub.eval_results import (
    FILE,
    HubFigure,
    build_model_index,
    list_rows,
    merge_index,
    propose,
    propose_model_index,
    write_eval_results_yaml,
)
from tests.fakes.command import run_command

BOARD = "https://huggingface.co/spaces/podeval/leaderboard"
FIGURES = (
    HubFigure(
        "real_pod", "podeval/real_pod", "demo_speech", "wer.wer", 0.031, "2026-11-22", "embedded; Whisper", "a" * 40
    ),
    HubFigure("real_pod", "podeval/real_pod", "demo_audio", "loudness.integrated", -16.2, "2026-11-22", "embedded"),
)


@pytest.fixture
def api(hub_client: Any) -> Any:
    from huggingface_hub import HfApi

    return HfApi(token="hf_x")


def test_the_file_is_what_the_hubs_client_reads_back() -> None:
    from huggingface_hub._eval_results import parse_eval_result_entries

    entries = parse_eval_result_entries(yaml.safe_load(write_eval_results_yaml(FIGURES, BOARD)))
    assert [(entry.dataset_id, entry.task_id, entry.value) for entry in entries] == [
        ("podeval/real_pod", "demo_speech", 0.031),
        ("podeval/real_pod", "demo_audio", -16.2),
    ]
    assert entries[0].dataset_revision == "a" * 40
    assert entries[0].source_url == BOARD


def answer_with(monkeypatch: pytest.MonkeyPatch, hub_client: Any, rows: list[dict[str, Any]] | None) -> None:
    """Have the Hub answer `GET /api/datasets/…/leaderboard` as its client's own class reads it."""
    from tests.fakes.loopback_server import Answer

    answer = hub_client.repos.answer

    def with_leaderboard(method: str, target: str, headers: Any, body: bytes) -> Any:
        if target.startswith("/api/datasets/podeval/real_pod/leaderboard?"):
            assert "base_model=False" in target or "base_model=false" in target
            return Answer.error("EntryNotFound") if rows is None else Answer.json(rows)
        return answer(method, target, headers, body)

    monkeypatch.setattr(hub_client.repos, "answer", with_leaderboard)


def make_row(rank: int, filename: str = FILE) -> dict[str, Any]:
    author = {"_id": "1", "name": "alice", "type": "user", "fullname": "Alice", "avatarUrl": "/a.svg"}
    row = {
        "rank": rank,
        "modelId": f"alice/tts{rank}",
        "value": 0.5 / rank,
        "filename": filename,
        "verified": rank == 1,
    }
    return {**row, "author": author}


def test_the_hubs_own_leaderboard_is_read_back(api: Any, hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, hub_client, [make_row(1), make_row(2), make_row(3, ".eval_results/other.yaml")])
    assert [row.model_id for row in list_rows("podeval/real_pod", api=api)] == ["alice/tts1", "alice/tts2"]
    assert "#1 alice/tts1: 0.5 (verified)\n#2 alice/tts2: 0.25\n" in run_command(
        "data", "verify", "real_pod", "--on-hub"
    )
    answer_with(monkeypatch, hub_client, None)
    with pytest.raises(BadInput, match="the Hub shows no leaderboard for podeval/real_pod"):
        list_rows("podeval/real_pod", api=api)


def test_a_pull_request_is_opened_once(api: Any, hub_client: Any) -> None:
    repo = hub_client.repos.publish("models", "alice/tts", {"README.md": b"# tts\n"})
    first = propose("alice/tts", FIGURES, BOARD, api=api)
    assert first
    assert first.endswith("alice/tts/discussions/1")
    assert propose("alice/tts", FIGURES, BOARD, api=api) == first
    assert len(repo.proposals) == 1
    assert FILE not in repo.at("main")[1]
    assert yaml.safe_load(repo.at("refs/pr/1")[1][FILE])[0]["value"] == 0.031


def test_what_its_owner_closed_is_not_proposed_again(
    api: Any, hub_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = hub_client.repos.publish("models", "alice/tts", {"README.md": b"# tts\n"})
    first = propose("alice/tts", FIGURES, BOARD, api=api)
    repo.closed.add(1)
    assert propose("alice/tts", FIGURES, BOARD, api=api) == first
    assert propose("alice/tts", FIGURES[:1], BOARD, api=api) != first, "other results are another proposal"


def test_a_card_gets_results_and_keeps_everything_else(api: Any, hub_client: Any) -> None:
    theirs = {"task": {"type": "x"}, "dataset": {"type": "x", "name": "x"}, "metrics": [{"type": "mos", "value": 4.5}]}
    head = {"license": "mit", "model-index": [{"name": "tts", "results": [theirs]}]}
    card = f"---\n{yaml.safe_dump(head)}---\n# tts\n\nSpeaks.\n"
    repo = hub_client.repos.publish("models", "alice/tts", {"README.md": card.encode()})
    first = propose_model_index("alice/tts", "tts", FIGURES, BOARD, api=api)
    assert first
    assert propose_model_index("alice/tts", "tts", FIGURES, BOARD, api=api) == first
    assert len(repo.proposals) == 1
    proposed = repo.at("refs/pr/1")[1]["README.md"].decode()
    _, found, text = proposed.split("---\n", 2)
    assert text == "# tts\n\nSpeaks.\n"
    about = yaml.safe_load(found)
    assert about["license"] == "mit"
    (index,) = about["model-index"]
    assert index["results"][0] == theirs
    values = [metric["value"] for result in index["results"] for metric in result["metrics"]]
    assert values == [4.5, 0.031, -16.2]
    # Merged, and measured again: the earlier figures go, theirs stay.
    newer = [replace(FIGURES[0], value=0.02)]
    merged = merge_index(about["model-index"], build_model_index("tts", newer, BOARD))
    assert [metric["value"] for result in merged[0]["results"] for metric in result["metrics"]] == [4.5, 0.02]
    hub_client.repos.publish("models", "bob/bare", {"config.json": b"{}"})
    with pytest.raises(BadInput, match="bob/bare has no card"):
        propose_model_index("bob/bare", "bare", FIGURES, BOARD, api=api)


def test_nothing_is_proposed_where_the_repo_has_it(api: Any, hub_client: Any) -> None:
    hub_client.repos.publish("models", "alice/tts", {FILE: write_eval_results_yaml(FIGURES, BOARD).encode()})
    assert propose("alice/tts", FIGURES, BOARD, api=api) is None
    with pytest.raises(BadInput, match="there are no results"):
        propose("alice/tts", (), BOARD, api=api)


def test_a_pull_request_survives_an_outage_and_a_lost_answer(
    api: Any, hub_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    repo = hub_client.repos.publish("models", "alice/tts", {"README.md": b"# tts\n"})
    real, lost = hub_client.repos._commit, [True]

    def done_but_not_said(*given: Any, **named: Any) -> Any:
        answer = real(*given, **named)
        return type(answer).error("Unavailable", lost.pop() and 503) if lost else answer

    monkeypatch.setattr(hub_client.repos, "_commit", done_but_not_said)
    hub_client.repos.faults.append(429)
    assert propose("alice/tts", FIGURES, BOARD, api=api)
    assert len(repo.proposals) == 1


def test_the_older_form_can_be_had_too() -> None:
    from huggingface_hub import ModelCardData

    card = ModelCardData(model_name="tts", **{"model-index": build_model_index("tts", FIGURES, BOARD)})
    assert "demo_speech" in str(card.to_dict())
