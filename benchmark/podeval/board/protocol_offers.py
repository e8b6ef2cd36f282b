"""The protocols that are available for a metric's numbers: all of them, the default, and their labels.

Protocols differ in their parameters (from a preset or from settings), models or judge; their labels state the
differences.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from podeval import benchmarks
from podeval.benchmarks.presets import PRESETS, name_presets
from podeval.metrics import catalogue
from podeval.models.profiles import MEASURING
from podeval.models.registry import list_cards
from podeval.runs.board_tables import read_object


@dataclass(frozen=True)
class Offer:
    """A protocol that can be chosen for a metric's numbers."""

    metric: str
    protocol: str
    label: str
    judge: str
    """Id of the protocol's judge; empty if the protocol has no judge."""
    presets: tuple[str, ...] = ()
    """Names of the presets that include this protocol; a request for one of these presets selects it."""


Offers = Mapping[str, tuple[Offer, ...]]
"""The protocols of each metric, with the default first."""


def list_offers(numbers: pd.DataFrame) -> Offers:
    """Return the protocols of some rows by metric, with the default first.

    Protocols with the benchmark's parameters and the profile's models come first; the others are sorted by their number
    of systems, and then the newest come first.
    """
    contents: dict[str, dict[str, dict[str, Any]]] = {}
    ranks: dict[tuple[str, str], tuple[int, str]] = {}
    usual: set[str] = set()
    for texts, rows in numbers.groupby(["metric", "protocol"], sort=False, observed=True):
        metric, protocol = map(str, texts)
        content = read_object(str(rows["protocol_json"].iloc[0]))
        contents.setdefault(metric, {})[protocol] = content
        ranks[metric, protocol] = (rows["system"].nunique(), max(rows["created"].unique()))
        if is_usual(content, str(rows["benchmark"].iloc[0]), str(rows["profile"].iloc[0])):
            usual.add(protocol)
    names = {one: name_presets(metric, _parameters(c)) for metric, of in contents.items() for one, c in of.items()}
    offers = {}
    for metric, by_protocol in sorted(contents.items()):
        models = list_differing_models(by_protocol.values())
        for protocol, content in by_protocol.items():
            # A composite's protocol belongs to a preset, or counts as usual, only if the same is true of all its parts.
            if parts := [part for part in (content.get("models") or {}).values() if isinstance(part, str)]:
                names[protocol] = tuple(n for n in PRESETS if all(n in names.get(part, ()) for part in parts))
                usual |= {protocol} if usual.issuperset(parts) else set()
        order = sorted(by_protocol, key=lambda one: (one in usual, *ranks[metric, one]), reverse=True)
        offers[metric] = tuple(
            Offer(
                metric,
                one,
                label_protocol(one, by_protocol[one], names[one], models),
                judge_of(by_protocol[one]),
                names[one],
            )
            for one in order
        )
    return offers


def list_wished(offers: Offers, wishes: Sequence[str]) -> list[str]:
    """Return the protocols requested by id or by the name of a preset, in the order of the requests."""
    every_offer = [offer for entries in offers.values() for offer in entries]
    return [one.protocol for wish in wishes for one in every_offer if wish in (one.protocol, *one.presets)]


def is_usual(content: Mapping[str, Any], benchmark: str, profile: str) -> bool:
    """Return whether a metric's protocol is the benchmark's own, unchanged, with the profile's default models."""
    models = content.get("models") or {}
    if content.get("metric") not in catalogue.NAMES:
        return False
    metric = catalogue.get(str(content["metric"]))
    record = benchmarks.find_all().get(benchmark)
    defaults = next((use.parameters for use in record.metrics() if use.name == metric.name), {}) if record else {}
    by_job = {card.job: card.id for card in list_cards(profile, metric.needs)} if profile in MEASURING else {}
    model_ids = {job: model["id"] for job, model in models.items() if job in by_job and model}
    return _parameters(content) == metric.state_parameters(defaults) and all(
        by_job[job] == id for job, id in model_ids.items()
    )


def list_differing_models(contents: Collection[Mapping[str, Any]]) -> list[str]:
    """List the jobs, or the parts of a composite, for which a metric's protocols use different models."""
    every = [content.get("models") or {} for content in contents]
    jobs = dict.fromkeys(job for models in every for job in models if job not in ("judge", "prompts"))
    return [job for job in jobs if len({_model_id(models.get(job)) for models in every}) > 1]


def choose(offers: Offers, wishes: Sequence[str], judge: str = "") -> dict[str, str]:
    """Choose one protocol for each metric: the one that was requested last or, if none was requested, the first one
    available.

    Args:
        offers: offers from `list_offers`.
        wishes: protocol ids or names of presets.
        judge: id of a judge; if given, only this judge's figures are shown for judged metrics.
    """
    chosen: dict[str, str] = {}
    wished = list_wished(offers, wishes)
    for metric, entries in offers.items():
        ids = [entry.protocol for entry in entries if not judge or entry.judge in ("", judge)]
        if ids:
            chosen[metric] = next((one for one in reversed(wished) if one in ids), ids[0])
    return chosen


def judge_of(content: Mapping[str, object]) -> str:
    """Return the id of the judge in a protocol's content; empty if there is none."""
    models = content.get("models")
    judge = models.get("judge") if isinstance(models, dict) else None
    return str(judge.get("id", "")) if isinstance(judge, dict) else ""


def label_protocol(
    protocol: str, content: Mapping[str, Any], presets: Sequence[str] = (), models: Sequence[str] = ()
) -> str:
    """Return a short label of a protocol: its metric, parameters, differing models, presets, judge, and id."""
    metric = protocol.partition("@")[0]
    parts = [f"{name}={value}" for name, value in _parameters(content).items()]
    parts += [f"{job} {model}" for job in models if (model := _model_id((content.get("models") or {}).get(job)))]
    parts += [f"preset {name}" for name in presets]
    if judge := judge_of(content):
        parts.append(f"judge {judge}")
    return f"{metric}: {', '.join(parts)} — {protocol}" if parts else protocol


def _model_id(model: object) -> str:
    """Return the name of a model, or the protocol of a composite's part."""
    return str(model.get("id", "")) if isinstance(model, dict) else str(model or "")


def _parameters(content: Mapping[str, object]) -> dict[str, object]:
    parameters = content.get("parameters")
    return parameters if isinstance(parameters, dict) else {}
