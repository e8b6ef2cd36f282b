"""What programs may have looked over before they submit: signed in as in the form, without that a model repo alone.

For who is not signed in the Hub is asked as anybody may ask it, so that nothing is said of repos that only this board
can read; few at a time, few an hour, and nothing is kept.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request
from limits import parse
from pages.submit import check_document, get_submitter
from rate_limit import RateLimit
from website import Site, TooMany

from podeval.errors import BadInput
from podeval.sentences import write_sentence
from podeval.submissions.author_kit import draft_document
from podeval.submissions.gate import Gate
from podeval.submissions.service import Submitter

RATE = "20/minute"
"""Checks of one person or address, of those signed in and others alike."""
VISITOR_RATE, VISITORS_RATE = "10/minute", "200/hour"
"""Checks of one address that is not signed in, and of all of them together."""
AT_ONCE = 2
BUSY_SECONDS = 5
VISITOR = Submitter("visitor without a name")
"""Who is not signed in; a name that nobody has on the Hub."""


class SubmissionCheck:
    """Looks submissions of programs over; queues and keeps nothing.

    Args:
        site: the site that takes submissions.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pace = RateLimit()
        self._places = threading.BoundedSemaphore(AT_ONCE)

    def check(self, request: Request, document: Mapping[str, Any] | None, **asked: str) -> dict[str, Any]:
        """Look a document or a repo over.

        Args:
            request: the request of the program.
            document: a whole submission document; None for the draft of a repo.
            asked: arguments of `draft_document`: `repo`, `benchmark`, `track`, `task`.

        Raises:
            BadInput: there is nothing to look over, or only for who is signed in.
            TooMany: more than one address or all may ask for.
            HubUnavailable: the Hub does not answer.
        """
        self._site.limit(request, RATE, "submit check")
        desk = self._site.services.desk
        if desk is None:
            raise BadInput(write_sentence("takes-no-submissions"))
        person = self._site.person(request)
        if person is not None:
            draft = dict(document) if document else draft_document(api=desk.gate.api, **asked)
            return {**check_document(desk, draft, get_submitter(person)), "document": draft}
        self._require_model(document)
        self._site.limit(request, VISITOR_RATE, "submit check of visitors")
        if wait := self._pace.wait(parse(VISITORS_RATE), "visitors"):
            raise TooMany(math.ceil(wait))
        if not self._places.acquire(blocking=False):
            raise TooMany(BUSY_SECONDS)
        try:
            public = replace(desk, gate=_as_anybody(desk.gate))
            draft = dict(document) if document else draft_document(api=public.gate.api, **asked)
            return {**check_document(public, draft, VISITOR), "document": draft}
        finally:
            self._places.release()

    def _require_model(self, document: Mapping[str, Any] | None) -> None:
        """Outputs may be many files, and those of an upload are its owner's."""
        source = document.get("source") if document else None
        if document and not (isinstance(source, Mapping) and source.get("kind") == "model"):
            raise BadInput(write_sentence("sign-in-to-check"))


def _as_anybody(gate: Gate) -> Gate:
    """The same gate, which asks the Hub without this board's token and looks into no folder."""
    from huggingface_hub import HfApi

    endpoint = gate.api.endpoint if gate.api is not None else None
    return replace(gate, api=HfApi(endpoint=endpoint, token=False), local=False, uploads=None)
