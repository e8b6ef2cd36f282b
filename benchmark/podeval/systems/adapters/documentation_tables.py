"""The adapters and presets as tables for people, made from their declarations."""

from podeval.systems.adapters.adapter import all_adapters
from podeval.systems.adapters.presets import PRESETS


def adapters_table() -> str:
    """Render a line for each class of model that an adapter opens."""
    lines = ["| task | opens | what it can do | proven |", "| --- | --- | --- | --- |"]
    for adapter in all_adapters():
        for model in adapter.models:
            kind = "" if model.type in ("*", "lora", "cascade") else f" (`{model.type}`)"
            lines.append(f"| `{adapter.task}` | {model.title}{kind} | {model.about} | *{model.label}* |")
        if not adapter.models:
            lines.append(f"| `{adapter.task}` | no model | {adapter.about} | needs none |")
    return "\n".join(lines) + "\n"


def presets_table() -> str:
    """A line for each preset."""
    lines = ["| preset | what it sets | from |", "| --- | --- | --- |"]
    lines += [f"| `{preset.name}` | {preset.about} | {preset.source} |" for preset in PRESETS.values()]
    return "\n".join(lines) + "\n"
