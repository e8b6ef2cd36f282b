"""The package's own data files, as builders read them: JSON with a list of objects, or an object a line."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podeval.errors import BadInput


def read_objects(path: Path, name: str = "items") -> list[Mapping[str, Any]]:
    """Read the objects that a JSON file lists under a name.

    Raises:
        BadInput: the file cannot be read, or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read ({type(error).__name__}: {error}); download the file again") from None
    if not isinstance(content, Mapping) or name not in content:
        raise BadInput(f"{path} holds no {name}; download the file again")
    if not isinstance(content[name], list) or not all(isinstance(one, Mapping) for one in content[name]):
        raise BadInput(f"{path} should hold a list of objects under `{name}`")
    objects: list[Mapping[str, Any]] = content[name]
    return objects


def read_object_lines(path: Path) -> list[Mapping[str, Any]]:
    """Read the objects of a file of JSON lines.

    Raises:
        BadInput: the file cannot be read, or a line holds something else.
    """
    try:
        objects = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read ({type(error).__name__}: {error}); download the file again") from None
    if not all(isinstance(one, Mapping) for one in objects):
        raise BadInput(f"{path} should hold an object a line")
    return objects
