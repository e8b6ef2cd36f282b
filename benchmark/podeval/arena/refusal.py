"""The error for a refused battle or vote."""

from collections.abc import Mapping
from typing import Any

from podeval.errors import BadInput

FORGED, FOREIGN, REPLAYED, EXPIRED = "forged", "foreign", "replayed", "expired"
UNKNOWN, INVALID, NOT_HEARD, TOO_SOON = "unknown", "invalid", "not heard", "too soon"
NOT_FETCHED = "not fetched"
NO_COMMENT, TOO_MANY, CLOSED = "no comment", "too many", "closed"
NOTHING_LEFT, NOTHING_YET = "nothing left", "nothing yet"


class ArenaRefused(BadInput):
    """The arena refused a request and recorded nothing; the message explains why, and `reason` is a code for pages."""

    def __init__(
        self, reason: str, message: str, *, code: str = "", parameters: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, code=code, parameters=parameters)
        self.reason = reason
