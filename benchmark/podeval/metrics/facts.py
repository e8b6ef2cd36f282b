"""The facts of a metric as its card, the command line and the docs show them, all from its declaration."""

from typing import Any

from podeval.errors import ModelMissing
from podeval.metrics.declaration import INPUTS, Key, Metric
from podeval.models import registry


def facts(metric: Metric) -> dict[str, Any]:
    """Plain data: name, title, version, dimension, paper, keys, inputs, parameters, models by profile."""
    return {
        "name": metric.name,
        "title": metric.title,
        "version": metric.version,
        "dimension": metric.dimension,
        "paper": metric.paper,
        "about": metric.about,
        "keys": [
            {"name": k.name, "better": k.better, "unit": k.unit, "range": range_text(k), "about": k.about}
            for k in metric.keys
        ],
        "inputs": {name: INPUTS[name] for name in metric.inputs},
        "optional_inputs": {name: INPUTS[name] for name in metric.optional_inputs},
        "parameters": [
            {"name": p.name, "default": p.default, "choices": list(p.choices), "about": p.about}
            for p in metric.parameters
        ],
        "models": {profile: {job: _model(job, profile) for job in metric.needs} for profile in registry.PROFILES},
    }


def range_text(key: Key) -> str:
    """`1 to 5`, `0 and more`, or nothing where there is no bound."""
    low, high = key.bounds
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    if low is not None:
        return f"{low:g} and more"
    return f"up to {high:g}" if high is not None else ""


def _model(job: str, profile: str) -> str | None:
    try:
        card = registry.card(job, profile)
    except ModelMissing:
        return None
    return f"{card.title} ({card.licence})"
