"""What the board calls things, in one language, and what is behind the head of a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podeval import benchmarks
from podeval.board.columns import Column, explain, write_dimension_title
from podeval.board.system_info import NOT_STATED
from podeval.board.view import EVERYTHING, OVERVIEW
from podeval.errors import BadInput
from podeval.text.message_catalogue import translate


@dataclass(frozen=True)
class Words:
    """The texts of one language, with what they call dimensions, columns and groups."""

    texts: Mapping[str, Any]
    language: str

    def __getitem__(self, name: str) -> Any:
        return self.texts[name]

    def dimension(self, name: str) -> str:
        """A dimension such as `speech.quality`, a group of them, the overview or all columns, as a reader says it."""
        return str(self[name]) if name in (OVERVIEW, EVERYTHING) else write_dimension_title(name, self.language)

    def column(self, column: Column) -> str:
        """Name and direction of a column, with its unit."""
        return column.header_in(self.language)

    def title(self, column: Column) -> str:
        """The name of a column alone."""
        return column.title_in(self.language)

    def slice(self, name: str) -> str:
        """`Scenario: news` of `scenario=news`, or all items."""
        breakdown, _, group = name.partition("=")
        title = self["breakdowns"].get(breakdown, breakdown.replace("_", " "))
        return f"{title}: {self['groups'].get(group, group.replace('_', ' '))}" if name else str(self["all_items"])

    def fact(self, fact: str, value: str) -> str:
        """One value of a fact."""
        if value == NOT_STATED:
            return str(self.texts["not_stated"])
        section = {"openness": "openness", "size": "sizes", "language": "groups"}.get(fact)
        return str(self.texts[section].get(value, value)) if section else value


def write_board_name(name: str) -> str:
    """`real_pod · voice` as `Real-Pod · voice`."""
    benchmark, _, split = name.partition(" · ")
    try:
        title = benchmarks.get(benchmark).title
    except BadInput:
        title = benchmark
    return f"{title} · {split}" if split else title


def explain_column(column: Column, words: Words) -> dict[str, Any]:
    """One column in words: its `id` and `title`, sentences, named facts, and the address of its metric's `card`."""
    declared, names = explain(column, words.language), words["explained"]
    better, ideal = str(names["directions"][column.better]), declared["ideal"]
    facts = {
        "better": better.format(ideal) if ideal else better.replace(" {}", "").replace("{}", ""),
        "range": declared["range"] and f"{declared['range']} {translate(column.unit, words.language)}".strip(),
        "people": declared["people"],
        "systems": declared["systems"],
        "source": declared["source"] or declared["unreached"],
    }
    return {
        "id": column.id,
        "title": words.title(column),
        "sentences": tuple(dict.fromkeys(filter(None, (declared["about"], declared["of_metric"])))),
        "facts": [(names[name], text) for name, text in facts.items() if text],
        "card": f"/cards#{declared['metric']}" if declared["metric"] else "",
    }
