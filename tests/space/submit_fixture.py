"""What tests of submitting share: repos and documents to submit, a served site, tabs asked without a browser."""

import io
import wave
import zipfile
from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

from tests.space.accessibility import looks, picture, serious, violations
from tests.submissions.conftest import document, model_files

HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>{{7*7}}"
CARD = b"---\nlicense: cc0-1.0\n---\n# Tones\n" + b"Ten tones of half a second each, made for a test by nobody. " * 5


People = Callable[..., TestClient]
Build = Callable[..., Any]


def model(hub: Any, **changes: bytes | None) -> dict[str, Any]:
    """A submission of a model that is on the Hub."""
    repo = hub.repos.publish("models", "alice/tiny-voice", model_files(**changes))
    return dict(document(revision=repo.refs["main"]))


def sent(client: TestClient, document: dict[str, Any], where: str = "/submit") -> Any:
    return client.post(where, json={"document": document})


def tone(number: int) -> bytes:
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(b"".join(value.to_bytes(2, "little", signed=True) for value in (900 + number, -900) * 4000))
    return content.getvalue()


def zipped(names: list[str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number, name in enumerate(names):
            archive.writestr(name, tone(number))
    return content.getvalue()


def looked_at(page: Any, name: str) -> None:
    """Nothing wrong with the page at three widths, one of them dark; a picture of each, if wanted."""
    for width, scheme in looks(360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 780})
        page.emulate_media(color_scheme=scheme)
        picture(page, f"{name}-{width}-{scheme}")
        # Gradio's own components keep to axe-core; our own rules are stricter, and for pages of ours.
        gradio = page.locator("gradio-app").count() > 0
        assert (serious(page) if gradio else violations(page)) == [], (name, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    page.set_viewport_size({"width": 360, "height": 780})


def tab_method(app: Any, name: str, language: str = "en") -> Any:
    """The part of a tab that has an event's method of this name."""
    functions = app.state.gate.apps[language].get_blocks().fns.values()
    return next(one.fn.__self__ for one in functions if getattr(one.fn, "__qualname__", "") == name)


class Asking:
    """What Gradio hands an event: the browser's request, which says who somebody is."""

    def __init__(self, name: str, language: str = "en") -> None:
        from starlette.requests import Request

        headers = [(b"accept-language", language.encode()), *([(b"x-person", name.encode())] if name else [])]
        address = {"path": "/", "query_string": b"", "client": ("127.0.0.1", 1), "server": ("localhost", 80)}
        self.request = Request({"type": "http", "method": "POST", "scheme": "http", "headers": headers, **address})
