"""Fuzz one reader or, with `http`, the whole site for a number of minutes: `python studies/fuzz.py audio --minutes 10`.

With atheris (a wheel for Linux, `pip install atheris`), the lines that an input reaches guide the next inputs; without
it, the inputs are random changes of the seeds. A finding is stored in `--out` with its traceback. Once the fault is
fixed, moving the finding to tests/fuzz/corpus/<target>/ makes it an ordinary test.
"""

import argparse
import hashlib
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "space"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.targets import TARGETS, changed

SLOW = 5.0
"""Maximum seconds for an input on an idle machine."""


class Findings:
    """Runs a target, and stores one input for every place where it fails."""

    def __init__(self, name: str, out: Path) -> None:
        self.target, self.out, self.name = TARGETS[name], out, name
        self.seen: set[str] = set()
        self.runs = 0

    def run(self, data: bytes) -> None:
        """Run the target on one input."""
        self.runs += 1
        began = time.process_time()
        try:
            self.target.read_in_bounds(data)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self._keep(f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}", data, traceback.format_exc())
            return
        took = time.process_time() - began
        # The first input imports the modules that the target needs.
        if took > SLOW and self.runs > 1:
            self._keep(f"slow-{int(took)}", data, f"{took:.1f} s of the processor")

    def _keep(self, what: str, data: bytes, told: str) -> None:
        if what in self.seen:
            return
        self.seen.add(what)
        self.out.mkdir(parents=True, exist_ok=True)
        file = self.out / f"{self.name}-{what}-{hashlib.sha256(data).hexdigest()[:8]}"
        file.write_bytes(data)
        file.with_suffix(".txt").write_text(told, encoding="utf-8")
        print(f"finding: {file}\n{told}", flush=True)


def without_guidance(findings: Findings, seconds: float, seed: int) -> None:
    """Run random changes of the inputs until the time is over."""
    dice = random.Random(seed)
    inputs, end = findings.target.inputs(findings.name), time.monotonic() + seconds
    while time.monotonic() < end:
        findings.run(changed(findings.target, dice.choice(inputs), dice.choice(inputs), dice))


def guided(findings: Findings, seconds: float, seed: int) -> None:
    """Run inputs that atheris chooses; atheris ends the process."""
    import atheris

    corpus = Path(tempfile.mkdtemp(prefix="podeval-corpus-"))
    for number, data in enumerate(findings.target.inputs(findings.name)):
        (corpus / str(number)).write_bytes(data)
    words = corpus.with_suffix(".dict")
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in findings.target.words)
    words.write_text("".join(f'"{word}"\n' for word in quoted), encoding="ascii")

    def one(data: bytes) -> None:
        findings.run(data)
        if time.monotonic() > end:
            print(f"{findings.name}: {findings.runs} inputs, {len(findings.seen)} findings, by atheris", flush=True)
            sys.stdout.flush()
            import os

            os._exit(1 if findings.seen else 0)

    end = time.monotonic() + seconds
    options = [f"-max_len={findings.target.longest}", f"-seed={seed}", f"-dict={words}", "-rss_limit_mb=6000"]
    atheris.Setup([sys.argv[0], *options, "-verbosity=0", "-timeout=120", str(corpus)], one)
    atheris.Fuzz()


def fuzz_http(seconds: float, seed: int) -> int:
    """Send requests to the whole site, over an empty folder of runs: requests that its document allows, and others."""
    from tests.fuzz import http_api

    with tempfile.TemporaryDirectory() as folder, http_api.site_in(Path(folder)) as site:
        found = http_api.fuzz(site, examples=0, seconds=seconds, seed=seed)
    print(f"{found.asked} requests, answers {dict(sorted(found.statuses.items()))}, {len(found.failures)} failures")
    for place, shown in found.failures.items():
        print(f"{place}: {shown}")
    return int(bool(found.failures))


def main() -> int:
    """Fuzz a target, and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=[*sorted(TARGETS), "http"])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--random", action="store_true", help="without atheris, even where it is installed")
    told = parser.parse_args()
    if told.target == "http":
        return fuzz_http(60 * told.minutes, told.seed)
    findings = Findings(told.target, told.out)
    if not told.random:
        try:
            import atheris
        except ImportError:
            print("atheris is not installed: inputs are changed at random", flush=True)
        else:
            # A target imports its modules at its first input, so they are instrumented at that point.
            with atheris.instrument_imports(include=["podeval", "yaml", "defusedxml"], enable_loader_override=False):
                for data in findings.target.inputs(told.target):
                    findings.run(data)
            guided(findings, 60 * told.minutes, told.seed)
    without_guidance(findings, 60 * told.minutes, told.seed)
    print(f"{told.target}: {findings.runs} inputs, {len(findings.seen)} findings, at random", flush=True)
    return int(bool(findings.seen))


if __name__ == "__main__":
    sys.exit(main())
