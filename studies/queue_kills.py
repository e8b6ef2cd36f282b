"""Kill the workers 50 times at random moments while two of them process 40 items of four submissions; then check
everything.

    python studies/queue_kills.py [--kills 50] [--seed 1] [--place sqlite|postgresql|postgresql://…] [--rounds 1]

tests/submissions/ordeal.py defines the conditions afterwards: every item is in the result once, nothing is lost, and
states and history agree. One round on SQLite is part of the tests; this script runs other seeds, and PostgreSQL. It
ends with an error if the work was done before all kills had happened. With `--place postgresql`, the script starts its
own server for each round.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fakes import postgresql_server, tiny_worker
from tests.submissions import ordeal


@contextmanager
def _place(asked: str, folder: Path) -> Iterator[str]:
    """Yield the address of an empty database."""
    if asked == "postgresql":
        binaries = postgresql_server.programs()
        if binaries is None:
            sys.exit("no PostgreSQL here: apt-get install postgresql")
        with postgresql_server.running(binaries) as address:
            yield f"{address}/postgres"
    else:
        yield f"{folder}/store.db" if asked == "sqlite" else asked


def main() -> None:
    """Run the rounds, and print the results."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--kills", type=int, default=50)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--rounds", type=int, default=1)
    asked.add_argument("--place", default="sqlite")
    given = asked.parse_args()
    os.environ["TALLY_SECONDS"] = "0.05"
    for number in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder, _place(given.place, Path(folder)) as place:
            outcome = ordeal.undergo(
                tiny_worker,
                place,
                Path(folder),
                kills=given.kills,
                submissions=4,
                workers=2,
                seed=given.seed + number,
                lease=1.5,
                item_seconds=1.0,
                between=(0.05, 1.0),
            )
        assert outcome.kills == given.kills, f"the work was done after {outcome.kills} kills"
        print(
            f"seed {given.seed + number}: {outcome.kills} kills, {outcome.attempts} attempts, {outcome.seconds:.0f} s: "
            "40 of 40 items once in the results of 4 published submissions"
        )


if __name__ == "__main__":
    main()
