"""The adapters and presets as tables for people, made from their declarations and from what ran at full size."""

import json
from pathlib import Path
from typing import Any

from podeval.systems.adapters.adapter import ModelClass, list_adapters
from podeval.systems.adapters.presets import PRESETS

FULL_SIZE = Path(__file__).with_name("full_size.json")
"""What `studies/speed/full_size.py` kept: a line for each model of a published size and each device."""


_OUTPUTS = "Reads audio, scripts or answers made elsewhere; no model is run, and the board says so."


def render_adapters_table() -> str:
    """Render a line for each class of model that an adapter opens."""
    lines = ["| task | opens | what it can do | proven |", "| --- | --- | --- | --- |"]
    for adapter in list_adapters():
        for model in adapter.models:
            kind = "" if model.type in ("*", "lora", "cascade") else f" (`{model.type}`)"
            proven = f"*plumbing only*; {_describe_sizes(adapter.task, model)}"
            lines.append(f"| `{adapter.task}` | {model.title}{kind} | {model.about} | {proven} |")
        if not adapter.models:
            lines.append(f"| `{adapter.task}` | no model | {_OUTPUTS} | needs none |")
    return "\n".join(lines) + "\n"


def read_full_sizes() -> list[dict[str, Any]]:
    """Read which models of published sizes ran with random weights, and how."""
    lines: list[dict[str, Any]] = json.loads(FULL_SIZE.read_bytes())
    return lines


def render_full_size_table() -> str:
    """Render a line for each model of a published size that ran with random weights."""
    lines = [
        "| task | size of | parameters | device | dtype | memory | load | whole job | made | commit, date |",
        "| --- " * 10 + "|",
    ]
    for line in read_full_sizes():
        memory = f"{line['memory_gb']:.1f} GB"
        if "gpu_memory_gb" in line:
            memory += f", GPU {line['gpu_memory_gb']:.1f} GB"
        size, commit = f"{line['parameters'] / 1e6:,.0f} million", f"`{line['commit'][:8]}`"
        lines.append(
            f"| `{line['task']}` | {line['published']} | {size} | {line['device']} | {line['dtype']} | {memory} | "
            f"{line['load_seconds']:.0f} s | {line['wall_seconds']:.0f} s | {line['made']} | {commit}, {line['date']} |"
        )
    return "\n".join(lines) + "\n"


def _describe_sizes(task: str, model: ModelClass) -> str:
    """Say on which devices a class of model ran at a published size; or that only tiny ones did."""
    devices = [
        line["device"].partition(",")[0]
        for line in read_full_sizes()
        if (line["task"], line["type"]) == (task, model.type)
    ]
    return f"at full size on {' and '.join(dict.fromkeys(devices))}" if devices else "only small"


def render_presets_table() -> str:
    """A line for each preset."""
    lines = ["| preset | what it sets | from |", "| --- | --- | --- |"]
    lines += [f"| `{preset.name}` | {preset.about} | {preset.source} |" for preset in PRESETS.values()]
    return "\n".join(lines) + "\n"
