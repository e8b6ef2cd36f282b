"""The content policies of answers: strict for all but Gradio's page, which cannot do without code in it."""

from __future__ import annotations

import os

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

FRAME = f"frame-ancestors 'self'{' https://huggingface.co' if os.environ.get('SPACE_ID') else ''}"
"""The Hub shows a Space within its own page."""

STRICT = (
    "default-src 'self'; img-src 'self' data:; media-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'"
)

GRADIO_PAGE = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self' data:; connect-src 'self' blob: data:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'"
)
"""Gradio's page has code and style in it."""

GRADIO_FILE = "default-src 'none'; sandbox"
"""What a visitor sent is never a page of this site."""


def write_header_value(policy: str) -> str:
    """A policy as the header says it: with who may show the answer within a page of theirs."""
    return f"{policy}; {FRAME}"


class SecurityHeaders:
    """Adds the security headers to every answer."""

    def __init__(self, send: Send, policy: str) -> None:
        self._send = send
        self._policy = policy

    async def __call__(self, message: Message) -> None:
        """Send a message; the first of a response gets the headers that every answer has."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Referrer-Policy", "same-origin")
            headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
            headers.setdefault("Content-Security-Policy", write_header_value(self._policy))
        await self._send(message)
