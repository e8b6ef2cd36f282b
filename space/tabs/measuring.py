"""What both tabs that measure share: metrics that need no judge and no download, and their numbers as rows."""

from __future__ import annotations

from html import escape
from typing import Any

import gradio as gr
from components.part import answer_part

from podeval.leaderboard.table import decimals, number_or_none, value_text
from podeval.metrics import catalogue
from podeval.metrics.compute import compute
from podeval.metrics.declaration import Key, Metric
from podeval.metrics.description import find_score_part, range_text
from podeval.metrics.inputs import MetricInputs
from podeval.scoring.standing import reach_text, word_for

HEADERS = (
    "Metric", "Key", "Value", "Unit", "Beside people", "People reach", "Good systems reach", "Range", "Better",
    "Reason",
)  # fmt: skip
_MARKS = {"low": "▼", "usual": "●", "high": "▲"}
WIDTHS = (160, 160, 110, 90, 130, 130, 160, 130, 120, 320)
"""Pixels: so wide that no word breaks; on a phone the table scrolls."""

SINGLE: dict[str, Any] = {"concurrency_limit": 1, "api_visibility": "private"}
"""One recording and one script at a time, whoever asks: the board and its votes share the machine."""


def list_offered(part: str) -> list[Metric]:
    """Metrics of the embedded profile that what is given in a part of the tab suffices for."""
    return [metric for metric in catalogue.all_metrics() if find_score_part(metric) == part]


def choose_metrics(part: str, label: str = "Metrics") -> gr.CheckboxGroup:
    """The component that offers the metrics of a part; links to the tab choose one by its element id.

    Args:
        part: of the tab.
        label: of the component.
    """
    choices = [(metric.title, metric.name) for metric in list_offered(part)]
    value = [name for _, name in choices]
    return gr.CheckboxGroup(choices, value=value, label=label, elem_id=f"score-{part}-metrics")


def measure_item(name: str, inputs: MetricInputs) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """One metric of one item: its rows under `HEADERS`, and the whole result."""
    metric = catalogue.get(name)
    selected = inputs.select(metric)
    result = compute(metric, [selected], input_names=tuple(selected))
    (item,) = result["items"]
    why = item.get("unscored", "")
    rows = [
        (
            metric.title,
            key.name,
            _text(item.get(key.name)),
            key.unit,
            _stand(key, item.get(key.name)),
            *reach_text(key),
            range_text(key),
            key.better,
            why,
        )
        for key in metric.keys
    ]
    return rows, result


def table_of_values() -> gr.Dataframe:
    """The component for rows under `HEADERS`."""
    return gr.Dataframe(headers=list(HEADERS), column_widths=list(WIDTHS), label="Values", interactive=False, wrap=True)


def place_of_problem(name: str) -> gr.HTML:
    """Where it is said why nothing was measured, and stays until the next try."""
    return answer_part(name, "alert")


def problem(sentence: str) -> str:
    """A sentence as the place shows it."""
    return f'<p class="error">{escape(sentence)}</p>' if sentence else ""


def _stand(key: Key, value: Any) -> str:
    """How a value stands to what people and good systems reach, as a word and a mark; empty where nobody knows."""
    number = number_or_none(value)
    word = word_for(key, number)
    return f"{_MARKS[word]} {word}" if word else ""


def _text(value: Any) -> str:
    """A value as the board writes it; empty where there is none."""
    number = number_or_none(value)
    return "" if number is None else value_text(number, None, None, decimals([number]))
