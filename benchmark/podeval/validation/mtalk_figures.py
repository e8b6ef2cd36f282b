"""MTalk-Bench's analyses of evaluators (figures 4 to 12), from runs judged by rubrics and logs of battles.

An evaluator of battles is a log of a judge (`podeval judge battles`) or of people; in a log of people, each voter is a
rater. An evaluator of rubrics is a judge that measured runs, or a person who marked criteria with 0 or 1. A person who
judges battles and also marks criteria is one rater if the name is the same; a model is one rater if the model and its
revision are the same.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from podeval.audio.duration import read_container_and_seconds
from podeval.errors import PodevalError
from podeval.metrics.battle_log import read_battles, read_log_record
from podeval.metrics.score import Score
from podeval.runs.run_folder import RunFolder, run_folders
from podeval.stats.agreement import format_estimate, srcc
from podeval.stats.battles import SKIPPED, Battles, elo, tally
from podeval.stats.bias import wilson
from podeval.stats.mushra_scores import Mark as PersonMark
from podeval.validation import raters
from podeval.validation.raters import AnalysisLine

AGREEING = 0.75
"""The paper calls a pseudo-agreement above this value high (appendix F.3)."""

Mark = tuple[str, str]
"""A dialogue and one of its criteria."""


@dataclass(frozen=True)
class RubricMarks:
    """The marks that a judge or a person gave for a system's dialogues: 1 or 0 by dialogue and criterion.

    `capability` contains the capability that each dialogue tests; `seconds` is the mean length of the system's answers
    in a dialogue, or None if unknown.
    """

    system: str
    judge: str
    marks: Mapping[Mark, int]
    capability: Mapping[str, str]
    seconds: float | None

    def share(self, dialogues: Collection[str] | None = None) -> float:
        """Return the share of criteria met, pooled over these dialogues or all, in percent."""
        marks = [met for (dialogue, _), met in self.marks.items() if dialogues is None or dialogue in dialogues]
        return 100 * fmean(marks)


def read_rubric_marks(runs: Path) -> list[RubricMarks]:
    """Read the marks of all MTalk-Bench runs in a folder of runs, separately for each judge."""
    rubrics: list[RubricMarks] = []
    for folder in run_folders(runs):
        marks: dict[str, dict[Mark, int]] = defaultdict(dict)
        paths = folder.path.glob("*/protocols.json") if folder.plan().benchmark == "mtalk_bench" else ()
        for profile in sorted(path.parent.name for path in paths):
            protocols = folder.protocols(profile)
            for (item, protocol), result in folder.results(profile).items():
                content = protocols.get(protocol, {})
                if content.get("metric") == "rubric" and isinstance(result, Score):
                    of_judge, criteria = content["models"].get("judge") or {}, result.notes.get("criteria", {})
                    marks[str(of_judge.get("id", ""))] |= {
                        (item, name): int(one["met"]) for name, one in criteria.items()
                    }
        if marks:
            capability = {item.id: item.properties.get("capability", "") for item in folder.items() or ()}
            system, seconds = folder.plan().system, _measure_answers(folder)
            rubrics += [RubricMarks(system, judge, met, capability, seconds) for judge, met in marks.items()]
    return rubrics


def collect_people_marks(
    tests: Mapping[str, Sequence[PersonMark]], rubrics: Sequence[RubricMarks]
) -> list[RubricMarks]:
    """Collect the marks that people gave for criteria, separately for each person and system.

    Marks belong to criteria if all marks of a test or file are 0 or 1 and name a rater and, as their scale, a
    criterion; others are skipped. The capabilities of dialogues and the lengths of answers are those of `rubrics`.
    """
    people: dict[tuple[str, str], dict[Mark, int]] = defaultdict(dict)
    for marks in tests.values():
        if all(mark.value in (0, 1) and mark.scale and mark.rater for mark in marks):
            for mark in marks:
                people[mark.rater, mark.stimulus][mark.page, mark.scale] = int(mark.value)
    capability = {dialogue: name for one in rubrics for dialogue, name in one.capability.items()}
    seconds = {one.system: one.seconds for one in rubrics}
    return [
        RubricMarks(system, rater, marks, capability, seconds.get(system)) for (rater, system), marks in people.items()
    ]


def _measure_answers(folder: RunFolder) -> float | None:
    """Return the mean number of seconds that the system spoke per dialogue; None if its audio is missing."""
    try:
        lengths = [
            sum(read_container_and_seconds(path)[1] for path in folder.audio_paths(output))
            for output in folder.readable_outputs()
        ]
    except PodevalError:
        return None
    return fmean(lengths) if any(lengths) else None


@dataclass(frozen=True)
class _Evaluator:
    """A log of battles: the votes, each with its rater, task, two systems and outcome; all battles with their Elo
    ratings; and the winner that each rater chose (None: a tie), by task and pair.
    """

    name: str
    votes: Sequence[tuple[str, str, str, str, str]]
    battles: Battles
    ratings: Mapping[str, float]
    winners: Mapping[str, Mapping[tuple[str, frozenset[str]], str | None]]

    @classmethod
    def of(cls, name: str, records: Sequence[Mapping[str, Any]]) -> "_Evaluator":
        """Read a log; a judge is one rater, and each person is a separate rater."""
        votes, battles = [], read_battles(records)
        winners: dict[str, dict[tuple[str, frozenset[str]], str | None]] = defaultdict(dict)
        for number, record in enumerate(records, 1):
            row = read_log_record(f"vote {number}", record)
            task = str(record.get("dialogue") or record.get("item") or record.get("task") or f"vote {number}")
            rater = str(record.get("judge") or (row["voter"] if "dialogue" not in record else None) or name)
            first, second, outcome = row["first"], row["second"], row["outcome"]
            votes.append((rater.partition("#")[0], task, first, second, outcome))
            if outcome != SKIPPED:
                winners[rater][task, frozenset((first, second))] = {"a": first, "b": second}.get(outcome)
        ratings = {system: row.rating for system, row in elo(battles).items()}
        return cls(name, votes, battles, ratings, winners)


def draw_figures(
    votes: Mapping[str, Sequence[Mapping[str, Any]]], rubrics: Sequence[RubricMarks]
) -> list[AnalysisLine]:
    """Return the content of figures 4 to 12, with a line for each system, pair of evaluators or share of criteria. The
    content is computed from the records of each log of battles, by the log's name, and from the marks of judges and
    people.

    Raises:
        BadInput: a record is not a battle.
    """
    evaluators = [_Evaluator.of(name, records) for name, records in votes.items()]
    by_judge: dict[str, list[RubricMarks]] = defaultdict(list)
    for one in rubrics:
        by_judge[one.judge].append(one)
    lines = [line for evaluator in evaluators for line in _of_evaluator(evaluator, by_judge)]
    lines += [line for pair in itertools.combinations(evaluators, 2) for line in _pseudo_agreement(*pair)]
    lines += [line for pair in itertools.combinations_with_replacement(evaluators, 2) for line in _common_tasks(*pair)]
    lines += [line for pair in itertools.combinations(by_judge, 2) for line in _common_criteria(by_judge, *pair)]
    for judge, systems in by_judge.items():
        lines += [
            *_rubric_gaps(judge, systems),
            *_exclusion(judge, systems, evaluators),
            *_capabilities(judge, systems),
        ]
    return sorted(lines, key=lambda line: int(line.analysis.rsplit(" ", 1)[1]))


def _line(figure: int, of: str, says: str, data: Mapping[str, Any]) -> AnalysisLine:
    return AnalysisLine(f"MTalk-Bench figure {figure}", of, f"figure {figure}, {of}: {says}", data)


def _of_evaluator(evaluator: _Evaluator, by_judge: Mapping[str, Sequence[RubricMarks]]) -> Iterator[AnalysisLine]:
    name, ratings, pairs = evaluator.name, evaluator.ratings, tally(evaluator.battles).pairs
    # Win rates, with a tie counting as one half.
    for system in dict.fromkeys(one for one, _ in pairs):
        met = {other: pair for (one, other), pair in pairs.items() if one == system}
        count = sum(battles for _, battles in met.values())
        overall = sum(share * battles for share, battles in met.values()) / count
        against = ", ".join(f"{share:.2f} of {battles} against {other}" for other, (share, battles) in met.items())
        rates, counts = ({other: pair[at] for other, pair in met.items()} for at in (0, 1))
        data = {"system": system, "win_rate": overall, "against": rates, "battles": counts}
        yield _line(4, name, f"{system} wins {overall:.2f} of {count} battles: {against}", data)
    yield from _duration(f"Elo of {name}", [one for systems in by_judge.values() for one in systems], ratings)
    # Whether a rater chooses the system to which they give more marks.
    totals: dict[tuple[str, str, str], float] = defaultdict(float)
    for one in itertools.chain(*by_judge.values()):
        for (dialogue, _), mark in one.marks.items():
            totals[one.judge.partition("#")[0], dialogue, one.system] += mark
    kappa, share = raters.compare_arena_with_rubric(evaluator.votes, totals)
    if share.count:
        says = f"kappa {format_estimate(kappa)}, the same winner in {format_estimate(share)} of {share.count} battles"
        yield _line(8, name, says, {"kappa": asdict(kappa), "agreeing": asdict(share)})
    # Whether pairs of systems with close ratings are distinguished.
    gaps = {(a, b): ratings[a] - ratings[b] for a, b in pairs if a < b}
    wins = [(abs(gap), pairs[(a, b) if gap >= 0 else (b, a)][0]) for (a, b), gap in gaps.items()]
    yield from _split_gaps(name, "Elo points", "wins", "battles", wins)
    rho = raters.correlate_elo_with_win_rate(evaluator.battles)
    says = f"SRCC of differences in Elo and in win rate {format_estimate(rho)} over {rho.count} pairs"
    yield _line(12, name, says, {"srcc": asdict(rho)})


def _duration(of: str, marks: Sequence[RubricMarks], values: Mapping[str, float]) -> Iterator[AnalysisLine]:
    """Yield the correlation of the systems' scores with the length of their answers."""
    seconds = {one.system: one.seconds for one in marks if one.seconds is not None and one.system in values}
    points = {name: [seconds[name], values[name]] for name in sorted(seconds)}
    if len(points) > 1:
        rho = srcc(*map(list, zip(*points.values(), strict=True)))
        listed = ", ".join(f"{name} {length:.1f} s {value:.1f}" for name, (length, value) in points.items())
        says = f"SRCC with the length of answers {format_estimate(rho)} over {rho.count} systems: {listed}"
        yield _line(5, of, says, {"srcc": asdict(rho), "systems": points})


