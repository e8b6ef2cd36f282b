"""What was taken down: none of its words is left where the board can reach, and its content is known again."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.analysis.cache import Cache, default_cache
from podeval.analysis.playback import Playback, Stretch
from podeval.analysis.recording import Recording
from podeval.analysis.speech_track import through
from podeval.audio.decode import content_hash
from podeval.errors import BadInput
from podeval.hub.commits import AppendOnly
from podeval.judges.records import Exchange, Records
from podeval.leaderboard.build import build
from podeval.models.chat import ChatAnswer
from podeval.store.database import Database
from podeval.store.run_folder import Output, OutputTurn, RunFolder
from podeval.submissions.content_marks import marks_of, refuse_taken_down, taken_down_marks
from podeval.submissions.leftovers import clear
from podeval.submissions.mirror import Mirror
from podeval.submissions.publishing import publish
from podeval.submissions.queue import Queue
from podeval.submissions.refusal import Refused
from podeval.submissions.takedown import take_down

NOW = datetime.now(UTC)
PLANTED = "Quokkas of the northern shore"
TRANSCRIPT = f"{PLANTED} were never asked whether they liked being photographed."


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PODEVAL_JUDGES", "")
    default_cache.cache_clear()
    yield
    default_cache.cache_clear()


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Database(tmp_path / "board/podeval.db") as database:
        yield Queue(database)


def published(tiny: ModuleType, queue: Queue, folder: Path, system: str = "singer") -> str:
    row = tiny.enqueue(queue, system)
    tiny.worker(queue, folder).once()
    assert queue.get(row.id).state == "published", queue.get(row.id).reason
    return str(row.id)


def quieter(folder: Path, system: str) -> str:
    """A system that says something else."""
    model = folder / "models" / system
    model.mkdir(parents=True)
    (model / "behaviour.json").write_text('{"loudness": 0.5}')
    return system


def exchange(key: str, shown: str) -> Exchange:
    answer = ChatAnswer(text=f"I heard: {shown}", refusal=None, finish="stop", form="none", tools=())
    return Exchange(
        key=key, series=0, attempt=1, prompt="p", judge="j", seed=0, inputs={}, asked="", seconds=0.0, problem=None,
        messages=[{"role": "user", "content": shown}], answer=answer,
    )  # fmt: skip


def plant(run: RunFolder) -> None:
    """Words where podeval leaves words: output, notes, reasons, a spot check, a file of a later version."""
    output = run.output("item_0")
    assert output
    turns = (OutputTurn(speaker="A", start=0.0, end=0.5, text=TRANSCRIPT),)
    changed = output.model_copy(update={"turns": turns, "script": ({"speaker": "A", "text": TRANSCRIPT},)})
    run.write_output(changed)
    results = run.path / "embedded/results.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    lines[0]["result"]["notes"] = {"transcript": TRANSCRIPT, "records": ["0123456789abcdef-0-1"]}
    lines[1]["result"] = {"unscored": f"the judge said: {TRANSCRIPT}", "cause": "ours"}
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = run.path / "embedded/summary.json"
    document = json.loads(summary.read_text())
    document["metrics"][0]["reasons"] = {TRANSCRIPT: 1}
    summary.write_text(json.dumps(document))
    (run.path / "embedded/hypotheses.txt").write_text(TRANSCRIPT)
    (run.path / "notes").mkdir()
    (run.path / "notes/excerpt.txt").write_text(TRANSCRIPT)


def where_it_is(folder: Path, *, wanted: str = PLANTED) -> list[str]:
    """Every file below a folder that holds what was planted, tables of the board read cell by cell."""
    import pandas as pd

    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            text = pd.read_parquet(path).to_csv() if path.suffix == ".parquet" else path.read_bytes().decode("latin-1")
            found += [path.relative_to(folder).as_posix()] * (wanted in text)
    return found


def test_no_word_is_left_in_any_file_of_the_board_its_cache_or_its_mirror(
    tiny: ModuleType, queue: Queue, tmp_path: Path, hub_client: Any
) -> None:
    from huggingface_hub import HfApi

    board = tmp_path / "board"
    id, run = published(tiny, queue, tmp_path), RunFolder(tmp_path / "board", "ten", "demo", "singer")
    other = published(tiny, queue, tmp_path, quieter(tmp_path, "other"))
    plant(run)
    publish(RunFolder(board, "ten", "demo", "singer"), tmp_path / "copy")
    publish(RunFolder(tmp_path / "copy", "ten", "demo", "singer"), board)
    (board / ".incoming-ten-demo-singer").mkdir()
    (board / ".incoming-ten-demo-singer/leftover.json").write_text(TRANSCRIPT)
    build(board)
    content = content_hash(run.outputs / "item_0.flac")
    recording = Recording.open(run.outputs / "item_0.flac")
    cache, stem = default_cache(), through(recording, 8_000)
    for about in (content, stem.content):
        cache.put(Cache.key(about, "transcript"), TRANSCRIPT.encode())
    kept_fact = Cache.key(content_hash(board / "ten/demo/other/outputs/item_0.flac"), "transcript")
    cache.put(kept_fact, b"another")
    copy = Playback.default().copy(Stretch(run.outputs / "item_0.flac", 0.0, 0.2, content))
    for folder in (tmp_path / "cache/judgements", board / "judges/anna"):
        records = Records(folder)
        records.add(exchange("0123456789abcdef" + "0" * 48, "turns of a dialogue"))
        records.add(exchange("1" * 64, f"A: {TRANSCRIPT}"))
        records.add(exchange("2" * 64, "somebody else's"))
    api = HfApi(token="hf_x")
    mirror = Mirror(queue, AppendOnly("podeval/requests", api=api), AppendOnly("podeval/results", api=api))
    assert mirror.push_results(board) == 2
    hub = hub_client.repos.repos["datasets", "podeval/results"]
    assert where_it_is(board), "planted"

    take_down(queue, id, "ada", board, "it speaks with a stolen voice", NOW)
    build(board)
    assert where_it_is(board) == []
    assert where_it_is(tmp_path / "cache") == []
    assert not copy.exists()
    assert cache.get(kept_fact) == b"another"
    assert list(board.rglob("*singer*/**/*.flac")) == []
    assert len(list(Records(board / "judges/anna").all_exchanges())) == 1
    assert len(list((board / "ten/demo/other/outputs").glob("*.flac"))) == 10

    assert mirror.push_results(board) == 0
    everything = [data for files in hub.commits.values() for data in files.values()]
    assert not any(PLANTED.encode() in data for data in everything), "in its history too"
    left = {path for path in hub.at("main")[1] if path.startswith("results/")}
    assert left
    assert all(f"/{other}/" in path for path in left)

    aside = sorted((board / ".superseded/ten/demo/singer").iterdir())
    assert len(aside) == 2
    for kept in aside:
        run = RunFolder(kept.parents[2], *kept.parts[-3:])
        values = [result.values["level"] for result in run.results("embedded").values() if hasattr(result, "values")]
        assert len(values) == 9, "figures stay"
        assert len(run.summaries()) == 1


def test_a_mirror_killed_before_the_history_went_ends_it_the_next_time(
    tiny: ModuleType, queue: Queue, tmp_path: Path, hub_client: Any
) -> None:
    from huggingface_hub import HfApi

    board = tmp_path / "board"
    id = published(tiny, queue, tmp_path)
    plant(RunFolder(board, "ten", "demo", "singer"))
    api = HfApi(token="hf_x")
    mirror = Mirror(queue, AppendOnly("podeval/requests", api=api), AppendOnly("podeval/results", api=api))
    mirror.push_results(board)
    take_down(queue, id, "ada", board, "stolen", NOW)
    hub_client.trouble = lambda method, path: 400 if "super-squash" in path else None
    with pytest.raises(BadInput, match="refused podeval/results"):
        mirror.delete_taken_down()
    hub_client.trouble = lambda method, path: None
    mirror.delete_taken_down()
    commits = hub_client.repos.repos["datasets", "podeval/results"].commits
    assert len(commits) == 1
    assert not any(PLANTED.encode() in data for files in commits.values() for data in files.values())
    count = len(hub_client.requests)
    mirror.delete_taken_down()
    assert not any(method == "POST" for method, *_ in hub_client.requests[count:]), "done once"


def test_the_same_sound_is_refused_under_another_system(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    id = published(tiny, queue, tmp_path)
    take_down(queue, id, "ada", tmp_path / "board", "it speaks with a stolen voice", NOW)
    row = tiny.enqueue(queue, "another", owner="mallory")
    tiny.worker(queue, tmp_path).once()
    refused = queue.get(row.id)
    assert (refused.state, refused.rule) == ("refused", "taken_down")
    assert "was taken down from this board: it speaks with a stolen voice" in refused.reason
    assert not (tmp_path / "board/ten/demo/another").exists()

    published(tiny, queue, tmp_path, quieter(tmp_path, "third"))


def test_what_never_reached_the_board_is_known_again_from_the_workers_disk(
    tiny: ModuleType, queue: Queue, tmp_path: Path
) -> None:
    row = tiny.enqueue(queue, "singer")
    tiny.worker(queue, tmp_path, refresh=lambda board: queue.cancel(row.id, "alice")).once()
    shutil.rmtree(tmp_path / "board/ten")
    take_down(queue, row.id, "ada", tmp_path / "board", "stolen", NOW)
    assert taken_down_marks(queue.database) == {}
    content = content_hash(tmp_path / "work" / row.id / "runs/ten/demo/singer/outputs/item_0.flac")
    default_cache().put(Cache.key(content, "transcript"), TRANSCRIPT.encode())
    clear(queue, tmp_path / "work", NOW)
    assert len(taken_down_marks(queue.database)) == 10
    assert where_it_is(tmp_path / "cache") == []


def test_sound_is_the_same_in_another_container_and_words_in_another_case(tmp_path: Path) -> None:
    tone = np.sin(np.arange(4_000) / 9).astype(np.float32) / 2
    plan = SimpleNamespace(track="write")

    def run_with(name: str, samples: Any = None, words: str = "", **how: Any) -> set[str]:
        folder = RunFolder(tmp_path / name, "b", "s", "x")
        folder.plan = lambda: plan  # type: ignore[assignment,return-value]
        folder.outputs.mkdir(parents=True)
        if samples is not None:
            soundfile.write(folder.outputs / "i.flac", samples, 8_000, "PCM_24", **how)
        script = ({"speaker": "A", "text": words},)
        return marks_of(folder, Output(item="i", audio=None if samples is None else "i.flac", script=script))

    (mark,) = run_with("one", tone)
    assert run_with("two", tone, compression_level=1.0) == {mark}
    assert run_with("three", tone * np.float32(0.999)) != {mark}
    assert run_with("silence", np.zeros(4_000, np.float32)) == set()
    words = " ".join(f"word{number}" for number in range(40))
    (said,) = run_with("four", words=words)
    assert run_with("five", words=words.upper().replace(" ", ",\n")) == {said}
    assert run_with("six", words="Yes, that is what everybody says.") == set()
    assert run_with("seven", words="北京今天天气很好" * 5) != set()


def test_nothing_is_looked_at_where_nothing_was_taken_down(queue: Queue, tmp_path: Path) -> None:
    items = [SimpleNamespace(id="i0"), SimpleNamespace(id="i1")]
    assert list(refuse_taken_down(queue.database, RunFolder(tmp_path, "b", "s", "x"), items)) == items  # type: ignore[arg-type]


def test_a_takedown_that_is_said_again_keeps_what_is_known(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    id = published(tiny, queue, tmp_path)
    for _ in range(2):
        take_down(queue, id, "ada", tmp_path / "board", "stolen", NOW)
    assert len(taken_down_marks(queue.database)) == 10
    with pytest.raises(Refused, match="took the same down"):
        queue.receive(tiny.document("singer"), owner="bob")
