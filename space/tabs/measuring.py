"""What both tabs that measure share: metrics that need no judge and no download, and their numbers as rows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import gradio as gr
from tab_parts import answer_part, render_folded_table

from podeval.board.columns import get_column
from podeval.board.table import choose_decimals, format_value, to_number
from podeval.measuring.compute import compute
from podeval.measuring.inputs import MetricInputs
from podeval.measuring.standing import choose_word, format_reach
from podeval.metrics import catalogue
from podeval.metrics.declaration import Key, Metric
from podeval.metrics.description import find_score_part, format_range
from podeval.metrics.reasons import translate_reason, translate_unit
from podeval.text.message_catalogue import FIRST

HEADERS = ("metric", "key", "value", "unit", "beside", "people", "systems", "range", "direction", "reason")
"""Heads of the table of values, by their names in the texts."""
MARKS = {"low": "▼", "usual": "●", "high": "▲"}

SINGLE: dict[str, Any] = {"concurrency_limit": 1, "api_visibility": "private"}
"""One recording and one script at a time, whoever asks: the board and its votes share the machine."""


def list_offered(part: str) -> list[Metric]:
    """Metrics of the embedded profile that what is given in a part of the tab suffices for."""
    return [metric for metric in catalogue.load_all_metrics() if find_score_part(metric) == part]


def name_metric(metric: Metric, language: str) -> str:
    """A metric's name as a language's readers know it."""
    if language == FIRST:
        return metric.title
    return get_column(metric.name, metric.headline.name, metric.dimension).title_in(language)


def choose_metrics(part: str, label: str, language: str) -> gr.CheckboxGroup:
    """The component that offers the metrics of a part; links to the tab choose one by its element id.

    Args:
        part: the part of the tab.
        label: the label of the component.
        language: the language of the names.
    """
    choices = [(name_metric(metric, language), metric.name) for metric in list_offered(part)]
    value = [name for _, name in choices]
    return gr.CheckboxGroup(choices, value=value, label=label, elem_id=f"score-{part}-metrics")


def measure_item(name: str, inputs: MetricInputs) -> tuple[Metric, dict[str, Any]]:
    """One metric of one item, and the whole result."""
    metric = catalogue.get(name)
    selected = inputs.select(metric)
    return metric, compute(metric, [selected], input_names=tuple(selected))


def list_rows(metric: Metric, result: dict[str, Any], texts: dict[str, Any], language: str) -> list[tuple[Any, ...]]:
    """The rows of a metric's result under `HEADERS`.

    Args:
        metric: the metric that was measured.
        result: the result of one item.
        texts: the texts of all pages, in the language.
        language: the language of the rows.
    """
    (item,) = result["items"]
    words = texts["score"]
    reason = translate_reason(item.get("unscored", ""), texts["board"]["causes"])
    return [
        (
            name_metric(metric, language),
            key.name,
            _text(item.get(key.name)),
            translate_unit(key.unit, language),
            _stand(key, item.get(key.name), words["words_beside"]),
            *format_reach(key),
            format_range(key),
            words["better"].get(key.better, key.better),
            reason,
        )
        for key in metric.keys
    ]


def render_values_table(rows: Sequence[tuple[Any, ...]], texts: dict[str, Any]) -> str:
    """Rows under `HEADERS` as HTML; nothing where there are none."""
    return render_folded_table(texts["values"], [str(texts[name]) for name in HEADERS], rows, "")


def place_of_problem(name: str) -> gr.HTML:
    """Where it is said why nothing was measured, and stays until the next try."""
    return answer_part(name, "alert")


def render_problem(sentence: str) -> str:
    """A sentence as the place shows it."""
    return f'<p class="error">{escape(sentence)}</p>' if sentence else ""


def _stand(key: Key, value: Any, words: dict[str, Any]) -> str:
    """How a value stands to what people and good systems reach, as a word and a mark; empty where nobody knows."""
    word = choose_word(key, to_number(value))
    return f"{MARKS[word]} {words[word]}" if word else ""


def _text(value: Any) -> str:
    """A value as the board writes it; empty where there is none."""
    number = to_number(value)
    return "" if number is None else format_value(number, None, None, choose_decimals([number]))
