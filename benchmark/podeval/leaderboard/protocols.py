"""Which protocols a metric's numbers have, and which one is shown: numbers of two are never in one column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from podeval.leaderboard.column_arrays import Indices, Numbers
from podeval.leaderboard.columns import has_default_parameters

Choice = tuple[str, str]
"""A label and the value it stands for."""


@dataclass(frozen=True)
class Offer:
    """One protocol that a metric's numbers have."""

    metric: str
    protocol: str
    label: str
    judge: str
    """Id of the judge that it asks; empty where none is asked."""


Offers = Mapping[str, tuple[Offer, ...]]
"""By metric, its protocols, the one shown by default first."""


def offers(numbers: Numbers, rows: Indices) -> Offers:
    """The protocols of some rows.

    First stands one with the metric's default parameters, then the one most systems have, then the newest.
    """
    found: dict[str, list[tuple[tuple[bool, int, str], Offer]]] = {}
    for (metric, protocol), own in numbers.groups(rows, ("metric", "protocol")).items():
        content = str(numbers.column(own[:1], "protocol_json")[0])
        known = _content(content)
        systems = len(set(numbers.codes(own, "system").tolist()))
        newest = max(numbers.texts(own, "created"))
        preference = (has_default_parameters(metric, _parameters(known)), systems, newest)
        offer = Offer(metric, protocol, protocol_label(protocol, content), judge_of(known))
        found.setdefault(metric, []).append((preference, offer))
    return {
        metric: tuple(offer for _, offer in sorted(entries, key=lambda entry: entry[0], reverse=True))
        for metric, entries in sorted(found.items())
    }


def choose(offered: Offers, wanted: Sequence[str], judge: str = "") -> dict[str, str]:
    """One protocol a metric: the last one wanted, else the first there is.

    Args:
        offered: as `offers` gives.
        wanted: protocol ids.
        judge: where given, what is judged is shown by this judge or not at all.
    """
    chosen: dict[str, str] = {}
    for metric, entries in offered.items():
        fitting = [entry for entry in entries if not judge or entry.judge in ("", judge)]
        if fitting:
            ids = [entry.protocol for entry in fitting]
            wishes = [protocol for protocol in wanted if protocol in ids]
            chosen[metric] = wishes[-1] if wishes else ids[0]
    return chosen


def ambiguous(offered: Offers) -> dict[str, tuple[Choice, ...]]:
    """The choices of the metrics that have several protocols."""
    return {
        metric: tuple((entry.label, entry.protocol) for entry in entries)
        for metric, entries in offered.items()
        if len(entries) > 1
    }


def choose_protocols(
    rows: pd.DataFrame, wanted: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, tuple[Choice, ...]]]:
    """One protocol per metric of some rows, as `choose` does, and the choices where a metric has several."""
    numbers = Numbers.of(rows)
    offered = offers(numbers, numbers.all())
    return choose(offered, wanted), ambiguous(offered)


def judge_of(content: Mapping[str, object]) -> str:
    """The id of the judge in a protocol's content; empty where none is asked."""
    models = content.get("models")
    judge = models.get("judge") if isinstance(models, dict) else None
    return str(judge.get("id", "")) if isinstance(judge, dict) else ""


def protocol_label(protocol: str, content: str) -> str:
    """A protocol in a few words: its metric, its parameters, its judge, its id."""
    known = _content(content)
    said = [f"{name}={value}" for name, value in _parameters(known).items()]
    if judge := judge_of(known):
        said.append(f"judge {judge}")
    metric = protocol.partition("@")[0]
    return f"{metric}: {', '.join(said)} — {protocol}" if said else protocol


def _content(text: str) -> dict[str, object]:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _parameters(content: Mapping[str, object]) -> dict[str, object]:
    parameters = content.get("parameters")
    return parameters if isinstance(parameters, dict) else {}
