"""Examples in the README and in docs/ are true: Python runs, data can be read.

A Python example that needs more than podeval says so in a comment before its fence, as in `<!-- needs: models -->`: its
imports are made all the same, those of all examples in one process. What those do is tested where the comment in
`ELSEWHERE` says.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

REPOSITORY = Path(__file__).parents[1]
LIGHT_EVALUATE = "import sys; sys.modules['transformers'] = None; import evaluate; del sys.modules['transformers']\n"
"""evaluate imports all of transformers where it can, which takes seconds, for what no example here uses."""
FENCE = re.compile(
    r"^(?:<!-- needs: (?P<needs>[^>]+?) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
ELSEWHERE = {
    "models": "tests/metrics and tests/recording run the same calls with models",
    "a judge": "tests/judges/test_docs_example.py runs it against a scripted server",
    "a site": "tests/space/test_site.py reads a running site by the same lines",
    "a system": "tests/systems/test_python_file.py calls functions of these forms",
    "a program": "tests/space/test_mcp.py asks by the same client",
}


class Example(NamedTuple):
    place: str
    language: str
    needs: str
    code: str


def _examples() -> list[Example]:
    found = []
    pages = (*REPOSITORY.glob("*.md"), *sorted(REPOSITORY.glob("docs/**/*.md")))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start("language")) + 1
            place = f"{page.relative_to(REPOSITORY)}:{line}"
            found.append(Example(place, match["language"], match["needs"] or "", match["code"]))
    return found


EXAMPLES = _examples()


def of(*languages: str) -> list[Any]:
    return [pytest.param(one, id=one.place) for one in EXAMPLES if one.language in languages]


def test_every_language_of_an_example_is_checked() -> None:
    assert {one.language for one in EXAMPLES} <= {"python", "bash", "json", "yaml", "text", "mermaid", "ts"}
    assert {one.needs for one in EXAMPLES} - {""} <= set(ELSEWHERE)


@pytest.mark.parametrize("example", [one for one in of("python") if not one.values[0].needs])
def test_a_python_example_runs(
    example: Example, run_python: Any, offline_modules: dict[str, str], tmp_path: Path
) -> None:
    before = LIGHT_EVALUATE if "import evaluate" in example.code else ""
    assert run_python(before + example.code, cwd=tmp_path, **offline_modules).strip()


@pytest.mark.long
def test_what_examples_import_that_need_more_than_podeval_is_there(
    run_python: Any, offline_modules: dict[str, str], tmp_path: Path
) -> None:
    """In one process for all: most of the time is that of the first import."""
    needing = [one for one in EXAMPLES if one.language == "python" and one.needs]
    program = [LIGHT_EVALUATE]
    for example in needing:
        tree = ast.parse(example.code)
        imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert imports or example.needs == "a system", example.place
        program += [f"print({example.place!r})", *imports]
    printed = run_python("\n".join(program), cwd=tmp_path, **offline_modules)
    assert printed.split() == [example.place for example in needing]


@pytest.mark.parametrize("example", of("json", "yaml"))
def test_data_in_an_example_can_be_read(example: Example) -> None:
    if example.language == "yaml":
        assert yaml.safe_load(example.code) is not None
        return
    try:
        json.loads(example.code)
    except ValueError:
        for line in example.code.splitlines():
            json.loads(line)
