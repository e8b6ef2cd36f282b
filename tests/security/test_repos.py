"""What a repo on the Hub may do to who looks it over: names, cards, configs and headers are its owner's word."""

import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.hub import repo_info as hub
from podeval.hub.repo_info import RepoFacts, SafetensorsFile, parse_header
from podeval.submissions.gate import Gate, check_repo
from podeval.submissions.rules import GateLimits, SubmissionRefused
from podeval.systems.adapters import outputs, snapshot
from podeval.systems.submission import Submission
from tests.fakes.bounded_memory import bounded_memory
from tests.submissions.conftest import document, model_files


@pytest.fixture
def published(hub_client: Any) -> Callable[[dict[str, bytes]], Submission]:
    """A model repo with some of its files changed, and the document that submits it."""

    def publish(changes: dict[str, bytes]) -> Submission:
        repo = hub_client.repos.publish("models", "alice/tiny-voice", model_files(**changes))
        return Submission.model_validate(document(revision=repo.refs["main"]))

    return publish


def rules(document: Submission) -> set[str]:
    """The rules that are not kept."""
    with pytest.raises(SubmissionRefused) as caught:
        Gate().check(document)
    return {refusal.rule for refusal in caught.value.refusals}


def header(entries: dict[str, Any]) -> bytes:
    content = json.dumps(entries).encode()
    return struct.pack("<Q", len(content)) + content


def test_a_card_of_lists_of_lists_is_not_written_out() -> None:
    """`&a [x, x]`, `&b [*a, *a]` … is a page of YAML and 2**40 words."""
    import yaml

    bomb = "[" + ", ".join(["&a0 [x, x]", *(f"&a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]) + "]"
    card = yaml.safe_load(f"license: other\nlicense_name: {bomb}")
    result = RepoFacts("a/b", "0" * 40, False, False, True, files={}, card=card, card_text="x" * 300)
    refusals = list(check_repo(result, "Apache-2.0", GateLimits()))
    del result, card  # else a failure would write them out
    assert [refusal.message for refusal in refusals] == [
        "the card of a/b states other, but system.licence states Apache-2.0; make them the same"
    ]


def test_a_config_nested_as_deep_as_json_can_be_is_looked_through(published: Callable[..., Submission]) -> None:
    deep = b'{"a":' * 480 + b'{"auto_map": {"AutoModel": "x.X"}}' + b"}" * 480
    assert "remote_code" in rules(published({"config.json": deep}))
    assert "auto_map" in snapshot.collect_keys(json.loads(deep))


def test_a_config_nested_deeper_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(header({}))
    for depth in (480, 5_000):
        (tmp_path / "config.json").write_bytes(b"[" * depth + b'{"auto_map": 1}' + b"]" * depth)
        with pytest.raises(BadInput, match=r"auto_map|not JSON"):
            snapshot.check_files(tmp_path)


def test_more_configs_than_a_model_has_are_not_fetched(published: Callable[..., Submission], hub_client: Any) -> None:
    many = {f"config_{number}.json": b"{}" for number in range(60)}
    assert "volume" in rules(published(many))
    requests = [path for method, path, _ in hub_client.requests if method == "GET" and "config_" in path]
    assert not requests


def test_weights_in_more_files_than_are_read_are_refused_and_not_half_counted(
    published: Callable[..., Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "SHARDS_MOST", 2)
    small = header({"w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})
    assert "safetensors" in rules(published({f"a{number}.safetensors": small for number in range(3)}))


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": "F32", "shape": [10**400], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-(10**12)], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": ["9", 9], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, "4"]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0]},
        {"dtype": "F32", "shape": 1, "data_offsets": None},
        {"dtype": "F32", "shape": [1e308, 10], "data_offsets": [0, 4]},
        [],
        "x",
    ],
)
def test_a_header_that_speaks_of_what_cannot_be_is_unreadable(
    published: Callable[..., Submission], tensor: Any
) -> None:
    assert "safetensors" in rules(published({"model.safetensors": header({"w": tensor}) + b"\0" * 4}))


def write_entries(names: list[str], shape: list[int], size: int) -> dict[str, Any]:
    """Tensors one after the other, as safetensors writes them."""
    return {
        name: {"dtype": "I32", "shape": shape, "data_offsets": [place * size, (place + 1) * size]}
        for place, name in enumerate(names)
    }


def test_the_largest_headers_of_real_models_are_read() -> None:
    """Qwen3-30B-A3B as GPTQ in a single file: 48 layers of 128 experts, three matrices each, as four tensors."""
    parts = [f"{matrix}_proj.{kind}" for matrix in ("gate", "up", "down") for kind in ("qweight", "qzeros", "scales")]
    names = [
        f"model.layers.{layer}.mlp.experts.{expert}.{part}"
        for layer in range(48)
        for expert in range(128)
        for part in (*parts, "gate_proj.g_idx", "up_proj.g_idx", "down_proj.g_idx")
    ]
    content = json.dumps(write_entries(names, [256, 768], 786_432), separators=(",", ":")).encode()
    assert len(content) > 9_000_000
    assert parse_header(content) == SafetensorsFile(73_728 * 256 * 768, 73_728 * 786_432)


