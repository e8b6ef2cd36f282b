"""How long a battle and a vote take, and a look at many votes.

.venv/bin/python studies/speed/arena.py
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from podeval.arena.vote_integrity import judge
from studies.arena_integrity import simulate
from tests.fakes.small_arena import SmallArena


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        small = SmallArena(str(Path(folder) / "arena.db"), systems=20, items=30, gold_share=0.0)
        small.vote("warm")
        served = voted = 0.0
        for number in range(300):
            began = time.perf_counter()
            battle = small.serve(f"voter{number % 10}")
            between = time.perf_counter()
            small.vote(f"voter{number % 10}", battle=battle)
            served += between - began
            voted += time.perf_counter() - between
        print(f"20 systems, 30 items, SQLite: a battle {served / 0.3:.1f} ms, a vote {voted / 0.3:.1f} ms")
        small.close()
    for count in (10_000, 100_000):
        votes = simulate("mixed", 0, votes=count)
        began = time.process_time()
        judge(votes)
        print(f"the rules on {count:,} votes: {time.process_time() - began:.1f} s of one processor")


if __name__ == "__main__":
    main()
