"""What a deployment installs: every package pinned by hash, as the tests have it, and all that podeval asks for."""

import re
import runpy
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
SPACE = REPOSITORY / "space"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)(?: ;.*?)?((?: \\\n {4}--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
STATED = re.compile(r"^[A-Za-z0-9._-]+==", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    text = (SPACE / name).read_text(encoding="utf-8")
    found = {canonicalize_name(package): version for package, version, _ in PIN.findall(text)}
    assert len(found) == len(STATED.findall(text)) > 0, f"{name} holds a package without a hash; run `make lock`"
    return found


def constraints() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in pairs}


@pytest.mark.parametrize("name", ["requirements.lock", "torch.lock", "build.lock"])
def test_what_is_deployed_is_what_the_tests_run_with(name: str) -> None:
    tested = constraints()
    other = {p: (v, tested.get(p)) for p, v in pins(name).items() if v.partition("+")[0] != tested.get(p)}
    assert not other, "run `make lock`, or pin it in constraints.txt"


def test_the_lock_has_all_that_podeval_asks_for() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = pins("requirements.lock") | pins("torch.lock")
    asked = [*project["dependencies"]]
    for extra in ("embedded", "space", "postgres"):
        asked += project["optional-dependencies"][extra]
    missing = [
        wanted
        for wanted in map(Requirement, asked)
        if canonicalize_name(wanted.name) not in locked
        or locked[canonicalize_name(wanted.name)].partition("+")[0] not in wanted.specifier
    ]
    assert not missing, "run `make lock`"


def test_packages_come_from_the_index_alone_and_nothing_of_a_machine_is_in_the_locks() -> None:
    for name in ("requirements.lock", "build.lock"):
        text = (SPACE / name).read_text(encoding="utf-8")
        assert not re.search(r"file:|find-links|index-url|/opt/|@ ", text)


def test_the_image_installs_nothing_without_a_hash() -> None:
    lines = (SPACE / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installs = [part for line in lines if line.startswith("RUN") for part in line.split("&&") if "pip install" in part]
    assert len(installs) == 4
    for part in installs:
        assert "--no-deps" in part
        assert "--require-hashes" in part or "--no-index /wheel/" in part


def test_licences_are_told_and_a_strong_copyleft_stands_out() -> None:
    told = runpy.run_path(str(Path(__file__).parent / "licences.py"))
    document = {
        "components": [
            {"name": "a", "version": "1", "licenses": [{"license": {"id": "MIT"}}]},
            {"name": "b", "version": "2", "licenses": [{"expression": "LGPL-3.0-only"}]},
            {"name": "c", "version": "3", "licenses": [{"expression": "GPL-3.0-or-later"}]},
            {"name": "no-such-package-here", "version": "4"},
            {"name": "numpy", "version": "5", "licenses": [{"license": {"name": "declared license file: x"}}]},
        ]
    }
    found = told["by_licence"](document)
    assert found["MIT"] == ["a 1"]
    assert found["not stated"] == ["no-such-package-here 4"]
    assert any("BSD" in name for name, packages in found.items() if "numpy 5" in packages)
    assert told["strong"](document) == ["c 3"]


def test_nothing_under_a_strong_copyleft_is_brought_by_the_package_or_the_image() -> None:
    told = runpy.run_path(str(Path(__file__).parent / "licences.py"))
    names = told["brought"]()
    assert {"numpy", "opencc", "py3langid", "soxr", "psycopg", "gradio", "torch"} <= names
    assert "zhconv" not in names
    assert told["strong"](told["components"](names)) == []


def test_the_lgpl_is_where_the_documentation_says_it_is() -> None:
    told = runpy.run_path(str(Path(__file__).parent / "licences.py"))
    stated = told["by_licence"](told["components"](told["brought"]()))
    weak = {name for said, packages in stated.items() if "LGPL" in said or "Lesser" in said for name in packages}
    assert weak == {"soxr", "psycopg", "psycopg-binary", "psycopg-pool"}


def test_a_package_under_the_gpl_that_something_else_asks_for_is_found(tmp_path: Path) -> None:
    for name, asks, licence in (("outer", "Requires-Dist: inner[more]", "MIT"), ("inner", "", "GPL-3.0-or-later")):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\nLicense-Expression: {licence}\n{asks}\n"
        )
    told = runpy.run_path(str(Path(__file__).parent / "licences.py"))
    sys.path.insert(0, str(tmp_path))
    try:
        names = told["_closure"](["outer", "absent; python_version < '3'"])
        assert names == {"outer", "inner"}
        assert told["strong"](told["components"](names)) == ["inner"]
    finally:
        sys.path.remove(str(tmp_path))
