"""`podeval measure`: score files with one metric."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podeval.cli.completion import complete_metric, complete_profile, complete_setting
from podeval.cli.judge_limits import (
    JudgeWorkers,
    Limit,
    MaxCalls,
    MaxCost,
    Pilot,
    count_unasked,
    make_bench,
    tell_pilot,
    tell_usage,
)
from podeval.cli.output import AsJson, emit, show_progress
from podeval.errors import BadInput, PodevalError
from podeval.models.profiles import CHOICES, MEASURING

if TYPE_CHECKING:
    from podeval.metrics import Key, Metric, Result
    from podeval.stats.intervals import Interval


Refresh = Annotated[
    Literal["failed", "all"] | None,
    typer.Option(
        help="ask the judge again despite existing records: all questions, or only failed ones; earlier answers are "
        "kept",
    ),
]
Wordings = Annotated[
    Path | None,
    typer.Option(
        "--prompts", metavar="FOLDER", help="folder with reworded prompts; `podeval judge prompts` writes the originals"
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE|FOLDER|SYSTEM",
        help="audio, scripts for the script metrics, a folder of audio for human_likeness, or names of systems for "
        "arena, mos, mushra",
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="METRIC",
        help="name of the metric; `podeval metrics list` shows all",
        autocompletion=complete_metric,
    ),
]


def measure(
    name: Name,
    files: Files,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            help="file to compare with: a voice's recording or SPEAKER=FILE (repeatable), a script, a text, or the "
            "votes, marks or answers of people"
        ),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(
            help=(
                "file with the words that should be spoken, as plain text or a script; one for all recordings or one "
                "for each"
            )
        ),
    ] = None,
    request: Annotated[
        list[Path] | None,
        typer.Option(help="file with the request, as text or JSON; one for all scripts or one for each"),
    ] = None,
    profile: Annotated[
        str, typer.Option(help=f"models to use: {CHOICES}", autocompletion=complete_profile)
    ] = "embedded",
    speakers: Annotated[int | None, typer.Option(help="number of people who speak, if known")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="set a parameter of the metric, as NAME=VALUE (repeatable)",
            autocompletion=complete_setting,
        ),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(help="the judge: MODEL@https://host/v1, gguf:FILE, transformers:REPO@COMMIT, records:FOLDER"),
    ] = "",
    records: Annotated[
        Path | None, typer.Option(help="folder for the judge's raw answers; podeval's cache by default")
    ] = None,
    refresh: Refresh = None,
    limit: Limit = None,
    pilot: Pilot = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    judge_workers: JudgeWorkers = 4,
    prompts: Wordings = None,
    allow_upsampling: Annotated[
        bool, typer.Option("--allow-upsampling", help="also score recordings whose sample rate is below the model's")
    ] = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="with --json, also print the values of every window")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score files with one metric.

    Example: podeval measure loudness episode.wav --json

    Example: podeval measure human_likeness runs/real_pod/demo/kokoro/outputs

    Example: podeval measure wer episode.wav --text script.json --set normaliser=basic

    Example: podeval measure script_quality script.json --judge MODEL@https://host/v1 --records judgements

    Example: podeval measure arena kokoro --reference votes.jsonl

    Example: podeval measure instruction_following script.json --request request.json --judge judge.yaml

    Example: podeval measure dialogue_judge script.json --reference human.json --judge judge.yaml

    Example: podeval measure sim episode.wav --text script.json --reference HOST=host.wav --reference GUEST=guest.wav
    """
    from podeval.measuring.compute import score_item
    from podeval.measuring.inputs import MetricInputs, open_inputs
    from podeval.metrics import Unscored, catalogue
    from podeval.metrics.catalogue import describe_protocol

    metric = catalogue.get(name)
    if profile not in MEASURING:
        from podeval.models.registry import require_profile

        require_profile(profile)
    values = _parse_settings(settings or [])
    if speakers is not None and values.setdefault("speakers", str(speakers)) != str(speakers):
        raise BadInput(f"--speakers says {speakers} and --set speakers={values['speakers']}; give only one of the two")
    chosen = metric.read_parameters(values)
    if metric.asks is None and (judge or records or prompts):
        raise BadInput(f"{metric.name} does not use a judge; leave out --judge, --records and --prompts")
    limits = (judge_workers, max_cost, max_calls, prompts)
    bench = make_bench(judge, records, refresh or "", *limits)
    client = bench.judging(metric.asks, chosen) if metric.asks else None
    options: dict[str, Any] = {"profile": profile, "allow_upsampling": allow_upsampling}
    every = gather_sources(metric, files, reference or [], text or [], request or [], options)
    items = _choose_items(every, limit, pilot)
    protocol = describe_protocol(metric, chosen, tuple(items[0][1]) if items else metric.inputs, profile, bench)
    worst = 0
    results: list[Result] = []
    short_names = _name_files([file for file, _ in items], as_json)
    with show_progress(metric.name) as steps:
        for number, ((file, sources), short_name) in enumerate(zip(items, short_names, strict=True)):
            steps.step("files", number, len(items))
            # Keep only one recording in memory at a time.
            inputs = MetricInputs(sources, **options, keep=True)
            try:
                opened = open_inputs(metric, inputs)
                refused = isinstance(opened, Unscored)
                result = opened if isinstance(opened, Unscored) else score_item(metric, inputs, chosen, client)
            except PodevalError as error:
                refused, result = True, Unscored(str(error), "system" if isinstance(error, BadInput) else "ours")
            worst = max(worst, 2 if refused else int(isinstance(result, Unscored)))
            results.append(result)
            if client and client.unsent:
                protocol["unsent"] = sorted(client.unsent)
            if as_json:
                line = {"file": str(file), **result.to_json(), "protocol": protocol}
                if not timeline or not line.get("timeline"):
                    line.pop("timeline", None)
                emit(line, allow_nan=False)
            else:
                problem = f"error: {result.reason}" if refused and isinstance(result, Unscored) else ""
                print(f"{short_name}: {problem or describe_result(metric, result)}", flush=True)
    if not as_json:
        _print_means(metric, results)
        if worst < 2 or any(not isinstance(result, Unscored) for result in results):
            print(f"protocol {protocol['id']}, profile {profile}", file=sys.stderr)
    tell_usage(bench)
    if pilot:
        unasked = count_unasked(result.reason for result in results if isinstance(result, Unscored))
        usage = [(bench.budget.account, len(items) - unasked)] if bench.budget else []
        tell_pilot(usage, len(items), len(every), _list_means(metric, results))
    raise typer.Exit(worst)


