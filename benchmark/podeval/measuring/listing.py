"""The list of metrics as Python shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, overload

from podeval.measuring.standing import format_reach

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric


@dataclass(frozen=True)
class MetricEntry:
    """One metric.

    Attributes:
        name: by which it is asked for.
        title: the field's spelling.
        about: what it says, in a sentence.
        keys: its values, each with its direction and unit.
        people: what people reach on the headline; empty where nobody knows.
        systems: what good systems reach.
        needs: its inputs.
        judged: whether it asks a judge.
    """

    name: str
    title: str
    about: str
    keys: tuple[str, ...]
    people: str
    systems: str
    needs: tuple[str, ...]
    judged: bool

    @classmethod
    def of(cls, metric: Metric) -> MetricEntry:
        """The entry of a metric, all from its declaration."""
        people, systems = format_reach(metric.headline)
        keys = tuple(f"{key.name} {key.unit_text}".strip() for key in metric.keys)
        about = metric.about.partition(": ")[2] or metric.about
        return cls(metric.name, metric.title, about, keys, people, systems, metric.inputs, metric.asks is not None)


class MetricListing(Sequence[MetricEntry]):
    """Metrics in the order of the board; prints as a table."""

    def __init__(self, entries: Sequence[MetricEntry]) -> None:
        self._entries = tuple(entries)

    @overload
    def __getitem__(self, number: int) -> MetricEntry: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[MetricEntry]: ...
    def __getitem__(self, number: int | slice) -> Any:
        """Return an entry by its number."""
        return self._entries[number]

    def __len__(self) -> int:
        """Count the metrics."""
        return len(self._entries)

    def __iter__(self) -> Iterator[MetricEntry]:
        """Go through the entries."""
        return iter(self._entries)

    def __str__(self) -> str:
        """Return the list as text."""
        return "\n".join(f"{one.name:22} {one.about}\n{'':22} {', '.join(one.keys)}" for one in self)

    def __repr__(self) -> str:
        """Return the list as text, as an interactive session shows it."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the list as a table, as a notebook shows it."""
        head = "".join(f"<th>{name}</th>" for name in ("metric", "says", "values", "people", "good systems"))
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in (e.name, e.about, ", ".join(e.keys), e.people, e.systems))
            + "</tr>"
            for e in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
