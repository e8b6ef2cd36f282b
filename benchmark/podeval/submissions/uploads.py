"""The recordings that people uploaded to this board as a zip, for systems that cannot be run as a model.

Each upload is a folder next to the runs, with a name that cannot be guessed; a file next to the folder describes the
upload. A person can have one upload that has not been submitted; the next upload replaces it. Files that no submission
needs are removed.
"""

import json
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from podeval import benchmarks, sandbox
from podeval.errors import BadInput
from podeval.files import explain_write_errors, sync_folder, write_json
from podeval.runs.run_folder import UPLOADS
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions import recordings_zip
from podeval.submissions.queue import Queue
from podeval.submissions.source_files import TOKEN, delete_upload, list_files
from podeval.submissions.states import KEPT, OPEN, TAKEN_DOWN_IDS
from podeval.texts import parse_sentence, write_sentence

WAITING = timedelta(days=1)
"""Time for which an upload is kept without a submission."""

OWNER_BYTES = 8 * 2**30
"""Maximum disk space in bytes for one person's uploads, submitted or not."""

LEAST_FREE = 2 * 2**30
"""Number of bytes that must stay free on the disk after the files are unpacked."""

BOX = sandbox.SandboxLimits(
    wall_seconds=60.0, memory_bytes=2 * 2**30, processes=64, output_bytes=5 * 2**30, output_files=20_000
)
"""Limits for the unpacking process, which is given more time for a larger archive."""
AT_ONCE = 2
"""Maximum number of archives that are unpacked at the same time, each from a different person."""
_BYTES_A_SECOND = 10_000_000
_INCOMING = ".incoming-"
_BUSY_SECONDS = 60.0
_TURN, _UNPACKING = threading.Condition(), set[str]()
"""The people whose archives this process is unpacking."""


@dataclass(frozen=True, kw_only=True)
class Upload(recordings_zip.UnpackedZip):
    """Recordings that their owner uploaded; see `UnpackedZip`.

    Attributes:
        token: name of the folder with the recordings; a submission gives this name as its folder.
        at: time of the upload, in ISO format.
        size: total size of the recordings in bytes.
    """

    token: str
    owner: str
    at: str
    size: int


