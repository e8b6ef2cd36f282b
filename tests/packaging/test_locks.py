"""What `make` and a deployment install: every package by its hash, as the tests have it, all that podeval asks for."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
SPACE = REPOSITORY / "space"
DEPLOYED = ("space/build.lock", "space/torch.lock", "space/requirements.lock")
LOCKS = (*DEPLOYED, "baselines.lock", "dev.lock")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)(?: ;.*?)?((?: \\\n {4}--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
STATED = re.compile(r"^[A-Za-z0-9._-]+==", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    found = {canonicalize_name(package): version for package, version, _ in PIN.findall(text)}
    assert len(found) == len(STATED.findall(text)) > 0, f"{name} holds a package without a hash; run `make lock`"
    return found


def constraints() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in pairs}


@pytest.mark.parametrize("name", LOCKS)
def test_what_is_deployed_is_what_the_tests_run_with(name: str) -> None:
    tested = constraints()
    other = {p: (v, tested.get(p)) for p, v in pins(name).items() if v.partition("+")[0] != tested.get(p)}
    assert not other, "run `make lock`, or pin it in constraints.txt"


@pytest.mark.parametrize(
    ("locks", "extras"),
    [(DEPLOYED, ("embedded", "space", "postgres")), (LOCKS, ("embedded", "space", "baselines", "dev"))],
)
def test_the_locks_have_all_that_podeval_asks_for(locks: tuple[str, ...], extras: tuple[str, ...]) -> None:
    document = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    locked = {package: version for name in locks for package, version in pins(name).items()}
    asked = [*document["build-system"]["requires"], *document["project"]["dependencies"]]
    for extra in extras:
        asked += document["project"]["optional-dependencies"][extra]
    missing = [
        wanted
        for wanted in map(Requirement, asked)
        if canonicalize_name(wanted.name) not in locked
        or locked[canonicalize_name(wanted.name)].partition("+")[0] not in wanted.specifier
    ]
    assert not missing, "run `make lock`"


def test_packages_come_from_the_index_alone_and_nothing_of_a_machine_is_in_the_locks() -> None:
    for name in set(LOCKS) - {"space/torch.lock"}:
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        assert not re.search(r"file:|find-links|index-url|/opt/|@ ", text)


def test_the_image_installs_nothing_without_a_hash() -> None:
    lines = (SPACE / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installs = [part for line in lines if line.startswith("RUN") for part in line.split("&&") if "pip install" in part]
    assert len(installs) == 5
    assert all(f"space/{lock}" in "".join(lines) for lock in ("build.lock", "torch.lock", "requirements.lock"))
    for part in installs:
        assert "--no-deps" in part
        assert "--require-hashes" in part or "--no-index /wheel/" in part


def test_make_installs_nothing_without_a_hash() -> None:
    make = ["make", "--dry-run", "--always-make", "test-environment", "audit"]
    printed = subprocess.run(make, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    installs = [line for line in printed.splitlines() if "pip install" in line]
    for line in installs:
        assert "--no-deps" in line
        assert "--no-build-isolation" in line or "--only-binary :all:" in line
        assert "--require-hashes" in line or line.endswith("--editable .")
    named = {word for line in installs for word in line.split() if word.endswith(".lock")}
    assert named == {*LOCKS, "tests/packaging/tools.lock"} - {"space/torch.lock"}
    assert "tests/packaging/install-torch" in printed


def test_what_tests_compare_with_and_releases_are_made_with_comes_by_its_hash() -> None:
    for lock, place in (
        ("tests/reference.lock", "tests/reference-packages"),
        ("tests/packaging/tools.lock", "Makefile"),
    ):
        stated = re.findall(r"([\w.-]+)==([\w.]+)", (REPOSITORY / place).read_text(encoding="utf-8"))
        locked = pins(lock)
        assert stated
        assert {name: locked.get(canonicalize_name(name)) for name, _ in stated} == dict(stated)
    script = (REPOSITORY / "tests" / "reference-packages").read_text(encoding="utf-8")
    assert re.findall(r"pip install.*", script) == [
        'pip install --quiet --no-deps --only-binary=:all: --require-hashes --constraint $lock"'
    ]


@pytest.mark.parametrize(
    ("matches", "settings", "said", "asked"),
    [
        (True, {}, "", ["--require-hashes --requirement space/torch.lock"]),
        (True, {"PIP_FIND_LINKS": "/mine"}, "", ["--no-index --require-hashes --requirement space/torch.lock"]),
        (False, {}, "", ["--require-hashes --requirement space/torch.lock"]),
        (False, {"PIP_FIND_LINKS": "/mine"}, "NOT BY HASH", ["--no-index --require-hashes", "--no-index torch=="]),
        (True, {"TORCH": "torch==9"}, "NOT BY HASH", ["--quiet torch==9"]),
    ],
)
def test_torch_comes_by_its_hash_or_it_is_said_aloud(
    tmp_path: Path, matches: bool, settings: dict[str, str], said: str, asked: list[str]
) -> None:
    python = tmp_path / "python"
    answer = "" if matches else 'case "$*" in *--require-hashes*) exit 1; esac'
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{answer}\n')
    python.chmod(0o755)
    script = [REPOSITORY / "tests/packaging/install-torch", python]
    environment = {"PATH": "/usr/bin:/bin", **settings}
    done = subprocess.run(script, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == (0 if matches or "PIP_FIND_LINKS" in settings else 1)
    assert said in done.stdout
    assert bool(said) == bool(done.stdout)
    lines = (tmp_path / "asked").read_text().splitlines()
    assert len(lines) == len(asked)
    assert all(words in line for words, line in zip(asked, lines, strict=True))


@pytest.mark.parametrize(
    ("known", "verdict", "status"),
    [
        ("", "NOT AUDITED: no advisories", 0),
        ("jinja2==2.11.2", "AUDITED: no advisory of api.osv.dev is about the", 0),
        ("jinja2==2.11.2|^torch==2.13.0 ", "", 1),
    ],
    ids=["nothing is known of anything", "nothing is known against ours", "a package of ours is vulnerable"],
)
def test_an_audit_without_advisories_is_called_none(tmp_path: Path, known: str, verdict: str, status: int) -> None:
    """The service is a file of what it knows; one that knows nothing, or is not reached, finds no vulnerability."""
    service = tmp_path / "pip-audit"
    search = f"grep -qE '{known}' \"$2\" && echo PYSEC-1 && exit 1" if known else "echo 'No known vulnerabilities'"
    service.write_text(f"#!/bin/sh\n{search}\nexit 0\n")
    service.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": "true"}
    script = [REPOSITORY / "tests/packaging/audit", service, *LOCKS]
    done = subprocess.run(script, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == status
    assert done.stdout.startswith(verdict)
    assert verdict or "AUDITED" not in done.stdout


def test_the_audit_has_the_last_word_of_the_longest_run() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^test-all:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe
    assert recipe[1].splitlines()[-1].endswith("audit")


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
