"""A Hub on loopback: what the real clients ask of it, answered from a folder of Spaces.

`evaluate.load` needs `HEAD` and `GET` of `/spaces/<owner>/<name>/resolve/main/<file>` with an ETag, and a 404 for
the tag of its own version.
"""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit


class LoopbackHub:
    """Serves each folder below `spaces` as the Space `<owner>/<folder>`, branch main; a context manager."""

    def __init__(self, spaces: Path, owner: str = "podeval") -> None:
        self.requests: list[tuple[str, str, int]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, spaces, owner))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """What `HF_ENDPOINT` is set to."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "LoopbackHub":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(hub: LoopbackHub, spaces: Path, owner: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self, *, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            content = _content(spaces, owner, path)
            status = 404 if content is None else 200
            hub.requests.append((self.command, path, status))
            self.send_response(status)
            if content is None:
                self.send_header("X-Error-Code", "EntryNotFound")
            else:
                self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if with_body and content:
                self.wfile.write(content)

    return Handler


def _content(spaces: Path, owner: str, path: str) -> bytes | None:
    match path.strip("/").split("/"):
        case ["spaces", asked, name, "resolve", "main", file] if asked == owner:
            found = spaces / name / file
            return found.read_bytes() if found.is_file() else None
    return None
