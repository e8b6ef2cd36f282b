"""A certificate for a figure: how it depends on the system, the seed, the recogniser, the normaliser and the averaging.

Error rates are recomputed from the run's stored transcripts, without audio, under each normaliser and each way of
averaging, for each recogniser and seed that was run. Anyone who compares the figure with a printed one can see whether
the difference is larger than these choices explain. For other keys, only the seed and the profile vary.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

from podeval import benchmarks
from podeval.errors import BadInput, CannotScore
from podeval.metrics.score import Score
from podeval.runs.run_folder import RunFolder
from podeval.stats.intervals import Interval, mean_ci
from podeval.text.comparison.word_errors import WordErrors, count_word_errors
from podeval.text.script import Script

NORMALISERS = {
    "whisper": "Whisper's (ours)",
    "basic": "case and punctuation",
    "lfs": "F5-TTS's (LFS-Bench)",
    "none": "none (PodEval)",
}
"""The normalisers of `podeval.text.comparison.normalise`, with their authors."""
ERROR_RATES = ("wer.wer", "wer.cer")


@dataclass(frozen=True)
class Flip:
    """Two systems whose order under some choice differs from their order under the run's own choice."""

    better: str
    worse: str
    choice: str


@dataclass(frozen=True)
class Certificate:
    """What a run's figure depends on.

    Attributes:
        system: system of the figure.
        key: `metric.key`.
        value: the run's figure, with its interval over items.
        seeds: the figure of each seed.
        choices: the figure under each choice, for the run's own seed; empty for keys that are not error rates.
        floor: the figure of recordings of people with the same recogniser and normaliser; None if no such run was
            given.
        flips: pairs of systems whose order depends on the choice.
        compared: number of pairs of systems that were compared.
        printed: the printed figure for comparison.
    """

    system: str
    key: str
    value: Interval
    seeds: dict[int, float]
    choices: dict[str, float]
    floor: float | None = None
    flips: tuple[Flip, ...] = ()
    compared: int = 0
    printed: float | None = None
    missing: tuple[str, ...] = ()

    @property
    def extent(self) -> tuple[float, float]:
        """The lowest and the highest figure over seeds and choices."""
        values = [self.value.mean, *self.seeds.values(), *self.choices.values()]
        return min(values), max(values)

    @property
    def seed_spread(self) -> float | None:
        """Standard deviation over seeds; None for a single seed."""
        return stdev(self.seeds.values()) if len(self.seeds) > 1 else None

    @property
    def is_inside(self) -> bool | None:
        """Whether the printed figure is within the range of seeds and choices; None if there is no printed figure."""
        low, high = self.extent
        return None if self.printed is None else low <= self.printed <= high

    @property
    def is_in_interval(self) -> bool | None:
        """Whether the printed figure is in the run's interval over items; None if either is missing."""
        if self.printed is None or self.value.low is None or self.value.high is None:
            return None
        return self.value.low <= self.printed <= self.value.high


def certify(
    run: RunFolder,
    key: str = "wer.wer",
    *,
    others: Iterable[RunFolder] = (),
    people: RunFolder | None = None,
    printed: float | None = None,
) -> Certificate:
    """Certify one figure of a run.

    Args:
        run: the run.
        key: `metric.key`.
        others: runs of other systems on the same items, to find rank flips.
        people: a run of recordings of people, to find the recogniser's floor.
        printed: a printed figure for comparison, in the key's own unit.

    Raises:
        BadInput: the run has no value for the key.
    """
    benchmark = benchmarks.get(run.plan().benchmark)
    profiles = [summary.profile for summary in run.summaries()]
    values = {profile: _values(run, profile, key) for profile in profiles}
    main = next((profile for profile in profiles if values[profile]), None)
    if main is None:
        raise BadInput(
            f"{run.path} has no values of {key}; it was measured under {', '.join(profiles) or 'no profile'}"
        )
    seeds = {
        folder.plan().seed: fmean(of_seed.values())
        for folder in (run, *run.repeats())
        if (of_seed := _values(folder, main, key))
    }
    choices = _figures(run, profiles, key)
    if not choices and len(profiles) > 1:
        choices = {profile: fmean(of_profile.values()) for profile, of_profile in values.items() if of_profile}
    systems = {folder.plan().system: figures for folder in others if (figures := _figures(folder, profiles, key))}
    flips, compared = _flips({run.plan().system: choices, **systems})
    clusters = {item.id: benchmark.cluster(item) for item in run.items() or ()}
    floor = _values(people, main, key) if people else {}
    return Certificate(
        system=run.plan().system,
        key=key,
        value=mean_ci(
            list(values[main].values()), [clusters.get(item, item) for item in values[main]], bounds=(0.0, None)
        ),
        seeds=seeds,
        choices=choices,
        floor=fmean(floor.values()) if floor else None,
        flips=flips,
        compared=compared,
        printed=printed,
        missing=_list_missing(run, people, systems, key),
    )


