"""A benchmark of metrics: compare any set of metrics with people's judgement of the same outputs.

For each key of a metric and each human scale, SRCC, PLCC and KRCC are computed over individual outputs and over the
means of the systems, with signs set so that a positive value means agreement. Intervals are over systems, because a
metric is meant for systems that have not been rated. For correlations over outputs, the interval comes from a bootstrap
of systems (`stats.clustered_correlations`); for correlations over means, it comes from Fisher's z, because each system
is then one point, and a bootstrap of six points often draws only two or three of them.

Further figures are the correlation that the best of an equal number of keys reaches by chance
(`agreement.compare_all`); the listeners' own agreement, which a metric cannot be expected to exceed; the correlation
that remains after the influence of the recordings' loudness, bandwidth or length is removed (partial rank correlation);
and, for choices between two outputs, the share of choices that a key orders as people do.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from podeval.errors import BadInput
from podeval.measuring.inputs import read_request
from podeval.stats.agreement import Estimate, format_estimate, krcc, plcc, srcc
from podeval.stats.clustered_correlations import correlate_by_cluster, correlate_partially
from podeval.stats.mushra_scores import HIGH, LOW, Mark
from podeval.validation.agreement import (
    KeyValues,
    Validity,
    average_by_system,
    compare_all,
    compare_within,
    correlate_without_each,
    group_by_measure,
    to_badness,
)
from podeval.validation.human_scores import NOTHING, average_figures, describe_marks
from podeval.validation.output_values import CONTROLS, Values, list_key_values, measure_recordings, read_values
from podeval.validation.raters import AnalysisLine, analyse_votes
from podeval.validation.rating_files import Output, Preference, RatingFile

MARKS = {"higher": "", "lower": " (turned)", "in range": " (folded)"}
"""Words that describe how a key's values are changed so that higher is better."""


@dataclass(frozen=True)
class KeyAgreement(Validity):
    """Agreement of a key with a human scale; intervals are over systems, except for that of `within`, which is over
    items.

    Attributes:
        systems_plcc: PLCC over the systems' means.
        systems_krcc: KRCC over the systems' means.
        partial: SRCC over outputs without the influence of a control, by the control's name, or without that of all
            controls (`all`).
        each_system: the mean of the key, and SRCC and PLCC over the outputs, by system.
    """

    systems_plcc: Estimate = NOTHING
    systems_krcc: Estimate = NOTHING
    partial: Mapping[str, Estimate] = field(default_factory=dict)
    each_system: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class PairAgreement:
    """Share of choices between two outputs that a key orders as people do; people's ties are left out, and the key's
    ties count half.

    Attributes:
        accuracy: the share, with an interval over items, or over pairs of systems if items are not named.
        listeners: share of choices that agree with the majority of the other choices for the same two outputs; this is
            the ceiling.
        keys: number of keys that were compared.
    """

    metric: str
    key: str
    protocol: str
    human: str
    better: str
    accuracy: Estimate
    listeners: Estimate
    keys: int = 1


@dataclass(frozen=True)
class BenchmarkReport:
    """The findings on metrics and on people's ratings.

    Attributes:
        agreements: the agreement of each key with each human scale.
        pairs: the agreement of each key with each file of choices.
        lines: findings on the ratings themselves.
        notes: sentences about omitted and unmeasured parts.
    """

    agreements: tuple[KeyAgreement, ...]
    pairs: tuple[PairAgreement, ...]
    lines: tuple[AnalysisLine, ...]
    notes: tuple[str, ...]