def test_a_header_longer_than_the_first_request_is_read_whole(published: Callable[..., Submission]) -> None:
    names = [f"decoder.layers.{number}.weight" for number in range(3_000)]
    weights = header(write_entries(names, [10], 40)) + bytes(120_000)
    assert len(weights) - 120_000 > 200_000
    assert Gate().check(published({"model.safetensors": weights})).parameters == 30_000
    assert "safetensors" in rules(published({"model.safetensors": weights[:150_000]}))
    assert "safetensors" in rules(published({"model.safetensors": weights[:5]}))


@pytest.mark.parametrize(
    "content",
    [
        b'{"w": [' + b"[]," * 8_000_000 + b"0]}",
        b'{"w": [' + b'{"":{}},' * 400_000 + b"0]}",
        b'{"w": {"dtype": "F32", "data_offsets": [0, 4], "shape": [' + (b"9" * 4_000 + b",") * 1_500 + b"9]}}",
        b'{"w": {"dtype": "F32", "data_offsets": [0, 4], "shape": [' + b"123456789012345678," * 400_000 + b"9]}}",
    ],
    ids=["lists", "objects", "long numbers", "many numbers"],
)
def test_a_header_of_megabytes_takes_neither_memory_nor_time(
    published: Callable[..., Submission], content: bytes
) -> None:
    """Eight million empty lists take 500 MB, and the product of 1,500 numbers of 4,000 digits takes a minute."""
    document = published({"model.safetensors": struct.pack("<Q", len(content)) + content + b"\0" * 4})
    before = time.process_time()
    with bounded_memory(256 * 2**20):
        assert "safetensors" in rules(document)
    assert time.process_time() - before < 10


def test_the_headers_of_all_shards_are_bounded_together(
    published: Callable[..., Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"a{number}.safetensors": header(write_entries(["w"], [1], 4)) + bytes(4) for number in range(4)}
    files |= {"model.safetensors": files["a0.safetensors"]}
    assert Gate().check(published(files)).parameters == 5
    monkeypatch.setattr(hub, "HEADERS_MOST", 200)
    assert "safetensors" in rules(published(files))


def test_configs_of_megabytes_take_no_memory_together(published: Callable[..., Submission]) -> None:
    """Fifty of them, each of 700,000 empty lists, took 2.2 GB of the process that looks a repo over."""
    large = b"[" + b"[]," * 690_000 + b"0]"
    document = published({f"config_{number}.json": large for number in range(40)})
    with bounded_memory(512 * 2**20):
        assert Gate().check(document).parameters


def test_a_history_and_a_list_of_files_without_end_are_not_read_to_their_end(
    hub_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a million commits pushed by one person, the site would keep an object each."""
    monkeypatch.setattr(hub, "_COMMIT_PAGES_MOST", 3)
    repo = hub_client.repos.publish("models", "alice/tiny-voice", model_files())
    for number in range(400):
        repo.commit(model_files(), f"change {number}")
    assert hub.collect_facts(repo.id, repo.history[-149]).on_main
    before = len(hub_client.requests)
    assert rules(Submission.model_validate(document(revision=repo.history[0]))) == {"pinned"}
    assert len([path for _, path, _ in hub_client.requests[before:] if "/commits/" in path]) == 3
    monkeypatch.setattr(hub, "_FILES_MOST", 100)
    repo.commit(model_files() | {f"{number}.txt": b"" for number in range(300)})
    facts = hub.collect_facts(repo.id, repo.refs["main"])
    assert (len(facts.files), facts.weights) == (101, {}), "more than are read, and nothing is read"


def test_a_manifest_that_is_no_list_of_files_is_not_fetched() -> None:
    from podeval.submissions import source_files
    from podeval.submissions.benchmark_entries import RunEntry

    def read(name: str) -> bytes:
        raise AssertionError(f"{name} was fetched")

    entry = RunEntry("real_pod", "demo", "voice")
    result = list(source_files.list_refusals({"manifest.jsonl": 10**9}, [entry], GateLimits(), data=None, read=read))
    assert "larger than 16 MiB" in result[0].message


@pytest.mark.parametrize(
    "content",
    [
        b"\n" * (16 * 2**20 - 1),
        b'{"item":"a","audio":[' + b"[]," * 5_000_000 + b"0]}",
        b"".join(b'{"item":"%d","audio":"a"}\n' % number for number in range(500_000)),
    ],
    ids=["empty lines", "lists", "entries"],
)
def test_a_manifest_takes_memory_by_what_a_board_can_use_of_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / outputs.MANIFEST).write_bytes(content)
    with bounded_memory(200 * 2**20):
        if content.strip():
            with pytest.raises(BadInput, match=r"are allowed|may have at most"):
                outputs.read_manifest(tmp_path)
        else:
            assert outputs.read_manifest(tmp_path) == {}


def test_what_the_site_asks_of_the_hub_carries_nobodys_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    from services import open_services

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    desk = open_services(tmp_path).desk
    assert desk is not None
    assert desk.gate.api is not None
    assert desk.gate.api.token is False
    assert not desk.gate.local


def test_a_repo_is_named_by_two_plain_words() -> None:
    """Addresses, paths and other services' names are no repos: nobody leads the gate to a place of their own."""
    import re

    from podeval.systems.submission import REPO

    for name in (
        "http://127.0.0.1/x",
        "../../etc",
        "a/b/c",
        "a/..",
        "a/b?x",
        "a/b#c",
        "a b/c",
        "@evil/x",
        "a/b@h",
        "a",
    ):
        assert not re.fullmatch(REPO.replace("$", r"\Z"), name), name
