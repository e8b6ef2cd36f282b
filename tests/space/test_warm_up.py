"""The first reader of a language waits for nothing that is put together once."""

from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import pytest
from starlette.testclient import TestClient

gr = pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")


@pytest.fixture
def put_together(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is put together from now on: pages of Gradio's, and templates."""
    seen: list[str] = []
    make, compile_template = gr.Blocks.__init__, jinja2.Environment.compile

    def make_page(page: Any, *given: Any, **options: Any) -> None:
        seen.append("a page")
        make(page, *given, **options)

    def compile_noted(environment: Any, source: Any, name: Any = None, *given: Any, **options: Any) -> Any:
        seen.append(str(name))
        return compile_template(environment, source, name, *given, **options)

    monkeypatch.setattr(gr.Blocks, "__init__", make_page)
    monkeypatch.setattr(jinja2.Environment, "compile", compile_noted)
    return seen


def ask(client: TestClient, language: str) -> None:
    answer = client.get("/", headers={"accept-language": language})
    assert answer.status_code == 200
    assert f'lang="{language}"' in answer.text


def test_a_site_that_is_served_puts_each_page_together_before_its_first_reader_comes(
    board_app: ModuleType, runs: Path, put_together: list[str]
) -> None:
    import gradio_app

    site = board_app.build(runs)
    assert "a page" not in put_together, "a site that nobody reads, as in most tests, has none"
    gradio_app.warm_up(site)
    with TestClient(site) as client:
        assert put_together.count("a page") == 2
        assert {"tabs_header.html", "board_early.html"} <= set(put_together)
        put_together.clear()
        for language in ("en", "zh"):
            ask(client, language)
        assert put_together == []


def test_what_cannot_be_put_together_at_the_start_does_not_keep_the_site_from_starting(
    board_app: ModuleType, runs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import gradio_app

    async def fail(*_: Any) -> Any:
        raise RuntimeError("not this time")

    site = board_app.build(runs)
    gradio_app.warm_up(site)
    monkeypatch.setattr(gradio_app.LanguageApps, "start", fail)
    with TestClient(site) as client:
        assert caplog.text.count("could not be put together at the start") == 2
        monkeypatch.undo()
        ask(client, "en")
