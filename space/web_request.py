"""The request of a reader's browser that an event of Gradio's came with, and who may upload recordings by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request

if TYPE_CHECKING:
    import gradio as gr
    from starlette.requests import HTTPConnection
    from website import Site


def get_web_request(event: gr.Request) -> Request:
    """Return the browser's request of an event.

    Args:
        event: as Gradio hands it to a function.
    """
    assert event.request is not None, "Gradio calls our functions for requests alone"
    request: Request = event.request
    return request


def find_recordings_sender(site: Site, request: HTTPConnection) -> str:
    """Who sent a request, if they may upload recordings for a submission; empty for all others.

    Args:
        site: the site that receives the submission.
        request: the request of the person.
    """
    services = site.services
    if services.closed or services.only_votes or services.desk is None:
        return ""
    person = site.person(Request(request.scope))
    return person.identity if person else ""
