"""What docs/hub.md tells people to type is what the installed client of the Hub takes."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "docs" / "run_in_a_job.py"


def test_the_options_of_the_job_are_those_of_the_client() -> None:
    block = re.search(r"```text\n(hf jobs uv run .*?)```", (REPOSITORY / "docs/hub.md").read_text("utf-8"), re.DOTALL)
    assert block
    options = set(re.findall(r"(--[a-z-]+)", block[1].partition("https://")[0]))
    program = str(Path(sys.executable).with_name("hf"))
    page = subprocess.run([program, "jobs", "uv", "run", "--help"], capture_output=True, text=True, check=True).stdout
    assert options == {"--flavor", "--timeout", "--secrets", "--volume"}
    assert options <= set(re.findall(r"(--[a-z-]+)", page))
    assert "t4-small" in page
    assert "docs/run_in_a_job.py" in block[1]


def test_the_script_installs_models_then_gives_its_arguments_to_podeval_and_its_code_back(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the installation does is tested with the command; here it is left out."""
    begun: list[list[str]] = []
    really_run = subprocess.run

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        begun.append(command)
        return subprocess.CompletedProcess(command, 0) if "install" in command else really_run(command, check=check)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "measure", "nothing", "x.wav"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert end.value.code == 2
    assert "nothing" in capfd.readouterr().err
    assert [command[command.index("podeval") + 1 :] for command in begun] == [
        ["models", "install", "--profile", "embedded"],
        ["measure", "nothing", "x.wav"],
    ]
    head = re.search(r"# /// script\n(.*?)# ///", SCRIPT.read_text(encoding="utf-8"), re.DOTALL)
    assert head
    assert 'dependencies = ["podeval[embedded,baselines]"]' in head[1]


def test_the_skill_has_the_head_that_programs_look_for() -> None:
    _, head, body = (REPOSITORY / ".agents/skills/podeval/SKILL.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields["name"] == "podeval"
    assert 50 < len(fields["description"]) < 1024
    assert "podeval measure loudness" in body
