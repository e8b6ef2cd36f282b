"""Systems behind a server, by the name of its API; `podeval run --server` takes its choices from here.

To add an API, put a subclass of `podeval.systems.servers.connection.ServerSystem` in a file next to these, and add a
line to `SERVERS`.
"""

import pkgutil
from typing import TYPE_CHECKING, cast

from podeval.errors import require_known

if TYPE_CHECKING:
    from podeval.systems.servers.connection import ServerSystem

SERVERS = {
    "speech": "speech_endpoint:SpeechEndpoint",
    "chat": "chat_endpoint:ChatEndpoint",
    "realtime": "realtime:RealtimeEndpoint",
}
"""The class of each API, loaded when it is chosen."""


def find_server(api: str) -> "type[ServerSystem]":
    """Return the class of the systems that are reached through an API.

    Raises:
        BadInput: there is no such API; the message lists the existing APIs.
    """
    require_known("API", SERVERS, api)
    return cast("type[ServerSystem]", pkgutil.resolve_name(f"{__name__}.{SERVERS[api]}"))
