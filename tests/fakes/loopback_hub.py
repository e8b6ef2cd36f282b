"""A Hub on loopback: what the real clients ask of it, answered from a folder of Spaces and folders of models.

`evaluate.load` needs `HEAD` and `GET` of `/spaces/<owner>/<name>/resolve/main/<file>` with an ETag, and a 404 for
the tag of its own version; `hf_hub_download` the same of `/<owner>/<name>/resolve/<commit>/<file>`.
"""

import hashlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.fakes.loopback_repos import LoopbackRepos
from tests.fakes.loopback_server import LoopbackServer, QuietHandler


class LoopbackHub(LoopbackServer):
    """Serves each folder below `spaces` as the Space `<owner>/<folder>`, branch main; a context manager."""

    def __init__(self, spaces: Path, owner: str = "podeval") -> None:
        self.requests: list[tuple[str, str, int]] = []
        self.repos = LoopbackRepos(lambda: self.url)
        """Repos that can be written to."""
        self.trouble: Callable[[str, str], int | str | None] = lambda method, path: None
        """What goes wrong with a request: a status instead of an answer; `unheard`: done, and the connection closed
        before the answer; `dropped`: closed at once; `half`: closed in the middle of the upload, or of the answer."""
        super().__init__(_handler(self, spaces, owner))

    def publish(self, model: str, commit: str, folder: Path) -> None:
        """Serve a folder as the model repo `<owner>/<name>`, at one commit, which is its branch main."""
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.repos.publish("models", model, files, sha=commit)


def _handler(hub: LoopbackHub, spaces: Path, owner: str) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_POST(self) -> None:
            self._answer(with_body=True)

        def do_PUT(self) -> None:
            self._answer(with_body=True)

        def do_DELETE(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            trouble, length = hub.trouble(self.command, path), int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length // 2 if trouble == "half" else length)
            if trouble is not None:
                hub.requests.append((self.command, path, trouble if isinstance(trouble, int) else 0))
                self.close_connection = True
                if trouble == "unheard":
                    hub.repos.answer(self.command, self.path, self.headers, sent)
                if isinstance(trouble, int):
                    self.send_response(trouble)
                    self.send_header("Retry-After", "7")
                    self.send_header("Connection", "close")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                elif trouble == "half" and not length:
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b"{")
                return
            known = hub.repos.answer(self.command, self.path, self.headers, sent)
            if known is not None:
                hub.requests.append((self.command, path, known.status))
                self.send_response(known.status)
                for name, value in known.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(known.body)))
                self.end_headers()
                if with_body:
                    self.wfile.write(known.body)
                return
            content = _space_file(spaces, owner, path)
            status = 404 if content is None else 200
            hub.requests.append((self.command, path, status))
            self.send_response(status)
            if content is None:
                self.send_header("X-Error-Code", "EntryNotFound" if path.startswith("/spaces/") else "RepoNotFound")
            else:
                self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if with_body and content:
                self.wfile.write(content)

    return Handler


def _space_file(spaces: Path, owner: str, path: str) -> bytes | None:
    match path.strip("/").split("/"):
        case ["spaces", asked, name, "resolve", "main", file] if asked == owner:
            found = spaces / name / file
            return found.read_bytes() if found.is_file() else None
    return None


def point_client_to(hub: LoopbackHub, patch: Any, cache: Path) -> None:
    """Turn the `huggingface_hub` of this process to a Hub, with a cache of its own; `patch` undoes it."""
    from huggingface_hub import constants, file_download

    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    patch.setattr(constants, "ENDPOINT", hub.url)
    for place in (constants, file_download):
        patch.setattr(place, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
