"""A test that fails by chance refuses no change: `.ci/run` repeats it once, and the third time it is to be mended."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
LIST = CHECKOUT / "tests" / "failed_once.txt"
MOST = 2

MAKEFILE = """
test:
	@mkdir -p .venv/share/podeval
	@{python} -m pytest -q {options} tests; tests=$$?; \\
	[ "$$tests-{types}" = 1-0 ] && echo "tests failed, types right" > .venv/share/podeval/tests-outcome; \\
	exit $$((tests | {types}))
retest:
	@echo repeating
	{python} -m pytest -q --last-failed --last-failed-no-failures none
"""
TESTS = """
import pathlib, pytest
@pytest.mark.parametrize("name", ["a b - c", "ok"])
def test_by_chance(name):
    mark = pathlib.Path("mark")
    if name != "ok" and not mark.exists():
        mark.touch()
        raise AssertionError("the first time")
def test_right():
    with open("runs", "a") as file:
        file.write("x")
"""
BROKEN = "\ndef test_broken():\n    assert False\n"


def list_too_often(lines: Iterable[str]) -> list[str]:
    """Return the tests that are on the list more than `MOST` times."""
    tests = Counter(line.split(" ", 2)[2] for line in lines if line.strip() and not line.startswith("#"))
    return [test for test, times in tests.items() if times > MOST]


def run(folder: Path, tests: str, types: int = 0, options: str = "") -> subprocess.CompletedProcess[str]:
    """Run `.ci/run` in a folder with its own Makefile and tests; `types` is the exit status of the type checker."""
    (folder / ".ci").mkdir()
    shutil.copy(CHECKOUT / ".ci" / "run", folder / ".ci" / "run")
    (folder / "Makefile").write_text(MAKEFILE.format(python=sys.executable, types=types, options=options))
    (folder / "tests").mkdir()
    (folder / "tests" / "test_some.py").write_text(tests)
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(
        ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "x"],
        check=True,
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    # Of the plugins none but the one of `--processes`: some that are installed take seconds to import.
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run([folder / ".ci" / "run"], capture_output=True, text=True, env=environment)


def test_no_test_is_on_the_list_three_times() -> None:
    often = list_too_often(LIST.read_text("utf-8").splitlines())
    assert often == [], "failed by chance three times: mend it, then take its lines out of tests/failed_once.txt"


def test_the_third_line_counts_and_comments_do_not() -> None:
    lines = ["# a", "2026-11-28 abc t.py::x[a b]", "2026-11-29 abc t.py::x[a b]", "", "2026-11-29 abc t.py::y"]
    assert list_too_often(lines) == []
    assert list_too_often([*lines, "2026-11-30 def t.py::x[a b]"]) == ["t.py::x[a b]"]


def test_a_test_that_fails_by_chance_is_repeated_alone_and_listed(tmp_path: Path) -> None:
    result = run(tmp_path, TESTS)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAILED ONCE\ntests/test_some.py::test_by_chance[a b - c]\n" in result.stdout
    (line,) = (tmp_path / "tests" / "failed_once.txt").read_text().splitlines()
    assert line.split(" ", 2)[2] == "tests/test_some.py::test_by_chance[a b - c]"
    assert (tmp_path / "runs").read_text() == "x"


@pytest.mark.parametrize(("tests", "types"), [(TESTS + BROKEN, 0), (TESTS + BROKEN, 1), (TESTS, 1)])
def test_what_fails_twice_fails_and_wrong_types_are_not_hidden_by_a_repeat(
    tmp_path: Path, tests: str, types: int
) -> None:
    result = run(tmp_path, tests, types)
    assert result.returncode != 0
    assert ("repeating" in result.stdout) == (types == 0)
    assert not (tmp_path / "tests" / "failed_once.txt").exists()


TWO = "-p tests.forked_processes --processes 2"
STOPS = ("import pytest; pytest.exit('stopped')", "raise KeyboardInterrupt")
ONCE = "import pathlib\nif not pathlib.Path('once').exists():\n    pathlib.Path('once').touch()\n    {}\n"


@pytest.mark.every(3)
@pytest.mark.parametrize("options", ["", TWO], ids=["one", "two"])
@pytest.mark.parametrize(
    "tests",
    [
        *(ONCE.format(stop) + TESTS + BROKEN for stop in ("import not_there", *STOPS)),
        *(f"{TESTS}def test_stopped():\n    {stop}\n{BROKEN}" for stop in STOPS),
    ],
)
def test_a_run_in_which_tests_never_ran_is_not_repeated(tmp_path: Path, tests: str, options: str) -> None:
    """A file that cannot be read the first time, and a run that is interrupted, leave tests that nobody has seen."""
    result = run(tmp_path, tests, options=options)
    assert result.returncode != 0
    assert "FAILED ONCE" not in result.stdout


def test_tests_whose_process_was_killed_fail_and_are_repeated(tmp_path: Path) -> None:
    kill = ONCE.format("import os; os.kill(os.getpid(), 9)").replace("\n", "\n    ")
    result = run(tmp_path, f"{TESTS}def test_killed():\n    {kill}\ndef test_after():\n    pass\n", options=TWO)
    assert result.returncode == 0, result.stdout + result.stderr
    listed = (tmp_path / "tests" / "failed_once.txt").read_text().splitlines()
    names = [line.rpartition("::")[2] for line in listed]
    assert names == ["test_by_chance[a b - c]", "test_killed"]
    assert "its process ended with status 9" in result.stdout


def test_the_makefile_tells_which_runs_may_be_repeated() -> None:
    recipe = (CHECKOUT / "Makefile").read_text("utf-8")
    assert '[ "$$tests$$types" = 10 ] && echo "tests failed, types right" > $(OUTCOME)' in recipe
