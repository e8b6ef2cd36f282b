"""What was taken down: none of its words is left where the board can reach, and its content is known again."""

import json
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from sqlalchemy import select

from podeval.audio.decode import hash_file
from podeval.board.build import build
from podeval.cli import main
from podeval.errors import BadInput
from podeval.hub.commits import AppendOnly
from podeval.judges.exchange_records import JudgeExchange, Records
from podeval.listening import Listening
from podeval.listening.designs import read_design
from podeval.listening.session_results import read_overview
from podeval.models.chat import ChatAnswer
from podeval.recording.cache import Cache, open_default_cache
from podeval.recording.playback import Playback, Stretch
from podeval.recording.recording import Recording
from podeval.runs.run_folder import Output, RunFolder
from podeval.store.database import Database
from podeval.store.tables import ListeningAnswer, ListeningTest
from podeval.submissions.hub_record import HubRecord
from podeval.submissions.moderation import take_down
from podeval.submissions.queue import Queue
from podeval.submissions.rules import SubmissionRefused
from podeval.submissions.service import publish
from podeval.submissions.takedown import compute_marks, read_taken_down_marks, refuse_taken_down
from podeval.submissions.worker import clear
from podeval.systems.speech import SpokenTurn

NOW = datetime.now(UTC)
PLANTED = "Quokkas of the northern shore"
TRANSCRIPT = f"{PLANTED} were never asked whether they liked being photographed."


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PODEVAL_JUDGES", "")
    open_default_cache.cache_clear()
    yield
    open_default_cache.cache_clear()


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


def exchange(key: str, prompt: str) -> JudgeExchange:
    answer = ChatAnswer(text=f"I heard: {prompt}", refusal=None, finish="stop", form="none", tools=())
    return JudgeExchange(
        key=key, series=0, attempt=1, prompt="p", judge="j", seed=0, inputs={}, asked="", seconds=0.0, problem=None,
        messages=[{"role": "user", "content": prompt}], answer=answer,
    )  # fmt: skip


def plant(run: RunFolder) -> None:
    """Words where podeval leaves words: output, notes, reasons, a spot check, a file of a later version."""
    output = run.output("item_0")
    assert output
    turns = (SpokenTurn(speaker="A", start=0.0, end=0.5, text=TRANSCRIPT),)
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


def where_it_is(folder: Path, *, phrase: str = PLANTED) -> list[str]:
    """Every file below a folder that holds what was planted, tables of the board read cell by cell."""
    import pandas as pd

    result = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            text = pd.read_parquet(path).to_csv() if path.suffix == ".parquet" else path.read_bytes().decode("latin-1")
            result += [path.relative_to(folder).as_posix()] * (phrase in text)
    return result


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
    content = hash_file(run.outputs / "item_0.flac")
    recording = Recording.open(run.outputs / "item_0.flac")
    cache, stem = open_default_cache(), recording.derive(recording.samples, recording.rate, "through", 8_000, {})
    for about in (content, stem.content):
        cache.put(Cache.key(about, "transcript"), TRANSCRIPT.encode())
    kept_fact = Cache.key(hash_file(board / "ten/demo/other/outputs/item_0.flac"), "transcript")
    cache.put(kept_fact, b"another")
    copy = Playback.default().copy(Stretch(run.outputs / "item_0.flac", 0.0, 0.2, content))
    for folder in (tmp_path / "cache/judgements", board / "judges/anna"):
        records = Records(folder)
        records.add(exchange("0123456789abcdef" + "0" * 48, "turns of a dialogue"))
        records.add(exchange("1" * 64, f"A: {TRANSCRIPT}"))
        records.add(exchange("2" * 64, "somebody else's"))
    api = HfApi(token="hf_x")
    mirror = HubRecord(queue, AppendOnly("podeval/requests", api=api), AppendOnly("podeval/results", api=api))
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
        (summary,) = run.summaries()
        assert summary.metrics[0].keys["level"], "figures stay"


