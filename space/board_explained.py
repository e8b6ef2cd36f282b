"""What stands behind the head of a column: what it is, which way is better, who reaches what, where more is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from board_words import Words

from podeval.leaderboard.columns import Column
from podeval.leaderboard.explanations import explain
from podeval.metrics.units import translate_unit


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
