"""Compare the time for the first pitch in a new sandbox with and without a copy of the code that numba compiled.

`python studies/speed/pitch_in_a_box.py [TIMES]` prints both medians in seconds and their ratio.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from timing import keep

sys.path.insert(0, str(Path(__file__).parents[2] / "space"))

from podeval import sandbox
from podeval.measuring.isolated import copy_compiled, prepare

PROGRAM = (
    "import numpy as np; from podeval.audio.prosody import RATE, measure_prosody; "
    "measure_prosody(np.sin(np.arange(9 * RATE) / 20).astype(np.float32))"
)
LIMITS = sandbox.SandboxLimits(wall_seconds=600.0, memory_bytes=10 * 2**30, processes=256)


def measure(*, compiled: bool) -> float:
    """Return the seconds that the pitch of nine seconds takes in a new sandbox."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        out.mkdir()
        Path(folder).chmod(0o755)
        start = time.perf_counter()
        settings = {"OMP_NUM_THREADS": "1", **(copy_compiled(out) if compiled else {})}
        trusted = sandbox.explain_missing_isolation() is not None
        command = [*sandbox.build_python_command("podeval.audio.prosody")[:1], "-c", PROGRAM]
        ended = sandbox.run(sandbox.SandboxSpec(command, out, [], LIMITS, settings, trusted=trusted))
        assert ended.failure is None, ended.failure
        return time.perf_counter() - start


def compare(times: int) -> tuple[float, float]:
    """Return the median seconds without and with the compiled code, measured in turn."""
    prepare()
    pairs = [(measure(compiled=False), measure(compiled=True)) for _ in range(times)]
    before, after = (statistics.median(each) for each in zip(*pairs, strict=True))
    return before, after


if __name__ == "__main__":
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    before, after = compare(turns)
    keep("first pitch in a sandbox (wall)", "compiled in it", after, before, before / after, None, turns)
    print(f"without {before:.1f} s, with {after:.1f} s: {before / after:.1f} times as fast")
