"""A certificate for a figure: how it depends on the system, the seed, the recogniser, the normaliser and the averaging.

Error rates are recomputed from the run's stored transcripts, without audio, under each normaliser and each way of
averaging, for each recogniser and seed that was run. Anyone who compares the figure with a printed figure can see
whether the difference is larger than these choices explain. For other keys, only the seed and the profile vary.
"""

from collections.abc import Iterable, Iterator, Mapping
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
class Certificate:
    """A run's figure, and how it depends on the seed and on other choices.

    Attributes:
        value: the run's figure, with its interval over items.
        seeds: the figure of each seed.
        choices: the figure under each choice, for the run's own seed; empty for keys that are not error rates.
        floor: the figure that the same recogniser and normaliser give for recordings of people; None if no such run was
            given.
        flips: pairs of systems whose order under some choice differs from their order under the run's own choice.
        compared: number of pairs of systems that were compared.
        missing: sentences on what a more complete certificate would require.
    """

    system: str
    key: str
    value: Interval
    seeds: dict[int, float]
    choices: dict[str, float]
    floor: float | None = None
    flips: tuple[dict[str, str], ...] = ()
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
        """Whether the printed figure is within the `extent`; None if there is no printed figure."""
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
        run: the folder of the run to certify.
        key: `metric.key`.
        others: runs of other systems on the same items, to find rank flips.
        people: a run of recordings of people, which shows the error rate that the recogniser itself causes.
        printed: a printed figure for comparison, in the key's own unit.

    Raises:
        BadInput: the run has no value for the key.
    """
    benchmark = benchmarks.get(run.plan().benchmark)
    profiles = [summary.profile for summary in run.summaries()]
    values = {profile: of for profile in profiles if (of := _values(run, profile, key))}
    if not values:
        raise BadInput(
            f"{run.path} has no values of {key}; it was measured under {', '.join(profiles) or 'no profile'}"
        )
    main, of_main = next(iter(values.items()))
    by_seed = {folder.plan().seed: _values(folder, main, key) for folder in (run, *run.repeats())}
    choices = _figures(run, profiles, key)
    if not choices and len(profiles) > 1:
        choices = {profile: fmean(of_profile.values()) for profile, of_profile in values.items()}
    systems = {folder.plan().system: figures for folder in others if (figures := _figures(folder, profiles, key))}
    flips, compared = _flips({run.plan().system: choices, **systems})
    clusters = {item.id: benchmark.cluster(item) for item in run.items() or ()}
    floor = _values(people, main, key) if people else {}
    return Certificate(
        system=run.plan().system,
        key=key,
        value=mean_ci(list(of_main.values()), [clusters.get(item, item) for item in of_main], bounds=(0.0, None)),
        seeds={seed: fmean(of_seed.values()) for seed, of_seed in by_seed.items() if of_seed},
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
        changed = {(flip["better"], flip["worse"]) for flip in certificate.flips}
        lines.append(
            f"Of {certificate.compared} pairs of systems, {len(changed)} change their order depending on the choice."
        )
        lines += map("  {better} beats {worse} here, but not with: {choice}".format_map, certificate.flips)
    lines += [f"Not known: {what}." for what in certificate.missing]
    if certificate.printed is not None:
        where = "inside" if certificate.is_inside else "outside"
        also = {True: ", and inside the interval over items", False: ", and outside the interval over items", None: ""}
        lines.append(
            f"The paper's {certificate.printed * unit:g} is {where} the range that seed, recogniser, normaliser and "
            f"averaging allow for this figure ({figure(low)} to {figure(high)}){also[certificate.is_in_interval]}."
        )
    return lines


def _scores(run: RunFolder, profile: str, metric: str) -> dict[str, Score]:
    """Return a metric's scores by item, under its chosen protocol; a run without a summary has only one protocol."""
    chosen = next((one.choose_protocols().get(metric) for one in run.summaries() if one.profile == profile), None)
    return {
        item: result
        for (item, protocol), result in run.results(profile).items()
        if (protocol == chosen if chosen else protocol.partition("@")[0] == metric) and isinstance(result, Score)
    }


def _values(run: RunFolder, profile: str, key: str) -> dict[str, float]:
    """Return the values of a key by item."""
    metric, _, name = key.partition(".")
    values = {item: score.values.get(name) for item, score in _scores(run, profile, metric).items()}
    return {item: value for item, value in values.items() if value is not None}


def _figures(run: RunFolder, profiles: Iterable[str], key: str) -> dict[str, float]:
    """Return an error rate under each choice; empty for other keys."""
    if key not in ERROR_RATES:
        return {}
    figures: dict[str, float] = {}
    for profile in profiles:
        transcripts = list(_read_transcripts(run, profile))
        for normaliser, whose in NORMALISERS.items():
            counted = [_count_errors(*transcript, normaliser) for transcript in transcripts]
            rated = [(getattr(one, key.partition(".")[2]), one.reference_length) for one in counted if one]
            if rated := [(rate, length) for rate, length in rated if rate is not None]:
                rates, weights = zip(*rated, strict=True)
                figures[f"{profile}, {whose}, mean over items"] = fmean(rates)
                figures[f"{profile}, {whose}, pooled over words"] = fmean(rates, weights)
    return figures


def _read_transcripts(run: RunFolder, profile: str) -> Iterator[tuple[str, str, str]]:
    """Yield the reference, transcript and language of each item with a stored transcript."""
    for item, score in _scores(run, profile, "wer").items():
        output, words = run.output(item), score.notes.get("transcript")
        if output is not None and output.script and isinstance(words, str):
            yield Script.parse(list(output.script)).text, words, str(score.notes.get("language", "en"))


def _count_errors(reference: str, words: str, language: str, normaliser: str) -> WordErrors | None:
    try:
        return count_word_errors(reference, words, language if language in ("en", "zh") else "en", normaliser)
    except CannotScore:
        return None


def _flips(systems: Mapping[str, Mapping[str, float]]) -> tuple[tuple[dict[str, str], ...], int]:
    """Return the pairs whose order depends on the choice, and the number of pairs that could be compared."""
    flips, compared = [], 0
    for one, other in combinations(sorted(systems), 2):
        gaps = {name: value - systems[other][name] for name, value in systems[one].items() if name in systems[other]}
        usual = next(iter(gaps.values()), 0.0)
        better, worse = (one, other) if usual <= 0 else (other, one)
        flips += [{"better": better, "worse": worse, "choice": name} for name, gap in gaps.items() if gap * usual < 0]
        compared += bool(gaps)
    return tuple(flips), compared


def _list_missing(run: RunFolder, people: RunFolder | None, systems: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return sentences that say what a more complete certificate would require."""
    error_rate = key in ERROR_RATES
    lacking = {
        "the spread over seeds (`podeval run … --seeds 3`)": not run.repeats(),
        "the recogniser's floor (`--people RUN`, a run of recordings of people)": error_rate and people is None,
        "the result of another recogniser (`podeval run … --profile reference` measures again)": (
            len(run.summaries()) < 2
        ),
        "whether ranks change (`--against RUN`)": error_rate and not systems,
    }
    return tuple(what for what, lacks in lacking.items() if lacks)
