"""The board's names in one language, and the help texts for column headers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podeval import benchmarks
from podeval.board.columns import EVERYTHING, OVERVIEW, Column, find_declaration, write_dimension_title
from podeval.board.system_info import NOT_STATED
from podeval.metrics import Key, catalogue
from podeval.metrics.description import format_range
from podeval.metrics.standing import describe_human_agreement, format_reach, format_span, translate
from podeval.runs import reliability


@dataclass(frozen=True)
class Words:
    """The texts of one language, with the names of dimensions, columns and groups."""

    texts: Mapping[str, Any]
    language: str

    def __getitem__(self, name: str) -> Any:
        return self.texts[name]

    def dimension(self, name: str) -> str:
        """Return the name of a dimension such as `speech.quality`, of a group of dimensions, the overview, or all."""
        return str(self[name]) if name in (OVERVIEW, EVERYTHING) else write_dimension_title(name, self.language)

    def title(self, column: Column) -> str:
        """Return only the name of a column."""
        return column.title_in(self.language)

    def profile(self, name: str) -> str:
        """Return the name of a profile, with an explanation."""
        return str(self["profiles"].get(name, name))

    def spoken(self, name: str) -> str:
        """Describe how outputs were generated: in one piece, turn by turn, or in chunks that are then joined."""
        return str(self["spoken"].get(name, self["not_stated"]))

    def slice(self, name: str) -> str:
        """Return the name of a slice: `Scenario: news` for `scenario=news`, or the name for all items."""
        breakdown, _, group = name.partition("=")
        title = self["breakdowns"].get(breakdown, breakdown.replace("_", " "))
        return f"{title}: {self['groups'].get(group, group.replace('_', ' '))}" if name else str(self["all_items"])

    def fact(self, fact: str, value: str) -> str:
        """Return the text for one value of a fact."""
        if value == NOT_STATED:
            return str(self.texts["not_stated"])
        section = {"openness": "openness", "size": "sizes", "language": "groups"}.get(fact)
        return str(self.texts[section].get(value, value)) if section else value


def write_board_name(name: str) -> str:
    """Return the display name of a board or place: `Real-Pod · voice · embedded` for `real_pod/voice/embedded`."""
    benchmark, *rest = name.replace("/", " · ").split(" · ")
    record = benchmarks.find_all().get(benchmark)
    return " · ".join(filter(None, (record.title if record else benchmark, *rest)))


def explain_column(column: Column, words: Words) -> dict[str, Any]:
    """Describe one column: its `id` and `title`, sentences, named facts, and the address of its metric's `card`."""
    declared, names = explain(column, words.language), words["explained"]
    better, ideal = str(names["directions"][column.better]), declared["ideal"]
    facts = {
        "better": better.format(ideal) if ideal else better.replace(" {}", "").replace("{}", ""),
        "range": declared["range"] and f"{declared['range']} {translate(column.unit, words.language)}".strip(),
        "people": declared["people"],
        "systems": declared["systems"],
        "source": declared["source"] or declared["unreached"],
        "agreement": declared["agreement"],
    }
    return {
        "id": column.id,
        "title": words.title(column),
        "sentences": tuple(dict.fromkeys(filter(None, (declared["about"], declared["of_metric"])))),
        "facts": [(names[name], text) for name, text in facts.items() if text],
        "card": f"/metrics/{declared['metric']}" if declared["metric"] else "",
    }


def explain(of: Column, language: str = "en") -> dict[str, str]:
    """Return the facts about a column in one of the site's languages; missing texts are empty.

    The keys are `metric` (the metric that has a card), `about` (the meaning of the value), `of_metric` (the purpose of
    the metric), `range`, `ideal` (the ideal range, if there is one), `people` and `systems` (the values that people and
    systems reach), `source` (the origin of these values), `unreached` (the reason why there are no comparable values),
    and `agreement` (the metric's agreement with people, or a note that the agreement was never measured).
    """
    key, declared = find_declared_key(of, language), find_declaration(of.metric)
    metric = declared if declared and declared.name in catalogue.NAMES else None
    reach = key.reach if key else None
    return {
        "metric": metric.name if metric else "",
        "about": _as_sentence(translate(key.about, language) if key else "", language),
        "of_metric": _as_sentence(translate(metric.purpose, language), language) if metric else "",
        "range": format_range(key, language) if key else "",
        "ideal": format_span(key, key.ideal) if key else "",
        **dict(zip(("people", "systems"), format_reach(key) if key else ("", ""), strict=True)),
        "source": translate(reach.source, language) if reach else "",
        "unreached": translate(key.unreached, language) if key else "",
        "agreement": describe_human_agreement(metric, key, language) if metric and key else "",
    }


def find_declared_key(of: Column, language: str = "en") -> Key | None:
    """Return the declaration of a column's key; None for a figure that is only reported by a paper."""
    if of.metric == reliability.NAME:
        return reliability.declare(of.key, language)
    declared = find_declaration(of.metric)
    return next((key for key in declared.keys if key.name == of.key), None) if declared else None


def _as_sentence(text: str, language: str) -> str:
    text = text.strip()
    if not text:
        return ""
    stop = "。" if language == "zh" else "."
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "。", "？", "）。")) else stop)
