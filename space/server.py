"""The server: uvicorn with a time limit, because it would otherwise wait indefinitely for the head of a request."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections import Counter
from typing import Any, ClassVar

import h11
import uvicorn
from request_guard import find_address_block, read_trusted_proxies
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Maximum number of seconds from the first byte of a request to the end of its head, and from connecting to the first
byte.
"""

MOST_CONNECTIONS, EACH_CONNECTS = 1_000, 100
"""Maximum number of connections in total, and from one address; behind a proxy, there is only one address."""
SPARE, SPARE_EACH = 200, 20
"""Number of additional connections, which receive the message that the site is full but can request `/health`."""
OPEN_FILES = 4_096
LARGEST_HEAD = 32 * 1024


class ImpatientProtocol(H11Protocol):
    """An HTTP/1.1 protocol that closes connections on which the head of a request arrives too slowly, and connections
    of clients that have too many connections.
    """

    _of_address: ClassVar[Counter[str]] = Counter()
    _address = ""
    _most: int | None = None
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a new connection."""
        super().connection_made(transport)
        self._wait()
        if self.client and not read_trusted_proxies():
            self._address = find_address_block(self.client[0])
            self._of_address[self._address] += 1
        too_many = self._of_address[self._address] > EACH_CONNECTS + SPARE_EACH
        if too_many or len(self.connections) > MOST_CONNECTIONS + SPARE:
            transport.abort()

    @property
    def limit_concurrency(self) -> int | None:
        """The maximum number of connections for handling a request, which uvicorn checks after the request's head."""
        if self.scope["path"] == "/health":
            return None
        return 0 if self._of_address[self._address] > EACH_CONNECTS else self._most

    @limit_concurrency.setter
    def limit_concurrency(self, most: int | None) -> None:
        self._most = most

    def data_received(self, data: bytes) -> None:
        """Receive incoming data."""
        if self._waiting is None and self.conn.their_state is h11.IDLE:
            self._wait()
        super().data_received(data)
        if self._waiting is not None and self.conn.their_state is not h11.IDLE:
            self._waiting.cancel()
            self._waiting = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister a connection that ended."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._address:
            self._of_address[self._address] -= 1
            if not self._of_address[self._address]:
                del self._of_address[self._address]
            self._address = ""
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        self._waiting = None
        self.transport.close()


class SiteServer(uvicorn.Server):
    """A server that reports when it is ready.

    Objects that exist by then stay in memory, so they are excluded from garbage collection, which would delay all
    responses by 0.3 s.

    Args:
        config: see `build_configuration`.
        announce: text to print when the server is ready; nothing is printed if the text is empty.
    """

    def __init__(self, config: uvicorn.Config, announce: str = "") -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        if self._announce:
            print(self._announce, flush=True)


def build_configuration(app: Any, host: str, port: int) -> uvicorn.Config:
    """Return the server's settings: limits on heads and on waiting, and no trust in what a request states about
    proxies.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=ImpatientProtocol,
        ws="none",
        log_config=None,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_keep_alive=10,
    )


def run(app: Any, host: str, port: int, announce: str = "") -> None:
    """Serve until interrupted.

    Args:
        app: the site.
        host: address to listen on.
        port: port to listen on.
        announce: text to print once the site responds.
    """
    # A thousand connections need more open files than many systems allow a program by default.
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < OPEN_FILES:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
    SiteServer(build_configuration(app, host, port), announce).run()
