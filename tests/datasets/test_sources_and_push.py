"""Sources are had from a folder, an address or the Hub, pinned and checked; builds go to the Hub and come back."""

from pathlib import Path
from typing import Any

import pytest
import yaml

datasets = pytest.importorskip("datasets")

from podeval import benchmarks  # noqa: E402
from podeval.datasets.build import build, read_lock  # noqa: E402
from podeval.datasets.push import push, write_eval_yaml  # noqa: E402
from podeval.errors import BadInput  # noqa: E402


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def made(talks: Path, source: str, name: str = "out") -> Path:
    build("real_pod", talks / name, source=source, configs=["notes"], cache=talks / "cache")
    return talks / name


def test_a_folder_of_ones_own_is_built_and_not_called_pinned(talks: Path, write_rows: Any) -> None:
    out = made(talks, str(write_rows(talks / "mine", [])))
    assert read_lock(out)["source"]["revision"] == "folder"
    assert set(read_lock(out)["source"]["files"]) == {"dev.jsonl", "test.jsonl", "notes.jsonl"}
    assert not read_lock(out)["sample"]


def test_the_hub_is_read_at_the_pinned_commit(talks: Path, hub: Any, write_rows: Any) -> None:
    repo = hub.repos.publish("datasets", "someone/talks", files_of(write_rows(talks / "theirs", [])), sha="c" * 40)
    repo.commit({"README.md": b"all gone"})
    out = made(talks, "original")
    assert read_lock(out)["source"] | {"files": {}} == {
        "name": "original",
        "revision": "c" * 40,
        "files": {},
        "pinned": True,
    }


def test_another_revision_must_be_named_and_is_not_called_pinned(talks: Path, hub: Any, write_rows: Any) -> None:
    repo = hub.repos.publish("datasets", "someone/talks", files_of(write_rows(talks / "theirs", [])))
    with pytest.raises(BadInput, match="add the revision"):
        made(talks, "hub:someone/talks")
    out = made(talks, f"hub:someone/talks@{repo.refs['main']}")
    assert read_lock(out)["source"]["revision"] == f"someone/talks@{repo.refs['main']}"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("original", "https://huggingface.co/datasets/someone/talks does not exist or is private"),
        ("nowhere", "is neither a folder nor a source of real_pod; give a folder, .* original, sample"),
        (
            "hub:nobody/nothing@" + "d" * 40,
            "https://huggingface.co/datasets/nobody/nothing does not exist or is private",
        ),
    ],
)
def test_what_cannot_be_had_is_a_sentence(talks: Path, hub: Any, source: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        made(talks, source)


def test_a_folder_without_the_files_says_which(talks: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"lacks dev\.jsonl, test\.jsonl, notes\.jsonl"):
        made(talks, str(tmp_path / "empty"))


def test_a_push_takes_away_what_the_build_no_longer_has(talks: Path, hub: Any) -> None:
    hub.repos.publish("datasets", "me/talks", {"old/test-00000-of-00001.parquet": b"x", "LICENSE": b"kept"})
    push(made(talks, "sample"), "me/talks")
    files = hub.repos.repos["datasets", "me/talks"].at("main")[1]
    assert sorted(files) == ["LICENSE", "README.md", "notes/test-00000-of-00001.parquet", "podeval-build.json"]


def test_rows_that_may_not_be_redistributed_are_not_pushed_in_public(talks: Path, hub: Any, write_rows: Any) -> None:
    out = made(talks, str(write_rows(talks / "mine", [])))
    with pytest.raises(BadInput, match=r"may not be redistributed \(unstated\)"):
        push(out, "me/talks")
    push(out, "me/talks", private=True)
    assert hub.repos.repos["datasets", "me/talks"].private


def test_a_sample_is_not_pushed_as_the_benchmark(talks: Path, hub: Any) -> None:
    with pytest.raises(BadInput, match="a build of the sample is not the benchmark"):
        push(made(talks, "sample"), "podeval/real_pod")


def test_a_damaged_build_is_not_pushed(talks: Path, hub: Any) -> None:
    out = made(talks, "sample")
    next((out / "notes").glob("*.parquet")).write_bytes(b"PAR1")
    with pytest.raises(BadInput, match="has changed since it was built"):
        push(out, "me/talks")
    assert not hub.repos.repos


def test_a_hub_that_refuses_is_a_sentence(talks: Path, hub: Any) -> None:
    hub.repos.faults = [403]
    with pytest.raises(BadInput, match="the Hub refused a request to me/talks"):
        push(made(talks, "sample"), "me/talks")


@pytest.mark.parametrize("status", [400, 422])
def test_tasks_that_the_hub_does_not_take_leave_the_data_there(tmp_path: Path, hub: Any, status: int) -> None:
    build("podbench", tmp_path / "out", source="sample", cache=tmp_path / "cache")
    hub.repos.not_taken["eval.yaml"] = status
    said: list[str] = []
    assert push(tmp_path / "out", "me/podbench", progress=said.append)
    repo = hub.repos.repos["datasets", "me/podbench"]
    files = repo.at("main")[1]
    assert any(name.endswith(".parquet") for name in files)
    assert "README.md" in files
    assert "eval.yaml" not in files
    assert "the data is uploaded and can be loaded, but the Hub did not accept eval.yaml" in said[-1]
    assert "packages/tasks/src/eval.ts" in said[-1]
    del hub.repos.not_taken["eval.yaml"]
    push(tmp_path / "out", "me/podbench", progress=said.append)
    assert "eval.yaml" in repo.at("main")[1]
    assert len(said) == 3, "nothing more to say"


def test_a_benchmark_lists_one_task_a_dimension_for_rows_that_are_in_the_repo() -> None:
    text = write_eval_yaml(benchmarks.get("real_pod"), {"topics": ["test"], "demo": ["test"], "episodes": ["test"]})
    assert text
    found = yaml.safe_load(text)
    assert found["name"] == "Real-Pod"
    assert found["evaluation_framework"] == "podeval"
    tasks = {task["id"]: task for task in found["tasks"]}
    assert len(tasks) == len(found["tasks"])
    assert tasks["demo_speech"] == {"id": "demo_speech", "config": "demo", "split": "test"}
    assert tasks["topics_script"] == {"id": "topics_script", "config": "topics", "split": "test"}
    assert "topics_fidelity" in tasks
    assert "demo_fidelity" not in tasks, "the demo gives no reference voices"
    lfs = write_eval_yaml(benchmarks.get("lfs_bench"), {"texts": ["test"]})
    assert lfs
    assert {task["id"].partition("_")[0] for task in yaml.safe_load(lfs)["tasks"]} == {"test"}, "no sample"
    assert write_eval_yaml(benchmarks.get("real_pod"), {"other": ["test"]}) is None


def test_a_benchmarks_repo_gets_its_tasks_one_a_dimension(tmp_path: Path, hub: Any) -> None:
    build("podbench", tmp_path / "out", source="sample", cache=tmp_path / "cache")
    push(tmp_path / "out", "me/podbench")
    files = hub.repos.repos["datasets", "me/podbench"].at("main")[1]
    found = yaml.safe_load(files["eval.yaml"])
    assert found["evaluation_framework"] == "podeval"
    assert {task["id"] for task in found["tasks"]} == {
        f"test_{dimension.name}" for dimension in benchmarks.get("podbench").dimensions
    }
    for task in found["tasks"]:
        assert any(name.startswith(f"{task['config']}/{task['split']}-") for name in files), "its rows are there"
