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
from tests.fakes.loopback_server import Answer, LoopbackServer, QuietHandler


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
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            trouble, length = hub.trouble(self.command, path), int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length // 2 if trouble == "half" else length)
            if trouble is not None:
                hub.requests.append((self.command, path, trouble if isinstance(trouble, int) else 0))
                self.close_connection = True
                if trouble == "unheard":
                    hub.repos.answer(self.command, self.path, self.headers, sent)
                if isinstance(trouble, int):
                    self._send(Answer(trouble, headers={"Retry-After": "7", "Connection": "close"}))
                elif trouble == "half" and not length:
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b"{")
                return
            known = hub.repos.answer(self.command, self.path, self.headers, sent) or _space_file(spaces, owner, path)
            hub.requests.append((self.command, path, known.status))
            self._send(known)

        do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

    return Handler


def _space_file(spaces: Path, owner: str, path: str) -> Answer:
    match path.strip("/").split("/"):
        case ["spaces", asked, name, "resolve", "main", file] if asked == owner and (spaces / name / file).is_file():
            content = (spaces / name / file).read_bytes()
            about = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": "0" * 40}
            return Answer(200, content, about)
    return Answer.error("EntryNotFound" if path.startswith("/spaces/") else "RepoNotFound")


def point_client_to(hub: LoopbackHub, patch: Any, cache: Path) -> None:
    """Turn the `huggingface_hub` of this process to a Hub, with a cache of its own; `patch` undoes it."""
    from huggingface_hub import constants, file_download

    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    patch.setattr(constants, "ENDPOINT", hub.url)
    for place in (constants, file_download):
        patch.setattr(place, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
