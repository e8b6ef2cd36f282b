"""A folder of outputs that the user made: files by item id, or a manifest; whatever is there is taken, and no more.

What a manifest or a file may be: `podeval.systems.adapters.outputs`. Each output is known by the SHA-256 of its files,
so that a file which appears later is taken in, and one that changes under a finished run is noticed.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.systems.adapters.outputs import MANIFEST, ManifestLine, Supplied, resolve_inside
from podeval.systems.ask import Ask
from podeval.systems.speech import SpeechFailed

_NAMED = 12
"""Files that are named where a folder has none."""


class OwnOutputs(Supplied):
    """An `OutputMaker` that reads a folder of the user's own."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest, where there is one.

        Raises:
            BadInput: there is no such folder, or a line of its manifest is not as it should be.
        """
        if not folder.is_dir():
            raise BadInput(
                f"there is no folder {folder}; --outputs takes a folder with a file for each item, and "
                "`podeval data items` prints how they are called and what is to be in them"
            )
        super().__init__(folder)
        self.folder = folder

    @property
    def generation(self) -> dict[str, Any]:
        """How the outputs came about, as far as anybody here knows."""
        return {"system": "outputs", "kind": "outputs"}

    def find_entry(self, ask: Ask, seed: int) -> ManifestLine:
        """Find what there is for an item and a seed; beside the first, `<item>.<seed>.wav` or a line with that seed."""
        line = self.manifest.get((ask.id, seed))
        if line is not None or not seed:
            return line or super().find_entry(ask, seed)
        return super().find_entry(ask.model_copy(update={"id": f"{ask.id}.{seed}"}), 0)

    def fingerprint(self, ask: Ask, seed: int) -> str | None:
        """Return the SHA-256 of an item's files together; None where there is nothing for it yet."""
        try:
            files = _files_of(self.find_entry(ask, seed))
        except SpeechFailed:
            return None
        digest = hashlib.sha256()
        for name in files:
            try:
                digest.update(hashlib.sha256(resolve_inside(self.folder, name).read_bytes()).digest())
            except SpeechFailed:
                return None
        return digest.hexdigest() if files else None

    def require_some(self, asks: Sequence[Ask], seed: int) -> None:
        """Refuse a folder in which nothing is of these items.

        Raises:
            BadInput: says what a file should be called and what is there.
        """
        if any(self.fingerprint(ask, seed) is not None for ask in asks):
            return
        present = sorted(
            f"{path.name}{' (a link, which is not read; copy the file itself)' if path.is_symlink() else ''}"
            for path in self.folder.iterdir()
            if not path.name.startswith(".")
        )
        content = f"it holds {', '.join(present[:3])}{' …' if present[3:] else ''}" if present else "it is empty"
        files = [_name_file(ask, seed) for ask in asks[:_NAMED]]
        more = f" and {len(asks) - _NAMED} more" if len(asks) > _NAMED else ""
        what = "script" if asks[0].prompt is not None else "audio"
        raise BadInput(
            f"{self.folder} has an output for none of {len(asks)} items ({content}); name the files "
            f"{', '.join(files)}{more}, or write a {MANIFEST} with lines like "
            f'{{"item": "{asks[0].id}", "{what}": "file"}}'
        )


def _name_file(ask: Ask, seed: int) -> str:
    """Return how the file of an item's output is called; of a conversation, that of its first answer."""
    name = f"{ask.id}.{seed}" if seed else ask.id
    if ask.user:
        return f"{name}/{ask.user[0].id}.wav"
    return f"{name}.json" if ask.prompt is not None else f"{name}.wav"


def _files_of(entry: ManifestLine) -> list[str]:
    return [name for name in (entry.audio, entry.script, *entry.answers.values()) if name]