def _split_gaps(
    of: str, unit: str, verb: str, things: str, gaps: Sequence[tuple[float, float]]
) -> Iterator[AnalysisLine]:
    """Yield how often the better system is preferred: in the half of the pairs with closer ratings, and in the rest."""
    if len(gaps) < 2:
        return
    middle = median(gap for gap, _ in gaps)
    close, far = ([rate for gap, rate in gaps if (gap <= middle) == near] for near in (True, False))
    near_words, far_words = (
        f"{fmean(rates):.2f} of {things} ({len(rates)})" if rates else "–" for rates in (close, far)
    )
    says = f"the better system {verb} {near_words} in pairs up to {middle:.1f} {unit} apart, {far_words} in others"
    yield _line(10, of, says, {"unit": unit, "median": middle, "close": close, "far": far})


def _pseudo_agreement(one: _Evaluator, other: _Evaluator) -> Iterator[AnalysisLine]:
    agreements, pairs = raters.compute_pseudo_agreements(one.battles, other.battles), tally(one.battles).pairs
    if not agreements:
        return
    values = list(agreements.values())
    rho = srcc([abs(2 * pairs[pair][0] - 1) for pair in agreements], values)
    high = sum(value > AGREEING for value in values)
    says = (
        f"pseudo-agreement {fmean(values):.2f} over {len(values)} pairs, above {AGREEING} in {high}; SRCC with the "
        f"difference in win rates {format_estimate(rho)}"
    )
    data = {f"{a} and {b}": value for (a, b), value in agreements.items()}
    yield _line(6, f"{one.name} and {other.name}", says, {"pairs": data, "above": high, "srcc": asdict(rho)})


