"""The gate against repos on a loopback Hub, asked by the real client: a refusal names its rule and what to change."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podeval.hub.retry import HubUnavailable
from podeval.submissions.gate import Gate
from podeval.submissions.rules import RULES, GateLimits, SubmissionRefused
from podeval.systems.submission import Submission
from tests.submissions.conftest import model_files, safetensors

Submitted = Callable[..., Submission]


def refused(document: Submission, gate: Gate | None = None, path: Path | None = None) -> dict[str, str]:
    """Messages by rule."""
    with pytest.raises(SubmissionRefused) as caught:
        (gate or Gate()).check(document, path)
    assert caught.value.rule in RULES
    return {refusal.rule: refusal.message for refusal in caught.value.refusals}


def test_a_plain_model_passes_and_is_pinned(submitted: Submitted) -> None:
    document = submitted()
    pinned = Gate().check(document)
    assert (pinned.repo, pinned.revision) == ("alice/tiny-voice", document.source.revision)  # type: ignore[union-attr]
    assert (pinned.parameters, pinned.base, pinned.licence) == (6, None, "Apache-2.0")
    assert pinned.weight_bytes > 24


def test_the_voices_of_a_qwen_omni_are_a_pickle_that_is_looked_at_when_it_is_fetched(submitted: Submitted) -> None:
    own = {"spk_dict.pt": b"x", "config.json": b'{"model_type": "qwen2_5_omni", "enable_audio_output": true}'}
    Gate().check(submitted(changes=own))


def test_what_is_fetched_beside_the_weights_is_bounded_too(submitted: Submitted) -> None:
    document = submitted(changes={"vocab.txt": b"x" * 900, "tokenizer.txt": b"x" * 900, "demo.wav": b"x" * 9_000})
    message = refused(document, Gate(limits=GateLimits(other_bytes=1_500)))["volume"]
    assert "configs, tokenizers and voices next to the weights take 0.0 GB" in message
    Gate(limits=GateLimits(other_bytes=8_000)).check(document)


def test_nothing_of_the_weights_but_their_headers_is_downloaded(submitted: Submitted, hub_client: Any) -> None:
    Gate().check(submitted())
    requests = [path for method, path, _ in hub_client.requests if method == "GET" and path.endswith(".safetensors")]
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("changes", "rule", "told"),
    [
        (
            {"README.md": b"---\nlicense: mit\n---\n" + b"x" * 300},
            "licence",
            "states mit, but system.licence states Apache-2.0",
        ),
        ({"README.md": b"# A card\n" + b"x" * 300}, "licence", "states no licence; add `license: …`"),
        ({"README.md": b"---\nlicense: apache-2.0\n---\nHi."}, "card", "README.md with at least 200 characters"),
        ({"README.md": None}, "card", "say what it is"),
        ({"README.md": b"---\n{[\n---\n" + b"x" * 300}, "licence", "states no licence"),
        ({"README.md": b"---\nx: !!bool maybe\n---\n" + b"x" * 300}, "licence", "states no licence"),
        ({"README.md": b"---\nx: !!int ''\n---\n" + b"x" * 300}, "licence", "states no licence"),
        ({"model.safetensors": None}, "safetensors", "has no .safetensors file; save it with save_pretrained"),
        ({"pytorch_model.bin": b"x"}, "safetensors", "pytorch_model.bin, which can run code when read"),
        ({"voices/a.pt": b"x"}, "safetensors", "contains voices/a.pt"),
        ({"spk_dict.pt": b"x"}, "safetensors", "contains spk_dict.pt"),
        (
            {"voices/spk_dict.pt": b"x", "config.json": b'{"model_type": "qwen2_5_omni"}'},
            "safetensors",
            "contains voices/spk_dict.pt",
        ),
        ({"model.safetensors": b"\xff" * 40}, "safetensors", "the header of model.safetensors cannot be read"),
        (
            {
                "model.safetensors": struct.pack("<Q", 88)
                + b'{"w": {"dtype": "F32", "shape": [99], "data_offsets": [0, 396]}}'.ljust(88)
            },
            "safetensors",
            "is 96 bytes, but its header states 396; upload the whole file",
        ),
        ({"modeling.py": b"import os"}, "code", "contains modeling.py; remove all code"),
        ({"tools/run.sh": b"rm"}, "code", "contains tools/run.sh"),
        (
            {"config.json": b'{"auto_map": {"AutoModel": "modeling.X"}}'},
            "remote_code",
            "config.json of alice/tiny-voice has auto_map",
        ),
        ({"tokenizer_config.json": b'{"a": [{"auto_map": 1}]}'}, "remote_code", "tokenizer_config.json of"),
        ({"config.json": None}, "task", "has no config.json"),
    ],
)
def test_a_repo_that_breaks_a_rule_is_refused_by_that_rule(
    submitted: Submitted, changes: dict[str, bytes | None], rule: str, told: str
) -> None:
    assert told in refused(submitted(changes=changes))[rule]


def test_all_that_is_wrong_is_told_at_once(submitted: Submitted) -> None:
    result = refused(
        submitted(changes={"README.md": None, "a.py": b"", "b.pkl": b"", "config.json": b'{"auto_map": 1}'})
    )
    assert set(result) == {"licence", "card", "code", "safetensors", "remote_code"}


def test_a_repo_or_a_commit_that_is_not_there(submitted: Submitted) -> None:
    assert "the model repo alice/other does not exist or is private" in refused(submitted(repo="alice/other"))["exists"]
    assert "has no commit ffff" in refused(submitted(revision="f" * 40))["exists"]


def test_private_and_gated_repos_are_not_run(submitted: Submitted, hub_client: Any) -> None:
    document = submitted()
    repo = hub_client.repos.repos["models", "alice/tiny-voice"]
    repo.gated = True
    result = refused(document)
    assert "is gated" in result["readable"]
    repo.gated, repo.private = False, True
    assert {"exists", "readable"} & set(refused(document))


def test_the_commit_of_a_strangers_pull_request_is_not_the_owners(submitted: Submitted, hub_client: Any) -> None:
    submitted()
    repo = hub_client.repos.repos["models", "alice/tiny-voice"]
    foreign = repo.propose({**repo.at("main")[1], "extra.txt": b"x"}, "better weights")
    document = submitted(revision=foreign)
    assert "is not in the history of main" in refused(document)["pinned"]


def test_an_older_commit_of_main_may_be_submitted(submitted: Submitted, hub_client: Any) -> None:
    document = submitted()
    repo = hub_client.repos.repos["models", "alice/tiny-voice"]
    repo.commit({**repo.at("main")[1], "later.py": b"x"}, "later")
    assert Gate().check(document).revision == repo.history[0]


def test_size_is_judged_by_the_headers_against_the_boards_limits(submitted: Submitted) -> None:
    document = submitted()
    assert "0.0 billion parameters, and this board runs" in refused(document, Gate(GateLimits(parameters=5)))["size"]
    assert "submit a smaller model, or the outputs" in refused(document, Gate(GateLimits(weight_bytes=20)))["size"]


def test_a_task_that_does_not_do_the_track_is_refused_with_one_that_does(submitted: Submitted) -> None:
    message = refused(submitted(task="script-writer"))["task"]
    assert "a script-writer model cannot do the track voice of real_pod, but podcast, text-to-speech can" in message


@pytest.fixture
def adapter(submitted: Submitted, hub_client: Any) -> Callable[..., Submission]:
    """An adapter repo on bob/base."""

    def make(stated: Any = "bob/base", base: dict[str, bytes | None] | None = None, **source: Any) -> Submission:
        if base is not None:
            hub_client.repos.publish("models", "bob/base", model_files(**base))
        changes = {
            "config.json": None,
            "model.safetensors": None,
            "adapter_model.safetensors": safetensors((4,)),
            "adapter_config.json": json.dumps({"base_model_name_or_path": stated, "revision": None}).encode(),
        }
        return submitted(changes=changes, **source)

    return make


def test_an_adapters_base_is_resolved_checked_and_pinned(adapter: Callable[..., Submission], hub_client: Any) -> None:
    pinned = Gate().check(adapter(base={}))
    assert pinned.base == {"repo": "bob/base", "revision": hub_client.repos.repos["models", "bob/base"].refs["main"]}
    assert pinned.parameters == 10


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"stated": "../../etc", "base": {}}, "names no repo as base_model_name_or_path"),
        ({"stated": None, "base": {}}, "names no repo as base_model_name_or_path"),
        ({"stated": "bob/gone", "base": {}}, "the base bob/gone cannot be used: the model repo bob/gone"),
        ({"base": {"run.py": b"x"}}, "bob/base, which it adapts, does not pass (code: bob/base contains run.py"),
        ({"base": {"model.bin": b"x"}}, "does not pass (safetensors: bob/base contains model.bin"),
        ({"base": {"adapter_config.json": b"{}"}}, "it is an adapter itself; merge it first"),
        (
            {"base": {}, "base_named": {"repo": "bob/elsewhere", "revision": "a" * 40}},
            "names bob/base as its base, but source.base names bob/elsewhere; make them the same",
        ),
    ],
)
def test_an_adapter_on_a_base_that_cannot_be_trusted_is_refused(
    adapter: Callable[..., Submission], options: dict[str, Any], told: str
) -> None:
    names = options.pop("base_named", None)
    result = adapter(**options).model_dump(mode="json")
    result["source"]["base"] = names
    assert told in refused(Submission.model_validate(result))["base"]


def test_a_base_that_nothing_adapts_is_refused(submitted: Submitted) -> None:
    assert "is not an adapter" in refused(submitted(base={"repo": "bob/base", "revision": "a" * 40}))["base"]


def test_outputs_of_every_item_in_a_dataset_repo_pass(
    outputs_document: Submitted, hub_client: Any, topics_outputs: dict[str, bytes]
) -> None:
    card = b"---\nlicense: cc-by-4.0\n---\n" + b"Made with care. " * 20
    repo = hub_client.repos.publish("datasets", "alice/outputs", {"README.md": card, **topics_outputs})
    pinned = Gate().check(outputs_document(repo="alice/outputs", revision=repo.refs["main"]))
    assert (pinned.repo, pinned.output_bytes > 0) == ("alice/outputs", True)


@pytest.fixture
def folder(tmp_path: Path, topics_outputs: dict[str, bytes]) -> Path:
    path = tmp_path / "audio"
    path.mkdir()
    for name, data in topics_outputs.items():
        (path / name).write_bytes(data)
    return path


def test_a_folder_of_outputs_passes_also_by_benchmark_and_split(
    outputs_document: Submitted, folder: Path, tmp_path: Path
) -> None:
    assert Gate().check(outputs_document(folder="audio"), tmp_path).output_bytes == 204
    inner = tmp_path / "audio/real_pod/topics"
    inner.mkdir(parents=True)
    for path in folder.glob("*.flac"):
        path.rename(inner / path.name)
    Gate().check(outputs_document(folder="audio"), tmp_path)


def test_a_manifest_is_read_for_what_it_leaves_out_and_where_it_leads(
    outputs_document: Submitted, folder: Path, tmp_path: Path
) -> None:
    items = sorted(path.stem for path in folder.glob("*.flac"))
    lines = [{"item": item, "audio": f"{item}.flac"} for item in items]
    manifest = folder / "manifest.jsonl"
    manifest.write_text("\n".join(map(json.dumps, lines)))
    Gate().check(outputs_document(folder="audio"), tmp_path)
    manifest.write_text("\n".join(map(json.dumps, lines[1:])))
    assert "has no entry for 1 of 51 outputs" in refused(outputs_document(folder="audio"), None, tmp_path)["manifest"]
    lines[0]["audio"] = "../../../etc/passwd"
    manifest.write_text("\n".join(map(json.dumps, lines)))
    assert "names '../../../etc/passwd'" in refused(outputs_document(folder="audio"), None, tmp_path)["names"]
    lines[0]["audio"] = "nowhere.flac"
    manifest.write_text("\n".join(map(json.dumps, lines)))
    assert "names nowhere.flac" in refused(outputs_document(folder="audio"), None, tmp_path)["manifest"]
    manifest.write_text("{not json")
    assert "line 1: Invalid JSON" in refused(outputs_document(folder="audio"), None, tmp_path)["manifest"]


def test_outputs_that_are_not_whole_are_refused(outputs_document: Submitted, folder: Path, tmp_path: Path) -> None:
    document, gate = outputs_document(folder="audio"), Gate()
    first = sorted(folder.glob("*.flac"))[0]
    (folder / f"{first.stem}.wav").write_bytes(b"x")
    assert "in more than one format; keep only one" in refused(document, gate, tmp_path)["manifest"]
    (folder / f"{first.stem}.wav").unlink()
    first.write_bytes(b"")
    assert "is empty; upload it again" in refused(document, gate, tmp_path)["audio"]
    first.unlink()
    assert (
        f"1 of 51 outputs of real_pod/topics are missing, such as {first.name}"
        in refused(document, gate, tmp_path)["manifest"]
    )


def test_links_and_odd_files_are_refused(outputs_document: Submitted, folder: Path, tmp_path: Path) -> None:
    document = outputs_document(folder="audio")
    first = sorted(folder.glob("*.flac"))[0]
    outside = tmp_path / "secret"
    outside.write_text("x")
    for make in (
        lambda: first.symlink_to(outside),
        lambda: os.link(outside, first),
        lambda: os.mkfifo(first),
    ):
        first.unlink()
        make()
        assert "is a link or not a regular file" in refused(document, None, tmp_path)["names"]
    first.unlink()
    (folder / "a\nb.flac").write_bytes(b"x")
    assert "is not a plain path" in refused(document, None, tmp_path)["names"]


def test_outputs_over_the_limits_are_refused(outputs_document: Submitted, folder: Path, tmp_path: Path) -> None:
    result = refused(outputs_document(folder="audio"), Gate(GateLimits(output_bytes=20)), tmp_path)
    assert "send FLAC, and only the outputs" in result["volume"]
    result = refused(outputs_document(folder="audio"), Gate(GateLimits(output_file_bytes=3)), tmp_path)
    assert "for one file" in result["volume"]


def test_a_board_for_everybody_takes_no_folders(outputs_document: Submitted, folder: Path, tmp_path: Path) -> None:
    reasons = refused(outputs_document(folder="audio"), Gate(local=False), tmp_path)
    assert "come from a dataset repo or an upload here, not from a folder" in reasons["exists"]


def test_reported_figures_are_not_run(submitted: Submitted) -> None:
    from podeval.files import locate_hub_source
    from podeval.systems.submission_reading import load

    assert (
        "put the folder under submissions/" in refused(load(locate_hub_source("submissions") / "podagent"))["document"]
    )


def test_a_hub_that_is_down_refuses_nothing_but_says_so(submitted: Submitted, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi

    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(HubUnavailable, match="does not answer as expected"):
        Gate(api=HfApi(endpoint="http://127.0.0.1:1")).check(submitted())


def test_the_page_for_submitters_names_every_rule_of_the_gate() -> None:
    page = (Path(__file__).parents[2] / "docs/submitting.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for rule, asks in RULES.items():
        assert f"| `{rule}` | {asks} |" in rows


CONSENT = {"clones": True, "whose": ["Ada Example"], "permission": "Signed consent, https://example.org/consent"}


@pytest.mark.parametrize(
    ("consent", "told"),
    [
        (None, "contains voices/a.npy, which look like reference voices; state under source.consent"),
        ({"clones": True}, "list their owners under source.consent.whose"),
        ({**CONSENT, "permission": None}, "source.consent.permission what they permitted"),
        ({**CONSENT, "whose": []}, "source.consent.whose"),
        ({"whose": ["Ada Example"]}, "source.consent.permission"),
    ],
)
def test_voices_that_are_not_the_benchmarks_need_consent(
    submitted: Submitted, consent: dict[str, Any] | None, told: str
) -> None:
    assert told in refused(submitted(changes={"voices/a.npy": b"x"}, consent=consent))["consent"]


def test_whose_voices_are_cloned_and_that_none_are_is_said_once(submitted: Submitted) -> None:
    for consent in (CONSENT, {"clones": False}):
        Gate().check(submitted(changes={"voices/a.npy": b"x"}, consent=consent))
    Gate().check(submitted())


def test_outputs_that_clone_say_whose_voices(
    outputs_document: Callable[..., Submission], topics_outputs: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "audio").mkdir()
    for name, content in topics_outputs.items():
        (tmp_path / "audio" / name).write_bytes(content)
    message = refused(outputs_document(folder="audio", consent={"clones": True}), path=tmp_path)["consent"]
    assert "reference voices other than the benchmark's are cloned" in message
    plain = outputs_document(folder="audio", consent=CONSENT)
    assert Gate().check(plain, tmp_path).content == Gate().check(outputs_document(folder="audio"), tmp_path).content


def test_consent_does_not_make_another_submission_of_the_same(submitted: Submitted) -> None:
    from podeval.submissions.source_files import digest

    old = submitted().model_dump(mode="json")
    stored = {**old, "source": {name: value for name, value in old["source"].items() if name != "consent"}}
    stated = {**old, "source": {**old["source"], "consent": CONSENT}}
    assert digest(stored, "embedded") == digest(old, "embedded") == digest(stated, "embedded")
