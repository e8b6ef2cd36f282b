"""The Gradio app of the Space, at `/try`: metrics to try on one's own recording or script, and the board as a table.

Measuring costs the machine that also serves the board and takes votes. A board of this machine alone offers it; one
that others can reach does where its operator sets PODEVAL_TRY=1. It is bounded either way: one measurement at a time,
few waiting, short recordings, uploads deleted within the hour.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import gradio as gr
from auth import public_address
from fastapi import FastAPI
from gradio_files import IssuedFiles
from gradio_routes import LARGEST_UPLOAD, TRY, GradioGate
from request_guard import origin_of
from starlette.routing import Mount
from tabs import leaderboard, recording, script

from podeval.leaderboard.runs_folder import RunsFolder

KEEP_SECONDS = 3600
WAITING = 8
LOOK_SECONDS = 0.05
SHUT = (
    "This board does not measure for visitors. On your own machine: `pip install 'podeval[embedded]'`, then "
    "`podeval measure dnsmos episode.wav`; or `podeval serve`, whose page `/try` does."
)


def build(folder: RunsFolder, measuring: bool, links: Iterable[tuple[str, str]] = ()) -> gr.Blocks:
    """The app.

    Args:
        folder: of runs.
        measuring: whether visitors may measure.
        links: to the other pages, as address and title.
    """
    app = gr.Blocks(title="podeval · try", delete_cache=(600, KEEP_SECONDS), analytics_enabled=False)
    with app:
        gr.Markdown(f"# podeval\n{' · '.join(f'[{title}]({address})' for address, title in links)}")
        with gr.Tabs():
            with gr.Tab("Recording"):
                recording.build() if measuring else gr.Markdown(SHUT)
            with gr.Tab("Script"):
                script.build() if measuring else gr.Markdown(SHUT)
            with gr.Tab("Leaderboard"):
                arrive, outputs = leaderboard.build(folder)
        app.load(arrive, None, outputs, api_visibility="private", queue=False, show_progress="hidden")

        def rows(board: str = "", profile: str = "") -> list[dict[str, Any]]:
            return leaderboard.rows(folder, board, profile)

        gr.api(rows, api_name="leaderboard", api_description=leaderboard.rows.__doc__)
    app.queue(max_size=WAITING)
    # Gradio looks for work a thousand times a second, which is a tenth of a core of a site where nobody tries anything.
    app._queue.sleep_when_free = LOOK_SECONDS
    return app


def mount(app: FastAPI, blocks: gr.Blocks) -> FastAPI:
    """Put it into the site behind its gate: nothing leaves this machine, no file of it can be asked for."""
    options: dict[str, Any] = {"ssr_mode": False, "footer_links": [], "max_file_size": LARGEST_UPLOAD, "theme": theme()}
    app = gr.mount_gradio_app(app, blocks, path=TRY, run_history=False, **options)
    # Gradio asks whether a file that is named was uploaded only where this is set, which its own `launch` does.
    blocks.has_launched = True
    secure = bool(os.environ.get("SPACE_ID")) or public_address().startswith("https://")
    for route in app.routes:
        if isinstance(route, Mount) and getattr(route.app, "blocks", None) is blocks:
            route.app = GradioGate(route.app, IssuedFiles(KEEP_SECONDS), origin_of, secure)
            return app
    raise RuntimeError("this release of gradio mounts its app in another way than podeval knows how to guard")


def theme() -> gr.themes.Base:
    """Its fonts are those of the reader's system, so that no page asks another host for one."""
    fonts = ["system-ui", "-apple-system", "Segoe UI", "sans-serif"]
    mono = ["ui-monospace", "Consolas", "monospace"]
    return gr.themes.Default(primary_hue="blue", neutral_hue="slate", font=fonts, font_mono=mono, radius_size="md")