def _common_tasks(one: _Evaluator, other: _Evaluator) -> Iterator[AnalysisLine]:
    """Yield how often two raters, from two logs or the same log, agree on the tasks that both judged."""
    mine, theirs = one.winners.values(), other.winners.values()
    pairs = itertools.combinations(mine, 2) if one is other else itertools.product(mine, theirs)
    alike = [ours[task] == others[task] for ours, others in pairs for task in ours.keys() & others.keys()]
    of = f"raters of {one.name}" if one is other else f"{one.name} and {other.name}"
    yield from _alike(of, "arena", "choice", "battles", alike)


def _common_criteria(by_judge: Mapping[str, Sequence[RubricMarks]], judge: str, second: str) -> Iterator[AnalysisLine]:
    theirs = {one.system: one.marks for one in by_judge[second]}
    marks = [(met, theirs.get(one.system, {}).get(mark)) for one in by_judge[judge] for mark, met in one.marks.items()]
    alike = [met == other for met, other in marks if other is not None]
    yield from _alike(f"{judge} and {second}", "rubric", "mark", "criteria", alike)


def _alike(of: str, kind: str, what: str, things: str, alike: Sequence[bool]) -> Iterator[AnalysisLine]:
    if alike:
        share = wilson(sum(alike), len(alike))
        says = f"the same {what} in {format_estimate(share)} of {share.count} common {things}"
        yield _line(7, of, says, {kind: asdict(share)})


