"""The disk is full in the middle of writing: a file system of 2 MB where this machine lets one be mounted, else a limit
on the size of files (RLIMIT_FSIZE), which fails a write as a full disk does.

Runs on a full disk: tests/runs/test_processes.py and test_resume.py; a full cache: tests/recording/test_cache.py; a
backup: test_backup.py.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podeval.arena.vote_objects import VoteObjects
from podeval.errors import StoreReadOnly, StoreUnusable
from podeval.files import DiskFull
from podeval.store.database import Database
from podeval.store.secret import Secret
from tests.fakes.databases import ON_SQLITE, Make
from tests.survival.test_backup import votes

pytestmark = ON_SQLITE


class Small:
    """A place with little room, that can be filled up and have room again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mounted = os.geteuid() == 0 and shutil.which("mount")
        command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
        self.mounted = bool(mounted) and subprocess.run(command, capture_output=True, check=False).returncode == 0
        # A file that may not grow is an error of reading and writing for SQLite, a disk without room is full.
        full = "is full, so nothing was recorded; free space"
        self.sentence = full if self.mounted else "does not answer (disk I/O error); nothing was recorded"
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)

    def fill(self, leave: int = 0) -> None:
        """Leave so many bytes of room."""
        if not self.mounted:
            most = max((path.stat().st_size for path in self.folder.iterdir()), default=0)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most + leave, self._before[0][1]))
            return
        room = os.statvfs(self.folder)
        with (self.folder / "ballast").open("wb") as file:
            file.write(bytes(max(0, room.f_bavail * room.f_frsize - leave)))

    def remount(self, mode: str) -> None:
        """Mount it read-only (`ro`) or writable (`rw`); no file of it may be open."""
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.folder)], check=True)

    def free(self) -> None:
        """There is room again."""
        if self.mounted:
            (self.folder / "ballast").unlink(missing_ok=True)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, self._before[0])
            signal.signal(signal.SIGXFSZ, self._before[1])

    def end(self) -> None:
        self.free()
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Small]:
    made = Small(tmp_path / "small")
    yield made
    made.end()


@pytest.mark.parametrize("leave", [0, 30_000, 90_000])
def test_a_full_disk_under_the_database_loses_no_vote_and_votes_go_on_when_there_is_room(
    small_arena: Make, small_disk: Small, leave: int
) -> None:
    place = small_disk.folder / "podeval.db"
    small = small_arena(str(place), systems=10, items=4, gold_share=0.0, most_an_hour=1000)
    acknowledged = {small.vote("somebody", id=f"before-{number:05}").vote for number in range(3)}
    small_disk.fill(leave)
    told: list[str] = []
    for number in range(200):
        try:
            acknowledged.add(small.vote(f"person{number % 7}", id=f"meanwhile-{number:05}").vote)
        except StoreUnusable as error:
            told.append(str(error))
            if len(told) == 3:
                break
    assert len(told) == 3, "the disk was not full"
    assert all(small_disk.sentence in sentence for sentence in told), told
    assert votes(place) == acknowledged, "while it is full, all can be read"
    small_disk.free()
    acknowledged.add(small.vote("somebody", id="afterwards-00001").vote)
    assert votes(place) == acknowledged
    small.close()


def test_health_says_that_nothing_is_taken_while_the_disk_is_full(
    small_arena: Make, small_disk: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "space"))
    import services

    small = small_arena(str(small_disk.folder / "podeval.db"))
    now = [0.0]
    probe = services.WriteProbe(small.database, clock=lambda: now[0])
    assert probe.why_not() is None
    small_disk.fill()
    seen = []
    for _ in range(200):
        now[0] += services.EVERY
        seen.append(probe.why_not())
        if seen[-1]:
            break
    assert seen[-1] == services.NOT_TAKEN, "the disk was not full"
    small_disk.free()
    assert probe.why_not() == services.NOT_TAKEN, "it asks now and then"
    now[0] += services.EVERY
    assert probe.why_not() is None
    small.close()


@pytest.mark.space
@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_a_site_that_starts_on_a_disk_that_cannot_be_written_says_so_and_can_be_read(
    small_arena: Make, small_disk: Small, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    """SQLite says `disk I/O error` or `unable to open`, as there is no place for the index of its log."""
    from services import open_services

    if not small_disk.mounted:
        pytest.skip("no small disk can be mounted here")
    place = small_disk.folder / "podeval.db"
    small = small_arena(str(place))
    vote = small.vote("somebody").vote
    Secret.of(small.database)
    small.close()
    if trouble == "full":
        small_disk.fill()
    else:
        small_disk.remount("ro")
    services = open_services(small_disk.folder)
    assert re.search(rf"the disk of sqlite\S+ is {trouble}.*; .*\. Then start again", caplog.text)
    assert services.closed
    assert "was full or read-only when it started" in services.closed
    assert list(services.arena.battles()["vote"]) == [vote]
    with pytest.raises(StoreUnusable, match=r"\.db was not writable when it was opened, so nothing was recorded"):
        services.arena.sweep()
    services.database.close()
    # A worker has nothing to read for.
    with pytest.raises(StoreReadOnly, match="Then start again"):
        Database(place)
    small_disk.remount("rw")
    small_disk.free()
    opened = open_services(small_disk.folder)
    assert opened.closed is None
    opened.database.close()


def test_a_full_bucket_costs_the_acknowledgement_and_sending_again_counts_once(
    small_arena: Make, small_disk: Small, tmp_path: Path
) -> None:
    bucket = VoteObjects(small_disk.folder)
    small = small_arena(systems=6, objects=bucket)
    small.vote("alice", id="before-00001")
    battle = small.serve("alice")
    small.clock.on(60)
    ballot = small.ballot(battle, id="meanwhile-00001")
    small_disk.fill()
    # A limit on files, where no disk can be mounted, is met by the database first.
    with pytest.raises(DiskFull if small_disk.mounted else StoreUnusable, match=r"the disk is full|disk I/O error"):
        small.arena.vote("alice", ballot)
    small_disk.free()
    assert small.arena.vote("alice", ballot).vote == "meanwhile-00001"
    place = Path(str(small.database.url.database))
    assert votes(place) == {"before-00001", "meanwhile-00001"}
    with Database(tmp_path / "new.db") as database:
        assert bucket.read_back(database).votes == 2


def test_a_restore_that_finds_no_room_leaves_what_was_there(
    small_arena: Make, small_disk: Small, tmp_path: Path, database_place: str
) -> None:
    from podeval.operations.backup import make_backup
    from podeval.operations.restore import restore

    small = small_arena()
    small.vote("alice", id="before-00001")
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "large.json").write_bytes(os.urandom(900_000))
    make_backup(tmp_path / "backup.tar", database_place, runs)
    target = small_disk.folder / "podeval.db"
    small_arena(str(target)).close()
    before = target.read_bytes()
    small_disk.fill(200_000)
    with pytest.raises(DiskFull, match="nothing was changed; free some space and restore again"):
        restore(tmp_path / "backup.tar", target, small_disk.folder / "runs", force=True)
    assert target.read_bytes() == before
    small_disk.free()
    restore(tmp_path / "backup.tar", target, small_disk.folder / "runs", force=True)
    assert votes(target) == {"before-00001"}
