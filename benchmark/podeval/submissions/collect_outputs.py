"""Collect a run's outputs from the files of an untrusted process; the files are checked only by name and type.

A second sandbox decodes audio and rewrites it as FLAC, and only this copy is kept. A line of the process's log is used
if it is well-formed, belongs to a requested item, and names plain files next to the log.

If this process observes a fault of the machine, it raises `MachineFault`: the submission returns to the queue and is
never given up for this reason. A fault that is only reported by a sandboxed program counts as an attempt
(`OursFailed`).
"""

import contextlib
import itertools
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podeval import sandbox
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder
from podeval.sandbox.transcode import REPORT, Bounds, Transcoded, write_job
from podeval.submissions.rules import MachineFault, OursFailed
from podeval.systems.adapters.adapter import Generated
from podeval.systems.speech import SpokenTurn
from podeval.text.longest import MOST_BYTES
from podeval.text.script_format import read_any_script
from podeval.text.text_file import decode_text

LEAST_FREE = 512 * 2**20
"""Number of free bytes on the disk below which sandboxes do not work."""

LOG = "generated.jsonl"
_LOG_MOST = 64 * 2**20
_LINE_MOST = 2**20
_AT_ONCE = 4 * 2**20
"""Number of bytes of the log that are parsed at a time; parsed JSON can take thirty times as many bytes in memory."""
_LINES_MOST = 2_000
_DETAILS_MOST = 16_384
_KILLED = (-9, 128 + 9)
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,250}")


@dataclass(frozen=True)
class Intake:
    """The intake for the outputs of one run.

    Attributes:
        folder: folder of the run.
        bounds: limits for a recording.
        trusted: whether files may be decoded without isolation.
    """

    folder: RunFolder
    bounds: Bounds = field(default_factory=Bounds)
    trusted: bool = False

    def list_missing(self, items: Sequence[Item]) -> list[Item]:
        """List the items that have no output yet."""
        return [item for item in items if self.folder.output(item.id) is None]

    def lines(self, out: Path, start: int) -> tuple[list[Generated], int]:
        """Read new complete lines of a folder's log; return them and the position of the next line. Call this method
        again until there are no new lines.

        Raises:
            BadInput: the log is not a plain file, or the log or one of its lines is larger than allowed.
        """
        content, size = _read_file(out / LOG, start, min(_LOG_MOST, start + _AT_ONCE))
        if size > _LOG_MOST:
            raise BadInput(f"the program's log is larger than {_LOG_MOST // 2**20} MiB")
        pieces = content.split(b"\n")
        # Split before parsing; the last piece is a line that is still being written or that the limit cut off.
        if any(len(piece) > _LINE_MOST for piece in pieces):
            raise BadInput(f"a line of the program's log is longer than {_LINE_MOST // 2**20} MiB")
        # There should be one line for each item; if a program writes millions of lines, they are not read all at the
        # same time.
        whole = b"".join(piece + b"\n" for piece in pieces[:-1][:_LINES_MOST])
        return list(_parse_lines(whole)), start + len(whole)

    def take(self, lines: Sequence[tuple[Item, Generated]], out: Path, clean: Path) -> None:
        """Store the outputs of these items, or the reasons why outputs are missing.

        Args:
            lines: items, each with its log line.
            out: folder with the process's output.
            clean: new folder for the decoded copies.
        """
        audio = {name: file for item, line in lines for name, file in _audio_files(item, line).items()}
        sound = {name: file for name, file in audio.items() if _is_plain_file(out, file)}
        copies = self._transcode({name: out / file for name, file in sound.items()}, clean)
        for item, line in lines:
            self._keep(item, line, out, clean, copies)

    def fail(self, item: Item, reason: str) -> None:
        """Record that an item has no output because the system failed."""
        self.folder.write_output(Output(item=item.id, failed=reason[:2_000], script=_script_asked_for(item)))

    def _keep(self, item: Item, line: Generated, out: Path, clean: Path, copies: Mapping[str, Transcoded]) -> None:
        if line.error is not None:
            self.fail(item, line.error)
            return
        # Refuse files that do not belong to this output, and recordings that were refused when they were decoded.
        refused = [
            f"{file!r} is not a regular file in its folder" for file in line.files if not _is_plain_file(out, file)
        ]
        audio_files = _audio_files(item, line)
        refused += [why for name in audio_files if name in copies and (why := copies[name].refused)]
        if refused:
            self.fail(item, refused[0])
            return
        # Read the script, or keep the script that was requested.
        script: tuple[dict[str, str], ...] = _script_asked_for(item)
        details = keep_proportionate_details(line)
        if line.script is not None:
            try:
                written = read_any_script(_read_script(out / line.script))
                script = tuple(written.to_json())
                details |= {"script_notes": list(written.notes)} if written.notes else {}
            except (BadInput, RecursionError) as error:
                self.fail(item, f"the script cannot be read: {error}")
                return
        if not audio_files and line.script is None:
            self.fail(item, "the system returned neither audio nor a script")
            return
        # Move the recordings into the run, then write the output, which marks them as complete.
        kept = {name: _adopt(clean / str(copies[name].file), self.folder.outputs) for name in audio_files}
        seconds = sum(copies[name].seconds for name in audio_files) or None
        audio = kept.get(item.id) if line.audio else None
        words = {answer.turn: answer.text or "" for answer in line.answers}
        answers = tuple(
            OutputAnswer(audio=kept.get(f"{item.id}.{turn.id}"), words=words.get(turn.id, "")) for turn in item.user
        )
        self.folder.write_output(
            Output(
                item=item.id,
                audio=audio,
                duration=seconds,
                wall_seconds=_require_possible_seconds(line.wall_seconds),
                load_seconds=_require_possible_seconds(line.load_seconds),
                turns=keep_possible_turns(line, seconds),
                script=script,
                answers=answers if line.answers else (),
                details=details,
            )
        )

    def _transcode(self, files: Mapping[str, Path], clean: Path) -> dict[str, Transcoded]:
        """Transcode files, by name: first all together, then one by one if that fails."""
        if not files:
            return {}
        copies, failure = self._transcode_in_box(files, clean)
        missing = {name: file for name, file in files.items() if name not in copies}
        if len(files) == 1:
            return copies | {name: Transcoded(name, refused=f"audio cannot be decoded: {failure}") for name in missing}
        for name, file in missing.items():
            copies |= self._transcode({name: file}, clean)
        return copies

    def _transcode_in_box(self, files: Mapping[str, Path], clean: Path) -> tuple[dict[str, Transcoded], str | None]:
        clean.mkdir(parents=True, exist_ok=True)
        job = clean / "job.json"
        write_job(job, files, clean, self.bounds)
        (clean / REPORT).unlink(missing_ok=True)
        limits = sandbox.SandboxLimits(
            wall_seconds=60 + len(files) * self.bounds.seconds / 20, memory_bytes=4 * 2**30, processes=64
        )
        sources = sorted({file.parent for file in files.values()})
        command = sandbox.build_python_command("podeval.sandbox.transcode", str(job))
        box = sandbox.SandboxSpec(command, clean, sources, limits, sandbox.ONE_THREAD, trusted=self.trusted, own=True)
        with open_box(box) as running:
            ended = running.wait()
        # Accept only plausible values from the report.
        reports = {}
        for line in _read_file(clean / REPORT, 0, 2**20)[0].splitlines():
            with contextlib.suppress(ValueError, TypeError):
                one = Transcoded(**json.loads(line))
                if one.item in files and (one.refused or _is_right(one, clean)):
                    reports[one.item] = one
        if any(one.refused for one in reports.values()):
            # A file may have been refused only because there was no disk space for its copy.
            require_disk(clean)
        return reports, ended.failure


