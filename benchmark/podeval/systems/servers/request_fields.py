"""Fields that a user adds to every request to a server: `--field KEY=JSON`, null for one that is left out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from podeval.errors import BadInput
from podeval.systems.servers.server_errors import CONTENT

_OWN = (*CONTENT, "stream", "stream_format")
"""Fields that say what is asked, of whom, and how it comes; options of the command set them."""


def read_fields(assignments: Sequence[str]) -> dict[str, Any]:
    """Read fields as they are written on the command line.

    Raises:
        BadInput: one is no KEY=JSON, is given twice, or is podeval's own.
    """
    fields: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        example = f"""--field '{name or "language"}="English"' or --field temperature=0.7"""
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"--field {assignment[:200]} is not KEY=JSON ({error}); write it as {example}") from None
        if not name or not equals:
            raise BadInput(f"--field {assignment[:200]} is not KEY=JSON; write it as {example}")
        if name in _OWN:
            raise BadInput(f"--field {name} is set by podeval; use --model, --voice, --clone or --stream")
        if name in fields:
            raise BadInput(f"--field {name} is given twice; give it once")
        fields[name] = value
    return fields


def fixes_seed(fields: Mapping[str, Any]) -> bool:
    """Whether fields set a seed, at whatever depth, so that a run's own does not count."""
    inner = [value for value in fields.values() if isinstance(value, Mapping)]
    return fields.get("seed") is not None or any(map(fixes_seed, inner))


def add_fields(body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request with fields added: objects are merged, and what is None is left out."""
    merged = dict(body)
    for name, value in fields.items():
        before = merged.pop(name, None)
        if isinstance(value, Mapping):
            merged[name] = add_fields(before if isinstance(before, Mapping) else {}, value)
        elif value is not None:
            merged[name] = value
    return merged


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