def test_a_mirror_killed_before_the_history_went_ends_it_the_next_time(
    tiny: ModuleType, queue: Queue, tmp_path: Path, hub_client: Any
) -> None:
    from huggingface_hub import HfApi

    board = tmp_path / "board"
    id = published(tiny, queue, tmp_path)
    plant(RunFolder(board, "ten", "demo", "singer"))
    api = HfApi(token="hf_x")
    mirror = HubRecord(queue, AppendOnly("podeval/requests", api=api), AppendOnly("podeval/results", api=api))
    mirror.push_results(board)
    take_down(queue, id, "ada", board, "stolen", NOW)
    hub_client.trouble = lambda method, path: 400 if "super-squash" in path else None
    with pytest.raises(BadInput, match="refused a request to podeval/results"):
        mirror.delete_taken_down()
    hub_client.trouble = lambda method, path: None
    mirror.delete_taken_down()
    commits = hub_client.repos.repos["datasets", "podeval/results"].commits
    assert len(commits) == 1
    assert not any(PLANTED.encode() in data for files in commits.values() for data in files.values())
    count = len(hub_client.requests)
    mirror.delete_taken_down()
    assert not any(method == "POST" for method, *_ in hub_client.requests[count:]), "done once"


@pytest.mark.long
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
    assert read_taken_down_marks(queue.database) == {}
    content = hash_file(tmp_path / "work" / row.id / "runs/ten/demo/singer/outputs/item_0.flac")
    open_default_cache().put(Cache.key(content, "transcript"), TRANSCRIPT.encode())
    clear(queue, tmp_path / "work", NOW)
    assert len(read_taken_down_marks(queue.database)) == 10
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
        return compute_marks(folder, Output(item="i", audio=None if samples is None else "i.flac", script=script))

    (mark,) = run_with("one", tone)
    assert run_with("two", tone, compression_level=1.0) == {mark}
    assert run_with("three", tone * np.float32(0.999)) != {mark}
    assert run_with("silence", np.zeros(4_000, np.float32)) == set()
    words = " ".join(f"word{number}" for number in range(40))
    (message,) = run_with("four", words=words)
    assert run_with("five", words=words.upper().replace(" ", ",\n")) == {message}
    assert run_with("six", words="Yes, that is what everybody says.") == set()
    assert run_with("seven", words="北京今天天气很好" * 5) != set()


def test_nothing_is_looked_at_where_nothing_was_taken_down(queue: Queue, tmp_path: Path) -> None:
    items = [SimpleNamespace(id="i0"), SimpleNamespace(id="i1")]
    assert list(refuse_taken_down(queue.database, RunFolder(tmp_path, "b", "s", "x"), items)) == items  # type: ignore[arg-type]


def test_a_takedown_that_is_said_again_keeps_what_is_known(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    id = published(tiny, queue, tmp_path)
    for _ in range(2):
        take_down(queue, id, "ada", tmp_path / "board", "stolen", NOW)
    assert len(read_taken_down_marks(queue.database)) == 10
    with pytest.raises(SubmissionRefused, match="took the same content down"):
        queue.receive(tiny.document("singer"), owner="bob")


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run a command of podeval in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["podeval", *map(str, arguments)])
    with pytest.raises(SystemExit) as leaving:
        main()
    return int(leaving.value.code or 0)


def a_listening_test(queue: Queue, run: RunFolder, copied: Path) -> None:
    """Tests that show and play what is planted, with an answer and a vote's comment that quote it."""
    shutil.copy(run.outputs / "item_0.flac", copied)
    texts = {"kind": "text_preference", "id": "texts", "title": "Texts", "systems": ["aria", "basso"], "items": [
        {"id": "news", "prompt": "Which?", "stimuli": {"aria": {"text": TRANSCRIPT}, "basso": {"text": "Hi."}}}
    ]}  # fmt: skip
    recording = {"audio": str(copied), "seconds": 0.5}
    sounds = {"kind": "mos", "id": "sounds", "title": "Sounds", "systems": ["aria"], "scales": ["timbre"],
              "items": [{"id": "news", "stimuli": {"aria": recording}}]}  # fmt: skip
    listening = Listening(queue.database)
    for design in (texts, sounds):
        listening.create(read_design(design))
    sitting = listening.start("texts", "prolific:someone").session
    with queue.database.writing() as session:
        row = ListeningAnswer(
            session=sitting, page="p", question="why", reason=f"“{TRANSCRIPT}”, it says", saved_at=NOW
        )
        session.add(row)


