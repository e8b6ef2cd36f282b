"""The Gradio app of the Space: one `gr.Blocks` for each language, mounted at the root, with a tab for each activity.

The mounted app is behind a gate (`gradio_routes`) and is shown below the header that all pages have. Measurements for
visitors run on the machine that serves the board and accepts votes, so they are limited: one measurement at a time, a
short queue, short recordings, and uploads that are deleted within the hour.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any

import gradio as gr
import gradio.blocks
import gradio_events
import httpx
from auth import read_public_address
from fastapi import APIRouter, FastAPI
from gradio.routes import App
from gradio_addresses import KEEP_SECONDS, LARGEST_ARCHIVE, PREFIXES, TABS_ID, may_measure
from gradio_routes import GradioGate
from pages.method import compute_published
from program_api import ProgramApi
from starlette.concurrency import run_in_threadpool
from starlette.routing import Mount
from tab_parts import make_part
from tabs import score
from tabs.submit import SubmitTab
from website import Site

_LOG = logging.getLogger("podeval.site")

LOOK_SECONDS = 0.05
_ONE_FOR_BOTH = (
    *("color_accent", "block_radius"),
    *("button_large_radius", "button_large_text_size", "button_large_text_weight"),
)
"""Theme settings that have no separate value for dark mode."""


def build(site: Site, language: str = "en") -> gr.Blocks:
    """Build the app of a language; the app of the first language also contains the interface for programs.

    Args:
        site: the site that its tabs show.
        language: the language of the tabs.
    """
    measuring, names = may_measure(site.how.mode == "local"), site.texts[language]["site"]
    with (
        _without_application(),
        gr.Blocks(title="podeval", delete_cache=(600, KEEP_SECONDS), analytics_enabled=False, fill_width=True) as app,
    ):
        with gr.Tabs(elem_id=TABS_ID, overflow_behavior="wrap"):
            with gr.Tab(names["board"], id="leaderboard", elem_id="tab-leaderboard"):
                make_part("board-part", "board.js", site.render_shell("board.html", language))
            with gr.Tab(names["arena"], id="arena", elem_id="tab-arena"):
                make_part("arena-part", "arena.js", site.render_shell("arena.html", language))
            with gr.Tab(names["score"], id="score", elem_id="tab-score"):
                score.build(site, language, measuring)
            with gr.Tab(names["submit"], id="submit", elem_id="tab-submit"):
                SubmitTab(site, language).build(app)
        if not PREFIXES[language]:
            ProgramApi(site).add(measuring)
    gradio_events.bound(app)
    # Gradio looks for work a thousand times per second; this takes 10 % of a core even on an idle site.
    app._queue.sleep_when_free = LOOK_SECONDS
    return app


@contextmanager
def _without_application() -> Iterator[None]:
    """Keep Gradio from making an application, which takes a fifth of a second, when blocks begin and when they end;
    the one that the queue uses is made when `gradio_events.bound` sets the queue.
    """
    gradio.blocks.App = SimpleNamespace(create_app=lambda *_, **__: None)
    try:
        yield
    finally:
        gradio.blocks.App = App


class LanguageApps:
    """The apps of a site by language; each app is made on first use, because making an app takes half a second and few
    sites need all of the apps.

    Args:
        app: the application that contains the apps, whose lifespan they share.
        site: the site that their tabs show.
    """

    def __init__(self, app: FastAPI, site: Site) -> None:
        self._site = site
        self._made: dict[str, Any] = {}
        self._making = threading.Lock()
        self._starting = asyncio.Lock()
        self._life: AsyncExitStack | None = None

        @asynccontextmanager
        async def live(_: FastAPI) -> AsyncIterator[None]:
            async with AsyncExitStack() as self._life:
                yield
            self._life = None

        app.include_router(APIRouter(lifespan=live))

    def __getitem__(self, language: str) -> Any:
        with self._making:
            if language not in self._made:
                self._made[language] = self._make(language)
            return self._made[language]

    def list_made(self) -> list[Any]:
        """List the apps that have been made."""
        return list(self._made.values())

    async def start(self, language: str) -> Any:
        """Return the app of a language, with its queue running if the site is served.

        Args:
            language: the language of the app.
        """
        if (life := self._life) is None:
            return await run_in_threadpool(self.__getitem__, language)
        async with self._starting:
            app = await run_in_threadpool(self.__getitem__, language)
            if not app.get_blocks().is_running:
                await life.enter_async_context(app.router.lifespan_context(app))
                app.get_blocks().run_startup_events()
                await app.get_blocks().run_extra_startup_events()
        return app

    def _make(self, language: str) -> Any:
        """Make Gradio mount an app without a route, so that it can be reached only through the gate."""
        blocks = build(self._site, language)
        alone = FastAPI()
        gr.mount_gradio_app(
            alone,
            blocks,
            path=PREFIXES[language] or "/",
            run_history=False,
            ssr_mode=False,
            footer_links=[],
            # The error is for the log; a refusal's sentence is shown in any case.
            show_error=False,
            max_file_size=LARGEST_ARCHIVE,
            theme=make_theme(),
        )
        # Gradio checks whether a named file was uploaded only if this attribute is set; Gradio's own `launch` sets it.
        blocks.has_launched = True
        for route in alone.routes:
            if isinstance(route, Mount) and getattr(route.app, "blocks", None) is blocks:
                return route.app
        raise RuntimeError("this release of gradio mounts its app in a way that podeval cannot protect")


def mount(app: FastAPI, site: Site) -> FastAPI:
    """Mount the apps on the site behind their gate, so no data leaves this machine and no file on it can be read."""
    secure = bool(os.environ.get("SPACE_ID")) or read_public_address().startswith("https://")
    app.state.gate = GradioGate(LanguageApps(app, site), site.files, site, secure)
    app.mount("/", app.state.gate)
    return app


def warm_up(app: FastAPI) -> None:
    """Render the front page of each language before the site listens, so that no reader waits for it.

    After this, Gradio's components, Gradio's and our templates, and the board's first view are cached. An error does
    not prevent the site from starting; the first reader gets the same error as a sentence.

    Args:
        app: the site.
    """

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        # Act as a reader whose requests are not counted.
        where = read_public_address() or "http://localhost"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=where) as client:
            for language in PREFIXES:
                try:
                    await client.get("/", headers={"accept-language": language})
                except Exception:
                    _LOG.exception("the front page could not be built at the start")
            # The agreement takes several seconds to compute once, and is not on the front page, so the site does not
            # wait for it.
            threading.Thread(target=compute_published, name="published agreement", daemon=True).start()
            yield

    app.include_router(APIRouter(lifespan=live))


def make_theme() -> gr.themes.Base:
    """Make a theme with the colours and sizes of `static/podeval.css` and the reader's own fonts."""
    fonts = ["system-ui", "-apple-system", "Segoe UI", "Noto Sans", "PingFang SC", "sans-serif"]
    mono = ["ui-monospace", "Consolas", "monospace"]
    fonts_of_reader = {"font": fonts, "font_mono": mono}
    base = gr.themes.Default(
        primary_hue="blue", neutral_hue="slate", radius_size="md", text_size="lg", **fonts_of_reader
    )
    both = {
        "body_background_fill": "var(--ground)",
        "background_fill_primary": "var(--ground)",
        "background_fill_secondary": "var(--raised)",
        "block_background_fill": "var(--raised)",
        "input_background_fill": "var(--ground)",
        "body_text_color": "var(--text)",
        "body_text_color_subdued": "var(--quiet)",
        "block_label_text_color": "var(--quiet)",
        "block_title_text_color": "var(--text)",
        "block_info_text_color": "var(--quiet)",
        "border_color_primary": "var(--line)",
        "input_border_color": "var(--quiet)",
        "link_text_color": "var(--accent)",
        "button_primary_background_fill": "var(--accent)",
        "button_primary_background_fill_hover": "var(--accent)",
        "button_primary_text_color": "var(--on-accent)",
        "button_secondary_background_fill": "var(--ground)",
        "button_secondary_background_fill_hover": "var(--raised)",
        "button_secondary_text_color": "var(--accent)",
        "button_secondary_border_color": "var(--accent)",
        "button_border_width": "1px",
        "button_large_radius": "var(--radius)",
        "button_large_text_size": "*text_md",
        "button_large_text_weight": "400",
        "block_radius": "var(--radius)",
        "color_accent": "var(--accent)",
        "checkbox_background_color_selected": "var(--accent)",
        "checkbox_border_color": "var(--quiet)",
        "checkbox_border_color_selected": "var(--accent)",
        "table_text_color": "var(--text)",
        "table_even_background_fill": "var(--ground)",
        "table_odd_background_fill": "var(--ground)",
        "accordion_text_color": "var(--text)",
        "error_text_color": "var(--bad)",
    }
    return base.set(**both, **{f"{name}_dark": value for name, value in both.items() if name not in _ONE_FOR_BOTH})
