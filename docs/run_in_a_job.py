# /// script
# requires-python = ">=3.11"
# dependencies = ["podeval[embedded,baselines]"]
# ///
"""Run podeval where nothing is installed: `uv run docs/run_in_a_job.py run espeak_ng --split demo`.

It first fetches the models used for measuring, and then passes its arguments to `podeval`.
"""

import subprocess
import sys


def main() -> int:
    """Fetch the embedded models, pass the arguments to podeval, and return its exit code."""
    command = [sys.executable, "-m", "podeval"]
    subprocess.run([*command, "models", "install", "--profile", "embedded"], check=True)
    return subprocess.run([*command, *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
