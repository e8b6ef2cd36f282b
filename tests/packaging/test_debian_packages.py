"""What cannot be installed from Debian is skipped in one line, with the reason that apt itself gives."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "debian-packages"
TOOLS = ("bash", "grep", "head", "tail", "env")


def printed(folder: Path, user: int, apt: str | None) -> list[str]:
    """What the script prints on a machine of this user, whose apt-get is a script; None for no apt-get."""
    for name in TOOLS:
        (folder / name).symlink_to(f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}")
    programs = {"id": f"echo {user}"} | ({"apt-get": apt} if apt is not None else {})
    for name, line in programs.items():
        (folder / name).write_text(f"#!{folder}/bash\n{line}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        [folder / "bash", SCRIPT], capture_output=True, text=True, env={"PATH": str(folder)}, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("user", "apt", "reason"),
    [
        (
            0,
            "echo Reading lists; echo 'E: Unable to locate package chromium' >&2; echo later; exit 100",
            "E: Unable to locate package chromium",
        ),
        (0, "echo 'dpkg was interrupted' >&2; exit 1", "dpkg was interrupted"),
        (1000, "exit 0", "only root installs packages"),
        (0, None, "there is no apt-get"),
    ],
)
def test_what_cannot_be_installed_is_skipped_with_apts_own_reason(
    tmp_path: Path, user: int, apt: str | None, reason: str
) -> None:
    lines = [line for line in printed(tmp_path, user, apt) if "is not installed and cannot" in line]
    assert len(lines) == 2, "the browser and the sandbox, a line each"
    for line, program in zip(lines, ("chromium", "bwrap"), strict=True):
        assert line.startswith("SKIPPED: the ")
        assert f"because {program} is not installed and cannot be installed here: {reason} (apt-get install" in line
