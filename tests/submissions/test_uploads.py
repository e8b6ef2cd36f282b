"""Zips of recordings that strangers upload: what is unpacked, what is refused, whose it is, and when it is removed."""

import io
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.operations.backup import make_backup
from podeval.operations.restore import restore
from podeval.store.database import Database
from podeval.submissions import uploads as uploads_module
from podeval.submissions.gate import Gate
from podeval.submissions.moderation import list_takedowns, repeat_takedowns, take_down
from podeval.submissions.queue import Queue
from podeval.submissions.recordings_zip import RECORDINGS, ZipLimits, unpack
from podeval.submissions.rules import SubmissionRefused
from podeval.submissions.service import SubmissionService, Submitter
from podeval.submissions.source_files import fetch
from podeval.submissions.uploads import Uploads
from tests.fakes.bounded_memory import bounded_memory
from tests.fakes.sandbox_walls import WALLS, stand_up
from tests.fakes.stated_counts import write_all

ALICE = Submitter("alice")
RUNS = ["real_pod/topics", "lfs_bench/mono"]


def tone(number: int = 0) -> bytes:
    content = io.BytesIO()
    wave = 0.1 * np.sin(np.arange(4_000) * (0.05 + number / 5_000))
    soundfile.write(content, wave, 16_000, format="FLAC")
    return content.getvalue()


TONE = tone()


def entry(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    """A file of an archive as its maker describes it, honestly or not."""
    info = zipfile.ZipInfo("x")
    info.filename, info.external_attr = name, mode << 16
    return info


def archive_of(*files: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files:
            archive.writestr(name, data)
    return content.getvalue()


def central(content: bytes) -> int:
    return content.index(b"PK\1\2")


def patched(content: bytes, at: int, form: str, *values: int) -> bytes:
    """An archive of which some bytes say something else."""
    changed = bytearray(content)
    struct.pack_into(form, changed, at, *values)
    return bytes(changed)


ONE = archive_of(("a.flac", TONE))


NO_UTF8 = patched(archive_of(("é.flac", TONE)), central(archive_of(("é.flac", TONE))) + 46, "<B", 0xFF)
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "no zip": (lambda: TONE, "this is not a zip"),
    "cut off": (lambda: ONE[:-30], "this is not a zip"),
    "absolute": (lambda: archive_of(("/etc/a.flac", TONE)), "points outside the zip"),
    "above": (lambda: archive_of(("x/../../a.flac", TONE)), "points outside the zip"),
    "backslash": (lambda: archive_of((entry("..\\a.flac"), TONE)), "points outside the zip"),
    "before the file": (lambda: patched(ONE, len(ONE) - 6, "<L", 2**30), "begins before the start of the zip"),
    "drive": (lambda: archive_of((entry("C:a.flac"), TONE)), "is not the name of an item"),
    "empty part": (lambda: archive_of(("x//a.flac", TONE)), "points outside the zip"),
    "twice": (lambda: archive_of(("a.flac", TONE), ("A.flac", TONE)), "is in the zip twice"),
    "file and folder": (lambda: archive_of(("a.flac", TONE), ("a.flac/b.flac", TONE)), "is both a file and a folder"),
    "encrypted": (lambda: patched(ONE, central(ONE) + 8, "<H", 1), "is encrypted"),
    "not UTF-8": (lambda: NO_UTF8, "not UTF-8"),
    "another alphabet": (lambda: archive_of(("录音.flac", TONE)), "is not the name of an item"),
    "nothing of use": (lambda: archive_of(("a.txt", b"x"), ("b.zip", ONE)), "the zip contains no recordings"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_whole_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    make, sentence = HOSTILE[kind]
    (tmp_path / "a.zip").write_bytes(make())
    with pytest.raises(BadInput, match=sentence):
        unpack(tmp_path / "a.zip", tmp_path / "out", RUNS)
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip"], "nothing beside it either"


def test_an_archive_is_as_large_as_it_may_be_and_no_larger(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archive_of(("a.flac", TONE), ("b.flac", TONE)))
    for limits, sentence in (
        (ZipLimits(archive_bytes=100), "the limit is .*; send FLAC or Opus"),
        (ZipLimits(entries=1), "lists 2 files, and the limit is 1"),
        (ZipLimits(unpacked_bytes=2 * len(TONE) - 1), "the recordings unpack to"),
    ):
        with pytest.raises(BadInput, match=sentence):
            unpack(path, tmp_path / "out", RUNS, limits)
    assert len(unpack(path, tmp_path / "out", RUNS, ZipLimits(entries=2)).recordings) == 2


def test_a_recording_that_is_none_or_says_a_false_size_is_left_out_by_itself(tmp_path: Path) -> None:
    link = (entry("link.flac", 0o120777), b"/etc/passwd")
    content = archive_of(("good.flac", TONE), ("words.flac", b"words" * 100), link, ("lies.flac", TONE))
    third = content.rindex(b"PK\1\2")
    (tmp_path / "a.zip").write_bytes(patched(content, third + 24, "<L", len(TONE) - 100))
    result = unpack(tmp_path / "a.zip", tmp_path / "out", RUNS)
    assert result.recordings == {"good.flac": 0.25}
    assert result.unreadable["words.flac"] == "it is a text file, not audio."
    assert "larger than the zip states" in result.unreadable["lies.flac"]
    assert "link.flac" in result.unreadable, "nothing in a zip becomes a link"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.flac"]


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (("real_pod/topics/a.flac",), {"real_pod/topics/a.flac"}),
        (("my outputs/real_pod/topics/a.flac", "my outputs/lfs_bench/mono/b.wav"),
         {"real_pod/topics/a.flac", "lfs_bench/mono/b.wav"}),
        (("录音/a.flac", "录音/b.opus"), {"a.flac", "b.opus"}),
        (("a.flac", "README.txt", "__MACOSX/._a.flac", ".DS_Store", "scripts/a.json"), {"a.flac"}),
    ],
)  # fmt: skip
def test_folders_before_the_benchmark_and_what_is_no_recording_do_not_matter(
    names: tuple[str, ...], paths: set[str], tmp_path: Path
) -> None:
    data = io.BytesIO()
    soundfile.write(data, np.full(4_000, 0.1), 16_000, format="WAV")
    files = [(name, data.getvalue() if name.endswith(".wav") else TONE) for name in names]
    (tmp_path / "a.zip").write_bytes(archive_of(*files))
    result = unpack(tmp_path / "a.zip", tmp_path / "out", RUNS)
    assert set(result.recordings) | set(result.unreadable) == paths
    assert set(result.ignored) <= {"README.txt", "scripts/a.json"}


def test_an_archive_of_indices_that_state_millions_of_samples_takes_no_memory(tmp_path: Path) -> None:
    hostile = write_all()["samples of one size"]
    (tmp_path / "a.zip").write_bytes(archive_of(*((f"{number}.m4a", hostile) for number in range(60))))
    with bounded_memory(64 * 2**20):
        result = unpack(tmp_path / "a.zip", tmp_path / "out", RUNS)
    assert not result.recordings
    assert all("its index states 10,000,000" in reason for reason in result.unreadable.values())


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Database(tmp_path / "podeval.db") as database:
        yield Queue(database)


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "runs")


