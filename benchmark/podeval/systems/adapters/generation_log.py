"""The log of generation on disk: a line an item in `generated.jsonl`, whole and synced, beside the item's files.

Several processes write to one log. What a process died on is known by `begun.jsonl`: an item that was begun again and
again and never finished is at last given up.
"""

import fcntl
import json
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podeval.errors import BadInput
from podeval.files import append_synced, read_lines
from podeval.systems.adapters.adapter import Generated

TRIES = 5
"""In how many processes an item is begun and not finished before it counts as one that kills them; whoever kills a
process for reasons of their own hits the same item that often only by great misfortune."""


class Log:
    """The log in one output folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._life = uuid.uuid4().hex

    def finished(self) -> dict[tuple[str, int], Generated]:
        """Read the lines by item and seed, of those whose files are all there.

        Raises:
            BadInput: a whole line that is not one of this version's.
        """
        lines = {}
        for line in read_lines(self.folder / "generated.jsonl"):
            try:
                generated = Generated.model_validate(line)
            except ValidationError as error:
                first = error.errors()[0]
                raise BadInput(
                    f"{self.folder / 'generated.jsonl'} was not written by this version of podeval "
                    f"({'.'.join(map(str, first['loc']))}: {first['msg']}); delete the folder to start afresh"
                ) from None
            if all((self.folder / name).is_file() for name in generated.files):
                lines[generated.item, generated.seed] = generated
        return lines

    def died_on(self) -> set[tuple[str, int]]:
        """List the items by seed that were begun in as many processes as are tried, finished or not."""
        lives = {(line["item"], line["seed"], line["life"]) for line in read_lines(self.folder / "begun.jsonl")}
        begun = Counter((item, seed) for item, seed, _ in lives)
        return {key for key, times in begun.items() if times >= TRIES}

    def begin(self, places: Sequence[tuple[str, int]]) -> None:
        """Note what is about to be generated."""
        self._append("begun.jsonl", [{"item": item, "seed": seed, "life": self._life} for item, seed in places])

    def finish(self, line: Generated) -> None:
        """Keep a line; when this returns, a kill does not lose it."""
        self._append("generated.jsonl", [line.model_dump(mode="json", exclude_defaults=True) | {"schema_version": 1}])

    def _append(self, name: str, lines: Sequence[dict[str, Any]]) -> None:
        data = b"".join((json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode() for line in lines)
        with (self.folder / name).open("a+b", buffering=0) as file:
            # Other processes wait for their turn.
            fcntl.flock(file, fcntl.LOCK_EX)
            append_synced(file, data)