def compare_with_ratings(
    files: Sequence[RatingFile],
    tables: Sequence[Path],
    audio: Path | None,
    metrics: Sequence[str] = (),
    settings: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> BenchmarkReport:
    """Compare metrics with the ratings in files, using values from tables and from recordings.

    Args:
        files: the ratings.
        tables: files with values of metrics for the rated outputs.
        audio: folder with recordings to measure; None if there are none.
        metrics: names of metrics, or of keys as `metric.key`; empty for all.
        settings: parameters of the measurement, as `METRIC.PARAMETER=VALUE`.
        options: profile and `allow_upsampling` of the measurement.

    Raises:
        BadInput: a table or a metric does not fit; the message says what to do.
    """
    measures = group_by_measure({file.name: file.marks for file in files if file.marks})
    choices = {file.name: file.preferences for file in files if file.preferences}
    outputs = {output: name for file in files for output, name in file.recordings.items()}
    outputs = {(m.stimulus, m.page): "" for file in files for m in file.marks if m.page} | outputs
    voted = {(s, one.item): "" for file in files for one in file.preferences for s in (one.first, one.second)}
    outputs = {output: name for output, name in (voted | outputs).items() if output[1]}
    systems = {system for system, item in voted if not item}
    systems |= {mark.stimulus for file in files for mark in file.marks if not mark.page}
    notes = [f"{file.name}: {note}" for file in files for note in file.notes]
    values: dict[str, Values] = {str(path): read_values(path, outputs, systems) for path in tables}
    if audio:
        names = list(dict.fromkeys(name.partition(".")[0] for name in metrics))
        request = read_request(metrics=names, parameters=_parse_settings(settings), **(options or {}))
        values[str(audio)], why = measure_recordings(audio, outputs, systems, request)
        notes += why
    keys: list[KeyValues] = []
    controls: Values = defaultdict(dict)
    for source, of_source in values.items():
        more, why = list_key_values(of_source, source, metrics)
        keys += more
        notes += why
        for control in CONTROLS:
            controls[control] |= of_source.get(control, {})
    lines = describe_marks(measures)
    for file in files:
        lines += analyse_votes(file.name, file.votes) if file.votes else []
    agreements, pairs = benchmark_metrics(keys, measures, controls), compare_preferences(keys, choices)
    return BenchmarkReport(tuple(agreements), tuple(pairs), tuple(lines), tuple(notes))


def _parse_settings(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    parameters: dict[str, dict[str, str]] = defaultdict(dict)
    for setting in settings:
        name, sign, value = setting.partition("=")
        metric, _, parameter = name.strip().partition(".")
        if not sign or not parameter:
            raise BadInput(f"--set takes METRIC.PARAMETER=VALUE, such as pam.variant=pcc, not {setting!r}")
        parameters[metric][parameter] = value.strip()
    return parameters


def benchmark_metrics(
    keys: Iterable[KeyValues], measures: Mapping[str, Sequence[Mark]], controls: Values
) -> list[KeyAgreement]:
    """Compare every key with every human scale, the strongest first.

    Args:
        keys: metrics' keys with their values.
        measures: people's marks by scale; a mark without a page applies to a system as a whole, that is, to all its
            outputs.
        controls: the properties of recordings whose influence is removed, by their names in `CONTROLS`.
    """
    keys = list(keys)
    outputs = sorted({output for *_, values in keys for output in values})
    human = {measure: _expand_marks(marks, outputs) for measure, marks in measures.items()}
    rows = compare_all(keys, human, partial(_compare, controls))
    agreements = [row for row in rows if isinstance(row, KeyAgreement)]
    return sorted(agreements, key=lambda row: -(row.srcc.value if row.srcc.value is not None else -2))


def _expand_marks(marks: Iterable[Mark], outputs: Sequence[Output]) -> dict[Output, float]:
    """Return the mean mark of each output except anchors; a mark of a whole system applies to each of its outputs."""
    of_output: dict[Output, list[float]] = defaultdict(list)
    for mark in marks:
        if not mark.page:
            of_output |= {output: [mark.value] for output in outputs if output[0] == mark.stimulus}
        elif mark.stimulus not in (HIGH, LOW):
            of_output[mark.stimulus, mark.page].append(mark.value)
    return {output: fmean(values) for output, values in of_output.items()}


def _compare(controls: Values, of: KeyValues, measure: str, scores: Mapping[Output, float]) -> KeyAgreement:
    metric, protocol, key, values = of
    turned = {output: to_badness(key, values[output]) for output in scores}
    by_system, liked = average_by_system(turned), average_by_system(scores)
    means = [[of_system[name] for name in by_system] for of_system in (by_system, liked)]
    outputs, ours, theirs = list(scores), list(turned.values()), list(scores.values())
    systems, items = zip(*outputs, strict=True)
    each_system = {}
    for name in by_system:
        mine, others = ([v for (system, _), v in side.items() if system == name] for side in (turned, scores))
        each_system[name] = {
            "mean": None if key.better == "in range" else fmean(mine) * (-1 if key.better == "lower" else 1),
            "srcc": srcc(mine, others).value,
            "plcc": plcc(mine, others).value,
        }
    return KeyAgreement(
        metric,
        key.name,
        protocol,
        measure,
        key.better,
        *correlate_by_cluster(ours, theirs, systems),
        srcc(*means),
        correlate_without_each(by_system, liked),
        within=compare_within(turned, scores) if len(set(items)) < len(items) else None,
        systems_plcc=plcc(*means),
        systems_krcc=krcc(*means),
        partial=_remove_controls(outputs, ours, theirs, controls, f"{metric}.{key.name}"),
        each_system=each_system,
    )


def _remove_controls(
    outputs: Sequence[Output], ours: Sequence[float], theirs: Sequence[float], controls: Values, name: str
) -> dict[str, Estimate]:
    """Return the SRCC without the influence of each control other than the key itself, and without that of all
    controls.

    Outputs that lack a value of a control, and controls that do not vary, are omitted.
    """
    rows = [
        (mine, liked, *(controls.get(control, {}).get(output) for control in CONTROLS), output[0])
        for output, mine, liked in zip(outputs, ours, theirs, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["ours", "theirs", *CONTROLS, "system"])
    usable = [one for one in CONTROLS if one != name and table[one].nunique() > 1]
    sets = {one: [one] for one in usable} | ({"all": usable} if len(usable) > 1 else {})
    partials = {}
    for label, columns in sets.items():
        part = table.dropna(subset=columns)
        mine, liked, systems = (part[column].tolist() for column in ("ours", "theirs", "system"))
        partials[label] = correlate_partially(mine, liked, [part[one].tolist() for one in columns], systems)
    return partials


def compare_preferences(keys: Iterable[KeyValues], choices: Mapping[str, Sequence[Preference]]) -> list[PairAgreement]:
    """Return the share of choices that each key orders as people do, highest first.

    A choice on an item is compared with the values of the two outputs; a choice without an item is compared with the
    means of the two systems.

    Args:
        keys: metrics' keys with their values.
        choices: choices, by the name of their file.
    """
    agreements = []
    ceilings = {human: _agree_with_majority(of_file) for human, of_file in choices.items()}
    for metric, protocol, key, values in keys:
        means = {(system, ""): mean for system, mean in average_by_system(values).items()}
        for human, of_file in choices.items():
            shares, clusters = [], []
            for one in of_file:
                first, second = ((values if one.item else means).get((s, one.item)) for s in (one.first, one.second))
                if one.choice and first is not None and second is not None:
                    ahead = np.sign(to_badness(key, first) - to_badness(key, second))
                    shares.append(float((1 + ahead * one.choice) / 2))
                    clusters.append(one.item or frozenset((one.first, one.second)))
            if shares:
                share = average_figures(shares, clusters)
                agreements.append(PairAgreement(metric, key.name, protocol, human, key.better, share, ceilings[human]))
    counts = {human: sum(row.human == human for row in agreements) for human in choices}
    rows = [replace(row, keys=counts[row.human]) for row in agreements]
    return sorted(rows, key=lambda row: -(row.accuracy.value or 0.0))


def _agree_with_majority(choices: Sequence[Preference]) -> Estimate:
    """Return the share of choices that agree with most other choices between the same outputs; ties count half."""
    groups: dict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
    for one in choices:
        if one.rater and one.choice:
            sign = one.choice if one.first < one.second else -one.choice
            groups[one.item, frozenset((one.first, one.second))].append(sign)
    votes = [(pair, sign, sum(signs) - sign) for pair, signs in groups.items() if len(signs) > 1 for sign in signs]
    shares = [float(1 + sign * np.sign(others)) / 2 for _, sign, others in votes]
    return average_figures(shares, [pair for pair, *_ in votes])


def tabulate_agreements(rows: Sequence[KeyAgreement], pairs: Sequence[PairAgreement]) -> list[str]:
    """Return Markdown tables of agreements: one for each human scale, with the controls, and one for choices."""
    lines = []
    for human in dict.fromkeys(row.human for row in rows):
        of_human = [row for row in rows if row.human == human]
        controls = list(dict.fromkeys(name for row in of_human for name in row.partial))
        head = ["key", "n", "SRCC", "PLCC", "KRCC", "systems", "SRCC of systems", "PLCC", "KRCC", "by chance"]
        head += ["SRCC within an item", *(f"without {name}" for name in controls)]
        cells = [
            [
                f"{row.metric}.{row.key}{MARKS[row.better]}",
                str(row.srcc.count),
                *map(format_estimate, (row.srcc, row.plcc, row.krcc)),
                str(row.systems.count),
                *map(format_estimate, (row.systems, row.systems_plcc, row.systems_krcc)),
                "–" if row.chance is None else f"{100 * row.chance:.1f} %",
                format_estimate(row.within or NOTHING),
                *(format_estimate(row.partial.get(name, NOTHING)) for name in controls),
            ]
            for row in of_human
        ]
        lines += ["", f"**{human}**", "", *_write_table(head, cells)]
    cells = [
        [
            f"{one.metric}.{one.key}{MARKS[one.better]}",
            one.human,
            str(one.accuracy.count),
            *map(format_estimate, (one.accuracy, one.listeners)),
        ]
        for one in pairs
    ]
    return lines + (["", *_write_table(["key", "choices", "n", "same order", "listeners"], cells)] if cells else [])


def tabulate_systems(rows: Sequence[KeyAgreement]) -> list[str]:
    """Return a Markdown table of the figures within each system: the mean of the key, SRCC and PLCC."""
    cells = [
        [row.human, f"{row.metric}.{row.key}", system, *("–" if v is None else f"{v:.4g}" for v in figures.values())]
        for row in rows
        for system, figures in row.each_system.items()
    ]
    return ["", *_write_table(["human", "key", "system", "mean", "SRCC", "PLCC"], cells)] if cells else []


def _write_table(head: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """Return a table in Markdown whose columns are as wide as their longest cell."""
    widths = [max(len(row[column]) for row in (head, *cells)) for column in range(len(head))]
    rows = [head, ["-" * width for width in widths], *cells]
    return [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows]
