"""One table, in Markdown, of what the other scripts found side by side with peers.

python studies/speed/table.py FOUND
"""

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "onnxruntime", "torch", "pyloudnorm", "librosa")


def main() -> None:
    """Print it."""
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(
        f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, Python {platform.python_version()}, {packages}\n"
    )
    print("| what | ours, s of processor | against | s of processor | times ours | wanted |")
    print("| --- | --- | --- | --- | --- | --- |")
    for line in map(json.loads, lines):
        wanted = "" if line["wanted"] is None else f"{line['wanted']:.2g}"
        figures = f"{line['ours']:.2f} | {line['peer']} | {line['theirs']:.2f} | {line['times']:.1f} | {wanted}"
        print(f"| {line['what']} | {figures} |")


if __name__ == "__main__":
    main()