@contextlib.contextmanager
def open_box(box: sandbox.SandboxSpec) -> Iterator[sandbox.Running]:
    """Open a sandbox; when the block ends, every process in the sandbox has been killed.

    Raises:
        MachineFault: the sandbox cannot be started on this machine, or its failure is this machine's fault.
        OursFailed: the machine ran out of memory.
    """
    kills = sandbox.count_memory_kills()
    with contextlib.ExitStack() as held:
        try:
            running = held.enter_context(sandbox.open_sandbox(box))
        except OSError as error:
            raise MachineFault(f"no sandbox can be opened on this machine ({error})", everything=True) from error
        yield running
    require_no_fault(running.wait(), box.writable, kills)


def require_disk(folder: Path) -> None:
    """Raise an error if the disk has too little space for any sandbox, unless this sandbox's own folder is the cause.

    Raises:
        MachineFault: the disk is too full; the message states the remaining space.
    """
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE and measure_disk_use(folder) < LEAST_FREE:
        raise MachineFault(
            f"the disk with the work folder is almost full: {free // 2**20} MiB is left, but at least "
            f"{LEAST_FREE // 2**20} MiB is needed; free some space",
            everything=True,
        )


def require_no_fault(ended: sandbox.ExitInfo, folder: Path, kills_before: int) -> None:
    """Check that the machine is not at fault before a sandboxed program is blamed for its failure.

    Args:
        ended: the outcome of the program.
        folder: folder with the sandbox's output.
        kills_before: `sandbox.count_memory_kills()` before the program was started.

    Raises:
        MachineFault: the disk is full for other reasons, or sandboxes no longer work on this machine.
        OursFailed: the machine ran out of memory.
    """
    if ended.failure is None:
        return
    require_disk(folder)
    if ended.log.startswith("bwrap: "):
        # The sandbox is checked again, because conditions may have changed since the worker started.
        tried = getattr(sandbox.explain_missing_isolation, "__wrapped__", sandbox.explain_missing_isolation)
        if (why := tried()) is not None:
            raise MachineFault(f"sandboxes can no longer be opened: {why}")
        raise OursFailed(f"the sandbox could not be opened ({ended.log.splitlines()[0][:200]})")
    killed = ended.stopped is None and ended.code in _KILLED and sandbox.count_memory_kills() > kills_before
    if killed or "the machine's memory" in (ended.stopped or ""):
        raise OursFailed("the machine ran out of memory during the run; end other programs, or lower --memory")


