"""Write one Markdown page with the comparisons that the other scripts made; `make bench` keeps it with the docs.

python studies/speed/table.py FOUND > docs/studies/speed.md
"""

import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "onnxruntime", "torch", "pyloudnorm", "librosa")


def main() -> None:
    """Print the page."""
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    commit = subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, text=True)
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    machine = f"{len(os.sched_getaffinity(0))} cores of {processor[1] if processor else platform.machine()}"
    print("# Side by side with other tools\n\nPrinted by the scripts of `make bench`. Seconds and ratios are medians.")
    print("Where a ratio is below 1, the other is faster. The load is the machine's when the row was printed.\n")
    print(f"Commit {commit.strip()}; {machine}; Python {platform.python_version()}, {packages}.\n")
    print("| what | ours, s of processor | against | s of processor | times ours | wanted | turns | load |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for line in map(json.loads, lines):
        wanted = "" if line["wanted"] is None else f"{line['wanted']:.2g}"
        figures = f"{line['ours']:.3g} | {line['peer']} | {line['theirs']:.3g} | {line['times']:.3g} | {wanted}"
        print(f"| {line['what']} | {figures} | {line['turns']} | {line['load']:.1f} |")


if __name__ == "__main__":
    main()