def _rubric_gaps(judge: str, systems: Sequence[RubricMarks]) -> Iterator[AnalysisLine]:
    yield from _duration(f"rubric of {judge}", systems, {one.system: one.share() for one in systems})
    gaps = []
    for pair in itertools.combinations(systems, 2):
        worse, better = sorted(pair, key=RubricMarks.share)
        dialogues = sorted({name for name, _ in worse.marks} & {name for name, _ in better.marks})
        scores = [(better.share([name]), worse.share([name])) for name in dialogues]
        if scores:
            wins = fmean((a > b) + (a == b) / 2 for a, b in scores)
            gaps.append((better.share() - worse.share(), wins))
    yield from _split_gaps(judge, "rubric points", "scores higher in", "dialogues", gaps)


def _exclusion(judge: str, systems: Sequence[RubricMarks], evaluators: Sequence[_Evaluator]) -> Iterator[AnalysisLine]:
    common = sorted(set.intersection(*(set(one.marks) for one in systems)))
    scores = {one.system: [one.marks[mark] for mark in common] for one in systems}
    if len(systems) < 3 or not common:
        return
    references: dict[str, Mapping[str, float] | None] = {"the ranking by all criteria": None}
    for evaluator in evaluators:
        if scores.keys() <= evaluator.ratings.keys():
            references[f"the Elo of {evaluator.name}"] = evaluator.ratings
    for reference, values in references.items():
        draws = raters.rank_without_items(scores, values)
        words = ", ".join(f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}] with {one.kept}" for one in draws)
        says = f"SRCC with {reference}, by number of criteria (of {len(common)}): {words}"
        yield _line(9, judge, says, {"reference": reference, "draws": [asdict(one) for one in draws]})


def _capabilities(judge: str, systems: Sequence[RubricMarks]) -> Iterator[AnalysisLine]:
    for one in systems:
        names = sorted({one.capability.get(dialogue, "") for dialogue, _ in one.marks} - {""})
        groups = {name: {dialogue for dialogue, of in one.capability.items() if of == name} for name in names}
        shares = {name: one.share(dialogues) for name, dialogues in groups.items()}
        if shares:
            words = ", ".join(f"{name} {share:.1f}" for name, share in shares.items())
            yield _line(11, judge, f"{one.system}: {words} %", {"system": one.system, "capabilities": shares})