def _choose_items(
    every: list[tuple[Path, dict[str, Any]]], limit: int | None, pilot: bool
) -> list[tuple[Path, dict[str, Any]]]:
    """Return the files to measure now; statistics are loaded only if not all files are measured."""
    if not limit and not pilot:
        return every
    from podeval.stats.sequential import select_items

    return select_items(every, limit, pilot, lambda item: item[0].parent, lambda item: str(item[0]))


def gather_sources(
    metric: "Metric",
    files: Sequence[Path],
    references: Sequence[Path],
    texts: Sequence[Path],
    requests: Sequence[Path],
    options: Mapping[str, Any],
) -> "list[tuple[Path, dict[str, Any]]]":
    """Return each file to measure, with the source of every input that the metric takes, by name.

    Args:
        metric: the metric.
        files: the files to measure, or the names of the systems; for a metric of recordings, any text files among them
            contain the spoken words.
        references: the files to compare with: a voice's recording or SPEAKER=FILE, a script, a text or votes.
        texts: files with the words that should be spoken: one for all measured files, or one for each.
        requests: files with the requests: one for all measured files, or one for each.
        options: `profile` and `allow_upsampling`.

    Raises:
        BadInput: a required file is missing, a file is given that the metric does not use, the numbers of files do not
            match, or a reference voice cannot be read.
    """
    if requests and metric.reference != "request":
        raise BadInput(f"{metric.name} does not use requests; leave out --request")
    from podeval.measuring.inputs import read_voices

    compares_voices = "reference_voices" in (*metric.inputs, *metric.optional_inputs)
    if "reference_voices" in metric.inputs and not references:
        raise BadInput(
            f"{metric.name} needs a recording of the voice to compare with: add --reference FILE, or "
            "SPEAKER=FILE for each speaker"
        )
    voices = read_voices(references, options) if compares_voices else {}
    files, texts = _split_texts(metric, files, [*texts, *requests, *([] if voices else references)])
    items = []
    is_heard = metric.inputs[0] == "recording" and metric.reference != "request"
    beside = ("reference_text", "script") if is_heard else (metric.reference or "",)
    for number, file in enumerate(files):
        words = dict.fromkeys(beside, texts[number % len(texts)]) if texts else {}
        sources = {metric.inputs[0]: file} | words | voices
        inputs = (*metric.inputs, *metric.optional_inputs)
        items.append((file, {name: sources[name] for name in inputs if name in sources}))
    return items


