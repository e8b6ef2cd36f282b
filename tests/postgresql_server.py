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
from contextlib import contextmanager
from pathlib import Path

OWNER = "nobody"
"""PostgreSQL refuses to run as root."""


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`, on the path or where Debian puts them."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


@contextmanager
def running(binaries: Path) -> Iterator[str]:
    """The address of a running server, without a database's name; it and its folder are gone afterwards."""
    # In memory where there is some: the server syncs all the same, and the tests do not wait for a disk.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 300 << 20 else None
    folder = Path(tempfile.mkdtemp(prefix="podeval-postgresql-", dir=memory))
    who = {}
    if os.geteuid() == 0:
        account = pwd.getpwnam(OWNER)
        os.chown(folder, account.pw_uid, account.pw_gid)
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    make = [binaries / "initdb", "-D", data, "-U", "podeval", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run(make, check=True, capture_output=True, cwd=folder, **who)
    serve = [binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", ""]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(serve, stdout=log, stderr=log, cwd=folder, **who)
    try:
        _wait(server, port, folder / "log")
        yield f"postgresql://podeval@127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGQUIT)  # at once, without a checkpoint: nothing of it is kept
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    import psycopg

    for _ in range(150):
        assert server.poll() is None, log.read_text()
        try:
            psycopg.connect(f"postgresql://podeval@127.0.0.1:{port}/postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError(f"PostgreSQL did not come up: {log.read_text()}")
