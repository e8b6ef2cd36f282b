"""A PostgreSQL of the tests' own: a private cluster in a temporary folder, on a port of loopback, run by nobody."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

OWNER = "nobody"
"""PostgreSQL refuses to run as root."""


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`, on the path or where Debian puts them."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


class Server:
    """A server over a folder of its own, which can be stopped as by a power cut and started again at its address.

    Args:
        binaries: see `programs`.
        folder: for its data and its log; belongs to who runs it.
        who: the account that runs it, as `subprocess` takes it.
    """

    def __init__(self, binaries: Path, folder: Path, who: dict[str, Any]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"postgresql://podeval@127.0.0.1:{self._port}"
        self._folder, self._who = folder, who
        data = folder / "data"
        options = ["-U", "podeval", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([binaries / "initdb", "-D", data, *options], check=True, capture_output=True, cwd=folder, **who)
        self._command = [binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(self._port), "-k", ""]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it answers when this returns."""
        log = self._folder / "log"
        for _ in range(100):
            with log.open("ab") as written:
                self._process = subprocess.Popen(
                    self._command, stdout=written, stderr=written, cwd=self._folder, **self._who
                )
            began = log.stat().st_size
            try:
                _wait(self._process, self._port, log)
            except AssertionError:
                # The processes of a server that was killed leave its memory a moment after it.
                if b"is still in use" not in log.read_bytes()[began:]:
                    raise
                time.sleep(0.1)
            else:
                return
        raise AssertionError(f"PostgreSQL did not come up: {log.read_text()}")

    def stop(self) -> None:
        """Stop it at once, without a checkpoint."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT)
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Kill all its processes at once, by their ids; none has time to write anything down."""
        main = self._process.pid
        listed = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        for process in (main, *map(int, listed)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        self._process = None


@contextmanager
def running(binaries: Path) -> Iterator[str]:
    """The address of a running server, without a database's name; it and its folder are gone afterwards."""
    with started(binaries) as server:
        yield server.address


@contextmanager
def started(binaries: Path) -> Iterator[Server]:
    """A running server; it and its folder are gone afterwards."""
    # In memory where there is some: the server syncs all the same, and the tests do not wait for a disk.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 300 << 20 else None
    folder = Path(tempfile.mkdtemp(prefix="podeval-postgresql-", dir=memory))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = pwd.getpwnam(OWNER)
        os.chown(folder, account.pw_uid, account.pw_gid)
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    server = None
    try:
        server = Server(binaries, folder, who)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    import psycopg

    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            psycopg.connect(f"postgresql://podeval@127.0.0.1:{port}/postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError(f"PostgreSQL did not come up: {log.read_text()}")
