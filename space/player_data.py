"""Collect the data for the player of recordings: addresses of audio and peaks, times of turns, missing parts.

This module also lists the systems that a page shows by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from podeval.board.playable import list_parts
from podeval.board.runs_folder import RunsFolder
from podeval.board.view import BoardView, order, resolve_view
from podeval.errors import BadInput


@dataclass(frozen=True)
class PlayerSide:
    """One side of a player: a system, its name, and the path of its output."""

    system: str
    title: str
    output: str


def build_deck(
    folder: RunsFolder,
    sides: Sequence[PlayerSide],
    where: str,
    item: str,
    texts: Mapping[str, Any],
    part: int = 0,
    level: bool = False,
) -> dict[str, Any]:
    """Build the player for one item, as spoken by one or two systems.

    Args:
        folder: the folder of runs.
        sides: one or two sides.
        where: `benchmark/split/profile`.
        item: the item's id.
        texts: the texts of the page `compare`.
        part: the number of the recording in an output; if it does not exist, the nearest existing number is used.
        level: whether two recordings are played at the same loudness.
    """
    sounds = [list_parts(folder.path, side.output) for side in sides]
    count = max(map(len, sounds))
    part = min(max(part, 0), count - 1)
    decks = []
    for name, side, own_sounds in zip("ab", sides, sounds, strict=False):
        query: dict[str, Any] = {"system": side.system, "where": where, "item": item, "part": part}
        if level:
            query["beside"] = next((other.system for other in sides if other is not side), "")
        sound = own_sounds[part] if part < len(own_sounds) else None
        playable = bool(sound and sound.audio)
        decks.append(
            {
                "name": name,
                "title": side.title,
                "audio": f"/compare/audio?{urlencode(query)}" if playable else "",
                "peaks": f"/compare/peaks?{urlencode(query)}" if playable else "",
                "problem": str(texts["problems"][sound.why]).format(sound.detail) if sound and sound.why else "",
                "turns": [asdict(turn) for turn in sound.turns] if sound else [],
            }
        )
    return {
        "sides": decks,
        "first": next((side["name"] for side in decks if side["audio"]), ""),
        "parts": count,
        "part": part,
    }


def build_script_data(deck: dict[str, Any] | None, texts: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a deck for the player's script."""
    return {"texts": texts["script"], **({"sides": deck["sides"], "heard": deck["first"]} if deck else {})}


def list_leading_systems(folder: RunsFolder, count: int) -> list[str]:
    """Return the ids of the first systems on the board, without controls; there may be fewer than `count`.

    Args:
        folder: the folder of runs.
        count: maximum number of systems.
    """
    try:
        index = folder.index()
    except BadInput:
        return []
    if index.empty:
        return []
    board = max(index.boards, key=lambda name: index.measured[name])
    settled = resolve_view(BoardView(board=board, controls=False), index)
    return list(dict.fromkeys(system for system, _ in order(settled)))[:count]
