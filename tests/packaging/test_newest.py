"""The scheduled try of the newest releases: its workflow runs the target, and the target tests what is there."""

import re
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[2]


def test_the_workflow_runs_the_target_on_a_schedule_and_may_only_read() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/newest.yml").read_text(encoding="utf-8"))
    when = workflow[True]  # YAML reads the word "on" so
    assert [len(entry["cron"].split()) for entry in when["schedule"]] == [5]
    assert workflow["permissions"] == {"contents": "read"}
    commands = [step["run"] for step in workflow["jobs"]["newest"]["steps"] if "run" in step]
    assert commands[-1] == "make newest"
    for command in commands[:-1]:
        assert (REPOSITORY / command.removeprefix("sudo ")).is_file()
    assert workflow["jobs"]["audit"]["steps"][-1] == {"run": "make audit"}
    for step in [step for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])  # a tag may be moved, a commit cannot


def test_the_target_upgrades_what_breaks_us_most_and_runs_tests_that_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    upgraded = re.search(r"^NEWEST = (.*)$", makefile, re.MULTILINE)
    recipe = re.search(r"^newest: test-environment\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert upgraded
    assert recipe
    assert set(upgraded[1].split()) == {"gradio", "transformers", "datasets", "huggingface_hub"}
    assert "--upgrade $(NEWEST)" in recipe[1]
    tests = re.findall(r"tests/\S+", recipe[1].splitlines()[-1])
    assert "tests/packaging/test_private_parts.py" in tests
    assert all((REPOSITORY / test).exists() for test in tests)