def _split_texts(
    metric: "Metric", files: Sequence[Path], texts: Sequence[Path]
) -> "tuple[Sequence[Path], Sequence[Path]]":
    """Separate the measured files from their texts; there may be no texts, one for all files, or one for each.

    Raises:
        BadInput: a text is given that the metric does not use, a required text is missing, or the numbers of files do
            not match.
    """
    from podeval.measuring.inputs import TEXT_SUFFIXES
    from podeval.metrics.facts import INPUTS

    if metric.inputs[0] == "recording" and texts:
        texts = [*texts, *(path for path in files if path.suffix.lower() in TEXT_SUFFIXES)]
        files = [path for path in files if path.suffix.lower() not in TEXT_SUFFIXES]
    compared = metric.reference if metric.inputs[0] != "recording" or metric.reference == "request" else None
    if compared and not texts:
        option = "--request" if compared == "request" else "--reference"
        raise BadInput(f"{metric.name} also needs {INPUTS[compared]}: add {option} FILE")
    if texts and not compared and not {"script", "reference_text"} & {*metric.inputs[1:], *metric.optional_inputs}:
        raise BadInput(f"{metric.name} does not use a text or a reference; leave out --text and --reference")
    if "reference_text" in metric.inputs and not texts:
        raise BadInput(f"{metric.name} needs the words that should be spoken: add --text FILE (text, or a script)")
    if metric.inputs[0] == "recording" and "script" in metric.inputs and not texts:
        raise BadInput(
            f"{metric.name} needs the words and their speakers: add --text FILE (a script with its speakers)"
        )
    if texts and len(texts) not in (1, len(files)):
        raise BadInput(f"there are {len(files)} files and {len(texts)} texts; give one text, or one for each file")
    return files, texts


def _name_files(files: "list[Path]", as_json: bool) -> list[str]:
    """Return the names for printed results; JSON contains complete paths."""
    if as_json:
        return [""] * len(files)
    from podeval.files import shorten_names

    return shorten_names(list(map(str, files)))


def _list_means(metric: "Metric", results: "list[Result]") -> "list[tuple[str, Interval | None, int]]":
    """List the mean of each value with its interval, if any, and the number of files with a value."""
    from podeval.metrics.aggregate import aggregate

    summary = aggregate(metric, results)
    return [(key, one, summary.scored) for key, one in summary.intervals.items()]


def _print_means(metric: "Metric", results: "list[Result]") -> None:
    """Print the mean of each value over the files that have it, with its 95 % interval if there are several files."""
    from podeval.metrics.aggregate import aggregate
    from podeval.metrics.score import Score

    scored = sum(isinstance(result, Score) for result in results)
    if scored < 2:
        return
    keys = {key.name: key for key in metric.keys}
    means = [
        f"{name} {_format_number(mean.mean, keys.get(name))}{_format_interval(mean.low, mean.high, keys.get(name))}"
        for name, mean in aggregate(metric, results).intervals.items()
        if mean is not None
    ]
    print(f"mean of {scored} [95 %]: {'  '.join(means)}")


def describe_result(metric: "Metric", result: "Result") -> str:
    """Return a result as `podeval measure` prints it: values, notes and clear drifts."""
    from podeval.metrics.score import CENSORED, Unscored, describe_notes
    from podeval.metrics.standing import AT_LEAST

    if isinstance(result, Unscored):
        return f"unscored: {result.reason}"
    keys = {key.name: key for key in metric.keys}
    marks = dict.fromkeys(result.notes.get(CENSORED, ()), AT_LEAST)
    values = "  ".join(
        f"{name} {marks.get(name, '')}{_format_number(value, keys.get(name))} "
        f"{keys[name].unit_text if name in keys else ''}".rstrip()
        for name, value in result.values.items()
    )
    drifts = result.timeline.drift if result.timeline else {}
    # A slope whose interval contains zero is not evidence of a trend.
    slopes = [f"{key} {_format_slope(trend)}" for key, trend in drifts.items() if key != "per" and is_clear(trend)]
    noted = [
        *describe_notes(result),
        *(f"{name}: {one}" for name in ("file", "text") for one in result.notes.get(name, ())),
    ]
    values += "".join(f"\n  {sentence}" for sentence in noted)
    return values + (f"\n  drift per {drifts['per']} [95 %]: {'  '.join(slopes)}" if slopes else "")


def is_clear(trend: dict[str, Any]) -> bool:
    """Return whether the interval of a slope excludes zero."""
    low, high = trend["ci95"]
    return bool(low > 0 or high < 0)


def _format_slope(trend: dict[str, Any]) -> str:
    low, high = trend["ci95"]
    return f"{trend['slope']:+.3g} [{low:+.3g}, {high:+.3g}]"


def _parse_settings(pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for key, sign, _ in split:
        if not sign:
            raise BadInput(f"--set takes KEY=VALUE, such as --set variant=podeval, not {key!r}")
    names = [key.strip() for key, _, _ in split]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise BadInput(f"--set gives {', '.join(twice)} twice; give it once, and measure again for a second value")
    return {key.strip(): value.strip() for key, _, value in split}


def _format_number(value: float | None, key: "Key | None" = None) -> str:
    """Format a value with four digits; shares are percentages, as in all human-readable output."""
    if value is None:
        return "–"
    return f"{100 * value:.4g} %" if key is not None and key.percent else f"{value:.4g}"


def _format_interval(low: float | None, high: float | None, key: "Key | None") -> str:
    """Format the bounds of an interval, for display after its value."""
    ends = [_format_number(end, key).removesuffix(" %") for end in (low, high)]
    return "" if low is None else f" [{', '.join(ends)}]"
