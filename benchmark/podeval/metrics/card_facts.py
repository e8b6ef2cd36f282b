"""What a metric's card says beyond its declaration: values from papers, how to cite it, an example's output."""

import csv
import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.hub_sources import locate_hub_source
from podeval.metrics.declaration import Metric

CURATOR = "The maintainers of podeval (https://huggingface.co/podeval); report faults in the repository's issues."

PEOPLE = frozenset({"real_pod", "real_dialogue", "real_speech", "mtalk_human"})
"""Reported rows of people, not of systems."""

EXAMPLES = Path(__file__).with_name("example_outputs.json")
"""Scores of each metric for the example below, as this version computes them; a test computes them anew."""

PAPER_VALUES = Path(__file__).with_name("paper_values.csv")
"""Figures of papers about metrics themselves, made from the transcribed tables by `studies/paper_values.py`."""


_PAM = """@inproceedings{deshmukh2024pam,
  title     = {{PAM}: Prompting Audio-Language Models for Audio Quality Assessment},
  author    = {Soham Deshmukh and Dareen Alharthi and Benjamin Elizalde and Hannes Gamper and
               Mahmoud Al Ismail and Rita Singh and Bhiksha Raj and Huaming Wang},
  booktitle = {Interspeech},
  year      = {2024},
}"""
_OWN = """@software{podeval,
  title = {podeval: the benchmark for long-form spoken audio made by machines},
  author = {{The podeval contributors}},
  license = {Apache-2.0},
}"""
_BENCHMARKS = {"PodEval": "real_pod", "LFS-Bench": "lfs_bench", "PodBench": "podbench", "MTalk-Bench": "mtalk_bench"}
PAPER_TITLES = {"podeval": "PodEval", "lfs": "LFS-Bench", "podbench": "PodBench", "pam": "PAM", "mtalk": "MTalk-Bench"}


def name_source(source: str) -> str:
    """Return `PodEval, Table 9` of a paper's id and its table, `podeval, Table 9`; any other source as it is."""
    paper, comma, table = source.partition(", ")
    return f"{PAPER_TITLES.get(paper, paper)}{comma}{table}"


def cite(metric: Metric) -> str:
    """Return the BibTeX of what a metric is from; podeval's own for a metric that no paper has."""
    entries = [benchmarks.get(benchmark).citation for title, benchmark in _BENCHMARKS.items() if title in metric.paper]
    entries += [_PAM] if metric.paper == "PAM" else []
    return "\n\n".join(entries or [_OWN])


def list_places(metric: Metric) -> list[tuple[str, str]]:
    """List the benchmarks that measure a metric, by title, each with the track on which it does."""
    return [
        (benchmark.title, track.name)
        for benchmark in benchmarks.find_all().values()
        for track in benchmark.tracks
        if any(use.name == metric.name for use in benchmark.metrics(track.name))
    ]


def list_paper_values(metric: Metric) -> list[tuple[str, ...]]:
    """Return the values that papers report over all their items, a row for each table and key.

    Returns:
        The paper, the table, the conditions, the key, the number of systems, their least and greatest value with the
        systems that have them, and the values of people.
    """
    declared = {key.name for key in metric.keys}
    groups: defaultdict[tuple[str, str, str, str], list[tuple[float, str]]] = defaultdict(list)
    for system, row in _read_figures():
        if row["module"] == metric.name and row["key"] in declared and not row["breakdown"]:
            groups[row["paper"], row["table"], row["variant"], row["key"]].append((float(row["value"]), system))
    rows: list[tuple[str, ...]] = []
    for (paper, table, variant, key), values in sorted(groups.items()):
        systems = sorted(pair for pair in values if pair[1] not in PEOPLE)
        people = sorted(value for value, system in values if system in PEOPLE)
        spread = ""
        if systems:
            (low, lowest), (high, highest) = systems[0], systems[-1]
            spread = f"{low:g} ({lowest}) to {high:g} ({highest})"
        about = (PAPER_TITLES.get(paper, paper), table, variant.replace("_", " "), f"`{key}`")
        rows.append((*about, str(len(systems)), spread, ", ".join(f"{value:g}" for value in people)))
    return rows


def list_values_of_metric(metric: Metric) -> list[tuple[str, str, str]]:
    """Return what papers print of a metric itself: where, what it is, and the values as printed."""
    rows = [row for row in _read_table(PAPER_VALUES) if row["metric"] == metric.name]
    return [(f"{row['paper']}, {row['where']}", row["what"], row["values"]) for row in rows]


@cache
def _read_figures() -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Return every reported figure with the system that it is of."""
    paths = sorted(locate_hub_source("submissions").glob("*/results.csv"))
    return tuple((path.parent.name, row) for path in paths for row in _read_table(path))


def _read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def read_example_output(metric: Metric) -> Mapping[str, Any] | None:
    """Return what the example of a metric's card gives; None for a metric that has none yet.

    Returns:
        `output`, each key's value or why there is none; perhaps `of`, what was measured where it is neither the example
        nor the dialogue of the tutorials; `judge`, what the scripted judge answered; and `random`, whether random
        numbers stood in for weights that no package brings, so that the values mean nothing.
    """
    outputs: Mapping[str, Mapping[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return outputs.get(metric.name)
