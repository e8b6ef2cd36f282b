"""Some of the site's own pages over services that a test made; people are who a header says they are."""

from pathlib import Path
from typing import Any

SPACE = Path(__file__).parents[2] / "space"


def build_pages(services: Any, *pages: Any, mode: str = "", everybody: str = "", tabs: bool = False) -> Any:
    """The pages as an app.

    Args:
        services: what the pages call.
        pages: modules of `pages/`.
        mode: a real way to sign in, in place of the header `x-person`, whose `root` is an operator.
        everybody: who sends what has no such header.
        tabs: whether the app of the tabs is there too, for browsers.
    """
    import gradio_app
    import site_app
    import website
    from auth import Person, SignIn
    from fastapi import FastAPI, Response
    from fastapi.staticfiles import StaticFiles

    class ByHeader(SignIn):
        def person(self, request: Any) -> Person | None:
            name = request.headers.get("x-person") or everybody
            return Person(f"hf:{name.removeprefix('hf:')}", name, name == "root") if name else None

    site = website.Site(services, SignIn(mode) if mode else ByHeader("oidc"))
    app = FastAPI(exception_handlers=site_app.HANDLERS)
    site_app.add_guard(app, site)
    app.add_middleware(site_app.SessionMiddleware, secret_key="of the tests")
    app.mount("/own", StaticFiles(directory=SPACE / "static"))
    app.get("/parts.css")(lambda: Response(website.build_parts_style(), media_type="text/css"))
    for page in pages:
        app.include_router(page.routes)
    return gradio_app.mount(app, site) if tabs else app
