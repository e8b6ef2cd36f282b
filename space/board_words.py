"""What the board calls things, in one language, and what is behind the head of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval import benchmarks
from podeval.board.columns import Column, write_dimension_title
from podeval.board.explanations import explain
from podeval.board.system_info import NOT_STATED
from podeval.board.view import EVERYTHING, OVERVIEW
from podeval.errors import BadInput
from podeval.metrics.reasons import translate_unit


@dataclass(frozen=True)
class Words:
    """The texts of one language, with what they call dimensions, columns and groups."""

    texts: Mapping[str, Any]
    language: str

    def __getitem__(self, name: str) -> Any:
        return self.texts[name]

    def dimension(self, name: str) -> str:
        """`speech.quality` as a reader says it."""
        return write_dimension_title(name, self.language)

    def column(self, column: Column) -> str:
        """Name and direction of a column, with its unit."""
        return column.header_in(self.language)

    def title(self, column: Column) -> str:
        """The name of a column alone."""
        return column.title_in(self.language)

    def group(self, slice_: str) -> str:
        """The group of `scenario=news`, in words."""
        group = slice_.partition("=")[2]
        return str(self.texts["groups"].get(group, group.replace("_", " ")))

    def breakdown(self, name: str) -> str:
        """What a breakdown is called."""
        return str(self.texts["breakdowns"].get(name, name.replace("_", " ")))

    def slice(self, name: str) -> str:
        """`Scenario: news`, or all items."""
        return f"{self.breakdown(name.partition('=')[0])}: {self.group(name)}" if name else str(self.texts["all_items"])

    def fact(self, fact: str, value: str) -> str:
        """One value of a fact."""
        if value == NOT_STATED:
            return str(self.texts["not_stated"])
        section = {"openness": "openness", "size": "sizes", "language": "groups"}.get(fact)
        return str(self.texts[section].get(value, value)) if section else value


def write_dimension(name: str, words: Words) -> str:
    """A dimension, a group of them, the overview or all columns, as a reader says it."""
    return str(words[name]) if name in (OVERVIEW, EVERYTHING) else words.dimension(name)


def write_board_name(name: str) -> str:
    """`real_pod · voice` as `Real-Pod · voice`."""
    benchmark, _, split = name.partition(" · ")
    try:
        title = benchmarks.get(benchmark).title
    except BadInput:
        title = benchmark
    return f"{title} · {split}" if split else title


@dataclass(frozen=True)
class ExplainedHead:
    """One column in words: its name, sentences, named facts, and the address of its metric's card."""

    id: str
    title: str
    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    card: str


def explain_heads(columns: Sequence[Column], words: Words) -> list[ExplainedHead]:
    """Explain the columns of a view."""
    return [explain_column(column, words) for column in columns]


def explain_column(column: Column, words: Words) -> ExplainedHead:
    """Explain one column in a language of the site."""
    declared, names = explain(column, words.language), words["explained"]
    better = str(names["directions"][declared.better])
    facts = [
        (
            names["better"],
            better.format(declared.ideal) if declared.ideal else better.replace(" {}", "").replace("{}", ""),
        ),
        (names["range"], declared.range and f"{declared.range} {translate_unit(column.unit, words.language)}".strip()),
        (names["people"], declared.people),
        (names["systems"], declared.systems),
        (names["source"], declared.source or declared.unreached),
    ]
    sentences = tuple(dict.fromkeys(filter(None, (declared.about, declared.of_metric))))
    return ExplainedHead(
        column.id,
        words.title(column),
        sentences,
        tuple((str(name), text) for name, text in facts if text),
        f"/cards#{declared.metric}" if declared.metric else "",
    )
