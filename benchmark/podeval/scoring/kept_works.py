"""Which work of models on a recording was done before, so that its results lie in the cache and nobody expects it."""

from __future__ import annotations

from collections.abc import Iterable

from podeval.analysis.cache import Cache, open_default_cache
from podeval.version import __version__

NEVER_KEPT = frozenset({"voices", "separating"})
"""Titles of work whose results are not in the cache, or not all of them, when it was done once."""


class KeptWorks:
    """The work on one recording by one profile's models.

    Args:
        content: of the recording.
        profile: whose models.
    """

    def __init__(self, content: str, profile: str) -> None:
        self._content, self._profile, self._cache = content, profile, open_default_cache()

    def choose(self, titles: Iterable[str]) -> set[str]:
        """Return those titles whose work is done."""
        return {title for title in titles if self._cache.get(self._key(title)) is not None}

    def note(self, titles: set[str]) -> None:
        """Note that work is done."""
        for title in titles - NEVER_KEPT:
            self._cache.put(self._key(title), b"done")

    def _key(self, title: str) -> str:
        return Cache.key(self._content, "work", title=title, profile=self._profile, version=__version__)
