"""A client of a podeval site: the board, items, votes and benchmarks as data frames and plain data.

from podeval.client import Client
board = Client("https://podeval-leaderboard.hf.space").board(benchmark="real_pod", profile="embedded")
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from podeval.errors import BadInput, PodevalError

_PAGE = 1_000
_SECONDS = 60.0


class SiteUnavailable(PodevalError):
    """The site cannot be reached, or has no answer at present."""


class Client:
    """Reads one site; needs no account.

    Args:
        address: of the site, such as `http://127.0.0.1:7860`.
    """

    def __init__(self, address: str) -> None:
        if not address.startswith(("http://", "https://")):
            raise BadInput(f"{address!r} is no address of a site; it begins with https:// or http://")
        self.address = address.rstrip("/")

    def benchmarks(self) -> list[dict[str, Any]]:
        """Every benchmark's record."""
        found: list[dict[str, Any]] = self._get("benchmarks")
        return found

    def metrics(self) -> list[dict[str, Any]]:
        """Every metric's declaration."""
        found: list[dict[str, Any]] = self._get("metrics")
        return found

    def board(
        self, *, benchmark: str = "", profile: str = "", system: str = "", metric: str = "", slice: str | None = ""
    ) -> pd.DataFrame:
        """The numbers with intervals, rank ranges and protocols; over all items unless a slice, or None, is named."""
        wanted = {"benchmark": benchmark, "profile": profile, "system": system, "metric": metric}
        return self._table("board", wanted | ({} if slice is None else {"slice": slice}))

    def items(self, system: str, *, benchmark: str = "", metric: str = "") -> pd.DataFrame:
        """Every result of one system, item by item."""
        return self._table("items", {"system": system, "benchmark": benchmark, "metric": metric})

    def votes(self, dimension: str | None = None) -> pd.DataFrame:
        """The votes that count in the public rating."""
        return self._table("votes", {} if dimension is None else {"dimension": dimension})

    def submissions(self, *, owner: str = "", state: str = "") -> pd.DataFrame:
        """What was submitted, newest first: who, what, in which state, and why it did not go on."""
        return self._table("submissions", {"owner": owner, "state": state})

    def submission(self, id: str) -> dict[str, Any]:
        """One submission with its history."""
        found: dict[str, Any] = self._get(f"submissions/{id}")
        return found

    def _table(self, what: str, wanted: dict[str, str]) -> pd.DataFrame:
        return pd.DataFrame(self._rows(what, wanted))

    def _rows(self, what: str, wanted: dict[str, str]) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            page = self._get(what, **wanted, offset=str(offset), limit=str(_PAGE))
            yield from page["rows"]
            offset += len(page["rows"])
            if not page["rows"] or offset >= page["total"]:
                return

    def _get(self, what: str, **query: str) -> Any:
        """What an address answers.

        Raises:
            BadInput: the site refuses the question; says why.
            SiteUnavailable: it does not answer.
        """
        import json
        from urllib.error import HTTPError, URLError
        from urllib.parse import urlencode
        from urllib.request import urlopen

        address = f"{self.address}/api/v1/{what}?{urlencode(query)}"
        try:
            with urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 - the scheme was checked
                return json.loads(answer.read())
        except HTTPError as error:
            try:
                said = json.loads(error.read()).get("error", error.reason)
            except ValueError:
                said = error.reason
            if error.code == 429 or error.code >= 500:
                raise SiteUnavailable(f"{self.address} answered {error.code}: {said}") from None
            raise BadInput(f"{self.address} answered {error.code}: {said}") from None
        except (URLError, TimeoutError, ValueError) as error:
            raise SiteUnavailable(f"{self.address} cannot be reached ({error}); check the address") from None