def measure_disk_use(folder: Path) -> int:
    """Return the total size in bytes of the files below a folder, excluding links; if there are very many files, only
    the first ones are counted.
    """
    size = 0
    for root, _, names in itertools.islice(os.walk(folder), 10_000):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(root, name)).st_blocks * 512
    return size


def _parse_lines(content: bytes) -> Iterator[Generated]:
    """Yield the well-formed lines; all other lines are ignored."""
    for line in content.splitlines():
        with contextlib.suppress(ValueError, ValidationError, RecursionError):
            yield Generated.model_validate(json.loads(line))


def _read_file(path: Path, start: int, most: int) -> tuple[bytes, int]:
    """Read a plain file from a position up to a limit; return the content and the file's size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return b"", 0
    except OSError as error:
        raise BadInput(f"the file {path.name} cannot be read ({error.strerror})") from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise BadInput(f"the file {path.name} is not a regular file")
        file.seek(start)
        return file.read(max(0, most - start)), about.st_size


def _read_script(path: Path) -> str:
    """Read the text of a script.

    Raises:
        BadInput: the script is larger than the limit, or not text.
    """
    content, size = _read_file(path, 0, MOST_BYTES)
    if size > MOST_BYTES:
        raise BadInput(f"{path.name} is {size} bytes long; a script may have at most {MOST_BYTES} bytes")
    return decode_text(content, path.name)


def is_name(name: str) -> bool:
    """Return whether a name is allowed for an output file: it must not contain a path or be hidden."""
    return _NAME.fullmatch(name) is not None


def _is_plain_file(out: Path, name: str) -> bool:
    """Return whether a name belongs to a plain file in a folder."""
    if not is_name(name):
        return False
    try:
        about = (out / name).lstat()
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_nlink == 1


def _audio_files(item: Item, line: Generated) -> dict[str, str]:
    """Return the audio files of a line, by the name of each copy."""
    turns = {turn.id for turn in item.user}
    answers = {f"{item.id}.{answer.turn}": answer.audio for answer in line.answers if answer.turn in turns}
    return ({item.id: line.audio} if line.audio else {}) | answers


def _is_right(one: Transcoded, clean: Path) -> bool:
    """Return whether a report names an existing file and contains plausible figures."""
    plain = one.file in (f"{one.item}.flac", f"{one.item}.wav") and _is_plain_file(clean, str(one.file))
    return plain and math.isfinite(one.seconds) and one.seconds > 0


def _adopt(copy: Path, outputs: Path) -> str:
    """Move a copy into the run's outputs, synced and owned by this user."""
    outputs.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(copy, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, 0o644)
        os.fchown(descriptor, os.geteuid(), os.getegid())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    copy.replace(outputs / copy.name)
    return copy.name


def _script_asked_for(item: Item) -> tuple[dict[str, str], ...]:
    return tuple(item.script.to_json()) if item.script is not None else ()


def _require_possible_seconds(value: float) -> float | None:
    return value if math.isfinite(value) and 0 < value < 10**7 else None


def keep_possible_turns(line: Generated, seconds: float | None) -> tuple[SpokenTurn, ...]:
    """Return the times of turns; empty if any of these times is impossible."""
    longest = (seconds or 0.0) + 1.0
    return line.turns if all(0 <= turn.start <= turn.end <= longest for turn in line.turns) else ()


def keep_proportionate_details(line: Generated) -> dict[str, Any]:
    """Return the provenance details, unless they are too large."""
    details = line.details | ({"hardware": line.hardware} if line.hardware else {})
    try:
        text = json.dumps(details, allow_nan=False)
    except ValueError:
        return {}
    return details if len(text) <= _DETAILS_MOST else {}
