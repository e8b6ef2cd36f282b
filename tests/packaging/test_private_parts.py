"""Names that other packages keep to themselves and podeval uses: each is there in the release that is installed.

The version is in the message, so that a failure says which release took the name away. Each is named in the code with
what it is used for; a name that is public elsewhere is better than one in this list.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name

import pytest

ENGINE = Path(__file__).parents[2]
PARTS = (
    ("uvicorn", "uvicorn.protocols.http.h11_impl:H11Protocol", "H11Protocol"),
    ("numpy", "numpy._core.multiarray:_reconstruct", "_reconstruct"),
    ("huggingface_hub", "huggingface_hub._eval_results:parse_eval_result_entries", "parse_eval_result_entries"),
    ("datasets", "datasets:DatasetInfo._to_yaml_dict", "_to_yaml_dict"),
    ("mcp", "mcp.server", "mcp.server"),
)


@pytest.mark.parametrize(("package", "name", "word"), PARTS, ids=[name for _, name, _ in PARTS])
def test_a_private_part_of_others_is_still_there(package: str, name: str, word: str) -> None:
    folders = ("benchmark", "space", "tests")
    files = [path for folder in folders for path in (ENGINE / folder).rglob("*.py") if path != Path(__file__)]
    assert any(word in path.read_text(encoding="utf-8") for path in files), f"nobody uses {name}: take it off the list"
    try:
        resolve_name(name)
    except (ImportError, AttributeError) as error:
        pytest.fail(f"{package} {version(package)} broke {name}: {error}")
