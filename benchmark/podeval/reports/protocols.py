"""The content of a protocol, line by line, for a reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podeval.metrics import catalogue


def describe_protocol(metric: str, content: Mapping[str, Any]) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the title of the metric, the id of the protocol, and its content as named lines."""
    lines = []
    for name, value in content.items():
        if name in ("id", "metric") or value in ({}, [], None, ""):
            continue
        if name == "models" and isinstance(value, dict):
            lines += [(job, _model(model)) for job, model in value.items()]
        else:
            lines.append((name, _plain(value)))
    return write_metric_title(metric), str(content.get("id", "")), lines


def write_metric_title(metric: str) -> str:
    """Return the title of a metric; of one that this version does not have, its name."""
    return catalogue.get(metric).title if metric in catalogue.NAMES else metric.replace("_", " ")


def _model(model: Any) -> str:
    if not isinstance(model, dict):
        return _plain(model)
    options = model.get("options")
    name_text = " @ ".join(str(model[name]) for name in ("id", "revision") if model.get(name))
    return f"{name_text} ({_plain(options)})" if options else name_text


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