class Uploads:
    """The uploads of a board; any number of threads may use the object.

    Args:
        runs: folder of runs of the board.
        clock: function that returns the time in UTC.
    """

    def __init__(self, runs: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.folder = (runs / UPLOADS).resolve()
        self._clock = clock

    def take(self, archive: Path, owner: str, queue: Queue) -> Upload:
        """Unpack an archive in a separate process, and keep its recordings until they are submitted.

        The archive is made readable for the process, but is not changed.

        Raises:
            BadInput: the whole archive is refused; the message gives the reason and the remedy.
            DiskFull: there is not enough disk space.
        """
        with _take_turn(owner):
            self.clear(queue)
            self._require_room(archive, owner)
            upload = self._unpack(archive, owner)
            for earlier in self._list(owner):
                if earlier.token != upload.token and not self._rows(queue, earlier.token):
                    delete_upload(str(self.folder), earlier.token)
            return upload

    def waiting(self, owner: str, queue: Queue) -> Upload | None:
        """Return a person's upload that has not been submitted yet, if there is one."""
        return next((one for one in self._list(owner) if not self._rows(queue, one.token)), None)

    def clear(self, queue: Queue) -> list[str]:
        """Remove uploads that no submission needs, and files left behind by killed processes; return the names of the
        removed files.
        """
        now, removed = self._clock(), []
        for path in sorted(self.folder.glob("*")):
            old = datetime.fromtimestamp(path.lstat().st_mtime, UTC) < now - WAITING
            token, about = path.name.removesuffix(".json"), path.with_suffix(".json")
            if path == about and TOKEN.fullmatch(token) and not self._is_needed(queue, token, old, now):
                delete_upload(str(self.folder), token)
                removed.append(token)
            unfinished = path.name.startswith(_INCOMING) or (TOKEN.fullmatch(path.name) and not about.exists())
            if old and path.is_dir() and unfinished:
                shutil.rmtree(path, ignore_errors=True)
        return removed

    def _is_needed(self, queue: Queue, token: str, old: bool, now: datetime) -> bool:
        rows = self._rows(queue, token)
        if not rows:
            return not old
        taken_down = set(queue.database.list_rows(TAKEN_DOWN_IDS))
        return any(
            row.state in OPEN or (row.state != "refused" and row.state_at > now - KEPT)
            for row in rows
            if row.id not in taken_down
        )

    def _rows(self, queue: Queue, token: str) -> list[SubmissionRow]:
        """List the submissions that use an upload."""
        beside = queue.database.list_rows(select(SubmissionRow).where(SubmissionRow.place == str(self.folder)))
        return [row for row in beside if row.document["source"].get("folder") == token]

    def _list(self, owner: str) -> list[Upload]:
        """List a person's uploads, latest first."""
        uploads = []
        for path in self.folder.glob("*.json"):
            try:
                one = Upload(**json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                continue
            if one.owner == owner and (self.folder / one.token).is_dir():
                uploads.append(one)
        return sorted(uploads, key=lambda one: one.at, reverse=True)

    def _require_room(self, archive: Path, owner: str) -> None:
        if sum(one.size for one in self._list(owner)) > OWNER_BYTES:
            raise BadInput(write_sentence("uploads-too-large", most=OWNER_BYTES // 2**30))
        with explain_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if shutil.disk_usage(self.folder).free < LEAST_FREE + archive.stat().st_size:
            raise BadInput(write_sentence("no-room-for-uploads"))

    def _unpack(self, archive: Path, owner: str) -> Upload:
        token = f"u{secrets.token_hex(12)}"
        incoming = self.folder / f"{_INCOMING}{token}"
        try:
            with explain_write_errors(incoming):
                (incoming / "out").mkdir(parents=True)
            # Unpack, and trust the report only for files that exist.
            report = self._run(archive, incoming / "out")
            unpacked = incoming / "out" / recordings_zip.RECORDINGS
            sizes = list_files(unpacked) if unpacked.is_dir() else {}
            recordings = {name: float(report["recordings"][name]) for name in sizes}
            _take_ownership(unpacked)
            upload = Upload(
                token=token,
                owner=owner,
                at=self._clock().isoformat(),
                size=sum(sizes.values()),
                recordings=recordings,
                unreadable={str(name)[:300]: str(why)[:500] for name, why in report["unreadable"].items()},
                ignored=[str(name)[:200] for name in report["ignored"]],
            )
            # Move the folder into place first, because the file next to the folder marks the folder as complete.
            if recordings:
                with explain_write_errors(self.folder):
                    unpacked.rename(self.folder / token)
                write_json(self.folder / f"{token}.json", asdict(upload))
                sync_folder(self.folder)
            return upload
        except (KeyError, TypeError, AttributeError):
            raise BadInput(write_sentence("zip-not-unpacked")) from None
        finally:
            shutil.rmtree(incoming, ignore_errors=True)

    def _run(self, archive: Path, out: Path) -> dict[str, Any]:
        """Run the unpacking program, in a sandbox if one is available, and return its report."""
        runs = [
            f"{name}/{split.name}" for name in benchmarks.list_benchmarks() for split in benchmarks.get(name).splits
        ]
        # The sandbox runs as another user.
        archive.chmod(0o644)
        recordings_zip.write_job(out / "job.json", archive, out, runs)
        command = sandbox.build_python_command("podeval.submissions.recordings_zip", str(out / "job.json"))
        limits = replace(BOX, wall_seconds=BOX.wall_seconds + archive.stat().st_size // _BYTES_A_SECOND)
        ended = sandbox.run(sandbox.SandboxSpec(command, out, [archive], limits, sandbox.ONE_THREAD, own=True))
        try:
            path = out / recordings_zip.REPORT
            if path.is_symlink() or path.stat().st_size > 8 * 2**20:
                raise ValueError
            report: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            if "left too little" in (ended.stopped or ""):
                raise BadInput(write_sentence("cannot-store")) from None
            problem = ended.failure or "the unpacking program left no report"
            raise BadInput(write_sentence("zip-not-unpacked-because", problem=problem)) from None
        if refused := report.get("refused"):
            raise BadInput(parse_sentence(str(refused)) or str(refused))
        return report


@contextmanager
def _take_turn(owner: str) -> Iterator[None]:
    """Wait until the person has no other upload in progress and a slot is free, and hold the slot during the block.

    Raises:
        BadInput: no slot becomes free within a minute.
    """
    with _TURN:
        if not _TURN.wait_for(lambda: owner not in _UNPACKING and len(_UNPACKING) < AT_ONCE, _BUSY_SECONDS):
            raise BadInput(write_sentence("unpacking-others"))
        _UNPACKING.add(owner)
    try:
        yield
    finally:
        with _TURN:
            _UNPACKING.discard(owner)
            _TURN.notify_all()


def _take_ownership(folder: Path) -> None:
    """Take ownership of files that another user unpacked; anything that is neither a file nor a folder is removed."""
    for root, folders, names in os.walk(folder):
        for path in (root, *(os.path.join(root, name) for name in (*folders, *names))):
            mode = os.lstat(path).st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise BadInput(write_sentence("zip-not-unpacked"))
            os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
            os.chmod(path, 0o755 if stat.S_ISDIR(mode) else 0o644)
