"""The release workflow: it publishes what the checklist names, without a token that anybody keeps."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / ".github/workflows/release.yml"
JOBS = yaml.safe_load(FILE.read_text(encoding="utf-8"))["jobs"]


def list_commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_no_secret_is_read_and_each_job_may_only_ask_for_an_identity() -> None:
    assert not re.search(r"secrets\.|_TOKEN\b|password", FILE.read_text(encoding="utf-8"))
    for job in JOBS.values():
        assert job["permissions"] == {"contents": "read", "id-token": "write"}
        for step in [step for step in job["steps"] if "uses" in step]:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])  # a tag may be moved, a commit cannot
            assert step["with"].get("persist-credentials") is False or "setup-python" in step["uses"]
    installs = [command for job in JOBS.values() for command in list_commands(job) if "pip install" in command]
    assert all("--require-hashes" in command for command in installs)
    assert all((REPOSITORY / lock).is_file() for command in installs for lock in re.findall(r"\S+\.lock", command))


def test_a_tag_of_another_version_is_not_published(tmp_path: Path) -> None:
    (check,) = [command for command in list_commands(JOBS["package"]) if command.startswith("test ")]
    version = re.search(r'__version__ = "(.*)"', (REPOSITORY / "benchmark/podeval/version.py").read_text())
    assert version
    for tag, passes in ((f"v{version[1]}", True), ("v9.9.9", False)):
        done = subprocess.run(["sh", "-c", check], cwd=REPOSITORY, env={**os.environ, "GITHUB_REF_NAME": tag})
        assert (done.returncode == 0) == passes


def test_each_space_is_pushed_with_a_token_for_itself(tmp_path: Path) -> None:
    program = tmp_path / "hf"
    program.write_text(f'#!/bin/sh\nset -f\necho "$HF_OIDC_RESOURCE | hf $*" >> {tmp_path}/pushed\n')
    program.chmod(0o755)
    push = list_commands(JOBS["spaces"])[-1]
    subprocess.run(["bash", "-c", push], cwd=REPOSITORY, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    lines = (tmp_path / "pushed").read_text().splitlines()
    metrics = sorted(folder.name for folder in (REPOSITORY / "hf_metrics").iterdir() if (folder / "app.py").is_file())
    assert lines[0] == (
        "spaces/podeval/leaderboard | "
        "hf upload podeval/leaderboard space . --type space --exclude *__pycache__* --delete *"
    )
    assert lines[1:] == [
        f"spaces/podeval/{name} | hf upload podeval/{name} hf_metrics/{name}/ . --type space --delete *"
        for name in metrics
    ]
