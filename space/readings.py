"""The results as the pages of systems read them: once for all these pages."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from website import Site

from podeval.leaderboard.folder import RunsFolder
from podeval.leaderboard.report import Reports

_OF: WeakKeyDictionary[Site, Reports] = WeakKeyDictionary()


def readings(site: Site) -> Reports:
    """The reports of a site, with the scores they are made from."""
    if site not in _OF:
        _OF[site] = Reports(RunsFolder(site.services.runs))
    return _OF[site]
