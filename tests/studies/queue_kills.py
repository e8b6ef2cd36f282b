"""Kill the workers 50 times at random moments while 2 of them do 40 items of 4 submissions; then check everything.

    python tests/studies/queue_kills.py [--kills 50] [--seed 1] [--place sqlite|postgresql://…] [--rounds 1]

What must be true afterwards is in tests/submissions/ordeal.py: every item is in the result once, nothing is lost,
states and history agree. A small version runs with the tests.
"""

import argparse
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "submissions"


def beside(name: str) -> ModuleType:
    """A module of the tests of submissions."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Undergo the ordeal and print what came of it."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--kills", type=int, default=50)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--rounds", type=int, default=1)
    asked.add_argument("--place", default="sqlite")
    given = asked.parse_args()
    os.environ["TALLY_SECONDS"] = "0.05"
    for number in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            place = f"{folder}/store.db" if given.place == "sqlite" else given.place
            outcome = beside("ordeal").undergo(
                beside("tiny_worker"),
                place,
                Path(folder),
                kills=given.kills,
                submissions=4,
                workers=2,
                seed=given.seed + number,
                lease=1.5,
                item_seconds=0.4,
                between=(0.05, 1.2),
            )
        print(
            f"seed {given.seed + number}: {outcome.kills} kills, {outcome.attempts} attempts, {outcome.seconds:.0f} s: "
            "40 of 40 items once in the results of 4 published submissions"
        )


if __name__ == "__main__":
    main()
