"""Measure how much `import podeval` adds to the start of Python: the medians of 10 warm starts.

Run `python studies/speed/import_time.py`; the limit is 0.3 s.
"""

import statistics
import subprocess
import sys
import time

STARTS = 10
BOUND = 0.3


def seconds(program: str) -> float:
    """Return the median time of a Python process that runs a program, after a first process that warms the disk
    cache.
    """
    taken = []
    for _ in range(STARTS + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def main() -> None:
    """Print the time of Python alone, the time with podeval, and the difference."""
    bare, with_podeval = seconds("pass"), seconds("import podeval")
    print(f"bare Python        {bare:.3f} s")
    print(f"with import podeval {with_podeval:.3f} s")
    print(f"difference         {with_podeval - bare:.3f} s (bound {BOUND} s)")


if __name__ == "__main__":
    main()