@pytest.fixture
def desk(queue: Queue, uploads: Uploads) -> SubmissionService:
    return SubmissionService(queue, Gate(local=False, uploads=uploads.folder))


def whole(tmp_path: Path, number: int = 0) -> Path:
    """An archive with a recording for every script of a split."""
    names = [item.id for item in benchmarks.get("real_pod").items("topics")]
    sounds = [tone(number), *[TONE] * (len(names) - 1)]
    path = tmp_path / f"{number}.zip"
    path.write_bytes(
        archive_of(*((f"mine/real_pod/topics/{name}.flac", sound) for name, sound in zip(names, sounds, strict=True)))
    )
    return path


def files_in(uploads: Uploads) -> list[str]:
    return sorted(path.name for path in uploads.folder.iterdir())


def test_uploaded_recordings_are_submitted_like_other_outputs_and_removed_when_nothing_needs_them(
    desk: SubmissionService, queue: Queue, uploads: Uploads, tmp_path: Path, outputs_document: Any
) -> None:
    archive = whole(tmp_path)
    # As a server keeps what it is sent.
    archive.chmod(0o600)
    upload = uploads.take(archive, "alice", queue)
    assert uploads.waiting("alice", queue) == upload
    assert uploads.waiting("bob", queue) is None, "another person's is not theirs"
    document = outputs_document(folder=upload.token)
    with pytest.raises(SubmissionRefused, match="not from a folder"):
        desk.check(document, ALICE, document_folder=tmp_path / "runs")
    row = desk.submit(document, ALICE, document_folder=uploads.folder)
    assert row.state == "queued"
    assert row.pinned["content"], "its revision is the digest of its content"
    assert uploads.waiting("alice", queue) is None
    copied, _ = fetch(document, row.pinned, tmp_path / "work", row.place)
    assert len(list(copied.rglob("*.flac"))) == 51
    assert uploads.clear(queue) == []
    again = uploads.take(whole(tmp_path), "alice", queue)
    with pytest.raises(SubmissionRefused, match=f"the same content is already queued as {row.id}"):
        desk.submit(outputs_document(folder=again.token), ALICE, document_folder=uploads.folder)
    assert len(files_in(uploads)) == 4, "what is submitted stays when the person uploads again"
    queue.cancel(row.id, "alice")
    later = Uploads(tmp_path / "runs", clock=lambda: datetime.now(UTC) + timedelta(days=8))
    assert set(later.clear(queue)) == {upload.token, again.token}
    with pytest.raises(SubmissionRefused, match="upload them and submit again"):
        fetch(document, row.pinned, tmp_path / "work2", row.place)


