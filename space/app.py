"""The board of podeval: what has been measured, how sure that is, and the audio it was measured on.

`podeval serve` calls `serve`; on a Space this file is run as it is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import gradio as gr
from appearance import CSS, theme
from events import QUIET
from tabs import leaderboard, system

from podeval.leaderboard.folder import RunsFolder

ABOUT = """# podeval
Which system makes the best long-form spoken audio, and how sure is that? Every number below carries its 95 % interval,
its protocol, and what could not be scored."""
EMPTY = """### Nothing has been measured here yet
Run `make demo` for a first board in minutes, or `podeval run --help` to measure a system of your own; results appear
here when you reload. This board reads the folder `{}`."""
KEEP_CACHE = 24 * 3600
"""Seconds after which copies of audio and tables made for readers are deleted."""


def build_app(runs: Path) -> gr.Blocks:
    """The board over a folder of runs, which it reads again whenever its tables change.

    Args:
        runs: the folder that holds `board.parquet` and `items.parquet`; it may still be empty.
    """
    folder = RunsFolder(runs)
    app = gr.Blocks(title="podeval · leaderboard", delete_cache=(3600, KEEP_CACHE))
    with app:
        gr.Markdown(ABOUT)
        empty = gr.Markdown(EMPTY.format(str(runs).replace("`", "")), visible=folder.board().empty)
        with gr.Tabs(visible=not folder.board().empty) as tabs:
            with gr.Tab("Leaderboard", id="leaderboard"):
                board = leaderboard.build(folder)
            with gr.Tab("System", id="system") as page_tab:
                page = system.build(folder, board.protocols, page_tab)

        def arrive(request: gr.Request) -> tuple[gr.Markdown, gr.Tabs]:
            nothing = folder.board().empty
            tab = "system" if request.query_params.get("tab") == "system" else "leaderboard"
            return gr.Markdown(visible=nothing), gr.Tabs(visible=not nothing, selected=tab)

        app.load(arrive, None, [empty, tabs], **QUIET)
        arrived = app.load(board.arrive, None, board.outputs, **QUIET)
        arrived.then(board.files, board.wishes, board.downloads, **QUIET)
        board.open_page.click(
            lambda name, where: (gr.Tabs(selected="system"), *page.show(name, where)),
            [board.chosen, board.where],
            [tabs, *page.outputs],
            **QUIET,
        )
    return app


def launch_options(runs: Path) -> dict[str, Any]:
    """What `launch` is told: nothing leaves this machine, and no file outside the folder of runs can be asked for."""
    return {
        "share": False,
        "ssr_mode": False,
        "enable_monitoring": False,
        "footer_links": [],
        "allowed_paths": [str(runs.resolve())],
        "theme": theme(),
        "css": CSS,
    }


def serve(runs: Path, host: str = "127.0.0.1", port: int = 7860) -> None:
    """Serve the board over a folder of runs until interrupted."""
    app = build_app(runs)
    app.launch(server_name=host, server_port=port, quiet=True, prevent_thread_lock=True, **launch_options(runs))
    print(f"The board is at http://{host}:{port} (Ctrl-C stops it)", flush=True)
    app.block_thread()


if __name__ == "__main__":
    serve(
        Path(os.environ.get("PODEVAL_RUNS", "runs")),
        os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
    )
