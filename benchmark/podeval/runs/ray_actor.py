"""A worker of a Ray cluster: a process on a node that does one task at a time and keeps its models loaded.

It does not share a disk with its callers. The contents of files are sent to it; it keeps them in its own folder while
they are read and deletes them afterwards. The next worker on that machine removes the files of a killed worker.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput
from podeval.files import lock_folder
from podeval.runs.executor import Carried, limit_threads, try_twice

Content = NDArray[np.uint8]

_KEPT = 2
"""Number of functions that a worker keeps ready: one that speaks with a system, and one that measures earlier outputs.
"""


@dataclass(frozen=True)
class FileRef:
    """A file in transit: its original path, and the SHA-256 of its content."""

    path: Path
    sha256: str


class RayWorker:
    """A worker process; as a Ray actor, it starts on a node that has room for it."""

    def __init__(self, threads: int) -> None:
        limit_threads(threads)
        self._work: dict[str, Callable[[Any], Any]] = {}
        self._resources = contextlib.ExitStack()
        self._folder = self._make_own_folder()

    def meet(self) -> tuple[str, str]:
        """Return podeval's version on this machine and the machine's name; callers call this method first."""
        from podeval.version import __version__

        return __version__, platform.node()

    def do(self, name: str, work: Sequence[Any], task: Any, parcels: Sequence[FileRef], *contents: Content) -> Any:
        """Run a function on one task; the function is transferred only once, so its models stay loaded.

        Args:
            name: the name of the function.
            work: the function as a Ray reference, in a list, so that Ray does not fetch it with every task.
            task: the argument of the function.
            parcels: files of the task.
            contents: contents of these files.

        Returns:
            The result; None if memory ran out twice.

        Raises:
            Any other error that the function raises.
        """
        import ray

        if name not in self._work:
            while len(self._work) >= _KEPT:
                self._work.pop(next(iter(self._work)))
            self._work[name] = ray.get(work[0])
        if not parcels:
            return try_twice(self._work[name], task)
        assert isinstance(task, Carried)
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            return try_twice(self._work[name], task.moved(unpack(parcels, contents, Path(folder))))

    def _make_own_folder(self) -> Path:
        """Make a folder that is locked while this process lives, and remove the folders of dead processes."""
        common = Path(tempfile.gettempdir()) / f"podeval-hands-{os.getuid()}"
        common.mkdir(mode=0o700, exist_ok=True)
        for other in common.iterdir():
            with contextlib.suppress(BadInput, OSError), lock_folder(other):
                shutil.rmtree(other)
        folder = Path(tempfile.mkdtemp(dir=common))
        self._resources.enter_context(lock_folder(folder))
        return folder


def pack(task: Any) -> tuple[list[FileRef], list[Content]]:
    """Read the files of a task; a missing file is not transferred, and causes an error when it is read."""
    if not isinstance(task, Carried):
        return [], []
    paths = [path for path in task.files if path.is_file()]
    contents = [np.fromfile(path, np.uint8) for path in paths]
    return [FileRef(path, _sha256(content)) for path, content in zip(paths, contents, strict=True)], contents


def unpack(parcels: Sequence[FileRef], contents: Sequence[Content], parent: Path) -> dict[Path, Path]:
    """Write files into folders below `parent`, under their names; return the new folder for each original folder.

    Raises:
        OSError: the content of a file differs from the one sent.
    """
    folders: dict[Path, Path] = {}
    for parcel, content in zip(parcels, contents, strict=True):
        if _sha256(content) != parcel.sha256:
            raise OSError(f"the file {parcel.path} arrived damaged on {platform.node()}")
        if parcel.path.parent not in folders:
            folders[parcel.path.parent] = parent / str(len(folders))
            folders[parcel.path.parent].mkdir()
        content.tofile(folders[parcel.path.parent] / parcel.path.name)
    return folders


def _sha256(content: Content) -> str:
    return hashlib.sha256(content.data).hexdigest()
