"""The site as one ASGI application: its pages, the sign-in, the guard, and a sentence for every refusal."""

from __future__ import annotations

import os
from functools import partial

from auth import SessionMiddleware, read_cookie_secret, read_public_address
from auth import build_router as sign_in_routes
from error_answers import HANDLERS
from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from gradio_addresses import may_measure
from request_guard import Guard, read_own_hosts
from website import HERE, Site, build_parts_style, find_recordings_sender

from podeval.version import __version__

_OWN = (
    *("/arena", "/listen", "/method", "/submit", "/submissions", "/queue", "/own", "/audio", "/api", "/health"),
    *("/metrics", "/sign-", "/admin", "/compare", "/report", "/system", "/judges", "/cards"),
)


def build_site(site: Site) -> FastAPI:
    """Build the whole site as one ASGI application.

    Args:
        site: the objects that pages receive.
    """
    app = FastAPI(
        title="podeval",
        version=__version__,
        docs_url=None,
        openapi_url="/api/openapi.json",
        redoc_url=None,
        description="What the board shows, for programs. Reading needs no account.",
        exception_handlers=HANDLERS,
    )
    add_guard(app, site)
    on_space = bool(os.environ.get("SPACE_ID"))
    app.add_middleware(
        SessionMiddleware,  # type: ignore[arg-type]  # takes any app; its annotation names one argument alone
        secret_key=read_cookie_secret(),
        session_cookie="podeval",
        max_age=14 * 24 * 3600,
        # A Space is shown inside a page of the Hub, where a cookie is sent only if it is marked `SameSite=None`.
        same_site="none" if on_space else "lax",
        https_only=on_space or read_public_address().startswith("https://"),
    )
    app.mount("/own", StaticFiles(directory=HERE / "static"), name="own")

    # Browsers look for the icon here on pages that are not from our templates: Gradio's pages, files, and the API
    # documentation.
    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return FileResponse(HERE / "static" / "icon.svg")

    @app.get("/parts.css", include_in_schema=False)
    def style_parts() -> Response:
        return Response(build_parts_style(), media_type="text/css", headers={"Cache-Control": "max-age=600"})

    app.include_router(sign_in_routes(site.how, site.limit))
    for routes in _list_pages():
        app.include_router(routes)
    return app


def _list_pages() -> list[APIRouter]:
    """List the routes of every module in `pages/`, starting with the routes of the arena, which are used most."""
    import importlib
    import pkgutil

    import pages

    names = sorted((entry.name for entry in pkgutil.iter_modules(pages.__path__)), key=lambda name: name != "arena")
    return [importlib.import_module(f"pages.{name}").routes for name in names]


def add_guard(app: FastAPI, site: Site) -> None:
    """Add the rules for every request (see `Guard`), and the site for its pages."""
    app.state.site = site
    local = site.how.mode == "local"
    senders = partial(find_recordings_sender, site)
    measures, hosts = may_measure(local), read_own_hosts()
    app.add_middleware(
        Guard,
        accepting=_OWN,
        local=local,
        measures=measures,
        hosts=hosts,
        senders=senders,
        counts=site.requests,
        files=site.files,
    )
