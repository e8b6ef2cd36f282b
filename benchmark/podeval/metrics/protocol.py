"""Protocols: how a score came about, as a hash. Numbers are ranked only against numbers of the same protocol.

What is hashed: metric and version, parameters, which optional inputs were given, the identity of every model the metric
needs (id, revision, SHA-256 of the weights, decoding options), the dataset revision, and for generated items the track
and the conditions of their generation (voices, whole or joined, file or microphone). Profile, device and library
versions are provenance: they travel beside the id and do not change it.

The content's `generation` says how the items really came about (`podeval.runs.measure`). That enters the id only of
metrics that depend on timing (`Key.timing`), whose values say nothing of a system if podeval set the pauses. In the id
of every other metric are the conditions that the task asks of all systems alike: otherwise a system that speaks turn by
turn, one that speaks whole dialogues and supplied outputs would never share a column.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podeval.metrics.declaration import Metric


@dataclass(frozen=True)
class Protocol:
    """Everything that can change the value of one metric."""

    metric: str
    version: str
    parameters: Mapping[str, Any]
    inputs: tuple[str, ...]
    models: Mapping[str, Any]
    dataset: str | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    """How the items came about."""
    task: Mapping[str, Any] | None = None
    """The conditions that the task asks, which are hashed in place of `generation`; None where that is hashed."""

    @property
    def id(self) -> str:
        """The id, `<metric>@<version>-<12 hex digits of the SHA-256 of what is hashed>`."""
        conditions = self.generation if self.task is None else self.task
        hashed = {**self._content(), "generation": dict(conditions)}
        canonical = json.dumps(hashed, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return f"{self.metric}@{self.version}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"

    def to_json(self) -> dict[str, Any]:
        """Return the id and the content."""
        return {"id": self.id, **self._content()}

    def _content(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "version": self.version,
            "parameters": dict(self.parameters),
            "inputs": list(self.inputs),
            "models": dict(self.models),
            "dataset": self.dataset,
            "generation": dict(self.generation),
        }


def make_protocol(
    metric: Metric,
    parameters: Mapping[str, Any],
    given_inputs: tuple[str, ...],
    models: Mapping[str, Any],
    *,
    dataset: str | None = None,
    generation: Mapping[str, Any] | None = None,
    task: Mapping[str, Any] | None = None,
) -> Protocol:
    """Return the protocol of a metric as it is about to be used.

    Args:
        metric: the metric.
        parameters: the given choices; the others count with their defaults.
        given_inputs: names of the inputs at hand; those that the metric knows are part of the protocol.
        models: the identities of the metric's `needs`, from `podeval.models.registry.describe_identities`.
        dataset: revision of the dataset, where there is one.
        generation: how generated items came about.
        task: the conditions that the task asks of every system alike; without them, `generation` is hashed.
    """
    used = tuple(name for name in (*metric.inputs, *metric.optional_inputs) if name in given_inputs)
    return Protocol(
        metric=metric.name,
        version=metric.version,
        parameters=metric.read_parameters(parameters),
        inputs=used,
        models=models,
        dataset=dataset,
        generation=generation or {},
        task=None if any(key.timing for key in metric.keys) else task,
    )
