"""Names that other packages keep to themselves and podeval uses: each is there in the release that is installed.

The version is in the message, so that a failure says which release took the name away. Each is named in the code with
what it is used for; a name that is public elsewhere is better than one in this list.
"""

from importlib.metadata import version
from importlib.util import find_spec
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

IN_FILES = (
    ("gradio", "queueing.py", "self.sleep_when_free", "_queue.sleep_when_free"),
    ("gradio", "blocks.py", "self._queue", "_queue.sleep_when_free"),
    ("gradio", "utils.py", "def get_upload_folder(", "get_upload_folder"),
    ("torch", "distributed/run.py", "def get_args_parser(", "get_args_parser"),
    ("numpy", "_core/memmap.py", "self._mmap", '"_mmap"'),
    ("mcp", "server/mcpserver/exceptions.py", "class ToolError(", "mcpserver.exceptions"),
)
"""What only an object has, or what takes seconds to import: looked for in the text of the package."""


def find_uses(word: str) -> bool:
    """Whether the code names it."""
    folders = ("benchmark", "space", "studies", "tests")
    files = [path for folder in folders for path in (ENGINE / folder).rglob("*.py") if path != Path(__file__)]
    return any(word in path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize(("package", "file", "text", "word"), IN_FILES, ids=[text for _, _, text, _ in IN_FILES])
def test_a_private_part_is_still_in_the_text_of_its_package(package: str, file: str, text: str, word: str) -> None:
    assert find_uses(word), f"nobody uses {word}: take it off the list"
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    path = Path(spec.submodule_search_locations[0]) / file
    content = path.read_text(encoding="utf-8") if path.is_file() else ""
    assert text in content, f"{package} {version(package)} broke {text} in {file}"


@pytest.mark.parametrize(("package", "name", "word"), PARTS, ids=[name for _, name, _ in PARTS])
def test_a_private_part_of_others_is_still_there(package: str, name: str, word: str) -> None:
    assert find_uses(word), f"nobody uses {name}: take it off the list"
    try:
        resolve_name(name)
    except (ImportError, AttributeError) as error:
        pytest.fail(f"{package} {version(package)} broke {name}: {error}")
