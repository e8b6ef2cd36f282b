import json
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import snapshot
from tests.fakes.bounded_memory import bounded_memory


@pytest.fixture
def model(tmp_path: Path, tiny: Any) -> Path:
    return Path(tiny.causal_lm(tmp_path / "model"))


def test_what_is_fetched_is_what_a_model_is_made_of(fetched: Any) -> None:
    names = {str(path.relative_to(fetched("lm"))) for path in fetched("lm").rglob("*") if path.is_file()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"} <= names
    assert not {"train.py", "old.bin", "README.md"} & names


def test_a_branch_is_no_pin(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="full commit hash"):
        snapshot.fetch("tester/lm", "main", tmp_path / "new")


def test_a_folder_that_holds_something_is_not_fetched_into(tmp_path: Path, hub: Any) -> None:
    (tmp_path / "conf.py").write_text("left over")
    with pytest.raises(BadInput, match="not empty"):
        snapshot.fetch("tester/lm", "a" * 40, tmp_path)


def test_an_unknown_repo_and_an_unknown_commit_are_told_apart(tmp_path: Path, hub: Any, fetched: Any) -> None:
    fetched("lm")
    with pytest.raises(BadInput, match="the model repo tester/nothing does not exist"):
        snapshot.fetch("tester/nothing", "a" * 40, tmp_path / "one")
    with pytest.raises(BadInput, match="no commit aaaa"):
        snapshot.fetch("tester/lm", "a" * 40, tmp_path / "two")


def test_a_model_of_known_files_passes(model: Path) -> None:
    snapshot.check_files(model)
    assert snapshot.count_weight_bytes(model) > 10_000


@pytest.mark.parametrize("name", ["modeling_x.py", "pytorch_model.bin", "weights.PT", "deep/er/thing.pkl"])
def test_code_and_pickles_are_refused(model: Path, name: str) -> None:
    (model / name).parent.mkdir(parents=True, exist_ok=True)
    (model / name).write_bytes(b"x")
    with pytest.raises(BadInput, match="may contain code"):
        snapshot.check_files(model)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "more.safetensors"])
def test_a_file_of_millions_of_empty_values_takes_no_memory(model: Path, name: str) -> None:
    text = b'{"a":[' + b"[]," * 6_000_000 + b"0]}"
    head = len(text).to_bytes(8, "little") if name.endswith(".safetensors") else b""
    (model / name).write_bytes(head + text)
    with bounded_memory(128 * 2**20), pytest.raises(BadInput, match=r"more than 4,000,000 values|are allowed"):
        snapshot.check_files(model)


def test_links_are_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (model / "generation_config.json").unlink()
    (model / "generation_config.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(BadInput, match="is a link"):
        snapshot.check_files(model)


@pytest.mark.parametrize("place", ["config.json", "tokenizer_config.json"])
def test_an_auto_map_is_refused_wherever_it_hides(model: Path, place: str) -> None:
    content = json.loads((model / place).read_text())
    content["parts"] = [{"of": {"auto_map": {"AutoModel": "x.Y"}}}]
    (model / place).write_text(json.dumps(content))
    with pytest.raises(BadInput, match="auto_map"):
        snapshot.check_files(model)


def test_a_word_of_that_name_is_no_auto_map(model: Path) -> None:
    (model / "vocab.json").write_text(json.dumps({"auto_map": 7}))
    snapshot.check_files(model)


def test_weights_that_are_cut_short_are_refused(model: Path) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(BadInput, match="its header states a different size"):
        snapshot.check_files(model)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x02\0\0\0\0\0\0\0[]", (5).to_bytes(8, "little") + b"{nope"])
def test_weights_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(BadInput):
        snapshot.check_files(tmp_path)
