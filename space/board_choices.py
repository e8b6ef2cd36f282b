"""What a reader of the board can choose from, in the reader's language; the values of the leaderboard tab's fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl

from board_words import Words, write_board_name

from podeval.leaderboard import pictures
from podeval.leaderboard.view import FACTS, BoardView, ResolvedView

Pair = tuple[str, str]
"""What is shown, and the value that it stands for."""

PLACES = ("board", "profile")
"""Fields whose change leaves no column chosen: those chosen before were of other figures."""


@dataclass(frozen=True)
class Field:
    """One field of the tab: what can be chosen, what is, and whether there is anything to choose."""

    choices: list[Pair]
    value: Any
    visible: bool = True


def describe_fields(settled: ResolvedView, words: Words) -> dict[str, Field]:
    """Every field of the tab by the name of the view's attribute that it sets; `hide` stands for `controls`."""
    view, choices = settled.view, settled.choices
    counted = {
        name: [(f"{words.fact(name, value)} ({number})", value) for value, number in choices.facts[name]]
        for name in FACTS
    }
    judges = [(str(words["any_judge"]), ""), *choices.judges]
    provenances = [(str(words["provenances"].get(value, value)), value) for _, value in choices.provenances]
    slices = [(words.slice(value), value) for _, value in choices.slices]
    drawn = [(words.column(column), column.id) for column in settled.columns]
    columns = [(words.column(column), column.id) for column in choices.columns]
    plots = pictures.list_offered_plots(settled)
    plot = view.plot if view.plot in plots else next(iter(plots), "")
    return {
        "board": Field([(write_board_name(label), value) for label, value in choices.boards], view.board),
        "profile": Field([(words["profiles"].get(v, v), v) for _, v in choices.profiles], view.profile),
        "slice": Field(slices, view.slice, len(slices) > 1),
        "q": Field([], view.q),
        **{name: Field(counted[name], list(getattr(view, name)), len(counted[name]) > 1) for name in FACTS},
        "provenance": Field(provenances, list(view.provenance), len(provenances) > 1),
        "hide": Field([], not view.controls),
        "judge": Field(judges, view.judge, len(judges) > 2),
        "protocols": Field(list(choices.protocols), list(view.protocols), bool(choices.protocols)),
        "columns": Field(columns, list(view.columns)),
        "plot": Field([(str(words[f"plot_{name}"]), name) for name in plots], plot, len(plots) > 1),
        "of": Field(drawn, view.of, plot != "radar" and len(drawn) > 1),
    }


def read_view(query: str) -> BoardView:
    """The view of an address's query string, which names what has several values once for each or with commas."""
    values: dict[str, str] = {}
    for name, value in parse_qsl(query.removeprefix("?")[:20_000]):
        values[name] = f"{values[name]},{value}" if name in values else value
    return BoardView.from_query(values)


def choose(current: BoardView, given: Mapping[str, Any]) -> BoardView:
    """The view that a reader wants who saw one and changed fields of the tab.

    Args:
        current: the view of the page's address, which has what no field says: order, pins, number of rows.
        given: values by name of field, as they were sent; what has another type counts as empty.
    """
    texts = {name: _as_text(value) for name, value in given.items() if name != "hide"}
    texts["controls"] = "0" if given.get("hide") is True else ""
    wish = BoardView.from_query(texts)
    field_names = {field.name for field in fields(BoardView)} & texts.keys()
    chosen = replace(current, **{name: getattr(wish, name) for name in field_names})
    moved = any(getattr(chosen, name) != getattr(current, name) for name in PLACES if getattr(current, name))
    return replace(chosen, columns=()) if moved else chosen


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
