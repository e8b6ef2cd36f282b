"""The first reader of a language waits for nothing that is put together once."""

import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import pytest
from starlette.testclient import TestClient

from tests.fakes.waiting import wait_until
from tests.space.test_gradio_files import every_route

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
        assert caplog.text.count("could not be built at the start") == 2
        monkeypatch.undo()
        ask(client, "en")


@pytest.mark.long
def test_what_takes_seconds_once_is_computed_before_somebody_asks(
    board_app: ModuleType, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gradio_app
    from pages import method

    from podeval.stats.agreement import Estimate
    from podeval.validation.agreement import Validity

    rho = Estimate(0.5, 0.1, 0.9, 6)
    # In place of what took 26 s; the rest of the site is what it is.
    row = Validity("dnsmos", "ovrl", "embedded", "naturalness", "higher", rho, rho, rho, rho, {})
    computed: list[str] = []

    def compute() -> list[Validity]:
        computed.append("published")
        return [row]

    fake = cache(compute)
    monkeypatch.setattr(gradio_app, "compute_published", fake)
    monkeypatch.setattr(method, "compute_published", fake)
    site = board_app.build(runs)
    gradio_app.warm_up(site)
    with TestClient(site) as client:
        wait_until(lambda: fake.cache_info().currsize == 1)
        # Every page that stands on its own, read for the first time: no other work of seconds is left.
        pages = sorted(
            route.path
            for route in every_route(site)
            if "GET" in (getattr(route, "methods", None) or ()) and "{" not in route.path
        )
        assert {"/method", "/arena/ratings", "/judges", "/about", "/docs", "/health"} <= set(pages)
        slow = {}
        for page in pages:
            began = time.process_time()
            client.get(page)
            slow[page] = time.process_time() - began
    assert computed == ["published"], "/method computes nothing anew"
    assert {page: seconds for page, seconds in slow.items() if seconds > 3.0} == {}