def test_a_listening_test_shows_and_plays_nothing_of_it_and_keeps_its_answers(
    tiny: ModuleType, queue: Queue, tmp_path: Path
) -> None:
    board = tmp_path / "board"
    id, run = published(tiny, queue, tmp_path), RunFolder(board, "ten", "demo", "singer")
    plant(run)
    a_listening_test(queue, run, tmp_path / "played.flac")
    digest = read_design(read_overview(queue.database, "texts").design.model_dump(mode="json")).digest
    sentences: list[str] = []
    take_down(queue, id, "ada", board, "stolen", NOW, sentences.append)
    (sentence,) = sentences
    assert sentence.startswith(f"{tmp_path / 'played.flac'}, which the arena or a listening test played")
    texts = read_overview(queue.database, "texts")
    assert texts.design.items[0].stimuli["aria"].text == "[taken down]"
    assert texts.design.items[0].stimuli["basso"].text == "Hi."
    assert read_overview(queue.database, "sounds").design.recordings == ["/taken-down"]
    with queue.database.reading() as session:
        assert session.get_one(ListeningTest, "texts").digest == digest, "answers are pooled as before"
        assert session.scalars(select(ListeningAnswer.reason)).all() == [""]


@pytest.mark.parametrize("new_machine", [False, True])
def test_a_restored_backup_does_not_bring_back_what_was_taken_down(
    tiny: ModuleType, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_machine: bool
) -> None:
    board, backups = tmp_path / "board", tmp_path / "backups"
    id, run = published(tiny, queue, tmp_path), RunFolder(board, "ten", "demo", "singer")
    other = published(tiny, queue, tmp_path, quieter(tmp_path, "other"))
    plant(run)
    a_listening_test(queue, run, board / "played.flac")
    build(board)
    backups.mkdir()
    for name in ("deleted.tar", "unfinished.tar", "backup.tar.gz"):
        assert command(monkeypatch, "backup", backups / name, "--runs", board) == 0
    (backups / "deleted.tar").unlink()
    (backups / "unfinished.tar").rename(backups / ".unfinished.tar.0a.partial")
    take_down(queue, id, "ada", board, "stolen", NOW)
    beside, *others = sorted(backups.glob("*.taken-down.jsonl"))
    assert [path.name for path in (beside, *others)] == [
        "backup.tar.gz.taken-down.jsonl",
        "unfinished.tar.taken-down.jsonl",
    ]
    queue.database.close()
    if new_machine:
        shutil.rmtree(board)
    else:
        beside.unlink()

    assert command(monkeypatch, "restore", backups / "backup.tar.gz", "--runs", board, "--force") == 0
    kept = [path for path in where_it_is(tmp_path) if not path.startswith("backups/")]
    assert kept == []
    assert not list(board.rglob("*singer*/**/*.flac")) + list(board.rglob("played.flac"))
    assert len(list((board / "ten/demo/other/outputs").glob("*.flac"))) == 10, "the rest is as it was"
    with Database(board / "podeval.db") as database:
        again = Queue(database)
        assert (again.get(id).state, again.get(other).state) == ("withdrawn", "published")
        assert len(read_taken_down_marks(database)) == 10
        with pytest.raises(SubmissionRefused, match="took the same content down: stolen"):
            again.receive(tiny.document("singer"), owner="mallory")


def test_a_damaged_file_beside_a_backup_stops_the_restore(
    empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, new, store = tmp_path / "backup.tar", tmp_path / "new", tmp_path / "store.db"
    # A copy, for a backup notes in the database when it was made, and new databases of other tests are copies of this.
    shutil.copy(empty_store, store)
    assert command(monkeypatch, "backup", backup, "--runs", tmp_path / "runs", "--database", store) == 0
    backup.with_name("backup.tar.taken-down.jsonl").write_text('{"submission": "s"}\n')
    assert command(monkeypatch, "restore", backup, "--runs", new) == 2
    assert not (new / "podeval.db").exists()


@pytest.mark.long
def test_what_a_restore_replaced_is_reached_by_a_later_takedown(
    tiny: ModuleType, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = tmp_path / "board"
    id, run = published(tiny, queue, tmp_path), RunFolder(board, "ten", "demo", "singer")
    plant(run)
    build(board)
    command(monkeypatch, "backup", tmp_path / "backup.tar", "--runs", board)
    queue.database.close()
    assert command(monkeypatch, "restore", tmp_path / "backup.tar", "--runs", board, "--force") == 0
    (replaced,) = board.glob(".before-restore-*")
    assert where_it_is(replaced)
    sentences: list[str] = []
    with Database(board / "podeval.db") as database:
        take_down(Queue(database), id, "ada", board, "stolen", NOW, sentences.append)
    build(board)
    assert where_it_is(board) == []
    kept = replaced / "podeval.db"
    assert f"{kept} is a replaced database that still contains the texts: delete it" in sentences