def explain(certificate: Certificate, unit: float = 1.0) -> list[str]:
    """Return the certificate as sentences; figures are multiplied by `unit`, such as 100 for percentages."""

    def figure(value: float) -> str:
        return f"{value * unit:.2f}" if unit != 1 else f"{value:.3f}"

    low, high = certificate.extent
    interval = certificate.value
    over_items = (
        f", 95 % interval over items {figure(interval.low)} to {figure(interval.high)}"
        if interval.low is not None and interval.high is not None
        else ""
    )
    lines = [f"{certificate.key} of {certificate.system}: {figure(interval.mean)} ({interval.n} items{over_items})."]
    if certificate.seed_spread is not None:
        values = certificate.seeds.values()
        lines.append(
            f"Over {len(values)} seeds: {figure(min(values))} to {figure(max(values))}, standard deviation "
            f"{figure(certificate.seed_spread)}."
        )
    lines += [f"  {choice}: {figure(value)}" for choice, value in certificate.choices.items()]
    if certificate.floor is not None:
        lines.append(f"The recogniser's floor, measured on recordings of people, is {figure(certificate.floor)}.")
    if certificate.compared:
        lines.append(
            f"Of {certificate.compared} pairs of systems, {len({(f.better, f.worse) for f in certificate.flips})}"
            " change their order with the choice."
        )
        lines += [f"  {flip.better} beats {flip.worse} here, but not with: {flip.choice}" for flip in certificate.flips]
    lines += [f"Not known: {what}." for what in certificate.missing]
    if certificate.printed is not None:
        where = "inside" if certificate.is_inside else "outside"
        also = {True: ", and inside the interval over items", False: ", and outside the interval over items", None: ""}
        lines.append(
            f"The paper's {certificate.printed * unit:g} is {where} the range that seed, recogniser, normaliser and "
            f"averaging give this figure ({figure(low)} to {figure(high)}){also[certificate.is_in_interval]}."
        )
    return lines


def _is_of(protocol: str, metric: str, chosen: str | None) -> bool:
    """Return whether a protocol is the chosen one or, if the run has no summary, whether it belongs to the metric."""
    return protocol == chosen if chosen else protocol.partition("@")[0] == metric


def _choose_protocol(run: RunFolder, profile: str, metric: str) -> str | None:
    return next((one.choose_protocols().get(metric) for one in run.summaries() if one.profile == profile), None)


def _values(run: RunFolder, profile: str, key: str) -> dict[str, float]:
    """Return the values of a key by item, under the chosen protocol of its metric."""
    metric, _, name = key.partition(".")
    chosen = _choose_protocol(run, profile, metric)
    results = ((item, one) for (item, by), one in run.results(profile).items() if _is_of(by, metric, chosen))
    values = {item: one.values.get(name) for item, one in results if isinstance(one, Score)}
    return {item: value for item, value in values.items() if value is not None}


def _figures(run: RunFolder, profiles: Iterable[str], key: str) -> dict[str, float]:
    """Return an error rate under each choice; empty for other keys."""
    if key not in ERROR_RATES:
        return {}
    rate = key.partition(".")[2]
    figures: dict[str, float] = {}
    for profile in profiles:
        transcripts = _read_transcripts(run, profile)
        for normaliser, whose in NORMALISERS.items():
            counted = [_count_errors(*transcript, normaliser) for transcript in transcripts]
            errors = [one for one in counted if one and getattr(one, rate) is not None]
            if errors:
                rates, weights = [getattr(one, rate) for one in errors], [one.reference_length for one in errors]
                figures[f"{profile}, {whose}, mean over items"] = fmean(rates)
                figures[f"{profile}, {whose}, pooled over words"] = fmean(rates, weights)
    return figures


def _read_transcripts(run: RunFolder, profile: str) -> list[tuple[str, str, str]]:
    """Return the reference, transcript and language of each item with a stored transcript."""
    texts, chosen = [], _choose_protocol(run, profile, "wer")
    for (item, protocol), result in run.results(profile).items():
        if not _is_of(protocol, "wer", chosen) or not isinstance(result, Score):
            continue
        output, words = run.output(item), result.notes.get("transcript")
        if output is not None and output.script and isinstance(words, str):
            reference = Script.parse(list(output.script)).text
            texts.append((reference, words, str(result.notes.get("language", "en"))))
    return texts


def _count_errors(reference: str, words: str, language: str, normaliser: str) -> WordErrors | None:
    try:
        return count_word_errors(reference, words, language if language in ("en", "zh") else "en", normaliser)
    except CannotScore:
        return None


def _flips(systems: Mapping[str, Mapping[str, float]]) -> tuple[tuple[Flip, ...], int]:
    """Return the pairs whose order depends on the choice, and the number of pairs that have a choice in common."""
    flips, compared = [], 0
    for one, other in combinations(sorted(systems), 2):
        shared = [choice for choice in systems[one] if choice in systems[other]]
        if not shared:
            continue
        compared += 1
        gaps = {choice: systems[one][choice] - systems[other][choice] for choice in shared}
        usual = gaps[shared[0]]
        better, worse = (one, other) if usual <= 0 else (other, one)
        flips += [Flip(better, worse, choice) for choice, gap in gaps.items() if gap * usual < 0]
    return tuple(flips), compared


def _list_missing(run: RunFolder, people: RunFolder | None, systems: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return sentences that say what a more complete certificate would require."""
    error_rate = key in ERROR_RATES
    lacking = {
        "the spread over seeds (`podeval run … --seeds 3`)": not run.repeats(),
        "the recogniser's floor (`--people RUN`, a run of recordings of people)": people is None and error_rate,
        "the result of another recogniser (`podeval run … --profile reference` measures again)": (
            len(run.summaries()) < 2
        ),
        "whether ranks change (`--against RUN`)": not systems and error_rate,
    }
    return tuple(what for what, lacks in lacking.items() if lacks)