def test_a_person_has_one_upload_that_is_not_submitted_and_loses_it_after_a_day(
    queue: Queue, uploads: Uploads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [tmp_path / f"small{number}.zip" for number in range(3)]
    for number, path in enumerate(small):
        path.write_bytes(archive_of((f"{number}.flac", tone(number))))
    uploads.take(small[0], "alice", queue)
    second = uploads.take(small[1], "alice", queue)
    assert files_in(uploads) == [second.token, f"{second.token}.json"]
    monkeypatch.setattr(uploads_module, "OWNER_BYTES", second.size - 1)
    with pytest.raises(BadInput, match="your uploads take more than"):
        uploads.take(small[2], "alice", queue)
    uploads.take(small[2], "bob", queue)
    monkeypatch.setattr(uploads_module, "LEAST_FREE", 2**60)
    with pytest.raises(BadInput, match="too little space for more uploads"):
        uploads.take(small[2], "carol", queue)
    later = Uploads(tmp_path / "runs", clock=lambda: datetime.now(UTC) + timedelta(days=2))
    assert len(later.clear(queue)) == 2
    assert files_in(uploads) == []


def test_what_is_refused_or_taken_down_is_removed_at_once(
    desk: SubmissionService, queue: Queue, uploads: Uploads, tmp_path: Path, outputs_document: Any
) -> None:
    (tmp_path / "one.zip").write_bytes(ONE)
    incomplete = uploads.take(tmp_path / "one.zip", "alice", queue)
    with pytest.raises(SubmissionRefused, match="51 of 51"):
        desk.submit(outputs_document(folder=incomplete.token), ALICE, document_folder=uploads.folder)
    assert uploads.clear(queue) == [incomplete.token]
    upload = uploads.take(whole(tmp_path), "alice", queue)
    row = desk.submit(outputs_document(folder=upload.token), ALICE, document_folder=uploads.folder)
    take_down(queue, row.id, "ada", tmp_path / "runs", "stolen", datetime.now(UTC))
    assert files_in(uploads) == []


def test_uploads_go_into_a_backup_and_back_and_what_was_taken_down_since_stays_away(
    desk: SubmissionService, queue: Queue, uploads: Uploads, tmp_path: Path, outputs_document: Any
) -> None:
    upload = uploads.take(whole(tmp_path), "alice", queue)
    document = outputs_document(folder=upload.token)
    row = desk.submit(document, ALICE, document_folder=uploads.folder)
    (tmp_path / "one.zip").write_bytes(ONE)
    waiting = uploads.take(tmp_path / "one.zip", "bob", queue)
    (uploads.folder / ".incoming-u1" / "out").mkdir(parents=True)
    (uploads.folder / ".incoming-u1" / "out" / "half.flac").write_bytes(TONE)
    make_backup(tmp_path / "backup.tar", tmp_path / "podeval.db", tmp_path / "runs")

    elsewhere = tmp_path / "elsewhere"
    restore(tmp_path / "backup.tar", elsewhere / "podeval.db", elsewhere)
    with Database(elsewhere / "podeval.db") as opened:
        again, there = Queue(opened), Uploads(elsewhere)
        assert files_in(there) == sorted(
            f"{token}{end}" for token in (upload.token, waiting.token) for end in ("", ".json")
        )
        assert there.folder.stat().st_mode & 0o077 == 0, "what was not submitted is nobody's but the board's"
        assert there.waiting("bob", again) == waiting
        restored = again.get(row.id)
        assert restored.place == str(there.folder)
        copied, _ = fetch(document, restored.pinned, tmp_path / "work", restored.place)
        assert len(list(copied.rglob("*.flac"))) == 51
        assert there.clear(again) == []

    take_down(queue, row.id, "ada", tmp_path / "runs", "stolen", datetime.now(UTC))
    backup, place = tmp_path / "backup.tar", elsewhere / "podeval.db"
    repeat = partial(repeat_takedowns, backup=backup)
    done = restore(backup, place, elsewhere, force=True, read_decisions=list_takedowns, settle=repeat)
    assert done.settled == [row.id]
    assert files_in(Uploads(elsewhere)) == [waiting.token, f"{waiting.token}.json"]
    assert list(elsewhere.rglob(upload.token)) != [], "what a restore replaces is kept beside it"
    with Database(elsewhere / "podeval.db") as opened:
        take_down(Queue(opened), row.id, "ada", elsewhere, "stolen", datetime.now(UTC))
    assert list(elsewhere.rglob(upload.token)) == []


@pytest.mark.parametrize("wall", WALLS)
def test_a_process_that_writes_more_than_it_may_leaves_nothing(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    from podeval import sandbox

    stand_up(wall, monkeypatch)
    (tmp_path / "one.zip").write_bytes(ONE)
    assert Uploads(tmp_path / "whole").take(tmp_path / "one.zip", "alice", queue).recordings
    narrow = sandbox.SandboxLimits(wall_seconds=60, memory_bytes=2 * 2**30, processes=64, output_bytes=2**20)
    monkeypatch.setattr(uploads_module, "BOX", narrow)
    (tmp_path / "a.zip").write_bytes(archive_of(("a.wav", b"RIFF" + np.random.default_rng(1).bytes(8 * 2**20))))
    uploads = Uploads(tmp_path / "runs")
    # The kernel refuses the byte beyond, or on a busy machine the watch sees it first.
    with pytest.raises(BadInput, match=r"cannot store the upload at present|it wrote more than 1 MiB"):
        uploads.take(tmp_path / "a.zip", "alice", queue)
    assert files_in(uploads) == []
    assert RECORDINGS not in {path.name for path in tmp_path.rglob("*")}


def test_an_archive_of_one_person_does_not_hold_up_anybody_elses(
    queue: Queue, uploads: Uploads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One person's are unpacked one after the other, of different people two at a time, however long they take."""
    from podeval import sandbox

    (tmp_path / "one.zip").write_bytes(ONE)
    began, end, run = threading.Semaphore(0), threading.Event(), sandbox.run

    def run_until_the_end(box: sandbox.SandboxSpec) -> sandbox.ExitInfo:
        if threading.current_thread().name.startswith("endless"):
            began.release()
            end.wait(60)
        return run(box)

    monkeypatch.setattr(sandbox, "run", run_until_the_end)
    monkeypatch.setattr(uploads_module, "_BUSY_SECONDS", 0.2)

    def begin(owner: str, board: Uploads) -> threading.Thread:
        take = threading.Thread(target=board.take, args=(tmp_path / "one.zip", owner, queue), name=f"endless {owner}")
        take.start()
        assert began.acquire(timeout=30)
        return take

    threads = [begin("mallory", uploads)]
    try:
        with pytest.raises(BadInput, match="other recordings are being unpacked"):
            uploads.take(tmp_path / "one.zip", "mallory", queue)
        assert uploads.take(tmp_path / "one.zip", "alice", queue).recordings
        # The form of another language has uploads of its own.
        threads.append(begin("bob", Uploads(tmp_path / "runs")))
        with pytest.raises(BadInput, match="other recordings are being unpacked"):
            uploads.take(tmp_path / "one.zip", "alice", queue)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert uploads.take(tmp_path / "one.zip", "mallory", queue).recordings


def test_an_archive_has_time_by_its_size(queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval import sandbox

    boxes: list[sandbox.SandboxSpec] = []
    monkeypatch.setattr(sandbox, "run", lambda box: boxes.append(box) or sandbox.ExitInfo(1, None, "", 0.0))
    for size in (0, 10**9):
        with (tmp_path / "a.zip").open("wb") as archive:
            archive.truncate(size)
        with pytest.raises(BadInput, match="cannot be unpacked here"):
            Uploads(tmp_path / "runs").take(tmp_path / "a.zip", "alice", queue)
    assert [box.limits.wall_seconds for box in boxes] == [60, 160]


def test_a_process_that_takes_too_long_is_ended(queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval import sandbox

    short = sandbox.SandboxLimits(wall_seconds=0.01, memory_bytes=2 * 2**30, processes=64)
    monkeypatch.setattr(uploads_module, "BOX", short)
    (tmp_path / "a.zip").write_bytes(ONE)
    uploads = Uploads(tmp_path / "runs")
    with pytest.raises(BadInput, match=r"cannot be unpacked here \(it took longer than 0.01 s\)"):
        uploads.take(tmp_path / "a.zip", "alice", queue)
    assert files_in(uploads) == []
