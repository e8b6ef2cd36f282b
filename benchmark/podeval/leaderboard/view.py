"""What a reader looks at: one benchmark, one profile, one protocol per metric; as an address that restores it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import pandas as pd

from podeval.leaderboard.columns import Column, column, dimension_title, has_default_parameters, headlines, ordered

OVERVIEW = "overview"
PROVENANCES = ("run by us", "outputs supplied", "reported")
PROFILES = ("reference", "embedded", "paper")
Choice = tuple[str, str]
"""A label and the value it stands for."""


@dataclass(frozen=True)
class View:
    """A reader's choices; what is empty means the default.

    Attributes:
        board: `benchmark/split`.
        profile: `embedded`, `reference` or `paper`; never more than one.
        dimension: `overview`, or the dimension whose keys are shown.
        slice: "" for all items, else e.g. `category=Arts`.
        provenance: which rows by their provenance; empty for all.
        controls: whether control systems are shown.
        columns: column ids shown; empty for all.
        protocols: protocol ids chosen, for metrics that have several.
        sort: column id by which rows stand, best first.
        plot: column id of the plot.
    """

    board: str = ""
    profile: str = ""
    dimension: str = ""
    slice: str = ""
    provenance: tuple[str, ...] = ()
    controls: bool = True
    columns: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    sort: str = ""
    plot: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> View:
        """The view that `to_query` wrote; what an address leaves out or invents falls to the default later."""
        listed = {
            name: tuple(part for part in query.get(name, "").split(",") if part)
            for name in ("provenance", "columns", "protocols")
        }
        return cls(
            board=query.get("board", ""),
            profile=query.get("profile", ""),
            dimension=query.get("dimension", ""),
            slice=query.get("slice", ""),
            controls=query.get("controls", "1") != "0",
            sort=query.get("sort", ""),
            plot=query.get("plot", ""),
            **listed,
        )

    def to_query(self) -> str:
        """The query string of an address that restores this view."""
        fields = {
            "board": self.board,
            "profile": self.profile,
            "dimension": self.dimension,
            "slice": self.slice,
            "provenance": ",".join(self.provenance),
            "controls": "" if self.controls else "0",
            "columns": ",".join(self.columns),
            "protocols": ",".join(self.protocols),
            "sort": self.sort,
            "plot": self.plot,
        }
        return urlencode({name: value for name, value in fields.items() if value})


@dataclass(frozen=True)
class Choices:
    """What a reader can choose from in a view."""

    boards: tuple[Choice, ...]
    profiles: tuple[Choice, ...]
    dimensions: tuple[Choice, ...]
    slices: tuple[Choice, ...]
    provenances: tuple[Choice, ...]
    columns: tuple[Choice, ...]
    protocols: tuple[Choice, ...]


@dataclass(frozen=True)
class Settled:
    """A view in which every choice exists, what else could be chosen, and the rows and columns it shows.

    `rows` are of one profile, one slice and, per metric, one protocol. `protocols` says which, by metric.
    """

    view: View
    choices: Choices
    rows: pd.DataFrame
    columns: tuple[Column, ...]
    protocols: Mapping[str, str]


def settle(wish: View, board: pd.DataFrame) -> Settled:
    """The view closest to a wish that the results allow.

    Args:
        wish: choices, of which some may be missing or unknown.
        board: the table of `BoardRow`, not empty.
    """
    names = board["benchmark"] + "/" + board["split"]
    boards = _boards(names)
    chosen_board = _pick(wish.board, boards)
    rows = board[names.isin([chosen_board, f"{chosen_board.partition('/')[0]}/"])]
    profiles = sorted(_unique(rows["profile"]), key=_profile_place)
    profile = _pick(wish.profile, profiles)
    rows = rows[rows["profile"] == profile]
    protocols, ambiguous = choose_protocols(rows, wish.protocols)
    rows = rows[rows["protocol"] == rows["metric"].map(protocols)]

    known = ordered(
        column(*ids) for ids in rows[["metric", "key", "dimension"]].drop_duplicates().itertuples(index=False)
    )
    dimensions = list(dict.fromkeys(c.dimension for c in known))
    dimension = wish.dimension if wish.dimension in dimensions else OVERVIEW
    available = headlines(known) if dimension == OVERVIEW else [c for c in known if c.dimension == dimension]
    ids = [c.id for c in available]
    columns = tuple(c for c in available if c.id in wish.columns) or tuple(available)

    slices = sorted(_unique(rows["slice"]))
    chosen_slice = wish.slice if wish.slice in slices else ""
    provenances = [name for name in PROVENANCES if name in set(rows["provenance"])]
    provenance = tuple(name for name in provenances if name in wish.provenance)
    rows = rows[rows["slice"] == chosen_slice]
    if provenance:
        rows = rows[rows["provenance"].isin(provenance)]
    if not wish.controls:
        rows = rows[rows["system_kind"] != "control"]

    shown = [c.id for c in columns]
    view = replace(
        wish,
        board=chosen_board,
        profile=profile,
        dimension=dimension,
        slice=chosen_slice,
        provenance=provenance if len(provenance) < len(provenances) else (),
        columns=tuple(shown) if len(shown) < len(ids) else (),
        protocols=tuple(protocols[m] for m in ambiguous if protocols[m] in wish.protocols),
        sort=_pick(wish.sort, shown),
        plot=_pick(wish.plot, shown),
    )
    choices = Choices(
        boards=tuple((name.replace("/", " · ").strip(" ·"), name) for name in boards),
        profiles=tuple((name, name) for name in profiles),
        dimensions=(("Overview", OVERVIEW), *((dimension_title(d), d) for d in dimensions)),
        slices=tuple((name.replace("=", ": ") or "all items", name) for name in ["", *(s for s in slices if s)]),
        provenances=tuple((name, name) for name in provenances),
        columns=tuple((c.header, c.id) for c in available),
        protocols=tuple(choice for metric in ambiguous for choice in ambiguous[metric]),
    )
    return Settled(view, choices, rows, columns, protocols)


def choose_protocols(
    rows: pd.DataFrame, wanted: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, tuple[Choice, ...]]]:
    """One protocol per metric, and the choices where a metric has several.

    The last wanted one counts; without a wish, one with the metric's default parameters before others, then the one
    most systems have, then the newest.
    """
    systems: dict[tuple[str, str], set[str]] = {}
    newest: dict[tuple[str, str], str] = {}
    content: dict[tuple[str, str], str] = {}
    needed = ("metric", "protocol", "system", "created", "protocol_json")
    for metric, protocol, system, created, text in zip(*(rows[name].astype(str) for name in needed), strict=True):
        place = (metric, protocol)
        systems.setdefault(place, set()).add(system)
        newest[place] = max(created, newest.get(place, ""))
        content[place] = text

    def preference(place: tuple[str, str]) -> tuple[bool, int, str]:
        default = has_default_parameters(place[0], _parameters(content[place]))
        return (default, len(systems[place]), newest[place])

    chosen: dict[str, str] = {}
    ambiguous: dict[str, tuple[Choice, ...]] = {}
    for metric in sorted({metric for metric, _ in systems}):
        found = sorted((place for place in systems if place[0] == metric), key=preference, reverse=True)
        ids = [protocol for _, protocol in found]
        wishes = [protocol for protocol in wanted if protocol in ids]
        chosen[metric] = wishes[-1] if wishes else ids[0]
        if len(ids) > 1:
            ambiguous[metric] = tuple((protocol_label(place[1], content[place]), place[1]) for place in found)
    return chosen, ambiguous


def protocol_label(protocol: str, content: str) -> str:
    """A protocol in a few words: its metric, its parameters, its id."""
    parameters = _parameters(content)
    said = ", ".join(f"{name}={value}" for name, value in parameters.items())
    metric = protocol.partition("@")[0]
    return f"{metric}: {said} — {protocol}" if said else protocol


def _parameters(content: str) -> dict[str, object]:
    try:
        parameters = json.loads(content).get("parameters")
    except (ValueError, AttributeError):
        return {}
    return parameters if isinstance(parameters, dict) else {}


def _boards(names: pd.Series[str]) -> list[str]:
    """`benchmark/split` of every split; figures of a whole benchmark (no split) stand on the boards of its splits."""
    found = _unique(names)
    with_splits = {name.partition("/")[0] for name in found if not name.endswith("/")}
    return [name for name in found if not name.endswith("/") or name[:-1] not in with_splits]


def _unique(values: pd.Series[str]) -> list[str]:
    return [str(value) for value in dict.fromkeys(values)]


def _pick(wish: str, known: list[str]) -> str:
    return wish if wish in known else (known[0] if known else "")


def _profile_place(profile: str) -> tuple[int, str]:
    return (PROFILES.index(profile) if profile in PROFILES else len(PROFILES), profile)
