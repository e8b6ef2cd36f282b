"""The scheduled try of the newest releases: its target upgrades what breaks us most and runs tests that exist."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


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
