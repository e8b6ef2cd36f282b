"""podeval's site: a board of measurements with their uncertainty and audio, and the other pages.

`podeval serve` calls `serve`; on a Space, this file is run directly.
"""

# ruff: noqa: E402 - logs are set up before the import of Gradio and MCP, which would set up their own.

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from podeval.cli.output import configure_logging

configure_logging()

import gradio_app
from auth import sign_in
from fastapi import APIRouter, FastAPI
from services import NOWHERE, Services, open_services
from site_app import build_site
from website import Site

from podeval.submissions.scheduler import run_periodically


def build(runs: Path, host: str = "127.0.0.1", database: str | None = None) -> FastAPI:
    """Build the whole site for a folder of runs and a database.

    Args:
        runs: the folder of runs.
        host: the address at which the site is served; the address determines whether people must sign in.
        database: an SQLite file or an address; by default `DATABASE_URL`, otherwise `podeval.db` in the folder of runs.
    """
    how = sign_in(host)
    site = Site(open_services(runs, database, closed=NOWHERE if how.mode == "none" else None), how)
    app = gradio_app.mount(build_site(site), site)
    _run_beside(app, site.services)
    return app


def _run_beside(app: FastAPI, services: Services) -> None:
    """Run the site's periodic tasks and, if the site has one, its worker for as long as the site is served."""
    chores, evaluation = services.list_chores(), services.evaluation

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        with run_periodically(chores, logging.getLogger("podeval.site").warning), evaluation.running():
            yield

    app.include_router(APIRouter(lifespan=life))


def serve(runs: Path, host: str = "127.0.0.1", port: int = 7860, database: str | None = None) -> None:
    """Serve the site until interrupted."""
    import server

    app = build(runs, host, database)
    gradio_app.warm_up(app)
    server.run(app, host, port, announce=f"The board is at http://{host}:{port} (Ctrl-C stops it)")


if __name__ == "__main__":
    serve(
        Path(os.environ.get("PODEVAL_RUNS", "runs")),
        os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
    )
